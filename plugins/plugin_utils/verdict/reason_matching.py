# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds of what kind a reason is, by its words. docs/invalid.md has every kind; a new reason without one fails a test.
Pure.
"""

from __future__ import annotations

import re
import typing as t

from ...module_utils.checks.table import CODES
from ...module_utils.guard.refusals import REFUSALS
from .invalid_kinds import INVALID
from .reason_kinds import ANYTHING, ERROR, FURTHER_CODES, NOT_TESTED, ReasonKind

_CODE = re.compile(r"[^:]*: (?:drive [^:]*: |the approved plan leaves it out: )?([a-z_]+)(?=[:( ])")
KINDS = (*INVALID, *ERROR, *NOT_TESTED)
_PIECES = [kind.says.split(ANYTHING) for kind in KINDS]


def kind_of(reason: str, verdict: str | None = None) -> ReasonKind | None:
    """Return what kind of reason it is; None where no words are known. verdict: only those of that verdict.

    Of several, the one whose words come first: of a sentence the main cause stands in front.
    """
    found = [
        (kind.general, place, number)
        for number, (kind, pieces) in enumerate(zip(KINDS, _PIECES))
        if verdict in (None, kind.verdict) and (place := _place(pieces, reason)) >= 0
    ]
    return KINDS[min(found)[2]] if found else None


def cause_of(reason: str, verdict: str) -> str:
    """Return a reason of a verdict in few words; "" where they are not known."""
    kind = kind_of(reason, verdict)
    if kind is None or not kind.coded:
        return kind.cause if kind else ""
    code = _CODE.match(reason, reason.find(kind.says))
    is_known = code and code[1] in {*REFUSALS, *FURTHER_CODES, *CODES}
    return f"{kind.cause} ({code[1]})" if code and is_known else kind.cause


def _place(pieces: t.Sequence[str], text: str) -> int:
    """Return where the words begin; -1 where they are not there."""
    first, at = text.find(pieces[0]), 0
    for piece in pieces:
        at = text.find(piece, at)
        if at < 0:
            return -1
        at += len(piece)
    return first
