# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What tools print of a drive's self-tests, in the form that the sources of nvme-cli (1.16 to 2.16) and smartctl (7.0
to 7.5, and what follows it) give it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import replace

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import self_test
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.self_test import SelfTest
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity

NVME = Identity(transport="nvme", path="/dev/nvme0n1")
SATA, SAS = Identity(transport="sata", path="/dev/sda"), Identity(transport="sas", path="/dev/sdb")
EMULATOR = os.path.join(os.path.abspath(__file__).split("/tests/unit/")[0], "tests", "emulators", "nvme")
UNUSED = {"Self test result": 15}
DONE = {"Self test result": 0, "Self test code": 1, "Segment number": 0, "Power on hours": 4092}


def nvme_log(operation, completion=0, *reports):
    return {
        "Current Device Self-Test Operation": operation,
        "Current Device Self-Test Completion": completion,
        "List of Valid Reports": [*reports, *[UNUSED] * (20 - len(reports))],
    }


def smartctl_nvme(operation, **more):
    named = {"value": operation, "string": "Extended self-test in progress"}
    return {"nvme_self_test_log": {"nsid": -1, "current_self_test_operation": named, **more}}


def smartctl_ata(status, *entries, **more):
    return {
        "ata_smart_data": {
            "self_test": {"status": {"value": status}, "polling_minutes": {"short": 2, "extended": 85}},
            "capabilities": {"self_tests_supported": True},
        },
        "ata_smart_self_test_log": {"standard": {"revision": 1, "table": list(entries), "count": len(entries)}},
        **more,
    }


def ata_entry(kind, status, hours=100):
    return {"type": {"value": kind}, "status": {"value": status}, "lifetime_hours": hours}


# Lines that smartctl 7.0 to 7.5 prints of SAS drives (scsiPrintSelfTest of scsiprint.cpp).
SCSI_NONE = "No Self-tests have been logged"
SCSI_LEFT = "Self-test execution status:\t\t75% of test remaining"
SCSI_DONE = "# 1  Background short  Completed                   -      31                 - [-   -    -]"
SCSI_NOW = "# 1  Background long   Self test in progress ...   -     NOW                 - [-   -    -]"
SCSI_BEFORE = "# 2  Background long   Failed in segment -->       6   47877         764900874 [0x3 0x5d 0x1]"
SCSI_LOST = "# 2  Background long   Self test in progress ...   -   47877                 - [-   -    -]"
SCSI_LENGTH = "Long (extended) Self-test duration: 900 seconds [15.0 minutes]"
SCSI_RESULTS = [
    *("Completed", "Aborted (by user command)", "Aborted (device reset ?)", "Unknown error, incomplete"),
    *("Completed, segment failed", "Failed in first segment", "Failed in second segment", "Failed in segment -->"),
    *(f"Reserved({code})" for code in range(8, 15)),
]


def smartctl_scsi(*lines):
    return {"smartctl": {"version": [7, 2], "output": ["smartctl 7.2 2020-12-30", "", *lines, ""]}}


@pytest.mark.parametrize(
    ("log", "is_running", "kind", "left_pct", "ended"),
    [
        (nvme_log(0), False, None, None, 0),
        (nvme_log(1, 0, DONE), True, "short", 100, 1),
        (nvme_log(2, 60, DONE, DONE), True, "extended", 40, 2),
        (nvme_log(14, 99), True, "vendor specific", 1, 0),
        (nvme_log(3, 5), True, None, 95, 0),
        # Bits that are reserved, and a drive that does not count.
        (nvme_log(0xF2, 0x80 | 30), True, "extended", 70, 0),
        (nvme_log(2, 127), True, "extended", 0, 0),
        ({"Current Device Self-Test Operation": 2}, True, "extended", None, 0),
        ({}, None, None, None, 0),
        ({"Current Device Self-Test Operation": "x", "List of Valid Reports": 3}, None, None, None, 0),
    ],
)
def test_nvme_cli(log, is_running, kind, left_pct, ended):
    seen = self_test.from_nvme(log)
    assert (seen.is_running, seen.kind, seen.left_pct, len(seen.ended)) == (is_running, kind, left_pct, ended)


