# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was changed by a host's BMC, and what it was before: <state_dir>/bmc.json."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from .base import Annotated, Limits, OrMissing, Scalar

Attributes = Annotated[
    t.Dict[Annotated[str, Limits(max_length=200)], Annotated[Scalar, Limits(max_length=500)]],
    Limits(max_properties=4000),
]


@dataclass(frozen=True)
class FansRecord:
    """How the fans were. way: a name of roles/tune/files/bmc_tables.yml, or ipmi: the inventory's own commands."""

    way: Annotated[str, Limits(max_length=100)]
    before: Annotated[Scalar, Limits(max_length=200)]
    # When they were set high, by the controller's clock.
    since: Annotated[str, Limits(max_length=40)]


@dataclass(frozen=True)
class BmcRecord:
    """Where this is empty, nothing is changed. Values alone: where they belong is never taken from a host."""

    # What each attribute was before it was first changed.
    bios_before: Attributes = field(default_factory=dict)
    fans: OrMissing[FansRecord] = None
