# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The events of a run's journal, a class each: what the host job writes, and all that a run's results are made of.

The journal is append-only, and an event is on the disk before the next step. Units are in the names.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .base import (
    Annotated,
    CellId,
    Code,
    Count,
    HostName,
    Json,
    Label,
    Limits,
    NotNegative,
    Number,
    OrMissing,
    Positive,
    RunId,
    Scalar,
    Share,
    Size,
    TestName,
    Text,
    Time,
)
from .host_snapshot import Snapshot
from .purge import PurgeClass

Commands = t.List[Annotated[t.List[str], Limits(min_items=1)]]
Level = t.Literal["disturbs", "unknown", "told"]


@dataclass(frozen=True)
class Line:
    """What each line of a journal begins with; the fields of its event are beside them."""

    schema_version: t.Literal[1]
    time: Time
    run_id: RunId
    host: HostName
    event: str


@dataclass(frozen=True)
class DriveEvent:
    """An event of one drive."""

    drive: Label


@dataclass(frozen=True)
class TestEvent(DriveEvent):
    """An event of one attempt at a test of a drive."""

    test: TestName
    attempt: Number


@dataclass(frozen=True)
class JobStarted:
    """A host job began."""

    boot_id: t.Optional[str]
    pid: Positive
    engine_version: str
    fio_version: str


@dataclass(frozen=True)
class Setting:
    """A setting of the host: its value before, the one asked for, and the one in force."""

    name: str
    path: str
    before: t.Optional[str]
    # Null for what another setting resets as a side effect.
    wanted: t.Optional[str]
    effective: t.Optional[str]
    # managed: an interrupt that the kernel places itself.
    outcome: t.Literal["changed", "unchanged", "not_applicable", "managed", "failed", "restored"]
    message: str


@dataclass(frozen=True)
class Tuned:
    """Settings were made. A later play can rebuild tuning.json from it."""

    settings: t.List[Setting]
    # What else is to be put back: what the settings reset.
    side_effects: t.Optional[t.List[Json]] = None
    # tuning.json's.
    keep: t.Optional[bool] = None
    # tuning.json's.
    order: t.Optional[int] = None


@dataclass(frozen=True)
class Kept:
    """What a drive kept of its rate alone; null: too few figures."""

    drive: Label
    share: t.Optional[Share]


@dataclass(frozen=True)
class Trial:
    """A number of drives that was tried. held: whether each kept enough; cell, drive, share: what kept least;
    confirms: it was tried beside all neighbours; kept: the least of each drive.
    """

    number: Annotated[int, Limits(minimum=2, maximum=1000)]
    held: bool
    cell: CellId
    drive: Label
    share: t.Optional[Share]
    confirms: bool = False
    kept: OrMissing[Annotated[t.List[Kept], Limits(max_items=1000)]] = None


@dataclass(frozen=True)
class Alone:
    """The median of a drive's own repetitions."""

    drive: Label
    cell: CellId
    iops: NotNegative


@dataclass(frozen=True)
class Calibration:
    """How many drives the host measures at the same time, and how it found out (job/parallelism.py)."""

    # How many drives are worked on at the same time.
    parallel_drives: Annotated[int, Limits(minimum=1, maximum=1000)]
    # What each drive has to keep of its IOPS alone.
    kept_share: Annotated[float, Limits(minimum=0, maximum=1)]
    why: Annotated[str, Limits(max_length=500)]
    # Each number that was tried, in order: what kept least, and of each drive its least; share: null where it has
    # too few figures. confirms: beside all neighbours.
    trials: Annotated[t.List[Trial], Limits(max_items=100)]
    # Of the host, in the order in which they run.
    drives: Annotated[t.List[Label], Limits(max_items=1000)]
    cells: Annotated[t.List[CellId], Limits(max_items=100)]
    seconds: NotNegative
    # The median of each drive's own repetitions.
    alone: OrMissing[Annotated[t.List[Alone], Limits(max_items=2000)]] = None


