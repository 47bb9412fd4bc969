# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the modules answer, a class each. The controller believes an answer only as far as it fits (docs/trust.md).

What people read of an answer is in the module's documentation.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .base import Annotated, Code, Commands, Count, Json, Label, Limits, OrMissing, RunId, Scalar, Word
from .bmc import BmcRecord
from .check_finding import CheckFinding
from .events import Place
from .found_drives import FoundDrive
from .host_snapshot import HostIdentity, Snapshot

RunState = t.Literal["starting", "running", "finished", "stopped", "failed", "dead", "damaged", "absent"]
_Words = Annotated[str, Limits(max_length=2000)]
_Sentence = Annotated[str, Limits(max_length=1000)]
_DriveName = Annotated[str, Limits(is_name=True)]
_Scalars = t.Dict[str, Scalar]


@dataclass(frozen=True)
class Failure:
    """What is left of the answer of a module that failed, or that was not reached."""

    msg: OrMissing[_Words] = None
    rc: t.Optional[int] = None
    module_stderr: OrMissing[_Words] = None
    module_stdout: OrMissing[_Words] = None
    changed: OrMissing[bool] = None
    failed: OrMissing[bool] = None
    unreachable: OrMissing[bool] = None
    skipped: OrMissing[bool] = None


@dataclass(frozen=True)
class Answer:
    """What each answer has."""

    changed: bool


@dataclass(frozen=True)
class Diff:
    """What --diff prints: each side as a text, or as keys."""

    before: OrMissing[t.Union[str, Json]] = None
    after: OrMissing[t.Union[str, Json]] = None
    before_header: OrMissing[str] = None
    after_header: OrMissing[str] = None


@dataclass(frozen=True)
class RunOnHost:
    """A run that the host knows."""

    run_id: RunId
    # Null: neither its status nor its plan can be read.
    run_name: t.Optional[Annotated[str, Limits(pattern="^[A-Za-z0-9][A-Za-z0-9._-]{0,59}$")]]
    state: RunState
    # How many it has.
    drives: OrMissing[Count] = None
    # When its status was last written.
    updated: t.Optional[Annotated[str, Limits(max_length=40)]] = None
    # {test: {part: digest}}, of unfinished runs and of the one that was asked for.
    definitions: OrMissing[t.Dict[str, t.Dict[str, t.Optional[Annotated[str, Limits(max_length=100)]]]]] = None


RunsOnHost = Annotated[t.List[RunOnHost], Limits(max_items=10000)]


@dataclass(frozen=True)
class ReportedStatus:
    """status.json as the host has it; empty if there is none. What reads more of it checks it as run_files.Status."""

    message: OrMissing[str] = None

    JSON_SCHEMA: t.ClassVar[Json] = {"additionalProperties": {}}


@dataclass(frozen=True)
class PackedRun:
    """The archive of a run's folder."""

    size_bytes: Count
    sha256: Annotated[str, Limits(pattern="^[0-9a-f]{64}$")]


@dataclass(frozen=True)
class RunInfoAnswer(Answer):
    """The runs on a host, and all about one."""

    # Oldest id first.
    runs: RunsOnHost
    # Of the run that was asked for, as all that follows.
    state: OrMissing[RunState] = None
    status: OrMissing[ReportedStatus] = None
    # Drives that the host job still has to finish.
    unfinished: OrMissing[Annotated[t.List[Label], Limits(max_items=1000)]] = None
    # A sentence for each damaged file.
    damage: OrMissing[Annotated[t.List[_Sentence], Limits(max_items=10)]] = None
    packed: OrMissing[PackedRun] = None


@dataclass(frozen=True)
class HostInfoAnswer(Answer):
    """Which host this is."""

    host_info: HostIdentity


FoundDrives = Annotated[t.List[FoundDrive], Limits(max_items=10000)]


@dataclass(frozen=True)
class DriveFactsAnswer(Answer):
    """The drives of a host."""

    # In the order given; those not named follow.
    drives: FoundDrives


@dataclass(frozen=True)
class UsedLife:
    """How much of a drive's rated life is used, by its own count."""

    drive: _DriveName
    # Above 100 where it has outlived its rating; null: it reports none.
    used_pct: t.Optional[Annotated[int, Limits(minimum=0, maximum=1000)]]


CheckFindings = Annotated[t.List[CheckFinding], Limits(max_items=10000)]
UsedLives = Annotated[t.List[UsedLife], Limits(max_items=10000)]


@dataclass(frozen=True)
class HostChecksAnswer(Answer):
    """What would invalidate the results of a host or a drive."""

    findings: CheckFindings
    # The checks that found nothing.
    passed: Annotated[t.List[Code], Limits(max_items=1000)]
    # pcie without its list of functions, which is long.
    snapshot: Snapshot
    wear: UsedLives


