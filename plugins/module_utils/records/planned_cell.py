# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cell of plan.json: an access and its load, or several streams of these that run at the same time.

A key with a default is there only where it has another value. Units are in the names.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from .base import HOST_ONLY, Annotated, CellId, Limits, Positive, TestName

NotZero = Annotated[float, Limits(exclusive_minimum=0)]
# fio's, with placeholders @ssd_...@.
JobFile = Annotated[str, Limits(pattern="^\\[global\\]\\n")]
_JobName = Annotated[str, Limits(pattern="^[a-z][a-z0-9]{0,19}$")]
_Load = Annotated[int, Limits(minimum=1, maximum=65536)]
_Pct = Annotated[int, Limits(minimum=0, maximum=100)]
_Access = t.Literal["random", "sequential"]
_Sync = t.Literal["dsync", "sync"]


@dataclass(frozen=True)
class PointOfSweep:
    """The cell of an earlier sweep whose threads and depth a cell takes (job/operating_points.py)."""

    # The sweep, of the same drive.
    test: TestName
    # By IOPS.
    take: t.Literal["most", "middle", "fewest"]
    # Of the cells that qualify; null: all do.
    mean_latency_below_us: t.Optional[NotZero]


@dataclass(frozen=True)
class SizeShare:
    """A block size of a mix, and its share of the I/Os."""

    size_bytes: Positive
    pct: Positive


@dataclass(frozen=True)
class RangeShare:
    """A part of the ActiveRange, from where the one before ends, and its share of the I/Os."""

    pct: Positive
    of_ios_pct: Positive


@dataclass(frozen=True)
class Mix:
    """Several block sizes, or accesses that prefer parts of the ActiveRange."""

    sizes: t.Optional[t.List[SizeShare]] = None
    ranges: t.Optional[t.List[RangeShare]] = None


@dataclass(frozen=True)
class PartOfRange:
    """A part of the ActiveRange."""

    from_pct: _Pct
    to_pct: _Pct


@dataclass(frozen=True)
class Load:
    """What a cell and a stream of one have in common."""

    access: _Access
    block_size_bytes: Positive
    # Of the I/Os; the others are writes. A stream that trims has 0.
    read_pct: _Pct
    threads: _Load
    # Of each thread.
    queue_depth: _Load


@dataclass(frozen=True)
class PlannedStream(Load):
    """One of several streams of a cell, which run at the same time (plan/streams.py)."""

    name: _JobName
    # Of all threads and directions together.
    rate_iops: t.Optional[Positive] = None
    # Of each TB of the drive.
    rate_mib_s_per_tb: t.Optional[NotZero] = None
    trim: bool = False
    mix: t.Optional[Mix] = None
    range: t.Optional[PartOfRange] = None
    sync: t.Optional[_Sync] = None
    fdatasync: t.Optional[Positive] = None

    # What only a cell has.
    jobs: t.ClassVar[None] = None
    ioengine: t.ClassVar[None] = None
    point: t.ClassVar[None] = None
    per_cpu: t.ClassVar[bool] = False
    auto_threads: t.ClassVar[bool] = False
    batch: t.ClassVar[None] = None
    ramp_s: t.ClassVar[None] = None
    runtime_s: t.ClassVar[int] = 0
    burst_s: t.ClassVar[None] = None
    idle_s: t.ClassVar[None] = None


@dataclass(frozen=True)
class PlannedCell(Load):
    """A cell of a rendered test (docs/workloads.md). Of one with `jobs`, access, size, share, threads and depth are
    those of all its streams.
    """

    # Its name in records and file names (plan/cells.cell_id).
    id: CellId
    runtime_s: Annotated[int, Limits(minimum=1, maximum=86400)]
    # The fio job file.
    job: JobFile = field(default="", metadata=HOST_ONLY)
    # Its name in the test of every drive: the block size is this drive's preferred write size.
    preferred: t.Optional[str] = None
    # Of all threads and directions together.
    rate_iops: t.Optional[Positive] = None
    # I/Os that are reaped together (iodepth_batch).
    batch: t.Optional[Positive] = None
    # Before what counts.
    ramp_s: t.Optional[Positive] = None
    ioengine: t.Optional[t.Literal["sync"]] = None
    # Its threads wait for completions by polling.
    polled: bool = False
    # It leads every round; the test's figures are those of the others.
    lead: bool = False
    # threads is the most that there are; the host takes them by its CPUs (job/operating_points.py).
    per_cpu: bool = False
    # The host takes as many threads as fio's CPU time asks for (job/thread_trials.py); before that it has one, with all
    # I/Os in flight.
    auto_threads: bool = False
    # The fio job of reads by which it finds their number.
    trial_job: JobFile = field(default="", metadata=HOST_ONLY)
    burst_s: t.Optional[Positive] = None
    idle_s: t.Optional[Positive] = None
    # Its threads and depth, here the most that they may be, are those of a cell of this sweep.
    point: t.Optional[PointOfSweep] = None
    mix: t.Optional[Mix] = None
    range: t.Optional[PartOfRange] = None
    # Of several streams.
    name: t.Optional[str] = None
    sync: t.Optional[_Sync] = None
    fdatasync: t.Optional[Positive] = None
    jobs: t.Optional[Annotated[t.List[PlannedStream], Limits(max_items=64)]] = None

    # What only a stream has.
    trim: t.ClassVar[bool] = False
    rate_mib_s_per_tb: t.ClassVar[None] = None


AnyLoad = t.Union[PlannedCell, PlannedStream]
