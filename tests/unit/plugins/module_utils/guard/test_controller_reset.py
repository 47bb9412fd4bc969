# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who speaks against a reset of an NVMe controller. The answers have the form of nvme-cli 2.3."""

from __future__ import annotations

import errno

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import controller_reset
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.controller_reset import InUse


@pytest.fixture
def host(fake):
    """A drive of two namespaces that nobody uses, and another drive."""
    fake.nvme("nvme0n1", "259:0", "SN1")
    fake.nvme("nvme0n2", "259:1", "SN1", nsid="2")
    fake.nvme("nvme1n1", "259:2", "SN2")
    lists(fake, 1, 2)
    names = {"eui64": "0" * 16, "nguid": "0" * 32}
    fake.nvme_says("id-ns", {**names, "flbas": 0, "dps": 0, "fpi": 0, "lbafs": [{"ms": 0, "ds": 9, "rp": 0}]})
    return fake


def lists(fake, *numbers):
    fake.nvme_says("list-ns", {"nsid_list": [{"nsid": number} for number in numbers]})


def why_not(host, name="nvme0n1"):
    with pytest.raises(InUse) as refused, controller_reset.alone_on_controller(host, name):
        pass
    return str(refused.value)


def test_nobody_does_where_nobody_uses_the_other_namespace(host):
    with controller_reset.alone_on_controller(host, "nvme0n1") as node:
        assert node == "/dev/nvme0"
    # Of another drive's controller nobody was asked.
    assert not [argv for argv in host.commands if "/dev/nvme1" in argv]


def test_the_other_namespace_is_held_meanwhile(host):
    opened = []

    def held(path, flags, open_it=host.open):
        opened.append((path, bool(flags & 0o200)))  # O_EXCL
        return open_it(path, flags)

    host.open = held
    with controller_reset.alone_on_controller(host, "nvme0n1"):
        assert ("/dev/nvme0n2", True) in opened


def mounted(host):
    host.mount("/dev/nvme0n2", "259:1", "/data")


def swapped(host):
    host.put("/proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n/dev/nvme0n2 partition 1 0 -2\n")


def is_root(host):
    host.mount("/dev/nvme0n2", "259:1", "/")


def stacked(host):
    host.disk("dm-0", "253:0", "/sys/devices/virtual")
    host.link("/sys/class/block/nvme0n2/holders/dm-0", "/sys/devices/virtual/block/dm-0")


def partition_mounted(host):
    host.partition("/sys/class/block/nvme0n2", "nvme0n2p1", "259:9")
    host.mount("/dev/nvme0n2p1", "259:9", "/data")


@pytest.mark.parametrize(
    ("use", "code"),
    [
        (mounted, "mounted"),
        (swapped, "swap"),
        (is_root, "root_disk"),
        (stacked, "held"),
        (partition_mounted, "mounted"),
    ],
)
def test_a_user_of_the_other_namespace_does(host, use, code):
    use(host)
    assert why_not(host).startswith(f"/dev/nvme0n2, another namespace of its controller, is in use ({code}): ")


def test_what_lies_on_the_other_namespace_does_not(host):
    host.partition("/sys/class/block/nvme0n2", "nvme0n2p1", "259:9")
    with controller_reset.alone_on_controller(host, "nvme0n1"):
        pass


def test_who_holds_the_other_namespace_in_the_kernel_does(host):
    def busy(path, flags, open_it=host.open):
        if path == "/dev/nvme0n2":
            raise OSError(errno.EBUSY, "Device or resource busy")
        return open_it(path, flags)

    host.open = busy
    assert why_not(host).endswith("is in use: Device or resource busy")


def test_a_namespace_that_is_no_block_device_does(host):
    lists(host, 1, 2, 5)
    assert why_not(host) == "who uses its namespace 5 can't be seen: it is no block device of this host"


def test_other_controllers_of_the_subsystem_do(host):
    host.nvme_says("id-ctrl", {"cmic": 2})
    host.nvme_says("list-ctrl", {"num_ctrl": 2, "ctrl_list": [{"ctrl_id": 1}, {"ctrl_id": 2}]})
    assert why_not(host) == "its NVM subsystem has 2 controllers, and another host may use one"


def test_what_is_unknown_does(host):
    host.answers["nvme list-ns"] = (1, "", "Invalid Field")
    assert why_not(host).startswith("what else hangs on its controller is unknown: ")


def test_a_drive_without_a_controller_of_its_own_has_none(host):
    host.disk("sda", "8:0", "/sys/devices/pci0000:00/0000:00:1f.2/ata3/host2/target2:0:0/2:0:0:0")
    assert why_not(host, "sda") == "/dev/sda has no NVMe controller of its own"
