# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The view of the fleet's page: what is wrong first, then where all drives lie. Pure; nothing is escaped here, the
templates do that.
"""

from __future__ import annotations

import collections
import typing as t

from ..common import units
from ..results.judge import VERDICTS
from . import curves, distributions, names, svg
from .sources import Sources, racks

Mapping = t.Dict[str, t.Any]

# What is told in full above the tables; the rest is counted, and found in them.
MOST_TOLD = 20
MOST_CHANGES = 100
# Curves over each other say nothing beyond so many.
MOST_CURVES = 150
MOST_SPARKS = 1000
SPARK_POINTS = 24
LONGEST_TEXT = 240


def view(sources: Sources, rows: list[Mapping], made: t.Container[str], earlier: t.Container[str] = ()) -> Mapping:
    """What index.html.j2 shows. rows: rows.rows. made: the pages that there are. earlier: ids of runs whose reports lie
    beside this one.
    """
    fleet = sources.fleet
    frame = distributions.figures(sources) if len(rows) > 1 else None
    attention = [row for row in rows if row["verdict"] != "pass" or row["outliers"]]
    return {
        **about(sources, rows),
        "headline": headline(rows, fleet),
        "attention": attention[:MOST_TOLD],
        "attention_more": max(0, len(attention) - MOST_TOLD),
        "low_hosts": [
            {**entry, "page": _made(names.host_page(entry["host"]), made)} for entry in fleet.get("low_hosts") or []
        ][:MOST_TOLD],
        "fleet": fleet,
        "groups": distributions.groups(fleet, frame),
        "since": _since(fleet.get("since"), earlier),
        "margin": _margin(fleet.get("margin"), earlier),
        "overlays": _overlays(sources, rows, made),
        "pages": sum(row["page"] in made for row in rows),
        "made": made,
        "hosts": len({row["host"] for row in rows} | set(sources.hosts)),
        "silent": [record for record in sources.hosts.values() if record.get("state") not in ("ok", None)][:MOST_TOLD],
        "data": _data(sources, rows, made, frame),
        "damaged_lines": sources.damaged_lines,
    }


def about(sources: Sources, rows: list[Mapping]) -> Mapping:
    """What every page of a run says of it."""
    finished = [record.get("finished") or "" for tests in sources.tests.values() for record in tests.values()]
    return {
        "run": sources.run["run"],
        "started": sources.run.get("started"),
        "finished": max(finished, default="") or None,
        "versions": sources.run.get("versions") or {},
        "criteria": sources.run.get("criteria") or [],
        "verdicts": sources.judgement["verdicts"],
        "total": len(rows),
    }


def headline(rows: list[Mapping], fleet: Mapping) -> str:
    """The run in one or two sentences."""
    if not rows:
        return "No drive was asked for."
    if all(row["verdict"] == "pass" for row in rows):
        said = "The drive passed." if len(rows) == 1 else f"All {len(rows):,} drives passed."
    else:
        words = {
            "fail": "failed",
            "error": "ended in error",
            "invalid": "not validly measured",
            "not_tested": "not tested",
            "pass": "passed",
        }
        counts = [(sum(row["verdict"] == verdict for row in rows), words[verdict]) for verdict in VERDICTS]
        said = (
            f"Of {len(rows):,} drive{'s' if len(rows) > 1 else ''}, "
            + ", ".join(f"{count:,} {word}" for count, word in counts if count)
            + "."
        )
    low = [entry["host"] for entry in fleet.get("low_hosts") or []]
    apart = {(found["host"], found["drive"]) for found in fleet.get("outliers") or []}
    more = []
    if low:
        more.append(f"host {low[0]} is slow as a whole" if len(low) == 1 else f"{len(low)} hosts are slow as a whole")
    if len(apart) == 1:
        # One is named, as one host is: whoever reads no further knows where to go.
        name = next((f"{row['short']} on {row['host']}" for row in rows if (row["host"], row["drive"]) in apart), "")
        more.append(f"drive {name} stands out from its peers")
    elif apart:
        more.append(f"{len(apart)} drives stand out from their peers")
    return said + (
        f" {more[0][0].upper()}{more[0][1:]}" + "".join(f", {text}" for text in more[1:]) + "." if more else ""
    )


def _made(page: str, made: t.Container[str]) -> str:
    return page if page in made else ""


def _margin(margin: Mapping | None, earlier: t.Container[str]) -> Mapping | None:
    """Drives that went beyond the margin, or of which no power cycle is proved, come first."""
    if not margin:
        return None
    order = sorted(margin["drives"], key=lambda entry: (not entry["beyond"], entry["cycle"] == "power cycle"))
    href = f"../../{margin['run']}/report/index.html" if margin["run"] in earlier else ""
    return {"run": margin["run"], "href": href, "drives": order[:MOST_TOLD], "more": max(0, len(order) - MOST_TOLD)}


def _since(since: Mapping | None, earlier: t.Container[str]) -> Mapping | None:
    if not since:
        return None
    shown = [change for change in since.get("changes") or [] if change["verdict"] in ("worse", "better")]
    rest: dict[str, int] = {}
    otherwise: dict[tuple[str, ...], int] = {}
    for change in since.get("changes") or []:
        if change["verdict"] == "conditions changed":
            key = (change["model"], change["test"], change["changed"])
            otherwise[key] = max(otherwise.get(key, 0), change["n"])
        elif change not in shown:
            rest[change["verdict"]] = rest.get(change["verdict"], 0) + 1
    href = f"../../{since['run']}/report/index.html" if since["run"] in earlier else ""
    verdicts = sorted(since.get("verdicts") or [], key=lambda entry: VERDICTS.index(entry["now"]))
    told = {
        "verdicts": verdicts[:MOST_CHANGES],
        "verdicts_more": max(0, len(verdicts) - MOST_CHANGES),
        "changes": shown[:MOST_CHANGES],
        "otherwise": [(*key, drives) for key, drives in otherwise.items()][:MOST_CHANGES],
    }
    return {**since, **told, "href": href, "rest": rest}


def _overlays(sources: Sources, rows: list[Mapping], made: t.Container[str]) -> list[Mapping]:
    """A chart for each test: the tracked curves of the drives, those that need attention on top."""
    charts: dict[str, list[tuple[Mapping, Mapping]]] = {}
    for row in rows:
        for outline in row["outlines"]:
            if (
                outline["curves"]
                and len(outline["rounds"]) > 1
                and len(charts.setdefault(outline["test"], [])) < MOST_CURVES
            ):
                charts[outline["test"]].append((row, outline))
    titles = {test["test"]: test["title"] for drive in sources.judgement["drives"] for test in drive["tests"]}
    counts = collections.Counter(outline["test"] for row in rows for outline in row["outlines"])
    return [_overlay(titles.get(test, test), drawn, counts[test], made) for test, drawn in charts.items() if drawn]


def _overlay(title: str, drawn: list[tuple[Mapping, Mapping]], of: int, made: t.Container[str]) -> Mapping:
    first = drawn[0][1]
    metric, unit = first["curves"][0]["metric"], first["curves"][0]["unit"]
    by_capacity = first["saturating"] and bool(first["multiples"])
    along = "multiples" if by_capacity else "rounds"
    lines = []
    for row, outline in drawn:
        if outline["curves"][0]["metric"] == metric and outline[along]:
            xs, ys = curves.thin(outline[along], outline["curves"][0]["values"], 120)
            points = [(float(x), float(y)) for x, y in zip(xs, ys) if x is not None and y is not None]
            css = f"{row['verdict']}{' apart' if row['outliers'] or row['low'] else ''}"
            lines.append(
                svg.Line(
                    points,
                    f"{row['host']} {row['short']}: {row['verdict'].replace('_', ' ')}",
                    css,
                    _made(row["page"], made),
                )
            )
    x_title = "Written, multiples of the capacity" if by_capacity else "Round"
    y_title = metric.replace("_", " ").replace("iops", "IOPS") + (f" ({unit})" if unit not in ("", "IOPS") else "")
    about_it = (
        f"{metric} of {len(lines)} drives over {'the capacity written' if by_capacity else 'the rounds'}; the "
        "figures are in the table of drives"
    )
    # What must be seen is drawn last, on top.
    chart = svg.lines(lines[::-1], x_title, y_title, _limits(drawn, metric), about_it)
    return {"test": first["test"], "title": title, "metric": metric, "svg": chart, "drawn": len(lines), "of": of}


def _limits(drawn: list[tuple[Mapping, Mapping]], metric: str) -> list[tuple[float, str]]:
    found: dict[float, str] = {}
    for row, outline in drawn:
        figure = row["figure"]
        if figure and figure["test"] == outline["test"] and figure["metric"] == metric:
            for end, word in (("min", "at least"), ("max", "at most")):
                if figure[end] is not None:
                    found[figure[end] / units.unit(metric)[1]] = f"{word} {units.show(metric, figure[end])}"
    # Limits that differ from drive to drive are no line of the chart.
    return list(found.items()) if len(found) <= 3 else []


def _data(sources: Sources, rows: list[Mapping], made: t.Container[str], frame: t.Any) -> Mapping:
    """What the page's script lists, filters, sorts and colours: texts once, drives as short lists (fleet.js.j2 names
    the fields).
    """
    of_host = racks(sources.run)
    hosts = list(dict.fromkeys(row["host"] for row in rows))
    lists = {name: sorted({row[name] or "" for row in rows}) for name in ("model", "firmware", "rack")}
    places = {name: {text: place for place, text in enumerate(texts)} for name, texts in lists.items()}
    host_places = {name: place for place, name in enumerate(hosts)}
    texts: dict[str, int] = {}
    most = _most(rows)
    found = []
    for number, row in enumerate(rows):
        figure = row["figure"]
        why = _why(row)
        found.append(
            [
                VERDICTS.index(row["verdict"]),
                host_places[row["host"]],
                row["short"],
                _made(row["page"], made),
                places["model"][row["model"] or ""],
                places["firmware"][row["firmware"] or ""],
                row["serial"] if row["serial"] != row["drive"] else "",
                [
                    units.show(figure["metric"], figure["value"]),
                    figure["value"],
                    figure["share_pct"],
                    figure["limit_pct"],
                    _met(figure),
                    _off(figure),
                ]
                + [texts.setdefault(_said(figure), len(texts))]
                if figure
                else 0,
                texts.setdefault(why, len(texts)),
                _spark(row, most) if number < MOST_SPARKS else "",
                1 if row["outliers"] else 2 if row["low"] else 0,
            ]
        )
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
            [name, _made(names.host_page(name), made), places["rack"].get(of_host.get(name, ""), 0)] for name in hosts
        ],
        "texts": list(texts),
        "drives": found,
        "heat": distributions.heat(sources.fleet, frame, keys, tracked),
        "heat_steps": distributions.HEAT_STEPS,
        "heat_step_pct": 100 * distributions.HEAT_STEP,
    }


def _why(row: Mapping) -> str:
    if row["verdict"] == "pass" and row["outliers"]:
        return str(row["outliers"][0]["reason"])
    if row["verdict"] == "pass" and row["low"]:
        return f"its host {row['host']} is slow as a whole"
    text = row["reasons"][0] if row["reasons"] else ""
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


def _met(figure: Mapping) -> int:
    """0: held to nothing, or not valid; 1: met; 2: missed."""
    return 0 if figure["met"] is None else 1 if figure["met"] else 2


def _off(figure: Mapping) -> float | None:
    return None if figure["off_median"] is None else round(100 * figure["off_median"], 1)


def _said(figure: Mapping) -> str:
    ends = [
        f"{word} {units.show(figure['metric'], figure[end])}"
        for end, word in (("min", "at least"), ("max", "at most"))
        if figure[end] is not None
    ]
    return ", ".join([f"{'' if figure['valid'] else 'not valid · '}{figure['test']} {figure['metric']}", *ends])


def _first(row: Mapping) -> Mapping | None:
    return next((outline for outline in row["outlines"] if outline["curves"]), None)


def _most(rows: list[Mapping]) -> dict[str, float]:
    """The highest value of the small curves of each test: all are drawn to one scale, so that a low one shows."""
    most: dict[str, float] = {}
    for outline in filter(None, map(_first, rows)):
        most[outline["test"]] = max(
            [most.get(outline["test"], 0.0), *(value for value in outline["curves"][0]["values"] if value is not None)]
        )
    return most


def _spark(row: Mapping, most: t.Mapping[str, float]) -> str:
    outline = _first(row)
    values = outline["curves"][0]["values"] if outline else []
    xs, ys = curves.thin(list(range(len(values))), values, SPARK_POINTS)
    points = [(x, y) for x, y in zip(xs, ys) if x is not None and y is not None]
    if outline is None or len(points) < 2 or most[outline["test"]] <= 0:
        return ""
    return " ".join(
        f"{x / (len(values) - 1) * 96:.0f},{2 + 24 * (1 - y / most[outline['test']]):.0f}" for x, y in points
    )


def _is_tracked(group: Mapping, run: Mapping) -> bool:
    about_test = (run.get("tests") or {}).get(group["test"]) or {}
    return any(group["metric"] == item.get("metric") for item in about_test.get("tracked") or [])
