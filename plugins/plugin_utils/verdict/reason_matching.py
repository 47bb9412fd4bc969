# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds of what kind a reason is by its words, whatever drives and tests are called. docs/invalid.md has every kind; a
new reason without one fails a test. Pure.
"""

from __future__ import annotations

import re
import typing as t

from ...module_utils.checks.table import CODES
from ...module_utils.guard.refusals import REFUSALS
from .invalid_kinds import INVALID
from .reason_kinds import ANYTHING, ERROR, FURTHER_CODES, NOT_TESTED, ReasonKind

# Behind the words of a kind that is coded.
_CODE = re.compile(r"(?: \S+: )?(?:drive \S+: |the approved plan leaves it out: )?([a-z_]+)(?=[:( ])")
# A test without a record begins so; what follows is as of the drive.
_NOT_MEASURED = "not measured: "
KINDS = (*INVALID, *ERROR, *NOT_TESTED)
_PIECES = [kind.says.split(ANYTHING) for kind in KINDS]


class Found(t.NamedTuple):
    """A kind, and where its words stand in a reason."""

    kind: ReasonKind
    begin: int
    end: int


def without_test(reason: str, tests: t.Container[str]) -> tuple[str, str]:
    """Return which of a drive's tests one of its reasons is about, and what it says; "" for the drive as a whole."""
    test, colon, said = reason.partition(": ")
    return (test, said) if colon and test in tests else ("", reason)


def find(said: str, verdict: str) -> Found | None:
    """Return what kind of reason of a verdict it is; None where no words are known. said: of without_test.

    Of several, the one whose words come first: of a sentence the main cause stands in front.
    """
    start = len(_NOT_MEASURED) if said.startswith(_NOT_MEASURED) else 0
    found = [
        (kind.general, place[0], -len(kind.says), number, place)
        for number, (kind, pieces) in enumerate(zip(KINDS, _PIECES))
        if kind.verdict == verdict and (place := _place(pieces, said, start))
    ]
    if not found:
        return None
    *_order, number, place = min(found)
    return Found(KINDS[number], *place)


def cause_of(said: str, verdict: str) -> str:
    """Return a reason of a verdict in few words; "" where they are not known. said: of without_test."""
    found = find(said, verdict)
    if found is None or not found.kind.coded:
        return found.kind.cause if found else ""
    code = _CODE.match(said, found.end)
    is_known = code and code[1] in {*REFUSALS, *FURTHER_CODES, *CODES}
    return f"{found.kind.cause} ({code[1]})" if code and is_known else found.kind.cause


def _place(pieces: t.Sequence[str], said: str, start: int) -> tuple[int, int] | None:
    """Return where words that begin at `start` stand: from the first piece that is not empty to the last."""
    if not said.startswith(pieces[0], start):
        return None
    begin, at = start, start
    for number, piece in enumerate(pieces):
        found = said.find(piece, at)
        if found < 0:
            return None
        begin = found if number == 1 and not pieces[0] else begin
        at = found + len(piece)
    return begin, at
