# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A server that a play takes for real: its sysfs, /dev and tools are fixtures, and behind each drive is a loop device
with data.

The plays of the bench run in a mount namespace where /sys is a tree of files (that of the unit tests) and /dev has
nodes such as nvme0n1 with the numbers of the loop devices. So the real commands read real bytes there, an exclusive
open is one, and whatever would erase a drive would erase a file whose hash the test knows. hdparm and sg_* are the
emulators of tests/emulators. nvme and what else a test gives answers for are one script that prints them; it is no
drive and changes nothing.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
from pathlib import Path

from wrong_drive import SIZE

_TESTS = Path(__file__).resolve().parents[1]
_UNIT = _TESTS / "unit" / "plugins" / "module_utils" / "conftest.py"
EMULATORS = _TESTS / "emulators"
DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "loop-control")

# Prints the first answer whose words are all among the arguments, else says that it knows none.
TOOL = """#!{python} -IS
import json, os, sys
words = [os.path.basename(sys.argv[0]), *sys.argv[1:]]
for wanted, rc, stdout, stderr in json.load(open({answers!r})):
    if words[0] == wanted[0] and all(word in words for word in wanted):
        sys.stdout.write(stdout)
        sys.stderr.write(stderr)
        sys.exit(rc)
sys.exit("no answer for " + " ".join(words))
"""
# A local drive with one namespace and nothing special, as nvme-cli tells it in JSON (its nvme-print-json.c).
NVME = {
    "id-ctrl": {"cmic": 0, "oacs": 0x6, "oncs": 0x5F, "fna": 0, "sanicap": 0x7},
    "id-ns": {
        "nmic": 0,
        "nsattr": 0,
        "flbas": 0,
        "fpi": 0,
        "dps": 0,
        "lbafs": [{"ms": 0, "ds": 9, "rp": 0}],
        "eui64": "0" * 16,
        "nguid": "0" * 32,
    },
    "smart-log": {"critical_warning": 0},
    "sanitize-log": {"nvme": {"sprog": 65535, "sstat": {"status": "(0) Most Recent Sanitize Command: never."}}},
    "resv-report": {"gen": 0, "rtype": 0, "regctl": 0, "ptpls": 0, "regctls": []},
    "list-ctrl": {"num_ctrl": 1, "ctrl_list": [{"ctrl_id": 0}]},
    "list-ns": {"nsid_list": [{"nsid": 1}]},
    "ns-descs": {"ns-descs": []},
    "version": {},
}
PCI = "/sys/devices/pci0000:00/0000:00:17.0/"


def vpd80(serial):
    """The serial of a SCSI device in sysfs, for FakeServer.disk: VPD page 80h."""
    return {"device__vpd_pg80": b"\0\x80" + len(serial).to_bytes(2, "big") + serial.encode()}