@pytest.mark.parametrize(
    ("printed", "is_running", "kind", "left_pct", "extended_s", "ended"),
    [
        (smartctl_nvme(0, table=[{"power_on_hours": 3}]), False, None, None, None, 1),
        (smartctl_nvme(2, current_self_test_completion_percent=10), True, "extended", 90, None, 0),
        # smartctl before 7.4 tells nothing of an NVMe drive's.
        ({"nvme_smart_health_information_log": {"media_errors": 0}}, None, None, None, None, 0),
        (smartctl_ata(0x00, ata_entry(1, 0x00)), False, None, None, 5100, 1),
        (smartctl_ata(0x19), False, None, None, 5100, 0),
        (smartctl_ata(0xF4), True, None, 40, 5100, 0),
        (smartctl_ata(0xF9, ata_entry(2, 0xF9), ata_entry(1, 0)), True, "extended", 90, 5100, 1),
        (smartctl_ata(0xF0, ata_entry(0x81, 0xF0)), True, "short", 0, 5100, 0),
        # Of a self-test that lost its power the log may keep that it is under way.
        (smartctl_ata(0x21, ata_entry(2, 0xF9)), False, None, None, 5100, 0),
        ({"ata_smart_data": {}}, None, None, None, None, 0),
        (smartctl_scsi(SCSI_DONE, "", SCSI_LENGTH), False, None, None, 900, 1),
        (smartctl_scsi(SCSI_NOW, SCSI_BEFORE), True, "extended", None, None, 1),
        (smartctl_scsi(SCSI_LEFT, SCSI_NOW, SCSI_BEFORE, SCSI_LENGTH), True, "extended", 75, 900, 1),
        # A new drive's, and one that tells of its first self-test by sense data alone.
        (smartctl_scsi(SCSI_NONE), False, None, None, None, 0),
        (smartctl_scsi(SCSI_LEFT, SCSI_NONE), True, None, 75, None, 0),
        # Of one that lost its power the log may keep that it is under way.
        (smartctl_scsi(SCSI_DONE, SCSI_LOST), False, None, None, None, 1),
        # Without such a log, one that can't be read, and without text.
        (smartctl_scsi("Device does not support Self Test logging"), None, None, None, None, 0),
        (smartctl_scsi("scsiPrintSelfTest: Failed [unsupported field in scsi command]"), None, None, None, None, 0),
        ({"scsi_error_counter_log": {}}, None, None, None, None, 0),
        ({"smartctl": {"output": [None, 7]}}, None, None, None, None, 0),
    ],
)
def test_smartctl(printed, is_running, kind, left_pct, extended_s, ended):
    seen = self_test.from_smartctl(printed)
    told = (seen.is_running, seen.kind, seen.left_pct, seen.extended_s, len(seen.ended))
    assert told == (is_running, kind, left_pct, extended_s, ended)


def test_a_log_that_has_one_more_entry_is_another_log():
    """A short self-test may begin and end between two looks, twice within an hour of its power-on time."""
    logs = [self_test.from_nvme(nvme_log(0, 0, *[DONE] * count)).ended for count in (0, 1, 2)]
    assert len(set(logs)) == 3


def nvme_entry(result, hours=7):
    return {"Self test result": result, "Self test code": 2, "Power on hours": hours}


def smartctl_entry(result):
    return {"self_test_code": {"value": 2}, "self_test_result": {"value": result}, "power_on_hours": 7}


@pytest.mark.parametrize(
    ("seen", "results"),
    [
        (self_test.from_nvme(nvme_log(0, 0, *map(nvme_entry, range(15)))), [5, 6, 7]),
        (self_test.from_smartctl(smartctl_nvme(0, table=[*map(smartctl_entry, range(15))])), [5, 6, 7]),
        (
            self_test.from_smartctl(smartctl_ata(0, *(ata_entry(2, code << 4 | 3, 7) for code in range(16)))),
            range(3, 9),
        ),
        (
            self_test.from_smartctl(
                smartctl_scsi(
                    *(
                        f"#{number:2d}  Background long   {result:25}   -       7                 - [-   -    -]"
                        for number, result in enumerate(SCSI_RESULTS, 1)
                    )
                )
            ),
            range(3, 8),
        ),
        (self_test.from_nvme(nvme_log(0)), []),
        (self_test.from_smartctl(smartctl_nvme(0, table=[{"power_on_hours": 3}])), []),
        (self_test.from_smartctl(smartctl_scsi(SCSI_NONE)), []),
        # Without the log.
        (self_test.from_smartctl({"device": {"protocol": "SCSI"}}), None),
        (self_test.from_smartctl({"ata_smart_data": {"self_test": {"status": {"value": 0}}}}), None),
        (self_test.from_smartctl({}), None),
        (self_test.from_nvme({}), None),
    ],
)
def test_which_the_drive_failed(seen, results):
    assert seen.failed == (None if results is None else tuple(f"extended at 7 h: result {code}" for code in results))


