# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host tells of how many of its drives it measures at the same time: whether that can be, and in words. Pure.

told: the `calibration` of results.schema.json. One of an older version lacks confirms, kept and alone.
"""

from __future__ import annotations

import typing as t

from ...module_utils.measure.together import KEPT_SHARE

Mapping = t.Mapping[str, t.Any]


def asked_of(run: Mapping | None, host: str) -> set[str] | None:
    """The drives that a run.json asks of a host; None where nobody knows."""
    if run is None:
        return None
    return {str(entry.get("drive")) for entry in run.get("asked") or [] if entry.get("host") == host}


def problem(told: Mapping, asked: t.Collection[str] | None = None) -> str:
    """Why it can't be true: the number has to follow from the shares. "" where it does. asked: the drives of the host;
    None where nobody knows.
    """
    number, drives, trials = told["parallel_drives"], told["drives"], told["trials"]
    strange = sorted({*drives, *(trial["drive"] for trial in trials)} - {*(drives if asked is None else asked)})
    if strange:
        return f"it names {strange[0]}, which is not a drive of this run"
    if told["kept_share"] != KEPT_SHARE:
        return f"each drive must keep {100 * KEPT_SHARE:g} %, not {100 * told['kept_share']:g} %"
    if number > max(1, len(drives)):
        return f"{number} of {len(drives)} drives cannot run at the same time"
    for trial in trials:
        wrong = _trial_problem(trial, drives)
        if wrong:
            return f"with {trial['number']} together: {wrong}"
    confirmed = [trial["number"] for trial in trials if trial["held"] and trial.get("confirms", True)]
    failed = [trial["number"] for trial in trials if not trial["held"]]
    if number > 1 and number not in confirmed:
        return f"no trial confirmed {number} at a time"
    return f"{number} at a time, although {min(failed)} were too many" if failed and number >= min(failed) else ""


def _trial_problem(trial: Mapping, drives: t.Sequence[str]) -> str:
    share, kept = trial["share"], trial.get("kept")
    if trial["number"] > len(drives):
        return f"there are {len(drives)} drives"
    if trial["held"] != (share is not None and share >= KEPT_SHARE):
        return "pass or fail contradicts the reported share"
    if kept is None:
        return ""
    if trial["held"] and sorted(one["drive"] for one in kept) != sorted(drives):
        return "not every drive was measured"
    shares = [one["share"] for one in kept]
    least = None if not shares or None in shares else min(shares)
    return "" if share is None or share == least else "the lowest share is none of the drives'"


def lines(told: Mapping) -> list[str]:
    """The number and why, then each number that was tried."""
    return [f"{told['parallel_drives']}: {told['why']}", *map(_line, told["trials"])]


def _line(trial: Mapping) -> str:
    how = " beside all neighbours" if trial.get("confirms") else ""
    if trial["share"] is None:
        return f"with {trial['number']} together{how}, {trial['drive']} has too few figures for {trial['cell']}"
    least = f"{trial['drive']} kept {100 * trial['share']:.1f} % in {trial['cell']}"
    return f"with {trial['number']} together{how}, {least}"
