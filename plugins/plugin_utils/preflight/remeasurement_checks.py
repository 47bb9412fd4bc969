# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The second measurement of drives (ssd_retest) in preflight: it erases only what this very play decided to erase
before, and only the same drives.
"""

from __future__ import annotations

import os
import typing as t

from ...module_utils.records import base
from ...module_utils.records.base import Scalar
from ..common.schema import plain
from ..common.values import integer
from ..run_folder import decision_record, remeasurement
from ..verdict import judged_criteria
from .findings import Finding, HostAnswer, Run, shared_value

TEXT = (
    "ssd_retest: a drive that misses only relative criteria would be erased and measured once more before it fails, in "
    "a run of its own ({0}); at most, that takes the time of the plan and writes its bytes a second time"
)

_NOT_YOURS = "only qualify.yml sets ssd_again, so remove it from your variables"


class Remeasurement(t.NamedTuple):
    """ssd_again of a host (docs/internals.md), as far as preflight needs it. of: the first run's id. counts: {drive:
    its tests whose second result counts}. identities: {drive: {key of its identity: what the first preflight saw}}.
    """

    of: str
    counts: t.Mapping[str, list[str]]
    identities: t.Mapping[str, t.Mapping[str, Scalar]]


def narrowed(view: HostAnswer) -> Remeasurement | None:
    """Return what a host is measured again for; None where this is no second measurement."""
    given = plain((view.asked or {}).get("ssd_again"))
    if not isinstance(given, dict) or not given:
        return None
    return Remeasurement(str(given["of"]), given.get("counts", {}), given.get("identities", {}))


def remeasured_run(views: t.Sequence[HostAnswer]) -> str:
    """Return the run whose drives are measured again; "" where this is no second measurement."""
    return next((again.of for again in map(narrowed, views) if again), "")


def is_requested(views: t.Sequence[HostAnswer]) -> bool:
    """Return whether drives that miss only relative criteria are measured again; a second measurement is not."""
    return integer(shared_value(views, "ssd_retest") or 0) == 1 and not remeasured_run(views)


def counting_tests(view: HostAnswer, drive: str) -> list[str] | None:
    """Return the tests of a drive whose second result counts; None where this is no second measurement of it."""
    again = narrowed(view)
    return again.counts.get(drive) if again else None


def findings(views: t.Sequence[HostAnswer], run: Run | None, results_dir: str) -> list[Finding]:
    """Return what stands against measuring drives again; nothing where this is no second measurement."""
    first = remeasured_run(views)
    if not first:
        return []
    found = []
    if run is not None and run.id != remeasurement.id_of(first):
        found.append(Finding(f"ssd_again: {run.id} is not the second measurement of {first}; {_NOT_YOURS}"))
    for view in views:
        if not decision_record.erases(os.path.join(results_dir, first), view.name):
            message = f"ssd_again: preflight of this play did not approve erasing drives of this host in run {first}"
            found.append(Finding(f"{message}; {_NOT_YOURS}", view.name))
        found += _others(view)
    return found


def _others(view: HostAnswer) -> list[Finding]:
    """Drives that were not measured in the first run, or are others now."""
    again = narrowed(view)
    known = again.identities if again else {}
    found = []
    for one in view.drives or ():
        drive, identity = str(one.drive), base.to_json(one.identity) or {}
        if drive not in known:
            found.append(
                Finding(f"ssd_again: this drive is not one of those to measure again; {_NOT_YOURS}", view.name, drive)
            )
            continue
        other = [key for key, value in known[drive].items() if identity and identity.get(key) != value]
        if other:
            message = f"identity_changed: its {', '.join(other)} changed since this play began"
            found.append(Finding(f"{message}; find out which drive it is now, and start a new run", view.name, drive))
    return found


def relative(criteria: t.Any) -> bool:
    """Return whether any criterion is relative: only these lead to a second measurement."""
    return any(map(judged_criteria.is_relative, judged_criteria.sound(criteria or [])))


def plan_lines(retest: bool, criteria: t.Any) -> list[str]:
    """Return what plan mode says of ssd_retest."""
    return [TEXT.format(f"<run id>{remeasurement.SUFFIX}")] if retest and relative(criteria) else []
