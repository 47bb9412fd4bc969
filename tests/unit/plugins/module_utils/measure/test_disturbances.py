# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import disturbances
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.disturbances import DISTURBS, TOLD, UNKNOWN
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.validity_limits import Limits
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.measurement import Seen
from ansible_collections.ssdlab.fleet.tests.fixtures import planned

MIB = 1 << 20
CELL = {"threads": 4, "queue_depth": 8, "runtime_s": 60}
# A healthy cell of 60 s: 1 GiB read, 1 GiB written.
SEEN = {
    "fio_bytes": {"read": 1024 * MIB, "write": 1024 * MIB},
    "process_bytes": {"read": 1024 * MIB, "write": 1024 * MIB},
    "kernel_bytes": {"read": 1024 * MIB, "write": 1024 * MIB, "discard": 0},
    "merged_share": 0.0,
    "run_s": 60.0,
    "mean_latency_s": 0.0001,
    "queued": 31.9,
    "in_flight": 30.0,
    "limits": {"nr_requests": 1023, "hw_queues": 8, "device_depth": None},
    "fio_cpu": 0.3,
    "cpus": 8,
    "cpu_idle": 0.8,
    "cpu_steal": 0.0,
    "throttled_s": 0.0,
    "longest_gap_s": 0.01,
    "waited_s": 1.0,
    "elapsed_s": 60.4,
    "idle_s": 0.4,
    "suspended_s": 0.0,
    "between_bytes": {"write": 0, "discard": 0},
    "beside_bytes": None,
    "clock_jump_s": 0.001,
}
SATA = {"nr_requests": 64, "hw_queues": 1, "device_depth": 32}


def found(cell=None, strict=False, terms=Limits(), **seen):
    return [
        (item.cause, item.level)
        for item in disturbances.find(
            planned.cell(**{**CELL, **(cell or {})}), base.parse(Seen, {**SEEN, **seen}), terms, strict
        )
    ]


def kernel(read=1024, write=1024, discard=0):
    """kernel_bytes of so many MiB."""
    return {"kernel_bytes": {"read": int(read * MIB), "write": int(write * MIB), "discard": int(discard * MIB)}}


@pytest.mark.parametrize(
    "cell, seen",
    [
        ({}, {}),
        ({}, {"limits": {"nr_requests": None, "hw_queues": None, "device_depth": None}}),
        # A label that is updated, and nobody counts.
        ({}, {"between_bytes": {"write": 64 << 10, "discard": 0}}),
        ({}, {"between_bytes": None}),
        # A probe of another namespace.
        ({}, {"beside_bytes": 8 * MIB}),
        # Eight probes of a slow drive, and 1 % of a fast one.
        ({}, {"fio_bytes": {"read": 0, "write": 2 * MIB}, **kernel(8, 2)}),
        ({}, kernel(1024 + 20, 1024 + 20)),
        # The ramp is fio's own; its JSON leaves it out.
        ({"ramp_s": 30}, {**kernel(1536, 1536), "process_bytes": {"read": 1536 * MIB, "write": 1537 * MIB}}),
        # 0.845 of depth 1, of which fio's own work is the rest; at depth 1 on each of several threads too.
        ({"threads": 1, "queue_depth": 1}, {"queued": 0.845, "in_flight": 0.6, "fio_cpu": 0.2}),
        ({"queue_depth": 1}, {"queued": 3.38, "in_flight": 2.4, "fio_cpu": 0.2}),
        # Queues that the test leaves open.
        ({"rate_iops": 1000}, {"queued": 0.1, "in_flight": 0.1}),
        ({"batch": 4}, {"queued": 20.0, "in_flight": 4.0}),
        # An I/O of 10 s: the edges of 60 s are a sixth.
        ({}, {"queued": 24.0, "in_flight": 24.0, "mean_latency_s": 10.0}),
        # SATA has 32 tags: with 128 asked it is full at 32, however fio counts.
        ({"queue_depth": 32}, {"limits": SATA, "queued": 90.0, "in_flight": 31.0}),
        ({}, {"limits": {"nr_requests": 31, "hw_queues": 1, "device_depth": 31}}),
        # The kernel merges neighbours, so that fewer are in flight.
        ({}, {"merged_share": 0.9, "in_flight": 3.0}),
        ({}, {"in_flight": None}),
        ({}, {"throttled_s": None, "idle_s": None, "clock_jump_s": 0.0}),
        (
            {},
            {
                "fio_cpu": 0.94,
                "cpu_steal": 0.04,
                "throttled_s": 10.0,
                "idle_s": 4.9,
                "suspended_s": 0.9,
                "clock_jump_s": -1.9,
            },
        ),
    ],
)
def test_what_is_well_is_silent(cell, seen):
    assert found(cell, **seen) == []


