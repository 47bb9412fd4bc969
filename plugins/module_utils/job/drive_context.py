# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What campaigns share, and what one of them holds: its drive, fio on it, the guard, its journal and status; and what a
purge method gets of that.
"""

from __future__ import annotations

import functools
import os
import threading
import time
import typing as t

from ..core.background import Background
from ..core.deadline import Watchdog
from ..core.host import Host
from ..drive import entry
from ..guard.block_classifier import Stopped
from ..guard.data_scan import Terms, longer_s
from ..guard.held import DriveToRead, HeldDrive, Refused
from ..guard.held_array import HeldArray
from ..guard.in_service import DriveInService
from ..measure import fio, precondition_curve, validity_limits
from ..measure.fio import seed
from ..measure.fio_runner import Workbench
from ..purge.method import Work
from ..records.base import to_json
from ..records.criterion import Criterion
from ..records.environment import Environment
from ..records.guard import Refusal
from ..records.measurement import Condition
from ..records.plan import PlannedDrive, PlannedPurge, PlannedTest, Validity
from ..run.folder import NEWS_S, Event, Journal, RunDir, Status
from ..run.reducer import EVENTS, USUAL, AttemptReducer, results_of_attempts
from ..run.states import WRITING_STEPS
from ..tuning.tuned_host import TunedHost
from . import release_drive
from .kernel_watch import DriveLog, HostLog
from .side_by_side import SideBySide
from .test_conditions import Conditions

# Events that are written beside what comes next. Of all others a dead job's successor may need to know.
WRITTEN_BESIDE = ("cell", "round", "histogram")
# What a purge method gets outside a test.
NO_PURGE = PlannedPurge("none")


class Attempt(t.NamedTuple):
    """An attempt at a test of a drive, which its events name."""

    test: str
    attempt: int


# Before these the guard looks again; other steps write nothing.
# What is done outside a test.
NO_TEST = Attempt("", 0)


class Job(t.NamedTuple):
    """What the campaigns of a host job share. hung: of drives that gave no answer before their campaigns, why; drives:
    of the plan; ended: the outcomes of the campaigns that are over, by drive; baselines: what drives were like before
    their first tests.
    """

    host: Host
    run_dir: RunDir
    journal: Journal
    status: Status
    stop: threading.Event
    fio_path: str
    same_boot: bool
    history: list[Event]
    tuned: TunedHost
    hung: dict[str, str]
    ended: dict[str, str]
    baselines: dict[str, Environment]
    sample_interval_s: float = 0
    terms: Terms = Terms()
    leave: str = release_drive.AS_IS
    criteria: t.Sequence[Criterion] = ()
    health_criteria: t.Sequence[Criterion] = ()
    validity: Validity = USUAL
    # Until a fill showed the drive's own.
    write_bytes_per_s: float | None = None
    drives: t.Sequence[PlannedDrive] = ()
    # For each drive, from when it is taken.
    time_budget_s: float | None = None
    # None: nobody reads it.
    kernel_log: HostLog | None = None
    # Its drives are in service (ssd_mode: read_only): they are only read.
    in_service: bool = False
    # None: as many drives to the end as at first.
    side_by_side: SideBySide | None = None


class DriveContext:
    """One drive of one run. `reads_only`: nothing of it may write, fio included."""

    def __init__(self, job: Job, plan: PlannedDrive, reads_only: bool = False) -> None:
        self.job = job
        self.plan = plan
        self.drive = plan.drive
        self.history = [record for record in job.history if record.get("drive") == self.drive]
        # Of the attempts of earlier jobs of this run.
        self.results = results_of_attempts(plan.tests, self.drive, job.history, job.validity)
        # Whether the run has begun to write to it, in a job before this one too.
        self.wrote = not job.in_service and any(
            record["event"] == "guard" and record["eligible"] and record["step"] in WRITING_STEPS
            for record in self.history
        )
        self.taken(time.monotonic(), None)
        # Of the test that is under way; remarks on it.
        self.reducer: AttemptReducer | None = None
        self.told: list[Condition] = []
        self.watchdog = Watchdog(job.stop)
        # What is written of this drive, in its order.
        self.beside = Background("writes of " + self.drive)
        state_dir = job.run_dir.state_dir
        self.conditions = Conditions(job.host, lambda: self.held.identity, plan.vendor, self.note, state_dir)
        self.kernel_log = DriveLog(job.kernel_log, self.note, job.stop)
        owner = {"run": job.run_dir.run_id, "drive": self.drive}
        beside = [entry.parse(other.selector) for other in job.drives if other.drive != plan.drive]
        named = {"entry": entry.parse(plan.selector), "expected": to_json(plan.expected), "beside": beside}
        kind = DriveInService if job.in_service else DriveToRead if reads_only else HeldDrive
        self.held = kind(job.host, named, owner, job.same_boot, state_dir, job.terms)
        # What fio works on, and the kernel names of the drives that it is made of: an array's, while there is one.
        self.target: HeldDrive | HeldArray = self.held
        self.members: list[str] = []
        runner = fio.Runner(job.stop, job.fio_path, reads_only, job.in_service)
        self.bench = Workbench(job.host, self.held, runner, job.run_dir.raw(self.drive), self.beside.submit)
        self.bench.limits, self.bench.strict = validity_limits.parse(job.validity.limits), job.validity.strict

    @property
    def name(self) -> str:
        """The kernel's name of it now."""
        return os.path.basename(self.held.path)

    def look(self) -> None:
        """See that what was measured is still this drive, of this size."""
        self.watchdog.call("look at the drive", self.target.confirm)

    def guard(self, step: str, **shown: t.Any) -> None:
        """Check again that the drive may be written, right before a destructive step. While a file system of ours is
        mounted, or an array of ours is there, that it is the same drive.
        """
        if shown:
            self.show(**dict({"round": 0, "cell": None, "last": None}, **shown))
        self.beside.flush()
        if self.bench.file is not None or self.target is not self.held:
            # The file system on it, or the array of it, is ours and keeps everybody else out.
            self.look()
            self.wrote = self.wrote or step in WRITING_STEPS
            return
        begins = self.held.handle is None  # only then the guard looks at what lies on the drive
        looks = begins and not self.job.in_service
        look_s = longer_s(self.job.terms, self.plan.expected.size_bytes or 0) if looks else 0.0
        try:
            check = self.held.take if begins else self.held.check
            self.watchdog.call("guard before " + step, check, look_s, heeds_stop=True)
        except Stopped:
            raise fio.Interrupted() from None
        except Refused as refused:
            self._note_guard(step, False, refused.refusals)
            raise
        self._note_guard(step, True, [])
        if begins:
            self.taken(time.monotonic(), self.held.bytes_written())
        self.wrote = self.wrote or (step in WRITING_STEPS and not self.job.in_service)

    def _note_guard(self, step: str, eligible: bool, refusals: list[Refusal]) -> None:
        seen = self.held
        fields: dict[str, t.Any] = {
            "refusals": refusals,
            "overridden": seen.overridden,
            "identity": seen.identity,
            "look": seen.look,
        }
        if seen.retired:
            fields.update(retired=seen.retired, gives_up=seen.gives_up)
        self.note("guard", step=step, eligible=eligible, **to_json(fields))

    def taken(self, now_s: float, bytes_written: int | None) -> None:
        """Note when its budgets begin: the monotonic time, and what the kernel had written to it by then (None: it does
        not count).
        """
        self._taken_s, self._written_before = now_s, bytes_written

    @property
    def time_budget_ends_s(self) -> float | None:
        """By the monotonic clock; None: it has none."""
        most_s = self.job.time_budget_s
        return self._taken_s + most_s if most_s else None

    def is_budget_spent(self, written_bytes: int = 0) -> bool:
        """Return whether the time or the bytes that the run may take of the drive are used up. written_bytes: by the
        test under way, where the kernel does not count.
        """
        ends_s, most_bytes = self.time_budget_ends_s, self.plan.wear_budget_bytes
        if ends_s is not None and time.monotonic() >= ends_s:
            return True
        return bool(most_bytes) and self._written_bytes(written_bytes) >= (most_bytes or 0)

    def _written_bytes(self, written_bytes: int) -> int:
        """Return what the run wrote to it, by the kernel's count; where that lacks, and of jobs before, by its cells'
        and passes' alone.
        """
        now, before = self.held.bytes_written(), self._written_before
        under_way = max(written_bytes, self.reducer.written_bytes if self.reducer else 0)
        return sum(result.written_bytes for result in self.results) + (
            under_way if now is None or before is None else now - before
        )

    def active_bytes(self, test: PlannedTest) -> int:
        """Return the ActiveRange in whole logical blocks, or zones."""
        size_bytes, block_bytes = self.target.identity.sizes()
        zone_bytes = self.target.identity.zone_bytes if test.zoned else None
        return test.active_range_bytes(size_bytes, zone_bytes or block_bytes)

    def tick(self, share: float | None, news_within_s: float | None = NEWS_S) -> None:
        """Show how far a purge, a fill or a self-test is (None: nobody knows), and let a stop through."""
        progress = None if share is None else round(share, 3)
        # A drive that does not tell how far it is has no news to give.
        last = {"metric": None, "value": None, "mean_latency_us": None, "progress": progress}
        self.show(last=last, news_within_s=None if share is None else news_within_s)
        self.kernel_log.note_new()
        if self.job.stop.is_set():
            raise fio.Interrupted()

    def make_settings_again(self, attempt: Attempt, cheap: bool = False) -> None:
        """Make again what changed since the last test, with the new queue that a purge may give the drive, by a reset,
        or between two rounds (cheap).
        """
        # A queue's attribute waits for the drive's I/O.
        for name in self.members or [self.name]:
            again = self.watchdog.call("make settings again", functools.partial(self.job.tuned.reapply, name, cheap))
            if again:
                self.note("tuned", settings=[item.to_json() for item in again], **attempt._asdict())

    def file(self, attempt: Attempt, step: str) -> str:
        """Return the name of a raw file of a step."""
        return f"{attempt.test}-{attempt.attempt}-{step}"

    def seed(self, attempt: Attempt, *more: str | int) -> int:
        """Return the seed of a step."""
        return seed(self.job.run_dir.run_id, self.drive, *attempt, *more)

    def note(self, event: str, **fields: t.Any) -> None:
        """Add a journal record of this drive; the result of the test under way is made of what the journal has. Raises
        OSError, also of a record before that was written beside.
        """
        record = self.job.journal.record(event, drive=self.drive, **fields)
        self.beside.submit(functools.partial(self.job.journal.write, record))
        if event not in WRITTEN_BESIDE:
            self.beside.flush()
        if self.reducer and event in EVENTS:
            self.reducer.take(record)

    def note_sample(self, event: str, **fields: t.Any) -> None:
        """Add a journal record from a thread that goes on whatever becomes of it."""
        record = self.job.journal.record(event, drive=self.drive, **fields)
        self.beside.put(functools.partial(self.job.journal.write, record))

    def show(self, **fields: t.Any) -> None:
        """Fields of its entry in status.json."""
        self.beside.put(functools.partial(self.job.status.set_drive, self.drive, **fields))


def purge_work(station: DriveContext, purge: PlannedPurge, attempt: Attempt = NO_TEST) -> Work:
    """For a drive that is held."""
    named = attempt._asdict() if attempt.test else {}

    def fill(tick: t.Callable[[float | None], None]) -> int:
        size, seed = station.held.identity.sizes()[0], station.seed(attempt, "purge")
        done = station.bench.fill(station.file(attempt, "purge"), purge.fill(), size, seed, tick).details
        precondition_curve.check(done.kernel_bytes_written, done.bytes_written)
        return done.bytes_written

    return Work(
        host=station.job.host,
        held=station.held,
        options=purge,
        tick=station.tick,
        note=lambda event, **fields: station.note(event, **dict(fields, **named)),
        fill=fill,
        bounded=station.watchdog.call,
    )
