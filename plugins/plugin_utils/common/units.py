# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Figures for people: thousands separators, and the unit that a metric's name implies. What a drive holds, and
what is written to it, is decimal as on its label (GB, TB, MB/s); block sizes are binary (KiB, MiB).
"""

from __future__ import annotations

import re
import typing as t

from ...module_utils.measure.rounds import FITTED_END

# (end of the metric's name, unit, divisor)
UNITS = (
    ("bandwidth", "MB/s", 1e6),
    ("_us", "µs", 1.0),
    ("iops", "IOPS", 1.0),
    ("_pct", "%", 1.0),
    ("percentage_used", "%", 1.0),
    ("_s", "s", 1.0),
    ("_c", "°C", 1.0),
)


def unit(metric: str) -> tuple[str, float]:
    """Return the unit to show a metric in, and what to divide its value by."""
    measured = metric[: -len(FITTED_END)] if metric.endswith(FITTED_END) else metric
    return next(((name, divisor) for end, name, divisor in UNITS if measured.endswith(end)), ("", 1.0))


# (end of the metric's name, how it is said)
_SAID = (
    ("_latency_us", " latency"),
    ("_bandwidth", " bandwidth"),
    ("_iops", " IOPS"),
    ("_us", ""),
    ("_s", ""),
    ("_pct", ""),
    ("_c", ""),
    ("_per_h", " an hour"),
)
# How words of names are written.
_WRITTEN = {"io": "I/O", "iops": "IOPS", "pcie": "PCI Express", "crc": "CRC"}


def metric_words(metric: str) -> str:
    """Return a metric's name as it is said: read p99.9 latency, write IOPS, media errors."""
    end, said = next(((end, said) for end, said in _SAID if metric.endswith(end)), ("", ""))
    words = re.sub(r"(p[0-9]+)_([0-9]+)", r"\1.\2", metric[: len(metric) - len(end)]).replace("_", " ")
    return " ".join(_WRITTEN.get(word, word) for word in words.split(" ")) + said


def rounded(value: float, digits: int = 4) -> str:
    """Return a figure with about `digits` significant ones and thousands separators: 41,201 · 352.4 · 0.0713."""
    if value == 0:
        return "0"
    magnitude = abs(value)
    decimals = 0
    while magnitude < 10 ** (digits - 1) and decimals < 9:
        magnitude *= 10
        decimals += 1
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def plain(value: t.Any) -> str:
    """Return a limit as the user wrote it: 500.0 is 500."""
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def show(metric: str, value: float, digits: int = 4) -> str:
    """Return a metric's value with its unit: "41,201 IOPS", "512.3 MB/s", "89.1 µs"."""
    name, divisor = unit(metric)
    return f"{rounded(value / divisor, digits)} {name}".strip()


def format_distinct(metric: str, value: float, limit: float) -> tuple[str, str]:
    """Return both figures with their unit (IOPS go without: the metric's name says it), in the digits it takes to tell
    different ones apart.
    """
    name, divisor = unit(metric)
    mark = "" if name in ("", "IOPS") else " " + name
    texts = ("", "")
    for digits in range(4, 18):
        texts = rounded(value / divisor, digits) + mark, rounded(limit / divisor, digits) + mark
        if texts[0] != texts[1] or value == limit:
            break
    return texts


def data_size(size_bytes: float) -> str:
    """Bytes in the decimal units of drives: 960.2 GB."""
    for name, divisor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size_bytes >= divisor:
            return f"{rounded(size_bytes / divisor)} {name}"
    return f"{size_bytes:g} B"


def block_size(size_bytes: int) -> str:
    """Bytes of a block in binary units, where they are whole: 512 B, 4 KiB, 1 MiB."""
    for name, divisor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size_bytes and size_bytes % divisor == 0:
            return f"{size_bytes // divisor} {name}"
    return f"{size_bytes} B"


def duration(seconds: float) -> str:
    """Time for people: 1.2 s, 4 min 10 s, 7 h 5 min."""
    if round(seconds) < 60:
        return f"{rounded(seconds, 2)} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


# (end of the metric's name, the unit of its figure in records, what a column's name needs for it to say so)
BASE_UNITS = (
    ("bandwidth", "bytes/s", "_bytes_per_s"),
    ("_us", "µs", ""),
    ("iops", "IOPS", ""),
    ("_pct", "%", ""),
    ("percentage_used", "%", ""),
    ("_s", "s", ""),
    ("_c", "°C", ""),
)


def _base(metric: str) -> tuple[str, str]:
    measured = metric[: -len(FITTED_END)] if metric.endswith(FITTED_END) else metric
    return next(((name, suffix) for end, name, suffix in BASE_UNITS if measured.endswith(end)), ("", ""))


def base(metric: str) -> str:
    """Return the unit that a metric's figure has in records: bytes/s, µs, IOPS."""
    return _base(metric)[0]


def column(metric: str) -> str:
    """Return the name of a metric's column: its own, with the unit where that does not say it."""
    return metric + _base(metric)[1]


def plan_duration_closely(seconds: float) -> str:
    """Time within a hundredth of it: 45 s, 4 min 10 s, 2 h 10 min."""
    minutes, rest = divmod(round(seconds), 60)
    if round(seconds) < 100 or minutes >= 60 or not rest:
        return plan_duration(seconds)
    return f"{minutes} min {rest} s"


def plan_duration_span(min_s: float, max_s: float) -> str:
    """Return a span of time: 4 min to 2 h 10 min."""
    low, high = plan_duration(min_s), plan_duration(max_s)
    return low if low == high else f"{low} to {high}"


def plan_duration(seconds: float) -> str:
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
