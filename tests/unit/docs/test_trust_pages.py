# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/trust.md and docs/faults.md: every case has a test that exists, and the mutations are as many as they say."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

from ansible_collections.ssdlab.fleet.tests.faults.table import CASES
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.validation import (
    test_answers,
    test_entrances,
    test_extremes,
    test_fitting,
)

TESTS = Path(__file__).parents[2]
PAGES = {
    "trust": ("C1", "C2", "H3", "H4", "M5", "M6", "M7", "M8", "M9", "M10", "L"),
    # Falsified figures, F4, are in docs/validity.md.
    "faults": [f"F{number}" for number in range(1, 27) if number != 4],
}
WANTED_MUTATIONS = 3000
# Which count of the tests' own code a row of the table is.
COUNTS = {
    "answers of twelve modules": test_answers.MUTATIONS * len(test_answers.MODULES),
    "answers to preflight": test_entrances.TRIES["answers"],
    **{
        way: test_entrances.TRIES[key]
        for way, key in (
            ("reports of a run", "records"),
            ("lines", "lines"),
            ("journals", "journal"),
            ("plans", "plan"),
            ("statuses", "status"),
            ("whole outputs", "stream"),
            ("archives", "archive"),
        )
    },
    "extreme figures": test_extremes.TRIES,
    "odd journals": sum(n for way, n in test_fitting.TRIES.items() if way != "answers"),
    "odd answers": test_fitting.TRIES["answers"],
}


def rows(page, heading):
    """The cells of the table below a heading."""
    text = (
        (TESTS.parent / "docs" / (page + ".md"))
        .read_text(encoding="utf-8")
        .partition(f"\n## {heading}\n")[2]
        .partition("\n## ")[0]
    )
    _head, _rule, *lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@functools.lru_cache(maxsize=None)
def functions_of(path):
    return {
        node.name
        for node in ast.walk(ast.parse((TESTS / path).read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    }


TABLE = [(page, *row) for page in PAGES for row in rows(page, "The cases")]


@pytest.mark.parametrize("page", PAGES)
def test_every_case_is_in_its_table(page):
    assert set(PAGES[page]) == {row[1] for row in TABLE if row[0] == page}


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row[1]}-{row[2]}")
def test_each_row_has_a_test_that_exists_and_says_what_holds_now(row):
    _page, _case, what, test, now = row
    named = re.fullmatch(r"(bench )?`([^`]+)`", test)
    assert named and what and now, row
    if named.group(1):
        assert named.group(2) in CASES
    else:
        path, _colons, function = named.group(2).partition("::")
        assert function in functions_of(path)


def test_there_are_as_many_mutations_as_the_page_says():
    told = {row[0]: int(row[2]) for row in rows("trust", "What it is tested with")}
    total = told.pop("all")
    found = {row: next(count for way, count in COUNTS.items() if row.startswith(way)) for row in told}
    for way, count in [*found.items(), ("all", sum(COUNTS.values()))]:
        print(f"{count:>6} {way}")
    assert told == found and len(found) == len(COUNTS)
    assert total == sum(COUNTS.values()) >= WANTED_MUTATIONS


@pytest.mark.parametrize("row", rows("trust", "What it is tested with")[:-1], ids=lambda row: row[0])
def test_each_way_in_names_its_test(row):
    path, _colons, function = row[1].strip("`").partition("::")
    assert function in functions_of(path)
