# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""plan.json: what one host does in one run. The controller renders it (plugin_utils/plan), the host job works through
it, and what comes back with a run's folder is what its results are computed by (CollectedPlan).

A key with a default is there only where it has another value. Units are in the names.
"""

from __future__ import annotations

import math
import typing as t
from dataclasses import dataclass, field

from .base import (
    HOST_ONLY,
    Annotated,
    Json,
    Label,
    Limits,
    NotNegative,
    OrMissing,
    Positive,
    RunId,
    Scalar,
    TestName,
    Text,
)
from .host_snapshot import BiosSettings
from .identity import Identity
from .in_service import PlannedInService, PlannedScrub
from .planned_cell import JobFile, NotZero, PlannedCell
from .storage_layers import PlannedArray, PlannedFilesystem

_Rounds = Annotated[int, Limits(minimum=1, maximum=2147483647)]


@dataclass(frozen=True)
class NotApplicable:
    """A cell that this drive can't run."""

    id: str
    reason: str


@dataclass(frozen=True)
class PlannedFill:
    """Sequential writes over the whole ActiveRange."""

    passes: Positive
    block_size_bytes: Positive
    # fio job files: whole blocks, and the remainder below the block size.
    job: JobFile = field(default="", metadata=HOST_ONLY)
    remainder_job: JobFile = field(default="", metadata=HOST_ONLY)
    # Else random.
    data: t.Optional[t.Literal["zeros"]] = None


# Far longer than any drive takes to get to a power state (ENLAT).
LEAST_REST_S = 10
# What is written has ten bits for the number of its pass.
MOST_PASSES = 1000


@dataclass(frozen=True)
class PlannedIntegrity:
    """The ActiveRange is written and read back, at least so many times."""

    passes: Annotated[int, Limits(minimum=1, maximum=10)]
    # Of each pass, between writing and reading.
    pause_s: Annotated[int, Limits(minimum=0, maximum=604800)] = 0
    # Between the two its controller is reset, and it spends the pause in a power state without I/O; NVMe alone.
    reset: bool = False
    low_power: bool = False

    # For so long, from the first one on, further passes begin; 0: no more than `passes`.
    duration_s: Annotated[int, Limits(minimum=0, maximum=2592000)] = 0
    # Of mixed random I/O between two passes.
    heat_s: Annotated[int, Limits(minimum=0, maximum=86400)] = 0
    # No pass begins after one with a wrong block.
    stop_at_first: bool = False
    # That I/O.
    heat: t.Optional[PlannedCell] = None

    @property
    def left_alone_s(self) -> int:
        """How long the pause is: where it rests, at least until any drive got there."""
        return self.pause_s or LEAST_REST_S * self.low_power

    def most_passes(self, pass_s: float) -> int:
        """Return how many passes there are at most, if one takes so long to write and to read back."""
        round_s = pass_s + self.left_alone_s + self.heat_s
        # The last one begins before the time is over, and no heat comes before the first.
        further = math.ceil((self.duration_s + self.heat_s) / max(round_s, 1.0)) if self.duration_s else 0
        return max(self.passes, min(MOST_PASSES, further))

    def between_s(self, passes: int) -> float:
        """Return how long a drive is neither written nor read back, by so many passes."""
        return passes * self.left_alone_s + (passes - 1) * self.heat_s


PowerCutMode = t.Literal["hard", "warm", "pull"]
_Seconds = Annotated[int, Limits(minimum=1, maximum=86400)]


@dataclass(frozen=True)
class PlannedPowerCut:
    """Power is cut while the drive is written to, so many times, and what it acknowledged is read back
    (docs/power-cut.md).
    """

    cycles: Annotated[int, Limits(minimum=1, maximum=10000)]
    # hard: the host's power, by its BMC; warm: a reset of the host, its power stays; pull: the drive's slot alone.
    mode: PowerCutMode
    # Between the first acknowledged writes and the cut: a random time within these.
    min_write_s: _Seconds = 5
    max_write_s: _Seconds = 30
    # How long the host, or with pull the drive, may take to come back.
    back_s: _Seconds = 900
    # The entry's claim that the drive keeps what it acknowledged without its power; null: none is made.
    plp: t.Optional[bool] = None


