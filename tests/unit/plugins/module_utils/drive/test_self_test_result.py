# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Entries of self-test logs, in the form that nvme-cli and smartctl give them."""

from __future__ import annotations

import json

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import self_test_result

DONE = "completed without an error"


def nvme(result, **more):
    return {"Self test result": result, "Self test code": 2, "Segment number": 3, "Power on hours": 7, **more}


def smartctl_nvme(result, **more):
    return {"self_test_code": {"value": 2}, "self_test_result": {"value": result}, "power_on_hours": 7, **more}


def ata(status, **more):
    return {"type": {"value": 2}, "status": {"value": status}, "lifetime_hours": 7, **more}


def scsi(result, **more):
    return {"code": 2, "result": result, "power_on_hours": 7, **more}


@pytest.mark.parametrize(
    ("entry", "result", "text"),
    [
        (nvme(0), "passed", DONE),
        (nvme(2), "aborted", "aborted by a reset of the controller"),
        (nvme(5), "failed", "ended by a fatal or unknown error"),
        # The segment counts only with this result.
        (nvme(6), "failed", "a segment failed, and the drive does not know which"),
        (nvme(7), "failed", "a segment failed, segment 3"),
        (nvme(7, **{"Failing LBA": 4096}), "failed", "a segment failed, segment 3, at LBA 4096"),
        (nvme(10), "unknown", "ended with the result 10"),
        (smartctl_nvme(0), "passed", DONE),
        (smartctl_nvme(7, segment=2, lba=0), "failed", "a segment failed, segment 2, at LBA 0"),
        (smartctl_nvme(9), "aborted", "aborted by a sanitize"),
        (ata(0x00, lba=5), "passed", DONE),
        (ata(0x19), "aborted", "aborted by a command"),
        (ata(0x20), "aborted", "aborted by a reset"),
        (ata(0x79, lba=123), "failed", "the read part failed, at LBA 123"),
        (ata(0x90), "unknown", "ended with the result 9"),
        (scsi(0), "passed", DONE),
        (scsi(1), "aborted", "aborted by a command"),
        (scsi(3), "failed", "ended by an unknown error"),
        (scsi(6, lba_first_failure=99), "failed", "the second segment failed, at LBA 99"),
        (scsi(7, segment=6), "failed", "a segment after the second failed, segment 6"),
        (scsi(-1), "unknown", "ended with the result -1"),
        ({"power_on_hours": 3}, "unknown", "ended, and its result can't be read"),
        ({"status": "x"}, "unknown", "ended, and its result can't be read"),
    ],
)
def test_what_a_drive_says_of_a_self_test(entry, result, text):
    assert self_test_result.of_entry(json.dumps(entry)) == (result, text)
