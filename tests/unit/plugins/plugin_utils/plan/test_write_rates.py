# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What drives are taken to write, against what data sheets say they do."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import write_rates
from ansible_collections.ssdlab.fleet.tests.fixtures.plans import known

GB = 1e9


def rates(transport, terabytes, link_mb_s=None, asked="auto"):
    identity = known(transport=transport, size_bytes=int(terabytes * 1e12))
    found = write_rates.of_drive(asked, identity, link_mb_s)
    return found.assumed / GB, found.most / GB


# Sequential writes in GB/s, as remembered of data sheets: Micron 5300 PRO, 7300 PRO and 7450 PRO, Solidigm D5-P5336,
# Kioxia CM7-R.
@pytest.mark.parametrize(
    ("transport", "terabytes", "link_mb_s", "sheet"),
    [
        ("sata", 0.24, 600, 0.31),
        ("sata", 0.96, 600, 0.52),
        ("sata", 7.68, 600, 0.52),
        ("nvme", 0.96, 3938.4, 1.3),
        ("nvme", 7.68, 3938.4, 1.9),
        ("nvme", 0.96, 7876.8, 1.4),
        ("nvme", 7.68, 7876.8, 5.6),
        ("nvme", 61.44, 7876.8, 3.0),
        ("nvme", 15.36, 15754, 6.75),
    ],
)
def test_a_drive_is_taken_to_write_no_more_than_its_sheet_says_and_not_far_less(transport, terabytes, link_mb_s, sheet):
    assumed, most = rates(transport, terabytes, link_mb_s)
    assert 0.5 * sheet <= assumed <= 1.06 * sheet and assumed <= most == link_mb_s / 1000


@pytest.mark.parametrize(
    ("transport", "assumed", "most"),
    [
        ("sata", 0.525, 0.6),
        ("sas", 1.05, 2.4),
        ("nvme", 1.5754, 15.754),
        ("pcie", 0.8, 4.0),
        ("loop", 0.5243, 0.5243),
        (None, 0.5243, 0.5243),
    ],
)
def test_of_an_unknown_link_time_is_by_the_slowest_and_wear_by_the_fastest_there_is(transport, assumed, most):
    assert rates(transport, 7.68) == pytest.approx((assumed, most), rel=1e-3)


@pytest.mark.parametrize("asked", [800, "800", 800.0])
def test_a_number_stands_for_both_whatever_the_link(asked):
    assert rates("nvme", 7.68, 7876.8, asked) == pytest.approx((0.8389, 0.8389), rel=1e-3)


def test_no_drive_is_taken_to_write_faster_than_its_link():
    for transport in write_rates.KINDS:
        for terabytes in (0.24, 0.96, 7.68, 61.44):
            for link_mb_s in (None, 150, 600, 1200, 3938.4, 15754):
                assumed, most = rates(transport, terabytes, link_mb_s)
                assert 0 < assumed <= most, (transport, terabytes, link_mb_s)
