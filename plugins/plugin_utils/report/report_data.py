# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the report is made from."""

from __future__ import annotations

import typing as t

from .host_journal import HostRaw

Record = dict[str, t.Any]
Key = tuple[str, str]
NO_RAW = HostRaw({}, [], {}, {})


class Sources(t.NamedTuple):
    """All that the pages are made from; a Key is (host, drive).

    `tests`: a drive's test records by name, with `cells`. `drives`, `hosts`: their records. `raw`: reads what a host
      left (host_journal.read), as often as it is
    asked. `outlines`: {test: chart_series.outline} of each drive. `derived`: derived_metrics.of_drive of each drive.
    """

    run: Record
    judgement: Record
    fleet: Record
    tests: dict[Key, dict[str, Record]]
    drives: dict[Key, Record]
    hosts: dict[str, Record]
    raw: t.Callable[[str], HostRaw]
    outlines: dict[Key, dict[str, Record]]
    derived: dict[Key, Record]
    damaged_lines: list[int]


def racks(run: Record) -> dict[str, str]:
    """Return the rack of each host that has one (ssd_rack), as preflight noted it."""
    return {entry["host"]: str(entry["rack"]) for entry in run.get("asked") or [] if entry.get("rack")}
