# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host record that `collect` makes of a host's answer."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.action import collect

RUN = "20261121T130000Z-qualify"


def info(state, unfinished=(), message="", status=True):
    return {"state": state, "unfinished": list(unfinished), "status": {"message": message} if status else {}}


@pytest.mark.parametrize(
    "answer, state, says",
    [
        (info("finished"), "ok", ""),
        (info("stopped"), "ok", ""),
        (info("running", ["A1", "B2"]), "unfinished", "still works on A1, B2"),
        (info("running"), "unfinished", "has not restored"),
        (info("absent", status=False), "failed", "no run"),
        (info("dead"), "failed", "is gone"),
        (info("dead", status=False), "failed", "never started"),
        (info("damaged"), "failed", "is damaged"),
        (info("failed", message="no fio"), "failed", "no fio"),
    ],
)
def test_the_host_record_says_what_came_of_its_run(answer, state, says):
    record = collect._host_record(RUN, "h1", answer)
    assert (record["state"], record["host"], record["run_id"]) == (state, "h1", RUN)
    assert says in record["message"]


def test_a_calibration_that_cannot_be_true_is_left_out_and_told():
    run = {"asked": [{"host": "h1", "drive": "S0"}, {"host": "h2", "drive": "S1"}]}
    true = {"parallel_drives": 1, "kept_share": 0.98, "why": "there is no other drive", "trials": [], "drives": ["S0"]}
    assert collect._calibration({}, run, "h1") == (None, [])
    assert collect._calibration({"calibration": true}, run, "h1") == (true, [])
    told, (why,) = collect._calibration({"calibration": {**true, "drives": ["S1"]}}, run, "h1")
    assert told is None and "S1, which is not a drive of this run" in why
    assert (
        "cannot be trusted: how many drives ran" in collect._host_record(RUN, "h1", info("finished"), [why])["message"]
    )