def asked(fake):
    return [" ".join(argv[:2]) for argv in fake.commands]


def test_an_nvme_drive_is_asked_with_nvme_cli_and_what_does_not_change_once(fake):
    fake.nvme_says("id-ctrl", {"oacs": 0x16, "edstt": 10})
    fake.nvme_says("self-test-log", nvme_log(2, 60))
    first = self_test.read(fake, NVME)
    assert (first.is_running, first.left_pct, first.extended_s) == (True, 40, 600)
    assert self_test.read(fake, NVME, first) == first
    assert asked(fake) == ["nvme id-ctrl", "nvme self-test-log", "nvme self-test-log"]


def test_a_drive_without_self_tests_is_never_asked_for_their_log(fake):
    """It would count that as an error."""
    seen = self_test.read(fake, NVME)
    assert (seen.is_offered, seen.is_running) == (False, False)
    assert self_test.read(fake, NVME, seen) == seen
    assert asked(fake) == ["nvme id-ctrl"]


@pytest.mark.parametrize("broken", ["nvme id-ctrl", "nvme self-test-log"])
def test_without_nvme_cli_smartctl_is_asked(fake, broken):
    fake.nvme_says("id-ctrl", {"oacs": 0x10})
    fake.nvme_says("self-test-log", nvme_log(0))
    fake.answers[broken] = (127, "", "cannot run nvme")
    fake.answers["smartctl"] = (0, json.dumps(smartctl_nvme(1, current_self_test_completion_percent=30)), "")
    assert self_test.read(fake, NVME) == SelfTest(True, True, "short", 70, failed=())
    del fake.answers["smartctl"]
    assert self_test.read(fake, NVME).is_running is None


@pytest.mark.parametrize(
    ("identity", "printed", "is_running"),
    [
        # smartctl's exit code tells of the drive: 4 is a command that it lacks.
        (SATA, smartctl_ata(0xF4), True),
        (SAS, smartctl_scsi(SCSI_NOW), True),
        (SAS, smartctl_scsi(SCSI_NONE), False),
        (SAS, {}, None),
        (replace(SATA, transport="virtio"), smartctl_ata(0xF4), None),
        (replace(SATA, transport="loop"), smartctl_ata(0xF4), None),
    ],
)
def test_other_drives_are_asked_with_smartctl_and_those_of_software_not(fake, identity, printed, is_running):
    fake.answers["smartctl"] = (4, json.dumps(printed), "")
    assert self_test.read(fake, identity).is_running is is_running
    assert bool(fake.commands) == (identity.transport in ("sata", "sas"))


def test_words():
    assert self_test.text(SelfTest(True, True, "extended", 40)) == "self-test (extended), 40 % left"
    assert self_test.text(SelfTest(True, True)) == "self-test"
    assert self_test.abort_command(NVME) == "nvme device-self-test /dev/nvme0n1 -s 0xf"
    assert self_test.abort_command(SATA) == "smartctl -X /dev/sda"


@pytest.mark.parametrize(
    ("self_test_of", "is_offered", "is_running", "ended"),
    [
        (None, False, False, 0),
        ({"code": 2, "started": 0, "seconds": 1}, True, False, 1),
        ({"code": 2, "started": time.time(), "seconds": 9999}, True, True, 0),
    ],
)
def test_an_emulated_drive(tmp_path, monkeypatch, self_test_of, is_offered, is_running, ended):
    class Emulated(Host):
        def run(self, argv, *more, **options):
            return super().run([sys.executable, EMULATOR, *argv[1:]], *more, **options)

    drive = {"nodes": ["/dev/nvme0n1"], "sn": "S1", **({"self_test": self_test_of} if self_test_of else {})}
    (tmp_path / "state.json").write_text(json.dumps({"real": "/nowhere", "drives": [drive]}))
    monkeypatch.setenv("SSDLAB_EMULATED_NVME", str(tmp_path / "state.json"))
    seen = self_test.read(Emulated(str(tmp_path)), NVME)
    assert (seen.is_offered, seen.is_running, len(seen.ended)) == (is_offered, is_running, ended)
