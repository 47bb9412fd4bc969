# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the figures that a host's journal has of a cell can be true together, and of what was asked: rates follow
from counts, latencies from what was seen. One that was changed alone, or with the averages made from it, is found out.
Pure.
"""

from __future__ import annotations

import math
import typing as t

from ...module_utils.measure import fio_result, load, plausible, rounds

# The host has accepted rates within 1 % of a direction's own runtime (plausible.py), which may be 2 % shorter than the
# cell's.
RATE_SHARE = 0.04
# Of a single direction, whose runtime is the cell's: the digits that fio leaves out.
ALONE_SHARE = 0.002
# Below it whole milliseconds tell no rate.
LEAST_S = 0.2
# Means are sums of floats in another order.
MEAN_SHARE = 1e-6
# The last place of what the witness rounds, and a float's.
LAST_S, LAST_QUEUED, LAST_IDLE_S = 2e-6, 1e-4, 0.002

Mapping = t.Mapping[str, t.Any]


def contradictions(event: Mapping, cell: Mapping) -> list[str]:
    """What of a cell's record contradicts its own counts, what was seen of it, or what was asked, as sentences.

    event: the journal's; cell: of the rendered test.
    """
    seen, sides = event.get("seen") or {}, {name: event[name] for name in fio_result.SIDES if event.get(name)}
    run_s = seen.get("run_s")
    if run_s is None or not sides:
        return []
    found = [*_asked(sides, cell, run_s), *_mix(sides, cell), *_idled(event, seen, cell, run_s)]
    # A cell that says it was shorter than it was asked to be is found out by then.
    found += [*_rates(sides, cell, run_s), *_seen(sides, seen, run_s)] if run_s >= LEAST_S else []
    return [f"round {event['round']}, {event['cell']}: {text}" for text in found]


def empty(event: Mapping) -> list[str]:
    """Sides of a cell that have no I/O and are told all the same: the engine leaves them out."""
    of_streams = [(stream["name"], stream) for stream in event.get("streams") or []]
    return [
        f"round {event['round']}, {name}: {side}s without an I/O"
        for name, one in [(event["cell"], event), *of_streams]
        for side in fio_result.SIDES
        if one.get(side) and not one[side]["ios"]
    ]


def lasted_s(event: Mapping, cell: Mapping) -> float | None:
    """How long a cell took since the one before it, by its own record; None where it does not tell."""
    if event.get("gap_s") is None or "runtime_s" not in cell:
        told: float | None = event.get("seconds")
        return told
    gap_s: float = event["gap_s"]
    return gap_s + rounds.cell_s(cell)


def _asked(sides: Mapping, cell: Mapping, run_s: float) -> list[str]:
    """The directions, sizes and length that the test asked for."""
    if "runtime_s" not in cell or "read_pct" not in cell:
        return []
    found = [f"{name}s in a cell without {name}s" for name in sides if name not in load.sides(cell)]
    longest_s = cell.get("idle_s", 0) + max(side["max_latency_us"] for side in sides.values()) / 1e6
    asked_s = cell["runtime_s"]
    most_s = asked_s + max((plausible.LONGEST_SHARE - 1) * asked_s, plausible.LONGEST_SLACK_S) + longest_s
    if not plausible.SHORTEST_SHARE * asked_s <= run_s <= most_s:
        found.append(f"it ran for {run_s:.6g} s of {asked_s:g} s")
    if not cell.get("jobs") and not (cell.get("mix") or {}).get("sizes") and "block_size_bytes" in cell:
        astride = load.asked_in_flight(cell) if cell.get("ramp_s") else 0
        sizes = load.Sizes({"bs": cell["block_size_bytes"]})
        found += [
            f"{side['bytes']} bytes are not {side['ios']} I/Os of {sizes} ({name})"
            for name, side in sides.items()
            if name != "sync" and not sizes.fit(side["ios"], side["bytes"], astride, plausible.MIX_DEVIATIONS)
        ]
    return found


def _mix(sides: Mapping, cell: Mapping) -> list[str]:
    """The share of reads is the one asked for, within chance. Rate limits count for each direction by itself."""
    share = (cell.get("read_pct") or 0) / 100.0
    if not 0 < share < 1 or cell.get("jobs") or load.is_limited(cell):
        return []
    reads, writes = ((sides.get(name) or {}).get("ios", 0) for name in fio_result.DIRECTIONS)
    total = reads + writes
    allowed = plausible.MIX_DEVIATIONS * math.sqrt(share * (1 - share) * total) + load.asked_in_flight(cell)
    if abs(reads - share * total) <= allowed:
        return []
    return [f"{reads} of {reads + writes} I/Os were reads, not {share:.0%}"]


def _idled(event: Mapping, seen: Mapping, cell: Mapping, run_s: float) -> list[str]:
    """The idle time that its causes were judged by is the gap before the cell, without what an I/O took longer."""
    gap_s, idle_s = event.get("gap_s"), seen.get("idle_s")
    if gap_s is None or idle_s is None or "runtime_s" not in cell:
        return []
    true = max(0.0, gap_s - max(0.0, run_s - cell["runtime_s"]))
    return [] if idle_s >= true - LAST_IDLE_S else [f"it idled for {idle_s:g} s, but its gap gives {true:g} s"]


def _rates(sides: Mapping, cell: Mapping, run_s: float) -> list[str]:
    """IOPS and bandwidth follow from counts and time."""
    busy_s = load.burst_time_s(cell) if cell.get("burst_s") else run_s
    # fio makes the rate of a single direction from the very counts and time that the journal has.
    alone = not cell.get("jobs") and len([name for name in sides if name != "sync"]) == 1
    share = ALONE_SHARE if alone else RATE_SHARE
    found = []
    for name, side in sides.items():
        for rate, amount in (("iops", "ios"), ("bandwidth_bytes_per_s", "bytes")):
            true = side[amount] / busy_s
            # One I/O more or less is no contradiction.
            if abs(side[rate] - true) > share * true + side[amount] / side["ios"] / busy_s:
                found.append(f"{name} {rate} {side[rate]:.6g}, but its counts give {true:.6g}")
    return found


def _seen(sides: Mapping, seen: Mapping, run_s: float) -> list[str]:
    """What its causes were judged by: the mean latency, the longest, the I/Os in flight by Little's law, the bytes."""
    found = []
    ios = sum(side["ios"] for side in sides.values())
    mean_us = sum(side["mean_latency_us"] * side["ios"] for side in sides.values()) / ios
    longest_s = max(side["max_latency_us"] for side in sides.values()) / 1e6
    told_s, told_longest_s, queued = seen.get("mean_latency_s"), seen.get("longest_s"), seen.get("queued")
    if told_s is not None and abs(mean_us - 1e6 * told_s) > MEAN_SHARE * mean_us:
        found.append(f"a mean latency of {mean_us:.6g} µs, but {1e6 * told_s:.6g} µs were observed")
    if told_longest_s is not None and abs(longest_s - told_longest_s) > LAST_S:
        found.append(f"a longest latency of {longest_s:.6g} s, but {told_longest_s:.6g} s were observed")
    flying = mean_us * ios / run_s / 1e6
    if queued is not None and abs(flying - queued) > MEAN_SHARE * flying + LAST_QUEUED:
        found.append(f"IOPS x latency gives {flying:.6g} I/Os in flight, but {queued:.6g} were observed")
    fio_bytes = seen.get("fio_bytes") or {}
    found += [
        f"{side['bytes']} bytes, but fio reported {fio_bytes[name]} ({name})"
        for name, side in sides.items()
        if fio_bytes.get(name, side["bytes"]) != side["bytes"]
    ]
    return found
