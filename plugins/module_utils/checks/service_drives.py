# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The part service_drives of the module examine: the drives of ssd_service_drives, and those that are in both lists."""

from __future__ import annotations

import typing as t

from ..core.host import Host
from ..drive.entry import parse
from ..guard import service_drives
from ..records import base
from ..records.found_drives import FoundDrive

OPTIONS: dict[str, t.Any] = {
    "reads": {"type": "bool", "default": False},
    "drives": {"type": "list", "elements": "raw", "default": []},
    "all": {"type": "bool", "default": False},
    "others": {"type": "list", "elements": "raw", "default": []},
    "all_others": {"type": "bool", "default": False},
}


def module_result(host: Host, options: dict[str, t.Any], erased: t.Sequence[dict[str, t.Any]] = ()) -> dict[str, t.Any]:
    """Return the drives of the list that is asked for, with a refusal of those that the other list has too. erased:
    what drive_facts found of those that are to be erased, where nothing is to be read. Raises ValueError where it is
    not known which drives are in service, and others are to be erased.
    """
    if not options["reads"]:
        drives = [base.parse(FoundDrive, one) for one in erased]
    elif options["all"]:
        drives = service_drives.whole(host)
    else:
        drives = service_drives.found(host, [parse(drive) for drive in options["drives"]])
    other = service_drives.protection(host, [parse(drive) for drive in options["others"]])
    if other.problems and not options["reads"]:
        raise ValueError(f"drives of ssd_service_drives may not be erased, and which? {'; '.join(other.problems)}")
    found = service_drives.in_both(drives, None if options["all_others"] else other.paths)
    return {
        "drives": [base.sparse_json(one) for one in found],
        "service_not_found": [] if options["reads"] else other.not_found,
    }
