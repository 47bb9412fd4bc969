# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measurements of healthy drives that are thrown away, and signs of sick drives that fail nothing.

A line that begins with "Wrong:" names a known fault (tests/machines/README.md).
"""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import disturbances, drive_environment, sampler
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.disturbances import DISTURBS, TOLD, UNKNOWN
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.environment import Environment
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.measurement import Seen
from ansible_collections.ssdlab.fleet.tests.fixtures import planned, samples

RUNTIME_S = 60
WRITES = {"access": "sequential", "threads": 1, "queue_depth": 32, "read_pct": 0, "block_size_bytes": 1 << 20}
READS = {"access": "random", "threads": 4, "queue_depth": 32, "read_pct": 100, "block_size_bytes": 4096}
RANDOM_WRITES = {**READS, "read_pct": 0}
DEPTH_1 = {**READS, "threads": 1, "queue_depth": 1}
# A healthy minute on a quiet machine of 32 CPUs, but for what each row gives.
QUIET = {
    "process_bytes": None,
    "merged_share": 0.0,
    "run_s": float(RUNTIME_S),
    "longest_s": 0.02,
    "limits": {"nr_requests": 1023, "hw_queues": 64, "device_depth": None},
    "fio_cpu": 0.5,
    "cpus": 32,
    "cpu_idle": 0.9,
    "cpu_steal": 0.0,
    "throttled_s": 0.0,
    "elapsed_s": 60.4,
    "beside_bytes": None,
    "idle_s": 0.4,
    "suspended_s": 0.0,
    "clock_jump_s": 0.0,
    "between_bytes": {"write": 0, "discard": 0},
}


def observed(cell, iops, **changes):
    """The figures of a cell at this rate whose queue is full."""
    depth = cell["threads"] * cell["queue_depth"]
    done = {
        "read": RUNTIME_S * iops * cell["block_size_bytes"] * cell["read_pct"] // 100,
        "write": RUNTIME_S * iops * cell["block_size_bytes"] * (100 - cell["read_pct"]) // 100,
    }
    load = {
        "fio_bytes": done,
        "kernel_bytes": {**done, "discard": 0},
        "mean_latency_s": depth / iops,
        "queued": float(depth),
        "in_flight": 0.95 * depth,
    }
    return base.parse(Seen, {**QUIET, **load, **changes})


@pytest.mark.parametrize(
    "cell, iops, changes, expected",
    [
        (WRITES, 4000, {}, []),
        # A twentieth of the queue is in fio's hands, and so may be a twentieth of the rate; an I/O of 32 is not.
        (WRITES, 4000, {"fio_cpu": 0.98}, [("host_limited", DISTURBS)]),
        (WRITES, 4000, {"fio_cpu": 0.98, "in_flight": 31.5}, [("host_limited", TOLD)]),
        (READS, 2_000_000, {"fio_cpu": 0.97, "in_flight": 100.0}, [("host_limited", DISTURBS)]),
        (READS, 2_000_000, {"fio_cpu": 0.97, "in_flight": 126.0}, [("host_limited", TOLD)]),
        # For how long fio was away at once is unknown: up to 5 % of the rate. The drive had work for 8 ms.
        (WRITES, 4000, {"cpu_steal": 0.051}, [("host_limited", DISTURBS)]),
        (WRITES, 4000, {"cpu_steal": 0.051, "cpu_idle": 0.6}, [("host_limited", DISTURBS)]),
        (WRITES, 4000, {"cpu_steal": 0.051, "longest_gap_s": 0.004}, [("host_limited", TOLD)]),
        (WRITES, 4000, {"cpu_steal": 0.051, "longest_gap_s": 0.04}, [("host_limited", DISTURBS)]),
        (DEPTH_1, 12_500, {"queued": 0.86, "in_flight": 0.7, "fio_cpu": 0.12}, []),
        (DEPTH_1, 100_000, {"queued": 0.86, "in_flight": 0.7, "fio_cpu": 0.5}, []),
        (DEPTH_1, 200_000, {"queued": 0.86, "in_flight": 0.7, "fio_cpu": 0.8}, []),
        # A time-out of the driver and a reset of the controller: the drive fails by its health criteria.
        (RANDOM_WRITES, 200_000, {"longest_s": 31.2}, [("stalled", TOLD)]),
    ],
    ids=[
        "healthy",
        "one busy thread",
        "one busy thread, full queue",
        "busy threads",
        "busy threads, full queue",
        "steal",
        "steal, busy CPUs",
        "steal, short gaps",
        "steal, long gaps",
        "80 us",
        "10 us",
        "5 us",
        "reset",
    ],
)
def test_what_a_cell_is_called_disturbed_for(cell, iops, changes, expected):
    found = disturbances.find(planned.cell(**cell, runtime_s=RUNTIME_S), observed(cell, iops, **changes))
    assert [(cause.cause, cause.level) for cause in found] == expected


def test_a_queue_that_others_may_fill_frees_no_busy_thread():
    written = RUNTIME_S * 4000 << 20
    for more, level in ((written // 2000, TOLD), (written // 200, DISTURBS)):
        counted = {"read": more, "write": written, "discard": 0}
        seen = observed(WRITES, 4000, fio_cpu=0.98, in_flight=31.5, kernel_bytes=counted)
        (found,) = disturbances.find(planned.cell(**WRITES, runtime_s=RUNTIME_S), seen)
        assert found.level == level


def test_a_small_write_of_somebody_else_is_nothing():
    done = {"read": 60 * 10**6 * 4096, "write": 0}
    written = {**done, "write": 96 << 10, "discard": 0}
    assert (
        disturbances.find(planned.cell(**READS, runtime_s=RUNTIME_S), observed(READS, 10**6, kernel_bytes=written))
        == []
    )


BEFORE = {
    **samples.SAMPLE,
    "transport": "nvme",
    "highest_temperature_c": None,
    "warning_temperature_c": 77,
    "critical_temperature_c": 85,
    "link_rate_gbit_s": None,
    "link_policy": None,
    "pci_power": "D0",
    "power_state": {"number": 0, "works": True},
    "direct_io": None,
    "write_cache": "write through",
}


DRIVE, PORT = "0000:01:00.0", "0000:00:01.0"
NONE = {"correctable": 0, "nonfatal": 0, "fatal": 0}
ONE_CORRECTED = {DRIVE: NONE, PORT: {**NONE, "correctable": 1}}
THROTTLED = {"throttle_counts": {"t1": 4, "t2": 0}, "throttle_s": {"t1": 102, "t2": 0}}


@pytest.mark.parametrize(
    "change, disturbs_a_round, cause, level, message",
    [
        # A fast link may repeat a packet every few seconds, and this port is not even the drive's own.
        ({"aer": ONE_CORRECTED}, False, "pcie_errors", TOLD, f"errors rose by 1 correctable at {PORT}; 0.0417 an hour"),
        # Nobody counts what it did itself about its heat.
        ({"temperature_c": 77}, False, "temperature", UNKNOWN, "it reached 77 °C, its own limit is 77 °C"),
        (THROTTLED, True, "throttled", TOLD, "2 s more"),
        # These are the drive's own: it fails by its health criteria, and its figures are as good as ever.
        ({"media_errors": 3}, False, "media_errors", TOLD, "it counted 3 more media errors (0 to 3)"),
        ({"critical_warning": 4}, False, "health", TOLD, "it warns: its reliability is degraded"),
        ({"critical_warning": 1}, False, "health", TOLD, "it warns: the spare is below its threshold"),
    ],
    ids=["one corrected error", "hot for an instant", "throttled once", "media errors", "reliability", "spare"],
)
def test_what_passes_disturbs_at_most_the_round_in_which_it_was(change, disturbs_a_round, cause, level, message):
    start = {**BEFORE, "aer": {DRIVE: NONE, PORT: NONE}}
    before, after = (base.parse(Environment, {**start, **some}) for some in ({}, change))
    assert bool(sampler.disturbed(before, before, after)) == disturbs_a_round
    assert drive_environment.changed(before, before, after) == []
    (found,) = drive_environment.remarks(before, before, after, None, 24 * 3600.0)
    assert (found.cause, found.level) == (cause, level) and message in found.message
