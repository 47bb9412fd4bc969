# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the guard says of a drive: why it may not be erased (guard/refusals.py), and how it was looked at."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .base import Annotated, Code, Count, Limits, NotNegative, OrMissing


@dataclass(frozen=True)
class Refusal:
    """A code of the guard and its sentence."""

    code: Code
    message: Annotated[str, Limits(max_length=2000)]


@dataclass(frozen=True)
class Look:
    """What was scanned of a drive."""

    # Random ones, of 4 KiB each.
    blocks: Count
    size_bytes: Count
    seconds: NotNegative
    # All of the drive was read.
    whole: bool
    # So many bytes of data, anywhere on the drive, would have been found with a probability of 99.9 %.
    seen_bytes: Count
    # Further ones, where the drive itself reports data.
    aimed_blocks: OrMissing[Count] = None
    # What the drive itself reports as in use; null: it does not.
    allocated_bytes: t.Optional[Count] = None
