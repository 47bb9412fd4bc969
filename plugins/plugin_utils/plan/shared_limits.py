# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many drives of a host can't disturb each other, whichever they are: by what each of them can move at most,
against what they share on their way to the CPU (module_utils/machine/shared_parts.py). Pure.
"""

from __future__ import annotations

import typing as t

from ...module_utils.drive.entry import parse
from ...module_utils.machine import cpus
from ...module_utils.records.found_drives import FoundDrive, SharedPart
from ..common import schema as schemas

# Links of drives that add up to a port's are no overload for the rounding of their rates.
ROUNDING = 1.001


class Limits(t.NamedTuple):
    """sure: so many can't disturb each other; most: more surely do. why: in a sentence, of both."""

    sure: int
    most: int
    why: str


class _Limit(t.NamedTuple):
    """A number and why no more."""

    number: int
    why: str


def of_drives(drives: t.Sequence[FoundDrive]) -> Limits:
    """Return those of the drives of a host."""
    count = len(drives)
    if count < 2:
        return Limits(1, 1, "it is the only drive" if count else "there is no drive")
    users: dict[str, list[tuple[SharedPart, float | None]]] = {}
    for drive in drives:
        for part in drive.shared or ():
            users.setdefault(part.name, []).append((part, drive.link_mb_s))
    most = min([*_exclusive(users), *_of_entries(drives)], default=_Limit(count, ""))
    sure = min([*_unknown(drives), *_of_links(users)], default=_Limit(count, ""))
    if sure.number < most.number:
        return Limits(sure.number, most.number, sure.why)
    return Limits(most.number, most.number, most.why or f"links, adapters and CPUs carry all {count} at full speed")


def _exclusive(users: t.Mapping[str, t.Sequence[tuple[SharedPart, float | None]]]) -> list[_Limit]:
    """Return the parts that only so many drives can use at all."""
    found = []
    for name, using in users.items():
        most = using[0][0].most_drives
        if most and most < len(using):
            found.append(_Limit(most, f"{len(using)} drives share {name}"))
    return found


def _of_entries(drives: t.Sequence[FoundDrive]) -> list[_Limit]:
    """Return one for namespaces of one drive, and one for CPUs given to two drives by hand."""
    found = []
    serials: dict[str, list[str]] = {}
    of_cpus: dict[int, str] = {}
    for drive in drives:
        entry = parse(schemas.plain(drive.selector))
        serial = drive.identity and drive.identity.serial
        if serial:
            serials.setdefault(serial, []).append(entry.label)
        for cpu in cpus.parse(entry.options.cpus or ""):
            other = of_cpus.setdefault(cpu, entry.label)
            if other != entry.label:
                found.append(_Limit(1, f"CPU {cpu} is given to {other} and {entry.label}"))
    return [
        *(_Limit(1, f"{' and '.join(own)} are one drive, {serial}") for serial, own in serials.items() if len(own) > 1),
        *found[:1],
    ]


def _unknown(drives: t.Sequence[FoundDrive]) -> list[_Limit]:
    lacking = [str(drive.drive) for drive in drives if drive.shared is None]
    return [_Limit(1, f"what {lacking[0]} shares with other drives is unknown")] if lacking else []


def _of_links(users: t.Mapping[str, t.Sequence[tuple[SharedPart, float | None]]]) -> list[_Limit]:
    """Return the parts that do not carry what all drives behind them can move, and those of which that is unknown."""
    found = []
    for name, using in users.items():
        part, rates = using[0][0], sorted((rate or 0.0 for _part, rate in using), reverse=True)
        carries_mb_s = part.carries_mb_s
        if len(using) < 2 or part.most_drives:
            continue
        if carries_mb_s is None or not all(rates):
            found.append(_Limit(1, f"{len(using)} drives share {name}, and what it or they can move is unknown"))
        elif sum(rates) > carries_mb_s * ROUNDING:
            fitting = [n for n in range(1, len(rates)) if sum(rates[:n]) <= carries_mb_s * ROUNDING]
            moved = f"{name} carries {carries_mb_s:.0f} MB/s, the {len(using)} drives behind it up to {sum(rates):.0f}"
            found.append(_Limit(max(fitting, default=1), moved))
    return found
