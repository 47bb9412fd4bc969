# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The zones of a host-managed drive (NVMe ZNS, SMR): what each holds, and resets, by ioctl on an open descriptor
(linux/blkzoned.h). A zone is written in sequence, from its start to its capacity, and emptied by a reset.
"""

from __future__ import annotations

import struct
import typing as t

from ..core.host import Host
from ..records.identity import Identity
from ..records.plan import PlannedTest

# The kernel counts in these, whatever the drive's blocks are.
SECTOR_BYTES = 512
# queue/zoned of a drive that takes no other writes. Host-aware ones take all.
HOST_MANAGED = "host-managed"
BLKREPORTZONE, BLKRESETZONE = 0xC0101282, 0x40101283
_HEADER, _ZONE = struct.Struct("=QII"), struct.Struct("=QQQBBBB4xQ24x")
# Python passes 1,024 bytes through an ioctl.
_ZONES_A_CALL = (1024 - _HEADER.size) // _ZONE.size
_HAS_CAPACITY = 1
_CONVENTIONAL = 1
EMPTY, FULL = 1, 14
# Implicitly open, explicitly open, closed: they count against the drive's limits of open and active zones.
ACTIVE = (2, 3, 4)


class Zone(t.NamedTuple):
    """A zone, in bytes. written_bytes: up to the write pointer; of a full one its capacity. sequential: whether it has
    a write pointer.
    """

    start_bytes: int
    size_bytes: int
    capacity_bytes: int
    written_bytes: int
    condition: int
    sequential: bool

    @property
    def holds_data(self) -> bool:
        """Return whether anything but empty is known of it; one that is offline or read-only is not known to be."""
        return self.sequential and self.condition != EMPTY


def is_host_managed(identity: Identity) -> bool:
    """Return whether a drive takes writes in sequence by zone alone."""
    return identity.zone_model == HOST_MANAGED


def misplaced_tests(tests: t.Iterable[PlannedTest], identity: Identity) -> str:
    """Return which tests of a plan are not for such a drive, and which plan is; "": all are."""
    zoned = is_host_managed(identity)
    names = ", ".join(test.name for test in tests if test.reads_or_writes and test.zoned != zoned)
    if not names:
        return ""
    if zoned:
        return f"it is zoned, and the plan has tests that don't go by zone ({names}); ssd_plan: zoned has others"
    return f"it has no zones, and the plan has tests by zone ({names}); ssd_plan: nightly, or another plan, is for it"


def report(host: Host, handle: int, size_bytes: int) -> list[Zone]:
    """Return the zones that begin within the first so many bytes. Raises OSError."""
    found: list[Zone] = []
    start = 0
    while start < size_bytes:
        argument = _HEADER.pack(start // SECTOR_BYTES, _ZONES_A_CALL, 0) + bytes(_ZONES_A_CALL * _ZONE.size)
        answer = host.ioctl(handle, BLKREPORTZONE, argument)
        _sector, count, flags = _HEADER.unpack_from(answer)
        zones = [_zone(answer, _HEADER.size + index * _ZONE.size, flags) for index in range(count)]
        if not zones or zones[-1].size_bytes <= 0:
            raise OSError(0, f"the drive reports no zone at byte {start}")
        found += [zone for zone in zones if zone.start_bytes < size_bytes]
        start = zones[-1].start_bytes + zones[-1].size_bytes
    return found


def _zone(answer: bytes, offset: int, flags: int) -> Zone:
    start, length, pointer, kind, condition, _non_seq, _reset, capacity = _ZONE.unpack_from(answer, offset)
    capacity = capacity if flags & _HAS_CAPACITY else length
    written = {EMPTY: 0, FULL: capacity}.get(condition, min(capacity, max(0, pointer - start)))
    start, length, capacity, written = (size * SECTOR_BYTES for size in (start, length, capacity, written))
    return Zone(start, length, capacity, written, condition, kind != _CONVENTIONAL)


def writable_bytes(zones: t.Iterable[Zone], block_bytes: int) -> int:
    """Return how much whole blocks of this size fill of them: no block lies across the end of a zone's capacity."""
    return sum(zone.capacity_bytes // block_bytes * block_bytes for zone in zones)


def reset(host: Host, handle: int, path: str, zones: t.Sequence[Zone]) -> None:
    """Empty zones that follow each other, so that what they held is gone. Raises OSError."""
    start, last = zones[0].start_bytes, zones[-1]
    length = last.start_bytes + last.size_bytes - start
    host.note_ioctl("BLKRESETZONE", path, start, length)
    host.ioctl(handle, BLKRESETZONE, struct.pack("=QQ", start // SECTOR_BYTES, length // SECTOR_BYTES))


def reset_active(host: Host, handle: int, path: str, size_bytes: int) -> int:
    """Empty the zones that are written in part, so that all that the drive can have open are free again; how many.
    Raises OSError.
    """
    active = [zone for zone in report(host, handle, size_bytes) if zone.sequential and zone.condition in ACTIVE]
    for zone in active:
        reset(host, handle, path, [zone])
    return len(active)
