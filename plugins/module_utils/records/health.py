# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drive's health: what a test did to it and what it cost (`health` and `wear` of the journal's test_finished), and
the logs that a drive that failed keeps of itself.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .base import Annotated, Count, Limits, NotNegative, Number, Size, TestName

# Counts of a drive's life: of each, what each of its sources says (measure/life_counts.py).
CountsBySource = t.Dict[str, t.Dict[str, Count]]
# What a line of the kernel's log means (measure/kernel_log.py).
KernelEventKind = t.Literal[
    "timeout",
    "lost_interrupt",
    "reset",
    "link_reset",
    "gone",
    "medium_error",
    "io_error",
    "host_reset",
    "host_fault",
]


@dataclass(frozen=True)
class HealthChange:
    """What a test did to a drive's health, its purge and fill included (measure/health_change.py). Null: not
    observed.
    """

    # New ones since the test began.
    media_errors: t.Optional[Count] = None
    # Bits of NVMe's critical_warning that came up, but for that of the temperature.
    critical_warning: t.Optional[Count] = None
    # That the drive failed, whoever started them.
    failed_self_tests: t.Optional[Count] = None
    interface_crc_errors: t.Optional[Count] = None
    unsafe_shutdowns: t.Optional[Count] = None
    # Of the drive's own PCI Express function; those of the ports above it are conditions.
    uncorrected_pcie_errors: t.Optional[Count] = None
    corrected_pcie_errors_per_h: t.Optional[NotNegative] = None
    # By the drive: the counts of its life at the end of the test, as far as they are known.
    counts_by_source: t.Optional[Annotated[CountsBySource, Limits(max_properties=16)]] = None
    # By the kernel's log: I/Os that timed out, and resets of the drive's own controller, not of an HBA, a bus or a
    # switch.
    io_timeouts: t.Optional[Count] = None
    controller_resets: t.Optional[Count] = None
    # Of a SATA or SAS drive's link, or of the device behind it.
    link_resets: t.Optional[Count] = None
    # Of what the drive shares with others: an HBA, a bus, a switch, or several drives at once.
    host_resets: t.Optional[Count] = None
    # Of its I/Os that timed out with those of others, or when what it shares with them was reset.
    host_timeouts: t.Optional[Count] = None
    # Whether the host, or what it did about another drive of the same HBA, may have kept its I/Os waiting; also where
    # the log lost records.
    may_have_waited: t.Optional[bool] = None
    # What the kernel said first of a timeout, a reset or a loss of the drive's own.
    kernel_message: t.Optional[Annotated[str, Limits(max_length=500)]] = None
    # By thermal management, while it was measured.
    throttled_s: t.Optional[Count] = None
    highest_temperature_c: t.Optional[int] = None
    # At the end of the test, as the drive tells it.
    available_spare_pct: t.Optional[Count] = None
    percentage_used: t.Optional[Count] = None
    # After so long the kernel gives up an I/O.
    io_timeout_s: t.Optional[NotNegative] = None
    # Its own link is slower at the end than before its first test.
    link_degraded: t.Optional[bool] = None
    # The kernel no longer has it, or has given it up.
    drive_gone: t.Optional[bool] = None


@dataclass(frozen=True)
class Wear:
    """What a test cost by the drive's own counts, purge and fill included."""

    host_bytes: t.Optional[Count]
    media_bytes: t.Optional[Count]
    # Micron's SATA drives count pages: theirs has no media_bytes.
    write_amplification: t.Optional[NotNegative]
    used_pct: t.Optional[int]


@dataclass(frozen=True)
class HealthInArray:
    """What a test on an array did to the health of a drive of it other than the one that carries the test."""

    test: TestName
    attempt: Number
    health: HealthChange


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
