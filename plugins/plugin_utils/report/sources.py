# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the report is made from."""

from __future__ import annotations

import typing as t

from .raw import HostRaw

Mapping = t.Dict[str, t.Any]
Records = t.Dict[t.Tuple[str, str, str], Mapping]


class Sources(t.NamedTuple):
    """All that a view is made from. `records`: test records by (host, drive, test); `drives`: drive records by (host, drive)."""

    run: Mapping
    judgement: Mapping
    records: Records
    drives: dict[tuple[str, str], Mapping]
    hosts: dict[str, Mapping]
    raw: dict[str, HostRaw]
    damaged_lines: list[int]
    fleet: Mapping = {}
