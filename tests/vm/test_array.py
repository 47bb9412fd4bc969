# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A RAID 0 of two drives under a real kernel: made for a test, measured, and gone however the run ends."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import cells
import pytest
from hardware import NEIGHBOUR, PLAIN, SLOW
from lab import Lab, wait_for

CHUNK_BYTES = 64 << 10
# The load is limited, so that the queue is open: an emulated machine fills none.
ALONE = {
    "name": "alone",
    "title": "Each drive by itself",
    "purge": {"method": "auto"},
    "precondition": {"passes": 1},
    "cells": [cells.writes(50, runtime_s=2)],
    "steady_state": False,
    "rounds": {"max": 1},
}
TOGETHER = {**ALONE, "name": "together", "title": "All as one", "purge": False, "repeats": "alone"}
TOGETHER["array"] = {"chunk": "64KiB"}
ENDLESS = {**TOGETHER, "rounds": {"max": 600}}
# Whether somebody could claim a device for himself.
CLAIM = """python3 -c 'import os, sys
for path in sys.argv[1:]:
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_EXCL))
        print(path, "free")
    except OSError as error:
        print(path, error.strerror)' """


@pytest.fixture
def drives(lab):
    """Two drives of one size, ready to be erased."""
    lab.host["ssd_drives"] = [{"serial": PLAIN}, {"serial": NEIGHBOUR}]
    lab.vars.update(ssd_plan=[ALONE, TOGETHER], purge_method="deallocate")
    return [lab.guest.device(PLAIN), lab.guest.device(NEIGHBOUR)]


def arrays(lab: Lab) -> str:
    """The arrays of the guest, as the kernel tells them."""
    text = lab.guest.run("cat /proc/mdstat 2>/dev/null || true").stdout
    return "".join(line for line in text.splitlines(keepends=True) if line.startswith("md"))


def assert_nothing_is_left(lab: Lab, paths: list[str], run_id: str = "*") -> None:
    """No array, no note of one, nothing on the drives that says that they were one, and nobody who holds them."""
    assert arrays(lab) == ""
    assert lab.guest.run(f"ls {lab.state}/runs/{run_id}/array.json", check=False).returncode != 0
    for path in paths:
        assert "No md superblock" in lab.guest.run(f"mdadm --examine {path} 2>&1 || true").stdout
        assert lab.guest.run(f"wipefs {path}").stdout == ""
    assert lab.guest.run(CLAIM + " ".join(paths)).stdout.split("\n")[:2] == [f"{path} free" for path in paths]


def is_measuring(lab: Lab, process: subprocess.Popen, rounds: int) -> bool:
    """Whether so many rounds were measured on the array."""
    assert process.poll() is None, process.stdout.read()
    return sum(record["test"] == "together" for record in lab.journal("round")) >= rounds


