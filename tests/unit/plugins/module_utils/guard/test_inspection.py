# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guard on fixture trees: each case must refuse with its code. Real devices:
tests/integration/test_guard_loop.py.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import facts as guard_facts
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import inspection, probe, rules, texts, users

SELECTOR = {"serial": "SN1"}
CLEAN = {"name": "sda", "path": "/dev/sda", "kind": "drive", "identity": {"size_bytes": 1 << 30, "path": "/dev/sda"}}


@pytest.fixture(autouse=True)
def openable(monkeypatch, request):
    """A fixture tree holds no device nodes: take the open as good, except where a test is about it."""
    if "real_open" not in request.fixturenames:
        monkeypatch.setattr(probe, "_opened", lambda *_drive: contextlib.nullcontext())


@pytest.fixture
def real_open():
    """Open what the tree holds."""


@pytest.fixture
def drive_of(fake):
    """A host with one drive that may be erased."""
    fake.block = fake.nvme("nvme0n1", "259:0", "SN1", wwid="eui.0025385b71b00eb0")
    return fake


def codes(fake, *selectors):
    (result,) = inspection.inspect(fake, selectors or [SELECTOR])
    assert result["eligible"] is (not result["refusals"])
    for refusal in result["refusals"] + result["overridden"]:
        assert sorted(refusal) == ["code", "message"] and "{detail}" not in refusal["message"]
    return [refusal["code"] for refusal in result["refusals"]]


def test_a_drive_that_nobody_uses_is_eligible(drive_of):
    (result,) = inspection.inspect(drive_of, [SELECTOR])
    assert result["eligible"] is True and result["refusals"] == []
    assert (result["selector"], result["drive"], result["path"]) == (SELECTOR, "SN1", "/dev/nvme0n1")
    assert result["identity"]["serial"] == "SN1"
    assert (result["overridden"], result["own_data"]) == ([], None)
    assert [command for command in drive_of.commands if command[0] != "nvme"] == [
        ["wipefs", "-n", "--json", "/dev/nvme0n1"],
        ["blkid", "-p", "-o", "export", "/dev/nvme0n1"],
    ]
    assert {command[1] for command in drive_of.commands if command[0] == "nvme"} == {"id-ctrl", "id-ns", "smart-log"}


def partition(host):
    host.partition(host.block, "nvme0n1p1", "259:7")


def mounted_partition(host):
    partition(host)
    host.mount("/dev/root", "259:7", "/srv")


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


def says(**answers):
    def stage(host):
        host.answers.update(answers)

    return stage


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
        (lambda host: os.remove(host.path(host.block + "/size")), ["no_capacity"]),
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
    monkeypatch.setattr(probe, "_probe_node", lambda *_args: pytest.fail("opened"))
    assert codes(drive_of) == ["probe_failed"]


