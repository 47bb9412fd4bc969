# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a drive takes to precondition, by a steady rate that was measured: Micron's brief, Determining the
Precondition Time. Pure.
"""

from __future__ import annotations

import typing as t

from ..common import units

FILLS = 2
BLOCK_BYTES = 128 << 10
# Of a cell that does something else besides writing the drive in sequence.
_OTHERWISE = ("jobs", "mix", "range", "rate_iops", "burst_s", "batch", "sync", "fdatasync", "point")
Mapping = t.Mapping[str, t.Any]


def of_test(spec: Mapping, steady: bool, bandwidth: float | None, size_bytes: int | None) -> dict[str, t.Any] | None:
    """{bandwidth_bytes_per_s, bytes, seconds}: 2 x the capacity at the rate of a test that wrote 128 KiB in sequence,
    over the whole drive and nothing else, until steady. None for any other test.

    spec: the rendered test. bandwidth: its write bandwidth over the window.
    """
    cells = spec.get("cells") or []
    if len(cells) != 1 or not steady or not bandwidth or bandwidth <= 0 or not size_bytes:
        return None
    cell = cells[0]
    wanted = {"access": "sequential", "block_size_bytes": BLOCK_BYTES, "read_pct": 0}
    if any(cell.get(key) != value for key, value in wanted.items()) or any(cell.get(key) for key in _OTHERWISE):
        return None
    if spec.get("active_range_pct") != 100 or spec.get("filesystem"):
        return None
    written = FILLS * size_bytes
    return {"bandwidth_bytes_per_s": bandwidth, "bytes": written, "seconds": round(written / bandwidth, 1)}


def text(found: Mapping) -> str:
    """63 min: 1.92 TB at 520 MB/s."""
    rate = units.show("bandwidth", found["bandwidth_bytes_per_s"])
    return f"{found['seconds'] / 60:,.0f} min: {units.data_size(found['bytes'])} at {rate}"
