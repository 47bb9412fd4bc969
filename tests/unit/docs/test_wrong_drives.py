# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""tests/integration/wrong_drive_cases.md: a test stages each of its cases, and their codes are the guard's."""

from __future__ import annotations

import re
from pathlib import Path

from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import refusals

REPO = Path(__file__).parents[3]
PAGE = (REPO / "tests" / "integration" / "wrong_drive_cases.md").read_text(encoding="utf-8")


def rows(heading):
    """Return the cells of the table below a heading."""
    text = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    _head, _rule, *lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def code(cell):
    """Return what stands between the first backquotes."""
    return re.match(r"`([^`]+)`", cell).group(1)


def test_a_test_carries_the_number_of_each_case():
    files = [path for folder in ("integration", "vm") for path in (REPO / "tests" / folder).glob("test_*.py")]
    marked = {
        int(number)
        for path in files
        for number in re.findall(r"^@pytest\.mark\.case\((\d+)\)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert marked == {int(row[0]) for row in rows("The cases")}


def test_every_code_of_a_case_is_the_guards_or_says_whose_it_is():
    other = [row[2] for row in rows("The cases") if code(row[2]) not in refusals.REFUSALS]
    assert [cell for cell in other if not re.fullmatch(r"`[a-z_]+`(: .+| \([a-z_/]+\.py\))", cell)] == []
