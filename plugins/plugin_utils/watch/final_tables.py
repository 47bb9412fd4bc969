# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables at the end of a playbook: the drives of the run with what their tests gave, and the fleet by model with
its figures, outliers, low hosts, and what changed since the last run. Pure.
"""

from __future__ import annotations

import typing as t

from ...module_utils.run import main_figure
from ..common import units
from ..verdict import headline, judged_criteria
from ..verdict.verdicts import CHANGED, OTHERWISE, VERDICTS
from . import grouped_reasons, progress
from .grouped_reasons import DriveReasons

Mapping = t.Mapping[str, t.Any]
MODEL_TITLES = ("MODEL", "FIRMWARE", "TEST", "METRIC", "N", "MEDIAN", "SPREAD", "WORST")
# Of each kind; the report has all.
MOST_LINES = 20
Key = tuple[str, str]
MOST_ROWS = 40
# Of more drives only those that need attention are shown.
MOST_DRIVES = 20
# Of a run's criteria; summary.json has all.
MOST_WARNINGS = 5
DRIVE_TITLES = ("HOST", "DRIVE", "MODEL", "RESULT", "TESTS")


def fleet_lines(fleet: Mapping, figures: t.Mapping[str, str]) -> list[str]:
    """fleet: of summary.json, {} for none. figures: the metric to show of each test."""
    if fleet.get("problem"):
        return [fleet["problem"]]
    if not fleet:
        return []
    shown = [group for group in fleet["groups"] if group["metric"] == figures.get(group["test"])]
    table = progress.columns([MODEL_TITLES, *[_model_row(group) for group in shown]], indent="") if shown else []
    return (
        table
        + _few(fleet)
        + _most(_outliers(fleet))
        + _most(_low_hosts(fleet))
        + _most([f"serial {item['serial']}: {item['told']}" for item in fleet.get("claimed_twice") or []])
        + _chance(fleet)
        + _most(_since(fleet))
        + _most(_longer(fleet))
    )


def _model_row(group: Mapping) -> tuple[str, ...]:
    metric, worst = group["metric"], group["worst"]
    median, value = (units.show(metric, number) for number in (group["median"], worst["value"]))
    spread = f"±{units.rounded(100 * group['spread'], 2)} %"
    return (
        group["model"],
        group["firmware"],
        group["test"],
        metric,
        str(group["n"]),
        median,
        spread,
        f"{value} {worst['host']} {worst['drive']}",
    )


def _few(fleet: Mapping) -> list[str]:
    names = {(row["model"], row["firmware"]): row for row in fleet["too_few"]}
    told = [f"{' '.join(filter(None, name)) or 'no model'} ({row['n']})" for name, row in names.items()]
    return [
        f"too few peers to judge by, {row['needed']} are needed: {', '.join(told)}" for row in list(names.values())[:1]
    ]


def _outliers(fleet: Mapping) -> list[str]:
    """One line a drive and test, by its worst figure."""
    worst: dict[tuple[str, str, str], Mapping] = {}
    for outlier in fleet["outliers"]:
        worst.setdefault((outlier["host"], outlier["drive"], outlier["test"]), outlier)
    return [
        f"outlier: {host} {drive} {test}: {item['reason']}; {item['cause']}: {item['why']}"
        for (host, drive, test), item in worst.items()
    ]


def _low_hosts(fleet: Mapping) -> list[str]:
    return [
        f"low host: {item['host']}: its {len(item['drives'])} drives are {units.rounded(item['by_pct'], 2)} % worse "
        f"in {item['test']} {item['metric']}"
        f" than the other hosts'; {'; '.join(item['differs']) or 'its snapshot shows no difference'}"
        for item in fleet["low_hosts"]
    ]


def _chance(fleet: Mapping) -> list[str]:
    if not fleet["comparisons"]:
        return []
    return [
        (
            f"{fleet['flagged']} of {fleet['comparisons']} figures stand out; at most about "
            f"{units.rounded(fleet['expected_false'], 2)} of them by chance"
        )
    ]


def _since(fleet: Mapping) -> list[str]:
    since = fleet.get("since")
    if not since:
        return []
    head = f"since {since['run']}"
    told = [f"{head}: {host} is slow as a whole now" for host in since.get("hosts_low") or []]
    told += [f"{head}: {host} is no longer slow" for host in since.get("hosts_well") or []]
    told += [
        f"{head}: {item['host']} {item['drive']}: {_word(item['before'])}, now {_word(item['now'])}"
        for item in since["verdicts"]
    ]
    told += _changes(head, since["changes"])
    return (told or [f"{head}: no verdict changed, and no figure was shown to"]) + _otherwise(head, since["changes"])


def _longer(fleet: Mapping) -> list[str]:
    """Against the nights before and the baseline; one firmware against another."""
    nights, baseline = fleet.get("nights") or {}, fleet.get("baseline") or {}
    head = f"against the {len(nights.get('runs') or [])} runs before"
    told = _changes(head, nights.get("changes") or []) + _otherwise(head, nights.get("changes") or [])
    if baseline:
        head = f"against the baseline {baseline['run']}"
        told += (
            [baseline["problem"]]
            if baseline.get("problem")
            else (_changes(head, baseline["changes"]) or [f"{head}: no figure was shown to change"])
            + _otherwise(head, baseline["changes"])
        )
    return told + _changes("in this run", fleet.get("firmwares") or [])


def _changes(head: str, changes: t.Iterable[Mapping]) -> list[str]:
    return [
        f"{head}: {item['model']}{_firmwares(item)} {item['test']} {item['metric']} is "
        f"{units.rounded(100 * abs(item['by']), 2)} % {item['verdict']}"
        f" (n={item['n']})"
        for item in changes
        if item["verdict"] in CHANGED
    ]


def _otherwise(head: str, changes: t.Iterable[Mapping]) -> list[str]:
    """Return what was not compared, a line for each model, test and what changed."""
    found: dict[tuple[str, ...], int] = {}
    for item in changes:
        if item["verdict"] == OTHERWISE:
            key = (item["model"], item["test"], item["changed"])
            found[key] = max(found.get(key, 0), item["n"])
    return [
        f"{head}: {' '.join(filter(None, (model, test)))} was not compared (n={drives}): conditions changed: {changed}"
        for (model, test, changed), drives in found.items()
    ]


def _firmwares(item: Mapping) -> str:
    """Return what the same drives ran then, where it was another one."""
    now, then = item.get("firmware"), item.get("against")
    return f" with firmware {now} instead of {then}" if now and then and now != then else ""


def _word(verdict: str | None) -> str:
    return (verdict or "new").replace("_", " ")


def _most(told: list[str]) -> list[str]:
    return (
        told
        if len(told) <= MOST_LINES
        else [*told[:MOST_LINES], f"… and {len(told) - MOST_LINES} more of these in the report"]
    )


class _Row(t.NamedTuple):
    """A drive: `good` ones give way when there are too many, and those of a higher `rank` when there still are; `why`:
    what is wrong with it, in sentences; `verdict`: "" where nobody has judged it; `names`: of its tests.
    """

    host: str
    drive: str
    model: str
    result: str
    tests: str
    why: tuple[str, ...]
    good: bool
    rank: tuple[int, bool] = (0, False)
    verdict: str = ""
    names: t.Collection[str] = ()


def lines(run: Mapping, records: t.Sequence[Mapping], summary: Mapping | None) -> list[str]:
    """run: run.json or {}. records: the newest of each key. summary: the run's report/summary.json, when it was made
    just now.
    """
    rows = [_drive_row(key, run, records, summary) for key in _drives(run, records, summary)]
    shown = rows if len(rows) <= MOST_DRIVES else [row for row in rows if not row.good]
    shown = shown if len(shown) <= MOST_ROWS else sorted(shown, key=lambda row: row.rank)
    why = grouped_reasons.grouped([DriveReasons(row.host, row.drive, row.why, row.verdict, row.names) for row in shown])
    told_rows = _table_rows(rows, shown, why.own)
    table = [DRIVE_TITLES, *(line.cells for line in told_rows[:MOST_ROWS])]
    told = [f"warning: {text}" for text in ((summary or {}).get("warnings") or [])[:MOST_WARNINGS]]
    text = _fleet(run, summary) + told + (progress.columns(table, indent="") if shown else [])
    more = sum(line.drives for line in told_rows[MOST_ROWS:])
    if more:
        text.append(f"… and {more} more drives that need attention")
    return text + why.shared + [_total(rows, summary)]


class _Line(t.NamedTuple):
    """A line of the table, and how many drives it tells of."""

    cells: tuple[str, ...]
    drives: int


def _table_rows(rows: t.Sequence[_Row], shown: t.Sequence[_Row], why: t.Mapping[Key, list[str]]) -> list[_Line]:
    """Return the lines of drives. Of many drives those of a host with nothing of their own to tell share one."""
    of_host: dict[str, list[str]] = {}
    for row in rows:
        of_host.setdefault(row.host, []).append(row.drive)
    alike: dict[tuple[str, ...], list[str]] = {}
    for row in shown:
        name = progress.short_name(row.drive, of_host[row.host])
        own = "" if len(shown) > MOST_DRIVES else name
        told = "; ".join(filter(None, (row.tests, *why[row.host, row.drive])))
        alike.setdefault((row.host, row.model, row.result, told, own), []).append(name)
    return [
        _Line((host, names[0], model, result, told), 1)
        if len(names) == 1
        else _Line((host, f"{len(names)} drives", model, result, f"{told}: {', '.join(names)}"), len(names))
        for (host, model, result, told, _own), names in alike.items()
    ]


def _fleet(run: Mapping, summary: Mapping | None) -> list[str]:
    """Return what the report says of the fleet; of each test by the figure that the drives' rows show too."""
    fleet = (summary or {}).get("fleet") or {}
    told = run.get("tests") or {}
    figures: dict[str, str] = {}
    for group in fleet.get("groups") or []:
        tracked = next((item["metric"] for item in (told.get(group["test"]) or {}).get("tracked") or []), None)
        of_test = {item["metric"]: item for item in fleet["groups"] if item["test"] == group["test"]}
        main = main_figure.metric(of_test, _first_cell(told.get(group["test"]) or {})) or str(group["metric"])
        figures.setdefault(group["test"], tracked if tracked is not None and tracked in of_test else main)
    return fleet_lines(fleet, figures)


