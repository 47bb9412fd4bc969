# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a power-cut test goes on, and what its cycles come to."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.job import power_cut, resume_state
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.power_cut_process import Checked
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.power_cut import (
    CutCounters,
    PowerCutArmed,
    PowerCutBlock,
    PowerCutDetails,
)
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import criteria

BEFORE = CutCounters(4, 10, 0, "16 GT/s x4")
AFTER = CutCounters(5, 11, 0, "16 GT/s x4")


def armed(**changes):
    stated = {
        "vwc": True,
        "write_cache": "on",
        "plp_claimed": False,
        "atomic_write_bytes": 4096,
        "atomic_boundary_bytes": None,
        "fua": "drive",
        "gets_flushes": True,
        "cycle": 1,
        "mode": "hard",
        "seed": 5,
        "boot_id": "a",
        "active_bytes": 1 << 30,
        "before": BEFORE,
    }
    return PowerCutArmed(**{**stated, **changes})


def details(counts=None, after=AFTER, is_found=True, **changes):
    counts = counts or {}
    first = [PowerCutBlock(4096, kind, "blank") for kind in counts]
    checked = Checked(counts, 900, 800, 10**18, 0, 0, 262144, False, [0] * 100, first)
    cycle = power_cut.cycle_record(armed(**changes), "t0", "t1", checked if is_found else None, after)
    cycle = type(cycle)(**{**vars(cycle), "cut": True})
    return PowerCutDetails("hard", 20, [cycle, cycle])


@pytest.mark.parametrize(
    ("events", "attempt"),
    [
        ([], 0),
        ([("test_started", 1)], 0),
        ([("test_started", 1), ("power_cut_armed", 1)], 1),
        ([("power_cut_armed", 1), ("power_cut_cycle", 1)], 1),
        ([("power_cut_armed", 1), ("test_finished", 1)], 0),
        ([("power_cut_armed", 1), ("test_finished", 1), ("power_cut_armed", 2), ("power_cut_cycle", 2)], 2),
    ],
)
def test_an_attempt_goes_on_from_its_first_arming_to_its_end(events, attempt):
    history = [{"event": name, "test": "power-cut", "attempt": number} for name, number in events]
    history.append({"event": "power_cut_armed", "test": "other", "attempt": 7})
    assert resume_state.under_way(history, "power-cut") == attempt


@pytest.mark.parametrize(
    ("found", "fault"),
    [
        (details(), None),
        (details({"lost_acknowledged": 3, "torn": 2}), None),
        (
            details({"lost_flushed": 3}),
            "6 blocks acknowledged and flushed, and lost (in 2 of 2 cuts, first at byte 4096",
        ),
        (
            details({"lost_flushed": 3}, plp_claimed=True),
            "it claims power-loss protection, and lost even what was flushed",
        ),
        (details({"stale": 1}), "2 blocks not written in that cycle, and changed or older than before"),
        (details({"misplaced": 1}), "holding what was written to another place"),
        (
            details({"lost_acknowledged": 3}, plp_claimed=True, vwc=False),
            "it claims power-loss protection (no volatile write cache), and it lost 6 blocks that it had acknowledged",
        ),
        (
            details({"lost_acknowledged": 1}, plp_claimed=True),
            "it claims power-loss protection (plp: true), and it lost 2 blocks that it had acknowledged, unflushed",
        ),
        (details({"lost_acknowledged": 1}, write_cache="off"), "its write cache is off, and it lost 2 blocks"),
        (details(is_found=False), "the drive did not come back after cut 1"),
    ],
)
def test_what_counts_against_a_drive_is_said_in_words(found, fault):
    faults = criteria.power_cut_faults(found)
    assert bool(faults) == bool(fault) and (fault or "") in "; ".join(faults)
    text = criteria.power_cut_text(found)
    assert (fault or "all of 1,600 acknowledged and flushed writes survived 2 power cuts") in text


@pytest.mark.parametrize(
    ("found", "remark"),
    [
        (details({"torn": 2}), "4 writes were torn, though by its own statement a write of up to 4,096 bytes is whole"),
        (details({"lost_acknowledged": 1}), "2 acknowledged blocks that no flush covered lost, as is allowed"),
        (details(after=BEFORE), "2 of 2 cuts count as clean: the drive's unsafe shutdowns did not rise"),
        (details(after=CutCounters(None, None, None, None)), "the drive does not count unsafe shutdowns"),
        (
            details(after=CutCounters(5, 11, 0, "8 GT/s x4")),
            "its link was 16 GT/s x4 before a cut, and 8 GT/s x4 after it",
        ),
        (details(fua="kernel"), "FUA was tried as a write and a flush"),
    ],
)
def test_what_counts_against_no_drive_is_a_remark(found, remark):
    assert any(remark in text for text in criteria.power_cut_remarks(found)) and not criteria.power_cut_faults(found)


def test_an_honest_drive_has_no_remark():
    assert criteria.power_cut_remarks(details()) == []
