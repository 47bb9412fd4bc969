# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Put back what an ended host job left changed on its host."""

from __future__ import annotations

import typing as t
from dataclasses import replace

from ..core.files import Damaged
from ..core.host import Host
from ..records import base
from ..records.tuning import Setting, Tuning
from ..run.folder import Event, Journal, RunDir, Status, read_journal, run_ids
from ..run.liveness import is_live
from ..run.summary import UNKNOWN
from ..tuning import settings
from ..tuning.setting_kinds import KINDS
from . import array_leftover


class NotRestored(Exception):
    """The host still has settings of an earlier run; the message names them."""


class UnrestoredRun(t.NamedTuple):
    """What a run changed and nobody put back: the run, and its record (None where only an array is left); `damage`: why
    there is none though something was changed.
    """

    run_dir: RunDir
    record: Tuning | None
    damage: str = ""

    @property
    def keeps(self) -> bool:
        """Whether what it set is to stay until it is restored explicitly."""
        return bool(self.record and self.record.keep)

    @property
    def order(self) -> int:
        """Its record's place among those that are not yet put back."""
        return (self.record and self.record.order) or 0

    @property
    def age(self) -> tuple[int, str]:
        """Sorts records by when they were made, by no clock: it may have been set since."""
        return self.order, self.run_dir.run_id


def leftover(run_dir: RunDir) -> UnrestoredRun | None:
    """Return what one run left: as tuning.json says, or, where that is lost or damaged, as the journal does."""
    damage = ""
    try:
        record = settings.read_record(run_dir.tuning)
    except Damaged as error:
        record, damage = None, str(error)
    if record is None and not (run_dir.read_status() or {}).get("restored"):
        record = journalled(read_journal(run_dir.journal))
    left = record or damage or array_leftover.is_left(run_dir)
    return UnrestoredRun(run_dir, record, "" if record else damage) if left else None


def journalled(history: t.Iterable[Event]) -> Tuning | None:
    """Return the record of settings that the journal tells of, as its last job made them; None where nothing was
    changed, or all was put back; else what was not.
    """
    boot_id: str | None = None
    found: Tuning | None = None
    for record in history:
        if record["event"] == "job_started":
            boot_id = record.get("boot_id")
        elif record["event"] == "tuned" and not record.get("test"):
            changed = [
                item
                for item in record["settings"]
                if item.get("kind") in KINDS and item.get("before") not in (None, item.get("effective"))
            ]
            made = [base.parse(Setting, item) for item in changed + list(record.get("side_effects") or [])]
            keep, order = bool(record.get("keep")), record.get("order")
            found = Tuning(boot_id, made, keep, record["time"], order) if made else found
        elif record["event"] == "restored" and found:
            failed = {item.get("path") for item in record.get("settings") or [] if item.get("outcome") == "failed"}
            left = [item for item in found.settings if item.path in failed]
            found = replace(found, settings=left) if left else None
    return found


def leftovers(host: Host, state_dir: str) -> list[UnrestoredRun]:
    """Return what ended runs left on this host, the newest first."""
    runs = [RunDir(state_dir, run_id) for run_id in run_ids(state_dir)]
    found = [leftover(run_dir) for run_dir in runs if not is_live(host, run_dir)]
    return sorted((each for each in found if each), key=lambda each: each.age, reverse=True)


def next_order(state_dir: str) -> int:
    """Return the place of a new record: above all that are not yet put back."""
    found = [leftover(RunDir(state_dir, run_id)) for run_id in run_ids(state_dir)]
    return 1 + max((each.order for each in found if each), default=0)


def restore_leftovers(host: Host, state_dir: str, kept: bool = False) -> list[Setting]:
    """Put back what dead jobs left behind, the newest record first, as each holds what the one before had set.

    `kept`: also what tune.yml set, to stay until it is restored, and without drives that are not there any more.
    """
    done = []
    for each in leftovers(host, state_dir):
        if kept or not each.keeps:
            made = restore_run(host, each.run_dir, let_go=kept)
            done += made
            if settings.failures(made):
                # What could not be put back waits; an older record put back before it would be undone by it.
                break
    return done


def refuse_unrestored(done: t.Iterable[Setting]) -> None:
    """Raise NotRestored when a setting could not be put back: another run on top would measure an odd host."""
    failed = settings.failures(done)
    if failed:
        advice = "fix that and run restore.yml, which drops the records of drives that are gone: "
        raise NotRestored("settings of an earlier run could not be restored; " + advice + "; ".join(failed))


def restore_run(host: Host, run_dir: RunDir, let_go: bool = False) -> list[Setting]:
    """Put back what one run's dead job left, and say so in its journal and status. Where nobody knows what it changed,
    that is a failure.
    """
    stopped = array_leftover.stop(host, run_dir)
    left = leftover(run_dir)
    if left and left.damage:
        return [*stopped, _unknown(left)]
    done = stopped + (settings.restore(host, run_dir.tuning, let_go, left.record) if left else [])
    status = run_dir.read_status()
    if done:
        _tell(run_dir, done)
    if status and not status.get("restored") and not settings.failures(done):
        Status(run_dir.status, status).set(restored=True)
    return done


def _unknown(left: UnrestoredRun) -> Setting:
    """Return what was changed by a record that nobody can read; the file stays until a person has seen to it."""
    return Setting("", "tuning.json", left.run_dir.tuning, None, outcome="failed", message=left.damage)


def _tell(run_dir: RunDir, done: list[Setting]) -> None:
    known: Event = next(iter(read_journal(run_dir.journal)), {})
    journal = Journal(run_dir.journal, run_id=run_dir.run_id, host=known.get("host") or UNKNOWN)
    try:
        journal.add("restored", settings=[item.to_json() for item in done])
    finally:
        journal.close()
