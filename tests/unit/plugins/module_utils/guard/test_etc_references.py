# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files below /etc that name a drive, on fixture trees."""

from __future__ import annotations

import hashlib
import uuid

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import etc_references, guard_check

SERIAL, UUID = "SN123456", "6a3f0c52-11f2-4ad8-9b1e-0c2f0d5a9b11"


@pytest.fixture
def host(fake, monkeypatch):
    """A host with one drive that may be erased."""
    fake.nvme("nvme0n1", "259:0", SERIAL, wwid="eui.0025385b71b00eb0")
    fake.nvme_says("id-ctrl", {"sn": SERIAL})
    fake.put(
        "/run/udev/data/b259:0",
        "S:disk/by-id/nvme-EX_SN123456\nS:disk/by-path/pci-0000:01:00.0-nvme-1\n"
        f"E:ID_FS_UUID={UUID}\nE:ID_FS_LABEL=Data\n",
    )
    return fake


def refusals(host):
    (result,) = guard_check.inspect(host, [parse({"serial": SERIAL})])
    return {refusal["code"]: refusal["message"] for refusal in result["refusals"]}


USES = [
    ("/etc/kdump.conf", "raw /dev/nvme0n1p3"),
    ("/etc/drbd.d/r0.res", "resource r0 {\n  disk /dev/disk/by-id/nvme-EX_SN123456;\n}"),
    ("/etc/tgt/targets.conf", "<target iqn.x>\n backing-store /dev/nvme0n1\n</target>"),
    ("/etc/xen/vm.cfg", "disk = [ 'phy:/dev/nvme0n1,xvda,w' ]"),
    ("/etc/containers/systemd/db.container", "[Container]\nAddDevice=/dev/nvme0n1"),
    (
        "/etc/systemd/system/db.service",
        "[Service]\nExecStart=/usr/bin/db --device /dev/disk/by-path/pci-0000:01:00.0-nvme-1",
    ),
    ("/etc/auto.misc", "data -fstype=ext4 :/dev/nvme0n1p1"),
    ("/etc/sysconfig/rawdevices", "/dev/raw/raw1 /dev/nvme0n1"),
    ("/etc/udev/rules.d/99-asm.rules", 'KERNEL=="nvme*", ENV{ID_SERIAL_SHORT}=="SN123456", OWNER="oracle"'),
    ("/etc/db.conf", f"uuid: {UUID.upper()}"),
    ("/etc/aerospike/aerospike.conf", "device /dev/disk/by-id/wwn-0x0025385b71b00eb0\ndevice eui.0025385b71b00eb0"),
    ("/etc/default/thing", "DEVICE='LABEL=Data'"),
    ("/proc/cmdline", "root=UUID=1-2 pstore_blk.blkdev=/dev/nvme0n1p3 ro"),
    ("/boot/grub2/grub.cfg", "menuentry 'old' {\n  linux /vmlinuz root=/dev/nvme0n1p2\n}"),
    ("/boot/loader/entries/a.conf", f"title old\noptions root=UUID={UUID} ro"),
    ("/boot/grub2/grubenv", f"# GRUB Environment Block\nkernelopts=root=UUID={UUID} ro\n####"),
    ("/boot/firmware/cmdline.txt", "console=tty1 root=/dev/nvme0n1p2 rootwait"),
    ("/etc/default/grub", 'GRUB_CMDLINE_LINUX="root=/dev/nvme0n1p2 resume=UUID=1-2"'),
    ("/etc/kernel/cmdline", f"rd.luks.uuid=luks-{UUID} ro"),
    ("/etc/kernel/cmdline", "rd.md.uuid=6a3f0c52:11f24ad8:9b1e0c2f:0d5a9b11"),
    ("/var/spool/cron/crontabs/root", "0 3 * * * dd if=/srv/db of=/dev/nvme0n1 bs=1M"),
    ("/var/spool/cron/root", "@daily smartctl -t short /dev/nvme0n1; mount /dev/nvme0n1p1 /backup"),
    ("/var/spool/cron/root", "@daily dd if=/dev/zero of=/dev/nvme0n1 smartctl -a"),
    ("/etc/cron.d/x", "0 3 * * 0 root nvme format /dev/nvme0n1"),
    ("/etc/cron.d/x", "0 3 * * 0 root smartctl -a /dev/sdb > /dev/nvme0n1"),
    ("/etc/rc.local", "0 3 * * 0 root smartctl -t short /dev/nvme0n1"),
    ("/etc/lab.conf", "[share]\nrw=yes\nfilename=/dev/nvme0n1"),
    ("/var/spool/cron/root", "@daily mount /dev/nvme0n1p1 /backup"),
    ("/var/spool/cron/atjobs/a00001019d5e8c", "#!/bin/sh\ncd /root || exit 1\nmkfs.ext4 /dev/nvme0n1\n"),
    ("/var/spool/at/a00001019d5e8c", "#!/bin/sh\ndd if=/srv/db of=/dev/nvme0n1\n"),
    ("/var/spool/atjobs/a00001019d5e8c", "#!/bin/sh\ndd if=/srv/db of=/dev/nvme0n1\n"),
    ("/run/systemd/transient/run-r1.service", "[Service]\nExecStart=/sbin/mkfs.ext4 /dev/nvme0n1\n"),
    ("/run/systemd/system/db.service", "[Service]\nExecStart=/srv/db /dev/nvme0n1\n"),
    ("/run/systemd/system/db.service.d/drive.conf", "[Service]\nEnvironment=DRIVE=/dev/nvme0n1\n"),
    ("/usr/local/lib/systemd/system/db.service", "[Service]\nExecStart=/srv/db /dev/nvme0n1\n"),
    ("/usr/local/etc/db.conf", "device = /dev/nvme0n1"),
    ("/etc/db.conf", "# no drive of ssd_drives\ndevice = /dev/nvme0n1"),
    ("/etc/lvm/lvm.conf", 'devices {\n filter = [ "a|^/dev/nvme0n1$|", "r|.*|" ]\n}'),
    ("/etc/mdadm.conf", "DEVICE /dev/nvme0n1 /dev/sda"),
    ("/etc/libvirt/qemu/vm.xml", f"<source pool='x' volume='y'/><serial>{SERIAL}</serial>"),
]


