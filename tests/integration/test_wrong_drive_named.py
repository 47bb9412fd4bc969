# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases 72, 73, 85 and 86 of docs/wrong-drives.md: a drive that nobody uses now, and that a file of the host names."""

from __future__ import annotations

import pytest

CONFIGURED = {
    "crypttab": "secret /dev/vda99 {path} luks\nother UUID=1-2 /key:{path} luks\n",
    "fstab": "/dev/vda99 /srv xfs noauto,logdev=/dev/vda98,rtdev={path} 0 0\n",
}
MENTIONED = {
    "kdump.conf": "path /var/crash\nraw {path}\n",
    "drbd.d/r0.res": "resource r0 {{\n  disk {path};\n}}\n",
    "tgt/targets.conf": "<target iqn.2026-01.example:x>\n  backing-store {path}\n</target>\n",
    "xen/guest.cfg": "disk = [ 'phy:{path},xvda,w' ]\n",
    "containers/systemd/db.container": "[Container]\nAddDevice={path}\n",
    "systemd/system/db.service": "[Service]\nExecStart=/usr/bin/db {path}\n",
    "auto.misc": "data -fstype=ext4 :{path}\n",
    "sysconfig/rawdevices": "/dev/raw/raw1 {path}\n",
    "a-program-of-its-own.conf": "image = {file}\n",
}
# Folder: files there. What starts by itself, or is started again, without a line below /etc.
ELSEWHERE = {
    "/usr/local/lib": {"systemd/system/srv-data.mount": "[Mount]\nWhat={path}\nWhere=/srv/data\n"},
    "/var/lib": {
        "docker/containers/0f/hostconfig.json": '{{"Devices": [{{"PathOnHost": "{path}", "PathInContainer": "/dev/x"}}]}}',
        "lxc/db/config": "lxc.mount.entry = {path} dev/disk none bind,create=file\n",
    },
}
BOOT = {
    "/boot": {"grub2/grub.cfg": "menuentry 'old' {{\n  linux /vmlinuz root={path}p2\n}}\n"},
    "/srv": {"db.service": "[Service]\nExecStart=/srv/db {path}\n"},
}
NO_USE = {
    "comment.conf": "# {path}\n",
    "smartd.conf": "{path} -a\n",
    "lvm/archive/vg.vg": 'device = "{path}"\n',
    "other.conf": "{path}1x {path}0 x{path}\n",
}


@pytest.fixture(scope="module")
def outcome(bench):
    files = {}
    for name, text in {**CONFIGURED, **MENTIONED, **NO_USE}.items():
        disk = bench.disk(name)
        files[name] = text.format(path=disk.path, file=disk.file)
    lifted = bench.disk("lifted")
    files["lifted.conf"] = lifted.path
    lifted.entry["allow"] = ["mentioned"]
    bench.lay_over("/etc", files)
    for folder, texts in {**ELSEWHERE, **BOOT}.items():
        bench.lay_over(folder, {name: text.format(path=bench.disk(name).path) for name, text in texts.items()})
    bench.in_namespace("ln", "-s", "/srv/db.service", "/etc/systemd/system/linked.service")
    return bench.play()


@pytest.mark.case(72)
@pytest.mark.parametrize("name", CONFIGURED)
def test_case_72_a_further_device_of_an_entry(outcome, name):
    outcome.refused(name, "configured")


@pytest.mark.case(73)
@pytest.mark.parametrize("name", MENTIONED)
def test_case_73_a_file_that_no_parser_knows(outcome, name):
    outcome.refused(name, "mentioned")
    assert f"/etc/{name}, line " in outcome.message(name, "mentioned")


@pytest.mark.case(85)
@pytest.mark.parametrize("name", [name for texts in ELSEWHERE.values() for name in texts])
def test_case_85_a_file_outside_etc_that_something_starts_from(outcome, name):
    outcome.refused(name, "configured")


@pytest.mark.case(86)
@pytest.mark.parametrize("name", [name for texts in BOOT.values() for name in texts])
def test_case_86_a_boot_menu_or_a_link_that_leads_out_of_etc(outcome, name):
    outcome.refused(name, "mentioned")


def test_what_is_no_use_and_what_is_lifted(outcome):
    assert [name for name in (*NO_USE, "lifted", "spare") if outcome.codes(name)] == []
    outcome.nothing_happened()