@dataclass(frozen=True)
class Restored:
    """Settings were restored."""

    settings: t.List[Setting]


@dataclass(frozen=True)
class Finding:
    """A code of the guard and its sentence."""

    code: Code
    message: Annotated[str, Limits(max_length=2000)]


@dataclass(frozen=True)
class Look:
    """What was scanned of a drive."""

    # Random ones, of 4 KiB each.
    blocks: Count
    size_bytes: Count
    seconds: NotNegative
    # All of the drive was read.
    whole: bool
    # So many bytes of data, anywhere on the drive, would have been found with a probability of 99.9 %.
    seen_bytes: Count
    # Further ones, where the drive itself reports data.
    aimed_blocks: OrMissing[Count] = None
    # What the drive itself reports as in use; null: it does not.
    allocated_bytes: t.Optional[Count] = None


@dataclass(frozen=True)
class Guard(DriveEvent):
    """The guard checked a drive before a step."""

    step: t.Literal["calibration", "start", "purge", "array", "filesystem", "precondition", "measure"]
    eligible: bool
    refusals: t.List[Finding]
    identity: t.Optional[Json]
    # What was found and the drive's entry overrides.
    overridden: t.Optional[t.List[Finding]] = None
    look: t.Optional[Look] = None


@dataclass(frozen=True)
class Left(DriveEvent):
    """How a run left a drive."""

    state: t.Literal["blank", "as_is", "evidence"]
    reason: str
    seconds: NotNegative


@dataclass(frozen=True)
class Log:
    """A log of a drive. file: in its raw folder; empty where the drive or the host's tools offered none, as message
    says.
    """

    log: Annotated[str, Limits(max_length=100)]
    file: Annotated[str, Limits(pattern=r"^(drive-[a-z-]{1,40}(\.[a-z]{2,4}){1,2})?$")]
    size_bytes: t.Optional[Size]
    message: str


@dataclass(frozen=True)
class DriveLogs:
    """What a drive that failed logged of itself."""

    reason: str
    logs: Annotated[t.List[Log], Limits(max_items=10)]


@dataclass(frozen=True)
class LogsKept(DriveLogs, DriveEvent):
    """A drive that failed was asked for its own logs."""


@dataclass(frozen=True)
class Power:
    """The boot in which a drive is measured, and how often its own power came on; null: it does not count."""

    boot_id: t.Optional[Annotated[str, Limits(max_length=100)]]
    power_cycles: t.Optional[Size]


@dataclass(frozen=True)
class Place:
    """Where fio runs for a drive; null: not bound."""

    cpus: t.Optional[str]
    node: t.Optional[int]
    interrupt_cpus: t.Optional[str]
    note: str


@dataclass(frozen=True)
class DriveStarted(DriveEvent):
    """A drive's campaign began."""

    identity: Json
    path: str
    tests: t.List[str]
    # The boot in which the drive is measured, and how often its own power came on; null where it does not tell.
    power: t.Optional[Power] = None
    place: t.Optional[Place] = None


@dataclass(frozen=True)
class VendorSettings:
    """Settings that a vendor's tool makes: those in force, and those that wait for a power cycle."""

    tool: t.Literal["rssdm", "iomemory"]
    settings: t.Dict[str, Scalar]
    pending: t.Dict[str, Scalar]
    error: Annotated[str, Limits(max_length=1000)]


@dataclass(frozen=True)
class Baseline(DriveEvent):
    """A drive's environment (measure/drive_environment.py) before its first test."""

    boot_id: t.Optional[str]
    # measure/drive_environment.py, read_environment.
    world: Json
    vendor_settings: t.Optional[VendorSettings]


@dataclass(frozen=True)
class TestStarted(TestEvent):
    """A test of a drive began."""

    title: str


@dataclass(frozen=True)
class AtaPasswordSet(DriveEvent):
    """Before a SATA drive gets our password."""

    password: Annotated[str, Limits(min_length=1, max_length=32)]
    method: str
    path: str


