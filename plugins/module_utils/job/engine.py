# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host job: one detached process for each host and run, started from a zipapp of these files.

`run FOLDER` works through the plan in a run's folder; `restore FOLDER` puts back what a dead job left (systemd's ExecStopPost).
"""

from __future__ import annotations

import concurrent.futures
import os
import signal
import sys
import threading
import traceback

from ..core import trust
from ..core.files import read_json
from ..core.host import Host
from ..core.locks import Locked, host_lock
from ..guard.look import Terms
from ..machine import snapshot
from ..run import decision
from ..run.folder import Journal, RunDir, Status, read_journal
from ..run.liveness import first_status, is_live
from ..tuning import settings
from ..tuning.tuned_host import TunedHost
from .campaign import Campaign, Job
from .leaving import AS_IS
from .restore import refuse_unrestored, restore_leftovers, restore_run


class HostJob:
    """Works through a host's drives, then puts the host back, however it ends."""

    def __init__(self, run_dir: RunDir, host: Host) -> None:
        self._run_dir = run_dir
        self._host = host
        host.log = run_dir.note_command
        plan = read_json(run_dir.plan)
        if plan is None:
            raise FileNotFoundError(run_dir.plan)
        self._plan = plan
        self._stop = threading.Event()
        self._tuned = TunedHost(host, plan, run_dir.tuning)
        self._history = read_journal(run_dir.journal)
        self._journal = Journal(run_dir.journal, run_id=plan["run"]["id"], host=plan["host"])
        self._status = Status(run_dir.status, first_status(host, plan, "running", os.environ.get("SSDLAB_FLEET_UNIT")))

    def run(self) -> int:
        """The whole job; its exit code."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: self._stop.set())
        try:
            with host_lock({"run": self._run_dir.run_id, "pid": os.getpid()}):
                return self._run_locked()
        except Locked as error:
            self._status.set(state="failed", restored=True, message="another run has this host: {0}".format(error))
            return 1

    def _run_locked(self) -> int:
        self._status.set()
        state, message = "failed", ""
        try:
            self._refuse_undecided()
            refuse_unrestored(restore_leftovers(self._host, self._run_dir.state_dir))
            self._start()
            self._run_drives()
            state = "stopped" if self._stop.is_set() else "finished"
        except Exception as error:  # The host is put back and the reason is kept.
            message = "{0}: {1}".format(type(error).__name__, error)
            self._journal.add("crash", traceback=traceback.format_exc())
        finally:
            self._tuned.release()
            restored = self._restore()
            self._journal.add("job_finished", state=state)
            self._status.set(state=state, restored=restored, message=message)
        return 0 if state == "finished" else 1

    def _refuse_undecided(self) -> None:
        """Raise PermissionError for a plan that is not what preflight decided, or one that others than root could have written."""
        wrong = [text for text in (decision.problem(self._plan), *trust.problems(self._run_dir.path)) if text]
        if wrong:
            raise PermissionError("{0}: {1}".format(self._run_dir.plan, "; ".join(wrong)))

    def _start(self) -> None:
        version = self._host.run([self._plan["fio"]["path"], "--version"])
        self._journal.add(
            "job_started",
            boot_id=settings.boot_id(self._host),
            pid=os.getpid(),
            engine_version=self._plan["engine_version"],
            fio_version=version.stdout.strip(),
        )
        self._journal.add("tuned", settings=self._tuned.apply())
        # After tuning: the values in force are those of the measurement.
        self._journal.add("snapshot", **snapshot.gather(self._host))

    def _run_drives(self) -> None:
        job = Job(
            host=self._host,
            run_dir=self._run_dir,
            journal=self._journal,
            status=self._status,
            stop=self._stop,
            fio_path=self._plan["fio"]["path"],
            same_boot=self._plan["boot_id"] == settings.boot_id(self._host),
            history=self._history,
            tuned=self._tuned,
            sample_interval_s=float(self._plan.get("sample_interval_s") or 0),
            terms=Terms(**self._plan.get("look", {})),
            leave=self._plan.get("leave", AS_IS),
            criteria=self._plan.get("criteria", []),
        )
        campaigns = [Campaign(job, drive) for drive in self._plan["drives"]]
        with concurrent.futures.ThreadPoolExecutor(max(1, self._plan["parallel_drives"])) as pool:
            futures = [pool.submit(campaign.run) for campaign in campaigns]
            # Python handles a signal in the main thread, which must wake up for it.
            while concurrent.futures.wait(futures, timeout=1).not_done:
                pass
        for future in futures:
            future.result()

    def _restore(self) -> bool:
        """Whether the host is back as it was."""
        if self._plan["tune"].get("keep"):
            return False
        done = settings.restore(self._host, self._run_dir.tuning)
        self._journal.add("restored", settings=done)
        return not os.path.exists(self._run_dir.tuning)


def _log_to(path: str) -> None:
    """Keep what the interpreter and libraries say; systemd's own append needs version 240."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for standard in (1, 2):
        os.dup2(handle, standard)
    os.close(handle)


def main(arguments: list[str] | None = None) -> int:
    """The zipapp's command line."""
    words = sys.argv[1:] if arguments is None else arguments
    if len(words) != 2 or words[0] not in ("run", "restore"):
        sys.stderr.write("usage: engine.pyz run|restore RUN_FOLDER\n")
        return 2
    host, run_dir = Host(), RunDir.at(words[1])
    if words[0] == "run":
        # Whatever the umask of the login was: watch and collect read as a plain user.
        os.umask(0o022)
        _log_to(run_dir.log)
        return HostJob(run_dir, host).run()
    status = run_dir.read_status()
    if not is_live(host, status):
        # What tune.yml set is to stay; systemd calls this after that job too.
        if not settings.is_kept(run_dir.tuning):
            restore_run(host, run_dir)
    return 0
