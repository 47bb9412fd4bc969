# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host job: one detached process for each host and run, started from a zipapp of these files.

`run FOLDER [STARTER]` works through the plan in a run's folder, unless it comes too late for that start
(liveness.starter); `restore FOLDER` puts back what a dead job left (systemd's
ExecStopPost).
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import signal
import sys
import threading
import time
import traceback
import typing as t
from dataclasses import replace

from ..core import ownership
from ..core.files import remove_asides
from ..core.host import Host
from ..core.locks import Locked, host_holder, host_lock
from ..guard.data_scan import Terms
from ..machine import snapshot
from ..measure.fio import Interrupted
from ..measure.kernel_log_reader import KernelLogReader
from ..records import base
from ..records.tuning import Setting
from ..run import digests, folder, read_only, states
from ..run.criteria import usable
from ..run.folder import Journal, Reserve, RunDir, Status, read_journal
from ..run.liveness import first_status, is_live, pid_start, starter
from ..tuning import plan as tuning_plan
from ..tuning import settings
from ..tuning.tuned_host import TunedHost
from . import array_leftover, resume_state
from .campaign import Campaign
from .drive_context import Job
from .kernel_watch import HostLog
from .parallelism import drives_at_once, turns
from .restore import leftover, next_order, refuse_unrestored, restore_leftovers, restore_run

# How long a job waits for a play that has the host's lock for a moment.
LOCK_WAIT_S = 10.0
HEARTBEAT_S = 30.0
# The files of a run that are replaced as a whole.
WRITTEN_ASIDE = (folder.PLAN, folder.STATUS, folder.TUNING, folder.JOURNAL, "reserve", array_leftover.FILE)


