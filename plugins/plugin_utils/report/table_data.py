# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the script of the fleet's page lists, filters, sorts and colours. Pure."""

from __future__ import annotations

import typing as t

from ..common import units
from ..verdict import headline
from ..verdict.verdicts import VERDICTS
from . import distributions, page_names, svg
from .run_sources import Sources, racks

Record = dict[str, t.Any]
MOST_SPARKS = 1000
SPARK_POINTS = 24
LONGEST_TEXT = 400


def made_page(page: str, made: t.Container[str]) -> str:
    return page if page in made else ""


def data(sources: Sources, rows: list[Record], made: t.Container[str], frame: t.Any) -> Record:
    """Return what the page's script lists, filters, sorts and colours: texts once, drives as short lists (fleet.js.j2
    names the fields).
    """
    of_host = racks(sources.run)
    lists = {name: sorted({row[name] or "" for row in rows}) for name in ("model", "firmware", "rack")}
    lists["host"] = list(dict.fromkeys(row["host"] for row in rows))
    places = {name: {text: place for place, text in enumerate(texts)} for name, texts in lists.items()}
    texts: dict[str, int] = {}
    most = _most(rows)
    found = [
        _listed(row, places, texts, made_page(row["page"], made), _spark(row, most) if number < MOST_SPARKS else "")
        for number, row in enumerate(rows)
    ]
    keys = [(row["host"], row["drive"]) for row in rows]
    tracked = [
        (g["test"], g["cell"], g["metric"]) for g in sources.fleet.get("groups") or [] if _is_tracked(g, sources.run)
    ]
    return {
        "verdicts": list(VERDICTS),
        "models": lists["model"],
        "firmwares": lists["firmware"],
        "racks": lists["rack"],
        "hosts": [
            [name, made_page(page_names.host_page(name), made), places["rack"].get(of_host.get(name, ""), 0)]
            for name in lists["host"]
        ],
        "texts": list(texts),
        "drives": found,
        "heat": distributions.heat(sources.fleet, frame, keys, tracked),
        "heat_steps": distributions.HEAT_STEPS,
        "heat_step_pct": 100 * distributions.HEAT_STEP,
    }


def _listed(
    row: Record, places: t.Mapping[str, t.Mapping[str, int]], texts: dict[str, int], page: str, spark: str
) -> list[t.Any]:
    """Return a drive of the page's script. texts: those told so far, and their places; it adds its own."""
    figure = row["figure"]
    shown: list[t.Any] = []
    if figure:
        shown = [
            units.show(figure["metric"], figure["value"]),
            figure["value"],
            figure["share_pct"],
            figure["limit_pct"],
            _met(figure),
            _off(figure),
            texts.setdefault(_said(figure), len(texts)),
        ]
    why, in_full = _why(row)
    return [
        VERDICTS.index(row["verdict"]),
        places["host"][row["host"]],
        row["short"],
        page,
        places["model"][row["model"] or ""],
        places["firmware"][row["firmware"] or ""],
        row["serial"] if row["serial"] != row["drive"] else "",
        shown or 0,
        texts.setdefault(why, len(texts)),
        spark,
        1 if row["outliers"] else 2 if row["low"] else 0,
        texts.setdefault(in_full, len(texts)),
    ]


def _why(row: Record) -> tuple[str, str]:
    """(in a few words, in full): the second is empty where the first says it all."""
    if row["verdict"] == "pass":
        if row["outliers"]:
            return f"stands out: {row['outliers'][0]['reason']}", ""
        held = headline.of_drive(row).partition(", ")[2]
        return f"its host {row['host']} is slow as a whole" if row["low"] else held, ""
    told = row["reasons"][0] if row["reasons"] else ""
    if row["outliers"]:
        told += f". {row['outliers'][0]['test']}: {row['outliers'][0]['reason']}"
        told += ". It is the drive, not the host." if row["outliers"][0]["cause"] == "drive" else "."
    short = ", ".join(headline.causes(row)) if row["reasons"] else ""
    return short, _cut(told) if told != short else ""


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


def _met(figure: Record) -> int:
    """0: held to nothing, or not valid; 1: met; 2: missed."""
    return 0 if figure["met"] is None else 1 if figure["met"] else 2


def _off(figure: Record) -> float | None:
    return None if figure["off_median"] is None else round(100 * figure["off_median"], 1)


def figure_limits(figure: Record) -> list[str]:
    """["at least 70,000 IOPS"]: the limits that a figure of a row is held to."""
    return [
        f"{word} {units.show(figure['metric'], figure[end])}"
        for end, word in (("min", "at least"), ("max", "at most"))
        if figure[end] is not None
    ]


def _said(figure: Record) -> str:
    name = f"{'' if figure['valid'] else 'not valid · '}{figure['test']} {figure['metric']}"
    return ", ".join([name, *figure_limits(figure)])


def _first(row: Record) -> Record | None:
    return next((outline for outline in row["outlines"] if outline["curves"]), None)


def _most(rows: list[Record]) -> dict[str, float]:
    """Return the highest value of the small curves of each test: all are drawn to one scale, so that a low
    one shows.
    """
    most: dict[str, float] = {}
    for outline in filter(None, map(_first, rows)):
        most[outline["test"]] = max(
            [most.get(outline["test"], 0.0), *(value for value in outline["curves"][0]["values"] if value is not None)]
        )
    return most


def _spark(row: Record, most: t.Mapping[str, float]) -> str:
    outline = _first(row)
    if outline is None:
        return ""
    values = outline["curves"][0]["values"]
    last = len(values) - 1
    return svg.sparkline(range(last + 1), values, last, most[outline["test"]], 96, SPARK_POINTS, 0)


def _is_tracked(group: Record, run: Record) -> bool:
    about_test = (run.get("tests") or {}).get(group["test"]) or {}
    return any(group["metric"] == item.get("metric") for item in about_test.get("tracked") or [])
