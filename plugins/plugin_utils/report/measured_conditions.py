# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The conditions of a measurement for the report: what preflight warned of, and what the samples of a
test show. Pure.
"""

from __future__ import annotations

import array
import datetime
import math
import typing as t

from ...module_utils.machine.pcie import aer_text, link_text
from . import svg

Record = dict[str, t.Any]
# Of links, addresses and messages: each is as long as a text may be.
MOST_TOLD = 20


def warnings(run: Record, host: str, drive: str | None) -> list[Record]:
    """Return the warnings of a drive, or with drive None of the host as a whole: [{checks, message, remedy}]; several
    checks may share one message.
    """
    found: dict[str, Record] = {}
    for item in run.get("warnings") or []:
        if item.get("host") == host and item.get("drive") == drive and item.get("level") == "warning":
            entry = found.setdefault(item["message"], {"checks": [], "message": item["message"], "remedies": {}})
            entry["checks"].append(item["check"])
            entry["remedies"][item.get("remedy") or ""] = True
    return [
        {"checks": entry["checks"], "message": entry["message"], "remedy": " or ".join(entry["remedies"])}
        for entry in found.values()
    ]


def samples(taken: t.Iterable[Record]) -> Record | None:
    """`Samples.shown` of all of them."""
    seen = Samples()
    for sample in taken:
        seen.take(sample)
    return seen.shown()


class Samples:
    """What a test's samples show. Of each only some numbers are kept: a host may send a million."""

    def __init__(self) -> None:
        self._count = 0
        self._began: datetime.datetime | None = None
        self._seconds: array.array[float] | None = array.array("d")
        self._warm = array.array("d")
        self._fans = array.array("d")
        self._inlet = array.array("d")
        self._links: dict[str, None] = {}
        self._unread: dict[str, None] = {}
        self._throttled: list[Record] = []
        self._aer: Record = {}

    def take(self, sample: Record) -> None:
        """Add a sample record."""
        self._count += 1
        self._take_time(str(sample.get("time")))
        warm = sample.get("temperature_c")
        self._warm.append(math.nan if warm is None else warm)
        fans = sample.get("fans_rpm")
        # The slowest of them: one that stands still is what matters.
        if fans:
            self._fans.append(min(fans.values()))
        if sample.get("inlet_c") is not None:
            self._inlet.append(sample["inlet_c"])
        if sample.get("link_width") and len(self._links) < MOST_TOLD:
            self._links[link_text(sample["link_speed_gts"], sample["link_width"])] = None
        if sample.get("error") and len(self._unread) < MOST_TOLD:
            self._unread[sample["error"]] = None
        counts = sample.get("throttle_counts")
        if counts:
            self._throttled = [*self._throttled[:1], counts]
        self._aer = sample.get("aer") or {}

    def _take_time(self, text: str) -> None:
        """Seconds since the first; none of all of them where one cannot be read."""
        if self._seconds is None:
            return
        try:
            time = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
        except ValueError:
            self._seconds = None
            return
        self._began = self._began or time
        self._seconds.append((time - self._began).total_seconds())

    def shown(self) -> Record | None:
        """{count, temperature: "34 to 52 °C", polyline, fans: "4200 to 9000 rpm", inlet, link, throttled, errors,
        unread}; None without samples.
        """
        if not self._count:
            return None
        warm = [None if math.isnan(value) else int(value) for value in self._warm]
        known, seconds = [value for value in warm if value is not None], self._seconds
        return {
            "count": self._count,
            "temperature": _range(known, "°C"),
            "fans": _range(self._fans, "rpm"),
            "inlet": _range(self._inlet, "°C"),
            "polyline": svg.sparkline(seconds, warm, seconds[-1], max(known)) if known and seconds else "",
            "link": ", then ".join(self._links) or None,
            "throttled": self._throttling(),
            "errors": self._errors(),
            "unread": "; ".join(self._unread),
        }

    def _throttling(self) -> str | None:
        """Transitions to throttling during the test; None where the drive does not count them."""
        if not self._throttled:
            return None
        first, last = self._throttled[0], self._throttled[-1]
        grown = {level: last.get(level, 0) - first.get(level, 0) for level in ("t1", "t2")}
        more = [f"{count} × thermal management {level[1:]}" for level, count in grown.items() if count > 0]
        return ", ".join(more) or "never"

    def _errors(self) -> str | None:
        """PCI Express errors since the boot as of the last sample; None where nobody counts them."""
        counts = list(self._aer.items())
        told = [f"{address}: {aer_text(kinds)}" for address, kinds in counts[:MOST_TOLD] if any(kinds.values())]
        return ("; ".join(told) or "none") if counts else None


def _range(values: t.Sequence[float], unit: str) -> str | None:
    """Return "34 to 52 °C", or "34 °C"; None of no values."""
    ends = list(dict.fromkeys(f"{value:g}" for value in (min(values), max(values)))) if values else []
    return f"{' to '.join(ends)} {unit}" if ends else None
