# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The block size in a cell's name: rand-16k-w100-tc4-qd32, and rand-preferred-w100-tc4-qd32 as long as nobody knows
the drive. Pure.
"""

from __future__ import annotations

import re

PREFERRED = "preferred"
_LOAD = re.compile(r"(?:rand|seq)-([0-9]+)(b|k)-(?:(w100)|r([0-9]+))-(?:tc([0-9]+)-qd([0-9]+)\b)?")
# No more digits than the most that a test may ask for.
_PER_CPU = re.compile(r"-tc1to([0-9]{1,3})-load([0-9]{1,7})\b")
_AUTO = re.compile(r"-tcauto-load([0-9]{1,7})\b")
_GIVEN = {"rate_iops": re.compile(r"-([0-9]+)iops\b"), "batch": re.compile(r"-batch([0-9]+)\b")}
_OF_PREFERRED = re.compile(rf"(rand|seq)-{PREFERRED}-")


def size(size_bytes: int) -> str:
    """16384 as 16k, 512 as 512b."""
    return f"{size_bytes}b" if size_bytes % 1024 else f"{size_bytes // 1024}k"


def is_preferred(cell: str) -> bool:
    """Return whether the name is of a cell whose block size each drive says itself."""
    return _OF_PREFERRED.match(cell) is not None


def has_auto_threads(cell: str) -> bool:
    """Return whether the host finds the number of its threads by trials (threads: auto)."""
    return _AUTO.search(cell) is not None


def is_sequential(cell: str) -> bool:
    """Return whether each of its threads is a sequential stream."""
    return cell.startswith("seq-")


def on_drive(cell: str, preferred_bytes: int | None) -> str:
    """Return a cell's name on a drive that prefers writes of so many bytes; None: nobody knows, and it stays
    as it is.
    """
    return _OF_PREFERRED.sub(rf"\g<1>-{size(preferred_bytes)}-", cell) if preferred_bytes else cell


def parse(cell: str) -> dict[str, int]:
    """Return what the name of a cell says of its load: block_size_bytes, read_pct, rate_iops and batch (0: none),
    threads, queue_depth; of several streams nothing, of a point no threads and depth. Of threads that follow the CPUs
    the most, of those that the host chooses by trials one.
    """
    match = _LOAD.match(cell)
    if match is None:
        return {}
    found = {
        "block_size_bytes": int(match[1]) * (1024 if match[2] == "k" else 1),
        "read_pct": 0 if match[3] else int(match[4]),
    }
    for key, pattern in _GIVEN.items():
        given = pattern.search(cell)
        found[key] = int(given[1]) if given else 0
    auto = _AUTO.search(cell)
    if auto:
        return {**found, "threads": 1, "queue_depth": int(auto[1])}
    by_cpus = _PER_CPU.search(cell)
    if by_cpus:
        return {**found, "threads": int(by_cpus[1]), "queue_depth": int(by_cpus[2]) // max(1, int(by_cpus[1]))}
    return {**found, "threads": int(match[5]), "queue_depth": int(match[6])} if match[5] else found
