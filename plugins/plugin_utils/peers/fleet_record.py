# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The shape of `fleet` in report/summary.json, which fleet_summary.py makes."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ...module_utils.records.base import Annotated, Count, Json, Limits, NotNegative, OrMissing, Positive

# Of an outlier.
Cause = t.Literal["drive", "can't tell"]
CLOSED: Json = {"additionalProperties": False}


@dataclass(frozen=True, kw_only=True)
class PeerFigure:
    """A figure of a group of peers. What else makes peers (docs/fleet.md) is beside these keys."""

    model: str
    firmware: str
    test: str
    metric: str
    # The tracked cell; empty for a test without one.
    cell: OrMissing[str] = None


@dataclass(frozen=True, kw_only=True)
class WorstDrive:
    """The worst drive of a group."""

    host: str
    drive: str
    value: float


@dataclass(frozen=True, kw_only=True)
class PeerGroup(PeerFigure):
    """A group of peers in one figure."""

    # Drives.
    n: Positive
    median: float
    # Half of the drives lie within this share of the median.
    spread: NotNegative
    least: float
    most: float
    worst: WorstDrive


@dataclass(frozen=True, kw_only=True)
class Outlier(PeerFigure):
    """A drive that is worse than its peers."""

    host: str
    drive: str
    serial: str | None
    value: float
    # Of the peers, without the drive itself.
    median: float
    # How much worse than the median.
    by_pct: float
    # How many times further from the median than the peers spread.
    z: float
    # Drives of the group.
    n: Positive
    cause: Cause
    # Of the cause, in words.
    why: str
    # As a sentence.
    reason: str
    # When its last test ended, by its host's clock; empty where that is unknown.
    until: OrMissing[str] = None


@dataclass(frozen=True, kw_only=True)
class ClaimedTwice:
    """A serial number that several hosts claim."""

    serial: str
    # By which, in words.
    told: str


@dataclass(frozen=True, kw_only=True)
class LowHost(PeerFigure):
    """A host that is low as a whole, by its worst rate."""

    host: str
    # How much worse its drives' median is than that of the other hosts' drives.
    by_pct: float
    drives: list[str]
    # What its snapshot has otherwise than most other hosts.
    differs: list[str]
    z: OrMissing[float] = None


@dataclass(frozen=True, kw_only=True)
class TooFew:
    """A group that is reported and not judged."""

    model: str
    firmware: str
    test: str
    # Drives.
    n: Positive
    needed: Positive


@dataclass(frozen=True, kw_only=True)
class ReportedChange:
    """A figure of a model now and before."""

    model: str
    metric: str
    verdict: t.Literal["worse", "better", "same", "can't tell yet", "conditions changed"]
    # How much worse, as a share (negative: better).
    by: float
    # Of a difference.
    p: float
    # Values on this side.
    n: Count
    # Values on the other side.
    before: Count
    test: OrMissing[str] = None
    # The tracked cell; empty for a test without one.
    cell: OrMissing[str] = None
    firmware: OrMissing[str] = None
    # The firmware before.
    against: OrMissing[str] = None
    # What was not alike, in words.
    changed: OrMissing[str] = None
    # The statistical test.
    by_test: OrMissing[str] = None
    # The most of one drive.
    nights: OrMissing[Count] = None


@dataclass(frozen=True, kw_only=True)
class FirmwareChange(ReportedChange):
    """Drives that are alike but for their firmware."""

    firmware: str
    against: str


@dataclass(frozen=True, kw_only=True)
class VerdictChange:
    """A drive whose verdict is another one than before; before is null where it was not there."""

    host: str
    drive: str
    before: str | None
    now: str


@dataclass(frozen=True, kw_only=True)
class SincePrevious:
    """What changed since the run of this name before."""

    # Its id.
    run: str
    verdicts: list[VerdictChange]
    # Hosts that are low, and were not.
    hosts_low: OrMissing[list[str]] = None
    # Hosts that were low, and are not.
    hosts_well: OrMissing[list[str]] = None
    changes: list[ReportedChange]


