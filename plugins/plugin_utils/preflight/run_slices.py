# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a play of a run that is there already would take away from how its drives are judged. A run is judged as a
whole, by the last play: one that forgot the criteria would have every drive pass.
"""

from __future__ import annotations

import typing as t

from ..run_folder import run_record
from ..verdict import judged_criteria
from .findings import HostAnswer, Run, shared_value

CHECK = "criteria"
Mapping = t.Mapping[str, t.Any]


def given_up(before: Mapping, criteria: t.Any, unknown_causes: t.Any) -> list[str]:
    """Return what the run was begun with (run.json) and would be held to no longer, in words."""
    now = [judged_criteria.describe(dict(item)) for item in criteria or [] if isinstance(item, dict)]
    then = [judged_criteria.describe(item) for item in before.get("criteria") or [] if isinstance(item, dict)]
    strict = before.get("unknown_causes") == "spoil" and (unknown_causes or "warn") != "spoil"
    return [text for text in then if text not in now] + ["ssd_unknown_causes spoil"] * strict


def warnings(
    views: t.Sequence[HostAnswer], run: Run | None, run_folder: str, criteria: t.Any
) -> list[dict[str, t.Any]]:
    """For run.json: {host, check, drive, level, message, remedy}. A single step is judged by nothing."""
    if run is None or shared_value(views, "ssd_step") != "qualify":
        return []
    try:
        before = run_record.read_run(run_folder) or {}
    except ValueError:  # decision.py tells what is wrong with it
        return []
    lost = given_up(before, criteria, shared_value(views, "ssd_unknown_causes"))
    message = f"this play drops criteria that run {run.id} began with, for all of its drives: {'; '.join(lost)}"
    remedy = "give the values that the run was started with, or use another ssd_run_id"
    about = {"check": CHECK, "drive": None, "level": "warning", "message": message, "remedy": remedy}
    return [{"host": view.name, **about} for view in views if lost and view.asked is not None]