@pytest.mark.parametrize("path, content", USES)
def test_a_line_that_names_the_drive_is_told(host, path, content):
    host.put(path, content)
    found = refusals(host)
    assert list(found) == ["mentioned"] and path + ", line " in found["mentioned"]


@pytest.mark.parametrize(
    "path, content",
    [
        ("/etc/x.conf", "# /dev/nvme0n1\n ; /dev/nvme0n1\n// /dev/nvme0n1\nkey = value # /dev/nvme0n1"),
        ("/etc/x.conf", "/dev/nvme0n10 /dev/nvme0n1x /srv/dev/nvme0n1 nvme0n1 SN1234567 XSN123456 LABEL=Data2 Data"),
        ("/etc/x.conf", b"\0binary /dev/nvme0n1"),
        ("/etc/x.conf", b"/dev/nvme0n1\n" * (1 << 17)),
        ("/etc/lvm/archive/vg_00001.vg", 'device = "/dev/nvme0n1"'),
        ("/etc/smartd.conf", "/dev/nvme0n1 -a"),
        (
            "/etc/lvm/lvm.conf",
            'global_filter = [ "r|^/dev/nvme0n1$|", "r#/dev/disk/by-id/nvme-EX_SN123456#", "a|.*|" ]',
        ),
        ("/etc/telegraf/telegraf.d/smart.conf", '[[inputs.smart]]\n devices = ["/dev/nvme0n1 -d nvme"]'),
        ("/etc/zabbix/zabbix_agent2.d/smart.conf", "UserParameter=smart,smartctl -i /dev/nvme0n1"),
        ("/etc/default/prometheus-smartctl-exporter", 'ARGS="--smartctl.device=/dev/nvme0n1"'),
        ("/etc/site/fleet.ini", "[ssd_servers:vars]\nssd_drives=[{'serial': 'SN123456'}]"),
        ("/etc/site/hosts", "rack1-07 ssd_drives=\"[{'serial': 'SN123456'}]\""),
        ("/etc/site/fleet.json", '{"vars": {"ssd_drives": [{"serial": "SN123456"}]}}'),
        ("/etc/systemd/system/x@dev-nvme0n10.service", "[Service]\nExecStart=/bin/true"),
        ("/var/spool/cron/crontabs/root", "# 0 3 * * * dd of=/dev/nvme0n1"),
        ("/etc/cron.d/smart", "0 3 * * 0 root /usr/sbin/smartctl -t short /dev/nvme0n1 >/dev/null 2>&1"),
        ("/var/spool/cron/root", "@weekly nvme smart-log /dev/nvme0n1"),
        ("/etc/lab/job.fio", "[global]\nioengine=libaio\nfilename=/dev/nvme0n1\n[a]\nrw=randwrite\n"),
        ("/etc/multipath.conf", "blacklist { wwid eui.0025385b71b00eb0 }"),
        ("/etc/ansible/hosts.yml", "serial: SN123456"),
        ("/etc/site/inventory.yml", "ssd_drives:\n  - serial: SN123456"),
        ("/etc/x.conf.dpkg-old", "/dev/nvme0n1"),
        ("/etc/.git/x", "/dev/nvme0n1"),
        ("/proc/cmdline", "root=/dev/nvme0n10 resume=UUID=1-2"),
        ("/boot/grub/device.map", "(hd1) /dev/disk/by-id/nvme-EX_SN123456"),
    ],
)
def test_what_is_no_use_of_the_drive(host, path, content):
    host.put(path, content)
    assert refusals(host) == {}


