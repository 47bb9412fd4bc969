# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The packages of module_utils and plugin_utils import as docs/internals.md says: downward only, without circles."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[3]
PAGE = (REPO / "docs" / "internals.md").read_text(encoding="utf-8")
KINDS = ("module_utils", "plugin_utils")
ROW = re.compile(r"^\| (\d) \| (\w+) \| .* \| ([\w, ]*) ?\|$", re.MULTILINE)


def told(kind):
    """{package: (floor, packages that it knows)} of the page's table."""
    section = (
        PAGE.partition("## Python: packages and their floors")[2].partition(f"`{kind}` runs on")[2].partition("\n\n")[0]
    )
    return {name: (int(floor), set(re.findall(r"\w+", known))) for floor, name, known in ROW.findall(section)}


def imported(path, kind):
    """The packages of its own kind that a file imports from, its own included."""
    own = path.relative_to(REPO / "plugins" / kind).parts[0]
    absolute = f"ansible_collections.ssdlab.fleet.plugins.{kind}."
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level == 2:
                found.update([module.split(".")[0]] if module else [alias.name for alias in node.names])
            elif node.level == 1:
                found.add(own)
            elif module.startswith(absolute):
                found.add(module[len(absolute) :].split(".")[0])
    return found


def packages(kind):
    return {
        path.name: sorted(path.glob("*.py"))
        for path in (REPO / "plugins" / kind).iterdir()
        # A pull leaves the folder of a package that is gone, with its bytecode.
        if path.is_dir() and any(path.glob("*.py"))
    }


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_lists_every_package_and_what_it_imports(kind):
    found = {
        name: set().union(*(imported(path, kind) for path in files)) - {name} for name, files in packages(kind).items()
    }
    assert found == {name: known for name, (_floor, known) in told(kind).items()}


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_imports_upward_or_sideways(kind):
    floors = told(kind)
    upward = [(name, other) for name, (floor, known) in floors.items() for other in known if floors[other][0] >= floor]
    assert floors and upward == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_package_has_its_init(kind):
    """The zipapp needs it, and no module lies outside a package."""
    assert all((REPO / "plugins" / kind / name / "__init__.py").is_file() for name in packages(kind))
    assert not list((REPO / "plugins" / kind).glob("*.py"))