def test_an_error_nobody_thought_of_is_refused(drive_of, monkeypatch):
    monkeypatch.setattr(users, "probe_users", lambda *_args: 1 // 0)
    assert codes(drive_of) == ["probe_failed"]


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
    results = inspection.inspect(drive_of, selectors)
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
    results = inspection.discover(drive_of)
    assert [(result["selector"], result["eligible"]) for result in results] == [(SELECTOR, True), (None, False)]
    assert [refusal["code"] for refusal in results[1]["refusals"]] == ["no_identity", "transport"]


def test_a_node_that_is_a_file_is_refused(drive_of, real_open):
    assert codes(drive_of) == ["probe_failed"]  # fio would write a regular file and return 0


def test_a_held_descriptor_must_be_the_drive(drive_of, real_open):
    handle = os.open(drive_of.path("/dev/nvme0n1"), os.O_RDONLY)
    try:
        (result,) = inspection.inspect(drive_of, [SELECTOR], held={"/dev/nvme0n1": handle})
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
    assert [refusal["code"] for refusal in refused] == (["identity_changed"] if changed else [])


@pytest.mark.parametrize("expected, actual", [(None, IDENTITY), (IDENTITY, None), ({}, {}), ({}, IDENTITY)])
def test_a_missing_identity_is_a_changed_one(expected, actual):
    assert [refusal["code"] for refusal in rules.compare(expected, actual, same_boot=True)] == ["identity_changed"]


def overriding(**options):
    return dict(SELECTOR, **options)


@pytest.mark.parametrize(
    "stage, options, refused, overridden",
    [
        (partition, {"allow": ["partition_table"]}, [], ["partition_table"]),
        (partition, {"allow": ["signature"]}, ["partition_table"], []),
        (partition, {"ssd_overwrite_data": True}, ["partition_table"], []),
        (mounted_partition, {"allow": ["partition_table"]}, ["mounted"], ["partition_table"]),
        (lambda host: None, {"allow": ["partition_table", "signature", "removable"]}, [], []),
        (lambda host: host.put(host.block + "/removable", "1"), {"allow": ["removable"]}, [], ["removable"]),
    ],
)
def test_an_override_lifts_its_own_code_and_is_told(drive_of, stage, options, refused, overridden):
    stage(drive_of)
    (result,) = inspection.inspect(drive_of, [overriding(**options)])
    assert [refusal["code"] for refusal in result["refusals"]] == refused
    assert [refusal["code"] for refusal in result["overridden"]] == overridden
    assert result["eligible"] is (not refused)


@pytest.mark.parametrize(
    "code, says",
    [
        ("mounted", "can't be overridden"),
        ("held", "can't be overridden"),
        ("root_disk", "can't be overridden"),
        ("identity_changed", "can't be overridden"),
        ("shared_namespace", "can't be overridden"),
        ("unsigned_data", "can only be lifted by ssd_overwrite_data"),
        ("partition-table", "is not a code of the guard"),
        ("all", "is not a code of the guard"),
    ],
)
def test_what_cannot_be_overridden_is_a_bad_selector_that_says_so(drive_of, code, says):
    (result,) = inspection.inspect(drive_of, [overriding(allow=["partition_table", code])])
    (refusal,) = result["refusals"]
    assert refusal["code"] == "bad_selector" and says in refusal["message"] and result["overridden"] == []


# docs/internals.md, "The guard's codes".
def test_only_these_codes_can_be_overridden():
    allowed = {code for code, text in texts.REFUSALS.items() if text.overridable == "allow"}
    assert allowed == {
        "partition_table",
        "signature",
        "efi_system_partition",
        "transport",
        "removable",
        "sanitize_failed",
        "unseen_users",
        "mentioned",
    }
    assert [code for code, text in texts.REFUSALS.items() if text.overridable == "ssd_overwrite_data"] == [
        "unsigned_data"
    ]
    assert {text.overridable for text in texts.REFUSALS.values()} == {
        "",
        "allow",
        "ssd_overwrite_data",
        "release_evidence",
    }


WRITING = {"run_id": "r", "state": "writing", "released": None, "proved": ""}
LEFT = {"run_id": "old", "state": "released", "released": "…", "proved": "counters"}


@pytest.mark.parametrize(
    "known, run_id, lifted",
    [
        (None, "r", set()),
        (LEFT, None, {"unsigned_data"}),
        (dict(LEFT, proved="content"), "r", {"unsigned_data"}),
        (dict(LEFT, proved=""), "old", {"evidence"}),  # what it keeps as evidence itself
        (dict(LEFT, proved=""), "new", set()),
        (dict(LEFT, state="evidence"), None, {"unsigned_data"}),  # and the code evidence stands
        (WRITING, "r", {"evidence"}),
        (dict(WRITING, proved="content"), "r", {"unsigned_data", "evidence"}),
        (dict(WRITING, proved="content"), "other", set()),
        (dict(WRITING, proved="content"), None, set()),
    ],
)
def test_what_the_ledger_lifts(known, run_id, lifted):
    assert set(rules.ours(known, run_id)) == lifted


@pytest.mark.parametrize(
    "known, says, never",
    [
        (None, "no run of ours left", "was writing"),
        (LEFT, "no run of ours left", "was writing"),
        # Foreign data on the drive of a run that died: only that run's own data is that run's.
        (WRITING, "no run of ours left", "was writing"),
        (
            dict(WRITING, proved="content"),
            "run r was writing to it and never released it: the block at byte 0",
            "no run of ours",
        ),
        (
            dict(WRITING, reason="hangs: {0}"),
            "never released it (hangs: {0}): the block at byte 0",
            "no run of ours",
        ),
    ],
)
def test_data_without_a_signature_is_told_by_who_left_it(known, says, never):
    facts = guard_facts.Facts(
        "sda", "/dev/sda", "drive", {}, unsigned=["the block at byte 0 is not blank"], own_data=known
    )
    (refusal,) = [refusal for refusal in rules.refusals(facts, SELECTOR) if refusal["code"] == "unsigned_data"]
    assert says in refusal["message"] and never not in refusal["message"]
    assert ("-e ssd_run_id=r" in refusal["message"]) == (
        never == "no run of ours"
    ) and "ssd_overwrite_data: true" in refusal["message"]


@pytest.mark.parametrize("release, lifted", [("old", ("evidence",)), ("OLD", ()), (None, ())])
def test_evidence_is_released_for_the_run_that_is_named(release, lifted):
    entry = dict(SELECTOR, **({"release_evidence": release} if release else {}))
    assert rules.lifted_codes(entry, dict(LEFT, state="evidence")) == lifted
    assert rules.lifted_codes(entry, None) == ()


def test_what_user_space_drives_is_named_when_a_drive_is_missing(drive_of):
    for address, kind in (("0000:05:00.0", "0x010802"), ("0000:06:00.0", "0x020000")):
        drive_of.put(f"/sys/bus/pci/drivers/vfio-pci/{address}/class", kind)
    (result,) = inspection.inspect(drive_of, [{"serial": "gone"}])
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
    "identity": {"size_bytes": None, "path": "/dev/sda"},
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
    refused = {refusal["code"] for refusal in rules.refusals(facts)}
    for key in keys:
        alone = {
            refusal["code"] for refusal in rules.refusals(guard_facts.Facts(**dict(CLEAN, **{key: FINDINGS[key]})))
        }
        assert alone and (alone <= refused or {key, "kind"} <= keys)


def test_every_code_has_its_text_and_every_text_a_remedy():
    assert {code for code, _rule in rules.RULES} <= set(texts.REFUSALS)
    assert set(rules.CONTENT_CODES) <= set(texts.REFUSALS)
    for text in texts.REFUSALS.values():
        assert "{detail}" in text.problem and text.remedy.endswith(".")


def test_a_long_list_is_cut(drive_of):
    for index in range(9):
        drive_of.mount("/dev/nvme0n1", "259:0", f"/srv/{index}")
    (result,) = inspection.inspect(drive_of, [SELECTOR])
    assert result["refusals"][0]["message"].startswith("SN1 (/dev/nvme0n1): it is mounted: /dev/nvme0n1 on /srv/0; ")
    assert "; 5 more. Unmount it everywhere" in result["refusals"][0]["message"]
    json.dumps(result)
