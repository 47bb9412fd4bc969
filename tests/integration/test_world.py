# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The drive's world, of real host jobs with real fio on loop devices: what can be staged here."""

from __future__ import annotations

import os
import subprocess

import pytest
from host_jobs import QUICK, events

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import render_plan as planning
from ansible_collections.ssdlab.fleet.tests.fixtures import documents

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root for loop devices")


def measured(jobs, drive):
    """The end of the only test, whose journal holds to its schema."""
    journal, _status = jobs.run(jobs.plan([drive], planning.load_plan([QUICK])))
    for record in journal:
        documents.validate(record, "journal")
    (baseline,), (end,) = events(journal, "baseline"), jobs.ended()
    assert journal.index(baseline) < journal.index(events(journal, "test_started")[0])
    return baseline["world"], end


def test_a_loop_device_with_direct_io_has_remarks_and_no_cause(jobs, loop_drive):
    world, end = measured(jobs, loop_drive())
    assert world["direct_io"] is True and end["outcome"] == "steady"
    assert [(item["cause"], item["level"]) for item in end["conditions"]] == [("world", "unknown")]


def test_a_loop_device_without_direct_io_measures_memory(jobs, loop_drive):
    drive = loop_drive()
    subprocess.run(["losetup", "--direct-io=off", drive.path], check=True)
    world, end = measured(jobs, drive)
    assert world["direct_io"] is False and end["outcome"] == "invalid"
    assert [reason for reason in end["reasons"] if "uses the page cache" in reason]
