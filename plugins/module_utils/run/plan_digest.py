# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What preflight decided for a host: the plan carries a digest of it, and the host job erases nothing that is not in
that decision.
"""

from __future__ import annotations

import hashlib
import json
import typing as t

DESTRUCTIVE = "destructive"
# Of plan.json itself: how many drives are worked on at the same time, or the reads that tell it.
_OF_HOST = ("parallel_drives", "together")
# Of a drive's entry in plan.json: who it is, what of its identity may never be another, and what is done to it.
_OF_DRIVE = ("drive", "selector", "expected", "tests")


def digest(plan: t.Mapping[str, t.Any], mode: str) -> str:
    """SHA-256 over the run, the host, the mode and all that the plan does to drives, and to how many at once. The same
    on the controller and on the host.
    """
    decided = {
        "mode": mode,
        "run": plan["run"]["id"],
        "host": plan["host"],
        **{key: plan.get(key) for key in _OF_HOST},
        "drives": [{key: drive.get(key) for key in _OF_DRIVE} for drive in plan["drives"]],
    }
    return hashlib.sha256(json.dumps(decided, sort_keys=True).encode("utf-8")).hexdigest()


def made(plan: t.Mapping[str, t.Any], mode: str = DESTRUCTIVE) -> dict[str, str]:
    """Return the decision for a plan, as it stands in plan.json: {mode, digest}."""
    return {"mode": mode, "digest": digest(plan, mode)}


def problem(plan: t.Mapping[str, t.Any]) -> str:
    """Return why the plan is not what preflight decided; "" if it is."""
    known = plan.get("decision")
    if not isinstance(known, t.Mapping):
        return "it carries no decision of preflight"
    if known.get("mode") != DESTRUCTIVE:
        return "preflight decided for ssd_mode={}".format(known.get("mode"))
    if known.get("digest") != digest(plan, DESTRUCTIVE):
        return "its drives, its tests or the number of drives at a time are not what preflight approved"
    return ""
