# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One drive's campaign: for each test of its plan guard, purge, precondition and rounds; every step into the journal."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import traceback
import typing as t

from ..core.deadline import Hangs, Watchdog
from ..core.host import Host
from ..guard import own_data
from ..guard.held import HeldDrive, Refused
from ..guard.look import Stopped, Terms, longer_s
from ..measure import causes, fillcurve, fio
from ..measure.rounds import FITTED_END, Rounds, bound_s, cell_s
from ..measure.sampler import Sampler
from ..measure.spoilt import Tally
from ..measure.workbench import Workbench, seed
from ..purge import methods
from ..purge import step as purge_step
from ..purge.method import PurgeError, Work
from ..run import criteria
from ..run.folder import NEWS_S, Journal, RunDir, Status
from ..tuning.tuned_host import TunedHost
from . import leaving
from .conditions import Conditions

# Outcomes of a test that stands: a second run keeps it and never wipes the drive for it again.
KEPT_OUTCOMES = ("steady", "not_steady", "complete", "invalid", "error")
# The first reason of a test that was not begun, as the host could not be tuned.
NOT_BEGUN = "neither purged nor measured"


class Job(t.NamedTuple):
    """What the campaigns of a host job share."""

    host: Host
    run_dir: RunDir
    journal: Journal
    status: Status
    stop: threading.Event
    fio_path: str
    same_boot: bool
    history: list[dict[str, t.Any]]
    tuned: TunedHost
    sample_interval_s: float = 0
    terms: Terms = Terms()
    leave: str = leaving.AS_IS
    criteria: t.Sequence[t.Mapping[str, t.Any]] = ()
    limits: causes.Limits = causes.Limits()
    strict: bool = False


