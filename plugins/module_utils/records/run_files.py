# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The JSON files of a run on a host beside its journal: status.json, plan.json, tuning.json and array.json."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .base import Annotated, CellId, Count, Json, Label, Limits, NotNegative, Positive, RunId, TestName, Text

_NotZero = Annotated[float, Limits(exclusive_minimum=0)]
_StatusTime = Annotated[
    str,
    Limits(
        pattern=r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{3})?Z$"
    ),
]


@dataclass(frozen=True)
class LastFigure:
    """The last figure of the round before, or how far a purge or precondition is."""

    metric: t.Optional[str]
    value: t.Optional[float]
    mean_latency_us: t.Optional[float]
    progress: t.Optional[Annotated[float, Limits(minimum=0, maximum=1)]]


@dataclass(frozen=True)
class DriveStatus:
    """Where a drive is."""

    # The selector's value.
    drive: Label
    path: t.Optional[str]
    phase: t.Literal["queued", "guard", "purge", "precondition", "measure", "done"]
    # Set with the phase done.
    outcome: t.Optional[t.Literal["complete", "refused", "error", "interrupted"]]
    test: t.Optional[str]
    # Counted from 1; 0 before the first.
    test_index: Count
    tests: Count
    # Counted from 1; 0 before the first.
    round: Count
    round_max: t.Optional[Positive]
    cell: t.Optional[str]
    # The last figure of the round before, or how far a purge or precondition is.
    last: t.Optional[LastFigure]
    # An upper bound of this test; null: unknown.
    time_left_s: t.Optional[NotNegative]
    # Why, when refused or ended with an error.
    message: str
    # An upper bound of the tests after this one; null: unknown.
    later_s: t.Optional[NotNegative]
    # When this entry last changed; null: never yet.
    updated: t.Optional[Annotated[str, Limits(max_length=40)]]
    # How long at most until it should change again, while the drive is under way: then watch says "no news". null:
    # the drive does not report its progress.
    news_within_s: t.Optional[NotNegative]

    JSON_SCHEMA: t.ClassVar[Json] = {
        "if": {"properties": {"phase": {"const": "done"}}},
        "then": {"properties": {"outcome": {"type": "string"}}},
        "else": {"properties": {"outcome": {"const": None}}},
    }


@dataclass(frozen=True)
class CalibrationStatus:
    """Of ssd_parallel_drives: auto. left_s: an upper bound of the reads to come; why: of the number, once found."""

    left_s: NotNegative
    why: str


@dataclass(frozen=True)
class Status:
    """status.json: written as a whole at each change."""

    schema_version: t.Literal[1]
    run_id: RunId
    run_name: Text
    # The inventory name.
    host: Text
    # /proc/sys/kernel/random/boot_id when the job began.
    boot_id: t.Optional[str]
    pid: Positive
    # Field 22 of /proc/PID/stat, in clock ticks since boot.
    pid_start: t.Optional[Annotated[str, Limits(pattern="^[0-9]+$")]]
    # The systemd unit, null where the job is a session of its own.
    unit: t.Optional[str]
    engine_version: Text
    # The last three are final; running with a dead pid or another boot id is dead.
    state: t.Literal["starting", "running", "finished", "stopped", "failed"]
    started: _StatusTime
    updated: _StatusTime
    # Whether the host's settings are back as they were.
    restored: bool
    message: str
    drives: Annotated[t.List[DriveStatus], Limits(max_items=1000)]
    # How many are worked on at the same time; with ssd_parallel_drives: auto 1 until it is found.
    parallel_drives: t.Optional[Positive] = None
    # ssd_parallel_drives: auto. left_s: an upper bound of the reads that are still to come; why: of the number,
    # once it is found.
    calibration: t.Optional[CalibrationStatus] = None


@dataclass(frozen=True)
class TunedSetting:
    """A setting of tuning.json."""

    kind: str
    name: str
    path: str
    before: str
    wanted: t.Optional[str]


@dataclass(frozen=True)
class Tuning:
    """tuning.json: what was changed on the host."""

    boot_id: str
    settings: t.List[TunedSetting]


@dataclass(frozen=True)
class MadeArray:
    """array.json: an array of a test."""

    boot_id: t.Optional[str]
    name: str
    members: t.List[t.Any]


@dataclass(frozen=True)
class PointOfSweep:
    """The cell of an earlier sweep whose load a cell takes."""

    test: t.Optional[str] = None
    take: t.Optional[t.Literal["most", "middle", "fewest"]] = None
    mean_latency_below_us: t.Optional[_NotZero] = None


_JobName = Annotated[str, Limits(pattern="^[a-z][a-z0-9]{0,19}$")]
_Load = Annotated[int, Limits(minimum=1, maximum=65536)]
_ReadPct = Annotated[int, Limits(minimum=0, maximum=100)]
_Access = t.Literal["random", "sequential"]
_Sync = t.Literal["dsync", "sync"]
_Rounds = Annotated[int, Limits(minimum=1, maximum=2147483647)]


@dataclass(frozen=True)
class PlannedStream:
    """One of several streams of a cell."""

    name: _JobName
    access: _Access
    block_size_bytes: Positive
    read_pct: _ReadPct
    threads: _Load
    queue_depth: _Load
    rate_iops: t.Optional[Positive] = None
    rate_mib_s_per_tb: t.Optional[_NotZero] = None
    trim: t.Optional[bool] = None
    mix: t.Optional[Json] = None
    sync: t.Optional[_Sync] = None
    fdatasync: t.Optional[Positive] = None


