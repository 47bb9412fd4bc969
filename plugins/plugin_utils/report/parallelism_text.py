# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Show how a host found how many of its drives it measures at the same time. Pure."""

from __future__ import annotations

import typing as t

Mapping = t.Mapping[str, t.Any]


def lines(told: Mapping) -> list[str]:
    """Return the number and why, then each number that was tried. told: the event `calibration`."""
    return [f"{told['parallel_drives']}: {told['why']}", *map(_line, told["trials"])]


def _line(trial: Mapping) -> str:
    how = " beside all neighbours" if trial.get("confirms") else ""
    if trial["share"] is None:
        return f"with {trial['number']} together{how}, {trial['drive']} has too few figures for {trial['cell']}"
    least = f"{trial['drive']} kept {100 * trial['share']:.1f} % in {trial['cell']}"
    return f"with {trial['number']} together{how}, {least}"
