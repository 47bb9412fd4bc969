# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Time taken from fio on a simulated drive, which has no part in it: how long the gap was, and whether the rate counts.

What else the machine does makes gaps longer, never shorter. Where one was longer than the drive's work by itself, the
round is disturbed, as it should be: the rate then shows nothing.
"""

from __future__ import annotations

import contextlib
import os

import measuring
import pytest
import simulated_ssd as simulator
import taking_time
from test_disturbed_rounds import cpu_quota

from ansible_collections.ssdlab.fleet.plugins.module_utils.machine.cpus import Place
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import lost_time
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.validity_limits import Limits
from ansible_collections.ssdlab.fleet.tests.fixtures import planned

# 64 of its I/Os take it 1.6 s, much longer than a busy machine's own gaps; slower than it could be, never faster.
IOPS, DEPTH = 40, 64
DEEP = {"queue_depth": DEPTH, "runtime_s": 8}
pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root for loop devices"),
    pytest.mark.exclusive(depth=DEPTH, iops=IOPS),
]


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    figures = {"size_bytes": 64 << 20, "fresh_iops": IOPS, "steady_iops": IOPS, "read_iops": IOPS}
    folder = tmp_path_factory.mktemp("drives")
    with simulator.simulated_ssd(folder, "taken", simulator.model_plugin(**figures)) as drive:
        yield drive["device"]


@pytest.fixture
def cells(simulated, tmp_path):
    made = measuring.Measuring(simulated, tmp_path)
    made.bench.limits = Limits(idle_gap_s=60)
    try:
        yield made
    finally:
        made.close()


def test_a_gap_is_found_and_none_is_made_up(cells):
    """A process that is stopped has neither stolen time nor waits for a CPU: only a timer can tell."""
    quiet = cells.cell(**DEEP).seen
    with taking_time.stopped(0.4, 0.5):
        gaps = cells.cell(**DEEP).seen
    assert gaps.longest_gap_s >= 0.4 > quiet.longest_gap_s, quiet
    assert gaps.cpu_steal < 0.4 and gaps.waited_s < 0.4


def test_a_real_time_process_on_fios_cpu_makes_a_gap(cells):
    cells.bench.place = Place("0", None, None, "")
    with taking_time.slices(0, 0.3, 0.3):
        seen = cells.cell(**DEEP).seen
    assert seen.longest_gap_s >= 0.25 and seen.waited_s >= 0.5


def rate(result):
    return result.write.iops


def counts(result):
    """Whether a round counts in spite of what was taken; only one whose drive had work for longer than any gap."""
    seen = result.seen
    work_s = lost_time.backlog_s(planned.cell(threads=1, queue_depth=DEPTH), seen)
    disturbed = "host_limited" in measuring.found(result)
    assert disturbed or not _has_lost(seen) or work_s > seen.longest_gap_s, seen
    return not disturbed


def _has_lost(seen):
    return (seen.throttled_s or 0) > 0.05 * seen.elapsed_s


@contextlib.contextmanager
def loops(cells):
    """Busy loops of normal priority on the CPU that fio has."""
    cells.bench.place = Place("0", None, None, "")
    with taking_time.loops(0, 2):
        yield


@pytest.mark.parametrize("taking", [lambda _cells: cpu_quota(0.04), loops], ids=["quota", "busy loops"])
def test_a_deep_queue_outlasts_what_is_taken(cells, taking):
    with taking(cells):
        # A busy machine may make longer gaps of its own, and then the round is disturbed: it is measured again.
        deep = [cells.cell(**DEEP) for _each in range(2)]
    good = [rate(result) for result in deep if counts(result)]
    assert good and all(abs(iops / IOPS - 1) < 0.02 for iops in good), [result.seen for result in deep]


def test_a_single_io_beside_busy_loops_is_right_or_disturbed(cells):
    """Whether the loops cost it anything is the scheduler's; what they cost may not go unseen."""
    with loops(cells):
        single = cells.cell(runtime_s=4)
    is_right = abs(rate(single) / IOPS - 1) <= Limits().waited_max
    assert is_right or "host_limited" in measuring.found(single), single.seen


def test_a_single_io_does_not(cells):
    with cpu_quota(0.04):
        single = cells.cell(runtime_s=3)
    assert "host_limited" in measuring.found(single), single.seen
