# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The number of threads by trials on drives and hosts of known rates and costs."""

from __future__ import annotations

import types

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import thread_choice
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.thread_choice import Trial, choose
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.validity_limits import Limits
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.measurement import Chosen
from ansible_collections.ssdlab.fleet.tests.fixtures import planned

KIB, GB, TB = 1 << 10, 10**9, 10**12
# CPU time of fio 3.33 with libaio and without refill_buffers on a loop device, one thread at depth 32: µs of a read and
# of a write, by block size.
COSTS_US = {4 * KIB: (5.2, 4.7), 128 * KIB: (10.9, 13.9), 1024 * KIB: (52.4, 83.6)}
LIMITS = Limits()


def cell(access="random", size=4 * KIB, depth=128, **more):
    given = {"access": access, "block_size_bytes": size, "queue_depth": depth, "auto_threads": True, **more}
    return planned.cell(**given)


class Drive:
    """What fio does on a drive of so many IOPS, where an I/O costs a thread so much CPU time."""

    def __init__(self, iops, cost_us, polled=False):
        self._iops, self._cost_s, self._polled = iops, cost_us / 1e6, polled
        self.tried = []

    def busy(self, threads):
        """Return the share of a CPU that each of so many threads uses."""
        return 1.0 if self._polled else min(1.0, self._iops * self._cost_s / threads)

    def trial(self, threads):
        self.tried.append(threads)
        return Trial(self.busy(threads), min(self._iops, threads / self._cost_s))


@pytest.mark.parametrize(
    ("drive", "given", "cpus", "expected", "tried"),
    [
        # A hard disk, a SATA drive: one thread is enough.
        (Drive(200, 5), {}, 8, (1, 128), [1]),
        (Drive(4300, 10.9), {"access": "sequential", "size": 128 * KIB, "depth": 32}, 8, (1, 32), [1]),
        # 1.3 CPUs: two threads would use 65 % each.
        (Drive(250_000, 5.2), {}, 8, (4, 32), [1, 2, 4]),
        (Drive(250_000, 5.2), {}, 3, (2, 64), [1]),
        (Drive(250_000, 5.2), {}, 1, (1, 128), []),
        # Nobody knows how many CPUs there are.
        (Drive(250_000, 5.2), {}, 0, (1, 128), []),
        # What writes has less room.
        (Drive(100_000, 5.2), {}, 8, (1, 128), [1]),
        (Drive(100_000, 5.2), {"read_pct": 0}, 8, (2, 64), [1, 2]),
        # No more threads than I/Os in flight; 24 divide among 3, and 20 among 5.
        (Drive(3_000_000, 5.2), {"depth": 4}, 64, (4, 1), [1, 2]),
        (Drive(900_000, 1), {"depth": 24}, 64, (2, 12), [1, 2]),
        (Drive(900_000, 2.5), {"depth": 20}, 64, (4, 5), [1, 2, 4]),
        # Polling threads are always busy: as many as raise the rate.
        (Drive(400_000, 5, polled=True), {"polled": True}, 16, (4, 32), [1, 2, 4]),
        (Drive(100, 5, polled=True), {"polled": True}, 16, (2, 64), [1, 2]),
    ],
)
def test_the_fewest_threads_that_leave_room_are_chosen(drive, given, cpus, expected, tried):
    found = choose(cell(**given), cpus, TB, drive.trial)
    assert (found.threads, found.queue_depth, found.cpus) == (*expected, cpus)
    # A number that is all that is left needs no trial.
    assert found.trial_cpu == (drive.busy(found.threads) if found.threads in drive.tried else None)


def test_each_sequential_thread_has_a_region_of_its_own():
    drive = Drive(900_000, 10)
    sequential = cell("sequential", 128 * KIB, 32)
    assert choose(sequential, 64, 5 * 128 * KIB, drive.trial) == Chosen(4, 8, cpus=64)
    assert choose(sequential, 64, 128 * KIB - 1, drive.trial) == Chosen(1, 32, cpus=64)
    assert choose(cell(), 2, 128 * KIB, drive.trial) == Chosen(2, 64, cpus=2)


@pytest.mark.parametrize("access", ["random", "sequential"])
@pytest.mark.parametrize("size", COSTS_US)
@pytest.mark.parametrize("read_pct", [100, 50, 0])
def test_no_drive_is_limited_by_fio_and_what_is_in_flight_stays(access, size, read_pct):
    """Drives of 1 to 14 GB/s and up to 3 million IOPS, that write as fast as they read, on a host with enough CPUs."""
    depth = 128 if size == 4 * KIB else 32
    asked = cell(access, size, depth, read_pct=read_pct)
    for rate in range(1 * GB, 14 * GB + 1, GB // 4):
        iops = min(rate / size, 3e6)
        reads, writes = (Drive(iops, cost_us) for cost_us in COSTS_US[size])
        found = choose(asked, 64, TB, reads.trial)
        assert found.threads * found.queue_depth == depth
        assert reads.busy(found.threads) < thread_choice.CPU_MAX
        assert read_pct == 100 or writes.busy(found.threads) < LIMITS.fio_cpu_max
        # No more than it takes.
        assert found.threads == 1 or reads.busy(found.threads / 2) > thread_choice.CPU_MAX / thread_choice.WRITE_COST


def test_3_million_iops_take_as_many_threads_as_there_are():
    drive = Drive(3_000_000, COSTS_US[4 * KIB][0])
    assert choose(cell(), 64, TB, drive.trial).threads == 32
    # Too few CPUs: the rounds say so (host_limited).
    assert choose(cell(), 12, TB, drive.trial).threads == 8


@pytest.mark.parametrize(
    ("fio_cpu", "waited_s", "steal", "expected"),
    [
        (0.5, None, None, 0.5),
        (0.5, 0.0, 0.0, 0.5),
        (0.01, 0.3, 0.0, 0.0105),
        # It ran in all the time that others left to it, or the hypervisor.
        (0.13, 5.2, 0.0, 0.9750),
        (0.45, 0.0, 0.5, 0.9),
        # Clocks are not exact.
        (0.5, 9.0, 0.2, 1.0),
        (0.0, 9.0, 0.2, 0.0),
        (1.02, 0.0, 0.0, 1.0),
    ],
)
def test_what_a_thread_used_is_a_share_of_what_it_could_have(fio_cpu, waited_s, steal, expected):
    seen = types.SimpleNamespace(fio_cpu=fio_cpu, waited_s=waited_s, cpu_steal=steal, run_s=3.0)
    assert thread_choice.thread_cpu(seen, 2) == pytest.approx(expected, abs=0.0005)


def test_writes_cost_no_more_than_is_assumed():
    assert max(writes / reads for reads, writes in COSTS_US.values()) < thread_choice.WRITE_COST


def test_a_trial_reads_what_the_cell_would_for_three_seconds():
    asked = cell(read_pct=0, ramp_s=9, runtime_s=60, trial_job="[global]\nrw=read\n")
    trial = thread_choice.trial_cell(asked, 4)
    assert (trial.threads, trial.queue_depth, trial.read_pct, trial.runtime_s, trial.ramp_s) == (4, 32, 100, 3, None)
    assert trial.job == asked.trial_job and trial.id == asked.id
