# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a reader copies works: variables of examples exist, and modules' examples use options that they have."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
PAGES = ["README.md", *(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
PAGES += [f"roles/{path.parent.name}/README.md" for path in (ROOT / "roles").glob("*/README.md")]
MODULES = sorted(path.stem for path in (ROOT / "plugins/modules").glob("[!_]*.py"))
BLOCK = re.compile(r"^```ya?ml\n(.*?)^```", re.MULTILINE | re.DOTALL)
GROUP = "ssd_servers"  # of inventories
OURS = re.compile(r"^(ssd|preflight|tune|purge|precondition|workload|vendor|report|awx)_")
PREFIX = "ssdlab.fleet."
# Keywords of a task beside its module; what Ansible itself knows is held by ansible-lint in playbooks and roles.
KEYWORDS = {"name", "register", "when", "loop", "delegate_to", "run_once", "become", "vars", "failed_when", "until"}
KEYWORDS |= {"changed_when", "retries", "delay", "check_mode", "no_log", "loop_control", "notify", "environment"}


class Loader(yaml.SafeLoader):
    """YAML with Ansible's tags."""


for tag in ("!unsafe", "!vault"):
    Loader.add_constructor(tag, lambda loader, node: node.value)


def load(text):
    return yaml.load(text, Loader)


def variables_of_roles():
    """Names of all variables that a role's argument specs document."""
    found = set()
    for path in (ROOT / "roles").glob("*/meta/argument_specs.yml"):
        for entry in load(path.read_text(encoding="utf-8"))["argument_specs"].values():
            found |= set(entry.get("options") or {})
    return found


def blocks():
    return [
        pytest.param(load(found), id=f"{page} {number}")
        for page in sorted(PAGES)
        for number, found in enumerate(BLOCK.findall((ROOT / page).read_text(encoding="utf-8")), 1)
    ]


def named(value, own):
    """Names of our variables that a block sets: wherever they are keys of a mapping that is no value of one of ours."""
    if isinstance(value, list):
        return set().union(*(named(item, own) for item in value)) if value else set()
    if not isinstance(value, dict):
        return set()
    found = {key for key in value if OURS.match(str(key))}
    return found.union(*(named(item, own) for key, item in value.items() if key not in own))


@pytest.mark.parametrize("block", blocks())
def test_variables_of_examples_exist(block):
    own = variables_of_roles()
    assert named(block, own) <= own | {GROUP}


def tasks(value):
    """All mappings of an example that use a module of ours, with its name."""
    if isinstance(value, list):
        for item in value:
            yield from tasks(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if str(key).startswith(PREFIX):
                yield str(key)[len(PREFIX) :], item or {}, set(value) - {key}
            else:
                yield from tasks(item)


def text_in(body, name):
    """The YAML of a constant in a module's or a class's body."""
    texts = [node.value for node in body if isinstance(node, ast.Assign) and node.targets[0].id == name]
    return load(ast.literal_eval(texts[0])) or {}


def tree(folder, name):
    return ast.parse((ROOT / f"plugins/{folder}/{name}.py").read_text(encoding="utf-8")).body


def options_of(module):
    """What it documents, and the fragments that it extends."""
    documented = text_in(tree("modules", module), "DOCUMENTATION")
    found = dict(documented.get("options") or {})
    for fragment in documented.get("extends_documentation_fragment", []):
        if fragment.startswith(PREFIX):
            file, _dot, part = fragment[len(PREFIX) :].partition(".")
            (holder,) = [node for node in tree("doc_fragments", file) if isinstance(node, ast.ClassDef)]
            found.update(text_in(holder.body, part.upper() or "DOCUMENTATION").get("options") or {})
    return found


@pytest.mark.parametrize("module", MODULES)
def test_examples_of_a_module_use_options_that_it_has(module):
    examples = list(tasks(text_in(tree("modules", module), "EXAMPLES")))
    assert module in [name for name, _given, _keywords in examples]
    for name, given, keywords in examples:
        options = options_of(name)
        assert set(given) <= set(options), (name, given)
        assert keywords <= KEYWORDS, (name, keywords)
        lacking = {key for key, option in options.items() if option.get("required")} - set(given)
        assert not lacking, (name, lacking)
        for key, value in given.items():
            choices = options[key].get("choices") or []
            values = value if isinstance(value, list) else [value]
            assert not choices or "{{" in str(value) or set(values) <= set(choices), (name, key, value)


@pytest.mark.parametrize("block", [found for found in blocks() if isinstance(found.values[0], list)])
def test_plays_of_examples_use_roles_and_modules_that_are_there(block):
    roles = {path.parent.name for path in (ROOT / "roles").glob("*/README.md")}
    for play in block:
        names = re.findall(rf"{re.escape(PREFIX)}([a-z_.]+)", str(play))
        assert names and set(names) <= roles | set(MODULES) | {"qualify", "report.yml", "qualify.yml"}, names
