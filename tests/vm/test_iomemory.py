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
from hardware import PLAIN
from image import MIB
from lab import REPO

CARD, OTHER = "1241D0259", "1241D0260"
SIZE = 64 * MIB
FOLDER = "/usr/local/sbin"  # before all others in every PATH of the guest
TOOLS = ("fio-attach", "fio-beacon", "fio-detach", "fio-format", "fio-pci-check", "fio-status")
FILES = (*TOOLS, "emulator.py", "iomemory_tool.py", "nullb.py", "pci-check/balanced.txt")
PLAN = REPO / "roles/workload/files/plans/iomemory-guide.yml"
# What each test of the plan asks of the card, in the plan's order.
SECTORS = {
    "iomemory-write-latency": 512,
    "iomemory-random-write": 512,
    "iomemory-sequential-write": 512,
    "iomemory-write-bandwidth": 4096,
    "iomemory-read": 512,
    "iomemory-read-bandwidth": 4096,
}
FILL = "import os; at = open('/dev/fiob', 'wb', 0); at.write(os.urandom(1 << 20) * 64); os.fsync(at.fileno())"


def scaled(test):
    """The test with cells of two seconds, the first of them as ramp: 30 s after 5 s, as the guide has it, is too long
    for an emulated machine.
    """
    return {**test, "cells": [{**cell, "runtime_s": 2, "ramp_s": 1} for cell in test["cells"]]}


@pytest.fixture
def cards(guest):
    """Two attached cards of one size, fioa blank and fiob full of data."""
    shape = {"adapter": "Fusion-io ioDrive2 67.108864MB", "factory_bytes": SIZE, "nullb": True, "attached": False}
    drives = [emulator.card(number, serial, **shape) for number, serial in enumerate((CARD, OTHER))]
    guest.run("modprobe null_blk nr_devices=0")
    try:
        for name in FILES:
            # A Debian guest has no `python`.
            text = (REPO / "tests/emulators" / name).read_text(encoding="utf-8").replace("env python", "env python3", 1)
            guest.put(f"{FOLDER}/{name}", text, "0755" if name in TOOLS else "0644")
        guest.put(f"{FOLDER}/drives.json", json.dumps({"rssdm": {"drives": []}, "iomemory": {"cards": drives}}))
        for number in range(len(drives)):
            guest.run(f"fio-format -y -b 512 /dev/fct{number} && fio-attach /dev/fct{number}")
        guest.run(f'python3 -c "{FILL}"', timeout_s=300)
        yield drives
    finally:
        guest.run("for at in /sys/kernel/config/nullb/fio?; do rmdir $at; done; modprobe -r null_blk", check=False)
        guest.run(f"cd {FOLDER} && rm -rf {' '.join(FILES)} pci-check __pycache__ drives.json*")


def state_of(guest, serial):
    """What its tools keep of a card."""
    cards = json.loads(guest.run(f"cat {FOLDER}/drives.json").stdout)["iomemory"]["cards"]
    return next(card for card in cards if card["serial"] == serial)


@pytest.mark.long
def test_the_guides_plan_formats_the_card_for_each_of_its_tests(lab, guest, cards):
    lab.host["ssd_drives"] = [{"serial": CARD}]
    lab.vars["ssd_plan"] = [scaled(test) for test in yaml.safe_load(PLAN.read_text(encoding="utf-8"))]
    other = guest.run("sha256sum /dev/fiob").stdout
    before = lab.hashes()
    lab.clear_commands()
    code, output = lab.play("qualify", "-e", "ssd_run_id=guide")
    assert code == 0, output
    print(json.dumps(lab.journal(), indent=1)); print(json.dumps(lab.summary(), indent=1)); print(lab.commands())
    assert 0