@dataclass(frozen=True)
class Failures:
    """Why a part of examine found nothing, by the module that it stands for."""

    run_info: OrMissing[_Words] = None
    host_info: OrMissing[_Words] = None
    drive_facts: OrMissing[_Words] = None
    host_checks: OrMissing[_Words] = None
    # Without it nobody knows whether a drive that is to be erased is one in service.
    service_drives: OrMissing[_Words] = None


@dataclass(frozen=True)
class ExamineAnswer(Answer):
    """All that preflight reads of a host: of each part that did not fail, and was asked for."""

    failures: Failures
    runs: OrMissing[RunsOnHost] = None
    # The names of the engines that the host keeps.
    engines: OrMissing[
        Annotated[
            t.List[Annotated[str, Limits(max_length=200, pattern="^engine-[A-Za-z0-9._+-]+[.]pyz$")]],
            Limits(max_items=100),
        ]
    ] = None
    host_info: OrMissing[HostIdentity] = None
    drives: OrMissing[FoundDrives] = None
    # Entries of ssd_service_drives, where other drives are to be erased.
    service_not_found: OrMissing[Annotated[t.List[Annotated[str, Limits(max_length=4096)]], Limits(max_items=1000)]] = (
        None
    )
    findings: OrMissing[CheckFindings] = None
    snapshot: OrMissing[Snapshot] = None
    wear: OrMissing[UsedLives] = None


@dataclass(frozen=True)
class ReportedSetting:
    """A setting of a host. Of equal ones, such as one for each CPU, only the first is reported, with their count."""

    name: str
    # The file, or the unit's name; null: it is neither.
    path: t.Optional[str]
    outcome: Code
    # How it is read and set: sysfs, service, irq, write_cache …
    kind: OrMissing[str] = None
    # The drive that it is about; null: the whole host.
    device: t.Optional[str] = None
    # Null: the host has no such setting.
    before: Word = None
    wanted: Word = None
    effective: Word = None
    # The reason, if there is one to give.
    message: OrMissing[str] = None
    # How many equal ones there are, this one included.
    count: OrMissing[Count] = None


@dataclass(frozen=True)
class HostJobAnswer(Answer):
    """What was done about a run on a host."""

    # start, resume, attach, stop, restore, remove or nothing.
    action: OrMissing[Annotated[str, Limits(max_length=200)]] = None
    # The run's; restored where settings were to be restored.
    state: OrMissing[t.Literal[RunState, "restored"]] = None
    message: OrMissing[str] = None
    restored: OrMissing[Annotated[t.List[ReportedSetting], Limits(max_items=2000)]] = None
    # For ansible-core, which prints them.
    warnings: OrMissing[Annotated[t.List[_Sentence], Limits(max_items=50)]] = None


_CommandLine = Annotated[str, Limits(max_length=8192)]


@dataclass(frozen=True)
class BootArgumentsAnswer(Answer):
    """The kernel's command line, now and after the next boot."""

    reboot_required: bool
    # The running kernel's.
    before: _CommandLine
    after: _CommandLine
    # The tool that sets it; null: there was nothing to remove.
    loader: Word
    diff: OrMissing[Diff] = None


@dataclass(frozen=True)
class BmcRecordAnswer(Answer):
    """What is to be restored by the host's BMC."""

    record: BmcRecord
    diff: OrMissing[Diff] = None


@dataclass(frozen=True)
class TunablesAnswer(Answer):
    """What the role tune would set, and where fio would run."""

    settings: Annotated[t.List[ReportedSetting], Limits(max_items=20000)]
    # By the drive's name.
    places: t.Dict[str, t.Optional[Place]]
    diff: OrMissing[Diff] = None


@dataclass(frozen=True)
class PinnedIrq:
    """An interrupt. CPUs are a list as the kernel writes it."""

    irq: Count
    outcome: Code
    # The CPUs that it was allowed on; null: there is no such interrupt.
    before: Word = None
    # The CPUs asked for.
    wanted: Word = None
    # The CPUs that it is delivered on; null: the kernel does not report it.
    effective: Word = None
    # The reason, if there is one to give.
    message: OrMissing[str] = None


@dataclass(frozen=True)
class IrqAffinityAnswer(Answer):
    """Where interrupts are delivered."""

    irqs: Annotated[t.List[PinnedIrq], Limits(max_items=20000)]
    diff: OrMissing[Diff] = None


@dataclass(frozen=True)
class RestoredDrive:
    """A drive whose settings were restored."""

    serial: Word
    # What rssdm shows.
    current: OrMissing[_Scalars] = None
    # What takes effect once the host is power-cycled.
    pending: OrMissing[_Scalars] = None


