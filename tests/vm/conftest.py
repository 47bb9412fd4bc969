# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guest, booted as seldom as possible (a boot takes a minute), and a lab for each test."""

from __future__ import annotations

import json
import os
import re
import shutil

import control_drive
import cstates
import pytest
from guest import Guest
from guest_machine import CPUS, QEMU
from hardware import NEIGHBOUR, PLAIN, SLOW, drives
from lab import REPO, STAND_IN, STAND_IN_STATE, Lab

OUTPUT = REPO / "tests" / "output"
PURGES = OUTPUT / "vm-purges.md"


def pytest_configure(config):
    """Exclusive tests are judged beside a control drive of this machine."""
    control_drive.register(config)


def why_not() -> str:
    """Why no guest can be had here; an empty string when one can."""
    if os.geteuid() != 0:
        return "the guest needs root, to build its disk"
    return "" if shutil.which(QEMU) else f"{QEMU} is missing; scripts/setup test installs it"


@pytest.fixture(scope="session")
def guest(tmp_path_factory):
    """The one guest of the session, with hardware.py's drives. A test that stops it starts it again; one that changes
    its drives changes them back.
    """
    if why_not():
        pytest.skip(why_not())
    with Guest(drives(), cstates.arguments(tmp_path_factory.mktemp("acpi"), CPUS)) as running:
        yield running


@pytest.fixture
def lab(guest, tmp_path, request):
    """The guest as the only server of an inventory; its plain drives are blank."""
    guest.blank(PLAIN, NEIGHBOUR, SLOW)
    return Lab(guest, tmp_path, re.sub(r"\W+", "-", request.node.name))


@pytest.fixture
def stand_in(guest):
    """Put the emulator before the real nvme: stand_in({its head names what}, …), one for each drive."""

    def install(*drives):
        state = {"real": "/usr/sbin/nvme", "drives": [{"real": True, **drive} for drive in drives]}
        guest.put(STAND_IN_STATE, json.dumps(state))
        # A Debian guest has no `python`.
        text = (REPO / "tests/emulators/nvme").read_text(encoding="utf-8").replace("env python", "env python3", 1)
        guest.put(STAND_IN, text, "0755")

    try:
        yield install
    finally:
        guest.run(f"rm -f {STAND_IN} {STAND_IN_STATE}*")


@pytest.fixture(scope="session")
def purges():
    """The log of real purges, a table for people."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    PURGES.write_text(
        "| method | asked by | SHA-256 before | SHA-256 after | seconds | verified |\n|---|---|---|---|---|---|\n"
    )

    def add(*cells: object) -> None:
        with PURGES.open("a") as out:
            out.write("| " + " | ".join(str(cell) for cell in cells) + " |\n")

    return add


def pytest_terminal_summary(terminalreporter):
    """Print the purges of the session."""
    if PURGES.exists():
        terminalreporter.section("purges in the guest (tests/output/vm-purges.md)")
        terminalreporter.write(PURGES.read_text())
