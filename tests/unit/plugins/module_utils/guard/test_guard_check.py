# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guard on fixture trees: each case must refuse with its code. Real devices:
tests/integration/test_guard_loop.py.
"""

from __future__ import annotations

import errno
import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import device_users, guard_check, refusals, rules
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import facts as guard_facts
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.found_drives import Identity
from ansible_collections.ssdlab.fleet.tests.unit.plugins.module_utils.guard.looked_at import (
    SELECTOR,
    codes,
    mounted_partition,
    partition,
    says,
)

CLEAN = {"name": "sda", "path": "/dev/sda", "kind": "drive", "identity": Identity(size_bytes=1 << 30, path="/dev/sda")}


def test_a_drive_that_nobody_uses_is_eligible(drive_of):
    (result,) = guard_check.inspect(drive_of, [parse(SELECTOR)])
    assert result["eligible"] is True and result["refusals"] == []
    assert (result["selector"], result["drive"], result["path"]) == (SELECTOR, "SN1", "/dev/nvme0n1")
    assert result["identity"]["serial"] == "SN1"
    assert (result["overridden"], result["own_data"]) == ([], None)
    wipefs, blkid, *places = [command for command in drive_of.commands if command[0] != "nvme"]
    assert wipefs == ["wipefs", "-n", "--json", "/dev/nvme0n1"]
    assert blkid == ["blkid", "-p", "-o", "export", "/dev/nvme0n1"]
    assert places and all(command[:5] == [*blkid[:4], "--offset"] for command in places)
    assert {command[1] for command in drive_of.commands if command[0] == "nvme"} == {"id-ctrl", "id-ns", "smart-log"}


def raid(host):
    """nvme0n1p1 → md0 → dm-0, which is mounted by its own number."""
    partition(host)
    os.makedirs(host.path(host.block + "/nvme0n1p1/holders/md0"))
    for name, number, above in (("md0", "9:0", "dm-0"), ("dm-0", "253:0", None)):
        block = host.disk(name, number, "/sys/devices/virtual")
        if above:
            os.makedirs(host.path(f"{block}/holders/{above}"))
    host.mount("/dev/mapper/root", "253:0", "/")


def bystanders(host):
    """Names and numbers that merely look alike."""
    host.disk("nvme0n10", "259:70")
    host.mount("/dev/nvme0n10", "259:70", "/srv")
    host.mount("nvme0n1", "0:45", "/sys/nvme0n1")
    host.put(
        "/proc/swaps", "Filename Type Size Used Priority\n/dev/nvme0n10 partition 1 0 -2\n/srv/nvme0n1 file 1 0 -3\n"
    )
    host.loop(5, "/srv/nvme0n1")
    host.loop(6, "/dev/nvme0n10")


def put(path, content):
    return lambda host: host.put(path, content)


SIGNATURES = '{"signatures": [%s]}'


@pytest.mark.parametrize(
    "stage, expected",
    [
        (bystanders, []),
        (lambda host: host.mount("/dev/nvme0n1", "0:45", "/srv"), ["mounted"]),  # btrfs: a number of its own
        (lambda host: host.mount("/dev/whatever", "259:0", "/srv"), ["mounted"]),
        (
            lambda host: host.mount("/dev/nvme0n1", "259:0", "/mnt/a\\040b", process="4711"),
            ["mounted"],
        ),  # another namespace
        (mounted_partition, ["mounted", "partition_table"]),
        (partition, ["partition_table"]),
        (raid, ["root_disk", "mounted", "held", "partition_table"]),
        (
            put(
                "/proc/swaps",
                (
                    "Filename Type Size Used Priority\n/dev/nvme0n1\\040(deleted) partition 1 0 -2\n/dev/nvme0n1 "
                    "partition 1 0 -2\n"
                ),
            ),
            ["swap"],
        ),
        (lambda host: host.loop(0, "/dev/nvme0n1"), ["held"]),
        (lambda host: host.disk("zram0", "252:0", "/sys/devices/virtual", backing_dev="/dev/nvme0n1"), ["held"]),
        (lambda host: os.makedirs(host.path(host.block + "/holders/bcache0")), ["held"]),
        (says(wipefs=(0, SIGNATURES % '{"type": "ext4"}, {"type": "gpt"}', "")), ["partition_table", "signature"]),
        (says(blkid=(0, "DEVNAME=/dev/nvme0n1\nPTTYPE=gpt\n", "")), ["partition_table"]),
        (says(blkid=(0, "DEVNAME=/dev/nvme0n1\nTYPE=LVM2_member\nUSAGE=raid\n", "")), ["signature"]),
        (says(blkid=(8, "", "ambivalent result")), ["signature"]),
        (lambda host: host.put(host.block + "/ro", "1"), ["read_only"]),
        (lambda host: host.put(host.block + "/size", "0"), ["no_capacity"]),
        (lambda host: os.remove(host.path(host.block + "/size")), ["no_capacity", "probe_failed"]),
        (lambda host: host.put(host.block + "/removable", "1"), ["removable"]),
        (put("/sys/kernel/config/nvmet/subsystems/a/namespaces/1/device_path", "/dev/nvme0n1"), ["exported"]),
        (put("/sys/kernel/config/target/core/iblock_0/b/udev_path", "/dev/nvme0n1"), ["exported"]),
        (put("/sys/kernel/config/nvmet/subsystems/a/namespaces/1/device_path", "(null)"), []),
        (put("/etc/fstab", "/dev/nvme0n1 /srv ext4 defaults 0 0"), ["configured"]),
        (put("/proc/cmdline", "quiet resume=/dev/nvme0n1"), ["hibernation"]),
        (lambda host: host.nvme_says("id-ns", {"nsattr": 1}), ["read_only"]),
        (lambda host: host.nvme_says("smart-log", {"critical_warning": 8}), ["read_only"]),
        (lambda host: host.nvme_says("smart-log", {"critical_warning": 0xF7}), []),
    ],
)
def test_each_use_is_refused(drive_of, stage, expected):
    stage(drive_of)
    assert codes(drive_of) == expected


@pytest.mark.parametrize(
    "stage",
    [
        says(wipefs=(127, "", "cannot run wipefs")),
        says(wipefs=(1, "", "I/O error")),
        says(wipefs=(1, SIGNATURES % "", "I/O error")),
        says(wipefs=(0, "", "")),
        says(wipefs=(0, "[]", "")),
        says(wipefs=(0, "{}", "")),
        says(wipefs=(0, "garbage", "")),
        says(wipefs=(0, SIGNATURES % '"ext4"', "")),
        says(wipefs=(0, '{"signatures": null}', "")),
        says(wipefs=(0, '{"signatures": {}}', "")),
        says(wipefs=(0, '{"signatures": ""}', "")),
        says(blkid=(127, "", "cannot run blkid")),
        says(blkid=(2, "", "error: no such device")),
        says(blkid=(0, "", "")),
        says(blkid=(0, "garbage", "")),
        says(blkid=(0, "DEVNAME=/dev/nvme0n1\n", "")),
        says(blkid=(4, "", "usage")),
        says(blkid=(-9, "", "")),
        lambda host: os.remove(host.path("/proc/self/mountinfo")),
        put("/proc/self/mountinfo", "a line that is none\n"),
        put("/proc/1/mountinfo", "36 35 8:1 / /srv rw - ext4\n"),
        lambda host: os.remove(host.path("/proc/swaps")),
        lambda host: os.remove(host.path(host.block + "/ro")),
        lambda host: os.remove(host.path(host.block + "/removable")),
    ],
)
def test_whatever_could_not_be_probed_is_refused(drive_of, stage):
    stage(drive_of)
    assert codes(drive_of) == ["probe_failed"]


def test_an_unreadable_mount_table_is_refused(drive_of, monkeypatch):
    drive_of.put("/proc/77/mountinfo", "")
    read = drive_of.read

    def refuse(path):
        if path == "/proc/77/mountinfo":
            raise OSError(errno.EACCES, "Permission denied")
        return read(path)

    monkeypatch.setattr(drive_of, "read", refuse)
    assert codes(drive_of) == ["unseen_users"]


@pytest.mark.parametrize("gone", [errno.ENOENT, errno.ESRCH, errno.EINVAL])
def test_a_process_that_ended_meanwhile_is_no_failure(drive_of, monkeypatch, gone):
    drive_of.put("/proc/77/mountinfo", "")
    read = drive_of.read
    monkeypatch.setattr(drive_of, "read", lambda path: read(path if path != "/proc/77/mountinfo" else exec_error(gone)))
    assert codes(drive_of) == []


def exec_error(number):
    raise OSError(number, os.strerror(number))


@pytest.mark.parametrize(
    "version, expected", [("2.36.1", []), ("2.32", []), ("2.37", ["probe_failed"]), ("3.0", ["probe_failed"])]
)
def test_an_old_wipefs_says_nothing_where_it_finds_nothing(drive_of, monkeypatch, version, expected):
    run = drive_of.run

    def answer(argv, **kwargs):
        drive_of.answers["wipefs"] = (0, f"wipefs from util-linux {version}" if "--version" in argv else "", "")
        return run(argv, **kwargs)

    monkeypatch.setattr(drive_of, "run", answer)
    assert codes(drive_of) == expected


def test_a_drive_that_lets_a_tool_hang_is_not_opened(drive_of, monkeypatch):
    drive_of.answers["blkid"] = (124, "", "blkid gave no answer in 60 s")
    monkeypatch.setattr(drive_of, "open", lambda *_args: pytest.fail("opened"))
    assert codes(drive_of) == ["probe_failed"]


def test_an_error_nobody_thought_of_is_refused(drive_of, monkeypatch):
    monkeypatch.setattr(device_users, "probe_users", lambda *_args: 1 // 0)
    assert codes(drive_of) == ["probe_failed"]


def test_what_user_space_drives_is_named_when_a_drive_is_missing(drive_of):
    for address, kind in (("0000:05:00.0", "0x010802"), ("0000:06:00.0", "0x020000")):
        drive_of.put(f"/sys/bus/pci/drivers/vfio-pci/{address}/class", kind)
    (result,) = guard_check.inspect(drive_of, [parse({"serial": "gone"})])
    assert (
        "0000:05:00.0 (vfio-pci)" in result["refusals"][0]["message"]
        and "06:00" not in result["refusals"][0]["message"]
    )


# A finding for every fact that can speak against a drive: no such fact may be without a rule.
FINDINGS = {
    **{
        field.name: ["what was found"]
        for field in guard_facts.dataclasses.fields(guard_facts.Facts)
        if field.default_factory is list and field.name != "family"
    },
    "kind": "stacked",
    "busy": True,
    "block_backing": "/dev/sdb",
    "identity": Identity(path="/dev/sda"),
    # Not against the drive by themselves: how to find out more, what a purge method asks, what lifts a refusal.
    **dict.fromkeys(
        (
            "name",
            "path",
            "family",
            "numbers",
            "keys",
            "tags",
            "ata_frozen",
            "own_data",
            "passing",
            "marks",
            "hits",
            "holdings",
            "pieces",
            "look",
            "allocated",
            "allocated_bytes",
        )
    ),
    "hangs": None,  # goes with a failure
}


def test_every_fact_has_a_rule():
    assert {field.name for field in guard_facts.dataclasses.fields(guard_facts.Facts)} == set(FINDINGS)
    assert rules.refusals(guard_facts.Facts(**CLEAN)) == []


@given(st.sets(st.sampled_from([key for key, finding in FINDINGS.items() if finding is not None]), min_size=1))
def test_no_finding_is_ever_lost(keys):
    facts = guard_facts.Facts(**dict(CLEAN, **{key: FINDINGS[key] for key in keys}))
    refused = {refusal.code for refusal in rules.refusals(facts)}
    for key in keys:
        alone = {refusal.code for refusal in rules.refusals(guard_facts.Facts(**dict(CLEAN, **{key: FINDINGS[key]})))}
        assert alone and (alone <= refused or {key, "kind"} <= keys)


def test_every_code_has_its_text_and_every_text_a_remedy():
    assert {code for code, _rule in rules.RULES} <= set(refusals.REFUSALS)
    assert set(rules.CONTENT_CODES) <= set(refusals.REFUSALS)
    for text in refusals.REFUSALS.values():
        assert "{detail}" in text.problem and text.remedy.endswith(".")


def test_a_long_list_is_cut(drive_of):
    for index in range(9):
        drive_of.mount("/dev/nvme0n1", "259:0", f"/srv/{index}")
    (result,) = guard_check.inspect(drive_of, [parse(SELECTOR)])
    assert result["refusals"][0]["message"].startswith("SN1 (/dev/nvme0n1): it is mounted: /dev/nvme0n1 on /srv/0; ")
    assert "; 5 more. Unmount it everywhere" in result["refusals"][0]["message"]
    json.dumps(result)
