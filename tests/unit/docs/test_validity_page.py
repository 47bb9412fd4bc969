# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/validity.md names tests that there are, and every cause that the code knows, each with a test in which it fires
and one in which it is silent.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import drive_environment

REPO = Path(__file__).parents[3]
PAGE = (REPO / "docs" / "validity.md").read_text(encoding="utf-8")
TEST_ID = re.compile(r"`(\w+)/(\w+)::(test_\w+)`")
LISTED = re.compile(r"^- (\d+): (.*?)\.$", re.MULTILINE | re.DOTALL)
SECTIONS = ("The drive and its world", "The result and its job", "Steadiness", "The journal", "Criteria")


def files(folder, stem):
    """The files that a short name such as measure/world may mean."""
    if folder in ("integration", "vm"):
        return list((REPO / "tests" / folder).glob(f"test_{stem}.py"))
    return [path for path in (REPO / "tests/unit").rglob(f"test_{stem}.py") if path.parent.name == folder]


def functions(path):
    """The test functions of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def part(section):
    return PAGE.partition(f"## {section}\n")[2].partition("\n## ")[0]


def rows(section):
    """The cells of the table's rows in a section of the page."""
    lines = [line for line in part(section).splitlines() if line.startswith("| ") and not line.startswith("| # ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def listed_tests(section):
    """{number of a row: (where it fires, where it is silent)}, as texts; a row "as 3" has those of row 3."""
    found = {}
    for number, said in LISTED.findall(part(section)):
        said = " ".join(said.split())
        same = re.fullmatch(r"as (\d+)", said)
        fires, _silent, silent = said.partition("; silent: ")
        found[number] = found[same.group(1)] if same else (fires.partition("fires: ")[2], silent)
    return found


def test_every_test_that_the_page_names_exists():
    named = set(TEST_ID.findall(PAGE))
    known = {(folder, stem): files(folder, stem) for folder, stem, _name in named}
    assert len(named) >= 80 and {key: found for key, found in known.items() if len(found) != 1} == {}
    assert sorted(item for item in named if item[2] not in functions(known[item[:2]][0])) == []


@pytest.mark.parametrize("section", SECTIONS)
def test_every_row_has_a_test_in_which_it_fires_and_one_in_which_it_is_silent(section):
    listed, lines = listed_tests(section), rows(section)
    assert [row[0] for row in lines] == [str(number) for number in range(1, len(lines) + 1)] == list(listed)
    assert [row for row in lines if len(row) != 4] == []
    lacking = {
        number: (fires, silent)
        for number, (fires, silent) in listed.items()
        if not TEST_ID.search(fires) or not (TEST_ID.search(silent) or silent.startswith("the same"))
    }
    assert lacking == {}


def test_the_page_lists_every_cause_that_a_record_may_name():
    causes = {
        *drive_environment.MISSING,
        "health",
        "direct_io",
        "write_cache",
        "vendor_settings",
        "data",
        "hidden_capacity",
    }
    listed = {name for row in rows("The drive and its world") for name in re.findall(r"^`(\w+)`", row[1])}
    assert listed == causes
