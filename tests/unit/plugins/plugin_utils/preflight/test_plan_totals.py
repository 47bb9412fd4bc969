# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import datetime

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight.plan_totals import (
    Total,
    Worn,
    fleet_lines,
    host_lines,
)

TB = 10**12
NOW = datetime.datetime(2026, 11, 28, 20, 0)


@pytest.mark.parametrize(
    ("worn", "told"),
    [
        ([], ""),
        ([Worn(0, 0, None)] * 2, ""),
        ([Worn(TB, 2 * TB, None)] * 2, "; writes at most 4 TB"),
        # A share of some would pass for that of all.
        ([Worn(TB, 2 * TB, 100 * TB), Worn(TB, 2 * TB, None)], "; writes at most 4 TB"),
        ([Worn(TB, 2 * TB, 100 * TB), Worn(TB, 2 * TB, 50 * TB)], "; writes at most 4 TB, 4 % of a drive's rated life"),
    ],
)
def test_what_is_written_is_told_in_all_and_the_highest_share_of_a_life(worn, told):
    assert host_lines(Total(2, 60.0, 120.0, "1 min to 2 min", worn)) == [f"  all 2 drives: 1 min to 2 min{told}"]


def test_the_fleet_is_done_with_its_slowest_host():
    hosts = [Total(1, 3600.0, 7200.0, "", [Worn(0, TB, None)]), Total(24, 60.0, 86400.0, "", [])]
    assert fleet_lines(hosts, NOW) == [
        "All 25 drives of 2 hosts: 1 h to 24 h, done by 2026-11-28 21:00 to 2026-11-29 20:00 UTC if it starts now; "
        "writes at most 1 TB"
    ]
    assert fleet_lines(hosts[:1], NOW) == [] == host_lines(hosts[0])
