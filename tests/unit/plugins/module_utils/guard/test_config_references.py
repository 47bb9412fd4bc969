# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What names a drive that is not in use, on fixture trees."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import guard_check

UUID = "6a3f0c52-11f2-4ad8-9b1e-0c2f0d5a9b11"
UDEV = f"S:disk/by-id/nvme-EX_SN1\nE:ID_FS_UUID={UUID}\nE:ID_FS_LABEL=Data\nE:ID_SERIAL=EX_SN1\n"
UDEV_PARTITION = "S:disk/by-partuuid/aaaa-01\nE:ID_PART_ENTRY_UUID=AAAA-01\nE:ID_PART_ENTRY_NAME=db\n"


@pytest.fixture
def host(fake, monkeypatch):
    """A drive with a partition that udev knows by all their names; the content is lifted by the entry."""
    fake.block = fake.nvme("nvme0n1", "259:0", "SN1", wwid="eui.0025385b71b00eb0")
    fake.partition(fake.block, "nvme0n1p1", "259:7")
    fake.put("/run/udev/data/b259:0", UDEV)
    fake.put("/run/udev/data/b259:7", UDEV_PARTITION)
    fake.link("/dev/disk/by-id/nvme-EX_SN1-part1", "/dev/nvme0n1p1")
    return fake


def refusals(host):
    (result,) = guard_check.inspect(host, [parse({"serial": "SN1", "allow": ["partition_table"]})])
    return {refusal["code"]: refusal["message"] for refusal in result["refusals"]}


