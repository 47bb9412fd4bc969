# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The shape of report/summary.json, which download_files.py writes. docs/summary.schema.json is made of it."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ...module_utils.records.base import Annotated, Count, Json, Limits, OrMissing
from ..peers.fleet_record import CLOSED, Fleet

Verdict = t.Literal["pass", "fail", "invalid", "error", "not_tested"]
Reasons = Annotated[list[Annotated[str, Limits(min_length=1)]], Limits(min_items=1)]
Access = t.Literal["random", "sequential"]
# In their own units; null: unknown, of a percentile as fewer than 10 I/Os lie beyond it.
Metrics = dict[str, float | None]


@dataclass(frozen=True, kw_only=True)
class RunOfSummary:
    """The run."""

    id: str
    name: str
    started: str | None
    # When it was judged by other criteria than before (run.json keeps those), the last time; only where it was.
    rejudged: OrMissing[str] = None
    # Where and by what, if this collection did not measure it (ingest.yml); only where it did not.
    measured_elsewhere: OrMissing[list[str]] = None


@dataclass(frozen=True, kw_only=True)
class SweepPoint:
    """A cell of a sweep. within_<time>_pct: the share of reads and writes that took at most so long; only where it is
    known.
    """

    cell: str
    queue_depth: int
    # I/Os in flight, as asked for.
    asked_outstanding: int
    # IOPS x mean latency.
    observed_outstanding: float
    iops: float
    mean_latency_us: float
    # Of a demand curve.
    threads: OrMissing[int] = None
    # Of the sweet spot: its part of the most IOPS.
    share: OrMissing[float] = None

    JSON_SCHEMA: t.ClassVar[Json] = {
        **CLOSED,
        "patternProperties": {"^within_[0-9]+(us|ms)_pct$": {"type": "number", "minimum": 0, "maximum": 100}},
    }


@dataclass(frozen=True, kw_only=True)
class QueueDepthSweep:
    """Cells that differ in queue depth alone."""

    access: Access
    block_size_bytes: int
    read_pct: int
    threads: int
    # By depth.
    points: Annotated[list[SweepPoint], Limits(min_items=3)]
    # The lowest depth with at least 95 % of the most IOPS; share: its part of them.
    sweet_spot: SweepPoint

    JSON_SCHEMA: t.ClassVar[Json] = CLOSED


@dataclass(frozen=True, kw_only=True)
class DemandCurve:
    """Sweeps at several thread counts as one curve over the I/Os in flight."""

    access: Access
    block_size_bytes: int
    read_pct: int
    # By I/Os in flight.
    points: Annotated[list[SweepPoint], Limits(min_items=6)]
    # The fewest I/Os in flight with at least 95 % of the most IOPS.
    sweet_spot: SweepPoint

    JSON_SCHEMA: t.ClassVar[Json] = CLOSED


@dataclass(frozen=True, kw_only=True)
class TakenPoint:
    """A cell of a test at points of a sweep: the cell (of) whose threads and depth it had."""

    cell: str
    # The test that it is of.
    sweep: str
    of: str
    threads: int
    queue_depth: int

    JSON_SCHEMA: t.ClassVar[Json] = CLOSED


@dataclass(frozen=True, kw_only=True)
class TrackedWindow:
    """The last window of a tracked variable."""

    cell: str | None
    metric: str | None
    # Of average and fitted_end.
    unit: str
    steady: bool
    # Counted from 1.
    rounds: list[Annotated[int, Limits(minimum=1)]]
    average: float | None
    # Where the fitted line ends.
    fitted_end: float | None
    # The largest value less the smallest, as a share of the average.
    range_ratio: float | None
    # What the fitted line rises or falls by, as a share of the average.
    slope_ratio: float | None

    JSON_SCHEMA: t.ClassVar[Json] = CLOSED


