# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a record says of the drive's world: causes that spoil it, that are unknown, and that are only told. Pure."""

from __future__ import annotations

import typing as t

from ...module_utils.measure.causes import SPOILS, UNKNOWN
from ..common import units

Mapping = t.Mapping[str, t.Any]


def problem(record: Mapping, strict: bool = False) -> str:
    """Why a steady or complete record can't count; an empty string when it may. strict: what is unknown spoils too
    (ssd_unknown_causes).
    """
    levels = (SPOILS, UNKNOWN) if strict else (SPOILS,)
    return "; ".join(str(item["message"]) for item in record.get("conditions") or [] if item.get("level") in levels)


def remarks(record: Mapping) -> list[str]:
    """What is told and spoils nothing, as sentences; the word "unknown" stands before what nobody could see."""
    others = [item for item in record.get("conditions") or [] if item.get("level") != SPOILS]
    return (
        [f"{'unknown: ' if item['level'] == UNKNOWN else ''}{item['message']}" for item in others]
        + settings(record)
        + wear(record)
    )


def settings(record: Mapping) -> list[str]:
    """The vendor's settings that were in force, in a sentence; none for a drive without them."""
    seen = record.get("vendor_settings") or {}
    told = ", ".join(
        f"{name} {value}" for name, value in sorted((seen.get("settings") or {}).items()) if value is not None
    )
    return [f"settings in force by {seen.get('tool')}: {told}"] if told else []


def wear(record: Mapping) -> list[str]:
    """What the test cost, in a sentence; none for a drive that does not count it."""
    spent = record.get("wear") or {}
    written, media, used = spent.get("host_bytes"), spent.get("media_bytes"), spent.get("used_pct")
    told = [] if written is None else [f"{units.data_size(written)} were written to it, purge and fill included"]
    if media is not None:
        told.append(f"{units.data_size(media)} to its flash")
    if spent.get("write_amplification") is not None:
        told.append(f"write amplification {spent['write_amplification']:g}")
    told += [] if used is None else [f"{used} % of its rated life is used"]
    return [f"by the drive's own count {', '.join(told)}"] if told else []
