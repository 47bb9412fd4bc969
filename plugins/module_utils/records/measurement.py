# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is measured of a drive: how it is filled, its cells and samples, what disturbs them and how a test ends, a class
each.

Units are in the names. events.py makes the journal's events of the classes named Details.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .base import Annotated, CellId, Count, Label, Limits, NotNegative, Number, OrMissing, Positive, Share, Size, Time
from .health import HealthChange, Wear
from .vendor_tools import VendorSettings

Level = t.Literal["disturbs", "unknown", "told"]
SideName = t.Literal["read", "write", "trim", "sync"]
Ended = t.Optional[t.Literal["invalid", "error", "interrupted"]]


@dataclass(frozen=True)
class Kept:
    """What a drive kept of its rate alone; null: too few figures."""

    drive: Label
    share: t.Optional[Share]


@dataclass(frozen=True)
class Trial:
    """A number of drives that was tried. held: whether each kept enough; cell, drive, share: what kept least; kept: the
    least of each drive that was measured alone too.
    """

    number: Annotated[int, Limits(minimum=2, maximum=1000)]
    held: bool
    cell: CellId
    drive: Label
    share: t.Optional[Share]
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
    # too few figures. None where what they share decided, or ssd_parallel_drives is a number.
    trials: Annotated[t.List[Trial], Limits(max_items=100)]
    # Of the host, in the order in which they run.
    drives: Annotated[t.List[Label], Limits(max_items=1000)]
    cells: Annotated[t.List[CellId], Limits(max_items=100)]
    seconds: NotNegative
    # The median of each drive's own repetitions.
    alone: OrMissing[Annotated[t.List[Alone], Limits(max_items=2000)]] = None


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
class FillCurveDetails:
    """How fast each step of a fill was, by the kernel's count."""

    # How much each figure is the rate of: 1 % of the ActiveRange.
    step_bytes: Annotated[float, Limits(exclusive_minimum=0)]
    # How often the kernel's count was read meanwhile.
    samples: Annotated[int, Limits(minimum=2)]
    # Of each step.
    bandwidth_bytes_per_s: Annotated[t.List[NotNegative], Limits(min_items=1, max_items=1000)]


WrongKind = t.Literal["bit_flips", "misdirected", "stale", "blank", "other_drive", "garbled", "unreadable", "transient"]
_WRONG_KINDS = "^(bit_flips|misdirected|stale|blank|other_drive|garbled|unreadable|transient)$"


@dataclass(frozen=True)
class WrongBlock:
    """A block that was not read back as it was written. wrong_sectors: of 512 bytes; read_right: how many of the
    reads after the first gave what was written.
    """

    # Counted from 1.
    pass_number: Number
    offset_bytes: Count
    kind: WrongKind
    found: Annotated[str, Limits(max_length=200)]
    wrong_sectors: Count
    read_right: Count


@dataclass(frozen=True)
class PassEnd:
    """A pass of an integrity test that was read back."""

    # Since the first one began.
    elapsed_s: NotNegative
    # That it found.
    wrong_blocks: Count


@dataclass(frozen=True)
class IntegrityDetails:
    """What was read back of what an integrity test wrote (docs/integrity.md)."""

    passes: Positive
    block_size_bytes: Positive
    bytes_written: Count
    bytes_read: Count
    write_s: NotNegative
    read_s: NotNegative
    # Beside those of the test, by the kernel's count; null: it does not count.
    other_write_bytes: t.Optional[Count]
    # How many blocks, by what they held; a kind that is not there: none.
    wrong_blocks: Annotated[t.Dict[str, Number], Limits(property_names=_WRONG_KINDS)]
    # False: reading ended early, so that there may be more.
    complete: bool
    # The first of them; the raw file has more, with their contents.
    first: Annotated[t.List[WrongBlock], Limits(max_items=20)]
    # That the host could not correct meanwhile; not there: it does not count them.
    memory_errors: OrMissing[Count] = None
    # How many of them lie in each of so many equal parts of what was written, by the order of addresses; not there:
    # none.
    wrong_by_part: OrMissing[Annotated[t.List[Count], Limits(min_items=1, max_items=100)]] = None
    # Of its controller, by us, each between writing and reading back.
    resets: OrMissing[Count] = None
    # In which it did no I/O and rested before it was read back.
    power_state: OrMissing[Count] = None
    # Each pass, of a test that goes on for a time.
    by_pass: OrMissing[Annotated[t.List[PassEnd], Limits(max_items=1000)]] = None


