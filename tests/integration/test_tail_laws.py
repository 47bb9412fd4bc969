# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The laws between a latency histogram and the other figures hold for what the real fio tells, on however busy a
machine; one that is changed breaks one of them.
"""

from __future__ import annotations

import subprocess

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import fio_result, histogram, plausible
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.results import tail_laws

JOB = """[cell]
filename={path}
size=8388608
ioengine=libaio
thread=1
group_reporting=1
lat_percentiles=1
clat_percentiles=0
percentile_list=50:90:95:99:99.9:99.99:99.999:99.9999
time_based=1
runtime=1
bs=4096
"""
KINDS = {
    "one thread": "rw=randwrite\niodepth=1\nnumjobs=1\n",
    "a mix of threads": "rw=randrw\nrwmixread=65\niodepth=8\nnumjobs=4\n",
    "flushes": "rw=write\niodepth=1\nnumjobs=2\nfdatasync=4\n",
    "ramped": "rw=randread\niodepth=16\nnumjobs=2\nramp_time=1\n",
    "rate-limited": "rw=randread\niodepth=4\nnumjobs=1\nrate_iops=150\n",
}
ROUNDS = 3


@pytest.fixture(scope="module", params=KINDS, ids=str)
def told(request, tmp_path_factory):
    """(The job, fio's result of each round, I/Os that may be counted in part)."""
    folder = tmp_path_factory.mktemp("fio", numbered=True)
    (folder / "file").write_bytes(b"\1" * (8 << 20))
    job = JOB.format(path=folder / "file") + KINDS[request.param]
    (folder / "job.fio").write_text(job)
    results = []
    for _round in range(ROUNDS):
        argv = ["fio", "--output-format=json+", "--eta=never", str(folder / "job.fio")]
        results.append(fio_result.parse(subprocess.run(argv, check=True, capture_output=True, text=True).stdout))
    return job, results, ROUNDS * 32 if "ramp_time" in job else 0


def of_side(told_, name):
    """(The merged histogram, the rounds) of a side; None where it had no I/O."""
    _job, results, astride = told_
    sides = [figures for result in results for figures in [fio_result.figures(result, name)] if figures]
    bins = histogram.merged(
        fio_result.histograms(result)[name] for result in results if fio_result.figures(result, name)
    )
    return (bins, tail_laws.HistogramRounds(sides, astride)) if sides else None


def test_what_fio_tells_keeps_every_law(told):
    job, results, _astride = told
    # How long a job ran on a busy machine is not asked here.
    assert [plausible.contradictions(result, job) for result in results] == [[]] * ROUNDS
    found = {name: of_side(told, name) for name in fio_result.SIDES}
    assert any(found.values())
    for bins, rounds in filter(None, found.values()):
        assert tail_laws.contradictions(bins, rounds) == [] and not tail_laws.lacking(rounds)


def shifted(bins, share):
    """Latencies that many times as long."""
    counts = ({histogram.value_of(histogram.bin_of(int(ns * share))): count} for ns, count in bins.items())
    return histogram.merged(counts)


@pytest.mark.parametrize("share", [0.5, 0.9, 1.1, 2])
def test_other_latencies_break_a_law(told, share):
    for bins, rounds in filter(None, [of_side(told, name) for name in fio_result.SIDES]):
        assert tail_laws.contradictions(shifted(bins, share), rounds)


def test_a_tail_that_was_cut_off_breaks_a_law(told):
    """The slowest hundredth is made as fast as the median."""
    for bins, rounds in filter(None, [of_side(told, name) for name in fio_result.SIDES]):
        cut, left = dict(bins), max(1 + rounds.astride, histogram.ios(bins) // 20)
        middle = histogram.percentile_ns(bins, "50")
        for value in sorted(cut, reverse=True):
            if value > middle and left > 0:
                moved = min(left, cut[value])
                cut[value] -= moved
                cut[middle] += moved
                left -= moved
        cut = {value: count for value, count in cut.items() if count}
        assert histogram.ios(cut) == histogram.ios(bins) and tail_laws.contradictions(cut, rounds)