CONFIGURED = [
    ("/etc/fstab", f"UUID={UUID} /srv ext4 noauto 0 0"),
    ("/etc/fstab", f'UUID="{UUID.upper()}" /srv ext4 noauto 0 0'),
    ("/etc/fstab", "# system\nLABEL=Data none swap sw"),
    ("/etc/fstab", "PARTUUID=aaaa-01 /srv ext4"),
    ("/etc/fstab", "PARTLABEL=db /srv ext4"),
    ("/etc/fstab", "/dev/disk/by-id/nvme-EX_SN1-part1 /srv ext4"),
    ("/etc/fstab", "/dev/disk/by-id/nvme-EX_SN1 /srv ext4"),  # no such link now, but udev knows it
    ("/etc/fstab", f"/dev/disk/by-uuid/{UUID} /srv ext4"),
    ("/etc/fstab", "/dev/nvme0n1p1 /srv ext4"),
    ("/etc/fstab", "/dev/sdz /srv btrfs device=/dev/nvme0n1,noauto"),
    ("/etc/crypttab", f"secret UUID={UUID} none luks,noauto"),
    ("/etc/mdadm/mdadm.conf", "ARRAY /dev/md0 metadata=1.2\n  UUID={}".format("6a3f0c52:11f24ad8:9b1e0c2f:0d5a9b11")),
    ("/etc/mdadm.conf", "ARRAY /dev/md0 devices=/dev/sdz,/dev/nvme0n1p1"),
    ("/etc/lvm/devices/system.devices", "IDTYPE=sys_wwid IDNAME=eui.0025385b71b00eb0 DEVNAME=/dev/nvme5n1 PVID=x"),
    ("/etc/systemd/system/srv.mount", "[Mount]\nWhat=/dev/disk/by-partuuid/aaaa-01\nWhere=/srv"),
    ("/etc/zfs/zpool.cache", b"\0\0\1path\0\0\0/dev/disk/by-id/nvme-EX_SN1-part1\0\0phys_path"),
    ("/etc/kubernetes/manifests/db.yaml", "hostPath:\n  path: /dev/nvme0n1\n"),
    ("/var/lib/rancher/k3s/server/manifests/pv.yaml", "path: '/dev/nvme0n1p1'"),
    ("/etc/fstab", "ID=nvme-EX_SN1 /srv ext4 noauto"),
    ("/etc/libvirt/qemu/vm.xml", "<disk type='block'><source dev='/dev/disk/by-id/nvme-EX_SN1'/></disk>"),
    ("/etc/libvirt/storage/pool.xml", "<source><device path='/dev/nvme0n1'/></source>"),
    ("/etc/pve/qemu-server/100.conf", "scsi1: /dev/disk/by-id/nvme-EX_SN1,size=960G"),
    ("/etc/target/saveconfig.json", '{"storage_objects": [{"dev": "/dev/nvme0n1", "plugin": "block"}]}'),
    ("/etc/rtslib-fb-target/saveconfig.json", '{"storage_objects": [{"dev": "/dev/nvme0n1p1"}]}'),
    ("/etc/nvmet/config.json", '{"subsystems": [{"namespaces": [{"device": {"path": "/dev/nvme0n1"}}]}]}'),
    ("/etc/systemd/system/srv.mount.d/device.conf", "[Mount]\nWhat=/dev/nvme0n1p1"),
    ("/run/systemd/generator/srv.mount", f"[Mount]\nWhat=/dev/disk/by-uuid/{UUID}\nWhere=/srv"),
    ("/run/systemd/generator.late/dev-x.swap", "[Swap]\nWhat=/dev/nvme0n1p1"),
    ("/lib/systemd/system/srv-db.mount", "[Mount]\nWhat=PARTLABEL=db\nWhere=/srv/db"),
    ("/usr/local/lib/systemd/system/srv-db.mount", "[Mount]\nWhat=/dev/disk/by-id/nvme-EX_SN1\nWhere=/srv/db"),
    (
        "/var/lib/docker/containers/0f/hostconfig.json",
        '{"Devices": [{"PathOnHost": "/dev/nvme0n1", "PathInContainer": "/dev/x"}]}',
    ),
    ("/var/lib/lxc/db/config", "lxc.mount.entry = /dev/nvme0n1 dev/disk none bind,create=file"),
    ("/etc/tgt/conf.d/x.conf", "<target iqn.x>\n  backing-store /dev/nvme0n1\n</target>"),
    # A partition that is not there now: its table is lost, or the kernel has not read it.
    ("/etc/fstab", "/dev/nvme0n1p7 /srv ext4 noauto"),
    ("/etc/fstab", "/dev/disk/by-id/nvme-EX_SN1-part7 /srv ext4 noauto"),
    ("/etc/crypttab", "secret /dev/disk/by-id/nvme-EX_SN1-part7 none luks,noauto"),
    # Several devices in one word, and values with more than a device.
    ("/etc/fstab", "/dev/sdz:/dev/nvme0n1 /srv bcachefs noauto"),
    ("/etc/crypttab", "x /dev/sdz none luks,header=/boot/header.img:UUID=" + UUID),
    ("/etc/mdadm.conf", "ARRAY /dev/md0 devices=/dev/sdz,/dev/nvme[0-3]n1p1"),
    ("/etc/mdadm.conf", "ARRAY /dev/md0 devices=/dev/nvme?n1"),
    # systemd takes blanks around =, and units from more folders.
    ("/etc/systemd/system/srv.mount", "[Mount]\nWhat = /dev/nvme0n1p1\nWhere = /srv"),
    ("/usr/lib/systemd/system/srv-db.mount", "[Mount]\nWhat=/dev/nvme0n1p1\nWhere=/srv/db"),
    ("/etc/systemd/system.control/srv-db.mount.d/a.conf", "[Mount]\nWhat=/dev/nvme0n1p1"),
    ("/run/systemd/system.attached/srv-db.mount", "[Mount]\nWhat=/dev/nvme0n1p1\nWhere=/srv/db"),
    (
        "/var/lib/containers/storage/overlay-containers/0f/userdata/config.json",
        '{"linux": {"devices": [{"path": "/dev/nvme0n1", "type": "b", "major": 259, "minor": 0}]}}',
    ),
]
LINKS = [
    "/mnt/disks/vol1",
    "/mnt/local-storage/fast/nvme-EX_SN1",
    "/var/lib/kubelet/plugins/kubernetes.io~local-volume/volumeDevices/pv1/pod",
    "/var/lib/kubelet/pods/uid/volumeDevices/kubernetes.io~local-volume/vol",
    "/var/lib/ceph/osd/ceph-3/block",
    "/var/lib/ceph/osd/ceph-3/block.db",
    "/var/lib/ceph/0c2f0d5a/osd.3/block",
]


@pytest.mark.parametrize("path, content", CONFIGURED)
def test_a_file_that_names_the_drive_is_told(host, path, content):
    host.put(path, content)
    found = refusals(host)
    assert list(found) == ["configured"] and path in found["configured"]


@pytest.mark.parametrize("path", LINKS)
@pytest.mark.parametrize("target", ["/dev/nvme0n1", "/dev/nvme0n1p1"])
def test_a_link_to_the_drive_is_told(host, path, target):
    host.link(path, target)
    found = refusals(host)
    assert list(found) == ["configured"] and path in found["configured"]