@dataclass(frozen=True)
class AtaPasswordCleared(DriveEvent):
    """The password is proved to be off."""

    security: Json


@dataclass(frozen=True)
class Sentinels:
    """The blocks that a purge is verified by."""

    size_bytes: Positive
    block_bytes: Positive
    seed: Text


@dataclass(frozen=True)
class PurgeStart:
    """How a drive is about to be purged."""

    method: str
    why: str
    commands: Commands
    timeout_s: NotNegative
    purge_class: PurgeClass
    capabilities: Json
    sentinels: Sentinels


@dataclass(frozen=True)
class PurgeStarted(PurgeStart, TestEvent):
    """Before a purge begins."""


@dataclass(frozen=True)
class Verification:
    """How many sentinels survived a purge."""

    sentinels: Count
    survived: Count
    unreadable: OrMissing[Count] = None


@dataclass(frozen=True)
class PurgeDetails:
    """How a drive was purged."""

    method: str
    seconds: NotNegative
    verified: bool
    verification: Verification
    purge_class: PurgeClass
    # Why this method: named, or auto and what stood against stronger ones.
    why: OrMissing[str] = None
    commands: OrMissing[Commands] = None
    timeout_s: OrMissing[NotNegative] = None
    # What the drive reported to the method's family.
    capabilities: OrMissing[Json] = None
    # Begun by a job that was interrupted, waited for and verified by a later one.
    resumed: OrMissing[bool] = None
    lba_format_before: OrMissing[Json] = None
    lba_format_after: OrMissing[Json] = None


@dataclass(frozen=True)
class PurgeEnd(PurgeDetails):
    """How a drive was purged, as the journal has it."""

    # It had to wait for a sanitize or a format that ran already.
    waited_for_another: OrMissing[bool] = None
    # By fio.
    bytes_written: OrMissing[Count] = None


@dataclass(frozen=True)
class Purge(PurgeEnd, TestEvent):
    """A purge ended."""


@dataclass(frozen=True)
class PreconditionDetails:
    """How a drive was filled."""

    passes: Positive
    bytes_written: Count
    seconds: NotNegative
    # fio's own, of the whole blocks.
    bandwidth_bytes_per_s: NotNegative
    remainder_bytes: Count
    block_size_bytes: Positive
    data: t.Literal["random", "zeros"]
    # By the kernel's count; null: it does not count this drive's.
    kernel_bytes_written: t.Optional[Count]


@dataclass(frozen=True)
class Precondition(PreconditionDetails, TestEvent):
    """A fill ended."""


_ShortName = t.Optional[Annotated[str, Limits(max_length=256)]]


@dataclass(frozen=True)
class Member:
    """A drive of an array."""

    drive: Label
    path: Annotated[str, Limits(max_length=4096)]
    serial: _ShortName
    wwn: _ShortName
    model: _ShortName
    firmware: _ShortName
    size_bytes: Positive


@dataclass(frozen=True)
class ArrayDetails:
    """An array that was made for a test, of drives of the host."""

    level: t.Literal[0]
    chunk_bytes: Annotated[int, Limits(minimum=4096, maximum=1048576)]
    device: Annotated[str, Limits(pattern="^/dev/md[0-9]{1,4}$")]
    size_bytes: Positive
    commands: Commands
    seconds: NotNegative


@dataclass(frozen=True)
class Array(ArrayDetails, TestEvent):
    """An array was made."""

    # In the order of the stripes.
    members: Annotated[t.List[Member], Limits(min_items=2, max_items=1000)]


@dataclass(frozen=True)
class Wear:
    """What a test cost by the drive's own counts, purge and fill included."""

    host_bytes: t.Optional[Count]
    media_bytes: t.Optional[Count]
    # Micron's SATA drives count pages: theirs has no media_bytes.
    write_amplification: t.Optional[NotNegative]
    used_pct: t.Optional[int]


