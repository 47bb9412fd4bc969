# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ways to empty any drive: deallocate and overwrite. Neither is a purge as the SNIA PTS means it (`not_pts`)."""

from __future__ import annotations

import functools
import struct
import typing as t

from ..core.host import Host
from ..records.identity import Identity
from ..records.plan import PlannedPurge
from ..records.purge import AnyDrive as Capabilities
from .method import NOT_PTS, Command, Done, Method, PurgeError, Work

FAMILY = "any"
BLKDISCARD = 0x1277  # include/uapi/linux/fs.h
# A discard of the whole drive in one call can't be interrupted or show progress.
DISCARD_STEP_BYTES = 1 << 30


def capabilities(host: Host, identity: Identity) -> Capabilities:
    """Return whether the kernel takes discards for the drive, in bytes at a time."""
    del host
    return Capabilities(identity.path, identity.size_bytes, identity.max_discard_bytes)


def _can_discard(found: Capabilities) -> str:
    return "" if found.max_discard_bytes else "the kernel reports no discard limit for it"


def _discard_command(found: Capabilities, _options: PlannedPurge) -> list[Command]:
    return [["ioctl", "BLKDISCARD", str(found.path), "0", str(found.size_bytes)]]


def discard(
    host: Host,
    handle: int,
    path: str,
    size: int,
    bounded: t.Callable[[str, t.Callable[[], t.Any]], t.Any],
    tick: t.Callable[[float], object],
) -> None:
    """Discard a whole drive through the descriptor that we hold (blkdiscard would get EBUSY). tick: gets the share that
    is done. Raises PurgeError, and what `bounded` and `tick` raise.
    """
    host.note_ioctl("BLKDISCARD", path, 0, size)
    for start in range(0, size, DISCARD_STEP_BYTES):
        length = min(DISCARD_STEP_BYTES, size - start)
        extent = struct.pack("=QQ", start, length)
        try:
            bounded("discard", functools.partial(host.ioctl, handle, BLKDISCARD, extent))
        except OSError as error:
            raise PurgeError(f"the drive refused to deallocate at byte {start}: {error.strerror}") from None
        tick((start + length) / size)


def _deallocate(work: Work, _found: Capabilities) -> Done:
    discard(work.host, work.handle, work.path, work.size_bytes, work.bounded, work.tick)
    return Done()


def _fill_command(_found: Capabilities, options: PlannedPurge) -> list[Command]:
    """Return the job text stands in the plan; the host gives the job's file the name of its test."""
    return [["fio", "--output-format=json+", "purge-fill.fio"]] if options.job else []


def _overwrite(work: Work, _found: Capabilities) -> Done:
    return Done(bytes_written=work.fill(work.tick))


METHODS = (
    Method(
        "deallocate",
        FAMILY,
        NOT_PTS,
        20,
        _can_discard,
        _discard_command,
        _deallocate,
        is_hint=True,
        what="discards the whole drive, by ioctl on the open descriptor",
    ),
    Method(
        "overwrite",
        FAMILY,
        NOT_PTS,
        10,
        lambda _found: "",
        _fill_command,
        _overwrite,
        slow=True,
        what="one pass of random data through fio",
    ),
)
