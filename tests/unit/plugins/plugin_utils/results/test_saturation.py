# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.results import saturation

RULE = {
    "min_capacity_multiple": 2,
    "confirm_windows": 1,
    "slope_limit": 0.1,
    "tracked": [{"cell": "c", "metric": "write_iops"}],
}
SETTLED = {**RULE, "min_capacity_multiple": 0, "confirm_windows": 0, "settle_s": 3000}
SHOWN = {"user_capacity_bytes": 1000, "written_before_bytes": 2000, "averages": [[352.0], [348.0]]}


@pytest.mark.parametrize(
    "change, rule, size_bytes, says",
    [
        ({}, RULE, 1000, ""),
        (None, {"min_capacity_multiple": 0, "confirm_windows": 0}, 1000, ""),
        (None, None, 1000, ""),
        (None, RULE, 1000, "does not report how much was written"),
        (None, SETTLED, 1000, "how long that took"),
        ({"elapsed_before_s": 2999.9}, SETTLED, 1000, "after 2999.9 s of rounds, but settle_s requires 3000 s"),
        ({}, SETTLED, 1000, "after 0 s of rounds"),
        ({"elapsed_before_s": 3000.0}, SETTLED, 1000, ""),
        ({"written_before_bytes": 1999}, RULE, 1000, "after 2.00 x the user capacity"),
        ({"written_before_bytes": 770}, RULE, 1000, "after 0.77 x the user capacity"),
        # A host that makes its drive smaller than the drive's own record is not believed.
        ({"user_capacity_bytes": 10}, RULE, 2000, "after 1.00 x the user capacity"),
        ({"averages": [[352.0]]}, RULE, 1000, "2 windows must agree, but the record has 1"),
        ({"averages": [[352.0], []]}, RULE, 1000, "must agree"),
        ({"averages": [[400.0], [350.0]]}, RULE, 1000, "have the averages 400.0 and 350.0"),
        ({"averages": [[None], [350.0]]}, RULE, 1000, "have the averages None"),
    ],
)
def test_a_steady_record_counts_only_after_the_fresh_state(change, rule, size_bytes, says):
    record = {} if change is None else {"saturation": {**SHOWN, **change}}
    found = saturation.problem(record, rule, size_bytes)
    assert (says in found and bool(found)) if says else found == "", found


def test_the_window_that_counts_is_the_last_that_agrees():
    shown = {**SHOWN, "averages": [[352.0], [348.0]]}
    good, other = ({"saturation": shown, "steady_state": [{"average": value}]} for value in (348.0, 500.0))
    assert saturation.problem(good, RULE, 1000) == ""
    assert "the record's window has [500.0]" in saturation.problem(other, RULE, 1000)
