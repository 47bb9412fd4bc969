# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How each shipped test ends on a drive of one constant rate, the easiest drive there is, with 2 % of noise."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.rounds import CELL_OVERHEAD_S, Rounds, cell_s
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import time_estimates
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.render_plan import load_plan

FILES = Path(__file__).resolve().parents[5] / "roles/workload/files"
CAPACITIES_TB = (0.24, 0.96, 7.68, 61.44)
RATES_KIOPS = (5, 100, 3000)
FASTEST_BYTES_PER_S = 14e9
SIDES = ("", "read_", "write_")
METRICS = [side + name for side in SIDES for name in ("iops", "bandwidth", "mean_latency_us")]


def shipped():
    """Each test of the collection once, as (where, test)."""
    for folder in ("tests", "plans"):
        for path in sorted((FILES / folder).glob("*.yml")):
            for test in load_plan([path.stem] if folder == "tests" else path.stem):
                yield f"{path.stem}/{test.name}", test


def run(test, capacity_tb, kiops):
    """(outcome, seconds of rounds, what it was expected to take at most)."""
    size_bytes, noise = int(capacity_tb * 1e12), random.Random(1)
    rounds, written, figures = Rounds(test, size_bytes), 0.0, {}
    round_s = sum(cell_s(cell) + CELL_OVERHEAD_S for cell in test.cells)
    rates = {cell.id: min(kiops * 1000, FASTEST_BYTES_PER_S / (cell.block_size_bytes or 4096)) for cell in test.cells}
    by_round = sum(
        rates[cell.id] * (cell.block_size_bytes or 4096) * (100 - (cell.read_pct or 0)) / 100 * cell_s(cell)
        for cell in test.cells
    )
    while not rounds.finished():
        for name, rate in rates.items():
            figures[name] = dict.fromkeys(METRICS, rate * noise.uniform(0.99, 1.01))
        for item in test.steady_state.tracked if test.steady_state else ():
            figures.setdefault(item.cell, dict.fromkeys(METRICS, kiops * noise.uniform(0.99, 1.01)))
        written += by_round
        rounds.add(dict(figures), int(written), (rounds.count + 1) * round_s)
    longest_s = time_estimates.rounds_s(test, size_bytes * round_s / by_round if by_round else 0)[1]
    return rounds.outcome()[0], rounds.count * round_s, longest_s


@pytest.mark.parametrize(("where", "test"), [pytest.param(*pair, id=pair[0]) for pair in shipped() if pair[1].cells])
def test_each_shipped_test_can_end_well(where, test):
    for capacity_tb in CAPACITIES_TB:
        for kiops in RATES_KIOPS:
            outcome, took_s, longest_s = run(test, capacity_tb, kiops)
            assert outcome in ("steady", "complete"), (capacity_tb, kiops, outcome)
            assert took_s <= longest_s * 1.01 + 1, (capacity_tb, kiops)


WSAT = next(test for where, test in shipped() if where == "wsat/wsat")


@pytest.mark.parametrize(
    ("capacity_tb", "kiops", "expected", "hours"),
    [
        (1.92, 50, "steady", 10),
        (15.36, 250, "steady", 13),
        # 4 x the capacity is written before two windows fit, or a day ends before 2 x: its curve counts.
        (0.96, 85, "complete", 3),
        (7.68, 400, "complete", 5),
        (7.68, 30, "complete", 24),
    ],
)
def test_a_curve_counts_where_the_standards_limits_come_before_a_steady_window(capacity_tb, kiops, expected, hours):
    outcome, took_s, _longest_s = run(WSAT, capacity_tb, kiops)
    assert (outcome, round(took_s / 3600)) == (expected, hours)
