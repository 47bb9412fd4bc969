# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Iometer's results.csv, as releases 2006.07.27 and 1.1.0 write it. Pure.

Iometer appends for each access specification the section 'Access specifications, then 'Results with a row of all
managers (ALL), those of managers, workers and disks as the operator asked, and 'Time Stamp, by its machine's clock
(ManagerList::SaveResults and AccessSpecList of its sources). 1.1.0 has columns in MiBps and MBps, and 21 of latencies
behind the others; 2006 has MBps alone. What is used here, both have under the same names.
"""

from __future__ import annotations

import csv
import datetime
import typing as t
from dataclasses import replace

from ...module_utils.records.measurement import Figures
from ...module_utils.records.planned_cell import Mix, PlannedCell, SizeShare
from ..plan import cells as celling
from .measured_run import Document, IngestError, MeasuredRun, Place

RESULTS, SPECIFICATIONS, VERSION, TIME = "'Results", "'Access specifications", "'Version", "'Time Stamp"
SPECIFICATION, END_SPECIFICATIONS = "'Access specification name,", "'End access specifications"
COLUMNS = "'Target Type,Target Name,Access Specification Name,"
USED = (
    *("Target Type", "Target Name", "Access Specification Name", "# Workers", "# Disks"),
    *("Read IOps", "Write IOps", "Average Read Response Time", "Average Write Response Time"),
    *("Maximum Read Response Time", "Maximum Write Response Time"),
    *("Errors", "Bytes Read", "Bytes Written", "Read I/Os", "Write I/Os", "Queue Depth"),
)
CUT = "Iometer was ended before it had written all: run that test again, or remove the section that begins there"


def is_iometer(document: Document) -> bool:
    """Return whether Iometer wrote it, whole or in part."""
    return document.text.startswith("'Test Type,Test Description") or RESULTS in document.text.splitlines()


def runs(document: Document) -> list[MeasuredRun]:
    """Return the runs in a file. Raises IngestError."""
    reader = _Reader(document)
    found = reader.runs()
    if not found:
        raise IngestError(f"{document.name}: it has no section {RESULTS}: {CUT.replace(' that begins there', '')}")
    return found


class _Reader:
    """Goes through the lines of a file once."""

    def __init__(self, document: Document) -> None:
        self._name = document.name
        self._lines = document.text.splitlines()
        self._at = 0
        self._version = ""
        self._cells: dict[str, PlannedCell] = {}
        # Of an access specification whose results are still to come.
        self._open: Place | None = None

    def runs(self) -> list[MeasuredRun]:
        found: list[MeasuredRun] = []
        while self._at < len(self._lines):
            line = self._next()
            if line.startswith(VERSION):
                self._version = self._next().strip().strip('"')
            elif line.startswith(SPECIFICATION):
                self._specification()
            elif line.startswith(RESULTS):
                found.append(self._results())
        if self._open:
            raise IngestError(f"{self._open}: the results of this access specification are not there; {CUT}")
        return found

    def _place(self) -> Place:
        return Place(self._name, self._at)

    def _next(self) -> str:
        if self._at >= len(self._lines):
            raise IngestError(f"{Place(self._name, len(self._lines))}: the file ends here; {CUT}")
        self._at += 1
        return self._lines[self._at - 1]

    def _peek(self) -> str:
        return self._lines[self._at] if self._at < len(self._lines) else ""

    def _specification(self) -> None:
        """Read an access specification: its name, then sizes with their shares."""
        self._open = self._place()
        name = self._next().strip().rpartition(",")[0]
        self._next()  # 'size,% of size,% reads,% random,delay,burst,align,reply
        rows = []
        while self._peek() and not self._peek().startswith("'"):
            try:
                size, share, reads, random = map(int, self._next().strip().split(",")[:4])
                rows.append([size, share, reads, random])
            except ValueError:
                raise IngestError(f"{self._place()}: it is no line of an access specification; {CUT}") from None
        if rows:
            self._cells[name] = _cell(rows)

    def _results(self) -> MeasuredRun:
        """Read a section of results, to its time."""
        began, self._open = self._place(), None
        header = self._next()
        columns = header.lstrip("'").split(",")
        lacking = [name for name in USED if name not in columns]
        if not header.startswith(COLUMNS) or lacking:
            what = f"column {lacking[0]} is not there" if header.startswith(COLUMNS) else "there are no columns"
            raise IngestError(
                f"{self._place()}: {what}: results.csv of Iometer 2006.07.27 and 1.1.0 can be taken; {CUT}"
            )
        rows: list[tuple[Place, dict[str, str]]] = []
        while not self._peek().startswith(TIME):
            text = self._next()
            values = next(csv.reader([text]))
            if len(values) < columns.index("Queue Depth") + 1:
                raise IngestError(f"{self._place()}: the row breaks off after {len(values)} columns; {CUT}")
            rows.append((self._place(), dict(zip(columns, values))))
        self._next()
        ended_s = self._time(self._next())
        total = [one for one in rows if one[1]["Target Type"] == "ALL"]
        if len(total) != 1:
            raise IngestError(f"{began}: it has {len(total)} rows of type ALL and not one; {CUT}")
        disks = {row["Target Name"] for _place, row in rows if row["Target Type"] == "DISK"}
        if len(disks) > 1:
            raise IngestError(
                f"{began}: {len(disks)} drives were measured together ({', '.join(sorted(disks))}): give results of "
                "one drive that was measured alone"
            )
        return self._run(*total[0], device=next(iter(disks), ""), ended_s=ended_s)

    def _time(self, text: str) -> float:
        """Return a time stamp of Iometer, 2006-07-27 13:00:01:123, taken as UTC, as none tells its zone."""
        place = self._place()
        try:
            whole, _colon, milliseconds = text.strip().rpartition(":")
            when = datetime.datetime.strptime(whole, "%Y-%m-%d %H:%M:%S").replace(tzinfo=datetime.timezone.utc)
            return when.timestamp() + int(milliseconds) / 1000.0
        except ValueError:
            raise IngestError(f"{place}: {text!r} is no time of Iometer; {CUT}") from None

    def _run(self, place: Place, row: t.Mapping[str, str], device: str, ended_s: float) -> MeasuredRun:
        name = row["Access Specification Name"]
        try:
            read, write = _figures(row, "Read", "Bytes Read"), _figures(row, "Write", "Bytes Written")
            errors, workers = int(float(row["Errors"])), int(row["# Workers"])
            depth = int(float(row["Queue Depth"] or 1))
        except ValueError as error:
            raise IngestError(f"{place}: a figure is no number ({error}); {CUT}") from None
        if not (read or write):
            raise IngestError(f"{place}: no I/O was done; leave that section out, or run the test again")
        seconds = max(one.ios / one.iops for one in (read, write) if one and one.iops)
        cell = self._cells.get(name)
        if cell:
            load = replace(cell, threads=workers, queue_depth=max(1, depth), runtime_s=max(1, round(seconds)))
            cell = replace(load, id=celling.cell_id(load))
        return MeasuredRun(
            place=place,
            name=name,
            device=device,
            tool=f"Iometer {self._version or 'of an unknown release'}",
            engine="iometer",
            began_s=ended_s - seconds,
            ended_s=ended_s,
            cell=cell,
            read=read,
            write=write,
            error=f"Iometer counts {errors} errors" if errors else "",
        )


def _figures(row: t.Mapping[str, str], side: str, moved: str) -> Figures | None:
    """Return the figures of a side; response times are in ms."""
    ios, size_bytes, iops = int(row[f"{side} I/Os"]), int(row[moved]), float(row[f"{side} IOps"])
    if not ios:
        return None
    return Figures(
        iops=iops,
        # The columns of MB/s are binary in one release and both in the other.
        bandwidth_bytes_per_s=iops * size_bytes / ios,
        ios=ios,
        bytes=size_bytes,
        mean_latency_us=1000.0 * float(row[f"Average {side} Response Time"]),
        max_latency_us=1000.0 * float(row[f"Maximum {side} Response Time"]),
        percentiles_us={},
    )


def _cell(rows: t.Sequence[t.Sequence[int]]) -> PlannedCell:
    """Return the load of an access specification, from (size, % of size, % reads, % random)."""
    reads = sum(share * read for _size, share, read, _random in rows) / max(1, sum(row[1] for row in rows))
    is_random = any(row[3] for row in rows)
    sizes = [SizeShare(row[0], max(1, row[1])) for row in rows]
    return PlannedCell(
        id="x",
        access="random" if is_random else "sequential",
        block_size_bytes=max(row[0] for row in rows),
        read_pct=round(reads),
        threads=1,
        queue_depth=1,
        runtime_s=1,
        mix=Mix(sizes=sizes) if len(sizes) > 1 else None,
    )