@dataclass(frozen=True)
class PlannedPurge:
    """The purge of a test; the fields of a PlannedFill are there where an overwrite may be the method."""

    # Of purge/methods.py; auto: the strongest that the drive offers.
    method: Text
    lba_size_bytes: t.Optional[Positive] = None
    timeout_s: t.Optional[Positive] = None
    # How long the drive's progress may stand still.
    stuck_s: t.Optional[Positive] = None
    iomemory_size_pct: t.Optional[Annotated[int, Limits(minimum=80, maximum=100)]] = None
    iomemory_sector_bytes: t.Optional[t.Literal[512, 4096]] = None
    passes: t.Optional[Positive] = None
    block_size_bytes: t.Optional[Positive] = None
    job: JobFile = field(default="", metadata=HOST_ONLY)
    remainder_job: JobFile = field(default="", metadata=HOST_ONLY)

    def fill(self) -> PlannedFill:
        """Return the writes of an overwrite. Raises ValueError where the plan has none."""
        if self.passes is None or self.block_size_bytes is None:
            raise ValueError(f"the plan has no fio jobs for the purge method {self.method}")
        return PlannedFill(self.passes, self.block_size_bytes, self.job, self.remainder_job)


@dataclass(frozen=True)
class RoundLimits:
    """When a test's rounds end at the latest; null: not by this."""

    max: t.Optional[Positive]
    # Of the user capacity, written.
    capacity_multiple: t.Optional[NotZero]
    time_limit_s: t.Optional[NotZero]
    # Of the user capacity: max and time_limit_s count from the round by whose end so much is written.
    least_capacity_multiple: t.Optional[NotZero] = None


@dataclass(frozen=True)
class Tracked:
    """A variable that the rule of steady state looks at."""

    cell: Annotated[str, Limits(is_name=True)]
    metric: Annotated[str, Limits(is_name=True)]


@dataclass(frozen=True)
class SteadyStateRule:
    """When a test is steady (docs/validity.md). The limits are parts of the window's average."""

    tracked: Annotated[t.List[Tracked], Limits(min_items=1, max_items=5000)]
    # Rounds.
    window: Annotated[int, Limits(minimum=3, maximum=100)]
    range_limit: NotZero
    slope_limit: NotZero
    # Of the user capacity, to be written before a window may begin.
    min_capacity_multiple: NotNegative
    # Windows before it that have to be steady too.
    confirm_windows: Annotated[int, Limits(minimum=0, maximum=10)]
    # Of rounds, before a window may begin.
    settle_s: NotNegative
    # Only each so many rounds are in the windows.
    sample_every: _Rounds
    # How far a round may be from the average.
    margin: t.Optional[NotZero] = None
    # False: the curve of all rounds is the result, steady or not.
    required: bool = True

    @property
    def least_rounds(self) -> int:
        """How many rounds the windows span that have to agree."""
        return self.window * self.sample_every * (1 + self.confirm_windows)


