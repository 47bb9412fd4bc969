# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the checks before a run find (checks/table.py, vendors/iomemory_pci.py)."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .base import Annotated, Code, Limits

CheckLevel = t.Literal["ok", "warning", "blocks"]
_Words = Annotated[str, Limits(max_length=2000)]


@dataclass(frozen=True)
class CheckFinding:
    """What a check found."""

    check: Code
    # The value of the drive's selector; null: it is about the whole host.
    drive: t.Optional[Annotated[str, Limits(is_name=True)]]
    level: CheckLevel
    message: _Words
    # How to fix it.
    remedy: _Words
