# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who uses a drive, on fixture trees."""

from __future__ import annotations

import errno
import os

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import (
    descriptors,
    device_users,
    guard_check,
    open_handles,
)

SELECTOR = {"serial": "SN1"}


@pytest.fixture
def host(fake, monkeypatch):
    """A host with one drive that may be erased. Device nodes are told by their names: a fixture tree has none."""
    for module, name in ((device_users, "device_number"), (descriptors, "key_at")):
        monkeypatch.setattr(
            module,
            name,
            lambda host, path: host.get(
                "/sys/class/block/{}/dev".format((host.readlink(path) or path).rpartition("/")[2])
            ),
        )
    fake.block = fake.nvme("nvme0n1", "259:0", "SN1")
    return fake


def refusals(host):
    (result,) = guard_check.inspect(host, [parse(SELECTOR)])
    return {refusal["code"]: refusal["message"] for refusal in result["refusals"]}


def partition(host, name="nvme0n1p1", number="259:7"):
    host.partition(host.block, name, number)


def stack(host, below, name, number, **files):
    """A virtual device on another one, as the kernel links them both ways."""
    block = host.disk(name, number, "/sys/devices/virtual", **files)
    os.makedirs(host.path(f"/sys/class/block/{below}/holders/{name}"))
    os.makedirs(host.path(f"{block}/slaves/{below}"))


# --- the system ---------------------------------------------------------------


@pytest.mark.parametrize("place", ["/", "/boot", "/boot/efi", "/usr", "/var"])
def test_a_drive_with_the_system_is_a_root_disk(host, place):
    partition(host)
    host.mount("/dev/nvme0n1p1", "259:7", place)
    assert place in refusals(host)["root_disk"]


def test_another_mount_is_no_root_disk(host):
    partition(host)
    host.mount("/dev/nvme0n1p1", "259:7", "/srv/usr")
    assert "root_disk" not in refusals(host) and "mounted" in refusals(host)


def test_the_system_is_found_below_luks_lvm_and_md_through_slaves_alone(host):
    """`holders` may be empty where a driver keeps none; `slaves` must do."""
    partition(host)
    for below, name, number in (("nvme0n1p1", "md0", "9:0"), ("md0", "dm-0", "253:0"), ("dm-0", "dm-1", "253:1")):
        stack(host, below, name, number)
        os.rmdir(host.path(f"/sys/class/block/{below}/holders/{name}"))
    host.mount("/dev/mapper/root", "253:1", "/")
    assert set(refusals(host)) == {"root_disk", "partition_table"}


def btrfs(host, source, number):
    line = f"36 35 {number} / / rw - btrfs {source} rw\n"
    host.put("/proc/self/mountinfo", line)


def test_a_further_device_of_a_btrfs_root(host):
    host.nvme("nvme1n1", "259:1", "SN2")
    for name in ("nvme0n1", "nvme1n1"):
        host.put("/sys/fs/btrfs/11111111-2222/devices/" + name, "")
    btrfs(host, "/dev/nvme1n1", "0:30")
    assert set(refusals(host)) == {"root_disk", "mounted"}


def test_another_btrfs_is_not_ours(host):
    host.nvme("nvme1n1", "259:1", "SN2")
    host.put("/sys/fs/btrfs/11111111-2222/devices/nvme1n1", "")
    btrfs(host, "/dev/nvme1n1", "0:30")
    assert refusals(host) == {}


def test_a_zfs_root_is_asked_for_its_drives(host):
    host.put("/proc/self/mountinfo", "36 35 0:30 / / rw - zfs rpool/ROOT/debian rw\n")
    partition(host)
    host.answers["zpool"] = (0, "rpool\t1G\t-\n\t/dev/nvme0n1p1\t1G\n", "")
    assert "root_disk" in refusals(host)
    host.answers["zpool"] = (0, "rpool\t1G\t-\n\t/dev/sdz\t1G\n", "")
    assert "root_disk" not in refusals(host) and "probe_failed" in refusals(host)
    host.answers["zpool"] = (1, "", "no such pool")
    assert "rpool" in refusals(host)["probe_failed"]


def test_an_overlay_root_lies_on_what_is_below_it(host):
    lines = [
        "36 35 259:0 / /run/live rw - ext4 /dev/nvme0n1 rw",
        "37 35 0:30 / / rw - overlay overlay rw,lowerdir=/run/live/root,upperdir=/run/cow",
    ]
    host.put("/proc/self/mountinfo", "\n".join(lines) + "\n")
    assert set(refusals(host)) == {"root_disk", "mounted"}