@pytest.mark.parametrize(
    "path, content",
    [
        ("/etc/fstab", f"#/dev/nvme0n1 /srv ext4\n# UUID={UUID} /srv ext4"),
        ("/etc/crypttab", "x # /dev/nvme0n1"),
        ("/etc/fstab", "UUID=11111111-1111-1111-1111-111111111111 / ext4\n/dev/nvme0n10 /x ext4\nproc /proc proc\n\n"),
        ("/etc/fstab", "LABEL=Data2 /srv ext4"),
        ("/lib/systemd/system/tmp.mount", "[Mount]\nWhat=tmpfs\nWhere=/tmp"),
        (
            "/var/lib/docker/containers/0f/hostconfig.json",
            '{"Binds": ["/dev:/dev", "/dev/nvme0n10:/x"], "Privileged": true}',
        ),
        ("/etc/crypttab", "swap /dev/sdz /dev/urandom swap"),
        ("/etc/crypttab", "broken"),
        ("/etc/fstab", "/dev/nvme0n10p1 /x ext4\n/dev/nvme0 /y ext4\n/dev/disk/by-id/nvme-EX_SN10-part1 /z ext4"),
        ("/etc/fstab", "/dev/sdz:/dev/sdy /x bcachefs"),
        ("/etc/mdadm.conf", "ARRAY /dev/md0 devices=/dev/nvme[1-3]n1"),
        ("/etc/mdadm.conf", "ARRAY /dev/md0 UUID=1111:2222 devices=/dev/nvme*n1,/dev/sd*"),
        (
            "/var/lib/containers/storage/overlay-containers/0f/userdata/config.json",
            '{"annotations": {"io.podman.annotations.privileged": "TRUE"}, "devices": ["/dev/nvme0n1"]}',
        ),
        ("/etc/mdadm/mdadm.conf", "DEVICE /dev/nvme*n1 partitions\nMAILADDR root\nARRAY <ignore> UUID=1111:2222"),
        ("/etc/lvm/devices/system.devices", "IDTYPE=devname IDNAME=/dev/sdz DEVNAME=/dev/nvme0n1 PVID=x"),
        ("/etc/zfs/zpool.cache", b"\0\xff\xfe/dev/sdz1\0"),
        ("/mnt/disks/vol1/file", "a folder, not a link"),
    ],
)
def test_another_device_in_a_file_is_not_the_drive(host, path, content):
    host.put(path, content)
    assert refusals(host) == {}


def test_a_label_may_hold_what_begins_a_comment(host):
    host.put("/run/udev/data/b259:0", "E:ID_FS_LABEL=d#b\n")
    host.put("/etc/fstab", "LABEL=d#b /srv ext4")
    assert set(refusals(host)) == {"configured"}


def test_a_file_system_on_a_partition_that_only_blkid_sees(host):
    """Without udev: blkid's own answer has the names."""
    host.answers["blkid"] = (0, "DEVNAME=/dev/nvme0n1\nUUID=0c2f-0d5a\nTYPE=vfat\n", "")
    host.put("/etc/fstab", "UUID=0C2F-0D5A /boot/efi vfat")
    assert set(refusals(host)) == {"signature", "configured"}


@pytest.mark.parametrize(
    "path, content",
    [
        ("/proc/cmdline", f"quiet resume=UUID={UUID} ro"),
        ("/proc/cmdline", "resume=/dev/nvme0n1p1"),
        ("/sys/power/resume", "259:7"),
        ("/etc/initramfs-tools/conf.d/resume", f"RESUME=UUID={UUID}"),
        ("/etc/default/grub", 'GRUB_CMDLINE_LINUX="quiet resume=PARTUUID=aaaa-01"'),
    ],
)
def test_the_target_of_hibernation(host, path, content):
    host.put(path, content)
    assert set(refusals(host)) == {"hibernation"}


@pytest.mark.parametrize(
    "path, content",
    [
        ("/proc/cmdline", "noresume=/dev/nvme0n1 root=/dev/sda"),
        ("/sys/power/resume", "0:0"),
        ("/etc/initramfs-tools/conf.d/resume", "RESUME=none"),
    ],
)
def test_no_hibernation(host, path, content):
    host.put(path, content)
    assert refusals(host) == {}