@dataclass(frozen=True)
class PlannedCell:
    """A cell of a rendered test (docs/workloads.md)."""

    id: CellId
    block_size_bytes: Positive
    read_pct: _ReadPct
    access: t.Optional[_Access] = None
    threads: t.Optional[_Load] = None
    queue_depth: t.Optional[_Load] = None
    rate_iops: t.Optional[Positive] = None
    batch: t.Optional[Positive] = None
    runtime_s: t.Optional[Annotated[int, Limits(minimum=1, maximum=86400)]] = None
    ramp_s: t.Optional[Positive] = None
    ioengine: t.Optional[t.Literal["sync"]] = None
    polled: t.Optional[bool] = None
    lead: t.Optional[bool] = None
    per_cpu: t.Optional[bool] = None
    burst_s: t.Optional[Positive] = None
    idle_s: t.Optional[Positive] = None
    point: t.Optional[PointOfSweep] = None
    mix: t.Optional[Json] = None
    range: t.Optional[Json] = None
    name: t.Optional[_JobName] = None
    sync: t.Optional[_Sync] = None
    fdatasync: t.Optional[Positive] = None
    jobs: t.Optional[Annotated[t.List[PlannedStream], Limits(max_items=64)]] = None


@dataclass(frozen=True)
class NotApplicable:
    """A cell that this drive can't run."""

    id: str
    reason: str


@dataclass(frozen=True)
class RoundLimits:
    """When a test's rounds end at the latest."""

    max: t.Optional[Positive] = None
    capacity_multiple: t.Optional[_NotZero] = None
    time_limit_s: t.Optional[_NotZero] = None


@dataclass(frozen=True)
class Tracked:
    """A variable that the rule of steady state looks at."""

    cell: Annotated[str, Limits(is_name=True)]
    metric: Annotated[str, Limits(is_name=True)]


@dataclass(frozen=True)
class SteadyStateRule:
    """When a test is steady (docs/validity.md)."""

    tracked: Annotated[t.List[Tracked], Limits(min_items=1, max_items=5000)]
    window: Annotated[int, Limits(minimum=3, maximum=100)]
    range_limit: _NotZero
    slope_limit: _NotZero
    margin: t.Optional[_NotZero] = None
    min_capacity_multiple: t.Optional[NotNegative] = None
    confirm_windows: t.Optional[Annotated[int, Limits(minimum=0, maximum=10)]] = None
    settle_s: t.Optional[NotNegative] = None
    sample_every: t.Optional[_Rounds] = None


@dataclass(frozen=True)
class PlannedTest:
    """What the results are made of in a rendered test."""

    name: TestName
    title: t.Optional[str] = None
    source: t.Optional[str] = None
    active_range_pct: t.Optional[Annotated[float, Limits(minimum=1, maximum=100)]] = None
    precondition: t.Optional[Json] = None
    cells: t.Optional[Annotated[t.List[PlannedCell], Limits(max_items=5000)]] = None
    not_applicable: t.Optional[t.List[NotApplicable]] = None
    rounds: t.Optional[RoundLimits] = None
    after_steady_rounds: t.Optional[Annotated[int, Limits(minimum=0, maximum=2147483647)]] = None
    last_rounds: t.Optional[_Rounds] = None
    latency_targets_us: t.Optional[
        Annotated[t.List[Annotated[int, Limits(minimum=1, maximum=17000000)]], Limits(max_items=8)]
    ] = None
    steady_state: t.Optional[SteadyStateRule] = None


@dataclass(frozen=True)
class PlannedDrive:
    """A drive and its tests, in order."""

    drive: Label
    tests: t.Optional[Annotated[t.List[PlannedTest], Limits(max_items=1000)]] = None


@dataclass(frozen=True)
class CollectedPlan:
    """What the results are made of in a plan.json that came back from a host.

    The whole of it is plan.schema.json, which the controller's own rendering is held to.
    """

    drives: Annotated[t.List[PlannedDrive], Limits(max_items=1000)]
    parallel_drives: t.Optional[Positive] = None
    together: t.Optional[Json] = None


@dataclass(frozen=True)
class PlannedRun:
    """The run of a plan."""

    id: RunId
    name: Text


@dataclass(frozen=True)
class ReadTogether:
    """The reads of job/parallelism.py."""

    repeats: Positive
    cells: t.List[PlannedCell]


@dataclass(frozen=True)
class FioOfPlan:
    """Which fio."""

    path: str


@dataclass(frozen=True)
class DriveToTest:
    """A drive as the host job takes it."""

    drive: Label
    tests: t.List[PlannedTest]
    selector: t.Optional[Json] = None
    expected: t.Optional[Json] = None


@dataclass(frozen=True)
class Plan:
    """plan.json, as far as a host reads it without more ado."""

    run: PlannedRun
    drives: t.List[DriveToTest]
    host: t.Optional[str] = None
    boot_id: t.Optional[str] = None
    engine_version: t.Optional[str] = None
    parallel_drives: t.Optional[int] = None
    together: t.Optional[ReadTogether] = None
    fio: t.Optional[FioOfPlan] = None
    tune: t.Optional[Json] = None
