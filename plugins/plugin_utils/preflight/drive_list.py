# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The drives of a fleet as an inventory to copy from: those that may be erased as entries, all others as comments."""

from __future__ import annotations

import re
import textwrap
import typing as t

from ...module_utils.drive.entry import SELECTOR_KEYS
from ...module_utils.records import base
from ...module_utils.records.found_drives import FoundDrive
from ...module_utils.records.identity import Identity
from ..common import units
from ..common.argument_specs import Variables
from ..common.schema import plain
from .findings import named_once

_HEAD = (
    "The drives of the fleet, to copy into an inventory. Keep only those to erase and qualify.",
    "A drive that may not be erased is a comment with the reasons.",
    "Uncomment a used drive if nobody needs what it holds.",
)
_ENTRY_INDENT = " " * 8
_WIDTH = 120
# No host's drives push those of others out of the output.
MOST_DRIVES, MOST_REASONS = 200, 20
# For each inventory name what drive_facts returned, as the task registered it: of a host that failed, anything.
Answers = Variables
# The key of a selector and its value, as a host told them: they need not be what an entry takes.
Named = tuple[str, str]
# What makes a text of an inventory a template.
_TEMPLATE = ("{{", "{%", "{#")
# A YAML 1.1 reader takes some plain words for booleans or null, and anything like a number for one.
_PLAIN_NAME = re.compile(r"(?!(?:yes|no|on|off|true|false|null|y|n)$)[A-Za-z][A-Za-z0-9_.-]*", re.IGNORECASE)


def render(answers: Answers, group: str = "ssd_servers") -> str:
    """Return the inventory as YAML; a host without `drives` gave no answer."""
    lines = [*_comments("", _HEAD), f"{_name(group)}:", "  hosts:"]
    for host, answer in answers.items():
        lines += _host(host, answer)
    return "\n".join(lines) + "\n"


def failures(answers: Answers) -> dict[str, str]:
    """Return the hosts that gave no answer, with what they said instead."""
    return {host: _message(answer) for host, answer in answers.items() if _drives(answer) is None}


def _host(host: str, answer: t.Any) -> list[str]:
    drives = _drives(answer)
    lines = [f"    {_name(host)}:"]
    if drives is None:
        return [*lines, *_comments("      ", [f"no answer: {_message(answer)}"]), "      ssd_drives: []"]
    chosen: list[str] = []
    rest: list[str] = []
    for drive in map(_parsed, drives[:MOST_DRIVES]):
        if drive is None:
            rest += _comments(_ENTRY_INDENT, ["not eligible: what the host says of this drive cannot be read"])
            continue
        named = _named(drive)
        if named and drive.eligible and not _is_template(named):
            chosen.append(f"{_ENTRY_INDENT}{_entry(named)}  # {_about(drive)}")
        elif named and drive.may_retire and not _is_template(named):
            rest += _retired(drive, named)
        else:
            rest += _comments(_ENTRY_INDENT, [f"not eligible: {_about(drive)}", *_reasons(drive, named)])
    lines += ["      ssd_drives:" if chosen else "      ssd_drives: []", *chosen, *rest]
    if len(drives) > MOST_DRIVES:
        lines += _comments(_ENTRY_INDENT, [f"and {len(drives) - MOST_DRIVES} more drives, which are not shown"])
    if not drives:
        lines += _comments(_ENTRY_INDENT, ["no drive found"])
    return lines


def _retired(drive: FoundDrive, named: Named) -> list[str]:
    """Return a used drive as an entry that only has to be uncommented, with what that would give up."""
    hours = "" if drive.power_on_hours is None else f", in use for {drive.power_on_hours:,} h"
    lines = [f"{_ENTRY_INDENT}# {_entry(named)}  # used: {_about(drive)}{hours}"]
    value = "true" if drive.may_retire == "true" else f'"{_one_line(str(drive.may_retire))}"'
    lines.append(f"{_ENTRY_INDENT}#   retired: {value}")
    held = (drive.holds or [])[:MOST_REASONS]
    told = [f"holds {text}" for text in held] or [
        f"{one.code}: {named_once(one, named[1])[1]}" for one in drive.refusals
    ]
    return [*lines, *(line for text in told for line in _comments(_ENTRY_INDENT + "#   ", [text]))]


def _named(drive: FoundDrive) -> Named | None:
    """Return what its selector names it by: a host may answer what it likes, and must not end the list of the
    others.
    """
    selector = drive.selector
    if not isinstance(selector, t.Mapping):
        return None
    key = next((key for key in SELECTOR_KEYS if key in selector), "")
    return (key, selector[key]) if key and isinstance(selector[key], str) else None


def _is_template(named: Named) -> bool:
    """Ansible would run what a drive's name says, at the next play with this inventory. No real drive
    has such a name.
    """
    return any(mark in named[1] for mark in _TEMPLATE)


def _drives(answer: t.Any) -> list[t.Any] | None:
    """Return the drives of an answer; None where there is none."""
    drives = answer.get("drives") if isinstance(answer, t.Mapping) else None
    return drives if isinstance(drives, list) else None


def _parsed(told: t.Any) -> FoundDrive | None:
    """Return a drive of an answer; None where it is none."""
    try:
        return base.parse(FoundDrive, plain(told))
    except base.WrongShape:
        return None


def _message(answer: t.Any) -> str:
    if not isinstance(answer, t.Mapping):
        return "nothing"
    said = [str(answer.get("msg") or "nothing"), *str(answer.get("module_stderr") or "").splitlines()[:1]]
    return "; ".join(said)


def _entry(named: Named) -> str:
    """`- serial: "0123"`: always in quotes."""
    key, value = named
    return f"- {key}: {_quoted(value)}"


def _about(drive: FoundDrive) -> str:
    identity = drive.identity or Identity()
    size = units.data_size(identity.size_bytes) if identity.size_bytes else None
    return _one_line(", ".join(part for part in (identity.model, size, identity.transport, drive.path) if part))


def _reasons(drive: FoundDrive, named: Named | None) -> list[str]:
    lines = [_entry(named)] if named else []
    lines += (
        ["  its name holds an Ansible template ({{, {% or {#): check the drive, and who runs this host"]
        if named and _is_template(named)
        else []
    )
    refusals = drive.refusals
    name = named[1].strip() if named else str(drive.path)
    told = [f"  {refusal.code}: {named_once(refusal, name)[1]}" for refusal in refusals[:MOST_REASONS]]
    more = [f"  and {len(refusals) - MOST_REASONS} more reasons"] if len(refusals) > MOST_REASONS else []
    return lines + told + more


def _comments(indent: str, texts: t.Iterable[str]) -> list[str]:
    lines = []
    for text in texts:
        body = _one_line(text)
        lead = body[: len(body) - len(body.lstrip())]
        first, next_ones = f"{indent}# ", f"{indent}# {lead}  "
        lines += textwrap.wrap(
            body,
            _WIDTH,
            initial_indent=first,
            subsequent_indent=next_ones,
            break_long_words=False,
            break_on_hyphens=False,
        )
    return lines


def _one_line(text: str) -> str:
    """No drive's text may end a comment and so become an entry: YAML breaks lines at more than a line feed."""
    shown = "".join(letter if letter.isprintable() else " " for letter in text)
    for mark in _TEMPLATE:
        shown = shown.replace(mark, " ".join(mark))
    return shown


def _name(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else _quoted(name)


def _quoted(text: str) -> str:
    """Return a double-quoted YAML text; JSON's would not do, since it writes rare letters as surrogate pairs."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(letter if letter.isprintable() else f"\\U{ord(letter):08x}" for letter in escaped) + '"'