FIO_JOB = "[global]\nioengine=libaio\nfilename=/dev/nvme0n1\n[a]\nrw=randwrite\n"


@pytest.mark.parametrize(
    "text, line",
    [
        # A script that holds a job, and uses the drive beside it.
        ("#!/bin/sh\nfio - <<EOF\n" + FIO_JOB + "EOF\n", 5),
        ("#!/bin/sh\nfio - <<EOF\n" + FIO_JOB + "EOF\nmount /dev/disk/by-id/nvme-EX_SN123456-part1 /data\n", 5),
        (FIO_JOB + "mount /dev/disk/by-id/nvme-EX_SN123456-part1 /data\n", 6),
        (FIO_JOB + "exec_prerun=mount /dev/nvme0n1 /data\n", 6),
        (FIO_JOB + "filename=/dev/nvme0n1; mount /dev/nvme0n1 /data\n", 6),
    ],
)
def test_what_stands_beside_a_job_of_fio_uses_the_drive(host, text, line):
    host.put("/etc/lab/job", text)
    assert f"/etc/lab/job, line {line}" in refusals(host)["mentioned"]


NAMES = [
    "/etc/systemd/system/multi-user.target.wants/db@dev-nvme0n1.service",
    "/etc/systemd/system/db@dev-disk-by\\x2did-nvme\\x2dEX_SN123456\\x2dpart1.service",
    "/etc/systemd/system/dev-nvme0n1.device.wants",
]


@pytest.mark.parametrize("path", NAMES)
def test_a_unit_whose_name_is_the_drive(host, path):
    """An instance of a template has its device in its name alone: no line of a file tells it."""
    host.put("/lib/systemd/system/db@.service", "[Service]\nExecStart=/usr/bin/db --device %I")
    host.link(path + "/db.service" if path.endswith("wants") else path, "/lib/systemd/system/db@.service")
    found = refusals(host)
    assert list(found) == ["mentioned"] and path in found["mentioned"]


@pytest.mark.parametrize("target", ["/dev/nvme0n1", "/dev/nvme0n1p4", "/dev/disk/by-id/nvme-EX_SN123456", "/dev/mine"])
def test_a_link_below_etc_that_leads_to_the_drive(host, target):
    host.link("/dev/mine", "/dev/nvme0n1")
    host.link("/etc/db/disks/0", target)
    found = refusals(host)
    assert list(found) == ["mentioned"] and "/etc/db/disks/0" in found["mentioned"]


def test_a_name_below_dev_that_udev_did_not_make(host):
    """Of tmpfiles.d, a start script or mknod: the file that uses the drive knows no other name."""
    host.put("/etc/db.conf", "device = /dev/db/data-1")
    assert refusals(host) == {}
    host.link("/dev/db/data-1", "/dev/nvme0n1")
    assert set(refusals(host)) == {"mentioned"}


def test_a_file_as_its_package_brought_it_does_not_count(host):
    content = "example = /dev/nvme0n1\n"
    host.put("/etc/x.conf", content)
    host.put(
        "/var/lib/dpkg/status",
        f"Package: x\nConffiles:\n /etc/x.conf {hashlib.md5(content.encode()).hexdigest()}\n /etc/y 0\n",
    )
    assert refusals(host) == {}
    host.put("/etc/x.conf", content + "one more line\n")
    assert set(refusals(host)) == {"mentioned"}


