# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays one case of the table and says what did not hold; nothing said is a case that was survived."""

from __future__ import annotations

import contextlib
import errno
import os
import typing as t
from pathlib import Path

from after import AFTER
from bench import STANDING, TESTS, Bench
from plays import PLAYS
from product import job
from table import Case
from waiting import wait_until

# A drive that hangs is given up after seconds here, not minutes.
SHORT = {
    "fio": {"TERMINATE_GRACE_S": 3.0, "KILL_GRACE_S": 3.0},
    "fio_runner": {"CELL_GRACE_S": 10.0},
    "precondition_curve": {"STUCK_S": 10.0},
    # The guard alone looks for about 3 s at who uses a drive, and ten times as long on a busy machine.
    "deadline": {"STEP_TIMEOUT_S": 30.0, "STOP_GRACE_S": 8.0},
}
LIVELY = {"engine": {"HEARTBEAT_S": 0.2}}
ERRORS = {
    "enospc": errno.ENOSPC, "torn_enospc": errno.ENOSPC, "full": errno.ENOSPC, "inodes": errno.ENOSPC,
    "eio": errno.EIO, "eio_fsync": errno.EIO, "no_process": errno.EAGAIN,
}  # fmt: skip
# What has to be told of a fault.
WORDS = {**{action: os.strerror(number) for action, number in ERRORS.items()}, "oom": "signal 9"}

Problems = t.List[str]


def play(case: Case) -> Problems:
    """Start a job that meets the fault, wait for its end, look; then the next play, and look again."""
    with Bench(case.drives, case.served) as bench:
        if case.wanted in PLAYS:
            return list(PLAYS[case.wanted](bench, case.spec["moment"]))
        found = list(_first(case, bench))
        if case.wanted not in ("changed", "hung", "told"):
            found += _next_play(bench)
        return found


def _first(case: Case, bench: Bench) -> t.Iterator[str]:
    spec = dict(
        case.spec,
        filler=str(bench.filler),
        state=str(bench.state),
        backing_file=str(bench.drives[0].file),
        device=bench.drives[0].path,
    )
    if case.served:
        spec["pid"] = bench.drives[0].pid
    if "victim" in spec:
        spec["victim"] = os.path.join(bench.run.path, spec["victim"])
    engine = bench.engine(spec, **(SHORT if case.wanted == "hung" else LIVELY))
    plan = bench.plan()
    try:
        bench.start(plan, engine)
    except job.JobError as error:
        # A fault before the job has said that it runs ends the start itself, with the reason.
        if case.wanted == "crashed" and WORDS[case.spec["action"]] not in str(error):
            yield f"start says {str(error)!r}"
    yield from AFTER[case.after[0]](bench, spec) if case.after else ()
    bench.wait()
    yield from _kept(bench)
    yield from _never_finished_unmeasured(bench)
    yield from _WANTED[case.wanted](case, bench)


def _next_play(bench: Bench) -> t.Iterator[str]:
    """What a second play makes of it: all is measured, what stood before is not measured again, the host is back."""
    bench.make_room()
    stood = [key for key, record in bench.outcomes().items() if record["outcome"] in STANDING]
    attempts = {key: record["attempt"] for key, record in bench.outcomes().items()}
    bench.start(bench.plan(), bench.engine())
    bench.wait()
    if bench.state_now() != "finished":
        yield "the next play ends {0}: {1}".format(bench.state_now(), (bench.run.read_status() or {}).get("message"))
    outcomes = {key: record["outcome"] for key, record in bench.outcomes().items()}
    wanted = {(drive.label, test): "complete" for drive in bench.drives for test in TESTS}
    if outcomes != wanted:
        yield f"after the next play: {outcomes}"
    again = [key for key in stood if bench.outcomes()[key]["attempt"] != attempts[key]]
    yield from [f"{key} stood and was measured again" for key in again]
    yield from _kept(bench)
    yield from ["stray: " + stray for stray in bench.strays()]


def _kept(bench: Bench) -> t.Iterator[str]:
    """Whatever a job was told is kept is still there, once, in that order."""
    journal = bench.journal()
    missing = [record["event"] for record in bench.told_records() if record not in journal]
    if missing:
        yield "lost of the journal: {0}".format(", ".join(missing))
    with contextlib.suppress(FileNotFoundError):
        lines = Path(bench.run.journal).read_text(errors="replace").splitlines()
        glued = [line for line in lines if line.count('"schema_version"') > 1]
        if glued:
            yield f"{len(glued)} lines hold more than one record"


def _never_finished_unmeasured(bench: Bench) -> t.Iterator[str]:
    status = bench.run.read_status() or {}
    outcomes = bench.outcomes()
    for drive in bench.drives:
        ended = bench.drive_outcomes().get(drive.label, {}).get("outcome")
        unmeasured = [test for test in TESTS if outcomes.get((drive.label, test), {}).get("outcome") not in STANDING]
        if unmeasured and (
            ended == "complete" or (status.get("state") == "finished" and ended not in ("refused", "error"))
        ):
            yield "{0} is {1} in a run that is {2}, and {3} was not measured".format(
                drive.label, ended, status.get("state"), unmeasured
            )


def _ended(case: Case, bench: Bench) -> t.Iterator[str]:
    state = bench.state_now()
    killed = "kill" in case.spec["action"]
    if state not in (("dead",) if killed else ("stopped", "finished")):
        yield f"its state is {state}"
    strays = bench.strays()
    # What a killed job leaves, the next play puts right.
    left = [stray for stray in strays if not stray.startswith(("setting", "tuning", "file"))] if killed else strays
    yield from ["stray: " + stray for stray in left]


