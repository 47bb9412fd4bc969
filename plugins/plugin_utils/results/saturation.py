# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a steady window began only after the drive can have left its fresh state, checked again from the records.
Pure.
"""

from __future__ import annotations

import typing as t

Mapping = t.Mapping[str, t.Any]


def problem(record: Mapping, rule: Mapping | None, size_bytes: int | None) -> str:
    """Why a steady record can't count yet; an empty string when it may.

    record: of the test, with `saturation` (docs/internals.md). rule: the test's steady_state as run.json keeps it.
      size_bytes: the drive's
    user capacity by its own record. What the host says of its own rule is not asked: only what it wrote, and what the
    controller wanted.
    """
    multiple, confirm, settle_s = (
        (rule or {}).get(key) or 0 for key in ("min_capacity_multiple", "confirm_windows", "settle_s")
    )
    if not multiple and not confirm and not settle_s:
        return ""
    shown = record.get("saturation")
    if not isinstance(shown, t.Mapping):
        return "the host does not report how much was written before its steady window, and how long that took"
    return (
        _written(shown, multiple, size_bytes)
        or _settled(shown, settle_s)
        or _agreement(shown, confirm, rule or {})
        or _last(record, shown, confirm)
    )


def _written(shown: Mapping, multiple: float, size_bytes: int | None) -> str:
    capacity = max(size_bytes or 0, shown.get("user_capacity_bytes") or 0)
    written = shown.get("written_before_bytes") or 0
    if not multiple or (capacity and written >= multiple * capacity):
        return ""
    said = f"{written / capacity:.2f} x" if capacity else f"{written} bytes of an unknown"
    return (
        f"its steady window began after {said} the user capacity was written, but {multiple:g} x is required: a fresh "
        "drive is faster than a full one"
    )


def _settled(shown: Mapping, settle_s: float) -> str:
    elapsed_s = shown.get("elapsed_before_s") or 0
    if elapsed_s >= settle_s:
        return ""
    return f"its steady window began after {elapsed_s:g} s of rounds, but settle_s requires {settle_s:g} s"


def _last(record: Mapping, shown: Mapping, confirm: int) -> str:
    """The last of the windows that agree is the one that counts."""
    averages = [window.get("average") for window in record.get("steady_state") or []]
    last = (shown.get("averages") or [[]])[-1]
    if not confirm or not averages or last == averages:
        return ""
    return f"the last of the windows that agree has the averages {last}, but the record's window has {averages}"


def _agreement(shown: Mapping, confirm: int, rule: Mapping) -> str:
    """Windows that follow each other have averages at most slope_limit apart, for every tracked variable."""
    windows = shown.get("averages") or []
    tracked = len(rule.get("tracked") or [])
    if len(windows) <= confirm or any(len(values) != tracked for values in windows):
        return f"{confirm + 1} windows must agree, but the record has {len(windows)}"
    for one, other in zip(windows, windows[1:]):
        for before, after in zip(one, other):
            if not before or not after or abs(before - after) > rule["slope_limit"] * after * (1 + 1e-9):
                return f"two windows that must agree have the averages {before} and {after}"
    return ""