def test_a_root_on_a_loop_device_lies_on_the_drive_that_has_its_file(host):
    lines = ["36 35 259:0 / /host rw - ext4 /dev/nvme0n1 rw", "37 35 7:3 / / rw - ext4 /dev/loop3 rw"]
    host.put("/proc/self/mountinfo", "\n".join(lines) + "\n")
    host.loop(3, "/host/root.img")
    assert set(refusals(host)) == {"root_disk", "mounted"}


# --- processes ----------------------------------------------------------------


def opened(host, pid, target, comm="qemu-kvm", fd=11):
    host.put(f"/proc/{pid}/comm", comm)
    path = host.path(f"/proc/{pid}/fd/{fd}")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    os.symlink(target, path)
    return path


@pytest.mark.parametrize("target", ["/dev/nvme0n1", "/dev/nvme0n1p1", "/rootfs/dev/nvme0n1", "/dev/dm-0"])
def test_an_open_drive_names_who_has_it(host, target):
    partition(host)
    stack(host, "nvme0n1p1", "dm-0", "253:0")
    opened(host, 4711, target)
    assert "qemu-kvm (process 4711)" in refusals(host)["opened"]


@pytest.mark.parametrize("target", ["/dev/nvme0n10", "socket:[nvme0n1]", "/srv/nvme0n1.img", "/dev/null"])
def test_what_looks_alike_is_not_open(host, target):
    host.disk("nvme0n10", "259:70")
    opened(host, 4711, target)
    assert refusals(host) == {}


def test_our_own_process_does_not_count(host):
    opened(host, os.getpid(), "/dev/nvme0n1")
    assert refusals(host) == {}


def test_who_only_looked_does_not_count(host, monkeypatch):
    path = opened(host, 4711, "/dev/nvme0n1", "(udev-worker)")
    monkeypatch.setattr(open_handles.time, "sleep", lambda _s: os.path.lexists(path) and os.unlink(path))
    assert refusals(host) == {}


@pytest.mark.parametrize("mount_id, looks", [("36", False), ("37", False), ("38", True), ("99", True), (None, True)])
def test_an_fd_on_a_remote_file_system_is_never_looked_at(host, monkeypatch, mount_id, looks):
    host.put(
        "/proc/self/mountinfo",
        (
            "36 35 0:50 / /net rw - nfs4 server:/x rw\n37 35 0:51 / /data rw - fuse.sshfs x rw\n38 35 0:52 / / rw - "
            "ext4 "
            "x rw\n"
        ),
    )
    opened(host, 4711, "/net/dead/nvme0n1")
    if mount_id:
        host.put("/proc/4711/fdinfo/11", f"pos:\t0\nflags:\t02\nmnt_id:\t{mount_id}\nino:\t3\n")
    looked = []
    monkeypatch.setattr(descriptors, "key_at", lambda host, path: looked.append(path))
    assert refusals(host) == {} and bool(looked) is looks


@pytest.mark.parametrize("process", ["self", "4712"])
@pytest.mark.parametrize("kind", ["nfs4", "fuse.fuse-overlayfs"])
def test_a_root_on_a_remote_file_system_hides_no_open_drive(host, kind, process):
    """A host that booted from the network, or one container with such a root: what lies below it need not lie on it."""
    host.put("/proc/self/mountinfo", "24 27 0:6 / /dev rw - devtmpfs devtmpfs rw\n")
    before = host.get(f"/proc/{process}/mountinfo") or ""
    host.put(
        f"/proc/{process}/mountinfo",
        before + f"\n27 1 0:50 / / rw - {kind} x rw\n" if before else f"27 1 0:50 / / rw - {kind} x rw\n",
    )
    opened(host, 4711, "/dev/nvme0n1")
    host.put("/proc/4711/fdinfo/11", "pos:\t0\nflags:\t02\nmnt_id:\t24\nino:\t3\n")
    assert "qemu-kvm (process 4711)" in refusals(host)["opened"]


@pytest.mark.parametrize("number, code", [(errno.EACCES, "unseen_users"), (errno.ESRCH, None), (errno.ENOENT, None)])
def test_fds_that_cannot_be_read(host, monkeypatch, number, code):
    host.put("/proc/77/comm", "x")

    def refuse(*_args):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(descriptors.Descriptors, "open", refuse)
    assert set(refusals(host)) == ({code} if code else set())


# --- exports, multipath -------------------------------------------------------


