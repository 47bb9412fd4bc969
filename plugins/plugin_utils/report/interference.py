# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How reads and writes stand in each other's way: the tail of reads over a grid of rates of both. Pure."""

from __future__ import annotations

import typing as t

from ..common import units
from . import tables, thinning
from .host_journal import Measurement

METRIC = "read_p99_latency_us"
CAPTION = (
    "99th percentile of reads (µs) by the rates of reads and writes; in brackets where fewer reads came than asked"
)
# A drive that kept this share of the rate kept it: fio's own rate is within 1 %.
KEPT = 0.98
Record = dict[str, t.Any]


def table(cells: t.Sequence[Record], measured: Measurement | None) -> Record | None:
    """Return the map as tables.matrices has it, with a caption and a corner of its own; None where the cells are no
    grid.

    A cell of it has two streams with a rate each, one that reads and one that writes; reads alone are a cell with a
    rate.
    """
    places = {cell["id"]: _place(cell) for cell in cells}
    if not measured or not places or None in places.values():
        return None
    grid = {place: name for name, place in places.items() if place}
    reads, writes = sorted({place[0] for place in grid}), sorted({place[1] for place in grid})
    if len(grid) < len(cells) or len(reads) < 2 or len(writes) < 2 or tables.is_sparse(len(grid), reads, writes):
        return None
    figures = {entry["cell"]: entry.get("metrics") or {} for entry in measured.averages}
    tails = {place: figures.get(name, {}).get(METRIC) for place, name in grid.items()}
    known = [value for value in tails.values() if value and value > 0]
    if not known:
        return None
    rows = []
    for write in writes:
        values = []
        for read in reads:
            tail = tails.get((read, write))
            rate = figures.get(grid.get((read, write), ""), {}).get("read_iops") or 0
            text = units.rounded(tail) if tail else "–"
            heat = round(thinning.log_share(tail, min(known), max(known)), 3) if tail and tail > 0 else None
            values.append({"text": text if rate >= KEPT * read or not tail else f"({text})", "heat": heat})
        rows.append({"block_size": f"{write:,} writes/s" if write else "reads alone", "values": values})
    mixes = [f"{read:,} reads/s" for read in reads]
    return {
        "metric": METRIC,
        "unit": "µs",
        "mixes": mixes,
        "rows": rows,
        "caption": CAPTION,
        "corner": "Writes \\ reads",
    }


def _place(cell: Record) -> tuple[int, int] | None:
    """Return the rates (reads, writes) that a cell asks for; None for any other cell."""
    jobs = cell.get("jobs") or [cell]
    rates = {job["read_pct"]: job.get("rate_iops") for job in jobs if not job.get("trim")}
    if not rates.get(100) or len(rates) < len(jobs) or set(rates) - {0, 100} or (0 in rates and not rates[0]):
        return None
    return rates[100], rates.get(0) or 0
