# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What fio reports is believed only when every check holds, and its figures are what it did."""

from __future__ import annotations

import dataclasses
import errno
import json
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import fio, fio_result
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.fio_result import (
    FioResult,
    Moments,
    pooled,
)
from ansible_collections.ssdlab.fleet.tests.fixtures.mutations import replaced


def side(ios=1000, runtime_ms=60000, bytes_each=4096):
    bins = {"80384": ios - 1, "897024": 1} if ios else {}
    return {
        "total_ios": ios,
        "io_bytes": ios * bytes_each,
        "runtime": runtime_ms if ios else 0,
        "iops": ios / 60.0,
        "bw_bytes": ios * bytes_each // 60,
        "lat_ns": {"min": 80000, "max": 900000, "mean": 50000.0, "stddev": 9000.0, "bins": bins},
        "clat_ns": {},
    }


GOOD = {
    "fio version": "fio-3.33",
    "global options": {"filename": "/dev/nvme0n1"},
    "jobs": [{"jobname": "cell", "error": 0, "usr_cpu": 1.0, "sys_cpu": 2.0, "read": side(0), "write": side()}],
}


def changed(*path_and_value):
    return fio_result.parse(replaced(GOOD, *path_and_value) if path_and_value else GOOD)


def job(**sides):
    """A reporting group with these sides."""
    (found,) = fio_result.parse({"jobs": [{"jobname": "cell", "usr_cpu": 0.0, "sys_cpu": 0.0, **sides}]}).jobs
    return found


def test_a_good_result_is_accepted():
    assert fio_result.result_problems(0, changed(), "/dev/nvme0n1", {"write": 1.0}, runtime_s=60) == []


@pytest.mark.parametrize(
    "rc, result, asked, message",
    [
        (1, changed(), {}, "exit code 1"),
        (-9, changed(), {}, "exit code -9"),
        (0, changed("jobs", 0, "error", 5), {}, "error 5"),
        (0, changed("jobs", []), {}, "no job"),
        (0, changed("jobs", 0, "write", side(0)), {}, "no write I/O"),
        (0, changed(), {"directions": {"read": 0.5, "write": 0.5}}, "no read I/O"),
        (0, changed("jobs", 0, "write", side(0)), {"directions": {"read": 0.95, "write": 0.05}}, "no write I/O"),
        (0, changed("jobs", 0, "write", side(runtime_ms=58700)), {}, "ran for 58.70 s of 60 s"),
        (0, changed("global options", {"filename": "/dev/nvme0n10"}), {}, "not /dev/nvme0n1"),
        (0, changed("global options", {}), {}, "no file"),
        (0, changed(), {"size_bytes": 4096001}, "4096000 of 4096001 bytes"),
    ],
)
def test_a_result_is_believed_only_when_every_check_holds(rc, result, asked, message):
    (found,) = [
        text
        for text in fio_result.result_problems(
            rc, result, "/dev/nvme0n1", **dict({"directions": {"write": 1.0}, "runtime_s": 60}, **asked)
        )
        if message in text
    ]
    assert found


@pytest.mark.parametrize(
    "error, of_drive",
    [(0, False), (errno.EIO, True), (errno.ENODATA, True), (errno.ETIMEDOUT, True), (errno.EREMOTEIO, True)]
    # The host's or the path's: no memory, no room, no transport, a reservation.
    + [(number, False) for number in (errno.ENOMEM, errno.ENOSPC, errno.ENOLINK, errno.EBADE, errno.EINVAL)],
)
def test_an_error_is_the_drives_where_the_kernel_says_so(error, of_drive):
    assert fio_result.is_of_drive(changed("jobs", 0, "error", error)) is of_drive


@pytest.mark.parametrize(
    "ios, share, believed",
    [
        (20, 0.05, True),
        (400, 0.05, True),
        (405, 0.05, False),
        (8, 0.9, True),
        (10, 0.9, False),
        (1, 1.0, False),
        (0, 0.5, False),
    ],
)
def test_a_direction_of_a_mix_may_have_no_io_by_chance(ios, share, believed):
    """Of 20 I/Os with 5 % writes a third of all cells have no write."""
    result = FioResult({"filename": "/dev/nvme0n1"}, [job(read=dict(side(), total_ios=ios), write=side(0))])
    found = fio_result.result_problems(0, result, "/dev/nvme0n1", {"write": share, "read": 1 - share})
    assert (not [text for text in found if "no write" in text]) == believed


@pytest.mark.parametrize(
    "text", [json.dumps(GOOD), "fio: a warning\n" + json.dumps(GOOD), "one\ntwo\n" + json.dumps(GOOD)]
)
def test_text_may_precede_the_result(text):
    assert fio_result.load(text) == GOOD


@pytest.mark.parametrize("text", ["", "fio: killed", "{", "[]", '{"jobs": 3}', "{}" * 3])
def test_no_result_is_an_error(text):
    with pytest.raises(fio.FioError, match="JSON"):
        fio_result.load(text)


def test_metrics_of_a_mix_weigh_latency_by_ios():
    both = job(read=side(3000), write=side(1000))
    read, write = (fio_result.figures(both, name) for name in ("read", "write"))
    read = dataclasses.replace(read, mean_latency_us=10.0)
    found = fio_result.metrics(read, write)
    assert found["mean_latency_us"] == pytest.approx((3000 * 10 + 1000 * 50) / 4000)
    assert found["iops"] == read.iops + write.iops
    assert "read_iops" not in fio_result.metrics(None, write)


def test_a_percentile_with_too_few_ios_beyond_it_is_null():
    percentiles = fio_result.figures(job(write=side(1000)), "write").percentiles_us
    assert (percentiles["99"], percentiles["99.9"]) == (80.384, None)
    assert fio_result.histograms(job(read=side(0), write=side(10))) == {"write": {80384: 9, 897024: 1}}


LATENCIES = st.lists(st.integers(0, 16 * 10**9), min_size=1, max_size=50)


def moments(values):
    return Moments(len(values), statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0)


@given(st.lists(LATENCIES, min_size=1, max_size=5))
def test_groups_pooled_are_one_group_of_all(groups):
    whole = moments([value for group in groups for value in group])
    found = pooled([*map(moments, groups), Moments(0, 0.0, 0.0)])
    assert found == pytest.approx(whole, rel=1e-9, abs=1e-3)


def test_of_nothing_there_is_nothing():
    assert pooled([]) == Moments(0, 0.0, 0.0)