@pytest.mark.parametrize(
    "rc, verified, counts",
    [
        (0, "", False),
        (1, "S.5....T.  c /etc/other", False),
        (2, "S.5....T.  c /etc/other\nmissing     /usr/share/doc/x", False),
        (1, ".M.......  c /etc/x.conf", False),  # hardened
        (1, ".M...UGT.  c /etc/x.conf", False),
        (1, "S.5....T.  c /etc/x.conf", True),
        (1, "..?......  c /etc/x.conf", True),  # it could not be read
        (124, "", True),
        (127, "", True),
        (-9, "", True),
    ],
)
@pytest.mark.parametrize("dpkg", [False, True], ids=["rpm", "dpkg too"])
def test_a_file_as_its_rpm_brought_it_does_not_count(host, rc, verified, counts, dpkg):
    host.put("/etc/x.conf", "example = /dev/nvme0n1\n")
    host.put("/var/lib/rpm/rpmdb.sqlite", "")
    if dpkg:
        host.put("/var/lib/dpkg/status", "Package: dpkg\n")
    host.answers["rpm -qf"], host.answers["rpm -Vf"] = (0, "x-1", ""), (rc, verified, "")
    assert set(refusals(host)) == ({"mentioned"} if counts else set())


def test_a_file_that_a_debian_package_made_when_it_was_set_up(host):
    content = "example = /dev/nvme0n1\n"
    host.put("/etc/x.conf", content)
    host.put("/var/lib/dpkg/status", "Package: x\n")
    host.put("/var/lib/ucf/hashfile", f"0f  /etc/y.conf\n{hashlib.md5(content.encode()).hexdigest()}  /etc/x.conf\n")
    assert refusals(host) == {}
    host.put("/etc/x.conf", content + "one more line\n")
    assert set(refusals(host)) == {"mentioned"}


# What a server with EL 8 or 9 has, of an installer or a cloud's image: the system is on another drive, and this one was
# in use once.
ROOT = "9d5f0a3e-52a1-4a44-8a01-7e0f3a1b2c4d"
EL = {
    "/etc/fstab": f"#\n# Accessible filesystems, by reference, are maintained under '/dev/disk/'.\nUUID={ROOT} / xfs "
    "defaults 0 0\nUUID=7B77-95E7 /boot/efi vfat "
    "defaults,uid=0,gid=0,umask=077,shortname=winnt 0 2\n/dev/mapper/rhel-swap none swap defaults 0 0\n/dev/vdb /mnt "
    "auto defaults,nofail 0 2\n",
    "/etc/kdump.conf": (
        f"#raw /dev/nvme0n1p3\n#ext4 UUID={UUID}\nauto_reset_crashkernel yes\npath "
        "/var/crash\ncore_collector makedumpfile -l -d 31\n"
    ),
    "/etc/sysconfig/kdump": 'KDUMP_COMMANDLINE_REMOVE="hugepages hugepagesz slub_debug quiet"\nKDUMP_IMG="vmlinuz"\n',
    "/etc/lvm/lvm.conf": 'devices {\n\t# filter = [ "a|^/dev/nvme0n1$|", "r|.*|" ]\n\tallow_mixed_block_sizes = 0\n}\n',
    "/etc/lvm/devices/system.devices": "# LVM uses devices listed in this file.\nVERSION=1.1.2\n"
    "IDTYPE=sys_wwid IDNAME=naa.5000c500a1b2c3d4 DEVNAME=/dev/nvme0n1 PVID=x PART=3\n",
    "/etc/lvm/devices/backup/system.devices-20260101.120000.0001": (
        "IDTYPE=sys_wwid IDNAME=eui.0025385b71b00eb0 DEVNAME=/dev/nvme0n1 PVID=y\n"
    ),
    "/etc/multipath.conf": 'blacklist {\n  devnode "^nvme0n1"\n  wwid "eui.0025385b71b00eb0"\n}\n',
    "/etc/smartmontools/smartd.conf": "/dev/nvme0n1 -a -o on\nDEVICESCAN -H\n",
    "/etc/mdadm.conf": "MAILADDR root\nAUTO +imsm +1.x -all\n",
    "/etc/default/grub": (
        'GRUB_CMDLINE_LINUX="crashkernel=1G-4G:192M resume=/dev/mapper/rhel-swap rd.lvm.lv=rhel/root"\n'
    ),
    "/etc/kernel/cmdline": f"root=UUID={ROOT} ro crashkernel=1G-4G:192M\n",
    "/boot/grub2/grub.cfg": f"search --no-floppy --fs-uuid --set=dev {ROOT}\nset prefix=($dev)/grub2\n",
    "/boot/grub2/device.map": "(hd0) /dev/sda\n(hd1) /dev/nvme0n1\n",
    "/boot/loader/entries/x-5.14.0.conf": f"title Enterprise Linux\noptions root=UUID={ROOT} ro $tuned_params\n",
    "/proc/cmdline": f"BOOT_IMAGE=(hd0,gpt2)/vmlinuz-5.14.0 root=UUID={ROOT} ro resume=/dev/mapper/rhel-swap",
    "/etc/mtools.conf": 'drive c: file="/dev/nvme0n1p1"\n',
    "/run/systemd/generator/-.mount": f"[Mount]\nWhere=/\nWhat=/dev/disk/by-uuid/{ROOT}\nType=xfs\n",
    "/lib/systemd/system/tmp.mount": "[Mount]\nWhat=tmpfs\nWhere=/tmp\n",
}


