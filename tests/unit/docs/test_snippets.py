# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Snippets of README and docs/ as they are printed: commands name playbooks, files, options and variables that exist,
values of variables are right, and Python finds what it imports in a checkout. What the commands then do is tried by
tests/integration; the rest of the Python by test_store_page.py.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from ansible.cli.playbook import PlaybookCLI

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import argument_specs
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import spelling, variable_rules

ROOT = Path(__file__).resolve().parents[3]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md"), *ROOT.glob("roles/*/README.md")])
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
ROLES = sorted(path.name for path in (ROOT / "roles").iterdir())
KNOWN = {name: role for role in ROLES for name in argument_specs.options(role)}
RULES = {**variable_rules.RULES, **variable_rules.PRECONDITION_RULES}
# Of playbooks alone.
OF_PLAYBOOKS = (
    *spelling.OF_PLAYBOOKS,
    *("render_platform", "render_size_bytes", "render_device", "render_queue_depth"),
    *("esxi_state", "ingest_platform", "ingest_files"),
)
# Inline code, too.
COMMAND = re.compile(r"`((?:ansible-playbook|fleet/scripts/nightly) [^`]+)`")
FOLDER = "ansible_collections.ssdlab.fleet"


class Loader(yaml.SafeLoader):
    """YAML with Ansible's tags."""


for tag in ("!unsafe", "!vault"):
    Loader.add_constructor(tag, lambda loader, node: node.value)


def snippets(*languages):
    """(page, text) of each snippet in these languages."""
    for page in PAGES:
        for language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
            if language in languages:
                yield str(page.relative_to(ROOT)), text


def commands():
    """(page, words) of each command of ours."""
    found = [
        (page, line)
        for page, text in snippets("sh", "bash", "crontab")
        for line in text.replace("\\\n", " ").splitlines()
    ]
    found += [
        (str(page.relative_to(ROOT)), line) for page in PAGES for line in COMMAND.findall(page.read_text("utf-8"))
    ]
    for page, line in found:
        line = re.sub("<[^>]+>", "X", line)
        if "`" not in line and "…" not in line:
            for part in re.split(r" && | \|\| ", line):
                words = [word for word in shlex.split(part, comments=True) if not re.match(r"[A-Z_]+=", word)]
                if words and re.search(r"(^|/)(ansible-playbook|scripts/\S+|nightly)$", words[0]):
                    yield pytest.param(words, id=f"{page}: {' '.join(words)[:70]}")


@pytest.mark.parametrize("words", list(commands()))
def test_a_command_names_what_is_there(words):
    if "scripts/" in words[0]:
        assert (ROOT / words[0].partition("fleet/")[2]).is_file() or (ROOT / words[0]).is_file()
    if not words[0].endswith(("ansible-playbook", "nightly")):
        return
    # As ansible-playbook reads them; it ends the program for an unknown option.
    words = words[: words.index(">>")] if ">>" in words else words
    cli = PlaybookCLI(["ansible-playbook", *words[1:], *(["x.yml"] if "nightly" in words[0] else [])])
    cli.init_parser()
    options = cli.parser.parse_args(cli.args[1:])
    for book in () if "nightly" in words[0] else options.args:
        # A site's folder has the checkout as fleet/.
        book = book.removeprefix("fleet/")
        name = book.removeprefix("ssdlab.fleet.")
        assert (ROOT / book).is_file() or (ROOT / f"playbooks/{name}.yml").is_file() or book == "X", book
    for given in options.extra_vars:
        for name, value in variables(given).items():
            assert name in (*KNOWN, *OF_PLAYBOOKS), name
            assert problems(name, value) == []


def variables(given):
    """{name: value} of one -e."""
    if given.startswith("@"):
        return {}
    if given.startswith("{"):
        return json.loads(given)
    return dict(word.partition("=")[::2] for word in shlex.split(given))


def problems(name, value):
    """What preflight would say of a value; of one with a template, nothing."""
    if name not in KNOWN or "{{" in str(value) or re.fullmatch("[A-Z]+", str(value)):
        return []
    role = KNOWN[name]
    found = argument_specs.problems(role, {name: value}, RULES)
    if name == "ssd_plan" and isinstance(value, list) and all(isinstance(each, str) for each in value):
        shipped = {path.stem for path in (ROOT / "roles/workload/files/tests").glob("*.yml")}
        # A test of the reader's own.
        found += [each for each in value if each not in shipped | {"db", "mine"}]
    return found


def settings(value):
    """(name, value) of each variable of ours that a document sets."""
    if isinstance(value, list):
        for each in value:
            yield from settings(each)
    elif isinstance(value, dict):
        for key, each in value.items():
            if key in KNOWN:
                yield key, each
            else:
                yield from settings(each)


@pytest.mark.parametrize("page", sorted({page for page, _text in snippets("yaml", "yml")}))
def test_values_of_variables_are_right(page):
    given = [text for at, text in snippets("yaml", "yml") if at == page]
    found = [pair for text in given for pair in settings(yaml.load(text, Loader))]
    assert [each for name, value in found for each in problems(name, value)] == []


def test_every_variable_of_the_reference_has_an_example_that_preflight_takes():
    """docs/variables.md; what test_values_of_variables_are_right can't see is an example that is nothing."""
    sys.path.insert(0, str(ROOT / "scripts"))
    import variables_page

    told = {}
    for name, role in KNOWN.items():
        told[name] = variables_page.example(name, argument_specs.options(role)[name])
    assert [name for name, value in told.items() if value in ("", [], {}, None)] == []
    assert set(yaml.safe_load(variables_page.EXAMPLES.read_text("utf-8"))) <= set(KNOWN)


@pytest.mark.parametrize("page, text", [pytest.param(*each, id=each[0]) for each in snippets("python")])
def test_python_finds_what_it_imports_in_a_checkout(page, text):
    imports = [
        node
        for node in ast.parse(text).body
        if not isinstance(node, (ast.Expr, ast.Assign)) or "sys." in ast.unparse(node)
    ]
    code = "\n".join(map(ast.unparse, imports))
    done = subprocess.run([sys.executable, "-I", "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and FOLDER in code, done.stderr
