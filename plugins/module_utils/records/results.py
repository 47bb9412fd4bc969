# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The records of results.jsonl, a line each: of a host, of a drive, and of a test of a drive.

The file is append-only, and the newest record of a key (kind, host, drive, test) wins. A host's record with the state
started makes all of it before void. Units are in the names.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from . import measurement
from .attempt import Disturbance, LoadOfCell, Metrics, Outcome, Reasons, RoundCount, Saturation, Window
from .base import (
    Annotated,
    AnyTime,
    Count,
    HostName,
    Label,
    Limits,
    Number,
    OrMissing,
    RunId,
    Scalar,
    TestName,
)
from .guard import Look, Refusal
from .health import DriveLogs, HealthChange, HealthInArray, Wear
from .identity import Identity
from .in_service import ScrubDetails
from .measurement import Power
from .plan import NotApplicable
from .power_cut import PowerCutDetails
from .purge import PurgeDetails
from .storage_layers import ArrayDetails, FilesystemDetails, Member
from .vendor_tools import VendorSettings

Short = Annotated[Scalar, Limits(max_length=1000)]


@dataclass(frozen=True)
class RecordOfRun:
    """What every record begins with."""

    schema_version: t.Literal[1]
    # When what it says was so, by the host's clock; never later than it was collected.
    time: AnyTime
    run_id: RunId
    host: HostName


@dataclass(frozen=True)
class Brief:
    """A snapshot in short (run_folder/host_brief.py): each report compares those of all hosts. null: unknown."""

    cpu: Short = None
    sockets: Short = None
    cores: Short = None
    cpus: Short = None
    memory_bytes: t.Optional[Count] = None
    system: Short = None
    bios: Short = None
    kernel: Short = None
    os: Short = None
    command_line: Annotated[t.Optional[str], Limits(max_length=8192)] = None
    # The version of each.
    tools: Annotated[t.Dict[str, Short], Limits(max_properties=100)] = field(default_factory=dict)
    governor: Short = None
    smt: Short = None
    aspm_policy: Short = None
    # on or off.
    turbo: Short = None
    # How deep CPUs may sleep.
    c_states: Short = None
    irqbalance: Short = None
    clock_source: Short = None
    # As in the snapshot, each text up to its first comma or semicolon.
    mitigations: Annotated[t.Dict[str, Short], Limits(max_properties=100)] = field(default_factory=dict)
    # Of its drives; unlike ones joined by "/".
    iommu: Short = None
    payload_bytes: Short = None
    read_request_bytes: Short = None
    hardware_queues: Short = None
    nvme_poll_queues: Short = None
    # Whether the BMC told the BIOS attributes: read, or unknown and why; null: no BMC is given.
    bios_settings: Short = None
    # In force; without those that differ between any two machines.
    bios_attributes: Annotated[t.Dict[str, Short], Limits(max_properties=4000)] = field(default_factory=dict)
    # What the hypervisor of a guest is, as esxi.yml saw it last (ssd_hypervisor).
    hypervisor: Annotated[t.Dict[str, Short], Limits(max_properties=20)] = field(default_factory=dict)


HostState = t.Literal["ok", "unreachable", "failed", "lost_power", "unfinished", "started"]


@dataclass(frozen=True)
class HostRecord(RecordOfRun):
    """What a host's part of the run came to."""

    kind: t.Literal["host"]
    state: HostState
    # Why, unless it is ok.
    message: str
    # What the host was, in short; all of it is in the host's journal. null: unknown.
    snapshot: t.Optional[Brief] = None
    # How many drives the host measures at the same time; null: nobody had to find out.
    calibration: t.Optional[measurement.Calibration] = None


@dataclass(frozen=True)
class PowerOfRun:
    """The boot, and how often the drive's own power had come on, when a job of the run took it."""

    # For the first time.
    first: Power
    # For the last time.
    last: Power


