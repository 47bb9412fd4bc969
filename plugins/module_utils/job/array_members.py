# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The drives of an array beside the one that carries its test: each held as for a test of its own, looked at while the
array is measured, and left as its own campaign left it.
"""

from __future__ import annotations

import contextlib
import typing as t
from dataclasses import replace

from ..core.deadline import Hangs, within
from ..guard import ledger_format
from ..guard.facts import EVIDENCE
from ..guard.held import Refused
from ..measure import precondition_curve
from ..measure.sampler import Sampler
from ..records import base
from ..records.health import HealthInArray, Wear
from ..records.measurement import Cause, Condition
from ..records.plan import PlannedTest
from ..run import criteria
from . import failure_logs, release_drive, test_conditions
from .drive_context import NO_PURGE, Attempt, DriveContext, purge_work
from .operating_points import NoPoint
from .run_rounds import LinkDown
from .test_conditions import Conditions

COMPLETE = "complete"
# What makes a test invalid while the array is there: its drives are left as after a good one.
ENDS_INVALID = (precondition_curve.Short, NoPoint, LinkDown)
# After an error or a stop, which has a minute for all drives.
FAILED_LOOK_S = 5.0


class NoArray(Exception):
    """Its drives are not all fit for it, so nothing was made and nothing written: the test is invalid."""


@contextlib.contextmanager
def taken(lead: DriveContext, label: str) -> t.Iterator[DriveContext]:
    """Another drive of the host, held as its own campaign would: locked, guarded, in the ledger. Raises NoArray."""
    job = lead.job
    if label in job.hung:
        raise NoArray(f"no array was made: {label}: {job.hung[label]}")
    member = DriveContext(job, {entry.drive: entry for entry in job.drives}[label])
    try:
        member.guard("array")
        kept = ledger_format.read(job.run_dir.state_dir, base.to_json(member.held.identity))
        if kept and kept.state == EVIDENCE:
            raise NoArray(f"no array was made: {label} is kept as evidence: {kept.reason}")
        member.held.content_is_ours()
    except BaseException as error:
        _release(member)
        if isinstance(error, (Refused, ledger_format.Untrusted)):
            raise NoArray(f"no array was made: its member {label} was refused: {error}") from None
        raise
    try:
        member.note("left", state=release_drive.AS_IS, reason="an array is made of it", seconds=0)
        ended: Exception | None = None
        try:
            yield member
        except ENDS_INVALID as error:
            ended = error
        if job.leave == release_drive.BLANK and not member.held.evidence:
            _leave_blank(member)
        if ended:
            raise ended
    except Hangs as error:
        member.held.abandon(str(error))
        raise
    except BaseException:
        _release(member)
        raise
    _release(member)


def _leave_blank(member: DriveContext) -> None:
    """As its own campaign left it. The drive that carries the test is left by its own campaign."""
    left = release_drive.blank(purge_work(member, NO_PURGE))
    member.held.blank = left.state == release_drive.BLANK
    member.note("left", **left._asdict())


def _release(member: DriveContext) -> None:
    try:
        member.watchdog.call("release", member.held.release)
    except Hangs as error:
        member.held.abandon(str(error))
        raise


class MemberWatch:
    """Looks at the world of one member while the array is measured: link, temperature, errors, settings; and at its
    health, which is the member's own.
    """

    def __init__(self, lead: DriveContext, member: DriveContext, test: PlannedTest, attempt: Attempt) -> None:
        job, held, wanted = lead.job, member.held, member.plan.vendor
        self._lead, self._member, self._test, self._attempt = lead, member, test, attempt
        # What is found goes into the record of the test; the journal's samples are of the drive that carries it.
        self._seen = Conditions(job.host, lambda: held.identity, wanted, _unsaid, job.run_dir.state_dir)
        self._sampler = Sampler(
            job.host,
            identity=lambda: held.identity,
            note=_unsaid,
            interval_s=job.sample_interval_s,
            io_cpus=lambda: lead.bench.place.cpus,
            baseline=lambda: self._seen.baseline,
        )
        self.reasons: list[str] = []
        self.conditions: list[Condition] = []
        self.wear: Wear | None = None

    def __enter__(self) -> MemberWatch:
        self._member.watchdog.call("look at its world", self._begin)
        self._sampler.__enter__()
        return self

    def _begin(self) -> None:
        baseline = self._member.job.baselines.get(self._member.drive)
        if baseline:
            self._seen.begin_like(baseline)
        else:
            self._seen.begin(())
        self._seen.begin_test()
        self._seen.begin_measurement()

    def causes_since_last(self) -> list[Cause]:
        """Return what disturbed this member since the last call."""
        look = self._member.watchdog.call
        found = look("look at its world", lambda: test_conditions.causes_since_last(self._sampler))
        return [replace(item, message=f"{self._member.drive}: {item.message}") for item in found]

    def __exit__(self, kind: t.Any, error: t.Any, trace: t.Any) -> None:
        self._sampler.__exit__(kind, error, trace)
        answers = not isinstance(error, Hangs)
        try:
            if error is None:
                self._end()
            elif answers:
                with contextlib.suppress(Hangs, OSError):
                    within(FAILED_LOOK_S, "look at its world", lambda: self._seen.end_failed_test(self._sampler))
        except Hangs:
            answers = False
            raise
        finally:
            self._keep_health(answers)

    def _end(self) -> None:
        end = self._seen.end_test
        found = self._member.watchdog.call("look at its world", lambda: end(self._test, self._sampler))
        drive = self._member.drive
        self.wear = self._seen.spent
        self.reasons = [f"{drive}: {text}" for text in found]
        self.conditions = [replace(item, message=f"{drive}: {item.message}") for item in self._seen.found]

    def _keep_health(self, answers: bool) -> None:
        """Note what became of its health; a drive that missed a criterion is evidence. answers: it can be asked for its
        own logs.
        """
        member, log = self._member, self._lead.kernel_log
        log.end()
        health = log.counted_of(member.name, self._seen.health)
        if health is None:
            return
        found = HealthInArray(self._attempt.test, self._attempt.attempt, health)
        model = member.plan.expected.model or ""
        missed = criteria.missed_in_array(member.job.health_criteria, model, found)
        reason = "; ".join(missed)[: release_drive.LONGEST_REASON]
        # The ledger first: a job that dies in between loses no evidence.
        member.held.keep_as_evidence(reason)
        member.note("member_health", **base.to_json(found))
        if reason:
            member.note("left", state=release_drive.EVIDENCE, reason=reason, seconds=0)
        if answers:
            failure_logs.keep_logs(member, reason)


def _unsaid(*_words: t.Any, **_fields: t.Any) -> None:
    """In place of a journal."""