@dataclass(frozen=True)
class PlannedTest:
    """A test, rendered for one drive."""

    name: TestName
    title: str
    # Where it is published.
    source: t.Optional[str]
    purge: PlannedPurge
    precondition: t.Optional[PlannedFill]
    # Of the drive, from its first block.
    active_range_pct: Annotated[int, Limits(minimum=1, maximum=100)]
    # Of each round, in order; none: a step without a measurement.
    cells: Annotated[t.List[PlannedCell], Limits(max_items=5000)]
    not_applicable: t.List[NotApplicable]
    rounds: RoundLimits
    steady_state: t.Optional[SteadyStateRule]
    # Measured after the window.
    after_steady_rounds: Annotated[int, Limits(minimum=0, maximum=2147483647)]
    latency_targets_us: Annotated[t.List[Annotated[int, Limits(minimum=1, maximum=17000000)]], Limits(max_items=8)]
    # Of a test without a rule: how many rounds at its end make its figures; null: all.
    last_rounds: t.Optional[_Rounds]
    # The state that the drive's write cache has to have, or the test is invalid.
    write_cache: t.Optional[t.Literal["on", "off"]]
    # The test of this drive whose state it goes on from: without it, steady or complete, it is invalid.
    follows: t.Optional[TestName]
    # Cells run in another order each round (measure/rounds.py); null: in the order of `cells`.
    cell_order: OrMissing[t.Literal["shuffled"]] = None
    filesystem: t.Optional[PlannedFilesystem] = None
    array: t.Optional[PlannedArray] = None
    integrity: OrMissing[PlannedIntegrity] = None
    power_cut: OrMissing[PlannedPowerCut] = None
    # The drive's own, which the run starts.
    self_test: OrMissing[t.Literal["short", "extended"]] = None
    # It is for drives that hold data (ssd_mode: read_only).
    in_service: OrMissing[PlannedInService] = None
    scrub: OrMissing[PlannedScrub] = None
    # The most that the ActiveRange is, whatever active_range_pct are.
    active_range_max_bytes: OrMissing[Positive] = None
    # For host-managed drives: it writes in sequence by zone, and its ActiveRange is whole zones.
    zoned: bool = False

    @property
    def reads_or_writes(self) -> bool:
        """Return whether it does I/O of its own beside its purge."""
        return bool(self.precondition or self.cells or self.integrity or self.filesystem or self.array)

    def active_range_bytes(self, size_bytes: int, block_bytes: int) -> int:
        """Return the ActiveRange on a drive of this size, in whole logical blocks."""
        most = self.active_range_max_bytes or size_bytes
        return min(size_bytes * self.active_range_pct // 100, most) // block_bytes * block_bytes

    def in_service_s(self) -> int:
        """Return how long it scrubs, and waits for those who use the drive, at most."""
        patience_s = self.in_service.patience_s if self.in_service else 0
        return patience_s + (self.scrub.duration_s if self.scrub else 0)


@dataclass(frozen=True)
class Departure:
    """How a test that states a source departs from it: it gives no result by that source."""

    # Whose source it states.
    test: str
    # In what it is another one.
    keys: Annotated[t.List[str], Limits(min_items=1)]
    # Why, as its file says.
    because: OrMissing[str] = None


# What drives are taken to write in sequence of which nobody knows better.
OTHER_WRITE_BYTES_PER_S = 500.0 * (1 << 20)


@dataclass(frozen=True)
class PlannedDrive:
    """A drive and its tests, in order."""

    drive: Label
    # The entry of ssd_drives: what names the drive, and its options (drive/entry.py).
    selector: Json
    # As preflight saw it.
    expected: Identity
    # What the inventory wants of the settings that a vendor's tool makes.
    vendor: Json
    tests: t.List[PlannedTest]
    # ssd_wear_budget: no disturbed round is measured again once as much is written.
    wear_budget_bytes: t.Optional[Positive] = None
    # What it is taken to write in sequence, for estimates of time; at most, for bounds of wear: to a slice that its
    # fast flash may hold, and to all of it; and by whose word.
    assumed_write_bytes_per_s: NotZero = OTHER_WRITE_BYTES_PER_S
    most_write_bytes_per_s: NotZero = OTHER_WRITE_BYTES_PER_S
    lasting_write_bytes_per_s: NotZero = OTHER_WRITE_BYTES_PER_S
    write_rate_from: str = "ssd_assumed_write_mib_s"


@dataclass(frozen=True)
class PlannedRun:
    """The run of a plan."""

    id: RunId
    name: Text


@dataclass(frozen=True)
class ReadTogether:
    """ssd_parallel_drives: auto, where what the drives share does not decide. The reads by which the host finds how
    many drives it measures at the same time (job/parallelism.py). alone: drives that are read alone too; numbers: that
    are tried, until one does; otherwise: what is used if none does.
    """

    repeats: Positive
    cells: t.List[PlannedCell]
    alone: t.List[Label]
    numbers: t.List[Positive]
    otherwise: Positive


@dataclass(frozen=True)
class PlannedLook:
    """How a drive is looked at before the first write; seconds: null reads all of it."""

    seconds: t.Optional[NotZero]


@dataclass(frozen=True)
class Validity:
    """What every cell is held to (measure/validity_limits.py). strict: what is unknown disturbs a round too."""

    strict: bool
    limits: t.Dict[str, NotNegative]


@dataclass(frozen=True)
class Fio:
    """Which fio."""

    path: str


@dataclass(frozen=True)
class SysfsFile:
    """Files below /sys or /proc, as a pattern that may name each drive (NAME, FUNCTION), and their value."""

    name: str
    path: str
    value: Scalar


@dataclass(frozen=True)
class CpuLimit:
    """How many CPUs a drive is measured with at most, of those whose model and driver fit these patterns."""

    cpus: int
    model: t.Optional[str] = None
    driver: t.Optional[str] = None


@dataclass(frozen=True)
class NumaBinding:
    """fio runs on its drive's node."""

    limits: t.List[CpuLimit]


@dataclass(frozen=True)
class InterruptCores:
    """How many cores of a node are kept for interrupts; auto: some where there are enough."""

    cores: t.Union[int, str]


@dataclass(frozen=True)
class WriteCacheRule:
    """leave, on, off, or off_without_plp: off but for these models, which protect it."""

    state: str
    plp_models: t.List[str] = field(default_factory=list)


@dataclass(frozen=True)
class Tune:
    """What the role `tune` asks for. None, or empty: nothing."""

    # It stays until it is restored explicitly.
    keep: bool = False
    # How long a CPU may take to wake up, while the host job lives.
    cpu_dma_latency_us: t.Optional[int] = None
    services_stopped: t.List[str] = field(default_factory=list)
    sysfs: t.List[SysfsFile] = field(default_factory=list)
    # Idle states that take longer to leave are switched off.
    idle_states_above_us: t.Optional[int] = None
    interrupts: t.Optional[InterruptCores] = None
    numa: t.Optional[NumaBinding] = None
    write_cache: t.Optional[WriteCacheRule] = None

    # A plan shows what is not asked for too.
    IS_WHOLE: t.ClassVar[bool] = True


@dataclass(frozen=True)
class PlanDecision:
    """What preflight decided; digest: SHA-256 of what the plan does to drives (run/digests.py)."""

    # ssd_mode; the host job erases nothing for another than destructive, and with read_only only reads.
    mode: str
    digest: Annotated[str, Limits(pattern="^[0-9a-f]{64}$")]


@dataclass(frozen=True)
class Plan:
    """plan.json."""

    schema_version: t.Literal[1]
    engine_version: str
    run: PlannedRun
    # The inventory name.
    host: Text
    # When the drives were seen.
    boot_id: str
    # How many are worked on at the same time; with together the most that there may be.
    parallel_drives: Positive
    # Between two samples of a drive that is measured; 0: none.
    sample_interval_s: NotNegative
    look: PlannedLook
    validity: Validity
    leave: t.Literal["blank", "as_is"]
    # ssd_criteria: a drive that misses one is kept as evidence.
    criteria: t.List[Json]
    fio: Fio
    tune: Tune
    drives: t.List[PlannedDrive]
    together: t.Optional[ReadTogether] = None
    # ssd_parallel_drives: auto. Why so many, by what the drives share; "": a number was given.
    parallel_why: str = ""
    # ssd_time_budget, for each drive: no disturbed round is measured again once it is over.
    time_budget_s: t.Optional[NotZero] = None
    # Of a drive that has not shown its own rate yet: for bounds of time.
    assumed_write_bytes_per_s: t.Optional[NotZero] = None
    decision: t.Optional[PlanDecision] = None
    # ssd_health_criteria, likewise; they hold for every test, whatever became of it.
    health_criteria: t.List[Json] = field(default_factory=list)
    # For the host's snapshot: only the controller asks BMCs.
    bios_settings: OrMissing[BiosSettings] = None


@dataclass(frozen=True)
class CollectedDrive:
    """A drive of a collected plan, and its tests."""

    drive: Label
    tests: Annotated[t.List[PlannedTest], Limits(max_items=1000)]


@dataclass(frozen=True)
class CollectedPlan:
    """What the results are made of in a plan.json that came back from a host."""

    drives: Annotated[t.List[CollectedDrive], Limits(max_items=1000)]
    parallel_drives: t.Optional[Positive] = None
    together: t.Optional[ReadTogether] = None
    validity: Validity = field(default_factory=lambda: Validity(False, {}))
