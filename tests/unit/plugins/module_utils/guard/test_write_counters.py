# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel's counters prove, on a file that stands for a drive."""

from __future__ import annotations

import os

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import ledger, ledger_format, write_counters
from ansible_collections.ssdlab.fleet.tests.unit.plugins.module_utils.guard.noted import IDENTITY, Drive, rewrite

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the ledger counts only while it is root's")


@pytest.mark.parametrize(
    "stage",
    [
        lambda left: left.boot("two"),
        lambda left: left.count(201),
        lambda left: left.count(199),
        lambda left: left.counting("0"),
        lambda left: left.host.put("/sys/block/nvme0n1/stat", ""),
        lambda left: left.host.put("/proc/sys/kernel/random/boot_id", ""),
        lambda left: rewrite(left, state="writing"),
        lambda left: rewrite(left, written=None),
        lambda left: ledger.begin(left.host, left.state_dir, IDENTITY, "second"),
    ],
)
def test_the_counters_prove_nothing(left, stage):
    stage(left)
    assert left.untouched() is False


@pytest.mark.parametrize("change", [{"diskseq": 8}, {"diskseq": None}])
def test_another_attachment_proves_nothing(left, change):
    assert left.untouched(dict(IDENTITY, **change)) is False


def test_a_file_behind_a_loop_device_is_written_without_its_counters(fake, tmp_path, monkeypatch):
    monkeypatch.setitem(IDENTITY, "backing_file", "/x")
    drive = Drive(fake, tmp_path / "drive")
    drive.run()
    assert drive.seen().state == "released" and drive.untouched() is False


def test_nothing_is_proved_of_what_was_released_while_the_kernel_did_not_count(fake, tmp_path):
    drive = Drive(fake, tmp_path / "drive")
    drive.counting("0")
    drive.run(sectors=100)
    drive.counting("1")
    assert drive.seen().state == "released" and drive.untouched() is False


def test_the_counters_prove_nothing_of_a_drive_that_was_left_blank(fake, tmp_path):
    """Data that is there now was written past them: `nvme write`, sg_dd."""
    drive = Drive(fake, tmp_path / "drive")
    drive.run(blank=True)
    assert drive.seen().state == "released" and drive.untouched() is False


def test_writes_that_the_kernel_counted_refute_what_a_look_saw_by_chance(left):
    entry = ledger_format.read(left.state_dir, IDENTITY)
    assert not write_counters.touched(left.host, entry, IDENTITY)
    left.count(201)
    assert write_counters.touched(left.host, entry, IDENTITY)
    assert not write_counters.touched(left.host, entry, dict(IDENTITY, diskseq=8))  # counted from another attachment on
    left.boot("two")
    assert not write_counters.touched(left.host, entry, IDENTITY)
