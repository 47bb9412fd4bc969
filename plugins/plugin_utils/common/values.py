# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Numbers as people write them in an inventory."""

from __future__ import annotations

import re
import typing as t

from ...module_utils.run.criteria import number

__all__ = ["AUTO", "drives_at_once", "number", "whole"]

# Of ssd_parallel_drives: the host finds out (job/calibration.py).
AUTO = "auto"


def whole(value: t.Any) -> int | None:
    """A whole number of at least 0, also from a text; else None."""
    if isinstance(value, bool):
        return None
    return int(value) if isinstance(value, (int, str)) and re.fullmatch(r"\s*[0-9]{1,15}\s*", str(value)) else None


def drives_at_once(value: t.Any, drives: int) -> int:
    """How many drives ssd_parallel_drives lets run at the same time at most: all, where the host is to find out; 1 for
    what is no number.
    """
    return max(1, drives if value == AUTO else whole(value) or 1)
