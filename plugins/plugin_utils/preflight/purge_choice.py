# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which purge each test of a plan gets on each drive, and what it would run; what a drive can't do is a
finding. Pure.
"""

from __future__ import annotations

import shlex
from dataclasses import replace

from ...module_utils.guard import rules
from ...module_utils.purge import methods
from ...module_utils.purge.method import NOT_PTS, PurgeError
from ...module_utils.records.plan import Plan, PlannedTest
from ...module_utils.records.purge import OfferedPurge
from ...module_utils.run.states import SETTLED_STATES
from ..common import units
from ..plan.purge_values import lba_size_after
from ..plan.time_estimates import purge_share
from .findings import Finding, HostAnswer, Run, of_refusal

# {(drive, test): the offer taken}
Chosen = dict[tuple[str, str], OfferedPurge]


def choose(view: HostAnswer, plan: Plan | None, run: Run | None) -> tuple[Chosen, list[Finding]]:
    """Return what each test of a host's drives gets, and what can't be done. Drives that the run holds or is done with
    were asked then.
    """
    chosen: Chosen = {}
    found: dict[Finding, None] = {}
    if plan is None or (run and run.attach.get(view.name) in SETTLED_STATES):
        return {}, []
    seen = {str(entry.drive): entry for entry in view.drives or ()}
    for drive in plan.drives:
        entry, lba_size = seen.get(drive.drive), drive.expected.logical_block_size_bytes
        if entry is None or not entry.purge_capabilities:
            continue
        reported = methods.reported(entry.purge_capabilities)
        changed: int | None = None
        for test in drive.tests:
            if test.purge.method == "none":
                continue
            try:
                purge = replace(test.purge, lba_size_bytes=test.purge.lba_size_bytes or changed)
                offered = methods.offers_for(reported, lba_size, purge)
                chosen[drive.drive, test.name] = methods.choose(test.purge.method, offered)
            except PurgeError as error:
                (refusal,) = rules.refuse(error.code, drive.drive, entry.path, str(error))
                found[of_refusal(refusal, view.name, drive.drive)] = None
            if test.purge.lba_size_bytes:
                # What was read of the drive has the LBA size of before.
                changed = test.purge.lba_size_bytes
                lba_size = lba_size_after(test.purge, changed)
    return chosen, list(found)


def share_of_fill(test: PlannedTest, offer: OfferedPurge | None) -> float:
    """Return how long a purge takes as a share of the time to write the drive once."""
    return purge_share(offer.method if offer else test.purge.method)


def plan_lines(offer: OfferedPurge) -> list[str]:
    """Return what plan mode tells of a chosen purge: the method, why it, and exactly what it would run."""
    flag = ", not a PTS purge (not_pts)" if offer.purge_class == NOT_PTS else ""
    head = f"purge by {offer.method} ({offer.why}){flag}, given up after {units.duration(offer.timeout_s or 0)}"
    return [head, *(f"  {shlex.join(argv)}" for argv in offer.commands)]
