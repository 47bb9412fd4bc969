# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drives in service: which they are, and that what is in both lists is refused."""

from __future__ import annotations

import os
import re

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.checks import service_drives as part
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import service_drives


@pytest.fixture
def server(fake):
    """A server whose boot drive carries a file system, with a member of an array, a loop device and a stick without
    a name.
    """
    fake.disk("sda", "8:0", device__serial="BOOT1")
    fake.put("/sys/block/sda/sda1/partition", "1")
    fake.mount("/dev/sda1", "8:1", "/var")
    fake.disk("sdb", "8:16", device__serial="MEMBER1")
    fake.disk("sdc", "8:32")
    fake.disk("sdd", "8:48", device__serial="EMPTY1", size=0)
    fake.disk("loop0", "7:0", loop__backing_file="/srv/image")
    fake.disk("md0", "9:0")
    fake.disk("zram0", "252:0")
    fake.disk("sr0", "11:0")
    return fake


def entries(*serials):
    return [parse({"serial": serial}) for serial in serials]


def told(drives):
    return {one.drive: [refusal.code for refusal in one.refusals] for one in drives}


def test_all_are_the_whole_drives_that_discover_lists(server):
    drives = service_drives.whole(server)
    assert told(drives) == {"BOOT1": [], "MEMBER1": [], "/dev/sdc": ["no_identity"]}
    assert [one.eligible for one in drives] == [True, True, False]


def test_what_speaks_against_erasing_does_not_speak_against_reading(server):
    assert told(service_drives.found(server, entries("BOOT1", "MEMBER1", "GONE1"))) == {
        "BOOT1": [],
        "MEMBER1": [],
        "GONE1": ["not_found"],
    }
    assert told(service_drives.found(server, entries("BOOT1", "BOOT1"))) == {"BOOT1": ["duplicate"]}
    assert told(service_drives.found(server, [parse({"serial": 7})])) == {"{'serial': 7}": ["bad_selector"]}


@pytest.mark.parametrize("reads", [True, False])
def test_a_drive_of_both_lists_is_refused_however_it_is_named(server, reads):
    """By one list for erasing and by the other for reading."""
    server.put("/sys/block/sdb/device/wwid", "naa.5002538e00000001")
    options = {"reads": reads, "drives": [], "all": False, "others": [], "all_others": False}
    other = {
        **options,
        "others": [{"wwn": "naa.5002538e00000001"}],
        "drives": [{"serial": s} for s in ("BOOT1", "MEMBER1")],
    }
    erased = part.module_result(server, {**other, "reads": True, "others": []})["drives"]
    found = part.module_result(server, other, [] if reads else erased)["drives"]
    assert [(one["eligible"], [refusal["code"] for refusal in one["refusals"]]) for one in found] == [
        (True, []),
        (False, ["in_service"]),
    ]
    found = part.module_result(server, {**other, "all_others": True}, [] if reads else erased)["drives"]
    assert not any(one["eligible"] for one in found)


@pytest.mark.parametrize(
    "other, says, not_found",
    [
        ({"serial": "BOOT1"}, "", []),
        ({"serial": "GONE1"}, "", ["GONE1"]),
        ({"by_id": "leads-nowhere"}, "", ["leads-nowhere"]),
        ({"by_id": "ata-BOOT1-part1"}, "bad_selector: ata-BOOT1-part1", []),
        ({"serial": "TWIN1"}, "several block devices match: /dev/sde; /dev/sdf", []),
        ({"serial": 12345678}, "put it in quotes", []),
        ({"serial": "BOOT1", "retried": True}, "its keys are serial, retried", []),
        ("all", "not a mapping", []),
    ],
)
def test_nothing_is_erased_where_it_is_not_known_which_drives_are_in_service(server, other, says, not_found):
    server.put("/dev/disk/by-id/x", "")
    os.symlink("../../sda1", server.path("/dev/disk/by-id/ata-BOOT1-part1"))
    os.symlink("../../sdz", server.path("/dev/disk/by-id/leads-nowhere"))
    for name, number in (("sde", "8:64"), ("sdf", "8:80")):
        server.disk(name, number, device__serial="TWIN1")
    options = {"reads": False, "drives": [], "all": False, "others": [other], "all_others": False}
    if says:
        with pytest.raises(ValueError, match=re.escape(says)):
            part.module_result(server, options)
    else:
        assert part.module_result(server, options)["service_not_found"] == not_found
    assert part.module_result(server, {**options, "reads": True})["drives"] == []


def test_an_ambiguous_entry_keeps_all_drives_that_match(server):
    for name, number in (("sde", "8:64"), ("sdf", "8:80")):
        server.disk(name, number, device__serial="TWIN1")
    assert service_drives.protection(server, entries("TWIN1", "BOOT1")).paths == {"/dev/sde", "/dev/sdf", "/dev/sda"}
