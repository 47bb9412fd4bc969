# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The view of the fleet's page: which drives and hosts are bad, for who reads no further, then where all drives lie.
Pure; nothing is escaped here, the templates do that.
"""

from __future__ import annotations

import collections
import typing as t

from ..common import units
from ..common.drives import order
from ..run_folder import run_record
from ..verdict import headline as run_headline
from ..verdict import judged_criteria, result_warnings
from . import changes, distributions, page_names, thinning
from .run_sources import Sources
from .table_data import Record, data, figure_limits, made_page

# Of each line.
MOST_NAMED = 10
LONGEST_WHY = 120
LONGEST_NAME = 60

# What is told in full above the tables; the rest is counted, and found in them.
MOST_TOLD = 20
# Curves over each other say nothing beyond so many.
MOST_CURVES = 150


# Verdicts that need a look, as the page's first lines name them, and what else does.
BAD = {"fail": "Failed", "error": "Ended with an error", "invalid": "Not measured validly"}


def bad_lines(
    rows: t.Sequence[Record], fleet: Record, made: t.Container[str], silent: t.Sequence[Record] = ()
) -> list[Record]:
    """[{css, title, items: [{name, page, host, host_page, why}], more}] of drives that did not pass, low hosts, drives
    that stand out, and hosts that say nothing; none where there is nothing to tell. rows: worst first. silent: records
    of hosts.
    """
    by_host: dict[str, int] = {}
    for row in rows:
        by_host[row["host"]] = by_host.get(row["host"], 0) + row["host_fault"]
    low = list(fleet.get("low_hosts") or [])
    apart = [row for row in rows if row["outliers"] and row["verdict"] == "pass"]
    untested = [row for row in rows if row["verdict"] == "not_tested"]

    def of_drives(css: str, title: str, told: t.Sequence[Record], why: t.Callable[[Record], str]) -> Record:
        return _line(css, title, alike(told), lambda row: _drive(row, made, why(row)))

    found = [
        *(
            of_drives(
                verdict, title, [row for row in rows if (row["verdict"], row["host_fault"]) == (verdict, False)], why
            )
            for (verdict, title), why in zip(BAD.items(), (_missed, _reason, _causes))
        ),
        _line("low", f"Slow host{'s' if len(low) > 1 else ''}", low, lambda entry: _host(entry, made, by_host)),
        of_drives("invalid", f"Stand{'' if len(apart) > 1 else 's'} out", apart, _apart),
        of_drives("not_tested", "Not tested", untested, _reason),
        _line("not_tested", "Not heard of", list(silent), _silent_host),
    ]
    return [line for line in found if line["items"]]


def _line(css: str, title: str, told: t.Sequence[Record], item: t.Callable[[Record], Record]) -> Record:
    items = [item(each) for each in told[:MOST_NAMED]]
    more = sum(len(each.get("drives", [])) or 1 for each in told[MOST_NAMED:])
    return {"css": css, "title": title, "items": items, "more": more}


def _drive(row: Record, made: t.Container[str], why: str) -> Record:
    host_page = made_page(page_names.host_page(row["host"]), made)
    several = len(row["drives"])
    about = {"name": _short(row["serial"] or row["short"], LONGEST_NAME), "page": made_page(row["page"], made)}
    if several > 1:
        about = {"name": f"{several} drives", "page": ""}
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
    return _reason(row)


def _reason(row: Record) -> str:
    return str(row["reasons"][0]) if row["reasons"] else ""


def _causes(row: Record) -> str:
    return ", ".join(run_headline.causes(row)) if row["reasons"] else ""


def _silent_host(record: Record) -> Record:
    why = ": ".join(text for text in (record["state"], record.get("message")) if text)
    return {"name": _short(record["host"], LONGEST_NAME), "page": "", "host": "", "host_page": "", "why": _short(why)}


def _apart(row: Record) -> str:
    return f"{row['outliers'][0]['test']}: {row['outliers'][0]['reason']}"


def _short(text: str, most: int = LONGEST_WHY) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def view(sources: Sources, rows: list[Record], made: t.Container[str], earlier: t.Container[str] = ()) -> Record:
    """Return what index.html.j2 shows. rows: drive_rows.rows. made: the pages that there are. earlier: ids of runs
    whose reports lie beside this one.
    """
    fleet = sources.fleet
    frame = distributions.figures(sources) if len(rows) > 1 else None
    silent = _silent(sources, {row["host"] for row in rows if row["verdict"] == "not_tested"})
    return {
        **about(sources, rows),
        "headline": headline(rows),
        "first": bad_lines(rows, fleet, made, silent),
        "warnings": result_warnings.implausible_limits(sources.run, sources.judgement)[:MOST_TOLD],
        "fleet": fleet,
        "groups": distributions.groups(fleet, frame),
        "news": changes.news(fleet, earlier),
        "since": changes.since(fleet.get("since"), earlier),
        "compared": changes.compared(fleet, earlier),
        "repeats": changes.repeats(fleet),
        "margin": _margin(fleet.get("margin"), earlier),
        "overlays": _overlays(sources, rows, made),
        "pages": sum(row["page"] in made for row in rows),
        "made": made,
        "hosts": len({row["host"] for row in rows} | set(sources.hosts)),
        "data": data(sources, rows, made, frame),
        "damaged_lines": sources.damaged_lines,
    }


def alike(rows: t.Sequence[Record]) -> list[Record]:
    """Rows of one verdict as they are told: drives of a host with the same reasons as `drives` of the first."""
    groups: dict[t.Any, list[Record]] = {}
    for number, row in enumerate(rows):
        own = number if row["outliers"] or not row["reasons"] else tuple(row["reasons"])
        groups.setdefault((row["host"], own), []).append(row)
    return [{**drives[0], "drives": drives} for drives in groups.values()]


def _silent(sources: Sources, told: t.Container[str]) -> list[Record]:
    """Return the records of hosts that something is wrong with, of which no drive that was not tested tells that."""
    mute = [record for record in sources.hosts.values() if record.get("state") not in ("ok", None)]
    return sorted((record for record in mute if record["host"] not in told), key=lambda record: order(record["host"]))


def about(sources: Sources, rows: list[Record]) -> Record:
    """Return what every page of a run says of it."""
    finished = [record.get("finished") or "" for tests in sources.tests.values() for record in tests.values()]
    return {
        "run": sources.run["run"],
        "started": sources.run.get("started"),
        "finished": max(finished, default="") or None,
        "versions": sources.run.get("versions") or {},
        "criteria": sources.run.get("criteria") or [],
        "rejudged": _rejudged(sources.run.get("rejudged") or []),
        "only_read": any(about.get("in_service") for about in (sources.run.get("tests") or {}).values()),
        "elsewhere": run_record.elsewhere(sources.run),
        "departures": _departures(sources.run.get("tests") or {}),
        "verdicts": sources.judgement["verdicts"],
        "total": len(rows),
    }


def _rejudged(times: t.Sequence[Record]) -> list[str]:
    """Return when a run was judged by other criteria, and what it was held to until then, as sentences."""
    told = [
        "; ".join(judged_criteria.describe_given(one) for one in before.get("criteria") or [] if isinstance(one, dict))
        for before in times
    ]
    return [
        f"Judged by other criteria since {str(before['at'])[:10]}; until then by: {text or 'none'}."
        for before, text in zip(times, told)
    ]


def _departures(tests: Record) -> list[Record]:
    """Return the tests that are no longer those of the source that they state: {test, source, keys, because}."""
    return [
        {"source": about.get("source"), "because": None, **about["departs"], "test": name}
        for name, about in tests.items()
        if about.get("departs")
    ]


def headline(rows: t.Sequence[Record]) -> str:
    """Return the run in a sentence."""
    told = run_headline.of_run(rows)
    return f"{told[0].upper()}{told[1:]}."


def _margin(margin: Record | None, earlier: t.Container[str]) -> Record | None:
    """Drives that went beyond the margin, or of which no power cycle is proved, come first."""
    if not margin:
        return None
    order = sorted(margin["drives"], key=lambda entry: (not entry["beyond"], entry["cycle"] == "power cycle"))
    href = changes.report_of(margin["run"], earlier)
    return {"run": margin["run"], "href": href, "drives": order[:MOST_TOLD], "more": max(0, len(order) - MOST_TOLD)}


def _overlays(sources: Sources, rows: list[Record], made: t.Container[str]) -> list[Record]:
    """Return a chart for each test: the tracked curves of the drives, those that need attention on top."""
    charts: dict[str, list[tuple[Record, Record]]] = {}
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


def _overlay(title: str, drawn: list[tuple[Record, Record]], of: int, made: t.Container[str]) -> Record:
    first = drawn[0][1]
    metric, unit = first["curves"][0]["metric"], first["curves"][0]["unit"]
    by_capacity = first["saturating"] and bool(first["multiples"])
    along = "multiples" if by_capacity else "rounds"
    lines = []
    for row, outline in drawn:
        if outline["curves"][0]["metric"] == metric and outline[along]:
            xs, ys = thinning.thin(outline[along], outline["curves"][0]["values"], 120)
            apart = row["verdict"] == "pass" and (row["outliers"] or row["low"])
            lines.append(
                {
                    "label": f"{row['host']} {row['short']}: {row['verdict'].replace('_', ' ')}",
                    "kind": "apart" if apart else row["verdict"],
                    "x": xs,
                    "y": ys,
                    "href": made_page(row["page"], made),
                }
            )
    y_title = metric.replace("_", " ").replace("iops", "IOPS") + (f" ({unit})" if unit not in ("", "IOPS") else "")
    plot = {
        "x_title": "Written, multiples of the capacity" if by_capacity else "Round",
        "y_title": y_title,
        "counted": not by_capacity,
        "limits": _limits(drawn, metric),
        # What must be seen is drawn last, on top.
        "lines": lines[::-1],
    }
    about_it = (
        f"{metric} of {len(lines)} drives over {'the capacity written' if by_capacity else 'the rounds'}; the "
        "figures are in the table of drives"
    )
    names = {"test": first["test"], "title": title, "metric": metric, "about": about_it}
    return {**names, "plot": plot, "drawn": len(lines), "of": of}


def _limits(drawn: list[tuple[Record, Record]], metric: str) -> list[tuple[float, str]]:
    found: dict[float, str] = {}
    for row, outline in drawn:
        figure = row["figure"]
        if figure and figure["test"] == outline["test"] and figure["metric"] == metric:
            for end, word in (("min", "at least"), ("max", "at most")):
                if figure[end] is not None:
                    found[figure[end] / units.unit(metric)[1]] = f"{word} {units.show(metric, figure[end])}"
    # Limits that differ from drive to drive are no line of the chart.
    return list(found.items()) if len(found) <= 3 else []
