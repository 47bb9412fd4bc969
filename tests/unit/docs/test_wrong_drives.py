# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/wrong-drives.md: every case, every code of the guard, and tests that exist, carry the case and name the code."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import refusals

REPO = Path(__file__).parents[3]
CASES = range(1, 105)
CHAPTER_NAMES = (
    "identity", "in_use", "shared", "state", "process", "content", "users", "named", "decided", "loop", "partitions",
    "played",
)  # fmt: skip
CHAPTERS = {name: f"tests/integration/test_wrong_drive_{name}.py" for name in CHAPTER_NAMES}
CHAPTERS["own"] = "tests/integration/test_own_data.py"
CHAPTERS["kept"] = "tests/integration/test_own_data_kept.py"
CHAPTERS["left"] = "tests/integration/test_filesystems_left.py"
CHAPTERS["vm"] = "tests/vm/test_wrong_drive_guest.py"


def rows(heading, columns):
    """The cells of the table below a heading, a list of `columns` texts for each row."""
    text = (
        (REPO / "docs" / "wrong-drives.md")
        .read_text(encoding="utf-8")
        .partition(f"\n## {heading}\n")[2]
        .partition("\n## ")[0]
    )
    _head, _rule, *lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    assert cells and all(len(row) == columns for row in cells), [row for row in cells if len(row) != columns]
    return cells


def plain(cell):
    """The first thing between backquotes."""
    return re.match(r"`([^`]+)`", cell).group(1)


def functions_of(path):
    """The test functions of a file: {name: (numbers of its case markers, all texts in it and in the module's tables
    that it uses)}.
    """
    tree = ast.parse((REPO / path).read_text(encoding="utf-8"))
    tables = {
        target.id: _texts(node)
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            cases = {
                call.args[0].value
                for call in node.decorator_list
                if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "case"
            }
            names = {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
            found[node.name] = (cases, " ".join([_texts(node), *(tables.get(name, "") for name in names)]))
    return found


def _texts(node):
    """All text constants below a node."""
    return " ".join(
        constant.value
        for constant in ast.walk(node)
        if isinstance(constant, ast.Constant) and isinstance(constant.value, str)
    )


def names(code, text):
    """Whether a code stands in a text as a word."""
    return re.search(rf"\b{code}\b", text) is not None


TABLE = rows("The cases", 6)
TESTS = {chapter: functions_of(path) for chapter, path in CHAPTERS.items() if (REPO / path).exists()}


def test_every_case_is_in_the_table():
    assert {int(row[0]) for row in TABLE} == set(CASES)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row[0]}-{row[1]}")
def test_each_row_has_a_test_with_its_case_and_its_code(row):
    case, _what, code, _staged, chapter, test = row
    cases, text = TESTS[chapter][plain(test)]
    assert int(case) in cases
    if plain(code) in refusals.REFUSALS:
        assert names(plain(code), text), f"the test does not name {code}"
    else:
        assert re.fullmatch(r"`[a-z_]+`(: .+| \([a-z_/]+\.py\))", code), (
            "no code of the guard, and it does not say whose it is"
        )


def test_every_test_that_carries_a_case_is_in_the_table():
    listed = {(row[4], plain(row[5]), int(row[0])) for row in TABLE}
    marked = {
        (chapter, name, case)
        for chapter, tests in TESTS.items()
        for name, (cases, _text) in tests.items()
        for case in cases
    }
    assert marked == listed


def test_every_code_is_listed_with_what_lifts_it():
    given = {plain(row[0]): row[1].strip("`") for row in rows("What lifts a code", 3)}
    assert given == {code: text.overridable or "nothing" for code, text in refusals.REFUSALS.items()}


@pytest.mark.parametrize("row", rows("What lifts a code", 3), ids=lambda row: plain(row[0]))
def test_every_code_is_seen_to_fire(row):
    code, where = plain(row[0]), row[2]
    cases = {int(number) for number in re.findall(r"\d+", where)} if where.startswith("case") else set()
    assert cases == {int(line[0]) for line in TABLE if plain(line[2]) == code}
    if not cases:
        path, test = re.findall(r"`([^`]+)`", where)
        assert names(code, functions_of(path)[test][1])
