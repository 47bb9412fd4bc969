# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which drive an entry names: selectors, arrays, nodes that are no drive, and a drive that has become another."""

from __future__ import annotations

import os

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import guard_check, rules
from ansible_collections.ssdlab.fleet.tests.unit.plugins.module_utils.guard.looked_at import SELECTOR, codes, partition


@pytest.mark.parametrize(
    "selector, code",
    [
        ({"serial": "SN"}, "not_found"),
        ({"serial": ""}, "bad_selector"),
        ({"serial": 5}, "bad_selector"),
        ("all", "bad_selector"),
        (None, "bad_selector"),
        ({"serial": "TWIN"}, "ambiguous"),
        ({"by_id": "part"}, "not_whole_drive"),
        ({"by_id": "lv"}, "not_whole_drive"),
        ({"by_id": "dangling"}, "not_found"),
        ({"backing_file": "/dev/nvme0n1"}, "held"),
    ],
)
def test_a_selector_that_names_no_single_drive_is_refused(drive_of, selector, code):
    partition(drive_of)
    drive_of.nvme("nvme1n1", "259:1", "TWIN")
    drive_of.nvme("nvme2n1", "259:2", "TWIN")
    drive_of.disk("dm-0", "253:0", "/sys/devices/virtual")
    for link, target in (("part", "/dev/nvme0n1p1"), ("lv", "/dev/dm-0"), ("dangling", "/dev/sdz")):
        drive_of.link("/dev/disk/by-id/" + link, target)
    drive_of.loop(0, "/dev/nvme0n1")
    if code == "held":  # a loop device over a drive: neither of the two may be erased
        assert codes(drive_of, selector) == ["not_whole_drive"]
        assert code in codes(drive_of)
    else:
        assert codes(drive_of, selector) == [code]


@pytest.mark.parametrize("name, slave", [("md_home", None), ("md_d0", None), ("foo0", "sdb1")])
def test_an_array_by_any_name_is_not_a_drive(drive_of, name, slave):
    """mdadm.conf(5), CREATE names=yes; and whatever says in sysfs that it is built on others."""
    block = drive_of.disk(name, "9:127", "/sys/devices/virtual")
    if slave:
        drive_of.put(f"{block}/slaves/{slave}/dev", "8:17")
    drive_of.link("/dev/disk/by-id/md-uuid-1", "/dev/" + name)
    assert codes(drive_of, {"by_id": "md-uuid-1", "allow": ["transport"]}) == ["not_whole_drive"]


def test_two_entries_for_one_drive_are_both_refused_and_order_is_kept(drive_of):
    drive_of.nvme("nvme1n1", "259:1", "SN2")
    selectors = [{"wwn": "eui.0025385B71B00EB0"}, {"serial": "SN2"}, SELECTOR, {"serial": "none"}]
    results = guard_check.inspect(drive_of, [parse(selector) for selector in selectors])
    assert [result["selector"] for result in results] == selectors
    assert [[refusal["code"] for refusal in result["refusals"]] for result in results] == [
        ["duplicate"],
        [],
        ["duplicate"],
        ["not_found"],
    ]
    assert "SN1" in results[0]["refusals"][0]["message"]


def test_discover_names_every_drive_or_says_that_it_cannot(drive_of):
    drive_of.disk("vda", "254:0")
    results = guard_check.discover(drive_of)
    assert [(result["selector"], result["eligible"]) for result in results] == [(SELECTOR, True), (None, False)]
    assert [refusal["code"] for refusal in results[1]["refusals"]] == ["no_identity", "transport"]


def test_a_node_that_is_a_file_is_refused(drive_of):
    drive_of.has_devices = False
    assert codes(drive_of) == ["probe_failed"]  # fio would write a regular file and return 0


def test_a_held_descriptor_must_be_the_drive(drive_of):
    drive_of.has_devices = False
    handle = os.open(drive_of.path("/dev/nvme0n1"), os.O_RDONLY)
    try:
        (result,) = guard_check.inspect(drive_of, [parse(SELECTOR)], held={"/dev/nvme0n1": handle})
    finally:
        os.close(handle)
    assert "identity_changed" in [refusal["code"] for refusal in result["refusals"]]


IDENTITY = {
    "serial": "S",
    "wwn": None,
    "model": "M",
    "size_bytes": 5,
    "logical_block_size_bytes": 512,
    "backing_file": None,
    "diskseq": 1,
    "path": "/dev/sda",
}


@pytest.mark.parametrize(
    "change, same_boot, changed",
    [
        ({}, True, False),
        ({"path": "/dev/sdb", "kernel_name": "sdb"}, True, False),
        ({"diskseq": 2}, False, False),
        ({"diskseq": 2}, True, True),
        ({"diskseq": None}, True, True),
        ({"serial": "s"}, False, True),
        ({"serial": None}, False, True),
        ({"wwn": "eui.1"}, False, True),
        ({"model": "N"}, False, True),
        ({"size_bytes": 6}, False, True),
        ({"logical_block_size_bytes": 4096}, False, True),
        ({"backing_file": "/srv/x"}, False, True),
        # A format, or another kernel, may change what the same drive prefers.
        ({"minimum_io_size_bytes": 65536}, True, False),
    ],
)
def test_compare(change, same_boot, changed):
    refused = rules.compare(IDENTITY, dict(IDENTITY, **change), same_boot=same_boot)
    assert [refusal.code for refusal in refused] == (["identity_changed"] if changed else [])


@pytest.mark.parametrize("expected, actual", [(None, IDENTITY), (IDENTITY, None), ({}, {}), ({}, IDENTITY)])
def test_a_missing_identity_is_a_changed_one(expected, actual):
    assert [refusal.code for refusal in rules.compare(expected, actual, same_boot=True)] == ["identity_changed"]
