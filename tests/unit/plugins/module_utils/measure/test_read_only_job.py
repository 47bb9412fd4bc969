# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A job that does more than read is told from one that reads, whatever it is that it does."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.read_only_job import job_problem
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import render_plan as planning
from ansible_collections.ssdlab.fleet.tests.fixtures.plans import planned, typed

ARGV = ["fio", "--readonly", "job"]
IDENTITY = {"size_bytes": 10**12, "logical_block_size_bytes": 512, "transport": "nvme", "serial": "S1"}
JOBS = [
    cell.job
    for test in typed(planned(planning.load_plan("in-service"), IDENTITY)).drives[0].tests
    for cell in test.cells
]


def test_what_the_shipped_plan_renders_is_run():
    assert JOBS and [job_problem(ARGV, job) for job in JOBS] == [""] * len(JOBS)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("rw=randread", "rw=randrw"),
        ("rw=randread", "rw=write"),
        ("rw=randread", "rw=randread\nrw=trim"),
        ("rw=randread", "readwrite=write"),
        ("rw=randread", ""),
        ("invalidate=0", ""),
        ("direct=1", "direct=0"),
        ("allow_file_create=0", "allow_file_create=1"),
        ("thread=1", "exec_prerun=dd"),
        ("thread=1", "verify=crc32c"),
        ("thread=1", "pre_read=1"),
        ("thread=1", "include other.fio"),
        ("thread=1", "trim_percentage=10"),
        ("ioengine=libaio", "ioengine=external:/tmp/own.so"),
        ("[global]", "rw=write\n[global]"),
        ("[global]", "[global]\nrw=write\n[global]"),
    ],
)
def test_anything_else_is_not(old, new):
    (job,) = JOBS
    assert old in job and job_problem(ARGV, job.replace(old, new))


def test_nor_is_a_fio_that_may_write_or_a_job_without_sections():
    (job,) = JOBS
    assert "--readonly" in job_problem(["fio", "job"], job)
    assert job_problem(ARGV, "[global]\n") == "it has no job"
