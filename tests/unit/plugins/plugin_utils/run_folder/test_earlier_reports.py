# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reports of earlier runs, as far as they can be read."""

from __future__ import annotations

import json

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import write_report
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import earlier_reports
from ansible_collections.ssdlab.fleet.tests.fixtures.report import fleets


def night(folder, number, report=True):
    run, records = fleets.fleet(hosts=2, run_id=f"n{number}")
    made = fleets.write(folder, {**run, "started": f"2026-11-2{number}T01:00:00Z"}, records)
    if report:
        write_report.make(str(folder), made.name)
    return made


def test_a_night_without_a_report_is_not_one_of_the_last_n(tmp_path):
    for number, report in enumerate((True, True, False)):
        night(tmp_path, number, report)
    run = json.loads((night(tmp_path, 3, report=False) / "run.json").read_text())
    assert [summary["run"]["id"] for summary in earlier_reports.earlier(str(tmp_path), run, 1)] == ["n1"]


DRIVE = {"host": "h", "drive": "d", "verdict": "pass"}


@pytest.mark.parametrize(
    "damage",
    [
        {"run": {}},
        {"drives": [1]},
        {"drives": [DRIVE]},
        {"drives": [{**DRIVE, "tests": [{"test": "iops"}]}]},
        {"drives": [{**DRIVE, "tests": [{"test": "iops", "verdict": "pass", "metrics": None}]}]},
        {"fleet": 5},
        {"fleet": {"outliers": [{"host": "h"}]}},
    ],
)
def test_a_damaged_report_of_yesterday_costs_tonights_nothing(tmp_path, damage):
    path = night(tmp_path, 0) / "report" / "summary.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **damage}))
    tonight = night(tmp_path, 1)
    assert json.loads((tonight / "report" / "summary.json").read_text())["fleet"]["since"] is None
