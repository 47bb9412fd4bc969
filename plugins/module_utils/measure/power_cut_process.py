# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One step of a power-cut test on a held drive, by a process of its own (power_cut_worker.py): its first fill, the
writing until the power goes, and the reading back.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import typing as t

from ..core.deadline import STEP_TIMEOUT_S
from ..records.base import parse
from ..records.power_cut import PowerCutBlock
from . import power_cut_worker, transfer
from .fio import DriveError, FioError, end_process
from .power_cut_check import Atomicity

_START = "import importlib, sys; sys.path.insert(0, sys.argv[1]); importlib.import_module(sys.argv[2]).main()"
# Of the host's own files.
_OF_HOST = ("log", "map")


class Cycle(t.NamedTuple):
    """A cycle of a drive's test. key, drive, writing: of power_cut_pattern.Tags; cpus: where it runs, none: anywhere.

    log: of what was acknowledged; map: of what each block held before.
    """

    active_bytes: int
    seed: int
    cycle: int
    key: str
    drive: int
    writing: int
    log: str
    map: str
    cpus: t.Sequence[int] = ()


class Checked(t.NamedTuple):
    """What was read back. counts: of blocks, by kind; last_ns: when the last acknowledgements were recorded; None: none
    were.
    """

    counts: dict[str, int]
    acknowledged: int
    durable: int
    last_ns: int | None
    lost_fua: int
    unjudged: int
    checked: int
    records_lost: bool
    by_part: list[int]
    first: list[PowerCutBlock]


Tick = t.Callable[[t.Optional[float]], None]


def fill(handle: int, cycle: Cycle, stop: threading.Event, tick: Tick) -> None:
    """Write every block once, flush, and keep the map of the first cycle. tick: gets the share done. Raises
    Interrupted, DriveError, FioError, Killed, Hangs.
    """
    for told in _follow(handle, {"step": "fill"}, cycle, stop):
        tick(told.get("share"))


def write_until_cut(
    handle: int, cycle: Cycle, most_s: float, stop: threading.Event, recorded: t.Callable[[int], None]
) -> None:
    """Write until the power goes, which nothing here sees; or until the drive does: then DriveError is raised. After
    most_s it does no I/O any more. recorded: gets the number of acknowledgements in the log, again and again.

    Raises as fill.
    """
    for told in _follow(handle, {"step": "write", "most_s": most_s}, cycle, stop):
        recorded(told["recorded"])


def check(
    handle: int,
    cycle: Cycle,
    next_map: str,
    promises: tuple[Atomicity, bool, bool],
    stop: threading.Event,
    tick: Tick,
) -> Checked:
    """Read every block back, judge it, and keep the map of the next cycle. promises: what writes are whole, whether
    trimmed blocks read the same until they are written, and whether nothing acknowledged may be lost. Raises as fill.
    """
    atomicity, reads_are_stable, keeps_all = promises
    more = {
        "step": "check",
        "next_map": next_map,
        "atomicity": atomicity,
        "reads_are_stable": reads_are_stable,
        "keeps_all": keeps_all,
    }
    for told in _follow(handle, more, cycle, stop):
        if "end" in told:
            told.pop("end")
            first = [parse(PowerCutBlock, block) for block in told.pop("first")]
            return Checked(**told, first=first)
        tick(told.get("share"))
    raise FioError("the process that reads back ended without a result")


def _follow(
    handle: int, more: t.Mapping[str, t.Any], cycle: Cycle, stop: threading.Event
) -> t.Iterator[dict[str, t.Any]]:
    process, news, moved_s = _started(handle, {**cycle._asdict(), **more}), None, time.monotonic()
    with t.cast("t.IO[bytes]", process.stdout):
        try:
            for told in transfer.read_lines(process, stop):
                if told is not None and (told != news or told.get("idle")):
                    news, moved_s = told, time.monotonic()
                if time.monotonic() - moved_s > STEP_TIMEOUT_S:
                    raise DriveError(f"the drive did no I/O for {STEP_TIMEOUT_S:g} s: it hangs")
                if told is None:
                    continue
                if "failed" in told:
                    raise _failed(told, cycle)
                yield told
                if "end" in told:
                    return
            raise transfer.ended(process)
        finally:
            end_process(process)


def _failed(told: t.Mapping[str, t.Any], cycle: Cycle) -> FioError:
    if told["failed"] in _OF_HOST:
        why = os.strerror(told["errno"] or 0)
        return FioError(f"{getattr(cycle, told['failed'])} could not be written: {why}")
    return transfer.failed(told)


def _started(handle: int, asked: t.Mapping[str, t.Any]) -> subprocess.Popen[bytes]:
    folder = os.path.abspath(__file__)
    for _part in __name__.split("."):
        folder = os.path.dirname(folder)
    # -B: what is run from a checkout leaves no files there. The kernel ends it when we die, as fio (fio.Runner.argv).
    python = [sys.executable, "-I", "-S", "-B", "-c", _START, folder, power_cut_worker.__name__]
    process = subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", *python],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=[handle],
        cwd="/",
    )
    stdin = t.cast("t.IO[bytes]", process.stdin)
    stdin.write(json.dumps({**asked, "handle": handle, "cpus": list(asked["cpus"])}).encode() + b"\n")
    stdin.close()
    return process
