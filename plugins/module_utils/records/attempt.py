# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an attempt at a test is reduced from and comes to (run/reducer.py)."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .measurement import Cause, Chosen, Figures, Stream


@dataclass(frozen=True)
class MeasuredCell:
    """What a result takes of a cell's event: not what its causes were judged by, which is long."""

    round: int
    cell: str
    causes: t.List[Cause]
    read: t.Optional[Figures] = None
    write: t.Optional[Figures] = None
    trim: t.Optional[Figures] = None
    sync: t.Optional[Figures] = None
    streams: t.Optional[t.List[Stream]] = None
    chosen: t.Optional[Chosen] = None
