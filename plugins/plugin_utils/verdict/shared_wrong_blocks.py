# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wrong blocks on several drives of a host in one run: what they share is likelier to err than all of them. Pure."""

from __future__ import annotations

import typing as t

from ...module_utils.records import base
from ...module_utils.records.measurement import IntegrityDetails
from ...module_utils.run.criteria import is_of_drive

MOST_NAMED = 10


def read_back(record: t.Mapping[str, t.Any]) -> IntegrityDetails | None:
    """Return what the record of an integrity test says of the drive's blocks; None: of any other test."""
    return base.parse(IntegrityDetails, record["integrity"]) if record.get("integrity") else None


def by_host(records: t.Iterable[t.Mapping[str, t.Any]]) -> dict[str, list[str]]:
    """Return the drives with wrong blocks that their host may have made, by host. records: of tests."""
    drives: dict[str, dict[str, None]] = {}
    for record in records:
        found = read_back(record)
        if found and set(found.wrong_blocks) - {"unreadable"} and is_of_drive(found, record.get("outcome")):
            drives.setdefault(record["host"], {})[record["drive"]] = None
    return {host: list(names) for host, names in drives.items()}


def host_fault(host: str, drives: t.Sequence[str]) -> str:
    """Return why the wrong blocks of one of these drives are held against their host; "" where it is the only one."""
    if len(drives) < 2:
        return ""
    named = ", ".join(drives[:MOST_NAMED]) + (", …" if len(drives) > MOST_NAMED else "")
    return (
        f"{len(drives)} drives of {host} have wrong blocks ({named}), so its memory, HBA, backplane or driver comes "
        "first; test one of them in another host: what is wrong there too is the drive's"
    )