@dataclass(frozen=True)
class StoppedMember:
    """What was written to a drive of an array; null: the kernel does not count."""

    drive: Label
    bytes_written: t.Optional[Count]
    wear: t.Optional[Wear] = None


@dataclass(frozen=True)
class ArrayStopped(TestEvent):
    """An array was stopped."""

    # To the array, by the kernel's count; null: it does not count.
    bytes_written: t.Optional[Count]
    members: t.List[StoppedMember]
    seconds: NotNegative


@dataclass(frozen=True)
class Stripe:
    """How a file system is laid over the stripes of an array, in blocks of its own."""

    stride: Positive
    stripe_width: Positive


@dataclass(frozen=True)
class FilesystemDetails:
    """A file system that was made for a test."""

    type: t.Literal["ext4", "xfs"]
    uuid: Annotated[str, Limits(pattern="^[0-9a-f-]{36}$")]
    block_size_bytes: Positive
    # As asked.
    mount_options: Annotated[t.List[Annotated[str, Limits(max_length=40)]], Limits(max_items=20)]
    # In force.
    options: Annotated[t.List[Annotated[str, Limits(max_length=200)]], Limits(max_items=100)]
    stripe: t.Optional[Stripe]
    commands: Commands
    file_bytes: Positive
    seconds: NotNegative


@dataclass(frozen=True)
class Filesystem(FilesystemDetails, TestEvent):
    """A file system was made."""


@dataclass(frozen=True)
class FilesystemUnmounted(TestEvent):
    """A file system was unmounted."""

    uuid: Text
    wiped: bool
    # Why it was not wiped.
    reason: str
    seconds: NotNegative


@dataclass(frozen=True)
class FillCurve(TestEvent):
    """The rate of each step of a fill, by the kernel's count."""

    # How much each figure is the rate of: 1 % of the ActiveRange.
    step_bytes: Annotated[float, Limits(exclusive_minimum=0)]
    # How often the kernel's count was read meanwhile.
    samples: Annotated[int, Limits(minimum=2)]
    # Of each step.
    bandwidth_bytes_per_s: Annotated[t.List[NotNegative], Limits(min_items=1, max_items=1000)]


@dataclass(frozen=True)
class Histogram(TestEvent):
    """Latencies over some rounds: how many I/Os fell into each of fio's bins, by the ns in its middle."""

    cell: CellId
    direction: t.Literal["read", "write", "trim", "sync"]
    first_round: Number
    last_round: Number
    ios: Positive
    # Latencies over these rounds: how many I/Os fell into each of fio's bins, told by the ns in its middle (29
    # groups of 64).
    bins: Annotated[
        t.Dict[str, Annotated[int, Limits(minimum=1, maximum=9007199254740991)]],
        Limits(min_properties=1, max_properties=1856, property_names="^[0-9]{1,11}$"),
    ]


@dataclass(frozen=True)
class Chosen:
    """The threads and depth of a cell that the host chose."""

    threads: Positive
    queue_depth: Positive
    cell: t.Optional[CellId] = None
    cpus: t.Optional[Count] = None


@dataclass(frozen=True)
class StreamQueue:
    """The queue of one of several streams."""

    queued: t.Optional[NotNegative]
    mean_latency_s: t.Optional[NotNegative]