def test_a_server_with_a_stock_enterprise_linux(host):
    for path, text in EL.items():
        host.put(path, text)
    host.link("/etc/grub2.cfg", "/boot/grub2/grub.cfg")
    host.put("/var/lib/rpm/rpmdb.sqlite", "")
    host.answers["rpm -qf"], host.answers["rpm -Vf"] = (
        (0, "mtools-4.0.36", ""),
        (1, ".......T.  c /etc/mtools.conf", ""),
    )
    assert refusals(host) == {}


def test_it_can_be_lifted_for_one_drive(host):
    host.put(*USES[0])
    (result,) = guard_check.inspect(host, [parse({"serial": SERIAL, "allow": ["mentioned"]})])
    assert result["eligible"] and [refusal["code"] for refusal in result["overridden"]] == ["mentioned"]


def test_a_search_that_was_cut_short_is_told(host, monkeypatch):
    monkeypatch.setattr(etc_references, "MOST_FILES", 1)
    for name in "abc":
        host.put("/etc/" + name, "text")
    assert "ended at /etc/b, after 2 files" in refusals(host)["mentioned"]


@pytest.mark.parametrize(
    "target, counts",
    [
        ("/opt/db/db.service", True),
        ("/srv/etc/db.service", True),
        ("/usr/local/db/db.service", True),
        ("/var/lib/db/db.service", True),
        ("/usr/lib/systemd/system/db.service", False),
        ("/lib/systemd/system/db.service", False),
        ("/run/db.service", False),
        ("/etc/ansible/db.service", False),
    ],
)
def test_a_link_counts_that_leads_to_what_is_the_sites_own(host, target, counts):
    """As `systemctl link` makes it; what packages brought, or what is below /etc, has its own place."""
    host.put(target, "[Service]\nExecStart=/opt/db/db /dev/nvme0n1\n")
    host.link("/etc/systemd/system/db.service", target)
    found = refusals(host)
    assert set(found) == ({"mentioned"} if counts else set())
    assert not counts or "/etc/systemd/system/db.service, line 2" in found["mentioned"]


def boot_entry(guid):
    """EFI_LOAD_OPTION: attributes, length of the path list, "Linux"; a hard drive's node, a file's and the end (UEFI
    2.10, 3.1.3 and 10.3.5).
    """
    drive = b"\x04\x01\x2a\x00" + bytes(20) + uuid.UUID(guid).bytes_le + b"\x02\x02"
    path = drive + b"\x04\x04\x0a\x00" + "\\x\0".encode("utf-16-le") + b"\x7f\xff\x04\x00"
    return bytes([7, 0, 0, 0, 1, 0, 0, 0]) + len(path).to_bytes(2, "little") + "Linux\0".encode("utf-16-le") + path


def test_a_partition_that_the_firmware_starts_from(host):
    host.put("/run/udev/data/b259:0", f"E:ID_PART_ENTRY_UUID={UUID}\n")
    where = "/sys/firmware/efi/efivars/Boot0003-8be4df61-93ca-11d2-aa0d-00e098032b8c"
    host.put(where, boot_entry("11111111-1111-1111-1111-111111111111"))
    assert refusals(host) == {}
    host.put(where, boot_entry(UUID))
    assert where in refusals(host)["mentioned"]
