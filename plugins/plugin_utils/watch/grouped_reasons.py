# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reasons of many drives, each told once: those of one kind (reason_matching.py), and those that differ in numbers and
names alone, are one. Pure.
"""

from __future__ import annotations

import re
import typing as t

from ..verdict import reason_matching
from ..verdict.reason_kinds import ANYTHING

DEVICE = re.compile(r"/dev/[^\s;,)]+")
# Not those in names, such as rand-4k-w100.
NUMBER = re.compile(r"(?<![\w.,:/-])\d+(?:[.,:]\d+)*(?![\w/-])")


class DriveReasons(t.NamedTuple):
    """Why one drive got its result, in sentences. verdict: "" for an outcome that nobody has judged."""

    host: str
    drive: str
    reasons: t.Sequence[str]
    verdict: str = ""


class Grouped(t.NamedTuple):
    """own: {(host, drive): its reasons}, shared ones as a cause and a number; shared: lines that tell these."""

    own: t.Mapping[tuple[str, str], list[str]]
    shared: list[str]


def grouped(drives: t.Sequence[DriveReasons]) -> Grouped:
    """Return every reason once. A shared one is told as the first of its drives has it."""
    of_drives = {(one.host, one.drive): _by_kind(one) for one in drives}
    kinds: dict[str, list[str]] = {}
    for reasons in of_drives.values():
        for kind, reason in reasons.items():
            kinds.setdefault(kind, []).append(reason)
    shared = [kind for kind, reasons in kinds.items() if len(reasons) > 1]
    marks = {kind: f"[{number}]" for number, kind in enumerate(shared, start=1)}
    own = {
        (one.host, one.drive): [
            _marked(reason, one.verdict, marks[kind]) if kind in marks else reason
            for kind, reason in of_drives[one.host, one.drive].items()
        ]
        for one in drives
    }
    return Grouped(own, [_line(marks[kind], kinds[kind]) for kind in shared])


def _by_kind(one: DriveReasons) -> dict[str, str]:
    """Return a drive's reasons; of one kind, each but the first is a kind of its own."""
    found: dict[str, str] = {}
    for reason in one.reasons:
        kind = _kind(reason, one)
        found.setdefault(kind if kind not in found else reason, reason)
    return found


def _line(mark: str, reasons: t.Sequence[str]) -> str:
    """Return `[1] 6 drives, the first: …`."""
    differs = ", the first" if len(set(reasons)) > 1 else ""
    return f"{mark} {len(reasons)} drives{differs}: {reasons[0]}"


def _marked(reason: str, verdict: str, mark: str) -> str:
    """Return a shared reason's cause, where it is known, and its number."""
    return " ".join(filter(None, (reason_matching.cause_of(reason, verdict), mark)))


def _kind(reason: str, one: DriveReasons) -> str:
    """Return a reason without what differs between drives."""
    known = reason_matching.kind_of(reason, one.verdict)
    if known and not (known.general or known.coded):
        # What stands before says of which test and metric it is.
        reason = reason[: reason.index(known.says.partition(ANYTHING)[0])] + known.says
    for name in sorted(filter(None, (one.host, one.drive)), key=len, reverse=True):
        reason = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "@", reason)
    return NUMBER.sub("#", DEVICE.sub("@", reason))
