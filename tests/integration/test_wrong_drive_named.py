# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases 72, 73, 85 to 88, 90 and 99 of docs/wrong-drives.md: a drive that nobody uses now, and that something names."""

from __future__ import annotations

import os

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
        "containers/storage/overlay-containers/0f/userdata/config.json": '{{"linux": {{"devices": ["{path}"]}}}}',
        "docker/containers/0f/hostconfig.json": '{{"Devices": [{{"PathOnHost": "{path}"}}]}}',
        "lxc/db/config": "lxc.mount.entry = {path} dev/disk none bind,create=file\n",
    },
}
# The same, of what is used on one machine of several, or once a container gets it.
VOLUMES = {
    "docker/volumes/data/opts.json": '{{"MountType": "ext4", "MountOpts": "", "MountDevice": "{path}"}}',
    "pacemaker/cib/cib.xml": '<nvpair id="fs-device" name="device" value="{path}"/>\n',
    "linstor.d/r1.res": 'resource "r1" {{\n  volume 0 {{ disk "{path}"; }}\n}}\n',
}
BOOT = {
    "/boot": {"grub2/grub.cfg": "menuentry 'old' {{\n  linux /vmlinuz root={path}p2\n}}\n"},
    "/srv": {"db.service": "[Service]\nExecStart=/srv/db {path}\n"},
}
# Drive: (file below /etc, a line of it), where a parser that takes each word for one device would see none.
LINES = {
    "lost partition in fstab": ("fstab", "{path}p1 /srv/lost ext4 noauto 0 0\n"),
    "lost partition in crypttab": ("crypttab", "lost {path}p2 none luks,noauto\n"),
    "one of several": ("fstab", "/dev/vda97:{path} /srv/several bcachefs noauto 0 0\n"),
    "the file behind it": ("fstab", "{file} /srv/file ext4 loop,noauto 0 0\n"),
    "the header of another": ("crypttab", "detached /dev/vda96 none luks,noauto,header=/header.img:{path}\n"),
    "blanks": ("systemd/system/srv-blanks.mount", "[Mount]\nWhat = {path}\nWhere = /srv/blanks\n"),
    "a machine's file": ("libvirt/qemu/vm.xml", "<disk type='file'><source file='{file}'/></disk>\n"),
    "a pattern": ("mdadm.conf", "ARRAY /dev/md97 devices=/dev/vda95,{path}*\n"),
}
# What no line of a file below /etc tells, or none that a parser of that file understands.
PLACES = {
    "a link": ("ln", "-s", "{path}", "/etc/db-disk"),
    "a unit's name": ("ln", "-s", "/lib/systemd/system/db@.service", "/etc/systemd/system/db@{unit}.service"),
}
CRONTAB = {"cron/crontabs/root": "0 3 * * * dd if=/srv/db of={path} bs=1M\n"}
# Jobs that wait for their hour (at), as Debian, Enterprise Linux and SUSE keep them.
AT_JOBS = {
    f"{folder}/a00001019d5e8c": "#!/bin/sh\ncd /root || exit 1\nmkfs.ext4 {path}\n"
    for folder in ("cron/atjobs", "at", "atjobs")
}
NO_USE = {
    "lvm/lvm.conf": 'devices {{\n  global_filter = [ "r|^{path}$|", "a|.*|" ]\n}}\n',
    "telegraf/telegraf.d/smart.conf": '[[inputs.smart]]\n  devices = ["{path}"]\n',
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
    for name, (file, line) in LINES.items():
        disk = bench.disk(name)
        files[file] = files.get(file, "") + line.format(path=disk.path, file=disk.file)
    # The program that uses it knows no other name.
    made = bench.disk("a name of its own")
    link = f"/dev/{os.path.basename(bench.folder)}"
    os.symlink(made.path, link)
    bench.callback(os.unlink, link)
    files["db.conf"] = f"device = {link}\n"
    lifted = bench.disk("lifted")
    files["lifted.conf"] = lifted.path
    lifted.entry["allow"] = ["mentioned"]
    bench.lay_over("/etc", files)
    elsewhere = {**ELSEWHERE, "/var/lib": {**ELSEWHERE["/var/lib"], **VOLUMES}}
    for folder, texts in {**elsewhere, **BOOT, "/var/spool": {**CRONTAB, **AT_JOBS}}.items():
        bench.lay_over(folder, {name: text.format(path=bench.disk(name).path) for name, text in texts.items()})
    bench.in_namespace("ln", "-s", "/srv/db.service", "/etc/systemd/system/linked.service")
    for name, command in PLACES.items():
        disk = bench.disk(name)
        bench.in_namespace(*(word.format(path=disk.path, unit=disk.path[1:].replace("/", "-")) for word in command))
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


@pytest.mark.case(99)
@pytest.mark.parametrize("name", VOLUMES)
def test_case_99_a_volume_that_nobody_has_mounted_here(outcome, name):
    outcome.refused(name, "configured")


@pytest.mark.case(86)
@pytest.mark.parametrize("name", [name for texts in BOOT.values() for name in texts])
def test_case_86_a_boot_menu_or_a_link_that_leads_out_of_etc(outcome, name):
    outcome.refused(name, "mentioned")


@pytest.mark.case(87)
@pytest.mark.parametrize("name", LINES)
def test_case_87_a_device_that_a_line_names_in_another_way(outcome, name):
    outcome.refused(name, "configured")


@pytest.mark.case(88)
@pytest.mark.parametrize("name", [*PLACES, *CRONTAB, "a name of its own"])
def test_case_88_named_where_no_line_below_etc_tells_it(outcome, name):
    outcome.refused(name, "mentioned")


@pytest.mark.case(90)
@pytest.mark.parametrize("name", AT_JOBS)
def test_case_90_a_job_that_waits_for_its_hour(outcome, name):
    outcome.refused(name, "mentioned")


def test_what_is_no_use_and_what_is_lifted(outcome):
    assert [name for name in (*NO_USE, "lifted", "spare") if outcome.codes(name)] == []
    outcome.nothing_happened()
