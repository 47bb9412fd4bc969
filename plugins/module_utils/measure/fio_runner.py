# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""fio on one held drive: cells, fills and the check that this fio can write under our hold. Keeps all raw output."""

from __future__ import annotations

import functools
import os
import time
import typing as t

from ..core.background import Step, at_once
from ..core.files import now
from ..core.host import Host
from ..drive import zones
from ..drive.held_drive import HeldDrive
from ..machine.cpus import NOWHERE
from ..records.measurement import CellDetails, FillCurveDetails, PreconditionDetails
from ..records.plan import PlannedFill
from ..records.planned_cell import PlannedCell
from . import disturbances, fio, fio_result, fio_sanity, io_pattern, kernel_counters, precondition_curve
from .cell_observer import CellWatch
from .fio_result import FioResult
from .hidden_variation import STEP_S
from .histogram import Bins
from .rounds import cell_s
from .submissions import Monitor
from .validity_limits import Limits

# Written before anything else: some fio may open a device exclusively, and then can't work under our own exclusive
# open.
PROBE_JOB = """[probe]
filename=@ssd_device@
rw=write
bs=@ssd_block_bytes@
size=@ssd_block_bytes@
direct=1
thread=1
allow_file_create=0
"""

DISCARDS = kernel_counters.SECTORS["discard"]
# How much longer than asked a cell may take before fio, or the drive, counts as hanging: an I/O that the kernel times
# out (30 s) and repeats after a reset is slow, and a busy machine may keep fio from starting.
CELL_GRACE_S = 120.0


class CellRun(t.NamedTuple):
    """What a cell came to, for the journal, and its latencies (fio_result.CellFigures), for RoundHistograms."""

    details: CellDetails
    histograms: t.Mapping[str, t.Mapping[str, Bins]]


class Fill(t.NamedTuple):
    """A fill and its rate over the drive; None where the kernel does not count."""

    details: PreconditionDetails
    curve: FillCurveDetails | None


