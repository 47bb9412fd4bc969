# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a run on the controller, and its own record among them, run.json."""

from __future__ import annotations

import json
import os
import typing as t

from ...module_utils.core.files import read_json, write_atomic
from ..validation import printable

RUN, RESULTS = "run.json", "results.jsonl"
# What `asked` keeps of the cells that a drive has.
OF_CELLS = ("preferred_write_bytes",)
SUMMARY = os.path.join("report", "summary.json")


def results_size(folder: str) -> int:
    """Return how many bytes a run's results.jsonl has; 0 where there is none."""
    try:
        return os.path.getsize(os.path.join(folder, RESULTS))
    except OSError:
        return 0


def read_run(folder: str) -> dict[str, t.Any] | None:
    """run.json, None when there is none. Raises ValueError for a damaged one."""
    try:
        record = read_json(os.path.join(folder, RUN))
    except OSError as error:
        raise ValueError(error.strerror) from error
    if record is not None and not (
        isinstance(record, dict) and isinstance(record.get("asked"), list) and isinstance(record.get("tests"), dict)
    ):
        raise ValueError("it is not a run's record")
    # An inventory may call a host or a rack anything.
    sound: dict[str, t.Any] | None = printable.writable(record)
    return sound


def write_run(folder: str, record: t.Mapping[str, t.Any]) -> bool:
    """Write run.json; what other plays of the same run asked for stays (a --limit, a job slice). Whether it changed.
    Raises OSError.
    """
    path = os.path.join(folder, RUN)
    merged = merge_run(read_json(path), record)
    content = json.dumps(merged, indent=1, sort_keys=True) + "\n"
    os.makedirs(folder, exist_ok=True)
    if _read(path) == content:
        return False
    write_atomic(path, content)
    return True


def merge_run(before: t.Mapping[str, t.Any] | None, now: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return the record of a run that is gone on with: its start, its warnings, and the drives and tests of hosts that
    are not asked now stay.
    """
    if not before:
        return dict(now)
    hosts = {entry["host"] for entry in now["asked"]}
    kept = [entry for entry in before["asked"] if entry["host"] not in hosts]
    # A run that is under way keeps the cells that it began with, whatever a format made of the drive since.
    cells = {
        (entry["host"], entry["drive"]): {key: entry[key] for key in OF_CELLS if key in entry}
        for entry in before["asked"]
    }
    merged = {
        **now,
        # Slices of one run come in any order.
        "started": min(filter(None, (before["started"], now["started"])), default=None),
        "asked": kept + [{**cells.get((entry["host"], entry["drive"]), {}), **entry} for entry in now["asked"]],
        "tests": {**before["tests"], **now["tests"]},
    }
    warned = list(before.get("warnings") or [])
    warned += [item for item in now.get("warnings") or [] if item not in warned]
    return {**merged, "warnings": warned} if warned else merged


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as source:
            return source.read()
    except FileNotFoundError:
        return None