@dataclass(frozen=True)
class SelfTestDetails:
    """A self-test that the run had the drive do."""

    kind: t.Literal["short", "extended"]
    # unknown: the drive's log has a result that is reserved, or that can't be read.
    result: t.Literal["passed", "failed", "aborted", "unknown"]
    # What the drive's log says of it.
    message: Annotated[str, Limits(max_length=200)]
    seconds: NotNegative


@dataclass(frozen=True)
class Chosen:
    """The threads and depth of a cell that the host chose."""

    threads: Positive
    queue_depth: Positive
    cell: t.Optional[CellId] = None
    cpus: t.Optional[Count] = None
    # Of threads: auto, the share that each used of its CPU time in the trial of so many; null: no trial was needed.
    trial_cpu: t.Optional[NotNegative] = None


@dataclass(frozen=True)
class StreamQueue:
    """The queue of one of several streams."""

    queued: t.Optional[NotNegative]
    mean_latency_s: t.Optional[NotNegative]


@dataclass(frozen=True)
class QueueLimits:
    """What bounds a drive's queue; null: it has no such limit, or the kernel does not tell."""

    nr_requests: t.Optional[int]
    hw_queues: t.Optional[int]
    device_depth: t.Optional[int]


@dataclass(frozen=True)
class SeenQueue:
    """What fio and the kernel count of a cell's I/Os in flight; null: nobody counts it."""

    fio_bytes: t.Dict[str, int]
    kernel_bytes: t.Optional[t.Dict[str, int]]
    merged_share: t.Optional[NotNegative]
    mean_latency_s: t.Optional[NotNegative]
    # I/Os in flight by fio.
    queued: t.Optional[NotNegative]
    # I/Os in flight by the kernel's count.
    in_flight: t.Optional[float]
    limits: QueueLimits


@dataclass(frozen=True)
class Seen(SeenQueue):
    """What a cell's disturbances were judged by; null: nobody counts it."""

    process_bytes: t.Optional[t.Dict[str, int]]
    run_s: NotNegative
    # Share of a CPU, by thread.
    fio_cpu: NotNegative
    cpus: Positive
    cpu_idle: t.Optional[float]
    # Of the CPU that lost most to a hypervisor, or of as many as fio had threads.
    cpu_steal: t.Optional[float]
    throttled_s: t.Optional[float]
    elapsed_s: NotNegative
    idle_s: t.Optional[NotNegative]
    clock_jump_s: float
    # For how long at a stretch the host ran nothing, not even what comes before all else: stopped, or starved.
    longest_stop_s: t.Optional[NotNegative] = None
    # No thread of fio submitted nothing for longer.
    longest_gap_s: t.Optional[NotNegative] = None
    # For how long fio's threads together waited for a CPU.
    waited_s: t.Optional[NotNegative] = None
    # Of other namespaces of the controller.
    beside_bytes: t.Optional[Count] = None
    # Of the drives of an array, by kernel name; null: the kernel does not count that drive's I/O.
    member_bytes: OrMissing[Annotated[t.Dict[str, t.Optional[t.Dict[str, Count]]], Limits(max_properties=1000)]] = None
    # Written and discarded since our own last I/O.
    between_bytes: t.Optional[t.Dict[str, int]] = None
    suspended_s: t.Optional[float] = None
    # The longest I/O.
    longest_s: t.Optional[NotNegative] = None
    # How far below its mean the rate of the slowest second was, by the kernel's count.
    slowest_second_pct: t.Optional[Annotated[float, Limits(minimum=0, maximum=100)]] = None
    trimmed_bytes: OrMissing[Count] = None
    # Of several streams, by name.
    streams: OrMissing[Annotated[t.Dict[str, StreamQueue], Limits(max_properties=64)]] = None

    IS_WHOLE: t.ClassVar[bool] = True


