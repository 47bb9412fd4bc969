# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Numbers, switches and words as people write them in an inventory."""

from __future__ import annotations

import re
import typing as t

from ...module_utils.run.criteria import number

__all__ = ["AUTO", "drives_at_once", "integer", "is_unset", "number", "switch", "whole", "word"]

# Of ssd_parallel_drives: the host finds out (job/parallelism.py).
AUTO = "auto"
TRUE, FALSE = ("true", "yes", "on", "1", "y", "t"), ("false", "no", "off", "0", "n", "f", "")
MOST_INTEGER = 10**15


def whole(value: t.Any) -> int | None:
    """Return a whole number of at least 0, also from a text; else None."""
    if isinstance(value, bool):
        return None
    return int(value) if isinstance(value, (int, str)) and re.fullmatch(r"\s*[0-9]{1,15}\s*", str(value)) else None


def integer(value: t.Any) -> int | None:
    """Return a whole number, also from a text or as what a template calculated (2.0); else None."""
    found = number(value)
    return int(found) if found is not None and found.is_integer() and abs(found) < MOST_INTEGER else None


def switch(value: t.Any) -> bool | None:
    """Return a switch, also from a text as AWX and -e give it; None: it is none."""
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower() if isinstance(value, (str, int)) else "?"
    return True if text in TRUE else False if text in FALSE else None


def word(value: t.Any) -> t.Any:
    """YAML reads a bare on and off as true and false."""
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else "" if value is None else value


def is_unset(value: t.Any) -> bool:
    """Return whether this is null, also as a text."""
    return value is None or (isinstance(value, str) and value.strip().lower() in ("", "null", "none"))


def drives_at_once(value: t.Any, drives: int) -> int:
    """Return how many drives ssd_parallel_drives lets run at the same time at most: all, where the host is to find out;
    1 for what is no number.
    """
    return max(1, drives if value == AUTO else whole(value) or 1)
