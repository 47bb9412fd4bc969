# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel itself counts of a drive's writes: whether anybody wrote since we let go of it."""

from __future__ import annotations

from ..core.host import BOOT_ID, Host
from ..records.ledger import LedgerEntry, Written
from .facts import WRITING, Names

# /sys/block/*/stat: sectors written and discarded since the drive was attached (Documentation/block/stat.rst).
_WRITTEN, _DISCARDED = 6, 13


def untouched(host: Host, entry: LedgerEntry, identity: Names) -> bool:
    """Return whether the kernel itself vouches that nobody wrote since we let go: same boot, same attachment, counters
    on and unchanged.

    Never for a file's loop device, since its file can be written without it; nor for an entry that says `writing`: we
    know not who wrote last; nor for a drive that we left blank: what is on it now came there, if only past the counters
    (nvme write, sg_dd).
    """
    return not identity.get("backing_file") and uncounted(host, entry, identity)


def uncounted(host: Host, entry: LedgerEntry, identity: Names) -> bool:
    """Return whether the kernel counted no write since we let go, in the same boot and attachment; of a loop device's
    file that is no proof yet (untouched).
    """
    before, after = entry.written, written(host, identity)
    if entry.state == WRITING or entry.blank or before is None:
        return False
    return bool(after.boot_id and after.diskseq and after.sectors and after.iostats) and before == after


def touched(host: Host, entry: LedgerEntry, identity: Names) -> bool:
    """Return whether the kernel itself counted writes since we let go, in the same boot and attachment: then nothing
    that is seen by chance proves otherwise.
    """
    before, after = entry.written, written(host, identity)
    if entry.state == WRITING or before is None:
        return False
    return (before.boot_id, before.diskseq) == (after.boot_id, after.diskseq) and before.sectors != after.sectors


def written(host: Host, identity: Names) -> Written:
    """Return what the kernel counts by now."""
    fields = (host.get("/sys/block/{}/stat".format(identity["kernel_name"])) or "").split()
    sectors = [
        int(fields[place]) for place in (_WRITTEN, _DISCARDED) if place < len(fields) and fields[place].isdigit()
    ]
    iostats = host.get("/sys/block/{}/queue/iostats".format(identity["kernel_name"])) == "1"
    diskseq = identity.get("diskseq")
    return Written(host.get(BOOT_ID), diskseq if isinstance(diskseq, int) else None, sectors, iostats)


def bytes_written(host: Host, name: str) -> int | None:
    """Bytes that the kernel has written to a device since it was attached; None: it does not count. Raises OSError,
    ValueError and IndexError where its count can't be read.
    """
    if host.get(f"/sys/class/block/{name}/queue/iostats") == "0":
        return None
    return int(host.read(f"/sys/class/block/{name}/stat").split()[_WRITTEN]) * 512
