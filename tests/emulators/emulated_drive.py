# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A SATA or SAS drive for tests of a purge: the emulators of hdparm and sg3_utils run as real commands; the drive's
media is a file.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys

import ata_drive
import emulator
import scsi_drive

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge import methods, purge_step
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge.method import Work
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import PlannedPurge

HERE = os.path.dirname(os.path.abspath(__file__))
SIZE = 1 << 20
PCI = "/sys/devices/pci0000:00/0000:00:17.0/"
# kind -> its model, where sysfs has it, its transport
KINDS = {
    "ata": (ata_drive, PCI + "ata3/host2/target2:0:0/2:0:0:0", "sata"),
    "scsi": (scsi_drive, PCI + "host0/port-0:0/end_device-0:0/target0:0:0/0:0:0:0", "sas"),
}


class EmulatedDrive:
    """`host`: whose sysfs shows the drive; `setenv(name, value)` sets what the emulators need. It is what
    held.HeldDrive is to a method, too.

    journal: what was noted. commands: every argument list that ran. Its time is its own, so that no test waits.
    """

    def __init__(self, folder, host, kind, setenv, **facts):
        self.model, device, transport = KINDS[kind]
        self.kind, self.host, self.now, self.journal, self.commands, self.shares, self.options = (
            kind,
            host,
            0.0,
            [],
            [],
            [],
            {},
        )
        self.media, self.machine = os.path.join(folder, "media.img"), os.path.join(folder, "machine.json")
        with open(self.media, "wb") as file:
            file.truncate(SIZE)
        drive = self.model.new(self.media, **facts)
        with open(self.machine, "w", encoding="utf-8") as file:
            json.dump({kind: {self.media: drive}}, file)
        host.put(device + "/scsi_disk/0:0:0:0/protection_type", "0\n")
        host.link(host.disk("sda", "8:0", device, size=SIZE) + "/device", device)
        host.log, host.run = self.commands.append, lambda *args, **kwargs: Host.run(host, *args, **kwargs)
        self.identity = Identity(
            path=self.media,
            kernel_name="sda",
            serial=drive["serial"],
            size_bytes=SIZE,
            transport=transport,
            logical_block_size_bytes=512,
            max_discard_bytes=0,
        )
        self.handle = os.open(self.media, os.O_RDWR)
        setenv(emulator.VARIABLE, self.machine)
        setenv(
            "PATH", os.pathsep.join([HERE, os.path.dirname(sys.executable), os.environ["PATH"]])
        )  # ours first: a shim of python3 is slow

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        os.close(self.handle)

    # What held.HeldDrive is to a method.

    def note_sentinels(self, sentinels):
        """What is about to be written to prove a purge with."""
        self.noted_sentinels = sentinels

    def descriptor(self):
        return self.handle

    def check(self):
        """The guard; a test of a drive that changed replaces it."""

    @contextlib.contextmanager
    def lend(self, may_change=()):
        yield self.commands.append(["lend", *may_change])

    # The drive, seen from outside.

    def state(self):
        """The drive as it is now."""
        with open(self.machine, encoding="utf-8") as file:
            return json.load(file)[self.kind][self.media]

    def change(self, **facts):
        """Set facts of the drive; a mapping is merged."""
        with emulator.state(self.machine) as machine:
            drive = machine[self.kind][self.media]
            for key, value in facts.items():
                drive[key] = dict(drive[key], **value) if isinstance(value, dict) else value

    def power_cycle(self, **how):
        with emulator.state(self.machine) as machine:
            self.model.power_cycle(machine[self.kind][self.media], **how)

    # What the campaign does with it.

    def tick(self, share):
        """A test of a stop replaces it."""
        self.shares.append(share)

    def note(self, event, **fields):
        self.journal.append(dict(fields, event=event))

    def events(self):
        return [record["event"] for record in self.journal]

    def sleep(self, seconds):
        self.now += seconds

    def changing(self, *reads):
        """The commands that ran without those that only read: hdparm and sg_* by option or name."""
        return [argv for argv in self.commands if not any(word in argv for word in reads)]

    def offers(self, **options):
        offered = methods.offers(self.host, self.identity, PlannedPurge("auto", **options))
        return {offer.method: offer for offer in offered}

    def work(self, method="auto", **options):
        return Work(
            host=self.host,
            held=self,
            options=PlannedPurge(method, **options),
            tick=self.tick,
            note=self.note,
            fill=lambda tick: 0,
            clock=lambda: self.now,
            sleep=self.sleep,
        )

    def purge(self, method, **options):
        """As the campaign does it; the fields of the purge record."""
        return base.to_json(purge_step.perform(self.work(method, **options)))
