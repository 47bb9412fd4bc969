# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a run wrote more to a drive than ssd_wear_budget allows: preflight goes by an assumed rate, and a faster
drive writes more in the same time. Pure.
"""

from __future__ import annotations

import typing as t

from ..common import units

Mapping = t.Mapping[str, t.Any]


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


def remark(budget_bytes: int | None, records: t.Iterable[Mapping], size_bytes: int | None) -> str:
    """That a drive's tests wrote more than its budget, as a sentence; "" where they did not, or there is none."""
    if budget_bytes is None:
        return ""
    wrote = sum(written_bytes(record, size_bytes) for record in records)
    if wrote <= budget_bytes:
        return ""
    return (
        f"the run wrote at least {units.data_size(wrote)} to this drive, more than the {units.data_size(budget_bytes)} "
        "of ssd_wear_budget: if it is faster than ssd_assumed_write_mib_s, set that to what the drive can do"
    )
