# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tails and fills under the real fio: histograms of a window, and a fill that says it wrote all."""

from __future__ import annotations

import collections
import gzip
import json
import sys

import pytest
from host_jobs import ODD_SIZE, events, fill_step

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import histogram
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.validity_limits import Limits
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import render_plan as planning

# A busy machine disturbs rounds, which are then measured again and count in no window: here every round is to count.
OTHERS = dict.fromkeys(("steal_max", "waited_max", "host_excess_max"), 1)
LIMITS = Limits(queued_min=0, in_flight_min=0, cpu_idle_min=0, fio_cpu_max=2, idle_gap_s=60, **OTHERS)
MIXED = {
    "name": "mixed",
    "purge": False,
    "precondition": False,
    "cells": [
        {"access": "random", "block_size": "4KiB", "read_pct": 65, "threads": 2, "queue_depth": 4, "runtime_s": 1},
        {
            "access": "random",
            "block_size": "4KiB",
            "read_pct": 100,
            "threads": 2,
            "queue_depth": 16,
            "runtime_s": 2,
            "ramp_s": 1,
        },
    ],
    "rounds": {"max": 2},
}


def test_percentiles_are_fios_own_to_the_bin_and_a_window_counts_every_io_of_its_rounds(jobs, loop_drive):
    plan = jobs.plan([loop_drive()], planning.load_plan([MIXED]))
    plan["validity"]["limits"] = LIMITS._asdict()
    journal, _status = jobs.run(plan)
    assert len(events(journal, "cell")) == 4 and not events(journal, "cell_refused")
    counted = collections.defaultdict(collections.Counter)
    for path in jobs.folder.rglob("mixed-1-0*.json.gz"):
        (job,) = json.loads(gzip.decompress(path.read_bytes()))["jobs"]
        for direction in ("read", "write"):
            latency = job[direction]["lat_ns"]
            if not job[direction]["total_ios"]:
                continue
            bins = histogram.parse_bins(latency["bins"])
            assert {share: histogram.percentile_ns(bins, share) for share in latency["percentile"]} == latency[
                "percentile"
            ]
            counted[job["jobname"], direction].update(bins)
    told = {(record["cell"], record["direction"]): record for record in events(journal, "histogram")}
    assert told.keys() == counted.keys() and len(told) == 3
    for place, record in told.items():
        assert {int(value): count for value, count in record["bins"].items()} == counted[place]
    (end,) = jobs.ended()
    metrics = end["cells"][0]["metrics"]
    assert metrics["read_ios"] == sum(counted[end["cells"][0]["cell"], "read"].values())
    assert 0 <= metrics["read_within_1ms_pct"] <= metrics["read_within_2ms_pct"] <= 100
    assert metrics["write_p99_9999_latency_us"] is None


LIAR = """#!{python}
import os, re, subprocess, sys
words, job = sys.argv[1:-1], sys.argv[-1]
if not job.endswith("-fill.fio"):
    os.execvp("fio", ["fio", *words, job])
out = next(word[len("--output="):] for word in words if word.startswith("--output="))
text = open(job).read()
device, scratch = re.search("^filename=(.*)$", text, re.M)[1], "{scratch}"
open(scratch + ".fio", "w").write(text.replace(device, scratch).replace("allow_file_create=0\\n", ""))
subprocess.run(["fio", *words, scratch + ".fio"], check=True)
told = open(out).read().replace(scratch, device)
# What is told is a whole fill of a file; what is done is half a fill of the drive.
half = re.sub("^size=(.*)$", lambda match: "size=%d" % (int(match[1]) // 2), text, flags=re.M)
open(scratch + ".half.fio", "w").write(half)
subprocess.run(["fio", "--output=" + scratch + ".json", scratch + ".half.fio"], check=True)
open(out, "w").write(told)
"""


def lying_fio(folder):
    """The path of a fio whose fills write half."""
    liar = folder / "fio"
    liar.write_text(LIAR.format(python=sys.executable, scratch=folder / "scratch"))
    liar.chmod(0o755)
    return str(liar)


def test_a_fill_that_wrote_half_and_says_all_is_invalid(jobs, loop_drive, tmp_path):
    plan = jobs.plan([loop_drive(size_bytes=ODD_SIZE)], fill_step())
    plan["fio"]["path"] = lying_fio(tmp_path)
    journal, _status = jobs.run(plan)
    (end,) = jobs.ended()
    assert (end["outcome"], events(journal, "cell")) == ("invalid", [])
    assert "the kernel counted only" in end["reasons"][0] and "of the fill" in end["reasons"][0], end
    (record,) = events(journal, "precondition")
    assert record["kernel_bytes_written"] < 0.51 * record["bytes_written"]


def test_what_builds_on_a_fill_that_failed_is_not_measured(jobs, loop_drive, tmp_path):
    """It would measure a drive that is half empty."""
    follows = {**MIXED, "name": "follows"}
    plan = jobs.plan([loop_drive(size_bytes=ODD_SIZE)], [*fill_step(), *planning.load_plan([follows])])
    plan["fio"]["path"] = lying_fio(tmp_path)
    journal, _status = jobs.run(plan)
    ends = jobs.ended()
    assert [end["outcome"] for end in ends] == ["invalid", "invalid"] and events(journal, "cell") == []
    assert "did not complete its purge and fill" in ends[1]["reasons"][0]


@pytest.mark.parametrize("counts", ["0", "1"])
def test_what_the_kernel_does_not_count_is_unknown_and_no_reason_to_refuse(jobs, loop_drive, counts):
    drive = loop_drive(size_bytes=ODD_SIZE)
    path = f"/sys/block/{drive.name}/queue/iostats"
    plan = jobs.plan([drive], fill_step())
    try:
        Host().write(path, counts)
        journal, status = jobs.run(plan)
    finally:
        Host().write(path, "1")
    (record,) = events(journal, "precondition")
    assert status["drives"][0]["outcome"] == "complete"
    assert record["kernel_bytes_written"] == (2 * ODD_SIZE if counts == "1" else None)
    assert len(events(journal, "fill_curve")) == int(counts)