@pytest.mark.long
def test_two_drives_are_measured_as_one(lab, drives):
    before = lab.hashes()
    code, output = lab.play("qualify", "-e", "ssd_run_id=two")
    assert code == 0 and lab.summary()["verdicts"]["pass"] == 2, output
    (made,), (stopped,) = lab.journal("array"), lab.journal("array_stopped")
    print(json.dumps(made), json.dumps(stopped))
    assert [member["drive"] for member in made["members"]] == [PLAIN, NEIGHBOUR] and made["drive"] == NEIGHBOUR
    numbers = [lab.guest.run(f"cat /sys/class/block/{Path(path).name}/dev").stdout.strip() for path in drives]
    nodes = ["/dev/ssdlab-fleet/" + number.replace(":", "-") for number in numbers]
    assert made["commands"] == [
        ["mdadm", "--build", made["device"], "--level=0", "--chunk=64", "--raid-devices=2", *nodes]
    ]
    assert lab.guest.run("ls /dev/ssdlab-fleet").stdout == ""
    assert made["size_bytes"] == sum(member["size_bytes"] // CHUNK_BYTES * CHUNK_BYTES for member in made["members"])
    (fill,) = [record for record in lab.journal("precondition") if record["test"] == "together"]
    assert fill["bytes_written"] == made["size_bytes"] == fill["kernel_bytes_written"]
    # Each member got its half, by its own count; the guard looked at each before.
    for member in stopped["members"]:
        assert 0.9 < member["bytes_written"] / (stopped["bytes_written"] / 2) < 1.1
    guards = {record["drive"] for record in lab.journal("guard") if record["step"] == "array" and record["eligible"]}
    assert guards == {PLAIN, NEIGHBOUR}
    (cell,) = [record for record in lab.journal("cell") if record["test"] == "together"]
    print(json.dumps(cell["seen"]), json.dumps(cell["causes"]))
    members, array = cell["seen"]["member_bytes"], cell["seen"]["kernel_bytes"]
    assert sum(counts["write"] for counts in members.values()) == array["write"] > 0 and len(members) == 2
    assert not [cause for cause in cell["causes"] if cause["cause"] == "other_io"], cell["causes"]
    (told,) = [test for drive in lab.summary()["drives"] for test in drive["tests"] if test["test"] == "together"]
    assert f"measured on a RAID 0 of 2 drives ({PLAIN}, {NEIGHBOUR}), chunk 64 KiB" in told["remarks"][0]
    assert told["load"] == "array of 2 drives" and told["repeated"]["drives"] == 2
    assert_nothing_is_left(lab, drives)
    # Both are left blank, as ssd_leave has it, and no other drive was touched.
    left = {record["drive"]: record["state"] for record in lab.journal("left")}
    assert left == {PLAIN: "blank", NEIGHBOUR: "blank"} and lab.hashes() == before


@pytest.mark.long
def test_an_array_is_gone_however_the_run_ends(lab, guest, drives):
    """Killed, then out of power, then stopped: each time the run goes on from there."""
    lab.vars["ssd_plan"] = [ALONE, ENDLESS]
    run = ("-e", "ssd_run_id=ends")
    process = lab.start("qualify", *run)
    try:
        wait_for("rounds on the array", lambda: is_measuring(lab, process, 1))
        assert "raid0" in arrays(lab)
        device = lab.journal("array")[-1]["device"]
        held = lab.guest.run(CLAIM + " ".join([*drives, device])).stdout
        assert "free" not in held and held.count("Device or resource busy") == 3, held
        pid = json.loads(lab.guest.run(f"cat {lab.state}/runs/ends/status.json").stdout)["pid"]
        lab.guest.run(f"kill -KILL {pid}")
        wait_for("end of the array", lambda: not arrays(lab))
    finally:
        lab.kill(process)
    assert_nothing_is_left(lab, drives, "ends")
    process = lab.start("qualify", *run)
    try:
        wait_for("rounds of the job after", lambda: is_measuring(lab, process, 2))
        assert "raid0" in arrays(lab)
        guest.run("sync")
        guest.stop()
    finally:
        lab.kill(process)
    guest.start()
    paths = [guest.device(PLAIN), guest.device(NEIGHBOUR)]
    # Nothing says that there was one, so nothing has made it again.
    assert arrays(lab) == ""
    process = lab.start("qualify", *run)
    try:
        wait_for("rounds after the power loss", lambda: is_measuring(lab, process, 3))
        code, output = lab.play("stop", *run)
        assert code == 0, output
    finally:
        lab.kill(process)
    assert_nothing_is_left(lab, paths, "ends")
    ends = [record["outcome"] for record in lab.ended() if record["test"] == "together"]
    assert ends == ["interrupted"], ends


@pytest.mark.long
def test_plan_mode_tells_of_an_array_and_one_drive_makes_none(lab, drives):
    """Preflight says so, and nothing is written."""
    before = lab.hashes()
    lab.host["ssd_drives"] = [{"serial": PLAIN}]
    code, output = lab.play("preflight", "-e", "ssd_mode=plan")
    assert code != 0 and "needs at least 2 drives; this host has 1" in " ".join(output.split()), output
    lab.host["ssd_drives"] = [{"serial": PLAIN}, {"serial": SLOW}]
    code, output = lab.play("preflight", "-e", "ssd_mode=plan")
    assert code == 0 and f"on a RAID 0 of 2 drives ({PLAIN}, {SLOW}), chunk 64 KiB" in " ".join(output.split()), output
    assert f"as part of the array that {SLOW} carries: together" in " ".join(output.split())
    assert lab.hashes() == before