@dataclass(frozen=True, kw_only=True)
class CheckedCriterion:
    """One criterion against the figure, in the metric's own unit."""

    criterion: str
    metric: str
    cell: str | None
    value: float
    min: float | None
    max: float | None
    # Null: the limit is relative, and there is nothing to relate it to.
    met: bool | None
    # What a relative limit is a share of, or why there is nothing.
    reference: str | None = None

    JSON_SCHEMA: t.ClassVar[Json] = CLOSED


@dataclass(frozen=True, kw_only=True)
class FillBefore:
    """What the fill before a test wrote, in sequence."""

    passes: float | None
    # As asked: passes x the ActiveRange.
    bytes_written: int | None
    block_size_bytes: int | None
    data: t.Literal["random", "zeros"]
    bandwidth_bytes_per_s: float | None
    # Null: the kernel did not count.
    kernel_bytes_written: int | None

    JSON_SCHEMA: t.ClassVar[Json] = CLOSED


@dataclass(frozen=True, kw_only=True)
class FirstMeasurement:
    """What the first measurement gave."""

    outcome: str
    metrics: Metrics

    JSON_SCHEMA: t.ClassVar[Json] = CLOSED


@dataclass(frozen=True, kw_only=True)
class MeasuredAgain:
    """A test that was to be measured again (ssd_retest)."""

    # The run whose figures count.
    run_id: str
    # In words.
    told: str
    # Null where the first measurement counts.
    first: FirstMeasurement | None

    JSON_SCHEMA: t.ClassVar[Json] = CLOSED


@dataclass(frozen=True, kw_only=True)
class FillTime:
    """How long 2 x the capacity takes at the steady rate of a test that wrote 128 KiB in sequence."""

    bandwidth_bytes_per_s: float
    bytes: int
    seconds: float

    JSON_SCHEMA: t.ClassVar[Json] = CLOSED


@dataclass(frozen=True, kw_only=True)
class RepeatedStimulus:
    """The change of a stimulus against its first time (the test's key repeats)."""

    first_test: str
    metric: str
    first: float
    value: float
    change_pct: float
    # value is that of an array of so many drives, first that of this one.
    drives: OrMissing[Annotated[int, Limits(minimum=2)]] = None

    JSON_SCHEMA: t.ClassVar[Json] = CLOSED


@dataclass(frozen=True, kw_only=True)
class TestOfSummary:
    """A test of a drive."""

    test: str
    title: str
    verdict: Verdict
    reasons: Reasons
    # Null: not measured.
    outcome: t.Literal["steady", "not_steady", "complete", "invalid", "error", "interrupted", None]
    # What is unknown of the drive's world, and what whoever compares figures has to know; in words.
    remarks: list[str]
    # How many drives of the host were measured at the same time at most; null: unknown.
    parallel_drives: Annotated[int, Limits(minimum=1, maximum=1000)] | None = None
    # Threads and depth of its cells, where these follow the CPUs that fio had (per_cpu).
    load: OrMissing[str] = None
    # Of every tracked variable.
    windows: list[TrackedWindow]
    # Whether it began after a verified purge of the class pts, without preconditioning; null: not measured.
    from_fresh: bool | None
    # What the fill before it wrote, in sequence; null: none.
    precondition: FillBefore | None
    # Whether its figures count for others: peers, baselines, the nights after. Also of a test that is invalid only as a
    # criterion had nothing to relate to.
    counts: bool
    # Of the first tracked cell, or of the first one, over the window, in their own units; maxima of all cells; null:
    # unknown, of a percentile as fewer than 10 I/Os lie beyond it.
    metrics: Metrics
    # What its drive's health missed (ssd_health_criteria), as sentences: it fails, whatever became of the test.
    health: OrMissing[list[str]] = None
    # It was to be measured again (ssd_retest).
    again: OrMissing[MeasuredAgain] = None
    # Causes in the rounds of the test that did not make it invalid, in words.
    warnings: OrMissing[list[str]] = None
    criteria: list[CheckedCriterion]
    # Cells that differ in queue depth alone, of a trusted test.
    sweeps: OrMissing[list[QueueDepthSweep]] = None
    # Sweeps at several thread counts as one curve over the I/Os in flight.
    demand: OrMissing[DemandCurve] = None
    # Of a test at points of a sweep: the cell (of) whose threads and depth each had.
    points: OrMissing[list[TakenPoint]] = None
    # How long 2 x the capacity takes at the steady rate of a test that wrote 128 KiB in sequence.
    fill_time: OrMissing[FillTime] = None
    # The change of a stimulus against its first time (the test's key repeats).
    repeated: OrMissing[RepeatedStimulus] = None

    JSON_SCHEMA: t.ClassVar[Json] = CLOSED


