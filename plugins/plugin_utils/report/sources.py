# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the report is made from."""

from __future__ import annotations

import typing as t

from .raw import HostRaw

Mapping = dict[str, t.Any]
Key = tuple[str, str]
NO_RAW = HostRaw({}, [], {}, {})


class Sources(t.NamedTuple):
    """All that the pages are made from; a Key is (host, drive).

    `tests`: a drive's test records by name, with `cells`. `drives`, `hosts`: their records. `raw`: reads what a host
      left (raw.read), as often as it is
    asked. `outlines`: {test: series.outline} of each drive. `derived`: derived.of_drive of each drive.
    """

    run: Mapping
    judgement: Mapping
    fleet: Mapping
    tests: dict[Key, dict[str, Mapping]]
    drives: dict[Key, Mapping]
    hosts: dict[str, Mapping]
    raw: t.Callable[[str], HostRaw]
    outlines: dict[Key, dict[str, Mapping]]
    derived: dict[Key, Mapping]
    damaged_lines: list[int]


def racks(run: Mapping) -> dict[str, str]:
    """The rack of each host that has one (ssd_rack), as preflight noted it."""
    return {entry["host"]: str(entry["rack"]) for entry in run.get("asked") or [] if entry.get("rack")}
