# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a plan takes, in words: the two largest units that matter. Pure."""

from __future__ import annotations


def closely(seconds: float) -> str:
    """Time within a hundredth of it: 45 s, 4 min 10 s, 2 h 10 min."""
    minutes, rest = divmod(round(seconds), 60)
    if round(seconds) < 100 or minutes >= 60 or not rest:
        return duration(seconds)
    return f"{minutes} min {rest} s"


def span(min_s: float, max_s: float) -> str:
    """Return a span of time: 4 min to 2 h 10 min."""
    low, high = duration(min_s), duration(max_s)
    return low if low == high else f"{low} to {high}"


def duration(seconds: float) -> str:
    """Time in the two largest units that matter: 45 s, 4 min, 2 h 10 min, 3 d 4 h."""
    rest = round(seconds)
    if rest < 100:
        return f"{rest} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h" + (f" {minutes} min" if minutes else "")
    days, hours = divmod(hours, 24)
    return f"{days} d" + (f" {hours} h" if hours else "")