def _crashed(case: Case, bench: Bench) -> t.Iterator[str]:
    """The reason is told, the host is back, and the run is one that goes on."""
    word = WORDS[case.spec["action"]]
    told = _reasons(bench)
    everything = all(record["outcome"] == "complete" for record in bench.outcomes().values()) and len(
        bench.outcomes()
    ) == len(TESTS)
    # A short record may fit into the journal's last page on a disk that is full.
    fitted = case.spec["action"] == "full" and everything
    if not fitted and not any(word in text for text in told):
        yield f"nobody is told of {word!r}: {told}"
    if bench.state_now() == "finished" and not everything:
        yield "its state is finished"
    yield from ["stray: " + stray for stray in bench.strays() if not stray.startswith("file")]


def _reasons(bench: Bench) -> list[str]:
    status = bench.run.read_status() or {}
    told = [status.get("message", "")] + [drive.get("message", "") for drive in status.get("drives", [])]
    return (
        told
        + [" ".join(record["reasons"]) for record in bench.outcomes().values()]
        + [bench.host.get(bench.run.log) or ""]
    )


def _told(case: Case, bench: Bench) -> t.Iterator[str]:
    """The drive is refused, as it can't be looked at any more; the reason is the true one, and the host is back."""
    if [record["outcome"] for record in bench.outcomes().values()] not in ([], ["error"], ["interrupted"]):
        yield f"outcomes: {bench.outcomes()}"
    if not any(WORDS[case.spec["action"]] in text for text in _reasons(bench)):
        yield "nobody is told of {0!r}: {1}".format(WORDS[case.spec["action"]], _reasons(bench))
    yield from ["stray: " + stray for stray in bench.strays()]


def _noted(_case: Case, bench: Bench) -> t.Iterator[str]:
    yield from ["stray: " + stray for stray in bench.strays() if bench.state_now() == "finished"]


def _changed(_case: Case, bench: Bench) -> t.Iterator[str]:
    """No figure of a drive that changed under the test counts, and the reason says what changed."""
    record = bench.outcomes()[("drive0", "first")]
    if record["outcome"] != "error" or "size" not in " ".join(record["reasons"]):
        yield "the test's outcome is {0}: {1}".format(record["outcome"], record["reasons"])
    drive = bench.drive_outcomes()["drive0"]
    if drive["outcome"] not in ("error", "refused"):
        yield "the drive's outcome is {0}".format(drive["outcome"])
    yield from ["stray: " + stray for stray in bench.strays()]


def _hung(_case: Case, bench: Bench) -> t.Iterator[str]:
    """The drive that hangs is an error; the other is measured, and the host is back, before the drive answers again."""
    drives = bench.drive_outcomes()
    if drives["drive0"]["outcome"] != "error" or "hang" not in drives["drive0"]["message"]:
        yield "the drive that hangs is {outcome}: {message}".format(**drives["drive0"])
    blamed = [record["drive"] for record in bench.journal() if record.get("drive_fault")]
    if blamed != [str(bench.drives[0].file)]:
        yield f"blamed for an error: {blamed}"
    if drives["drive1"]["outcome"] != "complete":
        yield "the other drive is {outcome}: {message}".format(**drives["drive1"])
    if bench.state_now() != "finished":
        yield f"its state is {bench.state_now()}"
    yield from [f"setting {value}" for value in bench.settings() if value != "0"]
    yield from _told_to_the_next_run(bench)
    bench.drives[0].let_go_on()
    wait_until(lambda: not bench.processes(hung=True), "the end of what hung")
    yield from ["stray: " + stray for stray in bench.strays()]


def _told_to_the_next_run(bench: Bench) -> t.Iterator[str]:
    """A drive that was given up while we wrote to it is not taken for somebody else's: the ledger has the run and the
    reason.
    """
    started = any(
        record["event"] == "test_started"
        for record in bench.journal()
        if record.get("drive") == str(bench.drives[0].file)
    )
    entry = bench.ledger(bench.drives[0])
    if (
        started
        and (entry.get("state"), entry.get("run_id")) != ("writing", bench.run.run_id)
        or (started and "hang" not in entry.get("reason", ""))
    ):
        yield f"the ledger says of the drive that hangs: {entry}"


def _unharmed(_case: Case, bench: Bench) -> t.Iterator[str]:
    """It is as if nothing had been."""
    if bench.state_now() != "finished":
        yield "its state is {0}: {1}".format(bench.state_now(), (bench.run.read_status() or {}).get("message"))
    wrong = [(key, record) for key, record in bench.outcomes().items() if record["outcome"] != "complete"]
    yield from ["{0} is {1}: {2}".format(key, record["outcome"], record["reasons"]) for key, record in wrong]
    yield from ["stray: " + stray for stray in bench.strays()]


def _back(_case: Case, bench: Bench) -> t.Iterator[str]:
    """What can't be told is not: but the host is back, and no run is taken for a whole one."""
    if bench.state_now() not in ("failed", "dead"):
        yield f"its state is {bench.state_now()}"
    yield from ["stray: " + stray for stray in bench.strays() if not stray.startswith(("file", "tuning"))]


def _damaged(case: Case, bench: Bench) -> t.Iterator[str]:
    if case.after not in (("kill",),):
        yield from ["stray: " + stray for stray in bench.strays()]


_WANTED: dict[str, t.Callable[[Case, Bench], t.Iterator[str]]] = {
    "ended": _ended, "crashed": _crashed, "noted": _noted, "changed": _changed, "hung": _hung, "damaged": _damaged,
    "unharmed": _unharmed, "back": _back, "told": _told,
}  # fmt: skip
