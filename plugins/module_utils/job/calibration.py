# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many drives of this host are measured at once (ssd_parallel_drives: auto): reads of each drive alone and
together, before the first purge. Nothing is written.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import re
import typing as t

from ..core.deadline import Hangs
from ..guard.held import HeldDrive, Refused
from ..measure import fio, sharing
from ..measure.workbench import Workbench, seed
from .station import Job

# A cell of the calibration may do nothing else.
_READS = re.compile(r"^rw=(rand)?read$", re.MULTILINE)
_ANY_RW = re.compile(r"^\s*(rw|readwrite|trim\w*|write\w*|verify\w*)\s*=.*$", re.MULTILINE)
Mapping = t.Mapping[str, t.Any]


def at_once(job: Job, plan: Mapping, show_life: t.Callable[[], None]) -> int:
    """The number of drives, journalled with how it was found; that of an earlier job of this run stays. 1 where it
    could not be found.
    """
    known = [record["at_once"] for record in job.history if record["event"] == "calibrated"]
    if known:
        return int(known[-1])
    found, why = sharing.Found(1, {}, []), ""
    try:
        found = sharing.search([drive["drive"] for drive in plan["drives"]], _Bench(job, plan, show_life))
    except fio.Interrupted:
        return 1
    except (Refused, Hangs, fio.FioError, OSError) as error:
        why = f"one drive at a time, as the host could not be calibrated: {error}"
    job.journal.add(
        "calibrated", at_once=found.at_once, kept=sharing.KEPT, alone=found.alone, tried=found.tried, message=why[:1000]
    )
    return found.at_once


class _Bench:
    """Measures groups of drives; each is held for reading only as long as a measurement takes."""

    def __init__(self, job: Job, plan: Mapping, show_life: t.Callable[[], None]) -> None:
        self._job = job
        self._drives = {drive["drive"]: drive for drive in plan["drives"]}
        self._show_life = show_life
        self._count = 0

    def __call__(self, names: t.Sequence[str]) -> sharing.Rates:
        with contextlib.ExitStack() as stack:
            benches = {name: stack.enter_context(self._held(name)) for name in names}
            rates: dict[str, dict[str, float]] = {name: {} for name in names}
            for number in range(max(len(self._drives[name]["calibration"]) for name in names)):
                self._count += 1
                for name, cell, rate in self._cells(benches, number):
                    rates[name][cell] = rate
                self._show_life()
        return rates

    def _cells(self, benches: t.Mapping[str, tuple[Workbench, HeldDrive]], number: int) -> list[tuple[str, str, float]]:
        """One cell on all of them at the same time. The main thread stays awake for signals."""
        with concurrent.futures.ThreadPoolExecutor(len(benches)) as pool:
            futures = [pool.submit(self._cell, name, *benches[name], number) for name in benches]
            while concurrent.futures.wait(futures, timeout=1).not_done:
                self._show_life()
        return [future.result() for future in futures if future.result() is not None]

    def _cell(self, name: str, bench: Workbench, held: HeldDrive, number: int) -> t.Any:
        cells = self._drives[name]["calibration"]
        if number >= len(cells):
            return None
        cell = cells[number]
        _refuse_writes(cell["job"])
        file = f"calibration-{self._count:03d}-{cell['id']}"
        value = seed(self._job.run_dir.run_id, name, file)
        result = bench.cell(file, cell, held.identity["size_bytes"], value)
        return name, cell["id"], float((result["read"] or {}).get("bandwidth_bytes_per_s") or 0.0)

    @contextlib.contextmanager
    def _held(self, name: str) -> t.Iterator[tuple[Workbench, HeldDrive]]:
        job, plan = self._job, self._drives[name]
        held = HeldDrive(job.host, plan, {"run": job.run_dir.run_id, "drive": name}, job.same_boot)
        try:
            held.identify()
            held.handle = job.host.open(held.path, os.O_RDONLY | os.O_EXCL | os.O_DIRECT)
            bench = Workbench(job.host, held, fio.Runner(job.stop, job.fio_path), job.run_dir.raw(name))
            bench.place = job.tuned.take_place(name)
            yield bench, held
        finally:
            job.tuned.leave_place(name)
            held.release()


def _refuse_writes(text: str) -> None:
    """Raise FioError for a job that does anything but read: the guard has not looked at the drive yet."""
    told = [line.group(0).strip() for line in _ANY_RW.finditer(text)]
    if not told or not all(_READS.fullmatch(line) for line in told):
        raise fio.FioError("the calibration may only read; nothing was run")
