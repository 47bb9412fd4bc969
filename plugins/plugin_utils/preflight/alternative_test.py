# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What to run instead of a saturation test that a drive can't finish: the same after preconditioning, which shows no
saturation and is not called so.
"""

from __future__ import annotations

import typing as t

import yaml

NAME = "steady-writes"


def offer(test: t.Mapping[str, t.Any]) -> str:
    """Return an entry of ssd_plan."""
    entry = {
        "base": test["name"],
        "name": NAME,
        "title": "Random writes after preconditioning, until steady",
        "precondition": {"passes": 2},
    }
    text: str = yaml.safe_dump(entry, default_flow_style=True, sort_keys=False, width=1000)
    return text.strip()


def advice(test: t.Mapping[str, t.Any]) -> str:
    """Return the offer as a part of a sentence."""
    return f"measure after preconditioning instead (that shows no write saturation): ssd_plan: [{offer(test)}]"