CauseName = t.Literal[
    "other_io",
    "discarded",
    "queue_not_filled",
    "host_limited",
    "idle_gap",
    "suspended",
    "clock_jump",
    "stalled",
    "busy_cpus",
    "no_percentiles",
    "link",
    "throttled",
    "pcie_errors",
    "settings",
    "self_test",
]


@dataclass(frozen=True)
class Cause:
    """What disturbed a cell or a round, or can't be known."""

    cause: CauseName
    level: Level
    message: Annotated[str, Limits(max_length=2000)]
    # Time was taken from fio: a remark where the rate is that of the cell's quiet rounds.
    time_taken: OrMissing[t.Literal[True]] = None


@dataclass(frozen=True)
class Rates:
    """What metrics are made of."""

    iops: NotNegative
    bandwidth_bytes_per_s: NotNegative
    ios: Count
    bytes: Count
    mean_latency_us: NotNegative
    max_latency_us: NotNegative


@dataclass(frozen=True)
class Figures(Rates):
    """What fio measured of one direction. percentiles_us: null where fewer than 10 I/Os lie beyond."""

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
class CellDetails:
    """What one run of a cell came to. raw: the file of fio's own output."""

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
    # Its threads and depth, where the host chose them: those of the cell of a sweep, by the CPUs that fio had, or by
    # the CPU time that it took.
    chosen: t.Optional[Chosen] = None
    seen: t.Optional[Seen] = None


@dataclass(frozen=True)
class HistogramDetails:
    """The latencies of a cell in one direction."""

    cell: CellId
    direction: SideName
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
class Condition:
    """What a drive's environment, its settings and the data mean for a test."""

    cause: Annotated[str, Limits(pattern="^[a-z][a-z0-9_]{0,39}$")]
    level: Level
    message: Annotated[str, Limits(max_length=1000)]


@dataclass(frozen=True)
class Readings:
    """What a look at a drive reads of its health and its link; null: unknown."""

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


@dataclass(frozen=True)
class SampleDetails(Readings):
    """A look at a drive while it is measured."""

    seconds: NotNegative
    # Of a SATA or SAS link.
    link_rate_gbit_s: t.Optional[Annotated[float, Limits(exclusive_minimum=0)]] = None
    # How fast the host's fans turn, by sensor, and how warm its inlet is (machine/hwmon.py); missing: not to be seen.
    fans_rpm: OrMissing[Annotated[t.Dict[Annotated[str, Limits(max_length=100)], Count], Limits(max_properties=64)]] = (
        None
    )
    inlet_c: OrMissing[float] = None


@dataclass(frozen=True)
class TestEnd:
    """How a test ended. ended: what its rounds did not decide, with its reasons; disturbed: what makes all rounds
    invalid, as sentences.
    """

    ended: Ended
    reasons: t.List[str]
    disturbed: t.List[str]
    conditions: Annotated[t.List[Condition], Limits(max_items=200)]
    vendor_settings: t.Optional[VendorSettings]
    wear: t.Optional[Wear]
    # Null: nobody looked.
    health: t.Optional[HealthChange] = None


@dataclass(frozen=True)
class Power:
    """The boot in which a drive is measured, and how often its own power came on; null: it does not count."""

    boot_id: t.Optional[Annotated[str, Limits(max_length=100)]]
    power_cycles: t.Optional[Size]
