# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the vendors' tools show of a drive, and what is recorded of what was set with them."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .base import Annotated, Limits, Scalar

# Of a P320h or P420m; None: it is not shown, or ambiguous.
RssdmValue = t.Union[bool, int, None]


@dataclass(frozen=True)
class RssdmRecord:
    """What rssdm set on a drive: <state_dir>/rssdm/<serial>.json."""

    # Of the boot in which the pending values were set.
    boot_id: str
    serial: str
    write_cache_flag: str
    pending: t.Dict[str, RssdmValue]
    # What the drive had before the first change.
    originals: t.Dict[str, RssdmValue]


@dataclass(frozen=True)
class BeaconRecord:
    """Whether a card's LEDs were switched on in a boot: <state_dir>/iomemory/<serial>.json."""

    beacon: bool
    boot_id: str


@dataclass(frozen=True)
class CardFormat:
    """How an ioMemory card is formatted. None: fio-status does not show it."""

    sector_bytes: t.Optional[int]
    size_bytes: t.Optional[int]
    # Of the advertised capacity.
    size_pct: t.Optional[int]


@dataclass(frozen=True)
class Card:
    """An ioMemory device as `fio-status -a` shows it; a card has one or two. None: the line is missing."""

    control: str
    state: str
    serial: str
    # fioa, while it is attached.
    block: t.Optional[str]
    pci_address: t.Optional[str]
    model: t.Optional[str]
    firmware: t.Optional[str]
    size_bytes: t.Optional[int]
    sector_bytes: t.Optional[int]
    advertised_bytes: t.Optional[int]
    link_lanes: t.Optional[int]
    link_speed_gts: t.Optional[float]
    temperature_c: t.Optional[float]
    reserve: t.Optional[str]
    reserves_pct: t.Optional[float]
    reserves_warn_pct: t.Optional[float]
    writes_left_pct: t.Optional[float]
    power_loss: t.Optional[str]
    bus_errors: t.Optional[str]
    # The tool's own warning.
    trouble: t.Optional[str]
    # Since the driver was loaded.
    highest_c: t.Optional[float]
    # The capacity in per cent of the advertised one, which under-formatting lowers.
    size_pct: t.Optional[int]

    @property
    def label(self) -> str:
        """Name the card in a message."""
        return f"{self.serial} ({self.control})"

    @property
    def format(self) -> CardFormat:
        """How it is formatted."""
        return CardFormat(self.sector_bytes, self.size_bytes, self.size_pct)


@dataclass(frozen=True)
class VendorSettings:
    """Settings that a vendor's tool makes: those in force, and those that wait for a power cycle."""

    tool: t.Literal["rssdm", "iomemory"]
    settings: t.Dict[str, Scalar]
    pending: t.Dict[str, Scalar]
    error: Annotated[str, Limits(max_length=1000)]
