# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a look proves, in figures and in words: with which chance it sees how much data. Pure."""

from __future__ import annotations

import math
import typing as t

from .scan_offsets import BLOCK_BYTES

_MISS = 0.001


def seen_bytes(blocks: int, size_bytes: int, whole: bool, miss: float = _MISS) -> int:
    """Return how much data, anywhere on the drive, is missed with the chance `miss` only; one block where all were
    read.
    """
    if whole:
        return BLOCK_BYTES
    return size_bytes if blocks <= 0 else max(BLOCK_BYTES, math.ceil(size_bytes * -math.expm1(math.log(miss) / blocks)))


def detection_probability(data_bytes: int, blocks: int, size_bytes: int, whole: bool = False) -> float:
    """With which chance a look sees data of so many bytes that fill whole blocks."""
    if whole or data_bytes >= size_bytes:
        return 1.0
    share = math.ceil(data_bytes / BLOCK_BYTES) / max(1, size_bytes // BLOCK_BYTES)
    return -math.expm1(blocks * math.log1p(-share)) if share < 1 else 1.0


def scan_text(record: t.Mapping[str, t.Any], capacity: t.Callable[[int], str]) -> str:
    """Return a look's record in one line for people. `capacity`: how bytes on drives are written."""
    if record["whole"]:
        return "read all {} in {:.3g} s".format(capacity(record["size_bytes"]), record["seconds"])
    used = record.get("allocated_bytes")
    return "read {} blocks: {} of data anywhere on {} would have been found with {:g} % probability{}".format(
        format(record["blocks"], ","),
        capacity(record["seen_bytes"]),
        capacity(record["size_bytes"]),
        100 * (1 - _MISS),
        "" if used is None else f"; the drive reports {capacity(used)} in use",
    )
