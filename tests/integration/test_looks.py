# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks of our own at one drive, by processes that know nothing of each other: two schedules, a preflight beside a host
job.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import own_machine
import pytest
from conftest import REPO
from waiting import wait_until

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.locks import Locked, look_lock
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import data_scan, guard_check, scan_offsets
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.block_classifier import BlockClassifier, DataScan
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.block_reader import BlockReader
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.data_scan import Terms
from ansible_collections.ssdlab.fleet.tests.fixtures.detection import detection_probability

LOOK_S = 4.0
PROGRAM = """
import json, sys
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.guard_check import inspect
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.data_scan import Terms
print(json.dumps(inspect(Host(), [parse(json.loads(sys.argv[1]))], terms=Terms(float(sys.argv[2])))[0]))
"""


@contextlib.contextmanager
def being_looked_at(name):
    """Hold the lock of looks at a drive, once a test beside this one that looks at all drives has left this one."""
    lock = look_lock(name)

    def is_ours():
        with contextlib.suppress(Locked):
            lock.acquire()
            return True
        return False

    wait_until(is_ours, f"the end of another look at {name}")
    with lock:
        yield


def look(drive):
    argv = [sys.executable, "-c", PROGRAM, json.dumps(drive.selector), str(LOOK_S)]
    return subprocess.Popen(
        argv, stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": str(REPO / "playbooks/collections")}
    )


def until_it_reads(process, drive):
    """Wait until the look has gone on to what lies on the drive."""
    for _attempt in range(600):
        assert process.poll() is None
        with contextlib.suppress(FileNotFoundError):  # closed just now
            if any(os.readlink(link) == drive.path for link in Path(f"/proc/{process.pid}/fd").glob("*")):
                return
        time.sleep(0.02)
    raise AssertionError("the look never opened the drive")


def test_looks_at_once_do_not_take_each_other_for_users(loop_drive):
    drive = loop_drive(size_bytes=64 << 30)
    first = look(drive)
    until_it_reads(first, drive)
    seen = [json.loads(process.communicate()[0]) for process in [first, look(drive)]]
    assert [one["refusals"] for one in seen] == [[], []]
    assert all(one["look"]["blocks"] > 0 for one in seen)


@pytest.mark.parametrize("offset", [0, 3 << 30])
def test_a_little_data_is_found_where_the_file_behind_a_drive_says_so(offset):
    """8 MiB of 512 GiB, which random blocks alone would miss nearly always in so short a look."""
    place, length = 300 << 30, 8 << 20
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="ssdlab-test-") as folder:
        file = Path(folder, "drive")
        with file.open("wb") as out:
            out.truncate(512 << 30)
            os.pwrite(out.fileno(), os.urandom(length), place)
        path = own_machine.attach(file, "--direct-io=on", "--offset", str(offset))
        try:
            (seen,) = guard_check.inspect(Host(), [parse({"backing_file": str(file)})], terms=Terms(0.2))
            assert [refusal["code"] for refusal in seen["refusals"]] == ["unsigned_data"] and seen["look"][
                "allocated_bytes"
            ] == length
            with file.open("r+b") as out:
                os.pwrite(out.fileno(), bytes(length), place)
            (seen,) = guard_check.inspect(Host(), [parse({"backing_file": str(file)})], terms=Terms(1.0))
            assert seen["eligible"] and seen["look"]["aimed_blocks"] > 0 and seen["look"]["blocks"] > 0, seen
        finally:
            subprocess.run(["losetup", "--detach", path], check=True)


# Drive, data, blocks of a look, looks, and how many of these may see the data: beyond that less than once in a million.
CHANCES = [
    (4 << 30, 1 << 30, 64, 20, (20, 20)),  # 1 - (3/4)^64
    (128 << 30, 256 << 20, 352, 60, (11, 49)),  # a half
    (512 << 30, 4096, 352, 60, (0, 2)),
]


@pytest.mark.parametrize("size_bytes, data_bytes, blocks, looks, expected", CHANCES)
def test_as_many_looks_see_data_as_the_plan_tells(loop_drive, size_bytes, data_bytes, blocks, looks, expected):
    """A short sample of tests/bench/look.py, with as many blocks on any machine."""
    drive = loop_drive(size_bytes=size_bytes)
    with drive.file.open("r+b") as file:
        for start in range(0, data_bytes, 1 << 20):
            os.pwrite(file.fileno(), os.urandom(min(1 << 20, data_bytes)), size_bytes // 3 // 4096 * 4096 + start)
    handle = os.open(drive.path, os.O_RDONLY | os.O_DIRECT)
    try:
        seen = sum(sees(handle, size_bytes, blocks) for _look in range(looks))
    finally:
        os.close(handle)
    assert expected[0] <= seen <= expected[1], detection_probability(data_bytes, blocks, size_bytes)


def sees(handle, size_bytes, blocks):
    """Whether one look at so many random blocks sees data."""
    found = DataScan(size_bytes)
    seeing = BlockClassifier(found, (), True, data_scan.never)
    with BlockReader(handle, scan_offsets.BLOCK_BYTES) as reader:
        offsets = itertools.islice(scan_offsets.random_offsets(size_bytes, scan_offsets.BLOCK_BYTES, 32), blocks // 32)
        data_scan._some(reader, seeing, offsets, 1.0, lambda: 0.0)
    return found.foreign is not None


EXAMINE = """
import json, sys
from ansible.module_utils import basic
from ansible_collections.ssdlab.fleet.plugins.modules import examine
basic._ANSIBLE_ARGS, basic._ANSIBLE_PROFILE = sys.argv[1].encode(), "legacy"
examine.main()
"""


def test_an_examination_without_a_controller_keeps_nobody_from_the_drives(loop_drive):
    """A controller that gave up on a host does not end what it started there."""
    drive = loop_drive()
    environment = {"PYTHONPATH": str(REPO / "playbooks/collections"), "PATH": os.environ["PATH"]}

    def examine(limit_s):
        asked = {"drive_facts": {"drives": [drive.selector], "look": "sample", "look_s": 1}, "limit_s": limit_s}
        argv = [sys.executable, "-c", EXAMINE, json.dumps({"ANSIBLE_MODULE_ARGS": asked})]
        return subprocess.run(argv, capture_output=True, text=True, env=environment, timeout=60, check=False)

    with being_looked_at(drive.name):
        ended = examine(limit_s=1)
    assert ended.returncode == -signal.SIGALRM, ended.stdout + ended.stderr
    (seen,) = json.loads(examine(limit_s=50).stdout)["drives"]
    assert seen["eligible"], seen["refusals"]


def test_a_look_that_does_not_end_is_told(loop_drive, monkeypatch):
    drive = loop_drive()
    monkeypatch.setattr(guard_check, "OTHER_LOOK_S", 0.5)
    with being_looked_at(drive.name):
        (seen,) = guard_check.inspect(Host(), [parse(drive.selector)])
    assert [refusal["code"] for refusal in seen["refusals"]] == ["locked"]
    assert drive.name in seen["refusals"][0]["message"]