def _drives(run: Mapping, records: t.Iterable[Mapping], summary: Mapping | None) -> list[Key]:
    """Return every drive asked for, then those that only have records, in that order."""
    known = [
        *(run.get("asked") or []),
        *((summary or {}).get("drives") or []),
        *[r for r in records if r["kind"] in ("drive", "test")],
    ]
    return list(dict.fromkeys((item["host"], item["drive"]) for item in known))


def _drive_row(key: Key, run: Mapping, records: t.Sequence[Mapping], summary: Mapping | None) -> _Row:
    host, drive = key
    mine = [record for record in records if record["host"] == host and record.get("drive") == drive]
    campaign = next((record for record in mine if record["kind"] == "drive"), {})
    judged = next((item for item in (summary or {}).get("drives") or [] if (item["host"], item["drive"]) == key), None)
    model = ((campaign.get("identity") or {}).get("model") or (judged or {}).get("model") or "").strip()
    about = run.get("tests") or {}
    tests = "; ".join(_test(record, about.get(record["test"]) or {}) for record in mine if record["kind"] == "test")
    if judged:
        good = judged["verdict"] == "pass"
        # A pass is shown without its reasons, unless it was held to nothing, or to its health alone.
        is_told = not good or any(reason in judged_criteria.UNJUDGED for reason in judged["reasons"])
        why = tuple(judged["reasons"][:2]) if is_told else ()
        # What a slow host made fail must not take the room of bad drives.
        rank = VERDICTS.index(judged["verdict"]), bool(judged.get("host_fault"))
        verdict = judged["verdict"]
        names = {test["test"] for test in judged.get("tests") or ()}
        return _Row(host, drive, model, verdict.replace("_", " "), tests, why, good, rank, verdict, names)
    outcome = campaign.get("outcome") or "no result yet"
    said = next((record["message"] for record in records if record["kind"] == "host" and record["host"] == host), "")
    message = campaign.get("message") or ("" if campaign else said)
    return _Row(host, drive, model, outcome, tests, (message,) if message else (), outcome == "complete")


