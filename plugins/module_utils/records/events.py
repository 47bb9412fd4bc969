# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The events of a run's journal, a class each: what the host job writes, and all that a run's results are made of.

The journal is append-only, and an event is on the disk before the next step. Units are in the names.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from .base import (
    Annotated,
    CellId,
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
    TestName,
    Text,
    Time,
)
from .guard import Look, Refusal
from .health import DriveLogs, HealthInArray, KernelEventKind, Wear
from .host_snapshot import Snapshot
from .in_service import ScrubDetails
from .measurement import (
    Calibration,
    Cause,
    CellDetails,
    Chosen,
    FillCurveDetails,
    HistogramDetails,
    IntegrityDetails,
    Power,
    PreconditionDetails,
    SampleDetails,
    SelfTestDetails,
    TestEnd,
)
from .power_cut import PowerCutArmed, PowerCutCycle
from .purge import PurgeEnd, PurgeStart
from .storage_layers import AssembledArray, FilesystemDetails, FilesystemEnd
from .vendor_tools import VendorSettings


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
class Restored:
    """Settings were restored."""

    settings: t.List[Setting]


@dataclass(frozen=True)
class Guard(DriveEvent):
    """The guard checked a drive before a step."""

    step: t.Literal[
        "calibration",
        "start",
        "purge",
        "array",
        "filesystem",
        "precondition",
        "integrity",
        "power_cut",
        "self_test",
        "measure",
    ]
    eligible: bool
    refusals: t.List[Refusal]
    identity: t.Optional[Json]
    # What was found and the drive's entry overrides.
    overridden: t.Optional[t.List[Refusal]] = None
    look: t.Optional[Look] = None
    # The statement of its entry, true or a date, and what it gives up.
    retired: OrMissing[str] = None
    gives_up: OrMissing[t.List[str]] = None


@dataclass(frozen=True)
class Left(DriveEvent):
    """How a run left a drive."""

    state: t.Literal["blank", "as_is", "evidence"]
    reason: str
    seconds: NotNegative


@dataclass(frozen=True)
class LogsKept(DriveLogs, DriveEvent):
    """A drive that failed was asked for its own logs."""


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
class PurgeStarted(PurgeStart, TestEvent):
    """Before a purge begins."""


@dataclass(frozen=True)
class Purge(PurgeEnd, TestEvent):
    """A purge ended."""


@dataclass(frozen=True)
class Precondition(PreconditionDetails, TestEvent):
    """A fill ended."""


@dataclass(frozen=True)
class Array(AssembledArray, TestEvent):
    """An array was made."""


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
class MemberHealth(HealthInArray, DriveEvent):
    """What a test on an array did to the health of a drive of it other than the one that carries the test."""


@dataclass(frozen=True)
class Filesystem(FilesystemDetails, TestEvent):
    """A file system was made."""


@dataclass(frozen=True)
class FilesystemUnmounted(FilesystemEnd, TestEvent):
    """A file system was unmounted."""


@dataclass(frozen=True)
class FillCurve(FillCurveDetails, TestEvent):
    """The rate of each step of a fill, by the kernel's count."""


@dataclass(frozen=True)
class Integrity(IntegrityDetails, TestEvent):
    """What an integrity test wrote was read back; the newest of a test tells of all of its passes."""


@dataclass(frozen=True)
class CutArmed(PowerCutArmed, TestEvent):
    """Before the first write of a cycle of a power-cut test."""


@dataclass(frozen=True)
class CutCycle(PowerCutCycle, TestEvent):
    """What a cycle of a power-cut test left was compared with what the drive had acknowledged."""


@dataclass(frozen=True)
class SelfTest(SelfTestDetails, TestEvent):
    """A self-test that the run had the drive do has ended."""


@dataclass(frozen=True)
class Scrub(ScrubDetails, TestEvent):
    """A scrub of a part of the drive has ended."""


@dataclass(frozen=True)
class Histogram(HistogramDetails, TestEvent):
    """Latencies over some rounds: how many I/Os fell into each of fio's bins, by the ns in its middle."""


@dataclass(frozen=True)
class _OfCell(TestEvent):
    """An event of a cell in a round. seed: of fio's random numbers."""

    round: Number
    cell: CellId
    seed: Count


@dataclass(frozen=True)
class Cell(CellDetails, _OfCell):
    """A cell ended. raw: the file of fio's own output."""


@dataclass(frozen=True)
class CellRefused(_OfCell):
    """What fio reported of a cell can't be taken, so its test ends."""

    message: Text
    chosen: t.Optional[Chosen] = None


@dataclass(frozen=True)
class Round(TestEvent):
    """All cells of a round ended."""

    round: Number
    # Since the first round began, without what was waited for self-tests.
    elapsed_s: NotNegative
    # What samples of the drive and looks at the host's settings showed since the round before.
    causes: t.List[Cause] = field(default_factory=list)


@dataclass(frozen=True)
class TestFinished(TestEnd, TestEvent):
    """A test ended. ended: what its rounds did not decide, with its reasons; disturbed: what makes all rounds
    invalid, as sentences.
    """


@dataclass(frozen=True)
class MeasurementStarted(TestEvent):
    """The first round begins. user_capacity_bytes: after the purge, which may change it; of an array, its
    own.
    """

    user_capacity_bytes: Positive


@dataclass(frozen=True)
class Sample(SampleDetails, TestEvent):
    """What was sampled of a drive while it was measured."""


@dataclass(frozen=True)
class KernelEvent(TestEvent):
    """The kernel logged something about a drive, or about what it shares with others, while it was measured."""

    kind: KernelEventKind
    # What it is about, as the kernel writes it.
    name: Annotated[str, Limits(max_length=100)]
    # It is about the drive itself, its controller or its slot.
    is_own: bool
    # Since the boot, by the clock of the log.
    boot_s: NotNegative
    message: Annotated[str, Limits(max_length=500)]


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
    "member_health": MemberHealth,
    "array_stopped": ArrayStopped,
    "filesystem": Filesystem,
    "filesystem_unmounted": FilesystemUnmounted,
    "fill_curve": FillCurve,
    "integrity": Integrity,
    "power_cut_armed": CutArmed,
    "power_cut_cycle": CutCycle,
    "self_test": SelfTest,
    "scrub": Scrub,
    "histogram": Histogram,
    "cell": Cell,
    "cell_refused": CellRefused,
    "round": Round,
    "test_finished": TestFinished,
    "measurement_started": MeasurementStarted,
    "sample": Sample,
    "kernel_event": KernelEvent,
    "drive_finished": DriveFinished,
    "job_finished": JobFinished,
    "crash": Crash,
}
