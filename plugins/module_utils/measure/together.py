# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many drives of a host may be measured at the same time: the same short cells on each drive alone and on several
together, and the largest number at which every drive keeps nearly all of what it does alone. Pure.

Figures are {cell: {drive: [IOPS of each repetition]}}. A number counts as held only if every drive was measured in it.
"""

from __future__ import annotations

import statistics
import typing as t

# What each drive has to keep, in each cell.
KEPT_SHARE = 0.98
# Figures that differ by more than the loss that is looked for can't tell it.
MOST_SPREAD = 1 - KEPT_SHARE
FEWEST_REPEATS = 3
Figures = t.Mapping[str, t.Mapping[str, t.Sequence[float]]]
# By number of drives: the figures of each of its groups (`groups`).
Trials = t.Mapping[int, t.Sequence[Figures]]


def groups(drives: t.Sequence[str], number: int) -> list[list[str]]:
    """Which drives to measure together for a number: each with those that follow it in the plan, the first after the
    last. Drives run in this order, and behind one port they are mostly neighbours.
    """
    starts = range(len(drives)) if number < len(drives) else range(1)
    return [[drives[(start + place) % len(drives)] for place in range(min(number, len(drives)))] for start in starts]


def next_number(drives: t.Sequence[str], alone: Figures, trials: Trials) -> int | None:
    """The number to try next: all drives, then halfway between what held and what did not; None once it is decided."""
    if len(drives) < 2 or _unsteady(drives, alone):
        return None
    held, lost = _bounds(drives, alone, trials)
    if lost is None:
        return None if held == len(drives) else len(drives)
    return (held + lost) // 2 if lost - held > 1 else None


def decide(drives: t.Sequence[str], alone: Figures, trials: Trials) -> dict[str, t.Any]:
    """What is recorded: {parallel_drives, kept_share, why, trials: [{number, held, cell, drive, share}]}.

    Of each number that was tried the drive and cell that kept least; share is None where one of them is lacking.
    Without figures to compare with there are no trials.
    """
    number, unsteady = 1, _unsteady(drives, alone)
    if len(drives) < 2:
        why = "it is the only drive"
    elif unsteady:
        why = f"{unsteady}, so a loss of {100 * MOST_SPREAD:.0f} % can't be told"
    else:
        number, lost = _bounds(drives, alone, trials)
        why = "all drives together keep their speed" if number == len(drives) else "no larger number was measured"
        why = _lost_text(lost, _worst(drives, alone, trials[lost])) if lost else why
    told = []
    for tried in sorted(trials) if not unsteady else ():
        share, cell, drive = _worst(drives, alone, trials[tried])
        held = share is not None and share >= KEPT_SHARE
        told.append({"number": tried, "held": held, "cell": cell, "drive": drive, "share": share})
    return {"parallel_drives": number, "kept_share": KEPT_SHARE, "why": why, "trials": told}


def _bounds(drives: t.Sequence[str], alone: Figures, trials: Trials) -> tuple[int, int | None]:
    """The largest number that held below the smallest that did not, and that one; None: none failed."""
    shares = {number: _worst(drives, alone, trial)[0] for number, trial in trials.items()}
    failed = [number for number, share in shares.items() if share is None or share < KEPT_SHARE]
    lost = min(failed, default=None)
    held = [number for number in shares if number not in failed and (lost is None or number < lost)]
    return max([1, *held]), lost


def _worst(drives: t.Sequence[str], alone: Figures, trial: t.Sequence[Figures]) -> tuple[float | None, str, str]:
    """(share, cell, drive) of what kept least in a trial; a share of None where a drive was not measured in it."""
    found: list[tuple[float, str, str]] = []
    for cell, of_drives in alone.items():
        for drive in drives:
            seen = [part[cell][drive] for part in trial if drive in part.get(cell, {})]
            if not seen or any(len(values) < FEWEST_REPEATS for values in seen):
                return None, cell, drive
            share = min(statistics.median(values) for values in seen) / statistics.median(of_drives[drive])
            found.append((share, cell, drive))
    return min(found)


def _unsteady(drives: t.Sequence[str], alone: Figures) -> str:
    """Which drive's own figures differ too much to be compared with, or are lacking; "": none."""
    if not alone:
        return "nothing was measured alone"
    for cell, of_drives in alone.items():
        for drive in drives:
            values = of_drives.get(drive, ())
            if len(values) < FEWEST_REPEATS or min(values) <= 0:
                return f"{drive} has too few figures of {cell} alone"
            spread = (max(values) - min(values)) / statistics.median(values)
            if spread > MOST_SPREAD:
                return f"{drive} alone differs by {100 * spread:.1f} % in {cell}"
    return ""


def _lost_text(number: int, worst: tuple[float | None, str, str]) -> str:
    share, cell, drive = worst
    if share is None:
        return f"of {number} together {drive} has too few figures of {cell}"
    return f"of {number} together {drive} keeps {100 * share:.1f} % in {cell}"
