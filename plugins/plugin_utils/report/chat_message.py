# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run's verdicts, and what changed since the run before, as plain text that fits a chat message; or why there is no
run. Pure.
"""

from __future__ import annotations

import re
import typing as t

from ...module_utils.guard.refusals import ALLOW, REFUSALS
from ..run_folder import run_record
from ..validation import printable as texts
from ..verdict import headline
from ..verdict.verdicts import VERDICTS

# Chats cut what is longer than 2,000 characters (the shortest limit of those in use).
MOST = 1800
MOST_NAME, MOST_REASON, MOST_FINDING, MOST_HEADLINE = 60, 160, 300, 600
# Of so few drives each may say all of its reason.
FEW, MOST_REASON_OF_FEW = 4, 300
# What chats and templates read as a mention, a link, markup or an expression; names and reasons come from hosts.
_INERT = str.maketrans(
    {"<": "‹", ">": "›", "@": "(at)", "`": "'", "[": "(", "]": ")", "{": "(", "}": ")", "|": "/", "&": "+"}
)
# Chats make links of bare names of hosts too: of "www.", and of what ends like a domain; our files, of whose endings
# none is one, do not.
_DOMAIN = re.compile(r"(?<=[^\W_])\.(?!(?:yml|jsonl?|html|txt|csv)\b)(?=[^\W\d_]{2})")
# An override of the guard: no chat makes a link of a word in brackets that no address follows.
_CODES = "|".join(code for code, text in REFUSALS.items() if text.overridable == ALLOW)
_TYPED = re.compile(rf"allow: \(({_CODES})\)(?![(:])")

Mapping = t.Mapping[str, t.Any]


def run_message(run: Mapping, judgement: Mapping, before: Mapping | None = None) -> str:
    """Return the message of a run: its verdicts, what changed, and each drive that did not pass, as many as fit; the
    rest is counted.

    run: run.json. judgement: of judge.judge. before: of the run before of that name, {run, drives}, or None.
    """
    drives = judgement["drives"]
    # What a slow host made fail must not take the room of bad drives.
    bad = sorted(
        (drive for drive in drives if drive["verdict"] != "pass"),
        key=lambda drive: (VERDICTS.index(drive["verdict"]), bool(drive.get("host_fault"))),
    )
    head = [f"{inert(run['run']['id'], MOST_NAME)}: {_unlinked(headline.of_run(drives), MOST_HEADLINE)}"]
    changes = _changes(drives, before) if before else ["No earlier run to compare with"]
    told = [f"Judged on {str(last['at'])[:10]} by other criteria than before" for last in run.get("rejudged") or []]
    elsewhere = [inert(where, MOST_NAME) for where in run_record.elsewhere(run)[:1]]
    changes = [f"Measured elsewhere, not by this collection: {where}" for where in elsewhere] + told[-1:] + changes
    most = MOST_REASON_OF_FEW if len(bad) <= FEW else MOST_REASON
    return _fitting(head, changes, [_line(drive, most) for drive in bad])


def of_findings(run_name: str, findings: t.Sequence[str]) -> str:
    """Return the message of a run that preflight refused: its findings, as many as fit; the rest is counted."""
    count = f"{len(findings)} thing{'s' * (len(findings) != 1)}"
    name = inert(run_name, MOST_NAME) or "run"
    lines = [_unlinked(line, MOST_FINDING) for line in findings]
    return _fitting([f"{name}: not started, preflight found {count} to fix"], [], lines)


def inert(value: t.Any, most: int) -> str:
    """One printable line in which a chat finds no mention, link or markup."""
    return texts.line(texts.line(value, most).translate(_INERT).replace("://", ": //"), most)


def _unlinked(value: t.Any, most: int) -> str:
    """Return such a line, in which no name reads as one of a host; what is to be typed stays as it is typed."""
    return _TYPED.sub(r"allow: [\1]", _DOMAIN.sub(". ", inert(value, most)))


def _words(verdict: str) -> str:
    return verdict.replace("_", " ")


def _who(drive: Mapping) -> str:
    return f"{inert(drive['host'], MOST_NAME)} {inert(drive['drive'], MOST_NAME)}"


def _line(drive: Mapping, most: int) -> str:
    reason = _without_names(str(next(iter(drive["reasons"]), "no reason known")), drive)
    return f"{_words(drive['verdict'])}: {_who(drive)}: {_unlinked(reason, most)}"


def _without_names(reason: str, drive: Mapping) -> str:
    """Return a reason without the drive and host that it begins with (judge._why_no_record): the line has them."""
    name, host = drive["drive"], drive["host"]
    said = {
        f"{name} on {host} was left out": "left out",
        f"{name} was refused on {host}": "refused",
        f"the campaign of {name} on {host} was interrupted": "interrupted",
        f"the campaign of {name} on {host} ended with an error": "ended with an error",
    }
    return next((short + reason[len(whole) :] for whole, short in said.items() if reason.startswith(whole)), reason)


def _changes(drives: t.Sequence[Mapping], before: Mapping) -> list[str]:
    was = {(drive["host"], drive["drive"]): drive["verdict"] for drive in before["drives"]}
    here = {(drive["host"], drive["drive"]) for drive in drives}
    lines = [
        f"changed: {_who(drive)}: {_words(was[drive['host'], drive['drive']])} before, {_words(drive['verdict'])} now"
        for drive in drives
        if was.get((drive["host"], drive["drive"]), drive["verdict"]) != drive["verdict"]
    ]
    lines += [
        f"new: {_who(drive)}: {_words(drive['verdict'])}"
        for drive in drives
        if (drive["host"], drive["drive"]) not in was
    ]
    lines += [
        f"gone: {_who(drive)}: {_words(drive['verdict'])} before"
        for drive in before["drives"]
        if (drive["host"], drive["drive"]) not in here
    ]
    return lines or [f"Nothing changed since {inert(before['run']['id'], MOST_NAME)}"]


def _fitting(head: list[str], changes: list[str], bad: list[str]) -> str:
    """Changes may take half of the room; what does not fit is counted."""
    room = MOST - len(head[0]) - 2 * len("\n…and 0000000 more")
    changes = _some(changes, room // 2)
    bad = _some(bad, room - sum(len(line) + 1 for line in changes))
    return "\n".join([*head, *changes, *bad]) + "\n"


def _some(lines: list[str], room: int) -> list[str]:
    kept: list[str] = []
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            return [*kept, f"…and {len(lines) - len(kept)} more"]
        kept.append(line)
    return kept
