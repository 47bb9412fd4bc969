# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a job that goes on with a run may build on, by the journal alone."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.job import resume_state
from ansible_collections.ssdlab.fleet.tests.fixtures import planned, run_results

FILLS = planned.spec(name="fills", purge={"method": "auto"}, precondition={"passes": 2})
PURGES = planned.spec(name="purges", purge={"method": "auto"})
BUILDS = planned.spec(name="builds")
AGAIN = planned.spec(name="again", precondition={"passes": 1})
VERIFIES = planned.spec(
    name="verifies", purge={"method": "auto"}, precondition={"passes": 1}, integrity={"passes": 1}, cells=[{}]
)
PLAN = [FILLS, PURGES, BUILDS, AGAIN, VERIFIES]


def begun(test, *events, ends=True, attempt=1, validity=(), outcome="complete", **result):
    """(events, results) of one attempt."""
    common = {"test": test, "attempt": attempt}
    history = [{"event": "test_started", **common}, *({**event, **common} for event in events)]
    return history, [run_results.attempt(outcome=outcome, validity=list(validity), **result, **common)] * ends


def unprepared(*attempts):
    events = [event for history, _results in attempts for event in history]
    return resume_state.unprepared(PLAN, events, [result for _history, results in attempts for result in results])


def purge(verified=True, method="nvme_format_crypto"):
    return {"event": "purge", "verified": verified, "method": method}


def fill(written=100):
    return {"event": "precondition", "bytes_written": 100, "kernel_bytes_written": written}


@pytest.mark.parametrize(
    ("method", "test", "may"),
    [
        ("deallocate", planned.spec(cells=[{"read_pct": 0}]), True),
        ("deallocate", planned.spec(cells=[{"read_pct": 100}]), False),
        ("deallocate", planned.spec(integrity={"passes": 1}), True),
        ("deallocate", planned.spec(), False),
        ("overwrite", planned.spec(cells=[{}]), False),
        ("nvme_format_crypto", planned.spec(cells=[{}]), False),
        ("of a later version", planned.spec(cells=[{}]), False),
    ],
)
def test_only_a_hint_may_leave_old_data_and_only_where_the_test_writes(method, test, may):
    assert resume_state.may_keep_data(test, method) == may


def test_old_data_after_a_hint_is_no_reason_against_what_comes_after():
    assert unprepared(begun("verifies", purge(False, "deallocate"), fill())) == ""
    assert unprepared(begun("purges", purge(False, "deallocate"))) == resume_state.failed("purges")


def test_what_somebody_else_discarded_is_not_built_on():
    lost = {"cause": "discarded", "level": "disturbs", "rounds": [[3, 3]], "count": 1}
    lost["first"] = "round 3, c: another process discarded 8.0 MiB"
    first = begun("fills", purge(), fill(), validity=[lost])
    assert "in test fills before it round 3, c: another process discarded" in unprepared(first)
    assert unprepared(first, begun("again", fill())) == ""


def test_what_an_error_ended_is_not_built_on():
    ended = begun("fills", purge(), fill(), outcome="error")
    assert unprepared(ended) == resume_state.broken_off("fills")
    assert unprepared(ended, begun("builds", outcome="invalid")) == resume_state.broken_off("fills")
    assert unprepared(ended, begun("again", fill())) == ""


WRONG = {
    "passes": 1,
    "block_size_bytes": 4096,
    "bytes_written": 100,
    "bytes_read": 100,
    "write_s": 1.0,
    "read_s": 1.0,
    "other_write_bytes": 0,
    "wrong_blocks": {"stale": 1},
    "complete": True,
    "first": [],
}


def test_a_fill_that_the_drive_did_not_keep_is_not_built_on():
    wrong = begun("verifies", purge(), fill(), integrity=WRONG)
    right = begun("verifies", purge(), fill(), integrity={**WRONG, "wrong_blocks": {}})
    assert unprepared(wrong) == resume_state.not_kept("verifies") and unprepared(right) == ""
    assert unprepared(wrong, begun("again", fill())) == ""


OF_HOST = ("error", ["a fault of the host, not of the drive, as the kernel's log says: x"])


