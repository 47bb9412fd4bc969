# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Host jobs that a test holds in the middle of a step for as long as it takes, so that no test guesses when that is."""

from __future__ import annotations

import concurrent.futures
import contextlib
import typing as t

from waiting import wait_until

Status = t.Mapping[str, t.Any]


def measures(test: str = "", number: int = 1) -> t.Callable[[Status], bool]:
    """Whether a status tells that this test, or any, is being measured in this round or a later one."""

    def at(status: Status) -> bool:
        return any(
            drive.get("phase") == "measure" and test in ("", drive["test"]) and drive["round"] >= number
            for drive in status.get("drives", [])
        )

    return at


@contextlib.contextmanager
def held(
    status_of: t.Callable[[], Status],
    at: t.Callable[[Status], bool],
    send: t.Callable[[str, int], t.Any],
    starting: concurrent.futures.Future | None = None,
) -> t.Iterator[Status]:
    """Stop a host job once `at` is true of its status, let it go on when the block ends, and yield the status. What it
    started goes on meanwhile; SIGKILL ends it also while it is held. send(signal's name, pid): never raises; starting:
    what begins the job, of (exit code or state, output).
    """

    def caught() -> Status | None:
        status = status_of()
        if starting and starting.done() and starting.result()[0] not in (0, "successful"):
            raise AssertionError(f"the host job did not start: {starting.result()}")
        assert status.get("state") in (None, "starting", "running"), f"the host job ended before: {status}"
        if status.get("state") != "running" or not at(status):
            return None
        send("STOP", status["pid"])
        now = status_of()  # It may have gone on before it stood still.
        if now["state"] == "running" and at(now):
            return now
        send("CONT", status["pid"])
        return None

    status = wait_until(caught, "the host job to be where the test wants it", progress=lambda: str(status_of()))
    try:
        yield status
    finally:
        send("CONT", status["pid"])