@dataclass(frozen=True, kw_only=True)
class BeyondMargin:
    """A figure that differs by more than its test's margin."""

    test: str
    metric: str
    before: float
    now: float
    # Now over before, less 1.
    by: float
    margin: float


@dataclass(frozen=True, kw_only=True)
class DriveMargin:
    """A drive against the run before."""

    host: str
    drive: str
    serial: str | None
    # Whether a power cycle lay between the two runs.
    cycle: t.Literal["power cycle", "no power cycle between", "unknown"]
    # How that is known.
    why: str
    # How many were compared: rates and mean latencies.
    figures: Count
    beyond: list[BeyondMargin]
    # What was not alike, by test: not compared.
    otherwise: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class MarginComparison:
    """Each drive against the run of this name before, by the tests' own margin (run_margin)."""

    # Its id.
    run: str
    drives: list[DriveMargin]


@dataclass(frozen=True, kw_only=True)
class NightsBefore:
    """Against the drive's own median of the runs of this name before."""

    # Ids, newest first.
    runs: Annotated[list[str], Limits(min_items=2)]
    changes: list[ReportedChange]


@dataclass(frozen=True, kw_only=True)
class FigureBesideBaseline:
    """A figure of this run and of the baseline: the medians of all drives that have it."""

    model: str
    test: str
    metric: str
    # In this run.
    here: float
    # In the baseline.
    there: float
    # Drives of this run.
    n: Positive
    # Drives of the baseline.
    of: Positive
    # This run's against the baseline's, as a share: -0.1 is 10 % less.
    by: float
    # What was otherwise; empty: nothing that is known.
    changed: str

    JSON_SCHEMA: t.ClassVar[Json] = CLOSED


@dataclass(frozen=True, kw_only=True)
class BaselineComparison:
    """Against the run that report_baseline names."""

    # Its id.
    run: str
    # Why it could not be compared with.
    problem: OrMissing[str] = None
    changes: list[ReportedChange]
    # Both runs side by side: medians of rates, mean and 99.9 % latencies, whatever drives they are of.
    figures: OrMissing[list[FigureBesideBaseline]] = None


@dataclass(frozen=True, kw_only=True)
class RepeatedFigure:
    """How well a figure repeats from run to run of one drive, over this run and the ones before."""

    model: str
    test: str
    metric: str
    # That were measured more than once.
    drives: Positive
    # The most of one drive.
    runs: Annotated[int, Limits(minimum=2)]
    # The standard deviation within a drive, as a share of its mean, pooled over the drives.
    cv: float
    # The upper end of its one-sided 95 % interval.
    cv_at_most: float


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """The drives against their peers: same model, firmware, capacity, LBA format, link, test, engine and load
    (docs/fleet.md).
    """

    # Why the fleet was not judged.
    problem: OrMissing[str] = None
    groups: list[PeerGroup]
    outliers: list[Outlier]
    # Serial numbers that several hosts claim in a way that no moved drive explains.
    claimed_twice: OrMissing[list[ClaimedTwice]] = None
    low_hosts: list[LowHost]
    # Groups that are reported and not judged.
    too_few: list[TooFew]
    # Figures held against their peers.
    comparisons: Count
    # Figures that stand out, those of low hosts included.
    flagged: Count
    # How many of these may be chance, at most.
    expected_false: NotNegative
    firmwares: list[FirmwareChange]
    # What changed since the run of this name before; null: there is none.
    since: SincePrevious | None
    # By the tests' own margin (run_margin); null where no test has one.
    margin: MarginComparison | None = None
    # Against the drive's own median of the runs of this name before; null with fewer than two of them.
    nights: NightsBefore | None = None
    # Against the run that report_baseline names; null without.
    baseline: BaselineComparison | None = None
    # How well figures repeat from run to run of one drive, over this run and the ones before.
    repeatability: OrMissing[list[RepeatedFigure]] = None

    JSON_SCHEMA: t.ClassVar[Json] = CLOSED
