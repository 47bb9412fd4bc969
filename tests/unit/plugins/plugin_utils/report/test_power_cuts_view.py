# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drive's page shows of its power cuts."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.job.power_cut import cycle_record
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.power_cut_process import Checked
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.power_cut import CutCounters, PowerCutArmed
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import power_cuts

TIME = "2026-11-29T01:15:25.675Z"
COUNTERS = CutCounters(4, 10, 0, "16 GT/s x4"), CutCounters(5, 11, 0, "16 GT/s x4")
ARMED = PowerCutArmed(
    **{"vwc": True, "write_cache": "on", "plp_claimed": False, "atomic_write_bytes": 4096, "fua": "drive"},
    **{"atomic_boundary_bytes": None, "gets_flushes": True, "cycle": 1, "mode": "hard", "seed": 5, "boot_id": "a"},
    **{"active_bytes": 1 << 30, "before": COUNTERS[0]},
)
CHECKED = Checked({}, 900, 800, 10**18, 0, 0, 262144, False, [0] * 100, [])
CYCLE = base.to_json(cycle_record(ARMED, TIME, TIME, CHECKED, COUNTERS[1]))
CYCLE = {**CYCLE, "cut": True, "cut_at": TIME}


def view(*changes):
    cycles = [{**CYCLE, "cycle": number, **one} for number, one in enumerate(changes, 1)]
    return power_cuts.of_test({"power_cut": {"mode": "hard", "requested_cycles": 20, "cycles": cycles}})


def test_a_test_without_cuts_has_no_part():
    assert power_cuts.of_test({"power_cut": None}) is None and view() is None


def test_cuts_without_a_loss_bound_its_chance():
    found = view({}, {}, {"cut": False})
    assert (found["done"], round(found["bound_pct"]), found["picture"]) == (2, 78, "")
    assert found["rows"][0]["last_acknowledgement"] == "2026-11-29 01:15:25"
    assert found["rows"][0]["shutdowns"] == "4 → 5" and found["rows"][0]["others"] == "0"


@pytest.mark.parametrize(
    "wrong",
    [
        {"lost_flushed": 3},
        {"stale": 1},
        {"found": False},
        {"plp_claimed": True, "lost_acknowledged": 1},
        {"write_cache": "off", "lost_acknowledged": 1},
    ],
)
def test_cuts_that_lost_something_bound_nothing(wrong):
    assert view({}, wrong)["bound_pct"] is None


def test_where_blocks_are_wrong_is_drawn_over_all_cuts():
    parts = [0] * 98 + [1, 0]
    found = view({"lost_flushed": 1, "wrong_by_part": parts}, {"stale": 2, "wrong_by_part": [*parts[:-1], 2]})
    assert "in 2 of 100 equal parts of what was written, 2 at most" in found["said"] and "<svg" in found["picture"]
    assert found["rows"][1]["others"] == "2 stale"


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ({}, "write cache on, power-loss protection not claimed"),
        ({"write_cache": "off"}, "write cache off, power-loss protection not claimed"),
        ({"vwc": False, "plp_claimed": True}, "no volatile cache, power-loss protection claimed"),
        ({"write_cache": None, "vwc": None}, "write cache unknown, power-loss protection not claimed"),
    ],
)
def test_the_cache_and_the_claim_are_told(state, told):
    assert view(state)["cache"] == told


def test_of_many_cuts_those_that_say_something_are_shown():
    changes = [{"torn": int(number == 400)} for number in range(500)]
    found = view(*changes)
    assert len(found["rows"]) == power_cuts.MOST_ROWS and found["left_out"] == 300
    assert 401 in [row["cycle"] for row in found["rows"]]
