# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import io_pattern
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.measurement import Chosen
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.planned_cell import PointOfSweep
from ansible_collections.ssdlab.fleet.tests.fixtures import planned

BURSTS = planned.cell(burst_s=5, idle_s=10, runtime_s=45, ramp_s=15)


def test_the_rates_of_bursts_are_for_the_time_of_the_bursts():
    assert io_pattern.burst_time_s(BURSTS) == 15 and io_pattern.burst_time_s(planned.cell(runtime_s=60)) == 60


@pytest.mark.parametrize(
    ("run_s", "with_ramp", "share"),
    [(45, False, 15 / 45), (55, False, 15 / 55), (45, True, 30 / 60), (10, False, 1.0), (0, False, 1.0)],
)
def test_the_share_of_time_in_which_the_queue_is_to_be_full(run_s, with_ramp, share):
    assert io_pattern.busy_share(BURSTS, run_s, with_ramp) == pytest.approx(share)
    assert io_pattern.busy_share(planned.cell(runtime_s=45), run_s) == 1.0


@pytest.mark.parametrize(
    ("options", "ios", "total", "astride", "fits"),
    [
        ({"bs": "4096"}, 10, 40960, 0, True),
        ({"bs": "4096"}, 10, 40961, 0, False),
        ({"bs": "4096"}, 10, 45056, 0, False),
        ({"bs": "4096"}, 10, 45056, 1, True),
        ({"bssplit": "4096/50:8192/50"}, 10_000, 61_440_000, 0, True),
        # Six standard deviations of 10,000 I/Os are 1.2 MB.
        ({"bssplit": "4096/50:8192/50"}, 10_000, 61_440_000 + 299 * 4096, 0, True),
        ({"bssplit": "4096/50:8192/50"}, 10_000, 61_440_000 + 310 * 4096, 0, False),
        ({"bssplit": "4096/50:8192/50"}, 10_000, 61_440_001, 0, False),
    ],
)
def test_bytes_follow_from_the_sizes(options, ios, total, astride, fits):
    assert io_pattern.Sizes(options).fit(ios, total, astride, 6.0) == fits


@pytest.mark.parametrize(
    ("threads", "depth", "cpus", "expected"),
    [
        (8, 32, 16, (8, 32)),
        (8, 32, 8, (8, 32)),
        # 256 does not divide among 5, 6 or 7 threads.
        (8, 32, 7, (4, 64)),
        (8, 32, 4, (4, 64)),
        (8, 32, 3, (2, 128)),
        (8, 32, 1, (1, 256)),
        # Nobody knows how many there are.
        (8, 32, 0, (1, 256)),
        (6, 4, 5, (4, 6)),
    ],
)
def test_threads_follow_the_cpus_and_what_is_in_flight_stays(threads, depth, cpus, expected):
    found = io_pattern.by_cpus(planned.cell(threads=threads, queue_depth=depth), cpus)
    assert found == Chosen(*expected, cpus=cpus)


SWEEP = [
    planned.cell(id=f"t{threads}d{depth}", threads=threads, queue_depth=depth) for threads in (1, 4) for depth in (1, 8)
]
MOST = PointOfSweep("sweep", "most", None)
FIGURES = {"t1d1": (1000, 100), "t1d8": (5000, 1600), "t4d1": (3000, 1300), "t4d8": (6000, 5300)}
AVERAGES = {name: {"iops": iops, "mean_latency_us": us} for name, (iops, us) in FIGURES.items()}


@pytest.mark.parametrize(
    ("take", "below_us", "cell"),
    [
        ("most", None, "t4d8"),
        ("most", 5000, "t1d8"),
        ("fewest", None, "t1d1"),
        ("middle", 5000, "t4d1"),
        ("most", 100, None),
        ("most", 101, "t1d1"),
    ],
)
def test_a_point_is_found_by_what_was_measured(take, below_us, cell):
    found = io_pattern.chosen(PointOfSweep("sweep", take, below_us), SWEEP, AVERAGES)
    assert (found and found.cell) == cell


def test_what_leads_a_round_or_has_no_figures_is_no_point():
    lead = planned.cell(id="lead", threads=9, queue_depth=9, lead=True)
    averages = {**AVERAGES, "lead": {"iops": 9000, "mean_latency_us": 1}, "none": {"iops": None}}
    found = io_pattern.chosen(MOST, [lead, *SWEEP, planned.cell(id="none")], averages)
    assert found == Chosen(4, 8, cell="t4d8")
    assert io_pattern.chosen(MOST, SWEEP, {}) is None


def test_of_cells_as_good_the_one_with_the_fewest_ios_in_flight_is_taken():
    same = {cell.id: {"iops": 100, "mean_latency_us": 1} for cell in SWEEP}
    assert io_pattern.chosen(MOST, SWEEP[::-1], same).cell == "t1d1"
