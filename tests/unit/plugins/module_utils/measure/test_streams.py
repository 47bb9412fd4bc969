# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Results of several streams: added up, told apart, and held to their jobs."""

from __future__ import annotations

import copy
import math

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import fio_result, fio_sanity, histogram, io_pattern
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.tests.fixtures import planned

JOB = """[global]
direct=1
lat_percentiles=1

[c.reads]
new_group=1
rw=randread
bs=4096
iodepth=4
size=1048576
runtime=2

[c.log]
new_group=1
rw=write
bs=4096
iodepth=1
numjobs=2
fdatasync=2
size=1048576
runtime=2

[c.trims]
new_group=1
rw=trim
bs=65536
iodepth=1
size=1048576
runtime=2
"""


def latency(*counts):
    """Histogram, smallest, largest and mean of (ns, how many)."""
    bins = {histogram.value_of(histogram.bin_of(ns)): count for ns, count in counts}
    total = sum(bins.values())
    mean = sum(value * count for value, count in bins.items()) / total
    return {
        "min": min(bins),
        "max": max(bins),
        "mean": mean,
        "stddev": math.sqrt(sum((value - mean) ** 2 * count for value, count in bins.items()) / max(1, total - 1)),
        "N": total,
        "bins": {str(value): count for value, count in bins.items()},
    }


EMPTY = {
    "total_ios": 0,
    "io_bytes": 0,
    "bw_bytes": 0,
    "iops": 0.0,
    "runtime": 0,
    "lat_ns": {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0},
}


def side(size, *counts):
    total = sum(count for _ns, count in counts)
    return {
        "total_ios": total,
        "io_bytes": total * size,
        "bw_bytes": total * size // 2,
        "iops": total / 2,
        "runtime": 2000,
        "lat_ns": latency(*counts),
    }


def job(name, cpu, **sides):
    options = fio_sanity.sections(JOB)[name]
    flush = {"total_ios": 0, "lat_ns": {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0}}
    empty = {"read": EMPTY, "write": EMPTY, "trim": EMPTY, "sync": flush}
    return {"jobname": name, "job options": options, "usr_cpu": cpu, "sys_cpu": cpu, **empty, **sides}


@pytest.fixture
def result():
    flushes = {"total_ios": 0, "lat_ns": latency((500_000, 50))}
    return {
        "global options": fio_sanity.sections(JOB)["global"],
        "jobs": [
            job("c.reads", 5.0, read=side(4096, (100_000, 900), (1_000_000, 100))),
            job("c.log", 20.0, write=side(4096, (50_000, 100)), sync=flushes),
            job("c.trims", 1.0, trim=side(65536, (200_000, 40))),
        ],
    }


def test_a_result_that_is_true_of_its_streams_contradicts_nothing(result):
    assert fio_sanity.contradictions(fio_result.parse(result), JOB, 2) == []


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda jobs: jobs.pop(), "fio reports the jobs c.reads, c.log, the job file has"),
        (lambda jobs: jobs[2]["trim"].update(total_ios=41, io_bytes=41 * 65536, iops=20.5, bw_bytes=41 * 32768), "41"),
        (lambda jobs: jobs[1]["sync"].update(lat_ns=latency((500_000, 40))), "40 flushes for 100 writes, not 50"),
        (lambda jobs: jobs[0].update(sync={"total_ios": 0, "lat_ns": latency((9, 7))}), "7 flushes for 0 writes"),
        (lambda jobs: jobs[1]["job options"].pop("fdatasync"), "fio worked with fdatasync=None, not 2"),
        (lambda jobs: jobs[1]["job options"].pop("new_group"), "fio worked with new_group=None, not 1"),
        (lambda jobs: jobs[2]["trim"].update(runtime=1000, iops=40.0, bw_bytes=40 * 65536), "ran for 1.00 s of 2 s"),
    ],
)
def test_what_cant_be_true_of_one_stream_is_found(result, change, text):
    told = copy.deepcopy(result)
    change(told["jobs"])
    assert text in "; ".join(fio_sanity.contradictions(fio_result.parse(told), JOB, 2))


def test_the_whole_is_the_sum_of_its_streams(result):
    parsed = fio_result.parse(result)
    whole = fio_result.combined(parsed)
    read, write, trim, sync = (fio_result.figures(whole, name) for name in fio_result.SIDES)
    assert (read.ios, write.ios, trim.ios, sync.ios) == (1000, 100, 40, 50)
    assert trim.bytes == 40 * 65536 and (sync.bytes, sync.iops) == (0, 25.0)
    assert whole.user_cpu_pct + whole.system_cpu_pct == 40.0
    metrics = fio_result.metrics(read, write, trim, sync)
    assert metrics["iops"] == read.iops + write.iops == 550
    assert metrics["trim_bandwidth"] == 40 * 32768 and "sync_bandwidth" not in metrics
    streams = fio_result.stream_figures(parsed)
    assert [sorted(base.sparse_json(stream)) for stream in streams] == [
        ["name", "read"],
        ["name", "sync", "write"],
        ["name", "trim"],
    ]
    assert fio_result.metrics(None, None, streams[2].trim) == {
        name: metrics[name] for name in metrics if name.startswith("trim_")
    }


def test_two_streams_of_one_direction_have_one_histogram(result):
    other = copy.deepcopy(result["jobs"][0])
    other["read"] = side(4096, (100_000, 100), (9_000_000, 10))
    whole = fio_result.combined(fio_result.parse({"jobs": [result["jobs"][0], other]}))
    read = fio_result.figures(whole, "read")
    assert (read.ios, read.iops) == (1110, 555.0) and read.max_latency_us > 8900
    assert sum(fio_result.histograms(whole)["read"].values()) == 1110
    alone = fio_result.parse({"jobs": [other]})
    assert fio_result.combined(alone) == alone.jobs[0]


def test_percentiles_of_trims_and_flushes_are_metrics_of_their_own(result):
    found = histogram.metrics(fio_result.histograms(fio_result.combined(fio_result.parse(result))), [1000])
    assert found["trim_ios"] == 40 and found["sync_p50_latency_us"] > 400
    # 1,100 reads and writes, 100 of them about as long as the limit; trims and flushes are no I/O of both directions.
    assert found["within_1ms_pct"] == pytest.approx(100 * 1000 / 1100)


def test_what_a_cell_does_is_what_its_streams_do():
    jobs = [
        {"read_pct": 100, "threads": 2, "queue_depth": 4},
        {"read_pct": 0, "threads": 1, "queue_depth": 1, "fdatasync": 1},
        {"read_pct": 0, "trim": True, "threads": 3, "queue_depth": 1},
    ]
    cell = planned.cell(read_pct=50, threads=6, queue_depth=4, jobs=jobs)
    assert io_pattern.asked_in_flight(cell) == 12 and io_pattern.sides(cell) == {"read", "write", "trim", "sync"}
    assert io_pattern.directions(cell) == {"read": 1.0, "write": 1.0, "trim": 1.0}
    plain = planned.cell(read_pct=65, threads=2, queue_depth=8)
    assert io_pattern.asked_in_flight(plain) == 16 and io_pattern.directions(plain) == {"read": 0.65, "write": 0.35}
    assert io_pattern.sides(plain) == {"read", "write"} and io_pattern.sides(cell.jobs[2]) == {"trim"}