def _unit_conftest():
    spec = importlib.util.spec_from_file_location("unit_conftest", _UNIT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class FakeServer:
    """The server of a bench. Add drives and answers, then `enter` once, then play."""

    def __init__(self, bench):
        self.bench = bench
        self.root = Path(bench.folder, "server")
        self.root.mkdir()
        self.tree = _unit_conftest().FakeHost(str(self.root))
        self.answers = []
        self._emulated = {"ata": {}, "scsi": {}}
        self._nodes = {}

    def nvme(self, label, name, serial, says=None, size_bytes=SIZE, **files):
        """An NVMe drive with one controller; its disk.

        says: what it says otherwise than NVME, {command: {key: value}}; a text or None stands for the whole answer.
        files: further files of its block device, __ for /.
        """
        disk = self._drive(
            label,
            name,
            {"serial": serial},
            lambda number, facts: self.tree.nvme(name, number, serial, **facts),
            files,
            size_bytes,
        )
        size = {"nsze": os.path.getsize(disk.file) // 512, "ncap": os.path.getsize(disk.file) // 512}
        fixed = {"id-ctrl": {"sn": serial}, "id-ns": size}
        for command, usual in NVME.items():
            said = dict(says or {}).get(command, {})
            answer = {**usual, **fixed.get(command, {}), **said} if isinstance(said, dict) else said
            for node in sorted({name, name.rsplit("n", 1)[0]}):
                self.answer(
                    "nvme",
                    command,
                    "/dev/" + node,
                    rc=0 if answer is not None else 1,
                    stdout=answer or "",
                    stderr="" if answer else "NVMe status: refused",
                )
        return disk

    def sata(self, label, name, serial, files=None, **facts):
        """A SATA drive; facts: those of tests/emulators/ata_drive.py. Its disk."""
        return self._emulate(
            "ata",
            label,
            name,
            serial,
            "ata{0}/host{0}/target{0}:0:0/{0}:0:0:0",
            dict({"device__vendor": "ATA"}, **files or {}),
            facts,
        )

    def sas(self, label, name, serial, files=None, **facts):
        """A SAS drive; facts: those of tests/emulators/scsi_drive.py. Its disk."""
        return self._emulate(
            "scsi",
            label,
            name,
            serial,
            "host{0}/port-{0}:0/end_device-{0}:0/target{0}:0:0/{0}:0:0:0",
            files or {},
            facts,
        )

    def _emulate(self, kind, label, name, serial, place, files, facts):
        disk = self.disk(
            label, name, PCI + place.format(100 + len(self._nodes)), {"serial": serial}, **dict(vpd80(serial), **files)
        )
        self._emulated[kind][disk.node] = importlib.import_module(kind + "_drive").new(
            disk.file, serial=serial, **facts
        )
        return disk

    def disk(self, label, name, device, entry, **files):
        """Any other drive, below a folder of sysfs; `files` as above, those of its SCSI device begin with device__."""
        return self._drive(label, name, entry, lambda number, facts: self._below(name, number, device, facts), files)

    def _below(self, name, number, device, facts):
        own = {path: facts.pop(path) for path in list(facts) if path.startswith("device__")}
        for path, content in own.items():
            self.tree.put(device + "/" + path[len("device__") :], content)
        block = self.tree.disk(name, number, device, **facts)
        self.tree.link(block + "/device", device)
        return block

    def _drive(self, label, name, entry, make, files, size_bytes=SIZE):
        disk = self.bench.disk(label, size_bytes)
        disk.entry = entry
        disk.block = make(self._number(disk), dict(self._facts(disk), **files))
        disk.node = "/dev/" + name
        self._nodes[name] = disk
        return disk

    @staticmethod
    def _number(disk):
        status = os.stat(disk.path)
        return f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"

    @staticmethod
    def _facts(disk):
        """What a node and sysfs must agree on, so that the guard takes them for one device."""
        return {
            "size": os.path.getsize(disk.file),
            "diskseq": Path("/sys/block", disk.name, "diskseq").read_text().strip(),
        }

    def answer(self, *words, rc=0, stdout="", stderr=""):
        """What a tool says when its call has all these words; the first is its name."""
        self.answers.append([words, rc, stdout if isinstance(stdout, str) else json.dumps(stdout), stderr])

    def enter(self):
        """Let the plays of the bench see this server."""
        for disk in self.bench.disks.values():
            if "serial" not in disk.entry and disk not in self._nodes.values():
                self._nodes[disk.name] = disk
                facts = self._facts(disk)
                block = self.tree.loop(int(disk.name[len("loop") :]), disk.file, size=facts["size"])
                self.tree.put(block + "/diskseq", facts["diskseq"])
        self._make_tools()
        dev = self.root / "newdev"
        dev.mkdir()
        do = self.bench.in_namespace
        do("mount", "--bind", self.root / "sys", "/sys")
        do("mount", "-t", "tmpfs", "-o", "mode=755", "fixture", dev)
        do("cp", "-a", *("/dev/" + name for name in DEVICES if os.path.exists("/dev/" + name)), dev)
        do("mkdir", dev / "shm", dev / "pts", dev / "disk", dev / "disk/by-id")
        do("mount", "--bind", "/dev/shm", dev / "shm")
        for name, disk in self._nodes.items():
            status = os.stat(disk.path)
            do("mknod", dev / name, "b", os.major(status.st_rdev), os.minor(status.st_rdev))
        for link in sorted(self.root.glob("dev/disk/by-id/*")):
            do("ln", "-s", "../../" + os.path.basename(os.readlink(link)), dev / "disk/by-id" / link.name)
        do("mount", "--move", dev, "/dev")

    def _make_tools(self):
        tools, answers, machine = (self.root / name for name in ("bin", "answers.json", "machine.json"))
        tools.mkdir()
        # nvme version is asked without a device; a drive that has no Opal says that it does not know the command.
        self.answer("nvme", "version", stdout="nvme version 2.3")
        self.answer("sg_raw", rc=9, stderr="Illegal request, Invalid opcode")
        answers.write_text(json.dumps(self.answers))
        machine.write_text(json.dumps(self._emulated))
        for name in sorted({words[0] for words, *_rest in self.answers}):
            (tools / name).write_text(TOOL.format(python=sys.executable, answers=str(answers)))
            (tools / name).chmod(0o755)
        for path in [EMULATORS / "hdparm", *EMULATORS.glob("sg_*")]:
            if not (tools / path.name).exists():
                (tools / path.name).symlink_to(path)
        self.bench.environment.update(
            PATH="{}:{}:{}".format(tools, os.path.dirname(sys.executable), os.environ["PATH"]),
            SSDLAB_EMULATED_DRIVES=str(machine),
        )
