# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of the play and not of the job: two at the same moment, and one that is killed before it has its answer."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import typing as t

from bench import TESTS, Bench, start_in_process
from product import job
from waiting import wait_until


def twins(bench: Bench, _moment: str) -> t.Iterator[str]:
    """Two controllers start one run in the same second: one job works, and both are told so."""
    plan, engine, told = bench.plan(), bench.engine(), []

    def start() -> None:
        try:
            told.append(bench.start(plan, engine)["action"])
        except job.JobError as error:
            told.append(str(error))

    threads = [threading.Thread(target=start) for _each in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if sorted(told) not in (["attach", "start"], ["nothing", "start"]):
        yield f"the two starts give {told}"
    jobs = [record["pid"] for record in bench.journal() if record["event"] == "job_started"]
    if len(jobs) > 1:
        yield f"jobs {jobs} work on one run"
    yield from _whole(bench)


def cut_off(bench: Bench, moment: str) -> t.Iterator[str]:
    """The module is killed once this file is there, before it has told anybody that it started a job; the next play
    goes on, whatever it finds.
    """
    plan, engine = bench.plan(), bench.engine()
    _ours, theirs = multiprocessing.Pipe()
    starter = multiprocessing.get_context("fork").Process(
        target=start_in_process, args=(theirs, bench.run, plan, engine)
    )
    starter.start()
    wait_until(
        lambda: os.path.exists(os.path.join(bench.run.path, moment)) or not starter.is_alive(), moment, poll_s=0.001
    )
    os.kill(t.cast(int, starter.pid), signal.SIGKILL)
    starter.join()
    done = bench.start(bench.plan() if not bench.processes() else plan, engine)
    if done["action"] not in ("start", "resume", "attach", "nothing"):
        yield f"the next play gives {done}"
    yield from _whole(bench)


def _whole(bench: Bench) -> t.Iterator[str]:
    bench.wait()
    if bench.state_now() != "finished":
        yield "the run ends {0}: {1}".format(bench.state_now(), (bench.run.read_status() or {}).get("message"))
    outcomes = {key: record["outcome"] for key, record in bench.outcomes().items()}
    if outcomes != {(drive.label, test): "complete" for drive in bench.drives for test in TESTS}:
        yield f"outcomes: {outcomes}"
    yield from ["stray: " + stray for stray in bench.strays()]


PLAYS: dict[str, t.Callable[[Bench, str], t.Iterator[str]]] = {"twins": twins, "cut_off": cut_off}
