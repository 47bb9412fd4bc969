# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An NVMe drive for host jobs of this process: a loop device that a `Server` shows as NVMe, and the emulator of
tests/emulators in place of nvme-cli, which works on the file behind it.
"""

from __future__ import annotations

import json
import os
import signal
import sys

import drive_data
import own_machine

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import files, locks, sysfs
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import attributes, identity, wear
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import guard_check
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import engine
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import folder as rundir
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import settings, write_cache
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import render_plan as planning
from ansible_collections.ssdlab.fleet.tests.fixtures import documents, run_results
from ansible_collections.ssdlab.fleet.tests.fixtures.plans import decided, rendered

EMULATORS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "emulators")
SERIAL, EUI = "EMULATED-1", "0025385b71b004a1"
SIZE = 48 << 20
CONTROLLER = "/sys/class/nvme/nvme0"


class Server(Host):
    """This machine, whose loop device `name` is namespace 1 of the controller nvme0."""

    def __init__(self, name, **more):
        super().__init__()
        self.files = {f"/sys/block/{name}/nsid": "1", f"/sys/block/{name}/eui": EUI, **more}

    def get(self, path):
        return self.files.get(path) or super().get(path)


class Bench:
    """The drive, the state of its emulator, and host jobs of this process with a state folder and locks
    of their own.
    """

    def __init__(self, loop, folder):
        self.loop, self.folder, self.sysfs = loop, folder, {}
        # Of the controller's namespaces, by the kernel.
        self.names = [loop.name]
        self.machine = folder / "nvme.json"
        space = {"media": str(loop.file), "size_bytes": SIZE, "eui64": EUI, "lbaf": 0}
        self.facts = {"controller": "nvme0", "sn": SERIAL, "seconds": 0, "namespaces": {"1": space}}
        self.set()
        self.run_dir = rundir.RunDir(str(folder / "state"), "r")

    def set(self, **facts):
        self.facts.update(facts)
        self.machine.write_text(json.dumps({"drives": [self.facts]}))

    def state(self):
        return json.loads(self.machine.read_text())["drives"][0]

    def server(self):
        return Server(self.loop.name, **self.sysfs)

    def plan(self, method, tests=None, **tuned):
        tests = tests or planning.step_plan("purge")
        seen = guard_check.inspect(self.server(), [parse(self.loop.selector)])
        assert seen[0]["refusals"] == []
        tune = {"cpu_dma_latency_us": None, "services_stopped": [], "sysfs": [], "keep": False, **tuned}
        return rendered(
            tests,
            run={"id": "r", "name": "n"},
            host="h",
            boot_id=settings.boot_id(Host()),
            drives=seen,
            engine_version="1",
            variables={"purge_method": method},
            tune=tune,
        )

    def job(self, plan):
        os.makedirs(self.run_dir.path, exist_ok=True)
        files.write_atomic(self.run_dir.plan, json.dumps(decided(plan)))
        return engine.HostJob(self.run_dir, self.server())

    def run(self, method):
        """A host job to its end: the drive's outcome."""
        self.job(self.plan(method)).run()
        return self.run_dir.read_status()["drives"][0]

    def journal(self, *names):
        records = rundir.read_journal(self.run_dir.journal)
        for record in records:
            documents.validate(record, "journal")
        return [record for record in records if record["event"] in names]

    def ended(self):
        """The results of the tests that have an end."""
        return run_results.ended(self.run_dir.path)

    def erasing(self):
        """The destructive commands that the job logged, fio's aside."""
        with open(self.run_dir.commands) as file:
            argvs = [json.loads(line)["argv"] for line in file]
        return [
            argv for argv in argvs if argv[:2] in (["nvme", "format"], ["nvme", "sanitize"], ["ioctl", "BLKDISCARD"])
        ]

    def digest(self):
        return drive_data.digest(self.loop.file)


def benched(loop, folder, monkeypatch):
    """A Bench of a loop device; a generator, for a fixture."""
    made = Bench(loop, folder)
    monkeypatch.setattr(attributes, "transport", lambda host, name: "nvme")
    for module in (attributes, sysfs, wear, write_cache):
        monkeypatch.setattr(module, "nvme_controllers", lambda host, name: [CONTROLLER] if name in made.names else [])
    monkeypatch.setattr(identity, "serial", lambda host, name: SERIAL if name == loop.name else None)
    monkeypatch.setattr(locks, "LOCK_DIR", own_machine.lock_folder(folder / "locks"))
    monkeypatch.setenv("SSDLAB_EMULATED_NVME", str(made.machine))
    monkeypatch.setenv("PATH", os.pathsep.join([EMULATORS, os.path.dirname(sys.executable), os.environ["PATH"]]))
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    yield made
    for number, handler in before.items():
        signal.signal(number, handler)
