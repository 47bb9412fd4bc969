# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host reports of its drives: who each is, whether it may be erased, and how it could be purged."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .base import Annotated, Count, Json, Limits, OrMissing, Positive
from .guard import Look, Refusal
from .identity import Identity
from .ledger import OwnData
from .purge import OfferedPurge

_Label = t.Optional[Annotated[str, Limits(max_length=4096, is_name=True)]]
_Told = Annotated[str, Limits(max_length=2000)]
_Refusals = Annotated[t.List[Refusal], Limits(max_items=1000)]


@dataclass(frozen=True)
class SharedPart:
    """What a drive shares with others that have a part of this name (machine/shared_parts.py). Without
    limits: unknown what it carries.
    """

    name: Annotated[str, Limits(max_length=200)]
    # One way, for all of them.
    carries_mb_s: OrMissing[Annotated[float, Limits(exclusive_minimum=0)]] = None
    # How many drives do not get into each other's way there, whatever they do.
    most_drives: OrMissing[Positive] = None


@dataclass(frozen=True)
class FoundDrive:
    """A drive that the inventory names, or that was found."""

    # The entry of ssd_drives, or the one proposed; null: nothing names the drive, or the entry is invalid.
    selector: t.Any
    # The selector's value: the drive's name in every record.
    drive: _Label
    # The device node; null unless exactly one drive matches.
    path: _Label
    # Null unless exactly one drive matches.
    identity: t.Optional[Identity]
    # Whether it may be erased.
    eligible: bool
    # Every reason why it may not.
    refusals: _Refusals
    # Refusals that the options of its entry lifted.
    overridden: OrMissing[_Refusals] = None
    # Null: the ledger has nothing.
    own_data: t.Optional[OwnData] = None
    # Who has it open and only probes drives.
    passing: OrMissing[Annotated[t.List[str], Limits(max_items=1000)]] = None
    # Null if another rule already refused the drive.
    look: t.Optional[Look] = None
    # What lies on it, as its own bytes describe it.
    holds: OrMissing[Annotated[t.List[_Told], Limits(max_items=1000)]] = None
    # What retired gives up: that, and lines of fstab, crypttab and mdadm.conf.
    gives_up: OrMissing[Annotated[t.List[_Told], Limits(max_items=1000)]] = None
    # Which parts of arrays and volume groups these are.
    members: OrMissing[Annotated[t.List[_Told], Limits(max_items=1000)]] = None
    # Of a drive that was found: the value of retired with which it could be erased.
    may_retire: OrMissing[Annotated[str, Limits(max_length=10)]] = None
    # Then only; null: it does not tell.
    power_on_hours: t.Optional[Count] = None
    # Those for this kind of drive, strongest first.
    purge: OrMissing[Annotated[t.List[OfferedPurge], Limits(max_items=1000)]] = None
    # What the drive reported about each family of methods, or error, why it could not be queried.
    purge_capabilities: OrMissing[t.Dict[str, Json]] = None
    # What its link carries one way, of examine alone, where it is known.
    link_mb_s: OrMissing[Annotated[float, Limits(exclusive_minimum=0)]] = None
    # Of a drive in service (ssd_service_drives): whether its own self-tests can be started and read.
    has_self_tests: OrMissing[bool] = None
    # What it shares with other drives, likewise; missing: unknown.
    shared: OrMissing[Annotated[t.List[SharedPart], Limits(max_items=100)]] = None
