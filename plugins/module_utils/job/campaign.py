# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One drive's campaign: the guard, the tests of its plan, and how the drive is left; every step into the journal."""

from __future__ import annotations

import contextlib
import traceback

from ..core.deadline import Hangs
from ..core.host import BOOT_ID
from ..drive import health, zones
from ..guard import ledger, ledger_format, rules
from ..guard.held import Refused
from ..machine import cpus
from ..measure import fio, health_change
from ..purge import ata
from ..purge.begun import has_our_password, may_be_running
from ..purge.method import PurgeError
from ..records import base
from ..records.measurement import Power
from ..records.plan import PlannedDrive, PlannedTest
from ..run import main_figure
from ..run.folder import Event
from . import array, failure_logs, power_cut, release_drive
from .drive_context import NO_PURGE, DriveContext, Job
from .drive_tests import DriveTests
from .resume_state import crash_text, finished_tests, may_go_on, prepares, under_way, waiting

STOPPED = "the run was stopped"
HOLDS_DATA = (
    "the drive still holds test data ({0}), which the next run on this host takes for ours; purge.yml erases it"
)


class Campaign:
    """All that happens to one drive in one run."""

    def __init__(self, job: Job, plan: PlannedDrive) -> None:
        self._station = DriveContext(job, plan)
        self._tests = DriveTests(self._station)
        self.drive = self._station.drive
        # Why this campaign ended unforeseen; its test is done again by the next job.
        self.crashed = ""

    def run(self) -> str:
        """Work through the plan; the drive's outcome: complete, refused, error or interrupted. Never raises."""
        message, hangs, own = "", False, False
        try:
            outcome, message = self._run_or_stop()
            own = outcome == "error" and self._tests.drive_fault
        except Hangs as error:
            outcome, message, hangs, own = "error", str(error), True, self._tests.alone
        except Refused as refused:
            outcome, message = "refused", str(refused)
        except (fio.FioError, PurgeError) as error:
            outcome, message, own = "error", str(error), failure_logs.is_of_drive(error)
        except Exception as error:  # The other drives go on, and nothing is lost: the journal has it.
            outcome, message = "error", self._crash(error)
        self._keep_logs(outcome, message)
        outcome, message = self._let_go(message if hangs else "") or (outcome, message)
        if self._station.job.side_by_side:
            self._station.job.side_by_side.leave(self.drive)
        try:
            # A step that a stop cuts short says nothing of the drive.
            fault = {"drive_fault": True} if own and not self._station.job.stop.is_set() else {}
            self._station.note("drive_finished", outcome=outcome, message=message, **fault)
        except Exception as error:
            outcome, message = "error", self._crash(error)
        self._station.job.ended[self.drive] = outcome
        shown = base.to_json([main_figure.of_result(result) for result in self._tests.finished])
        self._station.show(
            phase="done",
            outcome=outcome,
            message=message,
            cell=None,
            last=None,
            time_left_s=0,
            later_s=0,
            results=shown,
            missed=self._tests.missed(),
        )
        with contextlib.suppress(Exception):  # The journal has all of it.
            self._station.beside.flush()
        return outcome

    def _run_or_stop(self) -> tuple[str, str]:
        """Return the outcome of _run_tests, and why it is none that went well."""
        try:
            outcome = self._run_tests()
            return outcome, self._tests.error if outcome == "error" else ""
        except fio.Interrupted:
            return "interrupted", self._leave_stopped()

    def _keep_logs(self, outcome: str, message: str) -> None:
        """Of a drive that failed, before anybody takes its power."""
        with contextlib.suppress(OSError):  # a full disk, which the journal's own records tell
            missed, finished = self._tests.missed(), self._tests.finished
            failure_logs.keep_logs(self._station, failure_logs.why(outcome, message, missed, finished))

    def _let_go(self, hangs: str) -> tuple[str, str] | None:
        """Give the drive back. hangs: why it is only abandoned.

        An outcome and a message where that fails, in place of those so far.
        """
        self._station.job.tuned.leave_place(self._station.drive)
        self._station.kernel_log.let_go(self._station.name)
        try:
            if not hangs:
                self._station.watchdog.call("release", self._station.held.release)
                return None
            self._station.held.abandon(hangs)
        except Hangs as error:
            self._station.held.abandon(str(error))
            return "error", str(error)
        except Exception as error:
            return "error", self._crash(error)
        return None

    def _crash(self, error: Exception) -> str:
        """Keep what nobody foresaw; its text."""
        self.crashed = crash_text(error)
        with contextlib.suppress(OSError):
            self._station.note("crash", message=self.crashed, traceback=traceback.format_exc())
        return self.crashed

    def _run_tests(self) -> str:
        station = self._station
        to_do = waiting(station.plan.tests, finished_tests(station.results))
        names = [test.name for test in to_do]
        station.show(phase="guard", tests=len(station.plan.tests))
        self._recover()
        if not to_do:
            self._close()
            return "complete"
        if station.job.stop.is_set():
            raise fio.Interrupted()
        if station.drive in station.job.hung:
            raise Hangs(station.job.hung[station.drive])
        self._tests.settle_unfinished()
        power_cut.verify_pending(station)
        station.guard("start")
        self._refuse_another()
        self._refuse_other_zones()
        place = station.bench.place = station.job.tuned.take_place(station.drive)
        station.beside.cpus = cpus.without(place.cpus)
        seen = {"identity": base.to_json(station.held.identity), "path": station.held.path}
        station.note("drive_started", tests=names, place=place._asdict(), power=base.to_json(self._power()), **seen)
        station.held.keep_as_evidence(self._tests.missed())
        station.held.content_is_ours()
        # It writes a block: not to a drive that is to be read back, nor at the start, where a zone may be written.
        goes_on = any(under_way(station.history, test.name) for test in station.plan.tests)
        writes = any(not test.self_test or test.purge.method != NO_PURGE.method for test in station.plan.tests)
        is_zoned = zones.is_host_managed(station.held.identity)
        if writes and not goes_on and not station.job.in_service and not is_zoned:
            station.bench.check_fio()
        station.watchdog.call("look at the drive's world", lambda: station.conditions.begin(station.history))
        if station.conditions.baseline:
            station.job.baselines[station.drive] = station.conditions.baseline
        for index, test in enumerate(station.plan.tests, start=1):
            if test.name not in names:
                continue
            if test.array:
                array.await_others(station.job, station.drive)
            self._take_turn(test)
            shown = {"test": test.name, "test_index": index, "round": 0, "round_max": test.rounds.max}
            after = [later for later in station.plan.tests[index:] if later.name in names]
            station.show(path=station.held.path, later_s=self._tests.later_s(after), time_left_s=None, **shown)
            if self._tests.run(test) == "error" and not self._goes_on():
                return "error"
        self._leave()
        return "error" if self._tests.error else "complete"

    def _take_turn(self, test: PlannedTest) -> None:
        """Wait where fewer drives are to run; a test of what another left on the drive is begun at once."""
        turns = self._station.job.side_by_side
        if turns and prepares(test) and not test.array:
            turns.take_turn(self.drive, self._station.job.stop)

    def _goes_on(self) -> bool:
        """Return whether the next test may be done after an error: it was the host's, and the drive is still there."""
        with contextlib.suppress(Refused, Hangs, OSError):
            if may_go_on(self._tests.finished):
                self._station.kernel_log.settle()
                self._station.look()
                return not health_change.is_gone(self._station.job.host, self._station.name)
        return False

    def _refuse_another(self) -> None:
        """A run that goes on is about the drive that it began with, whatever a link leads to by now. Raises Refused."""
        history, held = self._station.history, self._station.held
        started = (record["identity"] for record in history if record["event"] == "drive_started")
        began: Event = next(started, {})
        names = ("serial", "backing_file") if began.get("serial") or began.get("backing_file") else ("wwn",)
        other = [
            f"{name} was {began.get(name)} when the run began, is {getattr(held.identity, name)}"
            for name in names
            if began and began.get(name) != getattr(held.identity, name)
        ]
        if other:
            raise Refused(rules.refuse("identity_changed", self._station.drive, held.path, "; ".join(other)))

    def _refuse_other_zones(self) -> None:
        """Tests for zoned drives are for no others, and the other way round: their writes would fail, or hit what they
        should not. Raises Refused.
        """
        held, drive = self._station.held, self._station.drive
        wrong = zones.misplaced_tests(self._station.plan.tests, held.identity)
        if wrong:
            raise Refused(rules.refuse("wrong_zones", drive, held.path, wrong))

    def _power(self) -> Power:
        """In which boot, and after how many power cycles of the drive, it is measured."""
        host, identity = self._station.job.host, self._station.held.identity
        count = self._station.watchdog.call("count its power cycles", lambda: health.power_cycles(host, identity))
        return Power(host.get(BOOT_ID), count)

    def _leave(self) -> None:
        """How the drive is left at the end: a missed criterion makes it evidence, all else but an error may be made
        blank.
        """
        self._station.held.keep_as_evidence(self._tests.missed())
        if self._station.held.evidence:
            self._station.note("left", state=release_drive.EVIDENCE, reason=self._station.held.evidence, seconds=0)
        elif self._station.job.leave == release_drive.BLANK and self._station.wrote:
            self._left(release_drive.make_blank(self._tests.work(NO_PURGE), self._tests.finished))

    def _leave_stopped(self) -> str:
        """How a stop leaves the drive, as a sentence: blank where that is soon done, and where a job that goes on with
        the run begins with a purge.
        """
        station, tests = self._station, self._tests
        held = station.held
        if station.job.leave != release_drive.BLANK or not station.wrote or held.handle is None:
            return STOPPED
        if held.unsettled or held.evidence:
            return STOPPED  # the drive purges itself; or what it holds is to stay
        to_do = waiting(station.plan.tests, finished_tests(tests.finished))
        if to_do and to_do[0].purge.method == "none":
            reason = f"{to_do[0].name}, with which the run would go on, does not purge it"
            left = release_drive.Leaving(release_drive.AS_IS, reason, 0)
        else:
            left = release_drive.make_blank_in_time(tests.work(NO_PURGE))
        self._left(left)
        return STOPPED if held.blank else f"{STOPPED}; {HOLDS_DATA.format(left.reason)}"

    def _left(self, left: release_drive.Leaving) -> None:
        self._station.held.blank = left.state == release_drive.BLANK
        self._station.note("left", **left._asdict())

    def _close(self) -> None:
        """A job of this run died after the last test and before it let go of the drive: its ledger has to say so."""
        history, run_dir = self._station.history, self._station.job.run_dir
        identity = next((record["identity"] for record in reversed(history) if record.get("identity")), None)
        if identity and not may_be_running(history) and not self._station.job.in_service:
            ledger.close_one(ledger_format.path_of(run_dir.state_dir, identity), run_dir.run_id)

    def _recover(self) -> None:
        """Put right what a dead job of this run left on the drive, also where no test is left to do.

        It comes first, as a locked drive can't be read.
        """
        station = self._station
        if has_our_password(station.history):
            station.watchdog.call("identify", station.held.identify)
            ata.recover(self._tests.work(NO_PURGE))
