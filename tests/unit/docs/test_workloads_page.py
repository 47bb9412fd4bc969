# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/workloads.md: each shipped test and plan has its row; a test that follows a source has a certainty."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import testfiles

PAGE = (Path(__file__).parents[3] / "docs" / "workloads.md").read_text(encoding="utf-8")


def rows(head):
    """The cells of each row of the table that begins so; a blank line ends it, as it does for whoever renders it."""
    table = PAGE[PAGE.index(f"| {head} |") :].partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table if line.startswith("|")]


@pytest.mark.parametrize(("head", "folder", "columns"), [("test", "tests", 3), ("plan", "plans", 4)])
def test_every_shipped_file_has_one_whole_row_and_no_other_has(head, folder, columns):
    found = rows(head)
    assert all(len(row) == columns and all(row) for row in found), [row for row in found if len(row) != columns]
    named = [name for row in found for name in re.findall(r"`([^`]+)`", row[0])]
    assert sorted(named) == sorted(path.stem for path in testfiles.SHIPPED_DIR.glob(f"{folder}/*.yml"))


def test_a_test_after_a_source_has_one_certainty_and_no_other_has():
    named = [name for row in rows("certainty") for name in re.findall(r"`([^`]+)`", row[1])]
    own = re.compile("this collection's own|our own|NVM Express Base Specification, Device Self-test")
    after_others = [row[0] for row in rows("test") if not own.match(row[2])]
    assert sorted(named) == sorted(re.findall(r"`([^`]+)`", " ".join(after_others)))


def test_a_plan_whose_time_is_stated_says_what_it_purges_and_fills():
    short = re.compile(r"[Aa]t most (?:ten|two|\d+) (?:minutes|hours) a drive")
    timed = {re.findall("`([^`]+)`", row[0])[0]: " ".join(row) for row in rows("plan") if short.search(row[1])}
    assert set(timed) == {"smoke", "incoming", "nightly"}
    for name, told in timed.items():
        tests = testfiles.load_plan(name)
        assert ("the purge before" in told) == any(test.purge.method != "none" for test in tests), name
        assert any(test.precondition for test in tests) and not re.search(
            r"nothing is[^;:.]* filled|fills nothing", told
        ), name
