# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The conditions of a measurement for the report: what preflight warned of, and what the samples of a
test show. Pure.
"""

from __future__ import annotations

import datetime
import typing as t

from ...module_utils.machine.pcie import aer_text, link_text
from . import curves

Mapping = t.Dict[str, t.Any]


def warnings(run: Mapping, host: str, drive: str | None) -> list[Mapping]:
    """The warnings of a drive, or with drive None of the host as a whole: [{checks, message, remedy}]; several checks
    may share one message.
    """
    found: dict[str, Mapping] = {}
    for item in run.get("warnings") or []:
        if item.get("host") == host and item.get("drive") == drive and item.get("level") == "warning":
            entry = found.setdefault(item["message"], {"checks": [], "message": item["message"], "remedies": {}})
            entry["checks"].append(item["check"])
            entry["remedies"][item.get("remedy") or ""] = True
    return [
        {"checks": entry["checks"], "message": entry["message"], "remedy": " or ".join(entry["remedies"])}
        for entry in found.values()
    ]


def samples(taken: t.Sequence[Mapping]) -> Mapping | None:
    """What a test's samples show: {count, temperature: "34 to 52 °C", polyline, link, throttled, errors, unread}; None
    without samples.
    """
    if not taken:
        return None
    warm = [sample.get("temperature_c") for sample in taken]
    known = [value for value in warm if value is not None]
    links = dict.fromkeys(
        link_text(item["link_speed_gts"], item["link_width"]) for item in taken if item.get("link_width")
    )
    unread = dict.fromkeys(item["error"] for item in taken if item.get("error"))
    seconds = _seconds(taken)
    return {
        "count": len(taken),
        "temperature": (f"{min(known)} to {max(known)} °C" if min(known) < max(known) else f"{known[0]} °C")
        if known
        else None,
        "polyline": curves.sparkline(seconds, warm, seconds[-1], max(known)) if known and seconds else "",
        "link": ", then ".join(links) or None,
        "throttled": _throttled(taken),
        "errors": _errors(taken),
        "unread": "; ".join(unread),
    }


def _seconds(taken: t.Sequence[Mapping]) -> list[float]:
    """Seconds of each sample since the first; empty where a time cannot be read."""
    try:
        times = [datetime.datetime.fromisoformat(str(sample["time"]).replace("Z", "+00:00")) for sample in taken]
    except (KeyError, ValueError):
        return []
    return [(time - times[0]).total_seconds() for time in times]


def _throttled(taken: t.Sequence[Mapping]) -> str | None:
    """Transitions to throttling during the test; None where the drive does not count them."""
    counts = [sample["throttle_counts"] for sample in taken if sample.get("throttle_counts")]
    if not counts:
        return None
    more = [
        f"{counts[-1][level] - counts[0][level]} × thermal management {level[1:]}"
        for level in ("t1", "t2")
        if counts[-1][level] > counts[0][level]
    ]
    return ", ".join(more) or "never"


def _errors(taken: t.Sequence[Mapping]) -> str | None:
    """PCI Express errors since the boot as of the last sample; None where nobody counts them."""
    counts = taken[-1].get("aer") or {}
    told = [f"{address}: {aer_text(kinds)}" for address, kinds in counts.items() if any(kinds.values())]
    return ("; ".join(told) or "none") if counts else None
