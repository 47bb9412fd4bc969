# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import fio_result, fio_sanity, histogram
from ansible_collections.ssdlab.fleet.tests.fixtures.mutations import replaced

JOB = """[global]
ioengine=libaio
direct=1
filename=/dev/nvme0n1
randseed=7
lat_percentiles=1

[cell]
rw=randrw
rwmixread=65
bs=4096
iodepth=8
numjobs=2
size=67108864
time_based=1
runtime=2
"""


def side(ios, body_ns=50_176, max_ns=31_844_636):
    """A direction as fio 3.33 tells it, of 2,006 ms: one I/O in a hundred is as long as the longest."""
    tail = -(-ios // 100) if ios else 0
    counts = {3000: 1, body_ns: ios - 1 - tail, max_ns: tail} if ios > 2 else {max_ns: ios}
    bins = histogram.merge({histogram.value_of(histogram.bin_of(ns)): count} for ns, count in counts.items() if count)
    mean = sum(ns * count for ns, count in counts.items()) / ios if ios else 0.0
    latency = {"min": min(counts), "max": max_ns, "mean": mean, "stddev": 0.0, "N": ios}
    if ios:
        latency["bins"] = {str(value): count for value, count in bins.items()}
    return {
        "total_ios": ios,
        "io_bytes": ios * 4096,
        "runtime": 2006,
        "iops": ios / 2.006,
        "bw_bytes": int(ios * 4096 / 2.006),
        "short_ios": 0,
        "drop_ios": 0,
        "lat_ns": latency,
    }


GOOD = {
    "global options": {"ioengine": "libaio", "direct": "1", "filename": "/dev/nvme0n1", "randseed": "7"},
    "jobs": [
        {
            "jobname": "cell",
            "usr_cpu": 1.0,
            "sys_cpu": 2.0,
            "job options": {
                "rw": "randrw",
                "rwmixread": "65",
                "bs": "4096",
                "iodepth": "8",
                "numjobs": "2",
                "size": "67108864",
                "runtime": "2",
            },
            "read": side(5186),
            "write": side(2792),
        }
    ],
}
CELL = ("jobs", 0)


def contradictions(result, job, runtime_s=None):
    return fio_sanity.contradictions(fio_result.parse(result), job, runtime_s)


def falsified(*path_and_value):
    return replaced(GOOD, *path_and_value)


def test_a_true_result_is_believed():
    assert contradictions(GOOD, JOB, 2) == []


@pytest.mark.parametrize(
    "result, says",
    [
        (falsified(*CELL, "write", "io_bytes", 2792 * 8192), "are not 2792 I/Os of 4096"),
        (falsified(*CELL, "write", "total_ios", 4000), "are not 4000 I/Os of 4096"),
        (falsified(*CELL, "write", "iops", 2800.0), "its counts give 1392"),
        (falsified(*CELL, "read", "bw_bytes", 21_000_000), "bw_bytes 21000000, but its counts give"),
        (falsified(*CELL, "write", "iops", float("nan")), "infinite or not a number"),
        (falsified(*CELL, "write", "iops", -1.0), "negative"),
        (falsified(*CELL, "read", "lat_ns", "mean", float("inf")), "infinite or not a number"),
        (falsified(*CELL, "read", "lat_ns", "bins", {"50432": 5185}), "counts 5185 I/Os of 5186"),
        (falsified(*CELL, "read", "lat_ns", "bins", {"50433": 5186}), "50433 ns is not the middle of a bin"),
        (falsified(*CELL, "read", "lat_ns", "bins", {"50432": -1}), "-1 I/Os in the bin"),
        (
            falsified(*CELL, "read", "lat_ns", {k: v for k, v in side(5186)["lat_ns"].items() if k != "bins"}),
            "no latency histogram",
        ),
        (falsified(*CELL, "read", "short_ios", 3), "3 I/Os were short"),
        (falsified(*CELL, "write", "drop_ios", 1), "1 I/Os were dropped"),
        ({**GOOD, "jobs": GOOD["jobs"] * 2}, "fio reports the jobs cell, cell"),
        (falsified(*CELL, "jobname", "other"), "fio reports the jobs other"),
        (falsified("global options", "filename", "/dev/sda"), "filename=/dev/sda, not /dev/nvme0n1"),
        (falsified("global options", "ioengine", "null"), "ioengine=null"),
        (falsified("global options", "hipri", "1"), "hipri=1, not None"),
        (falsified(*CELL, "job options", "bs", "131072"), "bs=131072"),
        (falsified(*CELL, "job options", "iodepth", "1"), "iodepth=1"),
        (falsified("global options", "direct", "0"), "direct=0"),
        (falsified(*CELL, "job options", "rate_iops", "100"), "rate_iops=100, not None"),
        (falsified(*CELL, "job options", {}), "rw=None"),
    ],
)
def test_a_falsified_result_is_refused(result, says):
    found = contradictions(result, JOB, 2)
    assert found and says in found[0]


@pytest.mark.parametrize("more, fine", [(0, True), (16, True), (17, False), (-1, False)])
def test_ios_in_flight_when_a_ramp_ends_count_by_their_end_alone(more, fine):
    """fio counts them when they are submitted, their bytes and latency when they end: 8 x 2 may be in flight."""
    result = copy.deepcopy(GOOD)
    result["jobs"][0]["job options"]["ramp_time"] = "1"
    result["jobs"][0]["write"]["total_ios"] -= more
    assert (contradictions(result, JOB + "ramp_time=1\n", 2) == []) == fine


@pytest.mark.parametrize(
    "asked_s, fine", [(2, True), (1.7, False), (1.76, True), (2.04, True), (2.06, False), (60, False)]
)
def test_a_cell_lasts_as_long_as_asked(asked_s, fine):
    """2.006 s were told, with a longest I/O of 32 ms."""
    assert (contradictions(GOOD, JOB, asked_s) == []) == fine


def test_a_slow_drive_may_drain_its_queue():
    """1,058 ms for 1 s, at depth 32 and 150 ms an I/O."""
    slow = {**side(226, 150_000_000, 160_000_000), "runtime": 1358}
    slow.update(iops=226 / 1.358, bw_bytes=int(226 * 4096 / 1.358))
    job = JOB.replace("randrw", "randwrite").replace("rwmixread=65\n", "")
    options = {key: value for key, value in GOOD["jobs"][0]["job options"].items() if key != "rwmixread"}
    result = {
        **GOOD,
        "jobs": [{**GOOD["jobs"][0], "job options": {**options, "rw": "randwrite"}, "read": side(0), "write": slow}],
    }
    assert contradictions(result, job, 1) == []


def test_of_a_slow_cell_one_io_a_second_more_is_another_figure():
    slow = {**side(4, 500_000_000, 510_000_000), "iops": 4 / 2.006 + 0.9}
    job = JOB.replace("randrw", "randwrite").replace("rwmixread=65\n", "")
    options = {key: value for key, value in GOOD["jobs"][0]["job options"].items() if key != "rwmixread"}
    cell = {**GOOD["jobs"][0], "job options": {**options, "rw": "randwrite"}, "read": side(0)}
    assert contradictions({**GOOD, "jobs": [{**cell, "write": dict(slow, iops=4 / 2.006)}]}, job, 2) == []
    found = contradictions({**GOOD, "jobs": [{**cell, "write": slow}]}, job, 2)
    assert len(found) == 1 and "iops 3, but its counts give 2" in found[0]


def test_a_fill_of_one_block_tells_no_rate():
    one = {**side(1), "runtime": 0, "iops": 0.0, "bw_bytes": 0}
    job = "[fill]\nfilename=/dev/x\nrw=write\nbs=4096\nsize=4096\nloops=1\n"
    options = {"filename": "/dev/x", "rw": "write", "bs": "4096", "size": "4096", "loops": "1"}
    entry = {"jobname": "fill", "job options": options, "usr_cpu": 1.0, "sys_cpu": 2.0}
    result = {"jobs": [{**entry, "read": side(0), "write": one}]}
    assert contradictions(result, job) == []


@given(
    st.sampled_from(["read", "write"]),
    st.sampled_from(["io_bytes", "bw_bytes", "iops", "total_ios", "runtime"]),
    st.floats(1.15, 1e6),
    st.booleans(),
)
@settings(deadline=None)
def test_no_figure_can_be_changed_alone(direction, key, factor, up):
    value = GOOD["jobs"][0][direction][key]
    changed = value * factor if up else value / factor
    assert contradictions(falsified(*CELL, direction, key, type(value)(changed)), JOB, 2)


@pytest.mark.parametrize(
    "ramp, more, fine",
    [
        ("", 1, False),
        ("ramp_time=1\n", 1, True),
        ("ramp_time=1\n", 16, True),
        ("ramp_time=1\n", 17, False),
        ("ramp_time=1\n", 0.5, False),
    ],
)
def test_an_io_astride_the_end_of_the_ramp_may_count_for_its_bytes_alone(ramp, more, fine):
    """fio 3.33: 53,956,608 bytes of 13,172 I/Os of 4 KiB, after a ramp at depth 4."""
    result = copy.deepcopy(GOOD)
    job = result["jobs"][0]
    job["read"]["io_bytes"] += int(more * 4096)
    job["job options"].update({"ramp_time": "1"} if ramp else {})
    assert bool(contradictions(result, JOB + ramp, 2)) != fine


MIX = "512/20:4096/60:16384/20"
MIX_JOB = JOB.replace("bs=4096", f"bssplit={MIX}\nba=4096\nrandom_distribution=zoned:50/5:50/95")


def mixed(**changes):
    """GOOD with I/Os of three sizes: 5,836.8 bytes on average."""
    result = copy.deepcopy(GOOD)
    (job,) = result["jobs"]
    job["job options"].pop("bs")
    job["job options"].update({"bssplit": MIX, "ba": "4096", "random_distribution": "zoned:50/5:50/95", **changes})
    for name in ("read", "write"):
        side_ = job[name]
        side_["io_bytes"] = round(side_["total_ios"] * 5836.8 / 512) * 512
        side_["bw_bytes"] = int(side_["io_bytes"] / 2.006)
    return result


def test_a_mix_is_believed_by_its_shares():
    assert contradictions(mixed(), MIX_JOB, 2) == []
    assert "not" in contradictions(GOOD, MIX_JOB, 2)[0], "all of 4 KiB, and said to be so"
    small = mixed()
    small["jobs"][0]["read"]["io_bytes"] = 5186 * 4096
    small["jobs"][0]["read"]["bw_bytes"] = int(5186 * 4096 / 2.006)
    assert "are not 5186 I/Os of 5837 on average" in contradictions(small, MIX_JOB, 2)[0]


@pytest.mark.parametrize("option", ["bssplit", "ba", "random_distribution"])
def test_another_mix_than_asked_is_none(option):
    assert f"fio worked with {option}=1, not" in contradictions(mixed(**{option: "1"}), MIX_JOB, 2)[0]


def test_an_idle_time_that_began_is_waited_for():
    job = JOB.replace("runtime=2", "runtime=2\nthinktime=3s\nthinktime_iotime=1s")
    result = copy.deepcopy(GOOD)
    result["jobs"][0]["job options"].update(thinktime="3s", thinktime_iotime="1s")
    for name in ("read", "write"):
        result["jobs"][0][name].update(runtime=5006, iops=result["jobs"][0][name]["total_ios"] / 5.006)
        result["jobs"][0][name]["bw_bytes"] = int(result["jobs"][0][name]["io_bytes"] / 5.006)
    assert contradictions(result, job, 2) == []
    for key in ("thinktime", "thinktime_iotime"):
        result["jobs"][0]["job options"].pop(key)
    assert "ran for 5.01 s of 2 s" in contradictions(result, JOB, 2)[0]