@dataclass(frozen=True)
class Seen:
    """What a cell's disturbances were judged by; null: nobody counts it."""

    fio_bytes: t.Optional[t.Dict[str, int]]
    process_bytes: t.Optional[t.Dict[str, int]]
    kernel_bytes: t.Optional[t.Dict[str, int]]
    merged_share: t.Optional[NotNegative]
    run_s: t.Optional[NotNegative]
    mean_latency_s: t.Optional[NotNegative]
    # I/Os in flight by fio.
    queued: t.Optional[NotNegative]
    # I/Os in flight by the kernel's count.
    in_flight: t.Optional[float]
    limits: t.Dict[str, t.Optional[int]]
    # Share of a CPU, by thread.
    fio_cpu: t.Optional[NotNegative]
    cpus: Positive
    cpu_idle: t.Optional[float]
    cpu_steal: t.Optional[float]
    throttled_s: t.Optional[float]
    elapsed_s: t.Optional[NotNegative]
    idle_s: t.Optional[NotNegative]
    clock_jump_s: float
    # No thread of fio submitted nothing for longer.
    longest_gap_s: t.Optional[NotNegative] = None
    # For how long fio's threads together waited for a CPU.
    waited_s: t.Optional[NotNegative] = None
    # Of other namespaces of the controller.
    beside_bytes: t.Optional[Count] = None
    # Of the drives of an array, by kernel name; null: the kernel does not count that drive's I/O.
    member_bytes: t.Optional[Annotated[t.Dict[str, t.Optional[t.Dict[str, Count]]], Limits(max_properties=1000)]] = None
    # Written and discarded since our own last I/O.
    between_bytes: t.Optional[t.Dict[str, int]] = None
    suspended_s: t.Optional[float] = None
    # The longest I/O.
    longest_s: t.Optional[NotNegative] = None
    trimmed_bytes: t.Optional[Count] = None
    # Of several streams, by name.
    streams: t.Optional[Annotated[t.Dict[str, StreamQueue], Limits(max_properties=64)]] = None


CauseName = t.Literal[
    "other_io", "discarded", "queue_not_filled", "host_limited", "idle_gap", "suspended", "clock_jump", "stalled"
]


@dataclass(frozen=True)
class Cause:
    """What disturbed a cell, or can't be known."""

    cause: CauseName
    level: Level
    message: Annotated[str, Limits(max_length=2000)]


@dataclass(frozen=True)
class Figures:
    """What fio measured of one direction. percentiles_us: null where fewer than 10 I/Os lie beyond."""

    iops: NotNegative
    bandwidth_bytes_per_s: NotNegative
    ios: Count
    bytes: Count
    mean_latency_us: NotNegative
    max_latency_us: NotNegative
    percentiles_us: Annotated[t.Dict[str, t.Optional[NotNegative]], Limits(property_names="^[0-9]+(\\.[0-9]+)?$")]
    min_latency_us: t.Optional[NotNegative] = None
    # By n - 1, as fio tells it.
    stddev_latency_us: t.Optional[NotNegative] = None


@dataclass(frozen=True)
class Stream:
    """A stream of a cell, named <cell>.<stream>."""

    name: CellId
    read: t.Optional[Figures] = None
    write: t.Optional[Figures] = None
    trim: t.Optional[Figures] = None
    sync: t.Optional[Figures] = None


@dataclass(frozen=True)
class _OfCell(TestEvent):
    """An event of a cell in a round. seed: of fio's random numbers."""

    round: Number
    cell: CellId
    seed: Count


@dataclass(frozen=True)
class Cell(_OfCell):
    """A cell ended. raw: the file of fio's own output."""

    causes: Annotated[t.List[Cause], Limits(max_items=100)]
    seconds: NotNegative
    # Since the cell before ended; null for the first.
    gap_s: t.Optional[NotNegative]
    read: t.Optional[Figures]
    write: t.Optional[Figures]
    raw: str
    trim: t.Optional[Figures] = None
    # Flushes; they move no bytes.
    sync: t.Optional[Figures] = None
    # Of a cell with several streams: the figures of each, named `<cell>.<stream>`.
    streams: t.Optional[Annotated[t.List[Stream], Limits(max_items=64)]] = None
    started: t.Optional[Time] = None
    # Its threads and depth, where the host chose them: those of the cell of a sweep, or by the CPUs that fio had.
    chosen: t.Optional[Chosen] = None
    seen: t.Optional[Seen] = None


