# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guard itself on loop devices: under our own hold, and when a probe fails. What else it refuses:
test_wrong_drive_*.py.

Needs root, loop devices, util-linux.
"""

from __future__ import annotations

import os

import drive_data
import pytest
from command_log import destructive
from wrong_drive import SIZE, run

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import identity as drive
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import guard_check, rules
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.held import HeldDrive, Refused


@pytest.fixture
def disk(make_bench):
    return make_bench().spare


def inspect(disk, selectors=None, held=None):
    """The guard's results; it may have run probing commands only, and may have changed no byte."""
    commands = []
    before = disk.digest()
    results = guard_check.inspect(Host(log=commands.append), [parse(each) for each in selectors or [disk.entry]], held)
    assert disk.digest() == before
    assert not [command for command in commands if destructive(command)]
    for result in results:
        assert result["eligible"] is (not result["refusals"])
    return results


def codes(disk, selectors=None, held=None):
    return {refusal["code"] for result in inspect(disk, selectors, held) for refusal in result["refusals"]}


def opened(disk, path, flags=os.O_RDWR | os.O_EXCL | os.O_DIRECT):
    handle = os.open(path, flags)
    disk.bench.callback(os.close, handle)
    return handle


def test_a_blank_drive_is_eligible(disk):
    (result,) = inspect(disk)
    assert (result["eligible"], result["path"]) == (True, disk.path)
    identity = result["identity"]
    assert (identity["size_bytes"], identity["transport"], identity["model"], identity["backing_file"]) == (
        SIZE,
        "loop",
        "loop",
        disk.file,
    )
    assert identity["major_minor"] == f"{os.major(os.stat(disk.path).st_rdev)}:{os.minor(os.stat(disk.path).st_rdev)}"


def test_a_loop_device_on_a_drive_is_no_drive(disk):
    above = disk.attach(file=disk.path)
    assert codes(disk) == {"held"}
    assert codes(disk, [{"backing_file": disk.path}]) == {"not_whole_drive"}
    assert drive.backing_file(Host(), os.path.basename(above)) == disk.path


def test_attached_anew_it_is_another_drive_in_this_boot_only(disk):
    before = inspect(disk)[0]["identity"]
    disk.detach(disk.path, disk.file)
    disk.path = disk.attach()
    after = inspect(disk)[0]["identity"]
    assert [refusal.code for refusal in rules.compare(before, after, same_boot=True)] == ["identity_changed"]
    assert rules.compare(before, after, same_boot=False) == []


# --- held by ourselves, as the host job does
# ------------------------------------------------------------------------------------------


def test_our_own_exclusive_open_is_no_objection(disk):
    handle = opened(disk, disk.path)
    assert codes(disk) == {"busy"}
    assert codes(disk, held={disk.path: handle}) == set()


def test_a_held_descriptor_of_another_drive_is_refused(disk):
    other = disk.bench.disk("other")
    assert codes(disk, held={disk.path: opened(disk, other.path)}) == {"identity_changed"}


def test_a_drive_that_shrank_under_our_hold_is_refused(disk):
    handle = opened(disk, disk.path)
    expected = inspect(disk, held={disk.path: handle})[0]["identity"]
    os.truncate(disk.file, SIZE // 2)
    run("losetup", "--set-capacity", disk.path)
    results = inspect(disk, held={disk.path: handle})
    assert rules.compare(expected, results[0]["identity"], same_boot=True)


def test_what_stacks_up_under_our_hold_is_seen(disk):
    handle = opened(disk, disk.path)
    disk.attach(file=disk.path)
    assert codes(disk, held={disk.path: handle}) == {"held"}


def test_nothing_is_written_to_a_drive_that_is_not_held(disk):
    plan = {"entry": parse(disk.entry), "expected": inspect(disk)[0]["identity"]}
    held = HeldDrive(Host(), plan, {"run": "r"}, same_boot=True)
    with pytest.raises(Refused) as refused:
        held.content_is_ours()
    assert [refusal.code for refusal in refused.value.refusals] == ["not_held"]


# --- probes that fail ---------------------------------------------------------


@pytest.mark.parametrize("tool", ["wipefs", "blkid"])
@pytest.mark.parametrize("answer", ["exit 127", "exit 1", "echo garbage", "exit 0", "kill -9 $$"])
def test_a_tool_that_fails_or_lies_is_refused(disk, monkeypatch, tool, answer):
    fake = os.path.join(disk.bench.folder, tool)
    with open(fake, "w") as file:
        file.write(f"#!/bin/sh\n{answer}\n")
    os.chmod(fake, 0o755)
    monkeypatch.setenv("PATH", disk.bench.folder + ":" + os.environ["PATH"])
    assert codes(disk) == {"probe_failed"}


def test_a_drive_that_cannot_be_read_is_refused(disk):
    # The file behind it lost its second half: reads there fail, and blkid and wipefs both say "nothing found".
    os.truncate(disk.file, SIZE // 2)
    drive_data.flush(disk.path)
    assert codes(disk) == {"probe_failed"}
