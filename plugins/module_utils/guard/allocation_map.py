# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a drive itself says that it holds something: the look goes there too. It excuses nothing, and a drive that does
not tell is looked at as ever.
"""

from __future__ import annotations

import errno
import os
import stat

from ..core.host import Host
from ..core.tool_json import Json
from ..drive import loop, zones
from ..tools import sg3
from .facts import Extent, Facts

_MOST_EXTENTS = 10000
# Descriptors that one answer may hold, and how many answers are asked for.
_ANSWER_BYTES, _MOST_ANSWERS = 8 + 16 * 2048, 5


def keep(facts: Facts, extents: list[Extent]) -> None:
    """Note what a drive told."""
    facts.allocated = extents
    told = sum(extent.length for extent in extents)
    facts.allocated_bytes = _within(facts, told) if len(extents) < _MOST_EXTENTS else None


def from_namespace(facts: Facts, namespace: Json) -> None:
    """How many bytes an NVMe namespace (id-ns) says are allocated; not where.

    NUSE counts only with thin provisioning (NSFEAT bit 0), or where it is below NCAP: other drives may always report
    NCAP (NVM Command Set 1.0, 4.1.5.1).
    """
    told = [namespace.get(key) for key in ("nuse", "ncap", "nsfeat")]
    told.append(facts.identity.logical_block_size_bytes)
    numbers = [value for value in told if isinstance(value, int) and value >= 0]
    if len(numbers) < len(told):
        return
    used, most, features, block_bytes = numbers
    if features & 1 or used < most:
        facts.allocated_bytes = _within(facts, used * block_bytes)


def _within(facts: Facts, told_bytes: int) -> int:
    """No drive holds more than its size, whatever it tells: extents may overlap, and a last one may reach beyond the
    end.
    """
    return min(told_bytes, facts.identity.size_bytes or told_bytes)


def from_scsi(host: Host, facts: Facts) -> None:
    """The extents that a SCSI drive says are mapped: GET LBA STATUS, where READ CAPACITY(16) says that it tells (LBPME;
    sysfs shows it).
    """
    block_bytes, size_bytes = facts.identity.logical_block_size_bytes, facts.identity.size_bytes
    told = [host.get(path) for path in host.glob(f"/sys/block/{facts.name}/device/scsi_disk/*/thin_provisioning")]
    if told != ["1"] or not block_bytes or not size_bytes:
        return
    mapped, block = [], 0
    for _answer in range(_MOST_ANSWERS):
        result = sg3.run(
            host,
            ["sg_get_lba_status", "--readonly", "--hex", f"--maxlen={_ANSWER_BYTES}", f"--lba={block}", facts.path],
        )
        try:
            told_of = sg3.lba_status(sg3.hex_bytes(result.stdout)) if result.rc == 0 else []
        except ValueError:
            told_of = []
        mapped += [Extent(one.block * block_bytes, one.blocks * block_bytes) for one in told_of if one.mapped]
        after = max((one.block + one.blocks for one in told_of), default=block)
        if after <= block:
            break
        block = after
    if block:
        keep(facts, mapped[:_MOST_EXTENTS])
        if block * block_bytes < size_bytes:
            facts.allocated_bytes = None  # it did not tell of all


def from_loop(host: Host, facts: Facts, handle: int) -> None:
    """The extents of the file behind a loop device that are no holes. handle: the open loop device."""
    behind, path = loop.at(host, handle), facts.identity.backing_file
    if behind is None or behind.node or not path:
        return
    try:
        file = host.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return
    try:
        status = os.fstat(file)
        # The path may lead to another file by now, or in another mount namespace.
        if stat.S_ISREG(status.st_mode) and behind.is_file(status):
            end = behind.offset_bytes + (facts.identity.size_bytes or 0)
            keep(
                facts,
                [
                    Extent(extent.offset - behind.offset_bytes, extent.length)
                    for extent in _data(file, behind.offset_bytes, end)
                ],
            )
    except OSError:
        pass  # its file system does not tell
    finally:
        os.close(file)


def from_zones(host: Host, facts: Facts, handle: int) -> list[str]:
    """Return what speaks of data in the zones of a host-managed drive: one that is not empty holds some, whatever it
    reads as. Raises OSError.
    """
    if facts.identity.zone_model != zones.HOST_MANAGED:
        return []
    every = zones.report(host, handle, facts.identity.size_bytes or 0)
    used = [zone for zone in every if zone.holds_data]
    keep(facts, [Extent(zone.start_bytes, zone.written_bytes) for zone in used if zone.written_bytes][:_MOST_EXTENTS])
    where = f", the first at byte {used[0].start_bytes}" if used else ""
    return [f"{len(used)} of its {len(every)} zones are not empty{where}"] if used else []


def _data(file: int, start: int, end: int) -> list[Extent]:
    """Return what of a file between two offsets is data (lseek(2), SEEK_DATA)."""
    found: list[Extent] = []
    while start < end and len(found) < _MOST_EXTENTS:
        first = _seek(file, start, os.SEEK_DATA)
        if first is None or first >= end:
            break
        start = _seek(file, first, os.SEEK_HOLE) or end
        found.append(Extent(first, min(start, end) - first))
    return found


def _seek(file: int, start: int, whence: int) -> int | None:
    try:
        return os.lseek(file, start, whence)
    except OSError as error:
        if error.errno == errno.ENXIO:  # nothing more
            return None
        raise
