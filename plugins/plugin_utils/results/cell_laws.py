# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the figures that a host's journal has of a cell can be true together: rates follow from counts, latencies
from what was seen. One that was changed alone, or with the averages made from it, is found out. Pure.
"""

from __future__ import annotations

import typing as t

from ...module_utils.measure import fio, load

# The host has accepted rates within 1 % of a direction's own runtime (plausible.py), which may be 2 % shorter than the
# cell's.
RATE_SHARE = 0.04
# Below it whole milliseconds tell no rate.
LEAST_S = 0.2
# Means are sums of floats in another order.
MEAN_SHARE = 1e-6

Mapping = t.Mapping[str, t.Any]


def contradictions(event: Mapping, cell: Mapping) -> list[str]:
    """What of a cell's record contradicts its own counts, as sentences. event: the journal's; cell: of the rendered
    test.
    """
    seen, sides = event.get("seen") or {}, {name: event[name] for name in fio.SIDES if event.get(name)}
    run_s = seen.get("run_s")
    if not run_s or run_s < LEAST_S or not sides:
        return []
    busy_s = load.burst_time_s(cell) if cell.get("burst_s") else run_s
    where = f"round {event['round']}, {event['cell']}"
    found = []
    for name, side in sides.items():
        for rate, amount in (("iops", "ios"), ("bandwidth_bytes_per_s", "bytes")):
            true = side[amount] / busy_s
            # One I/O more or less is no contradiction.
            if abs(side[rate] - true) > RATE_SHARE * true + side[amount] / side["ios"] / busy_s:
                found.append(f"{where}: {name} {rate} {side[rate]:.6g}, but its counts give {true:.6g}")
    mean_us, told_s = _mean_us(sides), seen.get("mean_latency_s")
    if told_s is not None and abs(mean_us - 1e6 * told_s) > MEAN_SHARE * mean_us:
        found.append(f"{where}: a mean latency of {mean_us:.6g} µs, and {1e6 * told_s:.6g} µs were seen")
    fio_bytes = seen.get("fio_bytes") or {}
    found += [
        f"{where}: {side['bytes']} bytes, and fio reported {fio_bytes[name]} ({name})"
        for name, side in sides.items()
        if fio_bytes.get(name, side["bytes"]) != side["bytes"]
    ]
    return found


def _mean_us(sides: Mapping) -> float:
    ios = sum(side["ios"] for side in sides.values())
    return float(sum(side["mean_latency_us"] * side["ios"] for side in sides.values()) / ios)