@dataclass(frozen=True)
class RssdmAnswer(Answer):
    """Settings of a P320h or P420m."""

    power_cycle_required: bool
    # What to do; empty if there is nothing to do.
    message: str
    # As rssdm -L -d shows it.
    drive: OrMissing[_Scalars] = None
    current: OrMissing[_Scalars] = None
    # What takes effect once the host is power-cycled.
    pending: OrMissing[_Scalars] = None
    # That were run to change something.
    commands: OrMissing[Commands] = None
    restored: OrMissing[Annotated[t.List[RestoredDrive], Limits(max_items=1000)]] = None
    diff: OrMissing[Diff] = None


@dataclass(frozen=True)
class DmaDelay:
    """The write delay of Fusion-io's driver."""

    # In this collection's options file; null: there is none.
    configured: t.Optional[int]
    # The loaded driver's; null: none is loaded.
    effective: t.Optional[int]


@dataclass(frozen=True)
class IomemoryAnswer(Answer):
    """Fusion-io's cards."""

    # In the order of fio-status.
    cards: Annotated[t.List[_Scalars], Limits(max_items=1000)]
    dma_delay: DmaDelay
    driver_reload_required: bool
    # That were run to change the card.
    commands: OrMissing[Commands] = None
    # What was not done, and why; empty otherwise.
    message: OrMissing[str] = None
    findings: OrMissing[Annotated[t.List[CheckFinding], Limits(max_items=1000)]] = None
    # A file's name; the path is the controller's.
    bugreport: OrMissing[Annotated[str, Limits(pattern="^fio-bugreport-[A-Za-z0-9._-]{1,100}$")]] = None
    diff: OrMissing[Diff] = None


@dataclass(frozen=True)
class SteadyStateAnswer(Answer):
    """Whether a series is steady."""

    steady: bool
    # The round at which its window ends; otherwise the number of values.
    rounds: Count
    # Why it is not steady; empty when it is.
    reasons: Annotated[t.List[str], Limits(max_items=1000)]
    # Null: NaN or infinite.
    window_values: OrMissing[t.List[t.Optional[float]]] = None
    # Of the window, as all that follows; null: it does not exist.
    average: t.Optional[float] = None
    # The largest value less the smallest, as a share of the average.
    range_ratio: t.Optional[float] = None
    # Per round.
    slope: t.Optional[float] = None
    # The slope times the window less one, as a share of the average.
    slope_ratio: t.Optional[float] = None


_Layer = Annotated[str, Limits(max_length=200)]


@dataclass(frozen=True)
class RetiredStep:
    """One command that took apart what was built on retired drives, or would."""

    command: Annotated[str, Limits(max_length=1000)]
    # Kernel names of what is gone after it, and of the drives below that.
    layers: Annotated[t.List[_Layer], Limits(max_items=1000)]
    drives: Annotated[t.List[_Layer], Limits(max_items=1000)]


@dataclass(frozen=True)
class KeptLayer:
    """What is not taken apart. by_hand: the command; empty: there is none."""

    layer: _Layer
    why: Annotated[str, Limits(max_length=20000)]
    by_hand: Annotated[str, Limits(max_length=1000)]


@dataclass(frozen=True)
class RetiredLayersAnswer(Answer):
    """What was taken apart, or would be, and what was not."""

    steps: Annotated[t.List[RetiredStep], Limits(max_items=1000)]
    kept: Annotated[t.List[KeptLayer], Limits(max_items=1000)]
    failed_step: Annotated[str, Limits(max_length=2000)]


@dataclass(frozen=True)
class EsxiDevice:
    """A device of an ESXi host; null: its release does not report it."""

    name: Label
    model: Word
    firmware: Word
    is_ssd: t.Optional[bool]
    adapter: Word
    driver: Word
    driver_version: Word
    path_selection: Word
    queue_depth: t.Optional[Count]
    outstanding: t.Optional[Count]


@dataclass(frozen=True)
class EsxiDeviceAnswer(Answer):
    """Devices of an ESXi host, and what was changed of them."""

    release: _Sentence
    devices: Annotated[t.List[EsxiDevice], Limits(max_items=10000)]
    # For the snapshots of its guests.
    summary: Annotated[t.Dict[str, _Sentence], Limits(max_properties=20, property_names="^[a-z_]{1,40}$")]
    commands: Commands
    # What was not restored.
    message: _Words
    diff: OrMissing[Diff] = None


ANSWERS: t.Dict[str, t.Any] = {
    "bmc_record": BmcRecordAnswer,
    "boot_arguments": BootArgumentsAnswer,
    "drive_facts": DriveFactsAnswer,
    "esxi_device": EsxiDeviceAnswer,
    "examine": ExamineAnswer,
    "host_checks": HostChecksAnswer,
    "host_info": HostInfoAnswer,
    "host_job": HostJobAnswer,
    "iomemory": IomemoryAnswer,
    "irq_affinity": IrqAffinityAnswer,
    "retired_layers": RetiredLayersAnswer,
    "rssdm": RssdmAnswer,
    "run_info": RunInfoAnswer,
    "steady_state": SteadyStateAnswer,
    "tunables": TunablesAnswer,
}
