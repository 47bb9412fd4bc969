# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The first lines of the fleet's page: which drives and hosts are bad, for who reads no further. Pure; nothing is
escaped here, the templates do that.
"""

from __future__ import annotations

import typing as t

from ..common import units
from . import page_names
from .table_data import Record, figure_limits, made_page

# Of each line.
MOST_NAMED = 10
LONGEST_WHY = 120
LONGEST_NAME = 60


def lines(rows: t.Sequence[Record], fleet: Record, made: t.Container[str]) -> list[Record]:
    """[{css, title, items: [{name, page, host, host_page, why}], more}] of failed drives, low hosts, and drives that
    stand out; none where there is nothing to tell. rows: worst first.
    """
    failed = [row for row in rows if row["verdict"] == "fail" and not row["host_fault"]]
    apart = [row for row in rows if row["outliers"] and row["verdict"] != "fail"]
    by_host: dict[str, int] = {}
    for row in rows:
        by_host[row["host"]] = by_host.get(row["host"], 0) + row["host_fault"]
    low = list(fleet.get("low_hosts") or [])
    found = [
        _line("fail", "Failed", failed, lambda row: _drive(row, made, _missed(row))),
        _line("low", f"Slow host{'s' if len(low) > 1 else ''}", low, lambda entry: _host(entry, made, by_host)),
        _line(
            "invalid", f"Stand{'' if len(apart) > 1 else 's'} out", apart, lambda row: _drive(row, made, _apart(row))
        ),
    ]
    return [line for line in found if line["items"]]


def _line(css: str, title: str, told: t.Sequence[Record], item: t.Callable[[Record], Record]) -> Record:
    items = [item(each) for each in told[:MOST_NAMED]]
    return {"css": css, "title": title, "items": items, "more": len(told) - len(items)}


def _drive(row: Record, made: t.Container[str], why: str) -> Record:
    host_page = made_page(page_names.host_page(row["host"]), made)
    about = {"name": _short(row["serial"] or row["short"], LONGEST_NAME), "page": made_page(row["page"], made)}
    return {**about, "host": _short(row["host"], LONGEST_NAME), "host_page": host_page, "why": _short(why)}


def _host(entry: Record, made: t.Container[str], failed: t.Mapping[str, int]) -> Record:
    by = _short(f"{units.rounded(entry['by_pct'], 2)} % worse in {entry['test']} {entry['metric']}")
    count = failed.get(entry["host"])
    more = [f"{count} of its drives failed because of that"] if count else []
    why = "; ".join([by, *(_short(text) for text in entry["differs"][:2]), *more])
    name, page = _short(entry["host"], LONGEST_NAME), made_page(page_names.host_page(entry["host"]), made)
    return {"name": name, "page": page, "host": "", "why": why}


def _missed(row: Record) -> str:
    figure = row["figure"]
    if figure and figure["met"] is False:
        shown = units.show(figure["metric"], figure["value"])
        return ", ".join([f"{figure['test']} {figure['metric']} {shown}", *figure_limits(figure)])
    return str(row["reasons"][0]) if row["reasons"] else ""


def _apart(row: Record) -> str:
    return f"{row['outliers'][0]['test']}: {row['outliers'][0]['reason']}"


def _short(text: str, most: int = LONGEST_WHY) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
