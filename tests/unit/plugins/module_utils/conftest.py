# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host made of files: sysfs, procfs and udev as a server with several drives has them."""

from __future__ import annotations

import contextlib
import json
import os
import struct
import sys

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import locks
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host, Result
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import open_handles
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import settings as tuning_settings

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
# A drive's size, if a test does not say another: the guard reads such a small drive whole.
DRIVE_BYTES = 32 << 20
BOOT_DISK = "254:9"
BLKGETSIZE64, BLKGETDISKSEQ = 0x80081272, 0x80081280  # linux/fs.h
# A local NVMe drive with one namespace and nothing special, as nvme-cli 2.3 tells it (nvme-print.c); hosts' tests
# change single values.
NVME_CTRL = {"sn": "SN1", "cmic": 0, "oacs": 0x6, "oncs": 0x5F, "fna": 0, "sanicap": 0}
NVME_NS = {"nsze": DRIVE_BYTES // 512, "ncap": DRIVE_BYTES // 512, "nmic": 0, "nsattr": 0}


def _inode(handle):
    status = os.fstat(handle)
    return status.st_dev, status.st_ino


class FakeHost(Host):
    """A host under a temporary folder; `answers` maps a command's name to (rc, stdout, stderr).

    A node that is opened passes for the device that sysfs says it is, unless `has_devices` is false.
    """

    has_devices = True

    def __init__(self, root):
        super().__init__(str(root))
        self._nodes = {}
        # No signature, and util-linux's answers for it.
        self.answers = {"wipefs": (0, '{"signatures": []}', ""), "blkid": (2, "", "")}
        self.nvme_says("id-ctrl", NVME_CTRL)
        self.nvme_says("id-ns", NVME_NS)
        self.nvme_says("smart-log", {"critical_warning": 0})
        self.nvme_says("resv-report", {"gen": 0, "rtype": 0, "regctl": 0, "ptpls": 0, "regctls": []})
        self.commands = []
        os.makedirs(self.path("/proc/self/ns"), exist_ok=True)
        os.symlink("pid:[4026531836]", self.path("/proc/self/ns/pid"))  # of the machine itself, not of a container
        self.put("/proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n")
        self.mount("/dev/root", BOOT_DISK, "/")

    def open(self, path, flags):
        """What stands for a drive's node is a file of the drive's size that holds zeros."""
        handle = super().open(path, flags & ~os.O_DIRECT)
        sectors = self.get(f"/sys/class/block/{os.path.basename(path)}/size")
        if self.has_devices and sectors:
            os.truncate(self.path(path), 512 * int(sectors))
            self._nodes[_inode(handle)] = os.path.basename(path)
        return handle

    def device_number(self, handle):
        name = self._nodes.get(_inode(handle))
        return self.get(f"/sys/class/block/{name}/dev") if name else super().device_number(handle)

    def ioctl(self, handle, request, argument):
        name = self._nodes.get(_inode(handle))
        if name and request in (BLKGETSIZE64, BLKGETDISKSEQ):
            value = self.read(f"/sys/class/block/{name}/{'size' if request == BLKGETSIZE64 else 'diskseq'}")
            return struct.pack("=Q", int(value) * (512 if request == BLKGETSIZE64 else 1))
        return super().ioctl(handle, request, argument)

    def run(self, argv, timeout_s=60, stdin=None, started=None):
        self.commands.append(list(argv))
        return Result(
            list(argv),
            *self.answers.get(" ".join(argv[:2]), self.answers.get(argv[0], (127, "", "cannot run " + argv[0]))),
        )

    def nvme_says(self, command, values):
        """What `nvme <command>` answers in JSON, with these values changed in what it said before."""
        before = json.loads(self.answers.get("nvme " + command, (0, "{}", ""))[1])
        self.answers["nvme " + command] = (0, json.dumps(dict(before, **values)), "")

    def put(self, path, content):
        file = self.path(path)
        os.makedirs(os.path.dirname(file), exist_ok=True)
        # At once, as a kernel's file changes: a sampler must not read it empty.
        with open(file + ".new", "wb") as stream:
            stream.write(content if isinstance(content, bytes) else content.encode())
        os.replace(file + ".new", file)

    def link(self, path, target):
        file = self.path(path)
        os.makedirs(os.path.dirname(file), exist_ok=True)
        os.symlink(os.path.relpath(self.path(target), os.path.dirname(file)), file)

    def mount(self, source, major_minor, where, process="self"):
        path = self.path(f"/proc/{process}/mountinfo")
        before = open(path).read() if os.path.exists(path) else ""
        self.put(
            f"/proc/{process}/mountinfo",
            before + f"36 35 {major_minor} / {where} rw,noatime shared:1 - ext4 {source} rw\n",
        )

    def disk(self, name, number, device="/sys/devices/pci0000:00/0000:00:03.0", size=DRIVE_BYTES, **files):
        """A whole disk: its folder lies below `device`; `files` are further files of it, with __ for /."""
        block = f"{device}/block/{name}"
        self.link("/sys/block/" + name, block)
        self.link("/sys/class/block/" + name, block)
        facts = {
            "dev": number,
            "size": str(size // 512),
            "ro": "0",
            "removable": "0",
            "diskseq": number.split(":")[1],
            "queue__logical_block_size": "512",
            "queue__physical_block_size": "4096",
            "queue__minimum_io_size": "16384",
            "queue__discard_max_bytes": "2147450880",
            "queue__nr_requests": "64",
            "queue__rotational": "0",
        }
        for path, content in dict(facts, **files).items():
            self.put(
                "{}/{}".format(block, path.replace("__", "/")),
                content if isinstance(content, bytes) else content + "\n",
            )
        os.makedirs(self.path(block + "/holders"), exist_ok=True)
        self.put("/dev/" + name, "")
        return block

    def partition(self, block, name, number):
        for path, content in (("partition", "1"), ("dev", number)):
            self.put(f"{block}/{name}/{path}", content)
        os.makedirs(self.path(f"{block}/{name}/holders"), exist_ok=True)
        self.link("/sys/class/block/" + name, f"{block}/{name}")
        self.put("/dev/" + name, "")

    def nvme(self, name, number, serial, **files):
        """A local NVMe drive on node 1 with one controller."""
        controller = "/sys/devices/pci0000:80/0000:80:01.0/nvme/" + name.rsplit("n", 1)[0]
        for file, content in (
            ("transport", "pcie"),
            ("serial", serial),
            ("model", "EXAMPLE 9000   "),
            ("firmware_rev", "FW1"),
            ("sqsize", "1023"),
        ):
            self.put(f"{controller}/{file}", content + "\n")
        self.put("/sys/devices/pci0000:80/0000:80:01.0/numa_node", "1\n")
        block = self.disk(name, number, controller, **dict({"nsid": "1"}, **files))
        self.link(block + "/device", controller)
        return block

    def pci(self, *addresses, base="/sys/devices/pci0000:00", bridge=False, aer=None, config=b"", **files):
        """A PCI function below those before it in `addresses`; `files` are its attributes, `aer` its (correctable,
        nonfatal, fatal) totals.
        """
        path = "/".join([base, *addresses])
        facts = {
            "vendor": "0x1234",
            "device": "0x0001",
            "class": "0x060400" if bridge else "0x010802",
            "numa_node": "0",
        }
        for kind, total, count in zip(("correctable", "nonfatal", "fatal"), ("COR", "NONFATAL", "FATAL"), aer or ()):
            facts["aer_dev_" + kind] = f"Receiver Error 0\nData Link Protocol {count}\nTOTAL_ERR_{total} {count}"
        for name, content in dict(facts, **files).items():
            self.put(f"{path}/{name}", content + "\n")
        self.put(path + "/config", config)
        if not os.path.lexists(self.path("/sys/bus/pci/devices/" + addresses[-1])):
            self.link("/sys/bus/pci/devices/" + addresses[-1], path)
        return path

    def loop(self, number, backing_file=None, size=DRIVE_BYTES):
        files = {"loop__backing_file": backing_file} if backing_file else {}
        return self.disk(
            f"loop{number}", f"7:{number}", "/sys/devices/virtual", size=size if backing_file else 0, **files
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
