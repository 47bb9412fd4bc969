# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts whose ledger is older than what this controller knows: a state folder that was restored from a backup, replaced
or lost no longer tells which drives are kept as evidence. Pure, but for what `wrote` reads.
"""

from __future__ import annotations

import typing as t

from ...module_utils.drive.identity import OWN_NAMES
from ...module_utils.guard.facts import EVIDENCE
from ...module_utils.records.identity import Identity
from ...module_utils.records.ledger import OwnData
from ..run_folder.last_run_of_drive import Key, Left, wrote
from ..run_folder.run_record import RunWarning
from ..run_folder.runs import KnownRun
from .findings import Finding, HostAnswer, Run

CHECK = "older_ledger"
_CAUSE = "ssd_state_dir was restored from a backup, was lost, or is no longer the folder that it was"


def drives_to_compare(views: t.Sequence[HostAnswer], run: Run | None) -> list[Key]:
    """Return the drives of which the host's ledger is compared: of hosts that do not go on with this run."""
    attach = run.attach if run else {}
    return [(view.name, str(found.drive)) for view in views if view.name not in attach for found in view.drives or ()]


def lost(views: t.Sequence[HostAnswer], left: t.Mapping[Key, Left], own: t.Sequence[KnownRun]) -> dict[Key, str]:
    """{(host, drive): why not to erase it} of drives that a run of this controller kept as evidence, of which their
    host's ledger says nothing, and that their entry does not release.
    """
    began = {run.id: run.started for run in own}
    return {
        (view.name, drive): (
            f"{CHECK}: run {known.run_id} kept it as evidence, and the ledger on {view.name} no longer says so: "
            f"{_CAUSE}. Put the newest state folder back; or, once you have examined the drive, add release_evidence: "
            f'"{known.run_id}" to its entry in ssd_drives'
        )
        for view, drive, ledger, known in _pairs(views, left)
        if known.state == EVIDENCE and _is_older(ledger, known, began) and _released(view, drive) != known.run_id
    }


def findings(why: t.Mapping[Key, str], views: t.Sequence[HostAnswer]) -> list[Finding]:
    """Of the drives that are still asked for. why: of `lost`."""
    there = {(view.name, str(found.drive)) for view in views for found in view.drives or ()}
    return [Finding(text, host, drive, drive) for (host, drive), text in why.items() if (host, drive) in there]


def warnings(views: t.Sequence[HostAnswer], left: t.Mapping[Key, Left], own: t.Sequence[KnownRun]) -> list[RunWarning]:
    """Ledgers that know an earlier run of this controller as the drive's last."""
    began = {run.id: run.started for run in own}
    return [
        RunWarning(
            view.name,
            CHECK,
            drive,
            "warning",
            (
                f"the host's ledger says that run {ledger.run_id} was the last to write to it, but run "
                f"{known.run_id} wrote later: {_CAUSE}"
            ),
            "put the newest state folder back: other controllers' runs may have kept drives as evidence that only it "
            "names",
        )
        for view, drive, ledger, known in _pairs(views, left)
        if known.state != EVIDENCE
        and ledger
        and ledger.run_id in began
        and _is_older(ledger, known, began)
        and wrote(known, (view.name, drive))
    ]


def _pairs(
    views: t.Sequence[HostAnswer], left: t.Mapping[Key, Left]
) -> t.Iterator[tuple[HostAnswer, str, OwnData | None, Left]]:
    """Yield each drive that this controller knows, and that is still the same one, with what its host's ledger has."""
    for view in views:
        for found in view.drives or ():
            known = left.get((view.name, str(found.drive)))
            who = found.identity or Identity()
            if known and all((known.identity.get(key) or None) == (getattr(who, key) or None) for key in OWN_NAMES):
                yield view, str(found.drive), found.own_data, known


def _is_older(ledger: OwnData | None, known: Left, began: t.Mapping[str, str]) -> bool:
    """Return whether the ledger's entry is surely of before that run: another controller's run may be newer."""
    if ledger is None:
        return True
    if ledger.run_id == known.run_id:
        return False
    started = began.get(ledger.run_id or "")
    if started is not None:
        return started < known.started
    return bool(ledger.released) and str(ledger.released) < known.time


def _released(view: HostAnswer, drive: str) -> t.Any:
    """Return the run whose evidence the drive's entry releases."""
    for entry in view.entries or ():
        if entry.problem is None and entry.label == drive:
            return entry.options.release_evidence
    return None
