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

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import world

REPO = Path(__file__).parents[3]
PAGE = (REPO / "docs" / "validity.md").read_text(encoding="utf-8")
TEST_ID = re.compile(r"(tests/[\w/]+\.py)::(\w+)")


def functions(path):
    """The test functions of a file."""
    file = REPO / path
    tree = ast.parse(file.read_text(encoding="utf-8")) if file.is_file() else ast.Module([], [])
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def rows(section):
    """The cells of the table's rows in a section of the page."""
    text = PAGE.partition(f"## {section}\n")[2].partition("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| cause ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_every_test_that_the_page_names_exists():
    named = set(TEST_ID.findall(PAGE))
    known = {path: functions(path) for path, _name in named}
    assert named and sorted("{}::{}".format(*item) for item in named if item[1] not in known[item[0]]) == []


def test_every_cause_has_a_test_in_which_it_fires_and_one_in_which_it_is_silent():
    found = [
        row for section in ("The drive and its world", "The result and its job", "Steadiness") for row in rows(section)
    ]
    assert len(found) > 20
    assert [row[0] for row in found if len(row) != 5 or not TEST_ID.search(row[3]) or not TEST_ID.search(row[4])] == []


def test_the_page_lists_every_cause_that_a_record_may_name():
    causes = {*world.MISSING, "health", "direct_io", "write_cache", "vendor_settings", "data", "hidden_capacity"}
    listed = {name for row in rows("The drive and its world") for name in re.findall(r"^`(\w+)`", row[0])}
    assert listed == causes
