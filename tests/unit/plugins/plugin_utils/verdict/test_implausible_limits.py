# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits that are far from what was measured: probably in another unit."""

from __future__ import annotations

import json

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import write_report
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.verdict import implausible_limits, judge
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.watch import final_table
from ansible_collections.ssdlab.fleet.tests.fixtures.report import fleets

FAR = {"metric": "write_iops", "min": 500}
TOLD = (
    "criterion write_iops min 500: 500 IOPS is 200 times less than what was measured, 100,000 IOPS (median of 24 "
    "figures); check its unit"
)


@pytest.mark.parametrize(
    ("criterion", "told"),
    [
        (FAR, TOLD),
        ({"metric": "write_iops", "min": 1000}, None),
        ({"metric": "write_iops", "min": 90_000}, None),
        ({"metric": "write_iops", "min": 11e6}, "11,000,000 IOPS is 110 times more than what was measured"),
        ({"metric": "write_mean_latency_us", "max": 320_000}, "320,000 µs is 1,000 times more than what was measured"),
        ({"metric": "write_mean_latency_us", "max": 2}, "2 µs is 160 times less than what was measured"),
        # A share has no unit.
        ({"metric": "write_iops", "min_of_median": 0.001}, None),
        ({"metric": "write_iops", "min_of_median": 0.9, "min": 500}, "500 IOPS is 200 times less"),
        ({"metric": "write_iops", "min": 500, "model": "OTHER*"}, None),
        ({"metric": "none", "min": 500}, None),
        ({"metric": "write_iops", "least": 500}, None),
        ("write_iops", None),
    ],
)
def test_a_limit_that_is_over_a_hundred_times_away(criterion, told):
    run, records = fleets.fleet(noise=0, criteria=[criterion])
    found = implausible_limits.far_off(run, judge.judge(run, records))
    assert len(found) == (told is not None) and all(told in text for text in found)


def test_figures_of_zero_and_an_empty_run_say_nothing():
    run, records = fleets.fleet(noise=0, criteria=[FAR])
    for record in records:
        if record["kind"] == "test":
            record["metrics"] = {"write_iops": 0}
    assert implausible_limits.far_off(run, judge.judge(run, records)) == []
    assert implausible_limits.far_off({}, {"drives": []}) == []


@pytest.mark.parametrize("value", [5e-324, 1e-300, 1e300, 1.7e308])
@pytest.mark.parametrize("limit", [1e-20, 500, 1e20])
def test_figures_that_no_drive_has_give_a_short_sentence(value, limit):
    run, records = fleets.fleet(noise=0, criteria=[{"metric": "write_iops", "min": limit}])
    for record in records:
        if record["kind"] == "test":
            record["metrics"] = {"write_iops": value}
    (told,) = implausible_limits.far_off(run, judge.judge(run, records))
    assert "over 1,000,000 times" in told and len(told) < 200


def test_the_page_the_summary_and_the_callback_say_it(tmp_path):
    run, records = fleets.fleet(noise=0, criteria=[FAR], run_id="20261122T010000Z-qualify")
    folder = fleets.write(tmp_path, run, records)
    write_report.make(str(tmp_path), folder.name)
    summary = json.loads((folder / "report" / "summary.json").read_text())
    assert summary["warnings"] == [TOLD] and summary["verdicts"]["pass"] == 24
    assert TOLD[1:] in (folder / "report" / "index.html").read_text()
    assert f"warning: {TOLD}" in final_table.lines(run, records, summary)
