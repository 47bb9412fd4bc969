# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was measured elsewhere, as read from a file: one run of one cell, whatever tool it is of. Pure."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from ...module_utils.measure.histogram import Bins
from ...module_utils.records.measurement import Figures, PreconditionDetails, Stream
from ...module_utils.records.planned_cell import PlannedCell


class IngestError(Exception):
    """Results that can't be taken; the message names file and place, and says what to do."""


class Place(t.NamedTuple):
    """Where in which file something stands. path: as the operator gave it, or below a folder that he gave."""

    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path} line {self.line}"


@dataclass(frozen=True)
class Document:
    """A file as it was read. name: below the folder that the operator gave."""

    name: str
    text: str
    content: bytes


@dataclass(frozen=True)
class MeasuredRun:
    """A run of a cell, or of a fill. Times are in seconds since 1970, UTC."""

    place: Place
    # fio's job or Iometer's access specification: a cell's id where the plan was rendered.
    name: str
    # As it is written there; "": the file does not say.
    device: str
    # fio-3.36, or Iometer 1.1.0.
    tool: str
    # fio's ioengine, or iometer.
    engine: str
    began_s: float
    ended_s: float
    # What its load is by the file itself; its id is that of a cell of such a load. None: of a fill.
    cell: PlannedCell | None
    read: Figures | None = None
    write: Figures | None = None
    trim: Figures | None = None
    sync: Figures | None = None
    streams: list[Stream] | None = None
    # Of the cell, "", and of its streams; empty where the file has no histograms.
    histograms: t.Mapping[str, t.Mapping[str, Bins]] = field(default_factory=dict)
    fill: PreconditionDetails | None = None
    # Why its figures are none of a drive that does its I/O.
    error: str = ""

    @property
    def seconds(self) -> float:
        """How long it took."""
        return max(0.0, self.ended_s - self.began_s)
