# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many drives of a host may be measured at the same time: the same short cells on each drive alone and on several
together, and the largest number at which every drive keeps nearly all of what it does alone. Pure.

First a bisection, in which each drive is measured once for a number. Then what it found is confirmed, with each drive
beside all of its neighbours in the plan. Figures are {cell: {drive: [IOPS of each repetition]}}.
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
# Each measures every drive as often as drives run at once; a host where more fail gets no larger number for it.
MOST_CONFIRMED = 3
Figures = t.Mapping[str, t.Mapping[str, t.Sequence[float]]]


class Trial(t.NamedTuple):
    """A number that was tried. parts: the figures of its groups (`groups`) in order, up to the first that lost."""

    number: int
    confirms: bool
    parts: t.Sequence[Figures]


def groups(drives: t.Sequence[str], number: int, confirms: bool) -> list[list[str]]:
    """Return which drives to measure together for a number, each with those that follow it in the plan, the first after
    the last: drives run in this order, and behind one port they are mostly neighbours. To confirm, from each drive on.
    """
    count = len(drives)
    if number >= count:
        return [list(drives)]
    starts = range(0, count, 1 if confirms else number)
    return [[drives[(start + place) % count] for place in range(number)] for start in starts]


def is_rate_kept(alone: Figures, part: Figures) -> bool:
    """Return whether each drive of a group kept enough; a trial is over with the first that did not."""
    return all(share is not None and share >= KEPT_SHARE for share, _cell, _drive in _shares(alone, part))


def next_trial(drives: t.Sequence[str], alone: Figures, trials: t.Sequence[Trial]) -> tuple[int, bool] | None:
    """(the number to try next, whether to confirm it); None once it is decided."""
    if len(drives) < 2 or _unsteady(drives, alone):
        return None
    seen = _Kept(alone, trials)
    if seen.lost is None and not trials:
        return len(drives), False
    if seen.refuted:
        # Which neighbours a drive has counts here, so only what is confirmed tells.
        more = seen.lost - seen.confirmed > 1 and seen.confirmations < MOST_CONFIRMED
        return ((seen.confirmed + seen.lost) // 2, True) if more else None
    if seen.lost is not None and seen.lost - seen.held > 1:
        return (seen.held + seen.lost) // 2, False
    return (seen.held, True) if seen.held > max(1, seen.confirmed) else None


def most_groups(count: int) -> int:
    """In how many groups at most a host with so many drives is measured, those of each drive alone included."""
    if count < 2:
        return 0
    whole = 1 + _most_confirming(count, count, 1, count + 1, MOST_CONFIRMED)
    return count + max(whole, 1 + _most_halving(count, 1, count))


def _most_halving(count: int, held: int, lost: int) -> int:
    if lost - held <= 1:
        return _most_confirming(count, held, 1, lost, MOST_CONFIRMED) if held > 1 else 0
    middle = (held + lost) // 2
    return -(-count // middle) + max(_most_halving(count, middle, lost), _most_halving(count, held, middle))


def _most_confirming(count: int, number: int, confirmed: int, lost: int, left: int) -> int:
    mine = 1 if number >= count else count
    further = [(confirmed, number)] + ([(number, lost)] if left < MOST_CONFIRMED else [])
    return mine + max(
        _most_confirming(count, (low + high) // 2, low, high, left - 1) if high - low > 1 and left > 1 else 0
        for low, high in further
    )


def group_s(asked: ReadTogether) -> float:
    """Return how long the cells of one group take."""
    return asked.repeats * sum(cell_s(cell) + CELL_OVERHEAD_S for cell in asked.cells)


def decide(drives: t.Sequence[str], alone: Figures, trials: t.Sequence[Trial]) -> Calibration:
    """Return what is recorded, but for the cells that were read and how long it took.

    Without figures to compare with there are no trials.
    """
    number, unsteady = 1, _unsteady(drives, alone)
    seen = _Kept(alone, [] if unsteady else trials)
    if len(drives) < 2:
        why = "it is the only drive"
    elif unsteady:
        why = f"{unsteady}, so a loss of {100 * MOST_SPREAD:.0f} % can't be detected"
    else:
        number = seen.confirmed
        why = _lost_text(seen.worst(seen.lost), seen.lost) if seen.lost else "no larger number was measured"
        why = "all drives together keep their speed" if number == len(drives) else why
    return Calibration(
        parallel_drives=number,
        kept_share=KEPT_SHARE,
        why=why,
        trials=[] if unsteady else [_told(alone, trial) for trial in trials],
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


class _Kept:
    """What trials tell. held: the largest number that did below `lost`, the smallest that did not (None: none);
    confirmed: the same of what was confirmed. refuted: a confirmation failed.
    """

    def __init__(self, alone: Figures, trials: t.Sequence[Trial]) -> None:
        self._worst = {(trial.number, trial.confirms): _worst(alone, trial) for trial in trials}
        failed = [key for key, (share, _cell, _drive) in self._worst.items() if share is None or share < KEPT_SHARE]
        self.lost: t.Any = min((number for number, _confirms in failed), default=None)
        below = [key for key in self._worst if key not in failed and (self.lost is None or key[0] < self.lost)]
        self.held = max([1, *(number for number, _confirms in below)])
        self.confirmed = max([1, *(number for number, confirms in below if confirms)])
        self.refuted = any(confirms for _number, confirms in failed)
        self.confirmations = sum(confirms for _number, confirms in self._worst)

    def worst(self, number: int) -> tuple[float | None, str, str]:
        """Of a number that failed: what kept least."""
        return min(
            (worst for key, worst in self._worst.items() if key[0] == number),
            key=lambda worst: -1.0 if worst[0] is None else worst[0],
        )


def _told(alone: Figures, trial: Trial) -> measurement.Trial:
    share, cell, drive = _worst(alone, trial)
    kept: dict[str, float | None] = {}
    for part in trial.parts:
        for one, _cell, of in _shares(alone, part):
            least = kept.get(of, one)
            kept[of] = None if one is None or least is None else min(least, one)
    held = share is not None and share >= KEPT_SHARE
    shares = [Kept(of, one) for of, one in kept.items()]
    return measurement.Trial(trial.number, held, cell, drive, share, trial.confirms, shares)


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
    """[(share, cell, drive)] of a group; None where figures are lacking."""
    names = dict.fromkeys(drive for of_drives in part.values() for drive in of_drives)
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
