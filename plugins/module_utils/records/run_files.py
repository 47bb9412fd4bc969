# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The JSON files of a run on a host beside its journal, plan and tuning.json: status.json and array.json."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .attempt import Metric, Outcome
from .base import Annotated, Count, Json, Label, Limits, NotNegative, OrMissing, Positive, RunId, Text

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
class PowerCutStatus:
    """Where a drive is in a cycle of power cuts. writing: its first acknowledgements are on record, so the power may be
    cut; cut: the drive is gone from its slot.
    """

    # The one under way, counted from 1.
    cycle: Count
    cycles: Positive
    step: t.Literal["preparing", "writing", "cut", "verifying"]
    # When it came to this step.
    since: _StatusTime


@dataclass(frozen=True)
class TestFigure:
    """What a finished test came to, by the one figure that it is shown by. metric, value: null where it has none."""

    test: Label
    outcome: Outcome
    metric: t.Optional[Metric]
    value: t.Optional[float]


@dataclass(frozen=True)
class DriveStatus:
    """Where a drive is."""

    # The selector's value.
    drive: Label
    path: t.Optional[str]
    # self_test: it waits for one that somebody else started; device_self_test: for its own.
    phase: t.Literal[
        "queued",
        "guard",
        "purge",
        "precondition",
        "integrity",
        "power_cut",
        "measure",
        "self_test",
        "device_self_test",
        "done",
    ]
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
    # The last figure of the round before, or how far a purge, a precondition or the drive's self-test is.
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
    # Of the phase power_cut.
    power_cut: t.Optional[PowerCutStatus] = None
    # When time_left_s was said; null: never yet.
    time_left_at: t.Optional[Annotated[str, Limits(max_length=40)]] = None
    # Of the phase done: its tests, and which criteria it missed as far as its host can judge; "": none.
    results: t.Optional[Annotated[t.List[TestFigure], Limits(max_items=1000)]] = None
    missed: str = ""

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
class MadeArray:
    """array.json: an array of a test."""

    boot_id: t.Optional[str]
    # Its kernel name.
    name: str
    # Their device numbers.
    members: t.List[t.Any]
    # When it was noted.
    made: OrMissing[str] = None