class Workbench:
    """Runs fio jobs on a held drive. `raw_dir`: where jobs and results are kept. beside: does what the next job need
    not wait for. monitor: watches fio's threads.
    """

    def __init__(
        self,
        host: Host,
        held: HeldDrive,
        runner: fio.Runner,
        raw_dir: str,
        beside: t.Callable[[Step], None] = at_once,
        monitor: Monitor | None = None,
    ) -> None:
        self._host = host
        self._held = held
        self._runner = runner
        self._raw_dir = raw_dir
        self._beside = beside
        self._last_end: float | None = None
        # The moment that the cell before ended in.
        self._last: kernel_counters.CounterSnapshot | None = None
        # The drive's counters after our own last I/O on it: what comes between is not ours.
        self._settled: list[int] | None = None
        # The kernel names of the drives that an array is made of.
        self.members: t.Sequence[str] = ()
        # A file on the drive that fio gets in place of it, as an open descriptor.
        self.file: int | None = None
        # What a cell is held to, and whether what is unknown disturbs it; the campaign sets them.
        self.limits, self.strict = Limits(), False
        # Where fio runs; the campaign sets it once the drive has one.
        self.place = NOWHERE
        self._monitor = monitor or Monitor()

    def on(self, held: HeldDrive, members: t.Sequence[str]) -> Workbench:
        """Return a bench like this one for an array of drives; members: their kernel names."""
        bench = Workbench(self._host, held, self._runner, self._raw_dir, self._beside)
        bench.limits, bench.strict, bench.place, bench.members = self.limits, self.strict, self.place, members
        return bench

    def close(self) -> None:
        """End the process that watches fio; the next cell would start another."""
        self._monitor.close()

    def placeholders(self, **more: fio.Value) -> fio.Values:
        """Values of the job placeholders on this host, after the last identity check."""
        identity = self._held.identity
        return {
            "device": self._device(),
            "block_bytes": identity.sizes()[1],
            "numa_node": self.place.node,
            "cpus_allowed": self.place.cpus,
            "max_queue_depth": identity.queue_depth or 1,
            **more,
        }

    def _device(self) -> str:
        """Return what fio opens: our own descriptor, so that no other device can be put in the place of a name."""
        return f"/proc/{os.getpid()}/fd/{self._held.descriptor() if self.file is None else self.file}"

    def check_fio(self) -> None:
        """Prove that fio writes under our exclusive open. Raises FioError."""
        size = self._held.identity.sizes()[1]
        try:
            self._checked(
                "probe", PROBE_JOB, self.placeholders(), directions={"write": 1.0}, size_bytes=size, length_s=0.0
            )
        except fio.FioError as error:
            raise type(error)(
                f"this fio cannot write to a drive that the job holds open exclusively: {error}"
            ) from None

    def begin_test(self) -> None:
        """What comes before a test's first cell is no gap of it."""
        self._last_end, self._last = None, None

    def settle(self) -> None:
        """Say that what is written or discarded from now on, until the next cell or fill, is somebody else's."""
        self._settled = self._witness().stat()

    def _witness(self) -> kernel_counters.Witness:
        return kernel_counters.Witness(self._host, os.path.basename(self._held.path), self.place.cpus)

    def cell(self, name: str, cell: PlannedCell, size_bytes: int, seed_value: int) -> CellRun:
        """Run one cell. Raises FioError."""
        self._see_poll_queues(cell)
        # An idle time that began is waited for.
        length_s = cell_s(cell) + (cell.idle_s or 0)
        started, began = now(), time.monotonic()
        eyes = {member: kernel_counters.Witness(self._host, member, self.place.cpus) for member in self.members}
        watch = CellWatch(self._host, self._witness(), self._monitor, eyes)
        result, raw = self._checked(
            name,
            cell.job,
            self._values(cell, size_bytes, seed_value),
            directions=io_pattern.directions(cell),
            runtime_s=cell.runtime_s,
            length_s=length_s,
            watch=watch,
        )
        ended = time.monotonic()
        gap_s = None if self._last_end is None else max(0.0, ended - cell_s(cell) - self._last_end)
        self._last_end = ended
        try:
            told = fio_result.cell_figures(cell, result)
            seen = watch.seen(cell, result, self._last, gap_s, self._settled)
            found = disturbances.find(cell, seen, self.limits, self.strict)
        except fio_result.UNKNOWN_FORM as error:
            raise fio.FioError(f"fio's result {raw} has an unknown form ({type(error).__name__}: {error})") from None
        self._last = watch.after
        self._settled = watch.after.stat if watch.after else None
        if told.sides["write"]:
            self._free_zones()
        details = CellDetails(
            started=started,
            seconds=round(ended - began, 3),
            gap_s=None if gap_s is None else round(gap_s, 3),
            read=told.sides["read"],
            write=told.sides["write"],
            trim=told.sides["trim"],
            sync=told.sides["sync"],
            streams=told.streams,
            raw=raw,
            seen=seen,
            causes=found,
        )
        return CellRun(details, told.histograms)

    def trial(self, name: str, cell: PlannedCell, size_bytes: int, seed_value: int) -> CellRun:
        """Run a cell of reads before the first one that counts. Raises FioError.

        What others write meanwhile shows before the cell that comes next.
        """
        settled = self._settled
        try:
            return self.cell(name, cell, size_bytes, seed_value)
        finally:
            self._settled = settled

    def _values(self, cell: PlannedCell, size_bytes: int, seed_value: int) -> fio.Values:
        """Return a cell's placeholders."""
        return self.placeholders(
            size_bytes=size_bytes,
            seed=seed_value,
            threads=cell.threads,
            queue_depth=cell.queue_depth,
            share_bytes=io_pattern.share_bytes(size_bytes, cell.threads, cell.block_size_bytes),
        )

    def _see_poll_queues(self, cell: PlannedCell) -> None:
        """A kernel before 5.16 takes polled I/O without them, and waits for interrupts all the same. Raises
        FioError.
        """
        name = os.path.basename(self._held.path)
        if cell.polled and self._host.get(f"/sys/block/{name}/queue/io_poll") != "1":
            raise fio.FioError(f"{name} has no poll queues any more (queue/io_poll is not 1): nothing was measured")

    def fill(
        self,
        name: str,
        spec: PlannedFill,
        size_bytes: int,
        seed_value: int,
        tick: t.Callable[[float | None], None],
    ) -> Fill:
        """Write the ActiveRange in sequence, `passes` times.

        fio writes whole blocks only, so the remainder below the block size is a job of its own: usual capacities leave
        90,112 bytes, and a test may read the last LBA. `tick`: the share done, about once a second. Raises FioError.
        Whether the kernel counted all of it (kernel_bytes_written) is the caller's to check.
        """
        self._last_end = None
        began, before = time.monotonic(), self._witness().stat()
        written = self._writable_bytes(size_bytes, spec.block_size_bytes)
        total = written * spec.passes
        share_done = self._progress(name, total, tick)
        with precondition_curve.Recorder(self._held.bytes_written) as recorder:
            bandwidth = self._write_all(name, spec, size_bytes, written, seed_value, share_done)
        self.settle()
        if before and self._settled and len(before) == len(self._settled) > DISCARDS:
            # A fill discards nothing: what was discarded meanwhile shows before the cell that comes next.
            self._settled[DISCARDS] = before[DISCARDS]
        details = PreconditionDetails(
            passes=spec.passes,
            bytes_written=total,
            seconds=round(time.monotonic() - began, 3),
            bandwidth_bytes_per_s=bandwidth,
            remainder_bytes=size_bytes % spec.block_size_bytes,
            block_size_bytes=spec.block_size_bytes,
            data=spec.data or "random",
            kernel_bytes_written=recorder.written,
        )
        return Fill(details, recorder.curve(written, spec.passes))

    def _writable_bytes(self, size_bytes: int, block_bytes: int) -> int:
        """Return what a pass over so many bytes writes: of a zoned drive only the capacity of each zone."""
        if self.file is not None or self.members or not zones.is_host_managed(self._held.identity):
            return size_bytes
        return zones.writable_bytes(zones.report(self._host, self._held.descriptor(), size_bytes), block_bytes)

    def _free_zones(self) -> None:
        """Empty the zones that a cell left half written: the next one may begin others, and a drive can have only so
        many. Reads of written zones go elsewhere.
        """
        identity = self._held.identity
        if zones.is_host_managed(identity):
            handle, path = self._held.descriptor(), str(identity.path)
            zones.reset_active(self._host, handle, path, identity.sizes()[0])
            # The kernel counts a reset as a write without bytes, which is ours.
            self._settled = self._witness().stat()

    def _write_all(
        self,
        name: str,
        spec: PlannedFill,
        size_bytes: int,
        pass_bytes: int,
        seed_value: int,
        tick: t.Callable[[], None],
    ) -> float:
        """Run a fill's jobs: bytes/s of the first, as fio tells them. pass_bytes: what a pass writes. Raises
        FioError.
        """
        remainder = size_bytes % spec.block_size_bytes
        parts = (("fill", spec.job, pass_bytes - remainder), ("remainder", spec.remainder_job, remainder))
        values = self.placeholders(
            seed=seed_value,
            size_bytes=size_bytes - remainder,
            remainder_offset=size_bytes - remainder,
            remainder_bytes=remainder,
        )
        told = []
        for part, job, length in parts:
            if length:
                written = length * spec.passes
                result, _raw = self._checked(
                    f"{name}-{part}", job, values, {"write": 1.0}, size_bytes=written, tick=tick
                )
                told.append(result.jobs[0].sides["write"].bandwidth_bytes_per_s)
        return told[0]

    def _progress(self, name: str, total: int, tick: t.Callable[[float | None], None]) -> t.Callable[[], None]:
        """Return what a fill calls now and then: it shows the share done, and raises FioError once it is stuck."""
        progress = precondition_curve.Progress(self._held.bytes_written, total)

        def share_done() -> None:
            try:
                share = progress.share()
            except precondition_curve.Stuck as error:
                raise self._of_drive()(f"{name}: {error}") from None
            tick(share)

        return share_done

    def _checked(
        self,
        name: str,
        job: str,
        values: fio.Values,
        directions: t.Mapping[str, float],
        runtime_s: float | None = None,
        size_bytes: int | None = None,
        tick: t.Callable[[], None] | None = None,
        length_s: float | None = None,
        watch: CellWatch | None = None,
    ) -> tuple[FioResult, str]:
        """Run a job; (fio's result, the raw file's path below the run folder) once every check holds. Raises FioError.

        runtime_s: that fio is to tell of a time-based job; length_s: how long that takes, with its ramp.
        """
        base = os.path.join(self._raw_dir, name)
        text_of_job = fio.filled(job, values)
        with open(base + ".fio", "w") as out:
            what = ("" if self.file is None else "a file on ") + self._held.path
            out.write("# {0} is {1}, held open by the host job\n{2}".format(values["device"], what, text_of_job))
        deadline_s = None if length_s is None else length_s * 1.1 + CELL_GRACE_S
        self._host.note(self._runner.argv(base + ".fio", base + ".json"))
        if watch:
            watch.begin()
        hooks = (watch.end, watch.started, STEP_S) if watch else ()
        rc, stderr = self._runner.run(
            base + ".fio", base + ".json", watch.sample if watch else tick, deadline_s, *hooks
        )
        text = fio.read_output(base + ".json")
        self._beside(functools.partial(fio.compress, base + ".json"))
        if stderr:
            with open(base + ".err", "w") as out:
                out.write(stderr)
        kind = fio.FioError
        try:
            result = fio_result.parse(fio_result.load(text))
            kind = self._of_drive() if fio_result.is_of_drive(result) else fio.FioError
            found = fio_result.result_problems(rc, result, str(values["device"]), directions, runtime_s, size_bytes)
            found = found or fio_sanity.contradictions(result, text_of_job, runtime_s)
        except fio.FioError as error:
            found = [f"fio ended with exit code {rc}", str(error)]
        except fio_result.UNKNOWN_FORM as error:
            found = [f"fio's result has an unknown form ({type(error).__name__}: {error})"]
        if found:
            raise kind("; ".join(found + stderr.strip().splitlines()[:3]) + f" (kept in {base}.*)")
        return result, os.path.relpath(base + ".json.gz", os.path.dirname(os.path.dirname(self._raw_dir)))

    def _of_drive(self) -> type[fio.FioError]:
        """Return the error of what is measured. A file system and an array have errors of their own."""
        return fio.DriveError if self.file is None and not self.members else fio.FioError
