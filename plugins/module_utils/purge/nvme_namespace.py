# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A namespace as its purge methods see it: what else a command would hit, and what it is right before and after."""

from __future__ import annotations

import os
import typing as t

from ..tools import nvme_capabilities
from ..tools.nvme import NvmeError
from .method import Capabilities, PurgeError, Work

FAMILY = "nvme"
# What has to be the same right before a command as when the method was chosen.
_SAME = ("serial", "namespace_id", "eui64", "nguid", "uuid", "size_bytes", "namespaces", "controllers")


def others(found: Capabilities) -> list[int]:
    """Return the other namespaces of its subsystem."""
    return [number for number in found["namespaces"] if number != found["namespace_id"]]


def named(numbers: t.Sequence[int]) -> str:
    """Namespaces in words: "namespaces 2, 3"."""
    shown = ", ".join(str(number) for number in numbers[:8])
    return "namespace{0} {1}{2}".format("s" * (len(numbers) != 1), shown, " …" * (len(numbers) > 8))


def look_again(work: Work) -> Capabilities:
    """Return what the namespace behind the held descriptor tells now. Raises PurgeError when it is not what it was."""
    number = os.fstat(work.handle).st_rdev
    name = os.path.basename(work.host.realpath(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}"))
    try:
        found = nvme_capabilities.gather(work.host, work.identity, name)
    except NvmeError as error:
        raise PurgeError(f"the drive cannot be identified: {error}") from None
    changed = [key for key in _SAME if found[key] != work.capabilities[key]]
    if changed:
        raise PurgeError(
            "{0} changed since the drive was checked; nothing more was done to it".format(", ".join(changed))
        )
    return found


def read_formats(work: Work) -> dict[str, t.Any]:
    """lba_formats of a purge that ended while nobody watched: before it, and now. Raises PurgeError."""
    return lba_formats(work.capabilities, look_again(work))


def lba_formats(before: Capabilities, after: Capabilities) -> dict[str, t.Any]:
    """Fields of the purge record: the LBA format in use before and after."""
    return {
        "lba_format_" + when: next((item for item in found["lba_formats"] if item["index"] == found["lba_format"]), {})
        for when, found in (("before", before), ("after", after))
    }
