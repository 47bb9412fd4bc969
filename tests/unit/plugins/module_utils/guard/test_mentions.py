# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files below /etc that name a drive, on fixture trees."""
from __future__ import annotations

import contextlib
import hashlib

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import inspection, mentions, probe

SERIAL, UUID = "SN123456", "6a3f0c52-11f2-4ad8-9b1e-0c2f0d5a9b11"


@pytest.fixture
def host(fake, monkeypatch):
    """A host with one drive that may be erased."""
    monkeypatch.setattr(probe, "_opened", lambda *_drive: contextlib.nullcontext())
    fake.nvme("nvme0n1", "259:0", SERIAL, wwid="eui.0025385b71b00eb0")
    fake.nvme_says("id-ctrl", {"sn": SERIAL})
    fake.put("/run/udev/data/b259:0", "S:disk/by-id/nvme-EX_SN123456\nS:disk/by-path/pci-0000:01:00.0-nvme-1\nE:ID_FS_UUID=%s\nE:ID_FS_LABEL=Data\n" % UUID)
    return fake


def refusals(host):
    (result,) = inspection.inspect(host, [{"serial": SERIAL}])
    return {refusal["code"]: refusal["message"] for refusal in result["refusals"]}


USES = [
    ("/etc/kdump.conf", "raw /dev/nvme0n1p3"),
    ("/etc/drbd.d/r0.res", "resource r0 {\n  disk /dev/disk/by-id/nvme-EX_SN123456;\n}"),
    ("/etc/tgt/targets.conf", "<target iqn.x>\n backing-store /dev/nvme0n1\n</target>"),
    ("/etc/xen/vm.cfg", "disk = [ 'phy:/dev/nvme0n1,xvda,w' ]"),
    ("/etc/containers/systemd/db.container", "[Container]\nAddDevice=/dev/nvme0n1"),
    ("/etc/systemd/system/db.service", "[Service]\nExecStart=/usr/bin/db --device /dev/disk/by-path/pci-0000:01:00.0-nvme-1"),
    ("/etc/auto.misc", "data -fstype=ext4 :/dev/nvme0n1p1"),
    ("/etc/sysconfig/rawdevices", "/dev/raw/raw1 /dev/nvme0n1"),
    ("/etc/udev/rules.d/99-asm.rules", 'KERNEL=="nvme*", ENV{ID_SERIAL_SHORT}=="SN123456", OWNER="oracle"'),
    ("/etc/db.conf", "uuid: %s" % UUID.upper()),
    ("/etc/aerospike/aerospike.conf", "device /dev/disk/by-id/wwn-0x0025385b71b00eb0\ndevice eui.0025385b71b00eb0"),
    ("/etc/default/thing", "DEVICE='LABEL=Data'"),
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
        ("/etc/multipath.conf", "blacklist { wwid eui.0025385b71b00eb0 }"),
        ("/etc/ansible/hosts.yml", "serial: SN123456"),
        ("/etc/site/inventory.yml", "ssd_drives:\n  - serial: SN123456"),
        ("/etc/x.conf.dpkg-old", "/dev/nvme0n1"),
        ("/etc/.git/x", "/dev/nvme0n1"),
    ],
)
def test_what_is_no_use_of_the_drive(host, path, content):
    host.put(path, content)
    assert refusals(host) == {}


def test_a_file_as_its_package_brought_it_does_not_count(host):
    content = "example = /dev/nvme0n1\n"
    host.put("/etc/x.conf", content)
    host.put("/var/lib/dpkg/status", "Package: x\nConffiles:\n /etc/x.conf %s\n /etc/y 0\n" % hashlib.md5(content.encode()).hexdigest())
    assert refusals(host) == {}
    host.put("/etc/x.conf", content + "one more line\n")
    assert set(refusals(host)) == {"mentioned"}


@pytest.mark.parametrize("verified, counts", [("", False), ("S.5....T.  c /etc/other", False), ("S.5....T.  c /etc/x.conf", True)])
def test_a_file_as_its_rpm_brought_it_does_not_count(host, verified, counts):
    host.put("/etc/x.conf", "example = /dev/nvme0n1\n")
    host.put("/var/lib/rpm/rpmdb.sqlite", "")
    host.answers["rpm -qf"], host.answers["rpm -Vf"] = (0, "x-1", ""), (1 if verified else 0, verified, "")
    assert set(refusals(host)) == ({"mentioned"} if counts else set())


def test_it_can_be_lifted_for_one_drive(host):
    host.put(*USES[0])
    (result,) = inspection.inspect(host, [{"serial": SERIAL, "allow": ["mentioned"]}])
    assert result["eligible"] and [refusal["code"] for refusal in result["overridden"]] == ["mentioned"]


def test_a_search_that_was_cut_short_is_told(host, monkeypatch):
    monkeypatch.setattr(mentions, "MOST_FILES", 1)
    for name in "abc":
        host.put("/etc/" + name, "text")
    assert "ended at /etc/b, after 2 files" in refusals(host)["mentioned"]
