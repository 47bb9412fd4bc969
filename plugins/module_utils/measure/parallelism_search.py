# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many drives of a host may be measured at the same time, where what they share does not tell: the same short
cells on some drives alone and on these beside their neighbours, and the largest number tried at which each of them
keeps nearly all of what it does alone. Pure.

Figures are {cell: {drive: [IOPS of each repetition]}}.
"""

from __future__ import annotations

import statistics
import typing as t

from ..records import measurement
from ..records.measurement import Alone, Calibration, Kept
from ..records.plan import ReadTogether
from .rounds import CELL_OVERHEAD_S, cell_s

# What each drive has to keep, in each cell.
KEPT_SHARE = 0.98
# Figures that differ by more than the loss that is looked for can't tell it.
MOST_SPREAD = 1 - KEPT_SHARE
FEWEST_REPEATS = 3
Figures = t.Mapping[str, t.Mapping[str, t.Sequence[float]]]


class Trial(t.NamedTuple):
    """A number that was tried. parts: the figures of its groups (`groups`) in order, up to the first that lost."""

    number: int
    parts: t.Sequence[Figures]


def numbers(most: int, sure: int) -> list[int]:
    """Return which numbers to try, in order: the most that there may be, then halves of it above what is sure."""
    found = []
    while most > sure:
        found.append(most)
        most //= 2
    return found


def groups(drives: t.Sequence[str], number: int, alone: t.Sequence[str]) -> list[list[str]]:
    """Return which drives to measure together for a number: each of those that were measured alone in the middle of
    its neighbours in the plan, the first after the last. Drives run in this order, and behind one port they are mostly
    neighbours.
    """
    count = len(drives)
    found: list[list[str]] = []
    if number >= count:
        return [list(drives)]
    for drive in alone:
        if not any(drive in group for group in found):
            start = drives.index(drive) - number // 2
            found.append([drives[(start + place) % count] for place in range(number)])
    return found


def is_rate_kept(alone: Figures, part: Figures) -> bool:
    """Return whether each drive of a group kept enough; a trial is over with the first that did not."""
    return all(share is not None and share >= KEPT_SHARE for share, _cell, _drive in _shares(alone, part))


def next_number(asked: ReadTogether, alone: Figures, trials: t.Sequence[Trial]) -> int | None:
    """Return the number to try next; None once it is decided."""
    if _unsteady(asked.alone, alone) or any(_is_held(alone, trial) for trial in trials):
        return None
    return next(iter(asked.numbers[len(trials) :]), None)


def most_groups(asked: ReadTogether, count: int) -> int:
    """In how many groups at most a host with so many drives is measured, those of drives alone included."""
    each = len(asked.alone)
    return each + sum(1 if number >= count else each for number in asked.numbers)


def group_s(asked: ReadTogether) -> float:
    """Return how long the cells of one group take."""
    return asked.repeats * sum(cell_s(cell) + CELL_OVERHEAD_S for cell in asked.cells)


def decide(drives: t.Sequence[str], asked: ReadTogether, alone: Figures, trials: t.Sequence[Trial]) -> Calibration:
    """Return what is recorded, but for the cells that were read and how long it took."""
    unsteady = _unsteady(asked.alone, alone)
    counted: t.Sequence[Trial] = [] if unsteady else trials
    held = next((trial.number for trial in counted if _is_held(alone, trial)), None)
    if unsteady:
        why = f"{unsteady}, so a loss of {100 * MOST_SPREAD:.0f} % can't be detected"
    elif held == len(drives):
        why = "all drives together keep their speed"
    else:
        lost = [trial for trial in counted if trial.number != held]
        why = _lost_text(_worst(alone, lost[-1]), lost[-1].number) if lost else f"{held} together keep their speed"
    return Calibration(
        parallel_drives=held or asked.otherwise,
        kept_share=KEPT_SHARE,
        why=why,
        trials=[_told(alone, trial) for trial in counted],
        drives=list(drives),
        cells=[],
        seconds=0,
        alone=[
            Alone(drive, cell, round(statistics.median(values), 1))
            for cell, of_drives in alone.items()
            for drive, values in of_drives.items()
            if values
        ],
    )


def _is_held(alone: Figures, trial: Trial) -> bool:
    share = _worst(alone, trial)[0]
    return share is not None and share >= KEPT_SHARE


def _told(alone: Figures, trial: Trial) -> measurement.Trial:
    share, cell, drive = _worst(alone, trial)
    kept: dict[str, float | None] = {}
    for part in trial.parts:
        for one, _cell, of in _shares(alone, part):
            least = kept.get(of, one)
            kept[of] = None if one is None or least is None else min(least, one)
    shares = [Kept(of, one) for of, one in kept.items()]
    return measurement.Trial(trial.number, _is_held(alone, trial), cell, drive, share, shares)


def _worst(alone: Figures, trial: Trial) -> tuple[float | None, str, str]:
    """(share, cell, drive) of what kept least in a trial; a share of None where a drive was not measured in it."""
    found = [shares for part in trial.parts for shares in _shares(alone, part)]
    lacking = next((shares for shares in found if shares[0] is None), None)
    if lacking:
        return lacking
    lost = any(share < KEPT_SHARE for share, _cell, _drive in found if share is not None)
    for cell, of_drives in alone.items():
        for drive in of_drives if not lost else ():
            if (cell, drive) not in {shares[1:] for shares in found}:
                return None, cell, drive
    return min(found, key=lambda shares: (shares[0] or 0.0, *shares[1:]))


def _shares(alone: Figures, part: Figures) -> list[tuple[float | None, str, str]]:
    """[(share, cell, drive)] of those of a group that were measured alone; None where figures are lacking."""
    names = dict.fromkeys(drive for of_drives in part.values() for drive in of_drives)
    measured = {drive for of_drives in alone.values() for drive in of_drives}
    names = {drive: None for drive in names if drive in measured}
    found: list[tuple[float | None, str, str]] = []
    for cell, of_drives in alone.items():
        for drive in names:
            own, seen = of_drives.get(drive, ()), part.get(cell, {}).get(drive, ())
            enough = min(len(own), len(seen)) >= FEWEST_REPEATS
            found.append((statistics.median(seen) / statistics.median(own) if enough else None, cell, drive))
    return found


def _unsteady(drives: t.Sequence[str], alone: Figures) -> str:
    """Return which drive's own figures differ too much to be compared with, or are lacking; "": none."""
    if not alone:
        return "nothing was measured alone"
    for cell, of_drives in alone.items():
        for drive in drives:
            values = of_drives.get(drive, ())
            if len(values) < FEWEST_REPEATS or min(values) <= 0:
                return f"{drive} has too few figures for {cell} alone"
            spread = (max(values) - min(values)) / statistics.median(values)
            if spread > MOST_SPREAD:
                return f"{drive} alone differs by {100 * spread:.1f} % in {cell}"
    return ""


def _lost_text(worst: tuple[float | None, str, str], number: int) -> str:
    share, cell, drive = worst
    if share is None:
        return f"with {number} together, {drive} has too few figures for {cell}"
    return f"with {number} together, {drive} keeps {100 * share:.1f} % in {cell}"
