# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tests of one drive: purge, precondition and rounds of each, and what its world and settings say of it."""

from __future__ import annotations

import contextlib
import typing as t

from ..core.deadline import Hangs, within
from ..guard.held import Refused
from ..machine import cpus
from ..measure import fio, precondition_curve
from ..measure.disturbances import DISTURBS, TOLD
from ..measure.histogram import RoundHistograms
from ..measure.power_cut_pattern import TooSmall
from ..measure.sampler import Sampler
from ..purge import purge_step
from ..purge.method import PurgeError, Work
from ..records import base
from ..records.measurement import Cause, Condition, Ended
from ..records.plan import PlannedPurge, PlannedTest
from ..run import criteria
from ..run.reducer import EVENTS, AttemptReducer
from ..tuning import write_cache
from ..tuning.tuned_host import Drift
from . import (
    array,
    array_members,
    before_read_back,
    filesystem,
    give_way,
    integrity,
    own_self_test,
    power_cut,
    release_drive,
    resume_state,
    scrub,
    test_conditions,
)
from .drive_context import NO_PURGE, NO_TEST, Attempt, DriveContext, purge_work
from .failure_logs import is_of_drive
from .operating_points import NoPoint, on_cpus, with_points
from .resume_state import (
    NOT_BEGUN,
    broken_off,
    crash_text,
    discarded,
    failed,
    may_keep_data,
    not_begun,
    not_kept,
    prepares,
    under_way,
    unprepared,
    without_its_state,
)
from .run_rounds import RESEAT, LinkDown, Measuring
from .self_test_wait import SelfTests, SelfTestStuck
from .thread_trials import ThreadTrials

STOPPED_LOOK_S = 5.0
# What makes a test invalid, and its drive's other tests go on.
NOT_COUNTED = (
    precondition_curve.Short,
    NoPoint,
    array_members.NoArray,
    LinkDown,
    integrity.OthersWrote,
    before_read_back.NotPossible,
    own_self_test.NotOffered,
    TooSmall,
    give_way.Busy,
)
NOT_TUNED = "the host was not tuned as planned: "


