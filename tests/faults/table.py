# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fault bench's table: which fault a host job meets, in which phase, and what must hold afterwards."""

from __future__ import annotations

import os
import typing as t

# The records of a job in their order: each is a phase that a write may fail in.
EVENTS = (
    "job_started", "tuned", "snapshot", "guard", "drive_started", "test_started", "purge_started", "purge",
    "precondition", "cell", "round", "test_finished", "drive_finished", "restored", "job_finished",
)  # fmt: skip
# The job is ended from outside, or by a machine that loses power.
ENDS = ("kill_before", "kill_after", "torn_kill", "stop")
# The disk of the run's folder fails, once or for good.
DISK = ("enospc", "eio", "eio_fsync", "torn_enospc", "full")
# From the run's folder.
HOST_LOCK = "../../../locks/host.lock"
# Before this record nothing is known of the run but its plan; a fault there ends the start with its reason.
MEASURED = ("purge_started", "purge", "precondition", "cell", "round", "test_finished")


class Case(t.NamedTuple):
    """`spec`: injector.py; `drives`, `served`: the bench's; `after`: what comes before the next play (check.py);
    `sample`: in every test of the project.
    """

    name: str
    spec: t.Mapping[str, t.Any]
    wanted: str
    drives: int = 1
    served: bool = False
    after: tuple[str, ...] = ()
    sample: bool = False


SAMPLE = (
    "kill_after at purge", "torn_kill at round", "stop at cell", "enospc at round", "eio_fsync at test_finished",
    "torn_enospc at cell", "full at purge", "no_process at cell", "kill_before at restored", "shrink at round",
    "hang at round", "lost tuning.json at cell", "empty status.json at cell then stop",
)  # fmt: skip


def _journal() -> t.Iterator[Case]:
    for event in EVENTS:
        for action in ENDS + DISK:
            yield Case(
                f"{action} at {event}", {"event": event, "action": action}, "ended" if action in ENDS else "crashed"
            )


def _second_test() -> t.Iterator[Case]:
    """The first test stands whatever happens to the second."""
    for event in MEASURED:
        for action in ("kill_after", "torn_enospc"):
            nth = (
                2
                if event not in ("cell", "round", "precondition")
                else {"cell": 3, "round": 3, "precondition": 1}[event]
            )
            if event != "precondition":
                name = f"{action} at {event} of the second test"
                yield Case(
                    name, {"event": event, "nth": nth, "action": action}, "ended" if action in ENDS else "crashed"
                )


def _other_files() -> t.Iterator[Case]:
    for file, moments in (("status.json", (1, 2, 6, 12)), ("tuning.json", (1,))):
        for nth in moments:
            for action in ("kill_before", "enospc", "eio"):
                name = f"{action} at write {nth} of {file}"
                yield Case(name, {"file": file, "nth": nth, "action": action}, "ended" if action in ENDS else "noted")


def _drive() -> t.Iterator[Case]:
    for event in ("purge", "precondition", "cell", "round"):
        yield Case(f"shrink at {event}", {"event": event, "action": "shrink"}, "changed")
    yield Case("shrink at the last round", {"event": "round", "nth": 2, "action": "shrink"}, "changed")
    for event in (
        "guard",
        "drive_started",
        "test_started",
        "purge_started",
        "purge",
        "precondition",
        "cell",
        "round",
        "test_finished",
    ):
        yield Case(f"hang at {event}", {"event": event, "action": "hang"}, "hung", drives=2, served=True)


def _machine() -> t.Iterator[Case]:
    """The machine lacks something, or its clock is set."""
    for event in MEASURED:
        yield Case(f"inodes at {event}", {"event": event, "action": "inodes"}, "crashed")
        yield Case(f"read_only at {event}", {"event": event, "action": "read_only"}, "back")
        yield Case(f"clock_back at {event}", {"event": event, "action": "clock_back"}, "unharmed")
    for event in ("guard", "drive_started", "cell"):
        yield Case(f"no_process at {event}", {"event": event, "action": "no_process"}, "crashed")
    for event in ("test_started", "purge", "precondition"):
        yield Case(f"no_process at {event}", {"event": event, "action": "no_process"}, "told")
    for event in ("purge", "precondition", "cell"):
        yield Case(f"oom at {event}", {"event": event, "action": "oom"}, "crashed")


def _plays() -> t.Iterator[Case]:
    yield Case("two starts at once", {"moment": ""}, "twins")
    for moment in ("plan.json", "status.json", "job.log", "journal.jsonl"):
        yield Case(f"the start is killed at {moment}", {"moment": moment}, "cut_off")


def _damaged() -> t.Iterator[Case]:
    """A file of a living run is damaged; then it goes on, is stopped, or dies."""
    for victim in ("status.json", "tuning.json"):
        for action in ("empty", "torn", "lost"):
            for after in ("", "stop", "kill", "restore", "remove", "start"):
                name = f"{action} {victim} at cell" + (" then " + after if after else "")
                yield Case(
                    name,
                    {"event": "cell", "action": action, "victim": victim},
                    "damaged",
                    after=(after,) if after else (),
                )
    # Removed by somebody who makes room: the job goes on, and so does the next play.
    for victim, afters in (
        ("journal.jsonl", ("", "stop")),
        ("plan.json", ("", "stop", "kill", "restore")),
        (HOST_LOCK, ("", "start", "start elsewhere")),
    ):
        for after in afters:
            name = f"lost {os.path.basename(victim)} at cell" + (" then " + after if after else "")
            yield Case(
                name, {"event": "cell", "action": "lost", "victim": victim}, "damaged", after=(after,) if after else ()
            )


CASES = {
    case.name: case._replace(sample=case.name in SAMPLE)
    for cases in (_journal, _second_test, _other_files, _drive, _machine, _plays, _damaged)
    for case in cases()
}
