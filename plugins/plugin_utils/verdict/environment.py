# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a record says of the drive's world: causes that disturb it, that are unknown, and that are only told; and
whether a run wrote more than ssd_wear_budget allows (preflight goes by an assumed rate, and a faster drive writes
more). Pure.
"""

from __future__ import annotations

import typing as t

from ...module_utils.measure.disturbances import DISTURBS, UNKNOWN
from ...module_utils.run.criteria import MEASURED
from ..common import units
from ..common.values import number

# NVMe's Percentage Used goes to 255; an amplification beyond these is a drive's slip, or its host's.
MOST_USED_PCT, LEAST_AMPLIFICATION, MOST_AMPLIFICATION = 255, 0.01, 100
# Between what a test wrote and the drive's count of it: units of up to 1 GiB, counts that lag, what a purge wrote, and
# cells that were measured again.
COUNTED_SHARE, COUNTED_TIMES, COUNTED_BYTES = 0.9, 2, 10 << 30

Mapping = t.Mapping[str, t.Any]


def unknown_problem(record: Mapping) -> str:
    """Return why a steady or complete record can't count where what is unknown invalidates (ssd_unknown_causes); ""
    when it may.
    """
    unknown = [str(item["message"]) for item in record.get("conditions") or [] if item.get("level") == UNKNOWN]
    return "; ".join(unknown) or "; ".join(uncounted(record))


def remarks(record: Mapping) -> list[str]:
    """Return what is told and disturbs nothing, as sentences; "unknown" stands before what nobody could see."""
    others = [item for item in record.get("conditions") or [] if item.get("level") != DISTURBS]
    return (
        [f"{'unknown: ' if item['level'] == UNKNOWN else ''}{item['message']}" for item in others]
        + settings(record)
        + wear(record)
        + [f"unknown: {text}" for text in uncounted(record)]
    )


def uncounted(record: Mapping) -> list[str]:
    """Writes of a fill and of an array that nothing counted, as sentences: that all was written is fio's word alone."""
    done = record.get("precondition") or {}
    found = []
    if done and done.get("kernel_bytes_written", 0) is None:
        found.append("the kernel does not count writes to this drive, so it is unknown whether the fill was complete")
    members = (record.get("array") or {}).get("members") or []
    uncounted = [str(member.get("drive")) for member in members if member.get("bytes_written") is None]
    if uncounted:
        found.append(f"it is unknown whether the array wrote to {', '.join(uncounted)}: nobody counted the writes")
    return found


def settings(record: Mapping) -> list[str]:
    """Return the vendor's settings that were in force, in a sentence; none for a drive without them."""
    seen = record.get("vendor_settings") or {}
    told = ", ".join(
        f"{name} {value}" for name, value in sorted((seen.get("settings") or {}).items()) if value is not None
    )
    return [f"settings in force by {seen.get('tool')}: {told}"] if told else []


def wear(record: Mapping) -> list[str]:
    """Return what the test cost, in a sentence, and in another what speaks against it. None where the drive does not
    count.
    """
    spent = record.get("wear") or {}
    # A host may send an integer of any length, which no arithmetic takes.
    spent = {key: value for key, value in spent.items() if number(value) is not None}
    written, media, used = spent.get("host_bytes"), spent.get("media_bytes"), spent.get("used_pct")
    told = [] if written is None else [f"{units.data_size(written)} were written to it, purge and fill included"]
    if media is not None:
        told.append(f"{units.data_size(media)} to its flash")
    if spent.get("write_amplification") is not None:
        told.append(f"write amplification {spent['write_amplification']:g}")
    # Every new drive would tell 0 % of every test.
    told += [f"{used} % of its rated life is used"] if used else []
    doubts = [*_out_of_range(spent), *_uncounted(record, number(written))]
    return [f"by the drive's own count {', '.join(told)}"] * bool(told) + [
        f"that count can't be right, so judge its wear by none of it: {'; '.join(doubts)}"
    ] * bool(doubts)


def _out_of_range(spent: Mapping) -> list[str]:
    """Return what no drive can count."""
    used, told = number(spent.get("used_pct")), number(spent.get("write_amplification"))
    found = []
    if used is not None and not 0 <= used <= MOST_USED_PCT:
        found.append(f"{used:g} % used is not from 0 to {MOST_USED_PCT}")
    if told is not None and not LEAST_AMPLIFICATION <= told <= MOST_AMPLIFICATION:
        found.append(f"a write amplification of {told:g} is not from {LEAST_AMPLIFICATION} to {MOST_AMPLIFICATION}")
    host, media = number(spent.get("host_bytes")), number(spent.get("media_bytes"))
    if told is not None and host and media is not None and abs(told - media / host) > 0.01 * max(told, 0.1):
        found.append(f"its own counts give a write amplification of {media / host:.3g}, not {told:g}")
    return found


def _uncounted(record: Mapping, counted: float | None) -> list[str]:
    """Return where the drive counted much less than the test wrote to it by its journal, or much more."""
    of_cells = record.get("written_bytes")
    if counted is None or of_cells is None or record.get("outcome") not in MEASURED:
        return []
    fill = (record.get("precondition") or {}).get("bytes_written") or 0
    # An array's writes are shared among its members; the count is that of the one that carries the test.
    wrote = (of_cells + fill) / max(1, len((record.get("array") or {}).get("members") or []))
    shown = f"it counted {units.data_size(int(counted))}, but the test wrote {units.data_size(int(wrote))} to it"
    purge = (record.get("purge") or {}).get("method", "none") != "none"
    low = counted < COUNTED_SHARE * wrote - COUNTED_BYTES
    high = not purge and counted > COUNTED_TIMES * wrote + COUNTED_BYTES
    return [shown] if low or high else []


def written_bytes(record: Mapping, size_bytes: int | None) -> float:
    """Return what a test wrote to the drive at least: its cells by its journal, its fill, and a purge that overwrites;
    of an array its share of them.
    """
    first = (record.get("again") or {}).get("first") or {}
    found = 0.0
    for one in (record, first):
        of_cells = one.get("written_bytes") or 0
        fill = (one.get("precondition") or {}).get("bytes_written") or 0
        members = len((one.get("array") or {}).get("members") or []) or 1
        overwritten = (one.get("purge") or {}).get("method") == "overwrite"
        found += (of_cells + fill) / members + (size_bytes or 0) * overwritten
    return found


def wear_budget_remark(budget_bytes: int | None, records: t.Iterable[Mapping], size_bytes: int | None) -> str:
    """That a drive's tests wrote more than its budget, as a sentence; "" where they did not, or there is none."""
    if budget_bytes is None:
        return ""
    wrote = sum(written_bytes(record, size_bytes) for record in records)
    if wrote <= budget_bytes:
        return ""
    return (
        f"the run wrote at least {units.data_size(wrote)} to this drive, more than the {units.data_size(budget_bytes)} "
        "of ssd_wear_budget: if it is faster than ssd_assumed_write_mib_s, set that to auto"
    )
