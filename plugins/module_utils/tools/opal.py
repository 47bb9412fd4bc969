# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Opal: whether a self-encrypting drive hides or locks its data, from its Level 0 discovery.

TCG Storage Architecture Core Specification 2.01, 3.3.6 (Level 0 discovery); Opal SSC 2.01, 3.1.1.3 (the Locking
feature). SPC-4, 6.29 (the list of security protocols).
"""

from __future__ import annotations

TCG_PROTOCOL = 0x01
_HEADER_BYTES = 48
_LOCKING_FEATURE = 0x0002
_LOCKED, _MBR_ENABLED, _MBR_DONE = 0x04, 0x10, 0x20
# How nvme-cli and sg_raw are asked: protocol 0 lists the protocols, protocol 1 with ComID 1 is the discovery.
LIST_BYTES, DISCOVERY_BYTES = 512, 2048


def protocols(data: bytes) -> list[int]:
    """Return the security protocols of a drive. Raises ValueError for anything but their list."""
    if len(data) < 8:
        raise ValueError(f"a list of security protocols has at least 8 bytes, not {len(data)}")
    count = int.from_bytes(data[6:8], "big")
    if not count or len(data) < 8 + count:
        raise ValueError(f"{count} security protocols in {len(data)} bytes")
    return list(data[8 : 8 + count])


def locked(data: bytes) -> list[str]:
    """Return what a drive's Level 0 discovery has against it; empty: it neither locks nor hides data. Raises ValueError
    for anything else.
    """
    if len(data) < _HEADER_BYTES:
        raise ValueError(f"a Level 0 discovery has {_HEADER_BYTES} bytes or more, not {len(data)}")
    end = 4 + int.from_bytes(data[:4], "big")
    if end < _HEADER_BYTES or end > len(data):
        raise ValueError(f"a Level 0 discovery of {end} bytes, of which {len(data)} were read")
    found: list[str] = []
    place = _HEADER_BYTES
    while place < end:
        if place + 4 > end or place + 4 + data[place + 3] > end:
            raise ValueError("a feature extends beyond the end of the Level 0 discovery")
        body = data[place + 4 : place + 4 + data[place + 3]]
        if int.from_bytes(data[place : place + 2], "big") == _LOCKING_FEATURE:
            if not body:
                raise ValueError("the Locking feature is empty")
            found += _locking(body[0])
        place += 4 + len(body)
    return found


def _locking(flags: int) -> list[str]:
    found = ["a range of it is locked"] if flags & _LOCKED else []
    if flags & _MBR_ENABLED and not flags & _MBR_DONE:
        found.append("a shadow MBR hides its data")
    return found
