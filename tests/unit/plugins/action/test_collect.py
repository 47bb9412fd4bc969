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


def test_a_report_that_cannot_be_trusted_fails_the_host():
    """Here and in the report; not the play, which has others."""
    record = collect._host_record(RUN, "h1", info("finished"), ["plan.json: it is too long"])
    assert record["state"] == "failed" and "cannot be trusted: plan.json: it is too long" in record["message"]
