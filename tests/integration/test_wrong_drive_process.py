# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases 10, 11, 41 and 42 of docs/wrong-drives.md: what comes between the check and the erasure, and plays that are cut or repeated."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from wrong_drive import SIZE, destructive, run

from ansible_collections.ssdlab.fleet.plugins.module_utils import locks

# A stage in a play that leaves a process behind: its number goes into a file, so that the test ends it.
LEAVE_OPEN = 'setsid sleep 120 < "$0" > /dev/null 2>&1 & echo $! > "$0.pid"'
# Stands before fio and does something to the drive when a job's name has a word in it; then it is fio.
FIO = """#!/bin/sh
case "$*" in *{word}*) [ -e "{done}" ] || {{ : > "{done}"; {command}; }} ;; esac
exec {fio} "$@"
"""


def loops_on(path):
    """Loop devices over a file or a device."""
    return run("losetup", "--noheadings", "--output", "NAME", "--associated", path).split()


@pytest.fixture(scope="module")
def between(make_bench):
    """One job, to which something happened to each drive after preflight had passed it; nothing to the spare one."""
    bench = make_bench()
    names = ("attached anew", "mounted", "table", "data", "stacked", "shrunk", "read-only", "locked", "opened")
    disks = {name: bench.disk(name) for name in names}
    where, image = os.path.join(bench.folder, "where"), os.path.join(bench.folder, "ext4")
    os.mkdir(where)
    with open(image, "wb") as file:
        file.truncate(SIZE)
    run("mkfs.ext4", "-q", image)
    pid = Path(bench.folder, "opened.pid")
    disks["mounted"].undo("umount", where)
    disks["read-only"].undo("blockdev", "--setrw", disks["read-only"].path)
    bench.callback(lambda: [run("losetup", "--detach", path) for path in loops_on(disks["stacked"].path)])
    bench.callback(lambda: pid.exists() and os.kill(int(pid.read_text()), signal.SIGKILL))
    with locks.drive_lock({"path": disks["locked"].path}, {"run": "another"}):
        return bench.play_between(
            ("losetup", "--detach", disks["attached anew"].path),
            ("losetup", disks["attached anew"].path, disks["attached anew"].file),
            ("cp", image, disks["mounted"].path),
            ("mount", "-o", "ro,noload", disks["mounted"].path, where),
            ("sgdisk", "--clear", disks["table"].path),
            ("dd", "if=/dev/urandom", "of=" + disks["data"].path, "bs=4096", "count=1", "oflag=direct"),
            ("losetup", "--find", disks["stacked"].path),
            ("truncate", "--size", SIZE // 2, disks["shrunk"].file),
            ("losetup", "--set-capacity", disks["shrunk"].path),
            ("blockdev", "--setro", disks["read-only"].path),
            ("sh", "-c", 'setsid sleep 120 < "$0" > /dev/null 2>&1 & echo $! > "$1"', disks["opened"].path, pid),
        )


@pytest.mark.case(10)
def test_case_10_another_drive_of_the_same_name_since_preflight(between):
    between.refused("attached anew", "identity_changed")
    between.refused("shrunk", "identity_changed")


@pytest.mark.case(11)
def test_case_11_another_run_works_on_the_drive(between):
    between.refused("locked", "locked")


@pytest.mark.case(41)
@pytest.mark.parametrize(
    "name, codes",
    [
        ("mounted", ["mounted", "signature", "busy"]),
        ("table", ["partition_table"]),
        ("data", ["unsigned_data"]),
        ("stacked", ["held"]),
        ("read-only", ["read_only"]),
        ("opened", ["opened"]),
    ],
)
def test_case_41_what_came_after_preflight_is_seen(between, name, codes):
    between.refused(name, *codes)


def test_the_drive_that_nothing_happened_to_is_erased_and_the_matcher_sees_it(between):
    """Without this, nothing told that the assertions of all cases can fail."""
    assert between.changed == ["spare"] and between.codes("spare") == set()
    with pytest.raises(AssertionError):
        between.untouched("spare")
    discard = ["ioctl", "BLKDISCARD", between.bench.spare.path, "0", str(SIZE)]
    assert discard in between.commands and destructive(discard)