@pytest.mark.parametrize(
    "path, who",
    [
        ("/sys/kernel/config/nvmet/subsystems/nqn/namespaces/3/device_path", "nvmet"),
        ("/sys/kernel/config/target/core/iblock_0/disk/udev_path", "LIO"),
        ("/sys/kernel/scst_tgt/devices/d/filename", "SCST"),
        ("/sys/kernel/config/usb_gadget/g/functions/mass_storage.0/lun.0/file", "USB gadget"),
    ],
)
def test_an_export_is_named(host, path, who):
    host.put(path, "/dev/nvme0n1\n")
    assert who in refusals(host)["exported"]
    host.put(path, "/dev/nvme0n10\n")
    assert refusals(host) == {}


def test_a_partition_that_is_exported(host):
    partition(host)
    host.put("/sys/kernel/config/nvmet/subsystems/nqn/namespaces/3/device_path", "/dev/nvme0n1p1")
    assert set(refusals(host)) == {"exported", "partition_table"}


def test_a_controller_that_is_exported_as_a_whole(host):
    """nvmet's passthru gives other hosts every namespace, by the controller's own node."""
    host.put("/sys/kernel/config/nvmet/subsystems/nqn/passthru/device_path", "/dev/nvme0\n")
    assert "nvmet passthru" in refusals(host)["exported"]
    host.put("/sys/kernel/config/nvmet/subsystems/nqn/passthru/device_path", "/dev/nvme10\n")
    assert refusals(host) == {}


def test_an_export_by_a_link(host):
    host.link("/dev/disk/by-id/wwn-x", "/dev/nvme0n1")
    host.put("/sys/kernel/config/target/core/iblock_0/disk/udev_path", "/dev/disk/by-id/wwn-x")
    assert set(refusals(host)) == {"exported"}


@pytest.mark.parametrize("uuid, codes", [("mpath-3600508b", {"held", "fabric"}), ("LVM-abc", {"held"})])
def test_a_path_of_a_multipath_device(host, uuid, codes):
    stack(host, "nvme0n1", "dm-0", "253:0", dm__uuid=uuid)
    assert set(refusals(host)) == codes


# --- what can't be seen from here ---------------------------------------------


def test_a_container_with_the_machines_processes_but_files_of_its_own(host):
    """`podman run --pid=host`: fstab there is the image's."""
    os.makedirs(host.path("/proc/1/root"))
    assert refusals(host) == {}  # a change of root on the machine itself, such as a rescue system's
    host.put("/proc/self/mountinfo", "36 35 0:50 / / rw - overlay overlay rw,lowerdir=/l,upperdir=/u\n")
    assert "another root directory than process 1" in refusals(host)["unseen_users"]
    os.rmdir(host.path("/proc/1/root"))
    os.symlink(host.path("/"), host.path("/proc/1/root"))
    assert refusals(host) == {}


@pytest.mark.parametrize("module, place", [("nvmet", "nvmet"), ("target_core_mod", "target")])
def test_exports_that_do_not_show(host, module, place):
    """Without configfs nobody can tell what is exported, and a target need not hold it exclusively (nvmet's
    buffered_io, LIO's fileio).
    """
    host.put(f"/sys/module/{module}/refcnt", "1")
    assert module in refusals(host)["unseen_users"]
    os.makedirs(host.path("/sys/kernel/config/" + place))
    assert refusals(host) == {}


BACKSTORES = [
    (
        "fileio_0/disk",
        (
            "Status: ACTIVATED  Max Queue Depth: 0\n        TCM FILEIO ID: 0        File: {path}  Size: 1073741824  "
            "Mode: O_DSYNC Async: 0\n"
        ),
    ),
    (
        "iblock_1/disk",
        (
            "Status: ACTIVATED\n        iBlock device: nvme0n1  UDEV PATH: N/A  readonly: 0\n        Major: 259 Minor: "
            "{minor}  CLAIMED: IBLOCK\n"
        ),
    ),
]


@pytest.mark.parametrize("name, told", BACKSTORES)
def test_a_backstore_whose_path_nobody_set(host, name, told):
    host.put(f"/sys/kernel/config/target/core/{name}/udev_path", "")
    host.put(f"/sys/kernel/config/target/core/{name}/info", told.format(path="/dev/nvme0n1", minor=0))
    assert "LIO" in refusals(host)["exported"]
    host.put(f"/sys/kernel/config/target/core/{name}/info", told.format(path="/srv/disk.img", minor=44))
    assert refusals(host) == {}
