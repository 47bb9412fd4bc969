# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet at the end of a playbook: each model's figures, outliers, low hosts, and what changed since the last run.
Pure.
"""

from __future__ import annotations

import typing as t

from ..common import units
from ..verdict.verdicts import CHANGED, OTHERWISE
from . import progress

Mapping = t.Mapping[str, t.Any]
TITLES = ("MODEL", "FIRMWARE", "TEST", "METRIC", "N", "MEDIAN", "SPREAD", "WORST")
# Of each kind; the report has all.
MOST_LINES = 20


def lines(fleet: Mapping, figures: t.Mapping[str, str]) -> list[str]:
    """fleet: of summary.json, {} for none. figures: the metric to show of each test."""
    if fleet.get("problem"):
        return [fleet["problem"]]
    if not fleet:
        return []
    shown = [group for group in fleet["groups"] if group["metric"] == figures.get(group["test"])]
    table = progress.columns([TITLES, *[_row(group) for group in shown]], indent="") if shown else []
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


def _row(group: Mapping) -> tuple[str, ...]:
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