class HostJob:
    """Works through a host's drives, then puts the host back, however it ends."""

    def __init__(self, run_dir: RunDir, host: Host, started_by: str = "") -> None:
        self._run_dir = run_dir
        self._started_by = started_by
        self._host = host
        host.log = run_dir.note_command
        plan = run_dir.read_plan()
        if plan is None:
            raise FileNotFoundError(run_dir.plan)
        self._plan = plan
        self._stop = threading.Event()
        self._tuned: TunedHost | None = None
        self._shown_at = time.monotonic()
        self._history = read_journal(run_dir.journal)
        self._reserve = Reserve(run_dir.path)
        self._lock = host_lock(owner(host, run_dir))
        self._journal = Journal(run_dir.journal, run_id=plan.run.id, host=plan.host)
        self._journal.on_full = self._reserve.release
        self._status = Status(
            run_dir.status, first_status(host, plan, states.RUNNING, os.environ.get("SSDLAB_FLEET_UNIT"))
        )

    def run(self) -> int:
        """Return the whole job; its exit code."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: self._stop.set())
        try:
            # A play that is just putting this host back, or starts this job, has the lock for a moment.
            with self._lock.acquire(wait_s=LOCK_WAIT_S):
                if not self._is_wanted():
                    sys.stderr.write(
                        "too late: the run has since been restarted, stopped or given up; nothing was done\n"
                    )
                    return 1
                remove_asides(self._run_dir.path, WRITTEN_ASIDE)
                return self._run_locked()
        except Locked as error:
            # A start that came too late, and was made again since: the status is that of the job that has the lock.
            if self._is_wanted() and (host_holder() or {}).get("folder") != os.path.realpath(self._run_dir.path):
                self._status.set(state=states.FAILED, restored=True, message=f"another run is using this host: {error}")
            return 1

    def _is_wanted(self) -> bool:
        """Return whether the start that this job is of still stands: nobody has given it up, taken up the run or ended
        it since. That this process has the lock does not tell: while it hung, it had none.
        """
        return not self._started_by or starter(self._run_dir.read_status()) == self._started_by

    def _run_locked(self) -> int:
        state, messages = states.FAILED, []
        try:
            self._status.set()
            self._refuse_undecided()
            self._reserve.hold()
            # This run is live by now, so it is not among the leftovers.
            refuse_unrestored(array_leftover.stop(self._host, self._run_dir))
            refuse_unrestored(restore_leftovers(self._host, self._run_dir.state_dir))
            with KernelLogReader(self._host) as reader:
                messages = self._run_drives(self._start(), HostLog(self._host, reader))
            state = states.STOPPED if self._stop.is_set() else states.FAILED if messages else states.FINISHED
        except Exception as error:  # The host is put back and the reason is kept.
            messages.append(self._crash(error))
        finally:
            restored = self._restore(messages)
            self._reserve.release()
            # What the journal could not tell, the status tells; the run is not taken for a whole one.
            state = states.FAILED if messages and state == states.FINISHED else state
            with self._told(messages):
                self._journal.add("job_finished", state=state)
            self._status.set(state=state, restored=restored, message="; ".join(messages))
        return 0 if state == states.FINISHED else 1

    def _refuse_undecided(self) -> None:
        """Raise PermissionError for a plan that is not what preflight decided, or one that others than root could have
        written.
        """
        wrong = [text for text in (digests.plan_problem(self._plan), *ownership.problems(self._run_dir.path)) if text]
        if wrong:
            raise PermissionError("{0}: {1}".format(self._run_dir.plan, "; ".join(wrong)))

    def _crash(self, error: Exception) -> str:
        text = f"{type(error).__name__}: {error}"
        with contextlib.suppress(OSError):
            self._journal.add("crash", message=text, traceback=traceback.format_exc())
        sys.stderr.write(traceback.format_exc())
        return text

    @contextlib.contextmanager
    def _told(self, messages: list[str]) -> t.Iterator[None]:
        """Nothing that fails at the end keeps the rest of it from being done."""
        try:
            yield
        except Exception as error:
            messages.append(self._crash(error))

    def _start(self) -> TunedHost:
        """Tune the host. It is remembered before its first setting changes, so that a crash puts it back."""
        version = self._host.run([self._plan.fio.path, "--version"])
        self._journal.add(
            "job_started",
            boot_id=settings.boot_id(self._host),
            pid=os.getpid(),
            engine_version=self._plan.engine_version,
            fio_version=version.stdout.strip(),
        )
        tuned = self._tuned = TunedHost(
            self._host,
            tuning_plan.parse(self._plan),
            self._run_dir.tuning,
            next_order(self._run_dir.state_dir),
        )
        made = tuned.apply()
        self._journal.add(
            "tuned",
            settings=[item.to_json() for item in made],
            side_effects=[item.to_json() for item in tuned.side_effects()],
            keep=tuned.record and tuned.record.keep,
            order=tuned.record and tuned.record.order,
        )
        # After tuning: the values in force are those of the measurement.
        found = replace(snapshot.gather(self._host), bios_settings=self._plan.bios_settings)
        self._journal.add("snapshot", **base.to_json(found))
        return tuned

    def _run_drives(self, tuned: TunedHost, kernel_log: HostLog) -> list[str]:
        """Work through all drives; why campaigns crashed, so that the run is to go on another time."""
        job = Job(
            host=self._host,
            run_dir=self._run_dir,
            journal=self._journal,
            status=self._status,
            stop=self._stop,
            fio_path=self._plan.fio.path,
            same_boot=self._plan.boot_id == settings.boot_id(self._host),
            history=self._history,
            tuned=tuned,
            hung={},
            ended={},
            baselines={},
            sample_interval_s=self._plan.sample_interval_s,
            terms=Terms(self._plan.look.seconds, self._stop.is_set),
            leave=self._plan.leave,
            criteria=usable(self._plan.criteria),
            health_criteria=usable(self._plan.health_criteria),
            validity=self._plan.validity,
            write_bytes_per_s=self._plan.assumed_write_bytes_per_s,
            time_budget_s=self._plan.time_budget_s,
            drives=self._plan.drives,
            kernel_log=kernel_log,
            in_service=bool(self._plan.decision and self._plan.decision.mode == read_only.MODE),
        )
        for drive in self._plan.drives:
            size = drive.expected.size_bytes or 0
            later_s = resume_state.longest_tests_s(drive.tests, size, job.write_bytes_per_s)
            self._status.set_drive(drive.drive, later_s=later_s)
        try:
            (number,) = self._in_threads(1, [lambda: drives_at_once(job, self._plan)])
        except Interrupted:
            number = 1  # for the campaigns to tell that they are stopped
        job = job._replace(side_by_side=turns(job, self._plan, number))
        # An array waits for the campaigns of all its drives: they have to begin before.
        in_order = sorted(self._plan.drives, key=lambda drive: any(test.array for test in drive.tests))
        campaigns = [Campaign(job, drive) for drive in in_order]
        self._in_threads(number, [campaign.run for campaign in campaigns])
        return [f"{campaign.drive}: {campaign.crashed}" for campaign in campaigns if campaign.crashed]

    def _in_threads(self, number: int, steps: t.Sequence[t.Callable[[], t.Any]]) -> list[t.Any]:
        """Return what the steps return, so many of them at a time. What one of them raises comes once all are done."""
        with concurrent.futures.ThreadPoolExecutor(max(1, number)) as pool:
            futures = [pool.submit(step) for step in steps]
            # Python handles a signal in the main thread, which must wake up for it.
            while concurrent.futures.wait(futures, timeout=1).not_done:
                self._show_life()
        return [future.result() for future in futures]

    def _show_life(self) -> None:
        """A status now and then while drives are silent for long: watch tells by its time how old a drive's own news
        is.
        """
        if time.monotonic() - self._shown_at >= HEARTBEAT_S:
            self._shown_at = time.monotonic()
            with contextlib.suppress(OSError):
                self._status.set()
            # Whoever empties /run lets no second job in for long.
            with contextlib.suppress(OSError, Locked):
                self._lock.renew()

    def _restore(self, messages: list[str]) -> bool:
        """Return whether the host is back as it was. What does not work is added to `messages`."""
        with self._told(messages):
            messages += settings.failures(array_leftover.stop(self._host, self._run_dir))
        if self._tuned is None:
            return leftover(self._run_dir) is None
        self._tuned.release()
        if self._plan.tune.keep:
            return False
        done: list[Setting] | None = None
        with self._told(messages):
            done = settings.restore(
                self._host, self._run_dir.tuning, record=self._tuned.record, hanging=self._tuned.hung
            )
            self._journal.add("restored", settings=[item.to_json() for item in done])
        return done is not None and not settings.failures(done) and not array_leftover.is_left(self._run_dir)


def owner(host: Host, run_dir: RunDir) -> dict[str, str | int | None]:
    """Who holds a lock: liveness finds a job by it whose status is lost."""
    return {
        "run": run_dir.run_id,
        "folder": os.path.realpath(run_dir.path),
        "pid": os.getpid(),
        "pid_start": pid_start(host, os.getpid()),
    }


def _log_to(path: str) -> None:
    """Keep what the interpreter and libraries say; systemd's own append needs version 240."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for standard in (1, 2):
        os.dup2(handle, standard)
    os.close(handle)


