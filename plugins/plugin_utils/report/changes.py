# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the fleet's page says of changes: since the run before, over the nights, against a baseline, between firmwares.
Pure; nothing is escaped here, the templates do that.
"""

from __future__ import annotations

import typing as t

from ..common.units import rounded
from ..verdict.verdicts import CHANGED, OTHERWISE, VERDICTS

Record = dict[str, t.Any]

MOST_ROWS = 100
# Of hosts in a sentence.
MOST_NAMES = 5


def report_of(run_id: str, earlier: t.Container[str]) -> str:
    """Return where the report of an earlier run is, from the fleet's page; "" where it has none."""
    return f"../../{run_id}/report/index.html" if run_id in earlier else ""


def news(fleet: Record, earlier: t.Container[str]) -> Record | None:
    """{run, href, told: [texts]} of the run before, the most telling first; run "" where there was none. None where the
    fleet was not judged.
    """
    if fleet.get("problem") or "since" not in fleet:
        return None
    found = fleet["since"] or {"run": "", "verdicts": [], "changes": []}
    told = hosts(found) + _verdicts(found["verdicts"]) + _worst(found["changes"], "")
    told += _worst(fleet.get("firmwares") or [], "in this run, ")
    return {"run": found["run"], "href": report_of(found["run"], earlier), "told": told}


def hosts(found: Record) -> list[str]:
    """Hosts that became slow as a whole since the run before, and those that no longer are. found: fleet.since."""
    told = []
    for key, one, several in (
        ("hosts_low", "is slow as a whole now", "are slow as a whole now"),
        ("hosts_well", "is no longer slow", "are no longer slow"),
    ):
        names = found.get(key) or []
        if names:
            shown = ", ".join(names[:MOST_NAMES]) + (f" and {len(names) - MOST_NAMES} more" * (len(names) > MOST_NAMES))
            told.append(f"host {shown} {one}" if len(names) == 1 else f"hosts {shown} {several}")
    return told


def _verdicts(given: t.Sequence[Record]) -> list[str]:
    """Return how many drives got worse and better verdicts, one of them by name."""
    told = []
    known = [entry for entry in given if entry["before"]]
    for turn, several in (
        ("no longer passes", "no longer pass"),
        ("fails now", "fail now"),
        ("now passes", "now pass"),
    ):
        mine = [entry for entry in known if _turn(entry["before"], entry["now"]) == turn]
        if mine:
            name = f" ({mine[0]['drive']} on {mine[0]['host']})" if len(mine) == 1 else ""
            told.append(f"{_drives(len(mine))}{name} {turn if len(mine) == 1 else several}")
    new = [entry["now"] for entry in given if not entry["before"]]
    if new:
        failed = f", {new.count('fail'):,} of which fail{'s' * (new.count('fail') == 1)}" if "fail" in new else ""
        told.append(f"{_drives(len(new))} {'is' if len(new) == 1 else 'are'} new{failed}")
    return told


def _turn(before: str, now: str) -> str:
    """Return what became of a drive since the run before; "" where neither is or was a pass or a fail."""
    if before == "pass":
        return "" if now == "pass" else "no longer passes"
    if now == "pass":
        return "now passes"
    return "fails now" if now == "fail" != before else ""


def _drives(count: int) -> str:
    return f"{count:,} drive{'' if count == 1 else 's'}"


def _worst(changes: t.Sequence[Record], where: str) -> list[str]:
    """Return the figure of these that changed most, worse before better, and how many others did."""
    for verdict in CHANGED:
        found = [change for change in changes if change["verdict"] == verdict]
        if found:
            first, rest = max(found, key=lambda change: abs(change["by"])), len(found) - 1
            more = f", and {rest:,} more figure{'' if rest == 1 else 's'} {verdict}" if rest else ""
            return [
                f"{where}{first['model'] or 'unknown model'}{_firmware(first)}: {first['test']} {first['metric']} is "
                f"{rounded(100 * abs(first['by']), 2)} % {verdict}{more}"
            ]
    return []


def _firmware(change: Record) -> str:
    now, then = change.get("firmware"), change.get("against")
    return f" with firmware {now} instead of {then}" if now and then and now != then else ""


def since(found: Record | None, earlier: t.Container[str]) -> Record | None:
    """Verdicts and figures against the run before."""
    if not found:
        return None
    verdicts = sorted(found.get("verdicts") or [], key=lambda entry: VERDICTS.index(entry["now"]))
    shown = {"verdicts": verdicts[:MOST_ROWS], "verdicts_more": max(0, len(verdicts) - MOST_ROWS)}
    run = {"run": found["run"], "href": report_of(found["run"], earlier)}
    return {**run, **shown, "hosts": hosts(found), **_table(found.get("changes") or [])}


def compared(fleet: Record, earlier: t.Container[str]) -> list[Record]:
    """Return what else the run was compared with: [{id, title, run, href, problem, changes, rest, otherwise}]; of the
    baseline both runs' figures (sides) too.
    """
    nights, baseline, firmwares = (fleet.get(name) for name in ("nights", "baseline", "firmwares"))
    found = []
    if nights:
        title = f"Against the {len(nights['runs'])} runs before, each drive's median of them"
        found.append({"id": "nights", "title": title, "run": "", **_table(nights["changes"])})
    if baseline:
        run = {"run": baseline["run"], "href": report_of(baseline["run"], earlier)}
        table = {**_table(baseline["changes"]), "problem": baseline.get("problem")}
        sides = baseline.get("figures") or []
        beside = {"sides": sides[:MOST_ROWS], "sides_more": max(0, len(sides) - MOST_ROWS)}
        found.append({"id": "baseline", "title": "Against the baseline", **run, **table, **beside})
    if firmwares:
        found.append({"id": "firmwares", "title": "One firmware against another, in this run", **_table(firmwares)})
    return found


def repeats(fleet: Record) -> Record:
    """Return how well figures repeat from run to run of one drive: {rows, more}; rows: as in summary.json, the worst of
    each model and test first.
    """
    found = fleet.get("repeatability") or []
    ordered = sorted(found, key=lambda row: (str(row["model"]), row["test"], -row["cv"], row["metric"]))
    return {"rows": ordered[:MOST_ROWS], "more": max(0, len(ordered) - MOST_ROWS)}


def _table(changes: t.Sequence[Record]) -> Record:
    """changes: rows of what is worse or better. rest: how many figures are neither. otherwise: what was not compared,
    and why.
    """
    shown = [change for change in changes if change["verdict"] in CHANGED]
    rest: dict[str, int] = {}
    otherwise: dict[tuple[str, ...], int] = {}
    for change in changes:
        if change["verdict"] == OTHERWISE:
            key = (change["model"], change["test"], change["changed"])
            otherwise[key] = max(otherwise.get(key, 0), change["n"])
        elif change["verdict"] not in CHANGED:
            rest[change["verdict"]] = rest.get(change["verdict"], 0) + 1
    return {
        "changes": shown[:MOST_ROWS],
        "changes_more": max(0, len(shown) - MOST_ROWS),
        "rest": rest,
        "otherwise": [(*key, drives) for key, drives in otherwise.items()][:MOST_ROWS],
    }