@dataclass(frozen=True, kw_only=True)
class DriveConditions:
    """What has to be alike before figures of other runs are compared, but for what is unknown."""

    model: OrMissing[str] = None
    capacity_bytes: OrMissing[int] = None
    # Of a logical block.
    lba_bytes: OrMissing[int] = None
    # Of each logical block.
    metadata_bytes: OrMissing[int] = None
    # Its speed and width, in words.
    link: OrMissing[str] = None
    # fio's ioengine.
    engine: OrMissing[str] = None
    # The size of its cells of the preferred write size, where a test has such.
    preferred_write_bytes: OrMissing[int] = None

    JSON_SCHEMA: t.ClassVar[Json] = CLOSED


@dataclass(frozen=True, kw_only=True)
class PowerState:
    """The boot, and how often the drive's own power had come on; null: unknown."""

    boot_id: Annotated[str, Limits(max_length=100)] | None
    power_cycles: Annotated[int, Limits(minimum=0, maximum=9223372036854775807)] | None


@dataclass(frozen=True, kw_only=True)
class PowerOfRun:
    """When a job of the run took the drive for the first and the last time."""

    first: PowerState
    last: PowerState


@dataclass(frozen=True, kw_only=True)
class DriveOfSummary:
    """A drive that was asked for."""

    host: str
    # The stable identity that the inventory used.
    drive: str
    serial: str | None
    model: str | None
    firmware: str | None
    verdict: Verdict
    # Only where the verdict is fail: it missed nothing but relative criteria, its host is in low_hosts, and its
    # neighbours there are as low. Exports say error, and quarantine does not count it.
    host_fault: OrMissing[t.Literal[True]] = None
    # Only where the verdict is error: the drive did not do its I/O, or hangs. Quarantine counts it.
    drive_fault: OrMissing[t.Literal[True]] = None
    reasons: Reasons
    # The verdict and its causes in one line.
    headline: OrMissing[str] = None
    # What has to be alike before figures of other runs are compared, but for what is unknown.
    conditions: OrMissing[DriveConditions] = None
    # The boot, and how often the drive's own power had come on, when a job of the run took it for the first and the
    # last time.
    power: PowerOfRun | None = None
    # The statement of its entry, true or a date, that the run used up, and what that gave up, in words.
    retired: OrMissing[str] = None
    gives_up: OrMissing[list[str]] = None
    tests: list[TestOfSummary]

    JSON_SCHEMA: t.ClassVar[Json] = CLOSED


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The judgement of a run. A run is good when verdicts.pass equals the number of drives, and there is one."""

    schema_version: t.Literal[1]
    run: RunOfSummary
    # Number of drives of each verdict; all five are there.
    verdicts: Annotated[
        dict[str, Count], Limits(min_properties=5, property_names="^(pass|not_tested|invalid|error|fail)$")
    ]
    # The verdicts with their causes in one line.
    headline: OrMissing[str] = None
    # Limits of criteria that are so far from what was measured that they are probably in another unit.
    warnings: OrMissing[list[str]] = None
    fleet: Fleet
    # Digests of what makes each test what it is, {test: {part: digest}}: only figures of alike ones are compared over
    # runs.
    definitions: OrMissing[dict[str, dict[str, str]]] = None
    drives: list[DriveOfSummary]