@pytest.mark.parametrize(
    ("ends", "goes_on"),
    [
        ([OF_HOST], True),
        ([("error", ["fio failed"])], False),
        ([OF_HOST, ("error", ["fio failed"])], False),
        ([OF_HOST, ("steady", []), OF_HOST], True),
        ([OF_HOST, OF_HOST, ("steady", []), OF_HOST], False),
        ([], False),
    ],
)
def test_after_a_fault_of_the_host_the_next_test_is_done_thrice_at_most(ends, goes_on):
    results = [run_results.attempt(test="iops", outcome=outcome, reasons=reasons) for outcome, reasons in ends]
    assert resume_state.may_go_on(results) == goes_on


@pytest.mark.parametrize(
    ("attempts", "after"),
    [
        ([], ""),
        ([begun("fills", purge(), fill())], ""),
        ([begun("fills", purge(), fill(None))], ""),  # the kernel does not count: unknown, and said elsewhere
        ([begun("fills", purge(), fill(50))], "fills"),
        ([begun("fills", purge())], "fills"),
        ([begun("fills", purge(False))], "fills"),
        ([begun("purges")], "purges"),
        ([begun("purges", purge())], ""),
        # Another attempt, another test that fills.
        ([begun("fills", purge(), ends=False), begun("fills", purge(), fill(), attempt=2)], ""),
        ([begun("fills", purge(), fill(50)), begun("builds")], "fills"),
        ([begun("fills", purge(), fill(50)), begun("again", fill())], ""),
        ([begun("fills", purge(), fill()), begun("builds")], ""),
    ],
)
def test_what_a_test_without_a_purge_builds_on(attempts, after):
    assert unprepared(*attempts) == (resume_state.failed(after) if after else "")


SIZE, RATE = 1000, 10.0
TEST = {"cells": [{"runtime_s": 50, "ramp_s": 10}], "rounds": {"max": 3}}
BY_BYTES = {"capacity_multiple": 2}


@pytest.mark.parametrize(
    ("changes", "rate", "seconds"),
    [
        ({}, None, 180),
        ({"precondition": {"passes": 2}, "active_range_pct": 50}, RATE, 180 + 100),
        ({"precondition": {"passes": 2}}, None, None),
        ({"purge": {"method": "overwrite"}}, RATE, 180 + 100),
        ({"rounds": BY_BYTES}, RATE, 200 + 60),
        ({"rounds": BY_BYTES}, None, None),
        ({"rounds": {"max": 3, "least_capacity_multiple": 2}}, RATE, 200 + 60 + 180),
        ({"rounds": {"max": 3, "least_capacity_multiple": 2}}, None, None),
        ({"cells": []}, None, 0),
        # Written and read, twice.
        ({"cells": [], "integrity": {"passes": 2}, "active_range_pct": 50}, RATE, 200),
        ({"cells": [], "integrity": {"passes": 2, "pause_s": 7}, "active_range_pct": 50}, RATE, 214),
        # Three passes of 100 s with 50 s between two of them, as the third begins within 310 s.
        ({"cells": [], "integrity": {"passes": 2, "duration_s": 310, "heat_s": 50}, "active_range_pct": 50}, RATE, 400),
        ({"cells": [], "integrity": {"passes": 2}}, None, None),
        ({"precondition": {"passes": 1}, "integrity": {"passes": 1}}, RATE, 180 + 100 + 200),
        ({"precondition": {"passes": 2}, "active_range_max_bytes": 200}, RATE, 180 + 40),
        ({"cells": [], "self_test": "short"}, None, 120),
        ({"cells": [], "self_test": "extended"}, RATE, 100),
    ],
    ids=[
        "rounds",
        "a fill",
        "no rate yet",
        "an overwriting purge",
        "bytes",
        "bytes, no rate",
        "least",
        "least, no rate",
        "no cells",
        "read back",
        "read back after pauses",
        "burn-in",
        "read back, no rate",
        "a fill that is read back",
        "a slice",
        "a short self-test",
        "an extended one",
    ],
)
def test_how_long_a_test_takes_at_most(changes, rate, seconds):
    assert resume_state.longest_test_s(planned.spec(**{**TEST, **changes}), SIZE, rate) == seconds


def test_the_tests_of_a_drive_have_a_bound_where_each_has_one():
    test, by_bytes = planned.spec(**TEST), planned.spec(**{**TEST, "rounds": BY_BYTES})
    assert resume_state.longest_tests_s([test, test], SIZE, None) == 360
    assert resume_state.longest_tests_s([test, by_bytes], SIZE, None) is None
    assert resume_state.longest_tests_s([], SIZE, None) == 0
