# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report/summary.json of runs on this controller: a baseline by its id, and the runs before one. Reads only."""

from __future__ import annotations

import itertools
import os
import typing as t

from ...module_utils.core.files import SCHEMA_VERSION, read_json
from ...module_utils.run.folder import RUN_ID_PATTERN
from ..validation import printable
from . import run_record, runs

Mapping = t.Mapping[str, t.Any]


def read(results_dir: str, run_id: str) -> Mapping | None:
    """Return a run's summary; None where it has none that can be read."""
    if not RUN_ID_PATTERN.fullmatch(run_id):
        return None
    try:
        found = printable.writable(read_json(os.path.join(results_dir, run_id, run_record.SUMMARY)))
    except (OSError, ValueError):
        return None
    return found if _is_sound(found) else None


def _is_sound(found: t.Any) -> bool:
    """Return whether it has what is read of it here: a damaged one of yesterday costs tonight's report nothing."""
    try:
        tests = [test for drive in found["drives"] for test in drive["tests"]]
        outliers = (found.get("fleet") or {}).get("outliers") or []
        texts = [found["run"]["id"], *(test[key] for test in tests for key in ("test", "verdict"))]
        texts += [drive[key] for drive in found["drives"] for key in ("host", "drive", "verdict")]
        texts += [item[key] for item in outliers for key in ("host", "serial")]
        texts += [item["host"] for item in (found.get("fleet") or {}).get("low_hosts") or []]
        return (
            found["schema_version"] == SCHEMA_VERSION
            and all(isinstance(text, str) for text in texts)
            and all(isinstance(test["metrics"], dict) and isinstance(test["counts"], bool) for test in tests)
        )
    except (KeyError, TypeError, AttributeError):
        return False


def earlier(results_dir: str, run: Mapping, most: int) -> t.Iterator[Mapping]:
    """Summaries of the runs of this name that began before this one, newest first, at most so many; each is read when
    it is asked for.
    """
    name, run_id, started = run["run"]["name"], run["run"]["id"], run.get("started") or ""
    before = [
        own
        for own in runs.on_controller(results_dir)
        if own.name == name and own.id != run_id and own.started < started
    ]
    ids = [own.id for own in sorted(before, key=lambda own: (own.started, own.id), reverse=True)]
    # A night that was killed before its report is no night of them.
    return itertools.islice(filter(None, (read(results_dir, own_id) for own_id in ids)), most)
