# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a job that goes on with a run may build on, by the journal alone."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.job import standing

NONE = {"method": "none"}
FILLS = {"name": "fills", "purge": {"method": "auto"}, "precondition": {"passes": 2}}
PURGES = {"name": "purges", "purge": {"method": "auto"}, "precondition": None}
BUILDS = {"name": "builds", "purge": NONE, "precondition": None}
AGAIN = {"name": "again", "purge": NONE, "precondition": {"passes": 1}}
PLAN = [FILLS, PURGES, BUILDS, AGAIN]


def begun(test, *events, outcome="complete", attempt=1):
    common = {"test": test, "attempt": attempt}
    return [{"event": "test_started", **common}, *({**event, **common} for event in events)] + (
        [{"event": "test_finished", "outcome": outcome, "reasons": [], **common}] if outcome else []
    )


def purge(verified=True):
    return {"event": "purge", "verified": verified}


def fill(written=100):
    return {"event": "precondition", "bytes_written": 100, "kernel_bytes_written": written}


def test_what_somebody_else_discarded_is_not_built_on():
    history = begun("fills", purge(), fill(), outcome="invalid")
    history[-1]["validity"] = [
        {"cause": "discarded", "level": "spoils", "first": "round 3, c: another process discarded 8.0 MiB"}
    ]
    assert "in test fills before it round 3, c: another process discarded" in standing.unprepared(PLAN, history)
    assert standing.unprepared(PLAN, history + begun("again", fill())) == ""


@pytest.mark.parametrize(
    ("history", "after"),
    [
        ([], ""),
        (begun("fills", purge(), fill()), ""),
        (begun("fills", purge(), fill(None)), ""),  # the kernel does not count: unknown, and said elsewhere
        (begun("fills", purge(), fill(50), outcome="invalid"), "fills"),
        (begun("fills", purge(), outcome="error"), "fills"),
        (begun("fills", purge(False), outcome="error"), "fills"),
        (begun("purges", outcome="error"), "purges"),
        (begun("purges", purge()), ""),
        # Another attempt, another test that fills.
        (begun("fills", purge(), outcome=None) + begun("fills", purge(), fill(), attempt=2), ""),
        (begun("fills", purge(), fill(50), outcome="invalid") + begun("builds", outcome="invalid"), "fills"),
        (begun("fills", purge(), fill(50), outcome="invalid") + begun("again", fill()), ""),
        (begun("fills", purge(), fill()) + begun("builds", outcome="error"), ""),
    ],
)
def test_what_a_test_without_a_purge_builds_on(history, after):
    said = standing.unprepared(PLAN, history)
    assert said == (standing.failed(after) if after else "")