class Campaign:
    """All that happens to one drive in one run. `plan`: the drive's entry in plan.json."""

    def __init__(self, job: Job, plan: t.Mapping[str, t.Any]) -> None:
        self._job = job
        self._plan = plan
        self._drive = plan["drive"]
        self._history = [record for record in job.history if record.get("drive") == self._drive]
        self._rate_bytes_per_s: float | None = None
        self._drift: list[str] = []
        self._unready = not_begun(self._history)
        self._error = ""
        self.drive = self._drive
        # Why this campaign ended unforeseen; its test is done again by the next job.
        self.crashed = ""
        self._watchdog = Watchdog(job.stop)
        self._waited_for: t.Mapping[str, t.Any] | None = None
        self._conditions = Conditions(job.host, lambda: self._held.identity, plan.get("vendor") or {}, self._note, job.run_dir.state_dir)
        # test_finished of every test that stands, those of jobs before too.
        self._finished = [record for record in self._history if record["event"] == "test_finished" and record["outcome"] in KEPT_OUTCOMES]
        owner = {"run": job.run_dir.run_id, "drive": self._drive}
        self._held = HeldDrive(job.host, plan, owner, job.same_boot, job.run_dir.state_dir, job.terms)
        runner = fio.Runner(job.stop, job.fio_path)
        self._bench = Workbench(job.host, self._held, runner, job.run_dir.raw(self._drive))
        self._bench.limits, self._bench.strict = job.limits, job.strict
        # The causes of the rounds of the test that is on.
        self._tally = Tally()

    def run(self) -> str:
        """Work through the plan; the drive's outcome: complete, refused, error or interrupted. Never raises."""
        message, hangs = "", False
        try:
            outcome = self._run_tests()
            message = self._error if outcome == "error" else ""
        except Hangs as error:
            outcome, message, hangs = "error", str(error), True
        except fio.Interrupted:
            outcome, message = "interrupted", "the run was stopped"
        except Refused as refused:
            outcome, message = "refused", str(refused)
        except (fio.FioError, PurgeError) as error:
            outcome, message = "error", str(error)
        except Exception as error:  # The other drives go on, and nothing is lost: the journal has it.
            outcome, message = "error", self._crash(error)
        outcome, message = self._let_go(message if hangs else "") or (outcome, message)
        try:
            self._note("drive_finished", outcome=outcome, message=message)
        except Exception as error:
            outcome, message = "error", self._crash(error)
        self._show(phase="done", outcome=outcome, message=message, cell=None, last=None, time_left_s=0)
        return outcome

    def _let_go(self, hangs: str) -> tuple[str, str] | None:
        """Give the drive back. hangs: why it is only abandoned. An outcome and a message where that fails, in place of those so far."""
        self._job.tuned.leave_place(self._drive)
        try:
            if not hangs:
                self._watchdog.call("release", self._held.release)
                return None
            self._held.abandon(hangs)
        except Hangs as error:
            self._held.abandon(str(error))
            return "error", str(error)
        except Exception as error:
            return "error", self._crash(error)
        return None

    def _crash(self, error: Exception) -> str:
        """Keep what nobody foresaw; its text."""
        self.crashed = crash_text(error)
        with contextlib.suppress(OSError):
            self._note("crash", message=self.crashed, traceback=traceback.format_exc())
        return self.crashed

    def _run_tests(self) -> str:
        kept = finished_tests(self._history)
        waiting = [test for test in self._plan["tests"] if test["name"] not in kept]
        self._show(phase="guard", tests=len(self._plan["tests"]))
        self._recover()
        if not waiting:
            self._close()
            return "complete"
        if self._job.stop.is_set():
            raise fio.Interrupted()
        self._settle_unfinished()
        self._guard("start")
        place = self._bench.place = self._job.tuned.take_place(self._drive)
        names = [test["name"] for test in waiting]
        self._note("drive_started", identity=self._held.identity, path=self._held.path, tests=names, place=place._asdict())
        self._held.keep_as_evidence(self._missed())
        self._held.content_is_ours()
        self._bench.check_fio()
        self._watchdog.call("look at the drive's world", lambda: self._conditions.begin(self._history))
        for index, test in enumerate(self._plan["tests"], start=1):
            if test["name"] in kept:
                continue
            self._show(path=self._held.path, test=test["name"], test_index=index, round=0, round_max=test["rounds"].get("max"))
            if self._run_test(test) == "error":
                return "error"
        self._leave()
        return "complete"

    def _leave(self) -> None:
        """How the drive is left once all its tests are done: a missed criterion makes it evidence, what went well may be made blank."""
        self._held.keep_as_evidence(self._missed())
        if self._held.evidence:
            self._note("left", state=leaving.EVIDENCE, reason=self._held.evidence, seconds=0)
        elif self._job.leave == leaving.BLANK:
            left = leaving.make_blank(self._work({"purge": {}}, {}), self._finished)
            self._held.blank = left["state"] == leaving.BLANK
            self._note("left", **left)

    def _missed(self) -> str:
        """Which criteria the drive missed in the tests that stand by now; "": none."""
        return "; ".join(criteria.missed(self._job.criteria, self._plan["expected"].get("model") or "", self._finished))[:leaving.LONGEST_REASON]

    def _close(self) -> None:
        """A job of this run died after the last test and before it let go of the drive: its ledger has to say so."""
        identity = next((record["identity"] for record in reversed(self._history) if record.get("identity")), None)
        if identity and not purge_step.goes_on(self._history):
            own_data.close_one(own_data.path_of(self._job.run_dir.state_dir, identity), self._job.run_dir.run_id)

    def _run_test(self, test: t.Mapping[str, t.Any]) -> str:
        """One test; its outcome. An exception that ends the campaign is journalled here first."""
        attempt = 1 + sum(r["event"] == "test_started" and r.get("test") == test["name"] for r in self._history)
        names = {"test": test["name"], "attempt": attempt}
        rounds = Rounds(test, self._held.identity["size_bytes"])
        try:
            return self._work_through(test, names, rounds)
        except (fio.Interrupted, Refused, Hangs):
            raise
        except Exception as error:
            # The test is no result: the next job does it again.
            with contextlib.suppress(OSError):
                self._end_test(names, rounds, "interrupted", ["interrupted: the host job met {0}".format(crash_text(error))])
            raise

    def _work_through(self, test: t.Mapping[str, t.Any], names: dict[str, t.Any], rounds: Rounds) -> str:
        """A test from its purge to its end."""
        self._note("test_started", title=test.get("title", ""), **names)
        self._tally = Tally()
        self._make_settings_again(names)
        self._drift = self._job.tuned.drifted(self._name)
        self._conditions.begin_test()
        self._unready = self._unready or (self._untuned() if test["cells"] else [])
        if self._unready:
            # Nothing that is measured now could count: neither purge the drive for it nor spend hours. Later tests may build on this one.
            self._end_test(names, rounds, "invalid", [NOT_BEGUN, *self._unready])
            return "invalid"
        sampler, found = self._sampler(names), []
        try:
            self._purge(test, names)
            self._make_settings_again(names)
            self._watchdog.call("look at the drive's world", self._conditions.begin_measurement)
            with sampler:
                self._precondition(test, names)
                self._measure(test, names, rounds)
            self._look()
            found = self._watchdog.call("look at the drive's world", lambda: self._conditions.end_test(test, sampler))
            outcome, reasons = rounds.outcome()
            reasons = reasons + (self._tally.reasons() if outcome in ("invalid", "not_steady") else [])
        except fio.Interrupted:
            self._end_test(names, rounds, "interrupted", ["interrupted: the run was stopped"])
            raise
        except Refused as refused:
            self._end_test(names, rounds, "error", ["refused: {0}".format(refused)])
            raise
        except Hangs as error:
            self._end_test(names, rounds, "error", [str(error)])
            raise
        except fillcurve.Short as error:
            outcome, reasons = "invalid", [str(error)]
        except (fio.FioError, PurgeError) as error:
            outcome, reasons = "error", [str(error)]
            self._error = "{0}: {1}".format(test["name"], error)
        self._look_for_drift()
        spoilt = self._untuned() + found
        if spoilt and outcome in ("steady", "complete"):
            outcome, reasons = "invalid", spoilt
        elif outcome in ("not_steady", "invalid"):
            reasons = reasons + sampler.reasons
        self._end_test(names, rounds, outcome, list(dict.fromkeys([*reasons, *found])))
        return outcome

    def _sampler(self, names: dict[str, t.Any]) -> Sampler:
        return Sampler(
            self._job.host,
            identity=lambda: self._held.identity,
            note=lambda event, **fields: self._note(event, **dict(fields, **names)),
            interval_s=self._job.sample_interval_s,
            io_cpus=lambda: self._bench.place.cpus,
            limit_c=lambda: self._conditions.limit_c,
        )

    @property
    def _name(self) -> str:
        return os.path.basename(self._held.path)

    def _make_settings_again(self, names: dict[str, t.Any]) -> None:
        """Make again what changed since the last test, or with the new queue that a purge may give the drive; it is not measured yet."""
        # A queue's attribute waits for the drive's I/O.
        again = self._watchdog.call("make settings again", lambda: self._job.tuned.reapply(self._name))
        if again:
            self._note("tuned", settings=again, **names)

    def _look_for_drift(self, cheap: bool = False) -> None:
        """Note what is not as it was set, once each: what came back by itself has still been measured."""
        self._drift += [item for item in self._job.tuned.drifted(self._name, cheap) if item not in self._drift]

    def _untuned(self) -> list[str]:
        return ["the host was not as it was to be: " + item for item in self._drift]

    def _end_test(self, names: dict[str, t.Any], rounds: Rounds, outcome: str, reasons: list[str]) -> None:
        averages = rounds.averages()
        windows = rounds.steady_state() if rounds.count else []
        first = (windows or [{}])[0].get("cell")
        tracked = next((item["metrics"] for item in averages if first in (None, item["cell"])), {})
        ends = {item["metric"] + FITTED_END: item["fitted_end"] for item in windows if item["cell"] == first and item["fitted_end"] is not None}
        fields = dict(
            outcome=outcome,
            reasons=reasons,
            rounds=rounds.count,
            steady_state=windows,
            saturation=rounds.saturation(),
            validity=self._tally.fields(),
            metrics=dict(tracked, **ends),
            cells=averages,
            **self._conditions.fields(),
            **names
        )
        for histogram in rounds.histograms() if outcome not in ("interrupted", "error") else ():
            self._note("histogram", **dict(histogram, **names))
        self._finished.append(fields)
        # The ledger first: a job that dies in between does the test again, but loses no evidence.
        self._held.keep_as_evidence(self._missed())
        self._note("test_finished", **fields)

    def _recover(self) -> None:
        """Put right what a dead job of this run left on the drive, also where no test is left to do; first, as a locked drive can't be read."""
        if methods.left_behind(self._history):
            self._watchdog.call("identify", self._held.identify)
            methods.recover(self._job.host, self._held.identity, self._history, self._note)

    def _settle_unfinished(self) -> None:
        """Wait for a purge that a job of this run left behind: a drive takes no I/O meanwhile, so the guard could not look at it."""
        started = purge_step.unfinished(self._history)
        if started is None:
            return
        self._watchdog.call("identify", self._held.identify)
        test = next((test for test in self._plan["tests"] if test["name"] == started["test"]), {"purge": {}})
        self._show(phase="purge", path=self._held.path, test=started["test"])
        if purge_step.wait_for_unfinished(self._work(test, {}), started):
            self._waited_for = started

    def _work(self, test: t.Mapping[str, t.Any], names: t.Mapping[str, t.Any]) -> Work:
        """What a purge method gets for a test. `names`: of the test and its attempt."""

        def fill(tick: t.Callable[[float], None]) -> dict[str, t.Any]:
            size = self._held.identity["size_bytes"]
            record = self._bench.fill(self._file(names, "purge"), test["purge"], size, self._seed(names, "purge"), tick)
            fillcurve.check(record["kernel_bytes_written"], record["bytes_written"])
            return record

        return Work(
            host=self._job.host,
            held=self._held,
            options=test["purge"],
            tick=self._tick,
            note=lambda event, **fields: self._note(event, **dict(fields, **names)),
            fill=fill,
            history=self._history,
            bounded=self._watchdog.call,
        )

    def _purge(self, test: t.Mapping[str, t.Any], names: dict[str, t.Any]) -> None:
        spec = test["purge"]
        if spec["method"] == "none":
            return
        self._guard("purge", phase="purge", time_left_s=self._plan_left_s(test))
        work = self._work(test, names)
        waited_for, self._waited_for = self._waited_for, None
        record = purge_step.resumed(work, waited_for) if waited_for and waited_for["test"] == names["test"] else None
        record = record or purge_step.perform(work)
        self._note("purge", **dict(record, **names))
        if not record["verified"]:
            message = "{survived} of {sentinels} blocks written before the purge can still be read after {0}; try another purge_method"
            raise PurgeError(message.format(record["method"], **record["verification"]))

    def _precondition(self, test: t.Mapping[str, t.Any], names: dict[str, t.Any]) -> None:
        spec = test.get("precondition")
        if not spec:
            return
        self._guard("precondition", phase="precondition", time_left_s=self._plan_left_s(test))
        name, value = self._file(names, "precondition"), self._seed(names, "precondition")
        record = self._bench.fill(name, spec, self._active_bytes(test), value, self._tick)
        self._rate_bytes_per_s = record["bandwidth_bytes_per_s"]
        curve = record.pop("curve")
        if curve:
            self._note("fill_curve", **dict(curve, **names))
        self._note("precondition", **dict(record, **names))
        fillcurve.check(record["kernel_bytes_written"], record["bytes_written"])

    def _measure(self, test: t.Mapping[str, t.Any], names: dict[str, t.Any], rounds: Rounds) -> None:
        if not test["cells"]:
            return
        self._guard("measure", phase="measure")
        self._bench.begin_test()
        began, written = time.monotonic(), 0
        while not rounds.finished():
            number = rounds.count + 1
            metrics, histograms = {}, {}
            for cell in test["cells"]:
                self._show(round=number, cell=cell["id"], time_left_s=rounds.time_left_s(), news_within_s=NEWS_S + 1.1 * cell_s(cell))
                result = self._cell(cell, number, names, self._active_bytes(test))
                self._tally.add(number, cell["id"], result["causes"])
                metrics[cell["id"]] = fio.metrics(result["read"], result["write"])
                histograms[cell["id"]] = result["histograms"]
                written += (result["write"] or {}).get("bytes", 0)
            elapsed_s = time.monotonic() - began
            rounds.add(metrics, written, elapsed_s, histograms, self._tally.is_spoilt(number))
            self._after_round(names, rounds, metrics, written, elapsed_s)

    def _after_round(
        self, names: dict[str, t.Any], rounds: Rounds, metrics: dict[str, t.Any], written: int, elapsed_s: float
    ) -> None:
        self._look()
        self._look_for_drift(cheap=True)
        tracked = rounds.tracked()
        self._note("round", round=rounds.count, tracked=tracked, bytes_written=written, elapsed_s=round(elapsed_s, 3), **names)
        shown = tracked[0] if tracked else {"cell": list(metrics)[0], "metric": "iops"}
        figures = metrics[shown["cell"]]
        self._show(
            last={
                "metric": shown["metric"],
                "value": figures.get(shown["metric"]),
                "mean_latency_us": figures.get("mean_latency_us"),
                "progress": None,
            }
        )

    def _cell(self, cell: t.Mapping[str, t.Any], number: int, names: dict[str, t.Any], size_bytes: int) -> dict[str, t.Any]:
        value = self._seed(names, number, cell["id"])
        name = self._file(names, "{0:04d}-{1}".format(number, cell["id"]))
        fields = dict(names, round=number, cell=cell["id"], seed=value)
        try:
            result = self._bench.cell(name, cell, size_bytes, value)
        except fio.FioError as error:
            self._note("cell", accepted=False, reasons=[str(error)], **fields)
            raise fio.FioError("round {0}, cell {1}: {2}".format(number, cell["id"], error)) from None
        noted = {key: value for key, value in result.items() if key != "histograms"}
        found = [item._asdict() for item in result["causes"]]
        self._note("cell", accepted=True, reasons=[], **dict(fields, **dict(noted, causes=found)))
        return result

    def _look(self) -> None:
        """See that what was measured is still this drive, of this size."""
        self._watchdog.call("look at the drive", self._held.confirm)

    def _guard(self, step: str, **shown: t.Any) -> None:
        """Check again that the drive may be written, right before a destructive step."""
        if shown:
            self._show(**dict({"round": 0, "cell": None, "last": None}, **shown))
        begins = self._held.handle is None  # only then the guard looks at what lies on the drive
        look_s = longer_s(self._job.terms, self._plan["expected"].get("size_bytes") or 0) if begins else 0.0
        try:
            self._watchdog.call("guard before " + step, self._held.take if begins else self._held.check, look_s)
        except Stopped:
            raise fio.Interrupted() from None
        except Refused as refused:
            self._note(
                "guard", step=step, eligible=False, refusals=refused.refusals, overridden=self._held.overridden, identity=self._held.identity,
                look=self._held.look,
            )
            raise
        seen = self._held
        self._note("guard", step=step, eligible=True, refusals=[], overridden=seen.overridden, identity=seen.identity, look=seen.look)

    def _active_bytes(self, test: t.Mapping[str, t.Any]) -> int:
        """The ActiveRange in whole logical blocks."""
        block = self._held.identity["logical_block_size_bytes"]
        return self._held.identity["size_bytes"] * test["active_range_pct"] // 100 // block * block

    def _plan_left_s(self, test: t.Mapping[str, t.Any]) -> float | None:
        """An upper bound of a test that has not begun to measure; None while the write rate is unknown."""
        spec, size = test.get("precondition"), self._active_bytes(test)
        round_s = sum(cell_s(cell) for cell in test["cells"])
        rounds_s = bound_s(test["rounds"], round_s, self._held.identity["size_bytes"]) if test["cells"] else 0.0
        if rounds_s is None or (spec and not self._rate_bytes_per_s):
            return None
        fill_s = spec["passes"] * size / self._rate_bytes_per_s if spec and self._rate_bytes_per_s else 0.0
        return rounds_s + fill_s

    def _tick(self, share: float | None) -> None:
        """Show how far a purge or a fill is (None: nobody knows), and let a stop through."""
        progress = None if share is None else round(share, 3)
        # A drive that does not tell how far it is has no news to give.
        self._show(last={"metric": None, "value": None, "mean_latency_us": None, "progress": progress}, news_within_s=None if share is None else NEWS_S)
        if self._job.stop.is_set():
            raise fio.Interrupted()

    def _file(self, names: t.Mapping[str, t.Any], step: str) -> str:
        return "{test}-{attempt}-{step}".format(step=step, **names)

    def _seed(self, names: t.Mapping[str, t.Any], *more: t.Any) -> int:
        return seed(self._job.run_dir.run_id, self._drive, names["test"], names["attempt"], *more)

    def _note(self, event: str, **fields: t.Any) -> None:
        self._job.journal.add(event, drive=self._drive, **fields)

    def _show(self, **fields: t.Any) -> None:
        self._job.status.set_drive(self._drive, **fields)


def crash_text(error: Exception) -> str:
    """An exception that nobody foresaw, in one line."""
    return "{0}: {1}".format(type(error).__name__, error)


def not_begun(history: t.Iterable[t.Mapping[str, t.Any]]) -> list[str]:
    """Why a test of one drive was not begun, in this job or one before, from its journal records: what comes after may build on it."""
    return next((r["reasons"][1:] for r in history if r["event"] == "test_finished" and r["reasons"][:1] == [NOT_BEGUN]), [])


def finished_tests(history: t.Iterable[t.Mapping[str, t.Any]]) -> set[str]:
    """The tests of one drive that stand, from its journal records."""
    return {r["test"] for r in history if r["event"] == "test_finished" and r["outcome"] in KEPT_OUTCOMES}
