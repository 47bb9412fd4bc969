# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What has to hold still around a drive while it is measured: `world` of the journal's baseline."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .base import Annotated, Limits
from .health import CountsBySource
from .measurement import Readings


@dataclass(frozen=True)
class PowerState:
    """Of an NVMe drive; number: 0 is full power. works: whether it does I/O in that state. Null: unknown."""

    number: t.Optional[int]
    works: t.Optional[bool]


@dataclass(frozen=True)
class Environment(Readings):
    """A look at a drive between its tests (measure/drive_environment.py). Null: unknown, or it has no such thing."""

    # Since its power came on.
    highest_temperature_c: t.Optional[int]
    # The drive's own limits.
    warning_temperature_c: t.Optional[int]
    critical_temperature_c: t.Optional[int]
    transport: t.Optional[str]
    # Of a SATA or SAS link.
    link_rate_gbit_s: t.Optional[float]
    link_policy: t.Optional[str]
    # D0, D3hot …
    pci_power: t.Optional[str]
    power_state: PowerState
    # Whether a loop device goes past the page cache.
    direct_io: t.Optional[bool]
    # As the kernel believes.
    write_cache: t.Optional[str]
    # By the drive: counts of its life, and what is left and used of it.
    interface_crc_errors: t.Optional[int] = None
    unsafe_shutdowns: t.Optional[int] = None
    spare_pct: t.Optional[int] = None
    used_pct: t.Optional[int] = None
    # Of counts that it has in several places.
    counts_by_source: t.Optional[Annotated[CountsBySource, Limits(max_properties=16)]] = None
    # In its log, each as drive/self_test.py tells it.
    failed_self_tests: t.Optional[t.List[str]] = None