@pytest.mark.parametrize(
    "cell, seen, cause",
    [
        ({}, kernel(1024 + 21, 1024), "other_io"),
        ({}, kernel(1024, 1024 + 21), "other_io"),
        ({}, kernel(discard=0.001), "discarded"),
        ({}, {"between_bytes": {"write": 0, "discard": 512}}, "discarded"),
        ({}, {"between_bytes": {"write": 1 << 20, "discard": 0}}, "other_io"),
        ({}, {"beside_bytes": 1024 * MIB}, "other_io"),
        # Another writer at half the load, of a slow drive.
        ({}, {"fio_bytes": {"read": 0, "write": 2 * MIB}, **kernel(0, 3)}, "other_io"),
        ({}, {"fio_bytes": {"read": 0, "write": 2 * MIB}, **kernel(8.1, 2)}, "other_io"),
        (
            {"ramp_s": 30},
            {**kernel(1536, 1600), "process_bytes": {"read": 1536 * MIB, "write": 1536 * MIB}},
            "other_io",
        ),
        # Half of the asked depth in every row; the queue's own limits; nothing at the drive though fio says so; a clock
        # that lies.
        ({}, {"queued": 16.0}, "queue_not_filled"),
        ({"threads": 1, "queue_depth": 1}, {"queued": 0.6, "fio_cpu": 0.2, "in_flight": 0.5}, "queue_not_filled"),
        ({}, {"limits": {"nr_requests": 4, "hw_queues": 1, "device_depth": None}}, "queue_not_filled"),
        ({}, {"limits": {"nr_requests": 256, "hw_queues": 1, "device_depth": 1}}, "queue_not_filled"),
        ({}, {"limits": {"nr_requests": 8, "hw_queues": 1, "device_depth": 32}}, "queue_not_filled"),
        ({}, {"in_flight": 8.0}, "queue_not_filled"),
        ({}, {"queued": 34.0}, "queue_not_filled"),
        ({}, {"fio_cpu": 0.96}, "host_limited"),
        ({}, {"cpu_steal": 0.06}, "host_limited"),
        ({}, {"throttled_s": 13.0}, "host_limited"),
        ({}, {"cpu_idle": 0.0, "in_flight": 8.0}, "host_limited"),
        ({}, {"idle_s": 5.1}, "idle_gap"),
        ({}, {"suspended_s": 1.5}, "suspended"),
    ],
)
def test_each_cause_disturbs(cell, seen, cause):
    assert found(cell, **seen) == [(cause, DISTURBS)]


@pytest.mark.parametrize(
    "cell, seen, cause",
    [
        ({}, {"kernel_bytes": None, "merged_share": None, "in_flight": None}, "other_io"),
        # Passthrough, or counting that was off for a while.
        ({}, {**kernel(0, 0), "in_flight": 0.0}, "other_io"),
        ({}, kernel(1024, 500), "other_io"),
        ({"ramp_s": 5}, {"process_bytes": None}, "other_io"),
        ({}, {"cpu_idle": None, "cpu_steal": None}, "host_limited"),
    ],
)
def test_what_nobody_counts_is_unknown_and_disturbs_only_where_the_inventory_says_so(cell, seen, cause):
    assert found(cell, **seen) == [(cause, UNKNOWN)]
    assert found(cell, strict=True, **seen) == [(cause, DISTURBS)]


