# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The load of a cell that follows a sweep (`point`), by the run's own rule and what the journal has of the sweep: no
host chooses it. Pure.
"""

from __future__ import annotations

import typing as t

from ...module_utils.measure import load
from ..common import cellnames
from . import asked_cells

# Of a cell, what a rule goes by.
FIGURES = ("iops", "mean_latency_us")

Mapping = t.Mapping[str, t.Any]
# Shared by the attempts of a host's journals: (run id, drive, test) -> [{cell, metrics}] of its newest end that counts.
Sweeps = dict[tuple[str, str, str], list[dict[str, t.Any]]]
# What is known of a test on a drive: asked_cells.on_drive; {} of one that the run does not tell of.
AboutOf = t.Callable[[str], Mapping]


class Points:
    """The points of one attempt, and what it gives those of others. of: (run id, drive, test). rules: of its cells, by
    id (run.json); a run before they were kept has none. about_of: a test of the run on this drive.
    """

    def __init__(self, of: tuple[str, str, str], rules: Mapping, about_of: AboutOf, sweeps: Sweeps) -> None:
        self._of, self._rules, self._about_of, self._sweeps = of, rules, about_of, sweeps

    def keep(self, told: t.Sequence[Mapping], own: t.Mapping[str, Mapping]) -> None:
        """What this attempt gave: what its end tells, as the host went by that, and `own` where it tells nothing."""
        metrics = {name: dict(figures) for name, figures in own.items()}
        for item in told:
            known = {name: value for name, value in item["metrics"].items() if name in FIGURES and value is not None}
            metrics.setdefault(item["cell"], {}).update(known)
        self._sweeps[self._of] = [{"cell": name, "metrics": figures} for name, figures in metrics.items()]

    def problem(self, name: str, told: Mapping) -> str:
        """Why a cell can't have the load that its journal tells, as the end of a sentence; "" where it may."""
        rule = self._rules.get(name)
        if rule is None:
            return ""
        cells = _cells(self._about_of(rule["test"]))
        if not cells:
            return ""
        averages = self._sweeps.get((*self._of[:2], rule["test"]))
        if averages is None:
            return f"its journal has no result of {rule['test']} before it, which its load follows"
        right = load.chosen(rule, cells, averages)
        return "" if told == right else f"its journal has the load {dict(told)}; by {rule['test']} it is {right}"


def _cells(about: Mapping) -> list[dict[str, t.Any]]:
    """The cells of a sweep as `load.chosen` takes them, by their names; none where one does not tell its load."""
    leads = about.get("leads") or ()
    cells = [
        {"id": name, "threads": told.get("threads"), "queue_depth": told.get("queue_depth")}
        for name in asked_cells.expected(about)
        if name not in leads
        for told in [cellnames.told(name)]
    ]
    return cells if all(cell["threads"] for cell in cells) else []