class DriveTests:
    """What goes from one test of a drive to the next."""

    def __init__(self, station: DriveContext) -> None:
        self._station = station
        self._trials = ThreadTrials(station)
        self._self_tests = SelfTests(station)
        self._rate_bytes_per_s = station.job.write_bytes_per_s
        self._drift: list[Drift] = []
        self._unready = not_begun(station.results)
        self._unprepared = unprepared(station.plan.tests, station.history, station.results)
        # Why a test ended with an error, and whether the drive itself is to blame. alone: no array's test, whose errors
        # may be those of any of its drives.
        self.error, self.drive_fault, self.alone = "", False, True
        self._waited_for: purge_step.Begun | None = None
        # Results of every test that stands, those of jobs before too.
        self.finished = [result for result in station.results if result.outcome in criteria.KEPT_OUTCOMES]
        # Those that a job before cut short: their drive's health counts.
        goes_on = [(test.name, under_way(station.history, test.name)) for test in station.plan.tests]
        self._cut_short = [
            result
            for result in station.results
            if result.outcome == "interrupted" and (result.test, result.attempt) not in goes_on
        ]
        # Of the test that is under way.
        self._tails = RoundHistograms()

    def run(self, test: PlannedTest) -> str:
        """One test; its outcome. An exception that ends the campaign is journalled here first."""
        goes_on = under_way(self._station.history, test.name)
        number = 1 + sum(r["event"] == "test_started" and r.get("test") == test.name for r in self._station.history)
        attempt = Attempt(test.name, goes_on or number)
        reducer = AttemptReducer(test, attempt.attempt, self._station.job.validity)
        for event in self._station.history if goes_on else ():
            if event["event"] in EVENTS and (event["test"], event["attempt"]) == attempt:
                reducer.take(event)
        self._station.reducer = reducer
        self._tails = RoundHistograms()
        try:
            self._work_through(test, attempt, reducer, bool(goes_on))
            return self.finished[-1].outcome
        except (fio.Interrupted, Refused, Hangs):
            raise
        except Exception as error:
            # The test is no result: the next job does it again.
            with contextlib.suppress(OSError):
                reason = f"interrupted: the host job failed with {crash_text(error)}"
                self._end_test(attempt, reducer, "interrupted", [reason])
            raise
        finally:
            self._station.reducer = None

    def _work_through(self, test: PlannedTest, attempt: Attempt, reducer: AttemptReducer, goes_on: bool) -> None:
        """A test from its purge to its end. goes_on: a job before began it, and this one goes on with it."""
        if not goes_on:
            self._station.note("test_started", title=test.title, **attempt._asdict())
        self.alone = not test.array
        identity = self._station.held.identity
        self._station.kernel_log.begin_test(self._station.name, identity.transport, attempt._asdict())
        self._station.told = []
        self._station.make_settings_again(attempt)
        self._drift = self._station.job.tuned.drifted(self._station.name)
        self._look_around(self._station.conditions.begin_test)
        unfit = self._why_not_begun(test)
        if unfit:
            self._end_test(attempt, reducer, "invalid", unfit)
            return
        sampler = self._sampler(attempt)
        ended: Ended = None
        reasons: list[str] = []
        disturbed: list[str] = []
        try:
            made = self._prepare_and_measure(test, attempt, reducer, sampler, goes_on)
            self._station.look()
            disturbed = self._look_around(lambda: self._station.conditions.end_test(test, sampler))
            if made:
                disturbed = disturbed + made.reasons
                self._station.conditions.found += made.conditions
        except fio.Interrupted:
            self._look_at_stopped(sampler)
            self._end_test(attempt, reducer, "interrupted", ["interrupted: the run was stopped"])
            raise
        except Refused as refused:
            self._end_test(attempt, reducer, "error", [f"refused: {refused}"])
            raise
        except Hangs as error:
            of_host = self._station.kernel_log.end()
            self.alone = self.alone and not of_host
            self._end_test(attempt, reducer, "error", [of_host or str(error)])
            raise
        except NOT_COUNTED as error:
            ended, reasons = "invalid", [str(error)]
        except (fio.FioError, PurgeError, SelfTestStuck) as error:
            ended, reasons = "error", [str(error)]
            self.error, self.drive_fault = f"{test.name}: {error}", is_of_drive(error)
        if ended:
            self._look_at_failed(sampler)
        if reducer.discarded:
            self._unprepared = discarded(test.name, reducer.discarded)
        ended, reasons = self._or_host_fault(test, ended, reasons)
        self._look_for_drift()
        cache = "" if ended else self._cache_problem(test)
        told = [Condition("settings", TOLD, f"{NOT_TUNED}{item.text}") for item in self._drift if not item.bears]
        self._station.conditions.found += told + self._self_tests.told() + self._station.told
        disturbed = self._untuned() + disturbed + ([cache] if cache else [])
        self._end_test(attempt, reducer, ended, reasons, disturbed)

    def _look_at_failed(self, sampler: Sampler) -> None:
        """Look at the health of a drive whose test gives no figures; one that gives no answer either is not waited for
        twice.
        """
        with contextlib.suppress(Hangs, OSError):
            self._look_around(lambda: self._station.conditions.end_failed_test(sampler))

    def _look_at_stopped(self, sampler: Sampler) -> None:
        """Look at the health of a drive whose test was stopped, where it answers soon: a stop has a minute."""
        with contextlib.suppress(Hangs, OSError):
            within(STOPPED_LOOK_S, "look at the drive", lambda: self._station.conditions.end_failed_test(sampler))

    def _prepare_and_measure(
        self, test: PlannedTest, attempt: Attempt, reducer: AttemptReducer, sampler: Sampler, goes_on: bool
    ) -> array.Array | None:
        """Purge, fill and rounds; the array that they were made on. goes_on: purge and fill are done."""
        self._self_tests.settle()
        self._unprepared = failed(test.name) if prepares(test) else self._unprepared
        if not goes_on:
            self._purge(test, attempt)
        self._station.make_settings_again(attempt)
        if test.purge.method != "none":
            self._station.bench.settle()
        self._look_around(self._station.conditions.begin_measurement)
        self._begin_kernel_log()
        with sampler, array.assembled(self._station, test, attempt) as made, filesystem.laid_on(
            self._station, test, attempt
        ):
            self._begin_kernel_log()
            if not goes_on:
                self._precondition(test, attempt)
            self._unprepared = "" if prepares(test) else self._unprepared
            is_kept = integrity.write_and_read_back(self._station, test, attempt, self._plan_left_s(test))
            if test.cells and not is_kept:
                # Its cells would overwrite what is wrong, for figures that nobody may trust.
                self._unprepared = not_kept(test.name)
                return made
            power_cut.cut_cycles(self._station, test, attempt)
            own_self_test.perform(self._station, self._self_tests, test, attempt, self._plan_left_s(test))
            scrub.perform(self._station, test, attempt)
            self._measure(test, attempt, reducer, lambda: self._causes_since_last(sampler, made, attempt))
        return made

    def _begin_kernel_log(self) -> None:
        """Of the drive, and of those of its array once there is one."""
        station = self._station
        station.kernel_log.begin(station.members or [station.name], station.bench.place.cpus)

    def _or_host_fault(self, test: PlannedTest, ended: Ended, reasons: list[str]) -> tuple[Ended, list[str]]:
        """Return how a test ended, or the fault of its host that the kernel's log tells of: that explains all else."""
        of_host = self._station.kernel_log.end()
        if not of_host:
            return ended, reasons
        self.error, self.drive_fault, self._unprepared = f"{test.name}: {of_host}", False, broken_off(test.name)
        return "error", [of_host]

    def _causes_since_last(self, sampler: Sampler, made: array.Array | None, attempt: Attempt) -> list[Cause]:
        """Return what disturbed the drive, or the host's settings, since the last call; settings are made again."""
        self._station.kernel_log.note_new()
        found: list[Cause] = self._look_around(lambda: test_conditions.causes_since_last(sampler))
        found += made.causes_since_last() if made else []
        found += self._self_tests.causes_since_last()
        station = self._station
        if station.job.side_by_side and any(item.cause == "throttled" and item.level == DISTURBS for item in found):
            fewer = station.job.side_by_side.throttled(station.drive)
            station.told += [Condition("throttled", TOLD, fewer)] if fewer else []
        drift = [
            item for name in station.members or [station.name] for item in station.job.tuned.drifted_since_last(name)
        ]
        if drift and all(item.answers for item in drift):
            station.make_settings_again(attempt, cheap=True)
        return found + [
            Cause("settings", DISTURBS if item.bears else TOLD, f"{NOT_TUNED}{item.text}")
            for item in dict.fromkeys(drift)
        ]

    def _why_not_begun(self, test: PlannedTest) -> list[str]:
        """Return why nothing that is measured now could count, so that the drive is neither purged for it nor busy for
        hours; [] where the test may begin.
        """
        self._unready = self._unready or (self._untuned() if test.cells else [])
        if self._unready:
            return [NOT_BEGUN, *self._unready]  # later tests may build on this one
        if self._unprepared and test.cells and not prepares(test):
            return [self._unprepared]
        unfit = without_its_state(test, self.finished) or self._cache_problem(test) or self._tools_problem(test)
        fell = "" if unfit or not test.cells else self._look_around(self._station.conditions.slower_link)
        unfit = unfit or (f"{fell}; {RESEAT}" if fell else "")
        return [unfit] if unfit else []

    def _cache_problem(self, test: PlannedTest) -> str:
        """Return why the drive's write cache is not proved to be as the test needs it; "" where it is, or where the
        test needs nothing.
        """
        host, name, wanted = self._station.job.host, self._station.name, test.write_cache
        return self._station.watchdog.call("look at the write cache", lambda: write_cache.problem(host, name, wanted))

    def _tools_problem(self, test: PlannedTest) -> str:
        """Return what the host lacks for a test's file system or array, before anything is done for it."""
        spec, several = test.filesystem, test.array
        if several:
            return array.unavailable_reason(self._station, several)
        return filesystem.missing_requirements(self._station.job.host, spec, self._station.name) if spec else ""

    def _look_around(self, look: t.Callable[[], t.Any]) -> t.Any:
        return self._station.watchdog.call("look at the drive's world", look)

    def _sampler(self, attempt: Attempt) -> Sampler:
        return Sampler(
            self._station.job.host,
            identity=lambda: self._station.held.identity,
            note=lambda event, **fields: self._station.note_sample(event, **dict(fields, **attempt._asdict())),
            interval_s=self._station.job.sample_interval_s,
            io_cpus=lambda: self._station.bench.place.cpus,
            baseline=lambda: self._station.conditions.baseline,
        )

    def _look_for_drift(self) -> None:
        """Note what is not as it was set, once each, beside what the looks between two rounds found."""
        names = self._station.members or [self._station.name]
        drifted = [item for name in names for item in self._station.job.tuned.drifted(name)]
        self._drift += [item for item in drifted if item not in self._drift]

    def _untuned(self) -> list[str]:
        return [NOT_TUNED + item.text for item in self._drift if item.bears]

    def _end_test(
        self,
        attempt: Attempt,
        reducer: AttemptReducer,
        ended: Ended,
        reasons: list[str],
        disturbed: t.Sequence[str] = (),
    ) -> None:
        """Note the end of a test. ended: its outcome where its rounds don't decide it, with the reasons; disturbed:
        what makes its rounds invalid beside what disturbed single ones.
        """
        # A stop has a minute for all drives, and a full disk little room: for what is no result they are not kept.
        is_result = ended not in ("interrupted", "error")
        tails = self._tails.records(reducer.span(), reducer.latencies_left_out()) if is_result else []
        for histogram in tails:
            self._station.note("histogram", **base.to_json(histogram), **attempt._asdict())
        self._station.kernel_log.end()
        self._station.conditions.found += self._station.kernel_log.told()
        end = self._station.kernel_log.counted(self._station.conditions.end(ended, reasons, disturbed))
        self.finished.append(reducer.result(end))
        # The ledger first: a job that dies in between does the test again, but loses no evidence.
        self._station.held.keep_as_evidence(self.missed())
        self._station.note("test_finished", **base.to_json(end), **attempt._asdict())

    def missed(self) -> str:
        """Return which criteria the drive missed in the tests that stand by now, and by its health in those that were
        cut short; "": none.
        """
        model = self._station.plan.expected.model or ""
        job = self._station.job
        results = [*self._cut_short, *self.finished]
        missed = criteria.missed(job.criteria, model, results, job.health_criteria)
        return "; ".join(missed)[: release_drive.LONGEST_REASON]

    def settle_unfinished(self) -> None:
        """Wait for a purge that a job of this run left behind: the guard can't look at a drive that takes no I/O."""
        started = purge_step.unfinished(self._station.history)
        if started is None:
            return
        self._station.watchdog.call("identify", self._station.held.identify)
        purge = next((test.purge for test in self._station.plan.tests if test.name == started.test), NO_PURGE)
        self._station.show(phase="purge", path=self._station.held.path, test=started.test)
        if purge_step.wait_for_unfinished(self.work(purge), started):
            self._waited_for = started

    def work(self, purge: PlannedPurge, attempt: Attempt = NO_TEST) -> Work:
        """Return what a purge method gets for a test."""
        return purge_work(self._station, purge, attempt)

    def _purge(self, test: PlannedTest, attempt: Attempt) -> None:
        if test.purge.method == "none":
            return
        self._station.guard("purge", phase="purge", time_left_s=self._plan_left_s(test))
        work = self.work(test.purge, attempt)
        waited_for, self._waited_for = self._waited_for, None
        record = purge_step.resumed(work, waited_for) if waited_for and waited_for.test == attempt.test else None
        record = record or purge_step.perform(work)
        self._station.note("purge", **base.to_json(record), **attempt._asdict())
        if record.verification.unreadable:
            self._look_around(self._station.conditions.after_refused_reads)
        checked, broken = record.verification, purge_step.broken_promise(record.verification)
        if not record.verified:
            message = f"{checked.survived} of {checked.sentinels} blocks written before the purge can still be read "
            message += f"after {record.method}"
            if not may_keep_data(test, record.method):
                raise PurgeError(f"{'; '.join(filter(None, [message, broken]))}; try another purge_method")
            broken = broken or f"{message}: a drive need not erase what it deallocates"
        self._station.told += [Condition("purge", TOLD, broken)] if broken else []
        if self._station.held.filesystem:
            self._station.held.note_filesystem(None)

    def _precondition(self, test: PlannedTest, attempt: Attempt) -> None:
        spec = test.precondition
        if not spec:
            return
        self._station.guard("precondition", phase="precondition", time_left_s=self._plan_left_s(test))
        station = self._station
        name, value = station.file(attempt, "precondition"), station.seed(attempt, "precondition")
        done, curve = station.bench.fill(name, spec, station.active_bytes(test), value, station.tick)
        self._rate_bytes_per_s = done.bandwidth_bytes_per_s
        if curve:
            self._station.note("fill_curve", **base.to_json(curve), **attempt._asdict())
        self._station.note("precondition", **base.to_json(done), **attempt._asdict())
        precondition_curve.check(done.kernel_bytes_written, done.bytes_written)
        filesystem.write_out(station)

    def _measure(
        self,
        test: PlannedTest,
        attempt: Attempt,
        reducer: AttemptReducer,
        causes_since_last: t.Callable[[], list[Cause]],
    ) -> None:
        settled, loads = with_points(test, self._station.plan.tests, self.finished)
        settled, of_cpus = on_cpus(settled, cpus.count(self._station.job.host, self._station.bench.place))
        if test.cells:
            self._self_tests.settle()
        measuring = Measuring(self._station, attempt, reducer, self._tails, causes_since_last, self._waits(test))
        measuring.run(settled, {**loads, **of_cpus}, self._trials)

    def _waits(self, test: PlannedTest) -> t.Callable[[], float]:
        """Return what is waited for before each round: self-tests, and those who use a drive in service."""
        if not test.in_service:
            return self._self_tests.wait
        others = give_way.GiveWay(self._station, test.in_service)
        return lambda: self._self_tests.wait() + others.wait()

    def _plan_left_s(self, test: PlannedTest) -> float | None:
        """Return an upper bound of a test that has not begun to measure; None while the write rate is unknown."""
        return resume_state.longest_test_s(test, self._station.held.identity.sizes()[0], self._rate_bytes_per_s)

    def later_s(self, tests: t.Iterable[PlannedTest]) -> float | None:
        """Return an upper bound of tests that follow."""
        return resume_state.longest_tests_s(tests, self._station.held.identity.sizes()[0], self._rate_bytes_per_s)
