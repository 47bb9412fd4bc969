# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The drive's own cache. nvme-cli's answer is worded as its source prints it; cache_type as the kernel's sd.c does."""

from __future__ import annotations

import os

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Result
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import Tune, WriteCacheRule
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import plan as tuning_plan
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import settings as tuning
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import write_cache
from ansible_collections.ssdlab.fleet.tests.fixtures import planned

CACHE_TYPE = "/sys/devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/scsi_disk/0:0:0:0/cache_type"


@pytest.fixture
def drives(fake):
    """An NVMe drive with a volatile cache that is on, one without a cache, and a SATA drive."""
    fake.put(tuning.BOOT_ID, "boot-1\n")
    for name, number, serial in (("nvme0n1", "259:0", "S0"), ("nvme1n1", "259:1", "S1")):
        fake.nvme(name, number, serial)
    device = os.path.dirname(os.path.dirname(os.path.dirname(CACHE_TYPE)))
    fake.link(fake.disk("sda", "8:0", device) + "/device", device)
    fake.put(device + "/vpd_pg80", b"\0\x80\0\x04SATA")
    fake.put(CACHE_TYPE, "write back\n")
    fake.cache, fake.vwc = {"/dev/nvme0": 1}, None

    def run(argv, timeout_s=60, stdin=None):
        if argv[0] == "tee":
            fake.put(CACHE_TYPE, stdin)
            return Result(argv, 0, stdin, "")
        if argv[1] == "id-ctrl":
            return Result(argv, 0, '{"sn": "S"}' if fake.vwc is None else f'{{"vwc": {fake.vwc}}}', "")
        if argv[2] not in fake.cache:
            return Result(
                argv,
                1,
                "NVMe status: Invalid Field in Command: A reserved coded value or an unsupported value(0x2002)\n",
                "",
            )
        if argv[1] == "set-feature":
            fake.cache[argv[2]] = int(argv[-1][-1])
            return Result(argv, 0, f"set-feature:0x06 (Volatile Write Cache), value:{fake.cache[argv[2]]:#010x}\n", "")
        return Result(
            argv, 0, f"get-feature:0x06 (Volatile Write Cache), Current value:{fake.cache[argv[2]]:#010x}\n", ""
        )

    fake.run = run
    return fake


@pytest.mark.parametrize("name, now", [("nvme0n1", "on"), ("nvme1n1", None), ("sda", "on"), ("loop0", None)])
def test_the_cache_of_the_drive_is_read(drives, name, now):
    assert write_cache.read(drives, name) == now


@pytest.mark.parametrize("vwc, now", [(0, None), (6, None), (7, "on"), (1, "on")])
def test_a_drive_that_answers_without_having_a_volatile_cache_has_none(drives, vwc, now):
    drives.vwc = vwc
    assert write_cache.read(drives, "nvme0n1") == now


@pytest.mark.parametrize("name", ["nvme0n1", "sda"])
def test_it_is_switched_both_ways(drives, name):
    for wanted in ("off", "on"):
        assert write_cache.change(drives, name, wanted) == "" and write_cache.read(drives, name) == wanted


@pytest.mark.parametrize("before, off", [("write back", "write through"), ("write back, no read (daft)", "none")])
def test_reads_that_are_not_cached_stay_so(drives, before, off):
    drives.put(CACHE_TYPE, before + "\n")
    write_cache.change(drives, "sda", "off")
    assert drives.read(CACHE_TYPE) == off
    write_cache.change(drives, "sda", "on")
    assert drives.read(CACHE_TYPE) == before


def settings(host, state="leave", plp_models=(), **options):
    tune = Tune(write_cache=WriteCacheRule(state, list(plp_models)))
    entries = [dict({"serial": serial}, **options) for serial in ("S0", "S1", "SATA")]
    drives = [tuning_plan.DriveToTune(entry["serial"], parse(entry)) for entry in entries]
    plan = tuning_plan.TuningPlan(tune, drives, 1)
    found = tuning_plan.targets(host, plan.drives)
    return tuning_plan.expand(host, tune, found, tuning_plan.Places(host, plan, found))


@pytest.mark.parametrize(
    "arguments, wanted",
    [
        ({}, []),
        ({"state": "on"}, ["on", "on", "on"]),
        ({"write_cache": "off"}, ["off", "off", "off"]),
        ({"state": "on", "write_cache": False}, ["off", "off", "off"]),
        ({"state": "off_without_plp"}, ["off", "off", "off"]),
        ({"state": "off_without_plp", "plp_models": ["EXAMPLE*"]}, ["off"]),
    ],
)
def test_it_is_set_as_the_drives_entry_says_else_as_the_profile_does(drives, arguments, wanted):
    assert [item.wanted for item in settings(drives, **arguments)] == wanted


