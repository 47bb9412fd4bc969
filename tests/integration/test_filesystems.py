# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""File systems on real loop devices: made, mounted where nobody else sees them, and measured."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from host_jobs import MIB, events

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import render_plan as planning
from ansible_collections.ssdlab.fleet.tests.fixtures import documents

SIZE = 320 * MIB  # XFS takes 300 MB at least
TYPES = ["ext4", "xfs"]


def on(kind, **keys):
    """A test on a file system of a loop device, which is quick."""
    return {
        "name": "on-" + kind,
        "purge": {"method": "deallocate"},
        "filesystem": {"type": kind, "mount_options": ["noatime"]},
        "precondition": {"passes": 1, "of": "active_range"},
        "active_range_pct": 10,
        # With a rate: a device in memory on a busy machine is no drive to fill a queue of.
        "cells": [{"block_size": "64KiB", "read_pct": 50, "queue_depth": 4, "runtime_s": 1, "rate_iops": 400}],
        "rounds": {"max": 2},
        **keys,
    }


def mounts_of(path):
    """Who has the device mounted, by whatever node, in any mount namespace."""
    found, wanted = [], f"{os.major(os.stat(path).st_rdev)}:{os.minor(os.stat(path).st_rdev)}"
    for one in Path("/proc").glob("[0-9]*/mountinfo"):
        try:
            found += [line for line in one.read_text().splitlines() if line.split(" ")[2] == wanted]
        except OSError:
            continue
    return found


@pytest.mark.variants(1)
@pytest.mark.parametrize("kind", TYPES)
def test_a_file_of_it_is_filled_and_measured(jobs, loop_drive, kind):
    drive = loop_drive(size_bytes=SIZE)
    journal, status = jobs.run(jobs.plan([drive], planning.load_plan([on(kind)])))
    for record in journal:
        documents.validate(record, "journal")
    (end,) = jobs.ended()
    assert (end["outcome"], end["reasons"]) == ("complete", []), end["validity"]
    assert status["drives"][0]["outcome"] == "complete"
    (laid,) = events(journal, "filesystem")
    assert laid["type"] == kind and laid["file_bytes"] == SIZE * 10 // 100 // 512 * 512
    assert {"noatime", "nodev", "nosuid", "noexec"} <= set(laid["options"])
    (fill,) = events(journal, "precondition")
    assert fill["bytes_written"] == laid["file_bytes"] <= fill["kernel_bytes_written"]
    assert len(events(journal, "cell")) == 2 and len(events(journal, "filesystem_unmounted")) == 1
    # fio's file, by its own word: not the drive.
    written = list(jobs.folder.rglob("*.fio"))
    assert any(f"is a file on {drive.path}" in job.read_text() for job in written)
    assert mounts_of(drive.path) == [] and not list(jobs.folder.rglob("mounted"))


def test_what_ext4_discards_after_the_fill_disturbs_no_round(jobs, loop_drive):
    """Blocks of the extent tree that shrank as the file got its data: at a commit of the log, five seconds later."""
    drive = loop_drive(size_bytes=SIZE)
    cell = {"block_size": "64KiB", "read_pct": 50, "queue_depth": 4, "runtime_s": 4, "rate_iops": 400}
    discarding = {"type": "ext4", "mount_options": ["noatime", "discard"]}
    test = on("ext4", filesystem=discarding, cells=[cell], rounds={"max": 2})
    journal, _status = jobs.run(jobs.plan([drive], planning.load_plan([test])))
    (end,) = jobs.ended()
    assert (end["outcome"], end["reasons"]) == ("complete", []), end["validity"]


@pytest.mark.variants(1)
@pytest.mark.parametrize("kind", TYPES)
def test_a_job_that_is_stopped_unmounts(jobs, loop_drive, kind):
    drive = loop_drive(size_bytes=SIZE)
    plan = jobs.plan([drive], planning.load_plan([on(kind, rounds={"max": 100})]))
    journal, _status = jobs.run_and_stop(plan, lambda journal: events(journal, "round"))
    assert jobs.ended()[-1]["outcome"] == "interrupted" and events(journal, "round")
    assert mounts_of(drive.path) == []
    # The same run goes on, and makes it anew.
    journal, status = jobs.run(jobs.plan([drive], planning.load_plan([on(kind)])))
    assert status["drives"][0]["outcome"] == "complete" and len(events(journal, "filesystem")) == 2
