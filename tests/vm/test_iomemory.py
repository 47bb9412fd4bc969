# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan iomemory-guide from the inventory to the verdicts: each of its formats, on a drive that this kernel has.

No Fusion-io card is here. The emulators of tests/emulators stand in for its tools, and null_blk for its block device
(tests/emulators/nullb.py): it goes as the card is detached, and comes back as it was formatted.
"""

from __future__ import annotations

import json

import emulator
import pytest
import yaml
from guest_machine import CPUS
from image import MIB
from lab import PLAY_TIMEOUT_S, REPO

# The other one is first among the tools' numbers, and full of data.
OTHER, CARD = "1241D0259", "1241D0260"
SIZE = 64 * MIB
# Each request takes 0.1 s, by a timer, and as many as the guide's jobs ask for have room: a drive slower than the
# emulated host, which is to be waited for and not measured.
SLOWNESS = {"submit_queues": CPUS, "hw_queue_depth": 32, "irqmode": 2, "completion_nsec": 100_000_000}
FOLDER = "/usr/local/sbin"  # before all others in every PATH of the guest
TOOLS = ("fio-attach", "fio-beacon", "fio-detach", "fio-format", "fio-pci-check", "fio-status")
FILES = (*TOOLS, "emulator.py", "iomemory_tool.py", "nullb.py", "pci-check/balanced.txt")
NAMES = {"fio-status": "fio-status.py"}  # in the guest, as KEPT has its name there
PLAN = REPO / "roles/workload/files/plans/iomemory-guide.yml"
# What each test of the plan asks of the card, in the plan's order: 512 B below 4 KiB, else 4 KiB.
SECTORS = {
    "iomemory-write-latency": 512,
    "iomemory-random-write": 512,
    "iomemory-sequential-write": 512,
    "iomemory-write-bandwidth": 4096,
    "iomemory-read": 512,
    "iomemory-read-bandwidth": 4096,
}
# A host job asks fio-status some fifty times a test, and a Python takes a second to start here: the emulator's answers
# are kept as long as the state is what it was.
KEPT = f"""#!/bin/sh
said={FOLDER}/said$1
if ! [ $said -nt {FOLDER}/drives.json ]; then
  {FOLDER}/fio-status.py "$@" > $said.new && mv $said.new $said || exit
fi
exec cat $said
"""
FILL = "dd if=/dev/urandom of=/dev/fioa bs=1M oflag=direct status=none 2>/dev/null; sha256sum < /dev/fioa"


def scaled(test):
    """The test with cells of two seconds, the first of them as ramp; the guide's 30 s after 5 s are too long here."""
    return {**test, "cells": [{**cell, "runtime_s": 2, "ramp_s": 1} for cell in test["cells"]]}


@pytest.fixture
def other(guest):
    """The SHA-256 of the data on another card, which is detached again; the card under test is attached and blank."""
    shape = {"adapter": "Fusion-io ioDrive2 67.108864MB", "factory_bytes": SIZE, "nullb": SLOWNESS, "attached": False}
    cards = [emulator.card(number, serial, **shape) for number, serial in enumerate((OTHER, CARD))]
    guest.run("modprobe null_blk nr_devices=0")
    try:
        for name in FILES:
            # A Debian guest has no `python`.
            text = (REPO / "tests/emulators" / name).read_text(encoding="utf-8").replace("env python", "env python3", 1)
            guest.put(f"{FOLDER}/{NAMES.get(name, name)}", text, "0755" if name in TOOLS else "0644")
        guest.put(f"{FOLDER}/fio-status", KEPT, "0755")
        guest.put(f"{FOLDER}/drives.json", json.dumps({"rssdm": {"drives": []}, "iomemory": {"cards": cards}}))
        for card in cards:
            guest.run("fio-format -y -b 512 {0} && fio-attach {0}".format(f"/dev/fct{card['number']}"))
        full = guest.run(FILL, timeout_s=300).stdout
        guest.run("fio-detach /dev/fct0")
        yield full
    finally:
        guest.run("for at in /sys/kernel/config/nullb/fio?; do rmdir $at; done; modprobe -r null_blk", check=False)
        guest.run(f"cd {FOLDER} && rm -rf {' '.join(FILES)} fio-status.py pci-check __pycache__ drives.json* said*")


def kept_of(guest, serial):
    """What its tools keep of a card."""
    cards = json.loads(guest.run(f"cat {FOLDER}/drives.json").stdout)["iomemory"]["cards"]
    return next(card for card in cards if card["serial"] == serial)


def formatting(sector_bytes):
    """The commands of a format, as vendor-tools.md lists them."""
    return [
        ["fio-detach", "/dev/fct1"],
        ["fio-format", "-y", "-b", str(sector_bytes), "-s", "100%", "/dev/fct1"],
        ["fio-attach", "/dev/fct1"],
    ]


@pytest.mark.long
def test_the_guides_plan_formats_the_card_for_each_of_its_tests(lab, guest, other):
    lab.host["ssd_drives"] = [{"serial": CARD}]
    lab.vars["ssd_plan"] = [scaled(test) for test in yaml.safe_load(PLAN.read_text(encoding="utf-8"))]
    lab.timeout_s = 4 * PLAY_TIMEOUT_S  # six tests, each with a purge that is verified
    before, untouched = lab.hashes(), kept_of(guest, OTHER)
    lab.clear_commands()
    code, output = lab.play("qualify", "-e", "ssd_run_id=guide")
    assert code == 0 and lab.summary()["verdicts"]["pass"] == 1, output
    assert [argv for argv in lab.commands() if argv[0] in ("fio-detach", "fio-format", "fio-attach")] == [
        argv for sector_bytes in SECTORS.values() for argv in formatting(sector_bytes)
    ]
    # By fio-status, and by the kernel at the next look of the guard, which is before the next format.
    purges = {record["test"]: record for record in lab.journal("purge")}
    assert {name: record["lba_format_after"]["sector_bytes"] for name, record in purges.items()} == SECTORS
    assert all(record["verified"] and record["method"] == "iomemory_format" for record in purges.values()), purges
    looks = [record["identity"] for record in lab.journal("guard") if record["step"] == "purge"]
    sizes = [look["logical_block_size_bytes"] for look in looks]
    sizes.append(int(guest.run("blockdev --getss /dev/fiob").stdout))
    assert sizes == [512, *SECTORS.values()], sizes
    assert lab.journal("cell") and not lab.journal("cell_refused")
    (drive,) = lab.summary()["drives"]
    assert [test["test"] for test in drive["tests"]] == list(SECTORS), drive
    assert lab.hashes() == before and kept_of(guest, OTHER) == untouched
    guest.run("fio-attach /dev/fct0")
    assert guest.run("sha256sum < /dev/fioa").stdout == other