def test_it_is_recorded_verified_and_restored_and_a_drive_without_one_is_left_alone(drives, tmp_path):
    record = str(tmp_path / "tuning.json")
    applied = tuning.apply(drives, settings(drives, "off"), record)
    assert [(item.effective, item.outcome) for item in applied] == [
        ("off", "changed"),
        (None, "not_applicable"),
        ("off", "changed"),
    ]
    tuning.restore(drives, record)
    assert [write_cache.read(drives, name) for name in ("nvme0n1", "sda")] == ["on", "on"] and not os.path.exists(
        record
    )


def test_after_a_reboot_it_is_put_back_on_the_drive_that_has_another_name_now(drives, tmp_path):
    """A drive keeps its cache's state over a reboot, the kernel does not keep its name."""
    record = str(tmp_path / "tuning.json")
    tuning.apply(drives, settings(drives, "off"), record)
    drives.put(tuning.BOOT_ID, "boot-2\n")
    for name, serial in (("nvme0", "S1"), ("nvme1", "S0")):
        drives.put(f"/sys/devices/pci0000:80/0000:80:01.0/nvme/{name}/serial", serial + "\n")
    drives.cache = {"/dev/nvme1": 0}
    done = {item.path: item.outcome for item in tuning.restore(drives, record)}
    assert done == {
        "write cache of /dev/nvme0n1": "restored",
        "write cache of /dev/sda": "restored",
    } and drives.cache == {"/dev/nvme1": 1}


@pytest.mark.parametrize("boot, let_go", [("boot-1", False), ("boot-2", False), ("boot-2", True)])
@pytest.mark.parametrize("other", [0, 1])
def test_a_drive_that_is_gone_keeps_the_record_only_over_a_reboot_until_restore_lets_it_go(
    drives, tmp_path, boot, let_go, other
):
    """One that died must not keep its host from any further run; another that has its name now is left alone."""
    record = str(tmp_path / "tuning.json")
    tuning.apply(drives, settings(drives, "off"), record)
    drives.put(tuning.BOOT_ID, boot + "\n")
    drives.put("/sys/devices/pci0000:80/0000:80:01.0/nvme/nvme0/serial", "OTHER\n")
    drives.cache = {"/dev/nvme0": other}
    (gone,) = [item for item in tuning.restore(drives, record, let_go) if item.path == "write cache of /dev/nvme0n1"]
    kept = boot == "boot-2" and not let_go
    said = "the drive S0 is not there" + ("" if kept else "; its write cache was on before, and stays off")
    assert (gone.outcome, gone.message) == ("failed" if kept else "not_applicable", said)
    assert os.path.exists(record) == kept and drives.cache == {"/dev/nvme0": other}


def test_it_is_set_as_the_tests_of_the_drive_need_it(drives):
    written = planned.plan_of(
        tune={"write_cache": {"state": "leave", "plp_models": []}},
        drives=[
            {"drive": "S0", "selector": {"serial": "S0"}, "tests": [{"write_cache": None}, {"write_cache": "off"}]}
        ],
    )
    plan = tuning_plan.parse(written)
    found = tuning_plan.targets(drives, plan.drives)
    places = tuning_plan.Places(drives, plan, found)
    (setting,) = tuning_plan.expand(drives, plan.tune, found, places)
    assert (setting.wanted, setting.device) == ("off", "nvme0n1")
    assert tuning_plan.expand(drives, Tune(), found, places) == [], "its concern is switched off"


@pytest.mark.parametrize(
    ("name", "vwc", "wanted", "expected"),
    [
        ("nvme0n1", None, None, ""),
        ("nvme0n1", None, "on", ""),
        ("nvme0n1", None, "off", "the drive's write cache is on, the test needs it off"),
        ("nvme0n1", 0, "off", ""),
        ("nvme0n1", 0, "on", "the drive has no volatile write cache to be on"),
        (
            "nvme1n1",
            None,
            "off",
            "the drive does not report the state of its write cache, so nothing proves that it is off",
        ),
        ("sda", None, "on", ""),
        (
            "loop0",
            None,
            "on",
            "the drive does not report the state of its write cache, so nothing proves that it is on",
        ),
        ("loop0", None, None, ""),
    ],
)
def test_what_is_not_proved_is_a_problem(drives, name, vwc, wanted, expected):
    drives.vwc = vwc
    assert write_cache.problem(drives, name, wanted) == expected
