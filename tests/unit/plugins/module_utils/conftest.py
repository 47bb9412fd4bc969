# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts made of files, and with the emulators of tools on their PATH."""

from __future__ import annotations

import contextlib
import os
import sys

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import locks
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import open_handles
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import settings as tuning_settings
from ansible_collections.ssdlab.fleet.tests.fixtures.fake_host import FakeHost

EMULATORS = os.path.join(os.path.abspath(__file__).split("/tests/unit/")[0], "tests", "emulators")
sys.path.insert(0, EMULATORS)
import emulator
from emulated_drive import EmulatedDrive

VENDOR_TOOLS = (
    "rssdm",
    "fio-status",
    "fio-attach",
    "fio-detach",
    "fio-format",
    "fio-beacon",
    "fio-bugreport",
    "fio-pci-check",
)


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    """The guard looks several times at who has a drive open; a tree of files does not change meanwhile."""
    monkeypatch.setattr(open_handles, "LOOK_EVERY_S", 0)


@pytest.fixture
def fake(tmp_path):
    """A FakeHost without drives."""
    return FakeHost(tmp_path)


class EmulatedHost(FakeHost):
    """A FakeHost with the vendors' tools of tests/emulators on its PATH; `machine` is the emulators' state file."""

    def __init__(self, root, machine):
        super().__init__(root)
        self.machine = str(machine)

    def run(self, argv, timeout_s=60, stdin=None):
        if argv[0] not in VENDOR_TOOLS:
            return super().run(argv, timeout_s, stdin)
        self.commands.append(list(argv))
        return Host.run(self, argv, timeout_s, stdin)

    def state(self):
        return emulator.state(self.machine)

    def reboot(self, boot_id):
        self.put("/proc/sys/kernel/random/boot_id", boot_id)

    def block(self, name, number, address):
        """A block device without anything of its own in sysfs, but for the PCI device that mtip32xx
        makes its parent.
        """
        parent = "/sys/devices/pci0000:00/0000:" + address if name.startswith("rssd") else "/sys/devices/virtual"
        block = self.disk(name, number, parent)
        if name.startswith("rssd"):
            self.link(block + "/device", parent)
        return block


@pytest.fixture
def emulated(tmp_path, monkeypatch):
    """Make an EmulatedHost: emulated(rssdm=[…], cards=[…]) with drives of tests/emulators/emulator.py."""

    def make(**drives):
        machine = tmp_path / "machine.json"
        for name, value in emulator.start(str(machine), **drives).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(locks, "LOCK_DIR", str(tmp_path / "locks"))
        host = EmulatedHost(tmp_path / "root", machine)
        host.reboot("boot-1")
        return host

    return make


@pytest.fixture
def emulated_drive(tmp_path, fake, monkeypatch):
    """Make a SATA or SAS drive of tests/emulators/emulated_drive.py: emulated_drive("ata" | "scsi", **facts)."""
    with contextlib.ExitStack() as made:
        yield lambda kind, **facts: made.enter_context(
            EmulatedDrive(str(tmp_path), fake, kind, monkeypatch.setenv, **facts)
        )


@contextlib.contextmanager
def _in_this_process(host, _patience_s):
    yield host


@pytest.fixture
def files_by_a_child():
    """This test has settings read and written as a real host's are."""


@pytest.fixture(autouse=True)
def files_by_this_process(request, monkeypatch):
    """What stands for a kernel in these tests works in this process alone, and the real thing reads and writes by a
    child of its own.
    """
    if "files_by_a_child" not in request.fixturenames:
        monkeypatch.setattr(tuning_settings, "in_time", _in_this_process)
