# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The self-test that a plan asks for: begun on the drive that the run holds, followed, and read from the drive's log
(docs/self-tests.md). Nothing is written to the drive.
"""

from __future__ import annotations

import contextlib

from ..drive import self_test, self_test_result
from ..drive.self_test import SelfTest
from ..records.base import to_json
from ..records.measurement import SelfTestDetails
from ..records.plan import PlannedTest
from .drive_context import Attempt, DriveContext
from .self_test_wait import SelfTests, SelfTestStuck

# How long a drive may take until it shows one that it began, or that has ended.
SHOWS_WITHIN_S = 30.0
ENDED = "it was ended"


class NotOffered(Exception):
    """The drive has no self-tests, or nobody can read them."""


class NoResult(SelfTestStuck):
    """A self-test came to no result; the message says why."""


def perform(
    station: DriveContext, tests: SelfTests, test: PlannedTest, attempt: Attempt, time_left_s: float | None
) -> None:
    """Do what the test asks for, if it asks for it, and note what came of it. tests: of this drive, none under way.

    Raises NotOffered, SelfTestStuck, fio.Interrupted, Refused, Hangs.
    """
    kind = test.self_test
    if not kind:
        return
    station.guard("self_test", phase="device_self_test", time_left_s=time_left_s)
    before = tests.look_at(station.name)
    if before.is_running:
        # smartd began one since the last wait.
        tests.wait()
        before = tests.look_at(station.name)
    if before.is_running is None or before.is_offered is False:
        why = "the drive has none" if before.is_offered is False else "neither nvme-cli nor smartctl tells of any"
        raise NotOffered(f"a self-test can't be started: {why}")
    began_s = tests.clock()
    _begin(station, tests, kind)
    try:
        entry = _followed(station, tests, before, kind)
    except BaseException:
        # Nobody else would: it is ours.
        with contextlib.suppress(Exception):
            station.job.host.run(self_test.abort_command(tests.about(station.name)).split(), timeout_s=10)
        raise
    ended = self_test_result.of_entry(entry)
    found = SelfTestDetails(kind, ended.result, ended.text, round(tests.clock() - began_s, 1))
    station.note("self_test", **to_json(found), **attempt._asdict())
    if found.result not in ("passed", "failed"):
        raise NoResult(f"its {kind} self-test {found.result}: {found.message}")


def _begin(station: DriveContext, tests: SelfTests, kind: str) -> None:
    host = station.job.host
    argv = self_test.begin_command(host, tests.about(station.name), kind)
    answer = station.watchdog.call("begin its self-test", lambda: host.run(argv))
    if not self_test.has_begun(argv, answer.rc):
        raise NoResult(f"the drive did not begin a self-test: {answer.ended()}")


def _followed(station: DriveContext, tests: SelfTests, before: SelfTest, kind: str) -> str:
    """Return its entry in the drive's log, once it has ended."""
    quiet_s, has_run = tests.clock(), False
    while True:
        seen = tests.look_at(station.name)
        if seen.is_running:
            tests.follow(station.name, seen, ENDED, kind)
            quiet_s, has_run = tests.clock(), True
        # Each tool tells an entry in its own form.
        elif seen.is_running is False and seen.tool == before.tool and seen.ended and seen.ended != before.ended:
            return seen.ended[0]
        elif tests.clock() - quiet_s > SHOWS_WITHIN_S:
            if has_run:
                raise NotOffered("its log tells nothing of the self-test that has ended")
            raise NoResult("the drive did not begin a self-test that its log tells of")
        station.tick(None)
        tests.sleep(1)