def _test(record: Mapping, about: Mapping) -> str:
    """`iops steady after 5 rounds, write 41,201 IOPS`. about: what run.json tells of the test."""
    text = f"{record['test']} {record['outcome'].replace('_', ' ')}"
    tracked = next((item for item in record.get("steady_state") or [] if item.get("average") is not None), None)
    if tracked:
        rounds = f" after {record['rounds']} rounds" if record["outcome"] == "steady" and record.get("rounds") else ""
        return f"{text}{rounds}, {progress.metric(tracked['metric'], tracked['average'])}"
    # Where all rounds were disturbed, its figures are null.
    metrics = main_figure.measured(record.get("metrics") or {})
    name = main_figure.metric(metrics, _first_cell(about))
    return f"{text}, {progress.metric(name, metrics[name] or 0.0)}" if name else text


def _first_cell(about: Mapping) -> str:
    """Return its id. about: what run.json tells of the test."""
    return next(iter(about.get("cells") or []), "")


def _total(rows: t.Sequence[_Row], summary: Mapping | None) -> str:
    """Return the run in one line; `3 drives: 2 complete, 1 error` where nobody has judged it."""
    if summary and rows and all(row.verdict for row in rows):
        return headline.of_run(summary["drives"])
    results = [row.result for row in rows]
    counts = ", ".join(f"{results.count(result)} {result}" for result in dict.fromkeys(results))
    return f"{len(rows)} drive{'' if len(rows) == 1 else 's'}" + (f": {counts}" if counts else "")
