# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/validity.md lists every cause that the code knows."""

from __future__ import annotations

import re
from pathlib import Path

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import drive_environment

PAGE = (Path(__file__).parents[3] / "docs" / "validity.md").read_text(encoding="utf-8")


def rows(section):
    """The cells of the table's rows in a section of the page."""
    lines = PAGE.partition(f"## {section}\n")[2].partition("\n## ")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if re.match(r"\| \d", line)]


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
