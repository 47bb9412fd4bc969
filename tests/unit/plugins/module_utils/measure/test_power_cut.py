# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Power cuts of drives that are modelled: an honest one never fails, and each lie is found."""

from __future__ import annotations

import random

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import power_cut_check
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import power_cut_pattern as pattern
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.power_cut import CutFault
from ansible_collections.ssdlab.fleet.tests.fixtures.cut_drive import BLOCK, LIES, Campaign
from ansible_collections.ssdlab.fleet.tests.fixtures.mutations import SAMPLE

FAULTS = set(CutFault.__args__)
CUTS, SEEDS = max(20, 1200 // SAMPLE), max(1, 10 // SAMPLE)
HONEST = [
    {},
    {"atomic_bytes": BLOCK},
    {"atomic_bytes": pattern.MOST_BLOCKS * BLOCK},
    {"hints": True},
    {"capacitors": True},
    {"write_through": True},
    {"capacitors": True, "hints": True, "atomic_bytes": BLOCK},
]
# What each lie is to be found as, one of them at least; and what follows from it in other blocks ("torn" is a remark).
FOUND_AS = {
    "no_flush": "lost_flushed",
    "no_fua": "lost_flushed",
    "lost_stripe": "lost_flushed stale",
    "torn": "torn",
    "misplaced": "misplaced",
    "rollback": "stale lost_flushed",
    "resurrected": "resurrected",
    "foreign": "foreign",
    "bit_flip": "corrupt",
    "unreadable": "unreadable",
    "changed_unwritten": "stale",
}
BESIDE = {"no_flush": "resurrected", "misplaced": "lost_flushed stale", "rollback": "resurrected"}


@pytest.fixture(autouse=True)
def _small_window(monkeypatch):
    monkeypatch.setattr(power_cut_check, "WINDOW", 8)


@pytest.mark.parametrize("drive", HONEST, ids=lambda drive: "-".join(drive) or "plain")
def test_an_honest_drive_never_fails(drive):
    draw, acknowledged, lost = random.Random(repr(drive)), 0, 0
    keeps_writes = bool({"capacitors", "write_through"} & set(drive))
    for number in range(CUTS // len(HONEST)):
        if number % 20 == 0:
            campaign = Campaign(draw, **drive)
        checker, history = campaign.cut(draw.randrange(600))
        found = {kind: count for kind, count in checker.counts.items() if kind in FAULTS or kind == "torn"}
        assert not found, (number, campaign.cycle, checker.first)
        assert not (keeps_writes and checker.counts), (number, campaign.cycle, checker.first)
        assert checker.checked == campaign.layout.blocks and not checker.records_lost
        lost += checker.counts["lost_acknowledged"]
        acknowledged += history.acknowledged
        if drive.get("atomic_bytes"):
            assert not checker.unjudged
    # Else the model would lose nothing, and show nothing.
    assert bool(lost) != keeps_writes and acknowledged


@pytest.mark.parametrize("lie", LIES)
def test_each_lie_is_found_within_six_cuts(lie):
    atomic = {"atomic_bytes": pattern.MOST_BLOCKS * BLOCK} if lie == "torn" else {}
    for seed in range(SEEDS):
        draw = random.Random(f"{lie}{seed}")
        campaign, found = Campaign(draw, lie, **atomic), {}
        for _cycle in range(6):
            checker, _history = campaign.cut(400 + draw.randrange(400))
            for kind in checker.counts:
                found[kind] = found.get(kind, 0) + checker.counts[kind]
        names = FOUND_AS[lie].split()
        assert any(found.get(name) for name in names), (seed, found)
        assert {kind for kind in found if kind in FAULTS} <= {*names, *BESIDE.get(lie, "").split()}, (
            seed,
            found,
            checker.first,
        )
        assert all(block.kind in found for block in checker.first)


def test_flushes_and_fua_are_told_apart():
    """A drive that honours one of them is found by cycles that use the other alone."""
    for lie, finds in (("no_fua", 2), ("no_flush", 1)):
        campaign, by_cycle = Campaign(random.Random(lie), lie), {}
        for cycle in range(1, 7):
            checker, _history = campaign.cut(700)
            by_cycle.setdefault(cycle % 3, []).append(checker.counts["lost_flushed"])
            assert checker.lost_fua == (checker.counts["lost_flushed"] if lie == "no_fua" else 0)
        assert any(by_cycle[finds]) and not any(by_cycle[3 - finds])
