# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drive that is faster than assumed exceeds its wear budget, and its report says so."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.verdict import judge, wear_budget

TB = 10**12
FILLED = {"written_bytes": TB, "precondition": {"bytes_written": 2 * TB}}


@pytest.mark.parametrize(
    ("records", "written"),
    [
        ([FILLED], 3 * TB),
        ([FILLED, {"precondition": None, "purge": None, "written_bytes": None}], 3 * TB),
        ([{**FILLED, "purge": {"method": "overwrite"}}], 4 * TB),
        ([{**FILLED, "purge": {"method": "format"}}], 3 * TB),
        ([{**FILLED, "array": {"members": [{}, {}]}}], 1.5 * TB),
        ([{**FILLED, "again": {"run_id": "r-again", "first": FILLED}}], 6 * TB),
        ([{**FILLED, "again": {"run_id": "r-again", "problem": "none"}}], 3 * TB),
    ],
)
def test_what_a_run_wrote_to_a_drive_is_held_to_its_budget(records, written):
    assert sum(wear_budget.written_bytes(record, TB) for record in records) == written
    assert wear_budget.remark(int(written), records, TB) == "" == wear_budget.remark(None, records, TB)
    assert wear_budget.remark(int(written) - 1, records, TB)


@pytest.mark.parametrize(
    ("budget", "told"), [({}, False), ({"wear_budget_bytes": 4 * TB}, False), ({"wear_budget_bytes": TB}, True)]
)
def test_the_report_says_so_and_the_verdict_stays(budget, told):
    run = {"tests": {"t": {}}, "criteria": [], "asked": [{"host": "h", "drive": "d", **budget}]}
    drive = {"kind": "drive", "host": "h", "drive": "d", "outcome": "complete", "identity": {"size_bytes": TB}}
    record = {"kind": "test", "host": "h", "drive": "d", "test": "t", "outcome": "complete", "rounds": 1, **FILLED}
    (judged,) = judge.judge(run, [drive, record])["drives"]
    said = "the run wrote at least 3 TB to this drive, more than the 1 TB of ssd_wear_budget: if it is"
    assert judged["verdict"] == "pass"
    assert any(text.startswith(said) for text in judged["tests"][0]["remarks"]) is told
