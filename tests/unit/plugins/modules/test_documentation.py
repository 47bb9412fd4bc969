# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each module's documentation has to have beyond what ansible-test's validate-modules asks for."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest
import yaml

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.files import STATE_DIR
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import argument_specs

FOLDER = Path(__file__).resolve().parents[4] / "plugins/modules"
MODULES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")
# Of a task, beside the module.
KEYWORDS = {"name", "register", "become", "when", "loop", "vars", "run_once", "delegate_to"}


def read(module):
    """{DOCUMENTATION, EXAMPLES, RETURN} of a module, parsed; with the options and attributes of its fragments."""
    tree = ast.parse((FOLDER / f"{module}.py").read_text(encoding="utf-8"))
    texts = {node.targets[0].id: node.value for node in tree.body if isinstance(node, ast.Assign)}
    read = {name: yaml.safe_load(ast.literal_eval(texts[name])) for name in ("DOCUMENTATION", "EXAMPLES", "RETURN")}
    documentation = read["DOCUMENTATION"]
    for fragment in documentation["extends_documentation_fragment"]:
        shared = fragment_of(*fragment.split(".")[2:])
        for key in ("options", "attributes"):
            own, theirs = documentation.get(key, {}), shared.get(key, {})
            told_twice = {name for name in set(own) & set(theirs) if set(own[name]) & set(theirs[name])}
            assert not told_twice, fragment
            merged = {name: {**theirs.get(name, {}), **own.get(name, {})} for name in {**theirs, **own}}
            documentation[key] = merged
    return read


def fragment_of(file, section="documentation"):
    module = importlib.import_module(f"ansible_collections.ssdlab.fleet.plugins.doc_fragments.{file}")
    return yaml.safe_load(getattr(module.ModuleDocFragment, section.upper()))


def unexplained(returned, above=""):
    """The keys of RETURN that show neither what they look like nor what is in them."""
    for key, value in returned.items():
        if "contains" in value:
            if "sample" not in value:
                yield from unexplained(value["contains"], f"{above}{key}.")
        elif "sample" not in value:
            yield above + key


@pytest.mark.parametrize("module", MODULES)
def test_documentation_is_complete(module):
    texts = read(module)
    documentation = texts["DOCUMENTATION"]
    assert documentation["module"] == module
    assert set(documentation["attributes"]) == {"check_mode", "diff_mode", "idempotent"}
    for name, attribute in documentation["attributes"].items():
        assert attribute["support"] != "partial" or attribute.get("details"), name
    assert not list(unexplained(texts["RETURN"]))
    assert [key for key, value in texts["RETURN"].items() if "returned" not in value] == []


@pytest.mark.parametrize("module", MODULES)
def test_examples_use_arguments_that_exist(module):
    shown = []
    for task in read(module)["EXAMPLES"]:
        assert task["name"]
        (action,) = set(task) - KEYWORDS
        collection, name = action.rsplit(".", 1)
        if collection == "ssdlab.fleet":
            shown.append(name)
            known = read(name)["DOCUMENTATION"]["options"]
            given = task[action] or {}
            assert set(given) <= set(known), task["name"]
            assert {option for option, value in known.items() if value.get("required")} <= set(given), task["name"]
    assert module in shown


@pytest.mark.parametrize("module", MODULES)
def test_documentation_and_role_have_the_state_folder_that_the_code_has(module):
    option = read(module)["DOCUMENTATION"].get("options", {}).get("state_dir", {})
    assert option.get("default", STATE_DIR) == STATE_DIR


def test_the_role_has_the_state_folder_that_the_code_has():
    assert argument_specs.default("ssd_state_dir") == STATE_DIR


def test_no_other_code_has_the_state_folder():
    code = [path for path in FOLDER.parent.rglob("*.py") if path.name != "files.py"]
    found = [
        str(path)
        for path in code
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value == STATE_DIR
    ]
    assert len(code) > 300 and found == []
