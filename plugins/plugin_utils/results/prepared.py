# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a test's drive was purged and filled as run.json asked, by its record: a drive that was not is faster; and
whether it was measured raw or on the file system that was asked for. Pure.
"""

from __future__ import annotations

import typing as t

from ...module_utils.measure import fillcurve
from ...module_utils.tools import mdadm

# A later test's format may have given the drive another size than the one that was filled: 80 % to 100 % of a card.
LEAST_SHARE = 0.75

Mapping = t.Mapping[str, t.Any]


def problem(record: Mapping, about: Mapping, size_bytes: int | None, drives: t.Mapping[str, bool] | None = None) -> str:
    """Why a steady or complete record can't count; "" when it may. about: the test in run.json; what an older one does
    not tell is not asked. size_bytes: the drive's, by its record. drives: those of its host that the run asks for, and
    whether each is left out; None: nobody knows.
    """
    several = record.get("array") or {}
    return (
        _purge(record.get("purge") or {}, about)
        or _array(several, about, size_bytes)
        or (_members(several["members"], drives) if several and drives is not None else "")
        or _fill(record.get("precondition") or {}, about, several.get("size_bytes") or size_bytes)
        or _filesystem(record.get("filesystem") or {}, about)
    )


def unknown(record: Mapping) -> list[str]:
    """What nobody can tell of a drive's fill and of the drives of an array, as sentences: that all was written is fio's
    word alone.
    """
    done = record.get("precondition") or {}
    found = []
    if done and done.get("kernel_bytes_written", 0) is None:
        found.append("the kernel does not count writes to this drive, so it is unknown whether the fill was complete")
    members = (record.get("array") or {}).get("members") or []
    uncounted = [str(member.get("drive")) for member in members if member.get("bytes_written") is None]
    if uncounted:
        found.append(f"it is unknown whether the array wrote to {', '.join(uncounted)}: nobody counted the writes")
    return found


def _purge(done: Mapping, about: Mapping) -> str:
    asked = (about.get("purge") or {}).get("method", "none")
    if asked == "none":
        return ""
    method = done.get("method", "none")
    if method == "none" or asked not in ("auto", method):
        return f"the run asks for the purge {asked}, but its record has {'none' if method == 'none' else method}"
    looked = done.get("verification") or {}
    if not done.get("verified") or looked.get("survived") or looked.get("sentinels") == 0:
        return f"its purge {method} was not verified"
    return ""


def _fill(done: Mapping, about: Mapping, size_bytes: int | None) -> str:
    asked = about.get("precondition") or {}
    if not asked:
        return ""
    passes, written = asked.get("passes") or 1, done.get("bytes_written") or 0
    if (done.get("passes") or 0) < passes:
        return f"the run asks for a fill of {passes} passes, but its record has {done.get('passes') or 'none'}"
    least = LEAST_SHARE * passes * (size_bytes or 0) * (about.get("active_range_pct") or 100) / 100
    if written < least:
        return f"its fill of {passes} passes wrote only {written} bytes on a drive of {size_bytes}"
    try:
        fillcurve.check(done.get("kernel_bytes_written"), written)
    except fillcurve.Short as error:
        return str(error)
    return ""


def _array(done: Mapping, about: Mapping, size_bytes: int | None) -> str:
    """Whether it was measured on the array that was asked for, of drives like this one, and that wrote to all."""
    asked = about.get("array") or {}
    if not asked and not done:
        return ""
    if not asked or not done:
        return f"the run asks for {'an' if asked else 'no'} array, but its record has {'one' if done else 'none'}"
    members = done.get("members") or []
    number = asked["drives"] if isinstance(asked.get("drives"), int) else max(2, len(members))
    if any(done.get(key) != asked.get(key) for key in ("level", "chunk_bytes")) or len(members) != number:
        return "its array is not the one that the run asks for (level, chunk_bytes or number of drives)"
    if len({member.get("drive") for member in members}) != number:
        return "its array lists a drive twice"
    most = number * (size_bytes or 0)
    if size_bytes and not most - number * done["chunk_bytes"] <= (done.get("size_bytes") or 0) <= most:
        return f"its array has {done.get('size_bytes')} bytes, which does not match {number} drives of {size_bytes}"
    chunk, sizes = done["chunk_bytes"], [(str(member.get("drive")), member.get("size_bytes")) for member in members]
    other = [name for name, size in sizes if size_bytes and size is not None and size // chunk != size_bytes // chunk]
    if other:
        return f"its array has drives of another size: {', '.join(other)}"
    amounts = [member.get("bytes_written") for member in members]
    idle = [name for (name, _size), amount in zip(sizes, amounts) if amount == 0]
    if idle:
        return f"its array wrote nothing to {', '.join(idle)}"
    unlike = [f"{sizes[place][0]} ({amounts[place]} bytes)" for place in mdadm.uneven(amounts)]
    return f"its array did not write to all of its drives alike: {', '.join(unlike)}" if unlike else ""


def _members(members: t.Sequence[Mapping], drives: t.Mapping[str, bool]) -> str:
    """Whether an array is of all drives of its host: of fewer ones, or of others, its figures are another array's."""
    told = {str(member.get("drive")) for member in members}
    lacking = sorted(name for name in drives if name not in told)
    more = sorted(told.difference(drives))
    found = [f"lacks {', '.join(lacking)}"] * bool(lacking) + [f"has {', '.join(more)}, not asked for"] * bool(more)
    return f"its array is not of all drives of its host: it {' and '.join(found)}" if found else ""


def _filesystem(done: Mapping, about: Mapping) -> str:
    """Whether it was measured on the file system that was asked for, or on none."""
    asked = about.get("filesystem") or {}
    if not asked and not done:
        return ""
    if not asked or not done:
        return (
            f"the run asks for {asked.get('type') or 'no file system'}, but its record has {done.get('type') or 'none'}"
        )
    wrong = [key for key in ("type", "block_size_bytes", "mount_options", "stripe") if done.get(key) != asked.get(key)]
    return f"its file system is not the one that the run asks for (differs in: {', '.join(wrong)})" if wrong else ""
