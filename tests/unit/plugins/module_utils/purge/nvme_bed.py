# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An emulated NVMe drive, held as the host job holds it, with real purges on it."""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import time

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Result
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge import methods, purge_step
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge.method import Work
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import PlannedPurge

SIZE = 1 << 20
SERIAL, EUI = "S3EVNX0K100001", "0025385b71b004a1"
EMULATOR = os.path.join(os.path.abspath(__file__).split("/tests/unit/")[0], "tests", "emulators", "nvme")
SANITIZES = ("nvme_sanitize_crypto", "nvme_sanitize_block", "nvme_sanitize_overwrite")
FORMATS = ("nvme_format_crypto", "nvme_format_user_data")


def load_emulator():
    """In this process: a purge asks a dozen times, and a process each takes its time."""
    loader = importlib.machinery.SourceFileLoader("emulated_nvme", EMULATOR)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("emulated_nvme", loader))
    loader.exec_module(module)
    return module


class Bed:
    """One emulated drive, its namespace 1 as /dev/nvme3n1 behind controller nvme0: numbers that are not the same say
    nothing.
    """

    def __init__(self, fake, folder, **facts):
        self.folder = folder
        self.host = fake
        self.state = folder / "nvme.json"
        self.media = folder / "media-1"
        self.media.write_bytes(bytes(SIZE))
        self.other = folder / "media-2"
        self.other.write_bytes(b"theirs" * 1000)
        space = {"media": str(self.media), "size_bytes": SIZE, "eui64": EUI, "lbaf": 0}
        spaces = dict({"1": space}, **facts.pop("others", {}))
        self.write(dict({"controller": "nvme0", "sn": SERIAL, "seconds": 0, "namespaces": spaces}, **facts))
        self.emulator = load_emulator()
        self.emulator.STATE = str(self.state)
        fake.nvme("nvme3n1", "0:0", SERIAL, size=SIZE, nsid="1", eui="00 25 38 5b 71 b0 04 a1")
        controller = "/sys/devices/pci0000:80/0000:80:01.0/nvme/nvme3"
        os.rename(fake.path(controller), fake.path(controller[:-1] + "0"))
        for link in ("/sys/block/nvme3n1", "/sys/class/block/nvme3n1", "/sys/dev/block/0:0"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(fake.path(link))
            fake.link(link, controller[:-1] + "0/block/nvme3n1")
        os.unlink(fake.path(controller[:-1] + "0/block/nvme3n1/device"))
        fake.link(controller[:-1] + "0/block/nvme3n1/device", controller[:-1] + "0")
        fake.run = self.run
        self.argvs = []
        self.held = Held(self)
        self.notes = []
        self.ticks = []

    def write(self, facts):
        self.state.write_text(json.dumps({"drives": [facts]}))

    def set(self, **facts):
        self.write(dict(self.facts(), **facts))

    def facts(self):
        return json.loads(self.state.read_text())["drives"][0]

    def run(self, argv, timeout_s=60, stdin=None, started=None):
        """nvme alone is there; any other command is missing."""
        self.argvs.append(list(argv))
        if argv[0] != "nvme":
            return Result(list(argv), 127, "", "cannot run " + argv[0])
        out, errors, code = io.StringIO(), io.StringIO(), 0
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            try:
                self.emulator.main(argv[1:])
            except SystemExit as ended:
                code = ended.code
        return Result(list(argv), code, out.getvalue(), errors.getvalue())

    def erasing(self):
        return [argv for argv in self.argvs if argv[:1] == ["nvme"] and argv[1] in ("format", "sanitize")]

    def offers(self, **options):
        offered = methods.offers(self.host, self.identity(), PlannedPurge("auto", **options))
        return {offer.method: offer for offer in offered}

    def identity(self):
        return self.held.identity

    def work(self, method="auto", **options):
        return Work(
            host=self.host,
            held=self.held,
            options=PlannedPurge(method, **options),
            tick=self.ticks.append,
            sleep=lambda seconds: time.sleep(min(seconds, 0.05)),
            note=lambda event, **fields: self.notes.append(dict(fields, event=event)),
            fill=lambda tick: 0,
        )

    def purge(self, method, **options):
        """As the campaign does it; the fields of the purge record."""
        return base.to_json(purge_step.perform(self.work(method, **options)))


class Held:
    """What held.HeldDrive is to a method, over the file that stands for the namespace's media."""

    def __init__(self, bed):
        self._bed = bed
        self.handle = os.open(bed.media, os.O_RDWR)
        self.identity = identity.identity(bed.host, "nvme3n1")
        self.checks = 0
        self.lent = []

    def note_sentinels(self, sentinels):
        """What is about to be written to prove a purge with."""
        self.noted_sentinels = sentinels

    def descriptor(self):
        return self.handle

    def check(self):
        self.checks += 1

    @contextlib.contextmanager
    def lend(self, may_change=()):
        self.lent.append(may_change)
        yield
        self.identity = identity.identity(self._bed.host, "nvme3n1")