def test_a_jump_of_the_clock_and_busy_cpus_are_told():
    assert found(clock_jump_s=-3600.0) == [("clock_jump", TOLD)] == found(clock_jump_s=-3600.0, strict=True)
    assert found(cpu_idle=0.0) == [("busy_cpus", TOLD)]


def test_an_io_of_more_than_ten_seconds_is_told():
    assert found(longest_s=9.9) == []
    assert found(longest_s=10.1) == [("stalled", TOLD)]
    assert found(longest_s=10.1, terms=Limits(stall_s=20.0)) == []


def test_our_own_trims_are_no_discards_of_somebody_else():
    assert found(**kernel(discard=5), trimmed_bytes=5 * MIB) == []
    assert found(**kernel(discard=6), trimmed_bytes=5 * MIB) == [("discarded", DISTURBS)]


def test_each_stream_without_a_rate_has_to_fill_its_own_queue():
    reads = {"name": "reads", "threads": 2, "queue_depth": 8}
    log = {"name": "log", "threads": 1, "queue_depth": 1, "rate_iops": 10}
    cell = {"jobs": [reads, log]}
    full = {"reads": {"queued": 15.5, "mean_latency_s": 0.001}, "log": {"queued": 0.01, "mean_latency_s": 0.001}}
    short = {**full, "reads": {"queued": 9.0, "mean_latency_s": 0.001}}
    # The whole is less than the threads of both times the greatest depth, 24, as asked.
    assert found(cell, streams=full, queued=15.5, in_flight=15.0) == []
    assert found(cell, streams=short, queued=9.0, in_flight=9.0) == [("queue_not_filled", DISTURBS)]
    both = {"jobs": [reads, {**log, "rate_iops": None}]}
    assert found(both, streams=full, queued=15.5, in_flight=15.0) == [("queue_not_filled", DISTURBS)]


def test_limits_can_be_set():
    assert found(terms=Limits(idle_gap_s=60), idle_s=30.0) == []
    assert found(terms=Limits(other_io_share=0.1), **kernel(1100, 1024)) == []


# Micron's blog on the P420m, part 2: (outstanding I/Os, IOPS, mean latency in µs) at device depth 31 and 255. IOPS x
# latency are half of the first column.
BLOG = [
    (2, 33279, 29),
    (4, 51586, 38),
    (8, 61364, 65),
    (16, 58586, 136),
    (32, 57111, 279),
    (64, 54854, 583),
    (2, 32282, 30),
    (4, 52848, 37),
    (8, 80433, 49),
    (16, 80117, 99),
    (32, 75266, 212),
    (64, 71527, 447),
]


@pytest.mark.parametrize("outstanding, iops, latency_us", BLOG)
def test_tables_with_half_of_the_asked_depth_are_refused(outstanding, iops, latency_us):
    queued = iops * latency_us / 1e6
    seen = {"queued": queued, "mean_latency_s": latency_us / 1e6, "in_flight": queued, "run_s": 900.0}
    assert found({"threads": 1, "queue_depth": outstanding}, **seen) == [("queue_not_filled", DISTURBS)]
    assert found({"threads": 1, "queue_depth": outstanding // 2}, **seen) == []


def test_a_host_that_cannot_make_the_load():
    """The brief's configurations A and B: the same drive and test, B flat and lower from its first minute on, as its
    threads never wait for the drive.
    """
    assert found(fio_cpu=0.6) == []
    assert found(fio_cpu=1.0, queued=31.9, in_flight=20.0) == [("host_limited", DISTURBS)]


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        ({}, "use more threads or larger blocks"),
        # As many as there are CPUs, or as divide its I/Os.
        ({"auto_threads": True, "threads": 8, "queue_depth": 4}, "use more CPUs than 8 for fio or larger blocks"),
        ({"auto_threads": True, "threads": 6, "queue_depth": 5}, "use more CPUs than 8 for fio or larger blocks"),
        ({"auto_threads": True}, "use another run, which chooses their number again, or larger blocks"),
    ],
)
def test_a_user_is_told_what_gives_fio_more_time(cell, says):
    busy = base.parse(Seen, {**SEEN, "fio_cpu": 0.97, "in_flight": 20.0})
    (told,) = disturbances.thread_limit(planned.cell(**{**CELL, **cell}), busy, Limits())
    assert told.message.endswith(f": this measures the host; {says}")