@dataclass(frozen=True)
class CellRefused(_OfCell):
    """What fio reported of a cell can't be taken, so its test ends."""

    message: Text
    chosen: t.Optional[Chosen] = None


@dataclass(frozen=True)
class Round(TestEvent):
    """All cells of a round ended."""

    round: Number
    # Since the first round began.
    elapsed_s: NotNegative


@dataclass(frozen=True)
class Condition:
    """What a drive's environment, its settings and the data mean for a test."""

    cause: Annotated[str, Limits(pattern="^[a-z][a-z0-9_]{0,39}$")]
    level: Level
    message: Annotated[str, Limits(max_length=1000)]


@dataclass(frozen=True)
class TestFinished(TestEvent):
    """A test ended. ended: what its rounds did not decide, with its reasons; disturbed: what makes all rounds
    invalid, as sentences.
    """

    ended: t.Optional[t.Literal["invalid", "error", "interrupted"]]
    reasons: t.List[str]
    disturbed: t.List[str]
    conditions: Annotated[t.List[Condition], Limits(max_items=200)]
    vendor_settings: t.Optional[VendorSettings]
    wear: t.Optional[Wear]


@dataclass(frozen=True)
class MeasurementStarted(TestEvent):
    """The first round begins. user_capacity_bytes: after the purge, which may change it; of an array, its
    own.
    """

    user_capacity_bytes: Positive


@dataclass(frozen=True)
class Sample(TestEvent):
    """What was sampled of a drive while it was measured."""

    temperature_c: t.Optional[int]
    critical_warning: t.Optional[Count]
    warning_temp_min: t.Optional[Count]
    critical_temp_min: t.Optional[Count]
    throttle_counts: t.Optional[t.Dict[str, int]]
    throttle_s: t.Optional[t.Dict[str, int]]
    media_errors: t.Optional[Count]
    error: str
    link_speed_gts: t.Optional[Annotated[float, Limits(exclusive_minimum=0)]]
    link_width: t.Optional[Positive]
    aer: t.Dict[str, t.Dict[str, Count]]
    seconds: NotNegative
    # Of a SATA or SAS link.
    link_rate_gbit_s: t.Optional[Annotated[float, Limits(exclusive_minimum=0)]] = None


@dataclass(frozen=True)
class DriveFinished(DriveEvent):
    """A drive's campaign ended."""

    outcome: t.Literal["complete", "refused", "error", "interrupted"]
    message: str
    # Only with the outcome error: the drive did not do its I/O, or hangs.
    drive_fault: bool = False


@dataclass(frozen=True)
class JobFinished:
    """A host job ended."""

    state: t.Literal["finished", "stopped", "failed"]


@dataclass(frozen=True)
class Crash:
    """An error that nobody expected."""

    traceback: str
    message: t.Optional[str] = None
    drive: t.Optional[Label] = None


EVENTS: t.Dict[str, t.Any] = {
    "job_started": JobStarted,
    "tuned": Tuned,
    "snapshot": Snapshot,
    "calibration": Calibration,
    "restored": Restored,
    "guard": Guard,
    "left": Left,
    "logs_kept": LogsKept,
    "drive_started": DriveStarted,
    "baseline": Baseline,
    "test_started": TestStarted,
    "ata_password_set": AtaPasswordSet,
    "ata_password_cleared": AtaPasswordCleared,
    "purge_started": PurgeStarted,
    "purge": Purge,
    "precondition": Precondition,
    "array": Array,
    "array_stopped": ArrayStopped,
    "filesystem": Filesystem,
    "filesystem_unmounted": FilesystemUnmounted,
    "fill_curve": FillCurve,
    "histogram": Histogram,
    "cell": Cell,
    "cell_refused": CellRefused,
    "round": Round,
    "test_finished": TestFinished,
    "measurement_started": MeasurementStarted,
    "sample": Sample,
    "drive_finished": DriveFinished,
    "job_finished": JobFinished,
    "crash": Crash,
}
