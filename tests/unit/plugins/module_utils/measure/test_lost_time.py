# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Time that was taken from fio: a remark where the drive's work outlasts it, a disturbance elsewhere."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import disturbances, lost_time
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.disturbances import DISTURBS, TOLD
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.validity_limits import Limits
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.measurement import Seen
from ansible_collections.ssdlab.fleet.tests.fixtures import planned

CELL = {"threads": 1, "queue_depth": 32, "runtime_s": 10}
STOLEN = {"cpu_steal": 0.06}
THROTTLED = {"throttled_s": 0.8}
# CPUs without idle time, of which fio used 3 %, waiting for 8 %.
BUSY = {"cpu_idle": 0.0, "waited_s": 0.8}


def seen_at(iops, depth, **changes):
    """What is seen of a cell of 10 s that kept so many I/Os at a drive of this rate."""
    sent = int(10 * iops) * 4096
    told = {
        "fio_bytes": {"read": 0, "write": sent},
        "process_bytes": {"read": 0, "write": sent},
        "kernel_bytes": {"read": 0, "write": sent, "discard": 0},
        "merged_share": 0.0,
        "run_s": 10.0,
        "mean_latency_s": depth / iops,
        "longest_s": 0.2,
        "queued": depth,
        "in_flight": 0.98 * depth,
        "limits": {"nr_requests": 64, "hw_queues": 1, "device_depth": None},
        "fio_cpu": 0.03,
        "cpus": 2,
        "cpu_idle": 0.5,
        "cpu_steal": 0.0,
        "throttled_s": 0.0,
        "longest_gap_s": 0.01,
        "waited_s": 0.1,
        "elapsed_s": 10.4,
        "idle_s": 0.1,
        "suspended_s": 0.0,
        "between_bytes": None,
        "beside_bytes": None,
        "clock_jump_s": 0.0,
        **changes,
    }
    return base.parse(Seen, told)


def levels(cell, seen, limits=Limits()):
    """The levels of host_limited and busy_cpus, the only causes that may be found."""
    found = disturbances.find(planned.cell(**{**CELL, **cell}), seen, limits)
    assert {item.cause for item in found} <= {disturbances.HOST_LIMITED, disturbances.BUSY_CPUS}
    return [item.level for item in found]


@pytest.mark.parametrize("taken", [STOLEN, THROTTLED, BUSY], ids=["stolen", "throttled", "busy"])
@pytest.mark.parametrize(
    "iops, depth, gap_s, level",
    [
        (700, 32, 0.010, TOLD),
        (700, 32, 0.020, TOLD),
        # Longer than the 45 ms that the drive works on what it has, or unknown.
        (700, 32, 0.060, DISTURBS),
        (700, 32, None, DISTURBS),
        # A worn drive of the same model has work for twice as long.
        (350, 32, 0.040, TOLD),
        (4000, 32, 0.010, DISTURBS),
        (500_000, 32, 0.001, DISTURBS),
        (700, 1, 0.003, DISTURBS),
        (90, 1, 0.010, DISTURBS),
    ],
)
def test_what_was_taken_is_a_remark_where_the_drive_has_work_for_longer(taken, iops, depth, gap_s, level):
    assert levels({"queue_depth": depth}, seen_at(iops, depth, longest_gap_s=gap_s, **taken)) == [level]


@pytest.mark.parametrize(
    "taken, in_flight, level",
    [
        (STOLEN, 0.99, DISTURBS),
        (THROTTLED, 0.99, TOLD),
        (BUSY, 0.99, TOLD),
        (THROTTLED, 0.95, DISTURBS),
        (BUSY, 0.95, DISTURBS),
    ],
)
def test_a_drive_that_is_slower_with_a_shorter_queue_may_lose_two_percent(taken, in_flight, level):
    """A gap almost as long as the drive's work; of a stopped guest the kernel counts what the drive has finished."""
    assert levels({}, seen_at(700, 32, longest_gap_s=0.043, in_flight=in_flight * 32, **taken)) == [level]


