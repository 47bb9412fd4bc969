# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/checks.md lists every check with the level that it has."""

from __future__ import annotations

import re
from pathlib import Path

from ansible_collections.ssdlab.fleet.plugins.module_utils.checks import table

PAGE = (Path(__file__).parents[3] / "docs" / "checks.md").read_text(encoding="utf-8")


def test_the_table_has_every_check_in_its_order_with_its_level():
    # A level may be followed by a remark: "warning; ok where …".
    listed = re.findall(r"^\| `(\w+)` \| (\w+)(?:; [^|]+)? \|", PAGE.split("Between the hosts")[0], re.MULTILINE)
    assert listed == [(check.check, check.level) for check in table.TABLE], (
        "the table of docs/checks.md differs from CHECKS"
    )


def test_the_page_names_every_code():
    assert [code for code in table.CODES if f"`{code}`" not in PAGE] == [], "these have no row in docs/checks.md"
