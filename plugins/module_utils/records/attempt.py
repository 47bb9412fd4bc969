# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an attempt at a test comes to by its events, for the host job to decide by and for results.jsonl.

Units are in the names.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .base import Annotated, CellId, Count, Limits, NotNegative, Number, OrMissing, Positive
from .health import HealthChange, Wear
from .in_service import ScrubDetails
from .measurement import Cause, CauseName, Chosen, Condition, IntegrityDetails, Level, Rates, SeenQueue, SelfTestDetails
from .power_cut import PowerCutDetails
from .vendor_tools import VendorSettings

# The only names that a figure may have: a column of results.csv is named like it.
METRIC_PATTERN = (
    r"^(((read|write|trim|sync)_)?((iops|bandwidth|mean_latency_us)(_fitted_end)?"
    r"|(max|min|p[0-9]{1,3}(_[0-9]{1,6})?)_latency_us|ios|within_[0-9]{1,8}(us|ms)_pct)"
    r"|(alternation|slowest_second|hourly_drift|throttled)_pct"
    # measure/health_metrics.py.
    r"|media_errors|critical_warnings|uncorrected_pcie_errors|longest_io_s|controller_resets|drive_gone"
    r"|link_resets|failed_self_tests"
    r"|link_degraded|io_timeouts|interface_crc_errors|unsafe_shutdowns|corrected_pcie_errors_per_h"
    r"|throttled_s|highest_temperature_c|available_spare_pct|percentage_used|write_amplification"
    r")$"
)
Metric = Annotated[str, Limits(pattern=METRIC_PATTERN)]
Metrics = Annotated[t.Dict[str, t.Optional[float]], Limits(max_properties=300, property_names=METRIC_PATTERN)]
Reasons = Annotated[t.List[str], Limits(max_items=1000)]
RoundCount = Annotated[int, Limits(minimum=0, maximum=2147483647)]
_Load = Annotated[int, Limits(minimum=1, maximum=65536)]
Outcome = t.Literal["steady", "not_steady", "complete", "invalid", "error", "interrupted"]


@dataclass(frozen=True)
class MeasuredStream:
    """What a result takes of a stream in a cell's event."""

    name: str
    read: t.Optional[Rates] = None
    write: t.Optional[Rates] = None
    trim: t.Optional[Rates] = None
    sync: t.Optional[Rates] = None


@dataclass(frozen=True)
class MeasuredSeen(SeenQueue):
    """What a result takes of what was seen of a cell."""

    slowest_second_pct: t.Optional[float] = None
    longest_s: t.Optional[float] = None
    longest_stop_s: t.Optional[float] = None
    suspended_s: t.Optional[float] = None
    run_s: t.Optional[float] = None
    elapsed_s: t.Optional[float] = None


@dataclass(frozen=True)
class MeasuredCell:
    """What a result takes of a cell's event: a journal has many, and most of each is not needed again."""

    round: int
    cell: str
    seed: int
    causes: t.List[Cause]
    read: t.Optional[Rates] = None
    write: t.Optional[Rates] = None
    trim: t.Optional[Rates] = None
    sync: t.Optional[Rates] = None
    streams: t.Optional[t.List[MeasuredStream]] = None
    chosen: t.Optional[Chosen] = None
    seen: t.Optional[MeasuredSeen] = None


@dataclass(frozen=True)
class Window:
    """The steady-state rule's result for one tracked variable, over the rounds of its window."""

    cell: CellId
    metric: Metric
    steady: bool
    # Of the test so far.
    rounds: RoundCount
    window_rounds: t.List[Number]
    # One for each of these rounds.
    window_values: t.List[t.Optional[float]]
    average: t.Optional[float]
    # Largest less smallest value, as a share of the average.
    range_ratio: t.Optional[float]
    # Per sample of the window.
    slope: t.Optional[float]
    # What the fitted line rises or falls by over the window, as a share of the average.
    slope_ratio: t.Optional[float]
    # Why it is not steady.
    reasons: Reasons
    # Where the fitted line ends.
    fitted_end: t.Optional[float] = None


@dataclass(frozen=True)
class Saturation:
    """What shows that the window began late enough."""

    # What the rule of steady state asks for.
    min_capacity_multiple: NotNegative
    confirm_windows: Count
    settle_s: NotNegative
    user_capacity_bytes: Positive
    # Before the first window that has to agree.
    written_before_bytes: Count
    elapsed_before_s: NotNegative
    # Of each window that has to agree, oldest first, one for each tracked variable.
    averages: t.List[t.List[t.Optional[float]]]


@dataclass(frozen=True)
class Disturbance:
    """A cause that disturbed rounds, is unknown or is only told, and in which rounds."""

    cause: CauseName
    level: Level
    # [[first, last]]
    rounds: t.List[Annotated[t.List[Number], Limits(min_items=2, max_items=2)]]
    # How many rounds in all.
    count: Positive
    # What was seen the first time.
    first: Annotated[str, Limits(max_length=2000)]


@dataclass(frozen=True)
class LoadOfCell:
    """What a cell had whose threads follow the CPUs (per_cpu), or fio's CPU time (threads: auto)."""

    cell: CellId
    threads: _Load
    queue_depth: _Load
    cpus: Annotated[int, Limits(minimum=0, maximum=65536)]


@dataclass(frozen=True)
class Steadiness:
    """Whether a cell's IOPS were steady over the window, whether they are tracked or not; as in Window."""

    metric: Metric
    steady: bool
    range_ratio: t.Optional[float]
    slope_ratio: t.Optional[float]


@dataclass(frozen=True)
class CellAverage:
    """The metrics of a cell, or of a stream of one, over the window: means, and of maxima the maximum."""

    cell: CellId
    metrics: Metrics
    # Of a test with a rule of steady state.
    steady: OrMissing[Steadiness] = None


@dataclass(frozen=True)
class AttemptResult:
    """What an attempt came to; the keys as in a test's record (results.py)."""

    test: str
    attempt: int
    outcome: Outcome
    reasons: Reasons
    rounds: RoundCount
    steady_state: t.List[Window]
    saturation: t.Optional[Saturation]
    # By its cells, and to be read back.
    written_bytes: Count
    validity: t.List[Disturbance]
    metrics: Metrics
    cells: t.List[CellAverage]
    conditions: t.List[Condition]
    vendor_settings: t.Optional[VendorSettings]
    wear: t.Optional[Wear]
    loads: OrMissing[t.List[LoadOfCell]] = None
    health: t.Optional[HealthChange] = None
    integrity: OrMissing[IntegrityDetails] = None
    self_test: OrMissing[SelfTestDetails] = None
    power_cut: OrMissing[PowerCutDetails] = None
    scrub: OrMissing[ScrubDetails] = None