def main(arguments: list[str] | None = None) -> int:
    """Return the zipapp's command line."""
    words = sys.argv[1:] if arguments is None else arguments
    if not (len(words) == 2 and words[0] == "restore") and not (len(words) in (2, 3) and words[0] == "run"):
        sys.stderr.write("usage: engine.pyz run RUN_FOLDER [STARTER] | restore RUN_FOLDER\n")
        return 2
    host, run_dir = Host(), RunDir.at(words[1])
    foreign = ownership.problems(run_dir.path)
    if foreign:
        sys.stderr.write("this state folder cannot be trusted: {0}\n".format("; ".join(foreign)))
        return 1
    if words[0] == "run":
        # Whatever the umask of the login was: watch and collect read as a plain user.
        os.umask(0o022)
        _log_to(run_dir.log)
        return HostJob(run_dir, host, *words[2:]).run()
    try:
        with host_lock({"run": "restore of " + run_dir.run_id, "pid": os.getpid()}).acquire(wait_s=LOCK_WAIT_S):
            return _after_the_job(host, run_dir)
    except Locked as error:
        sys.stderr.write(f"not restored here: {error}\n")
        return 1


def _after_the_job(host: Host, run_dir: RunDir) -> int:
    """Return what systemd calls once the job has ended, however it did."""
    if not is_live(host, run_dir):
        left = leftover(run_dir)
        # What tune.yml set is to stay; systemd calls this after that job too.
        if left and not left.keeps:
            restore_run(host, run_dir)
    return 0
