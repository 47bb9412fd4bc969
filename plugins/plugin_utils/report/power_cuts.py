# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The power cuts of a test as a drive's page shows them: a row for each, and where blocks are wrong. Pure."""

from __future__ import annotations

import typing as t

from ...module_utils.records import base
from ...module_utils.records.power_cut import PowerCutDetails
from ...module_utils.run.criteria import power_cut_faults
from . import svg

Record = dict[str, t.Any]
# Each in a column of its own; what is left is rare, and shares one.
_OTHERS = ("stale", "resurrected", "misplaced", "foreign", "corrupt", "unreadable")
MOST_FIRST = 20
# A long run of cuts is mostly alike: those that say something, and the last.
MOST_ROWS = 200


def of_test(record: Record) -> Record | None:
    """{rows, left_out, requested, done, bound_pct, picture, said, first} of the record of a power-cut test; None of any
    other.
    """
    found = record.get("power_cut")
    if not found or not found.get("cycles"):
        return None
    cycles = found["cycles"]
    done = sum(bool(cycle["cut"]) for cycle in cycles)
    telling = [cycle for cycle in cycles if _wrong(cycle) or not cycle["found"] or not cycle["cut"]]
    shown = cycles if len(cycles) <= MOST_ROWS else (telling + cycles)[:MOST_ROWS]
    shown = sorted({cycle["cycle"]: cycle for cycle in shown}.values(), key=lambda cycle: cycle["cycle"])
    faulty = power_cut_faults(base.parse(PowerCutDetails, found))
    return {
        "rows": [_row(cycle) for cycle in shown],
        "left_out": len(cycles) - len(shown),
        "requested": found["requested_cycles"],
        "done": done,
        "mode": found["mode"],
        "cache": _cache(cycles[0]),
        "bound_pct": None if faulty or not done else 100 * chance_bound(done),
        **_map(cycles),
        "first": [{"cut": cycle["cycle"], **one} for cycle in cycles for one in cycle.get("first") or ()][:MOST_FIRST],
    }


def chance_bound(cuts: int, confidence: float = 0.95) -> float:
    """Return how likely a loss at a cut is at most, with that confidence, if none was seen in so many cuts."""
    return float(1.0 - (1.0 - confidence) ** (1.0 / cuts))


def _others(cycle: Record) -> int:
    return sum(cycle[kind] for kind in _OTHERS)


def _wrong(cycle: Record) -> int:
    return int(cycle["lost_flushed"] + cycle["lost_acknowledged"] + cycle["torn"] + _others(cycle))


def _cache(cycle: Record) -> str:
    """Return how a drive was cut, so that runs of it can be compared: its write cache, and what it claims."""
    state = f"write cache {cycle['write_cache'] or 'unknown'}" if cycle["vwc"] is not False else "no volatile cache"
    return f"{state}, power-loss protection {'claimed' if cycle['plp_claimed'] else 'not claimed'}"


def _row(cycle: Record) -> Record:
    counts = {kind: cycle[kind] for kind in _OTHERS if cycle[kind]}
    before, after = cycle["unsafe_shutdowns_before"], cycle["unsafe_shutdowns_after"]
    return {
        **cycle,
        "last_acknowledgement": cycle["cut_at"][:19].replace("T", " ") if cycle["cut_at"] else "none",
        "shutdowns": "not counted" if before is None or after is None else f"{before:,} → {after:,}",
        "others": ", ".join(f"{count:,} {kind}" for kind, count in counts.items()) or "0",
    }


def _map(cycles: t.Sequence[Record]) -> Record:
    """Return {picture, said} of where blocks are wrong over all cuts."""
    maps = [cycle["wrong_by_part"] for cycle in cycles if cycle.get("wrong_by_part")]
    counts = [sum(parts) for parts in zip(*maps)]
    if not any(counts):
        return {"picture": "", "said": ""}
    hit = sum(count > 0 for count in counts)
    said = f"in {hit} of {len(counts)} equal parts of what was written, {max(counts):,} at most in one of them"
    return {"picture": svg.strip(counts, None, (), f"{sum(counts):,} wrong blocks {said}"), "said": said}