@dataclass(frozen=True)
class DriveRecord(RecordOfRun):
    """How the campaign of a drive ended."""

    kind: t.Literal["drive"]
    # How the inventory names it.
    drive: Label
    # null: no single drive was found.
    path: t.Optional[str]
    identity: t.Optional[Annotated[t.Dict[str, Scalar], Limits(known=Identity)]]
    outcome: t.Literal["complete", "refused", "error", "interrupted"]
    # Why, unless it is complete.
    message: str
    # Only with the outcome refused.
    refusals: t.List[Refusal]
    # null: nothing was scanned.
    look: t.Optional[Look] = None
    # How the run left the drive; null: it did not come to its end.
    left: t.Optional[t.Literal["blank", "as_is", "evidence"]] = None
    # null: it did well.
    logs: t.Optional[DriveLogs] = None
    # null: no job came as far as that.
    power: t.Optional[PowerOfRun] = None
    # Only with the outcome error: the drive did not do its I/O, or hangs.
    drive_fault: OrMissing[t.Literal[True]] = None
    # What the guard found and the drive's entry overrides.
    overridden: t.List[Refusal] = field(default_factory=list)
    # The statement of its entry, true or a date, that the run used up.
    retired: OrMissing[str] = None
    # What that gave up.
    gives_up: OrMissing[t.List[str]] = None
    # By each test on an array that another drive carries.
    in_arrays: t.List[HealthInArray] = field(default_factory=list)


@dataclass(frozen=True)
class MeasuredMember(Member):
    """A drive of an array, and what the test cost it."""

    # By the kernel's count; null: it does not count, or the array was not stopped.
    bytes_written: t.Optional[Count] = None
    wear: t.Optional[Wear] = None


@dataclass(frozen=True)
class MeasuredArray(ArrayDetails):
    """An array that was made for the test, of drives of the host."""

    # In the order of the stripes.
    members: Annotated[t.List[MeasuredMember], Limits(min_items=2, max_items=1000)]


@dataclass(frozen=True)
class TestRecord(RecordOfRun):
    """What the newest attempt at a test of a drive came to."""

    kind: t.Literal["test"]
    # How the inventory names it.
    drive: Label
    test: TestName
    attempt: Number
    title: str
    started: AnyTime
    # null: it has no end.
    finished: t.Optional[AnyTime]
    outcome: Outcome
    # Why it is not steady, or not complete.
    reasons: Reasons
    rounds: RoundCount
    # One for each tracked variable.
    steady_state: Annotated[t.List[Window], Limits(max_items=500)]
    # Those of its first tracked cell, or of its first one where it tracks none; maxima are the largest of all cells.
    metrics: Metrics
    # null: it was not purged.
    purge: t.Optional[PurgeDetails]
    # null: it was not filled.
    precondition: t.Optional[measurement.PreconditionDetails]
    # Cells that this drive can't run.
    not_applicable: t.List[NotApplicable]
    # null: its rule of steady state asks for nothing.
    saturation: t.Optional[Saturation] = None
    # By its cells, and to be read back; a fill is in precondition.
    written_bytes: t.Optional[Count] = None
    # Causes in its rounds.
    validity: Annotated[t.List[Disturbance], Limits(max_items=100)] = field(default_factory=list)
    # What the drive's environment, its settings and the data say of the test (docs/validity.md). disturbs: it is
    # invalid for it; unknown: nobody can tell; told: a remark.
    conditions: Annotated[t.List[measurement.Condition], Limits(max_items=200)] = field(default_factory=list)
    # null: no vendor's tool makes settings of this drive.
    vendor_settings: t.Optional[VendorSettings] = None
    # null: the drive does not count.
    wear: t.Optional[Wear] = None
    # null: nobody looked.
    health: t.Optional[HealthChange] = None
    # How many drives of the host were measured at the same time at most; null: unknown.
    parallel_drives: t.Optional[Annotated[int, Limits(minimum=1, maximum=1000)]] = None
    # Of cells whose threads the host chose.
    loads: OrMissing[Annotated[t.List[LoadOfCell], Limits(max_items=5000)]] = None
    array: OrMissing[MeasuredArray] = None
    filesystem: OrMissing[FilesystemDetails] = None
    # Of a test that reads back what it wrote.
    integrity: OrMissing[measurement.IntegrityDetails] = None
    power_cut: OrMissing[PowerCutDetails] = None
    # Of a test that has the drive test itself.
    self_test: OrMissing[measurement.SelfTestDetails] = None
    # Of a test that reads a part of a drive in service.
    scrub: OrMissing[ScrubDetails] = None


# By their kind.
RECORDS: t.Dict[str, t.Any] = {"host": HostRecord, "drive": DriveRecord, "test": TestRecord}