@pytest.mark.parametrize("taken", [STOLEN, THROTTLED, BUSY], ids=["stolen", "throttled", "busy"])
@pytest.mark.parametrize(
    "cell, changes",
    [
        # The test leaves the queue open, or its streams have queues of their own.
        ({"rate_iops": 700}, {}),
        ({"batch": 8}, {}),
        ({"threads": 32, "queue_depth": 1}, {"waited_s": 128.0, "throttled_s": 3.0}),
        ({"jobs": [{**CELL, "name": "a"}]}, {"streams": {"a": {"queued": 32.0, "mean_latency_s": 0.046}}}),
        # Nobody counts what is at the drive; a third of it is.
        ({}, {"in_flight": None}),
        ({}, {"in_flight": 11.0, "longest_gap_s": 0.016}),
        # A thread that ran whenever it could, however much is in flight.
        ({}, {"fio_cpu": 0.94}),
        ({"polled": True}, {"fio_cpu": 0.94}),
    ],
)
def test_what_has_no_backlog_at_the_drive_is_disturbed(taken, cell, changes):
    assert DISTURBS in levels(cell, seen_at(700, 32, **{**taken, "fio_cpu": 0.03, **changes}))


def test_a_queue_that_was_short_is_no_backlog():
    assert levels({}, seen_at(700, 32, **STOLEN, queued=20.0, in_flight=20.0, cpu_idle=0.0))[0] == DISTURBS


def test_what_is_below_its_limit_is_silent():
    assert levels({"queue_depth": 1}, seen_at(700, 1, cpu_steal=0.05, throttled_s=0.5, longest_gap_s=None)) == []
    # Each I/O waits for its wake-up; what fio's own threads take from each other was not taken.
    assert levels({"queue_depth": 1}, seen_at(700, 1, cpu_idle=0.3, waited_s=2.0)) == []
    many = {"threads": 16, "queue_depth": 1}
    assert levels(many, seen_at(90_000, 16, cpu_idle=0.0, waited_s=80.0, fio_cpu=0.12)) == [TOLD]


def test_a_cpu_that_is_busy_in_a_part_of_the_cell_counts_where_fio_waited_long():
    """On 64 CPUs the one that fio shares with a busy loop leaves the others idle."""
    assert levels({"queue_depth": 1}, seen_at(700, 1, cpu_idle=0.4, waited_s=4.0)) == [DISTURBS]
    assert levels({"queue_depth": 1}, seen_at(700, 1, cpus=64, cpu_idle=0.98, fio_cpu=0.3, waited_s=5.0)) == [DISTURBS]
    # Nobody but fio used them.
    assert levels({"queue_depth": 1}, seen_at(700, 1, cpu_idle=0.97, fio_cpu=0.06, waited_s=5.0)) == []


def test_a_busy_cpu_of_which_nobody_knows_what_fio_waited_is_told_as_before():
    assert levels({"queue_depth": 1}, seen_at(700, 1, cpu_idle=0.0, waited_s=None, longest_gap_s=None)) == [TOLD]
    assert levels({"queue_depth": 1}, seen_at(700, 1, **BUSY), Limits(waited_max=1)) == [TOLD]


def test_the_remark_has_the_share_and_says_what_it_means_for_latencies():
    (found,) = disturbances.find(planned.cell(**CELL), seen_at(700, 32, **STOLEN), Limits())
    assert found.message == (
        "the hypervisor took 6% of the time of fio's CPUs; the drive had work for 44.8 ms, more than fio's longest gap "
        "of 10.0 ms, so the rate counts, but latencies may include up to 10.0 ms that were the host's"
    )
    (busy,) = disturbances.find(planned.cell(**{**CELL, "queue_depth": 1}), seen_at(700, 1, **BUSY), Limits())
    assert busy.message.startswith("fio waited for 8% of the time for CPUs that others used")


def test_every_limit_of_the_table_can_be_set():
    assert {row.limit for row in lost_time.TABLE} <= set(Limits._fields)
    lenient = Limits(steal_max=0.5, throttled_max=0.5, waited_max=0.5)
    assert levels({"queue_depth": 1}, seen_at(700, 1, **STOLEN, **THROTTLED), lenient) == []


def test_bursts_and_ramps_leave_the_drives_work_as_it_is():
    """Averages over the same time, whatever part of it the queue is to be full."""
    cell = {"burst_s": 1, "idle_s": 4}
    assert lost_time.backlog_s(
        planned.cell(**{**CELL, **cell}), seen_at(140, 6.4, mean_latency_s=0.0457)
    ) == pytest.approx(0.0448, 0.01)
