# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What somebody does to a job whose files were damaged under it: stop, kill, restore, remove, start. Each says what did
not hold.
"""

from __future__ import annotations

import contextlib
import os
import signal
import typing as t
from pathlib import Path

from bench import Bench
from product import job
from waiting import wait_until


def _when_damaged(bench: Bench, spec: t.Mapping[str, t.Any]) -> None:
    """Wait for the fault; a status.json that the job has written again by then is damaged once more."""
    wait_until(lambda: any(record["event"] == "cell" for record in bench.journal()), "the fault")
    path, action = Path(spec["victim"]), spec["action"]
    if action == "lost":
        path.unlink(missing_ok=True)
    else:
        path.write_text("" if action == "empty" else '{"boot_id": "1')


def _refused(what: str, act: t.Callable[[Bench], t.Any]) -> t.Callable[[Bench, t.Mapping[str, t.Any]], t.Iterator[str]]:
    """An act that a living job forbids."""

    def attempt(bench: Bench, spec: t.Mapping[str, t.Any]) -> t.Iterator[str]:
        _when_damaged(bench, spec)
        try:
            yield f"{what} under a living job gives {act(bench)}"
        except job.JobError:
            pass

    return attempt


def _stopped(bench: Bench, spec: t.Mapping[str, t.Any]) -> t.Iterator[str]:
    _when_damaged(bench, spec)
    done = job.stop(bench.host, bench.run)
    if (done["changed"], done["state"]) != (True, "stopped") or bench.processes():
        yield f"stop gives {done}; processes: {bench.processes()}"


def _killed(bench: Bench, spec: t.Mapping[str, t.Any]) -> t.Iterator[str]:
    _when_damaged(bench, spec)
    for pid in bench.processes():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    bench.wait()
    state = bench.state_now()
    if state not in ("dead", "damaged"):
        yield f"after a SIGKILL its state is {state}"


def _attached(bench: Bench, spec: t.Mapping[str, t.Any]) -> t.Iterator[str]:
    _when_damaged(bench, spec)
    done = bench.start(bench.plan(), bench.engine())
    # On a busy machine it may have ended before it was looked at.
    if done["action"] != "attach" and done["state"] != "finished":
        yield f"start gives {done}"


def _refused_elsewhere(bench: Bench, spec: t.Mapping[str, t.Any]) -> t.Iterator[str]:
    """The living job soon has its lock again, and keeps a job of another state folder away, which can't know of its
    run.
    """
    wait_until(
        lambda: any(record["event"] == "cell" for record in bench.journal()) and os.path.exists(spec["victim"]),
        "the lock of the living job",
    )
    try:
        yield f"a start from another state folder gives {bench.start_elsewhere()}"
    except job.JobError as error:
        if "another run is using this host" not in str(error):
            yield f"a start from another state folder says {error}"


AFTER: dict[str, t.Callable[[Bench, t.Mapping[str, t.Any]], t.Iterator[str]]] = {
    "stop": _stopped,
    "kill": _killed,
    "restore": _refused("restore", lambda bench: job.restore(bench.host, str(bench.state))),
    "remove": _refused("remove", lambda bench: job.remove(bench.host, bench.run)),
    "start": _attached,
    "start elsewhere": _refused_elsewhere,
}
