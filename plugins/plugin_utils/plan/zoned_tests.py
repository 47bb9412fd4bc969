# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a test of zoned drives (`zoned: true`) can't ask of them. Pure.

A thread writes one block after the other, each where the zone's last one ended: of several in flight a kernel before
6.10 may send a later one first (without mq-deadline), which the drive refuses.
"""

from __future__ import annotations

import typing as t

from ...module_utils.records.planned_cell import PlannedCell

# What is done all over a drive, or by other means than zones.
APART = ("filesystem", "array", "integrity", "write_cache")
# Of a cell: what places or counts its I/O otherwise, or has not been tried on zones.
NOT_IN_CELLS = ("jobs", "range", "mix", "per_cpu", "auto_threads", "burst_s", "point", "sync", "fdatasync", "batch")


def problems(test: t.Mapping[str, t.Any], cells: t.Sequence[PlannedCell]) -> list[str]:
    """Return what is wrong with a test by zone, as "key: message"; nothing of any other. cells: all of its cells."""
    if not test["zoned"]:
        return []
    found = [f"zoned: cannot be combined with {key}" for key in APART if test[key]]
    if (test["precondition"] or {}).get("verify"):
        found.append("zoned: cannot be combined with precondition.verify")
    for cell in cells:
        found += [f"cell {cell.id}: zoned: {text}" for text in _of_cell(cell)]
    return found


def _of_cell(cell: PlannedCell) -> t.Iterator[str]:
    given = [key for key in NOT_IN_CELLS if getattr(cell, key)]
    if given:
        yield f"cannot be combined with {', '.join(given)}"
    elif cell.read_pct not in (0, 100):
        yield "a cell reads or writes; split it in two"
    elif cell.read_pct == 0 and cell.access == "random":
        yield "zones are written in sequence; use access: sequential, and threads for several zones at a time"
    elif cell.read_pct == 0 and cell.queue_depth > 1:
        yield f"one write of a zone is in flight, not {cell.queue_depth}; use threads for several zones at a time"
