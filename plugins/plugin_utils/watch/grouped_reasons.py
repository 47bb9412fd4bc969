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

DEVICE = re.compile(r"/dev/[^\s;,)]+")
# Not those in names, such as rand-4k-w100.
NUMBER = re.compile(r"(?<![\w.,:/-])\d+(?:[.,:]\d+)*(?![\w/-])")


class DriveReasons(t.NamedTuple):
    """Why one drive got its result, in sentences. verdict: "" for an outcome that nobody has judged; tests: names."""

    host: str
    drive: str
    reasons: t.Sequence[str]
    verdict: str = ""
    tests: t.Collection[str] = ()


class Grouped(t.NamedTuple):
    """own: {(host, drive): its reasons}, shared ones as a cause and a number; shared: lines that tell these."""

    own: t.Mapping[tuple[str, str], list[str]]
    shared: list[str]


def grouped(drives: t.Sequence[DriveReasons]) -> Grouped:
    """Return every reason once. A shared one is told as the first of its drives has it."""
    of_drives = {(one.host, one.drive): _by_kind(one) for one in drives}
    kinds: dict[str, list[tuple[DriveReasons, str]]] = {}
    for one in drives:
        for kind, reason in of_drives[one.host, one.drive].items():
            kinds.setdefault(kind, []).append((one, reason))
    shared = [kind for kind, told in kinds.items() if len(told) > 1]
    marks = {kind: f"[{number}]" for number, kind in enumerate(shared, start=1)}
    own = {
        (one.host, one.drive): [
            _marked(reason, one, marks[kind]) if kind in marks else reason
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


def _line(mark: str, told: t.Sequence[tuple[DriveReasons, str]]) -> str:
    """Return `[1] 6 drives, the first is S1 on h1: …`."""
    one, reason = told[0]
    named = "" if reason.startswith(f"{one.drive} on {one.host} ") else f" is {one.drive} on {one.host}"
    differs = f", the first{named}" if any(other != reason for _one, other in told) else ""
    return f"{mark} {len(told)} drives{differs}: {reason}"


def _marked(reason: str, one: DriveReasons, mark: str) -> str:
    """Return a shared reason's cause, where it is known, and its number."""
    _test, said = reason_matching.without_test(reason, one.tests)
    return " ".join(filter(None, (reason_matching.cause_of(said, one.verdict), mark)))


def _kind(reason: str, one: DriveReasons) -> str:
    """Return a reason without what differs between drives."""
    test, said = reason_matching.without_test(reason, one.tests)
    found, words = reason_matching.find(said, one.verdict), ""
    if found and not (found.kind.general or found.kind.coded):
        # What stands before says of which metric it is.
        said, words = said[: found.begin], found.kind.says
    for name in sorted(filter(None, (one.host, one.drive)), key=len, reverse=True):
        said = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "@", said)
    return f"{test}: {NUMBER.sub('#', DEVICE.sub('@', said))}{words}"
