# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel itself counts of a drive's writes: whether anybody wrote since we let go of it."""

from __future__ import annotations

import typing as t

from ..core.host import BOOT_ID, Host
from .facts import WRITING

# /sys/block/*/stat: sectors written and discarded since the drive was attached (Documentation/block/stat.rst).
_WRITTEN, _DISCARDED = 6, 13


class Written(t.NamedTuple):
    """How much the kernel has written to a drive since it was attached, which attachment that is, and whether it
    counts.
    """

    boot_id: str | None
    diskseq: int | None
    sectors: list[int]
    iostats: bool


def untouched(host: Host, entry: t.Mapping[str, t.Any], identity: t.Mapping[str, t.Any]) -> bool:
    """Return whether the kernel itself vouches that nobody wrote since we let go: same boot, same attachment, counters
    on and unchanged.

    Never for a file's loop device, since its file can be written without it; nor for an entry that says `writing`: we
    know not who wrote last; nor for a drive that we left blank: what is on it now came there, if only past the counters
    (nvme write, sg_dd).
    """
    before, now_written = entry.get("written"), written(host, identity)
    if entry["state"] == WRITING or entry.get("blank") or identity.get("backing_file") or not isinstance(before, dict):
        return False
    return all(now_written) and all(before.get(key) == value for key, value in now_written._asdict().items())


def touched(host: Host, entry: t.Mapping[str, t.Any], identity: t.Mapping[str, t.Any]) -> bool:
    """Return whether the kernel itself counted writes since we let go, in the same boot and attachment: then nothing
    that is seen by chance proves otherwise.
    """
    before, after = entry.get("written"), written(host, identity)
    if entry["state"] == WRITING or not isinstance(before, dict):
        return False
    same = (before.get("boot_id"), before.get("diskseq")) == (after.boot_id, after.diskseq)
    return same and before.get("sectors") != after.sectors


def written(host: Host, identity: t.Mapping[str, t.Any]) -> Written:
    """Return what the kernel counts by now."""
    fields = (host.get("/sys/block/{}/stat".format(identity["kernel_name"])) or "").split()
    sectors = [
        int(fields[place]) for place in (_WRITTEN, _DISCARDED) if place < len(fields) and fields[place].isdigit()
    ]
    iostats = host.get("/sys/block/{}/queue/iostats".format(identity["kernel_name"])) == "1"
    return Written(host.get(BOOT_ID), identity.get("diskseq"), sectors, iostats)


def bytes_written(host: Host, name: str) -> int | None:
    """Bytes that the kernel has written to a device since it was attached; None: it does not count. Raises OSError,
    ValueError and IndexError where its count can't be read.
    """
    if host.get(f"/sys/class/block/{name}/queue/iostats") == "0":
        return None
    return int(host.read(f"/sys/class/block/{name}/stat").split()[_WRITTEN]) * 512
