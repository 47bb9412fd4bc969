# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a witness sees of one cell: its looks right before and right after fio, and fio's gaps meanwhile."""

from __future__ import annotations

import typing as t
from dataclasses import replace
from types import MappingProxyType

from ..core.host import Host
from ..records.measurement import Seen
from ..records.planned_cell import PlannedCell
from . import hidden_variation, io_pattern, kernel_counters
from .fio_result import FioResult
from .rounds import cell_s
from .submissions import Monitor, Submissions


class CellWatch:
    """A witness's looks right before fio starts and right after it ended. monitor: of fio's gaps. members: of
    the drives of an array, by kernel name.
    """

    def __init__(
        self,
        host: Host,
        eyes: kernel_counters.Witness,
        monitor: Monitor,
        members: t.Mapping[str, kernel_counters.Witness] = MappingProxyType({}),
    ) -> None:
        self._host = host
        self._eyes = eyes
        self._monitor = monitor
        self._submissions = Submissions()
        self._members = members
        self._counts: list[dict[str, list[int] | None]] = []
        self._samples: list[hidden_variation.CounterSample] = []
        self._before: kernel_counters.CounterSnapshot | None = None
        self.after: kernel_counters.CounterSnapshot | None = None
        self._process: dict[str, int] | None = None

    def begin(self) -> None:
        """To be called last before fio."""
        self._monitor.begin()
        self._samples = []
        self._counts = [{name: member.stat() for name, member in self._members.items()}]
        self._before = self._eyes.look()

    def started(self, pid: int) -> None:
        """To be called once fio has started."""
        self._monitor.watch(pid)

    def sample(self) -> None:
        """To be called every STEP_S while fio runs."""
        sample = self._eyes.sample()
        self._samples += [sample] if sample else []

    def end(self, pid: int) -> None:
        """To be called once fio has ended and before it is reaped."""
        self.after = self._eyes.look()
        self._counts.append({name: member.stat() for name, member in self._members.items()})
        self._process = kernel_counters.process_bytes(self._host, pid)
        self._submissions = self._monitor.end()

    def seen(
        self,
        cell: PlannedCell,
        result: FioResult,
        last: kernel_counters.CounterSnapshot | None,
        gap_s: float | None,
        settled: t.Sequence[int] | None,
    ) -> Seen:
        """Return what was seen of a cell.

        last: the end of the cell before; gap_s: since then, without the runtime asked; settled: the drive's counters
          after our last I/O.
        """
        before, after = (
            t.cast(kernel_counters.CounterSnapshot, self._before),
            t.cast(kernel_counters.CounterSnapshot, self.after),
        )
        found = kernel_counters.evidence(cell, result, before, after, self._process, self._eyes)
        if self._members:
            members = kernel_counters.of_members(self._counts, found.run_s + (cell.ramp_s or 0))
            found = replace(found, member_bytes=members.bytes, in_flight=members.in_flight)
        since = last or before
        boot_s = after.boot_s - since.boot_s
        longest_gap_s, waited_s = self._gaps_of(cell)
        stop_s = self._submissions.longest_stop_s
        return replace(
            found,
            longest_gap_s=longest_gap_s,
            waited_s=waited_s,
            longest_stop_s=None if stop_s is None else round(stop_s, 3),
            slowest_second_pct=self._slowest_second_pct(cell),
            # An I/O of seconds makes fio run longer; that is no idling.
            idle_s=None if gap_s is None else round(max(0.0, gap_s - max(0.0, found.run_s - cell.runtime_s)), 3),
            between_bytes=kernel_counters.between(settled, before.stat),
            clock_jump_s=round(after.wall_s - since.wall_s - boot_s, 3),
            suspended_s=round(boot_s - (after.time_s - since.time_s), 3),
        )

    def _slowest_second_pct(self, cell: PlannedCell) -> float | None:
        if not hidden_variation.has_seconds(cell):
            return None
        found = hidden_variation.slowest_second_pct(self._samples, cell.ramp_s or 0, cell.runtime_s)
        return None if found is None else round(found, 2)

    def _gaps_of(self, cell: PlannedCell) -> tuple[float | None, float | None]:
        """Return how long fio submitted nothing at a stretch, and for how long its threads waited for a CPU."""
        threads = sum(one.threads for one in io_pattern.streams(cell))
        gap_s = self._submissions.gap_s(threads, cell_s(cell))
        waited_s = None if gap_s is None else self._submissions.waited_s
        return None if gap_s is None else round(gap_s, 6), None if waited_s is None else round(waited_s, 4)