def test_a_thread_that_polls_is_always_busy_so_nobody_can_tell():
    """Its CPU time shows nothing; a queue that was short still does, and what is unknown may disturb."""
    assert found({"polled": True}, fio_cpu=1.0) == [("host_limited", UNKNOWN)]
    assert found({"polled": True}, strict=True, fio_cpu=1.0) == [("host_limited", DISTURBS)]
    assert found({"polled": True}, fio_cpu=0.6) == []
    short = found({"polled": True}, fio_cpu=1.0, queued=20.0, cpu_idle=0.0)
    assert short == [("host_limited", UNKNOWN), ("host_limited", DISTURBS)]


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        # A third of the time busy: 32 in flight are 10.7 on average; with the ramp, busy throughout, half of the time.
        ({"queued": 10.6, "in_flight": 15.0}, []),
        ({"queued": 8.0, "in_flight": 15.0}, [(disturbances.NOT_FILLED, DISTURBS)]),
        ({"queued": 10.6, "in_flight": 3.0}, [(disturbances.NOT_FILLED, DISTURBS)]),
        # More than its share: the drive did not idle.
        ({"queued": 14.0, "in_flight": 15.0}, [(disturbances.NOT_FILLED, DISTURBS)]),
    ],
)
def test_between_bursts_the_queue_is_empty_as_asked(seen, expected):
    burst = {"burst_s": 5, "idle_s": 10, "runtime_s": 60, "ramp_s": 15}
    ramped = {"process_bytes": {"read": 1536 * MIB, "write": 1536 * MIB}, **kernel(1536, 1536)}
    busy = {"queued": seen["queued"], "in_flight": seen["in_flight"] * 25 / 37.5}
    assert found(burst, **ramped, **busy) == expected


def members(**told):
    """member_bytes of so many MiB read and written by each."""
    return {
        "member_bytes": {
            name: {"read": int(read * MIB), "write": int(write * MIB), "discard": 0}
            for name, (read, write) in told.items()
        }
    }


@pytest.mark.parametrize(
    ("seen", "cause"),
    [
        (members(sda=(512, 512), sdb=(512, 512)), []),
        # Random I/O is not spread to the byte, and udev looks at drives too.
        (members(sda=(500, 530), sdb=(530, 495)), []),
        (members(sda=(512, 512), sdb=(500, 400)), [("other_io", DISTURBS)]),
        (members(sda=(512, 512), sdb=(512, 612)), [("other_io", DISTURBS)]),
        (members(sda=(900, 900), sdb=(124, 124)), [("other_io", DISTURBS)]),
        ({"member_bytes": {"sda": None, "sdb": {"read": 0, "write": 0, "discard": 0}}}, [("other_io", UNKNOWN)]),
    ],
    ids=["halves", "nearly", "did not reach one", "somebody else", "not striped", "not counted"],
)
def test_the_io_of_an_array_is_that_of_its_drives(seen, cause):
    assert found(**seen) == cause


def test_a_short_cell_may_be_uneven():
    small = {"fio_bytes": {"read": 0, "write": 4 * MIB}, **kernel(0, 4)}
    assert found(**small, **members(sda=(0, 3.5), sdb=(0, 0.5))) == []
