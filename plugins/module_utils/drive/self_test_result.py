# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What became of a self-test that ended, by its entry in the drive's log (self_test.SelfTest.ended). Pure.

Results: NVM Express Base Specification 2.0, log page 06h, Self-test Result Data Structure; ATA/ATAPI Command Set 4,
self-test execution status; SCSI Primary Commands 5, Self-Test Results log page.
"""

from __future__ import annotations

import json
import typing as t

from ..tools.nvme import nvme_number

Result = t.Literal["passed", "failed", "aborted", "unknown"]
_Table = t.Mapping[int, t.Tuple[Result, str]]


class Ended(t.NamedTuple):
    """What the drive says of it, as a clause."""

    result: Result
    text: str


_NVME: _Table = {
    0x0: ("passed", "completed without an error"),
    0x1: ("aborted", "aborted by a command"),
    0x2: ("aborted", "aborted by a reset of the controller"),
    0x3: ("aborted", "aborted, as a namespace was removed"),
    0x4: ("aborted", "aborted by a format"),
    0x5: ("failed", "ended by a fatal or unknown error"),
    0x6: ("failed", "a segment failed, and the drive does not know which"),
    0x7: ("failed", "a segment failed"),
    0x8: ("aborted", "aborted, and the drive does not know why"),
    0x9: ("aborted", "aborted by a sanitize"),
}
_ATA: _Table = {
    0x0: ("passed", "completed without an error"),
    0x1: ("aborted", "aborted by a command"),
    0x2: ("aborted", "aborted by a reset"),
    0x3: ("failed", "ended by a fatal or unknown error"),
    0x4: ("failed", "a part failed, and the drive does not know which"),
    0x5: ("failed", "the electrical part failed"),
    0x6: ("failed", "the servo or seek part failed"),
    0x7: ("failed", "the read part failed"),
    0x8: ("failed", "failed, and the drive was perhaps damaged in handling"),
}
_SCSI: _Table = {
    0x0: ("passed", "completed without an error"),
    0x1: ("aborted", "aborted by a command"),
    0x2: ("aborted", "aborted by a reset, or in another way"),
    0x3: ("failed", "ended by an unknown error"),
    0x4: ("failed", "a segment failed, and the drive does not know which"),
    0x5: ("failed", "the first segment failed"),
    0x6: ("failed", "the second segment failed"),
    0x7: ("failed", "a segment after the second failed"),
}
LONGEST = 200
# Where the tools have them; the keys of nvme-cli first.
_SEGMENTS = ("Segment number", "segment")
_ADDRESSES = ("Failing LBA", "lba", "lba_first_failure")


def of_entry(entry: str) -> Ended:
    """Return what an entry says, in the form of the tool that told it."""
    told = json.loads(entry)
    for table, code in (
        (_NVME, _value(told, "Self test result")),
        (_NVME, _value(told, "self_test_result")),
        (_ATA, _ata(told)),
        (_SCSI, _value(told, "result")),
    ):
        if code is not None:
            return _ended(table, nvme_number(code), told)
    return Ended("unknown", "ended, and its result can't be read")


def _ended(table: _Table, code: int | None, told: t.Mapping[str, t.Any]) -> Ended:
    result, text = table.get(-1 if code is None else code, ("unknown", f"ended with the result {code}"))
    if result == "failed":
        segment, address = _number(told, _SEGMENTS), _number(told, _ADDRESSES)
        text += f", segment {segment}" if table is not _ATA and code == 0x7 and segment else ""
        text += "" if address is None else f", at LBA {address}"
    return Ended(result, text[:LONGEST])


def _number(told: t.Mapping[str, t.Any], keys: t.Sequence[str]) -> int | None:
    numbers = (nvme_number(_value(told, key)) for key in keys)
    return next((number for number in numbers if number is not None), None)


def _ata(told: t.Mapping[str, t.Any]) -> int | None:
    status = nvme_number(_value(told, "status"))
    return None if status is None else status >> 4


def _value(told: t.Mapping[str, t.Any], key: str) -> t.Any:
    found = told.get(key)
    return found.get("value") if isinstance(found, dict) else found
