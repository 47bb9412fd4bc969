# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables at the end of a playbook: the fleet by model, and the drives of the run with what their
tests gave. Pure.
"""

from __future__ import annotations

import re
import typing as t

from ..verdict import judged_criteria
from ..verdict.verdicts import VERDICTS
from . import final_tables, progress

Mapping = t.Mapping[str, t.Any]
Key = tuple[str, str]
MOST_ROWS = 40
# Of more drives only those that need attention are shown.
MOST_DRIVES = 20
# Of a run's criteria; summary.json has all.
MOST_WARNINGS = 5
# From here on a rate says more than a number of I/Os.
LARGE_BLOCK_BYTES = 128 << 10
BLOCK_OF_CELL = re.compile(r"[a-z]+-(?P<number>[0-9]+)(?P<unit>[bk])-")
TITLES = ("HOST", "DRIVE", "MODEL", "RESULT", "TESTS")


class _Row(t.NamedTuple):
    """A drive: `good` ones give way when there are too many, and those of a higher `rank` when there still are; `why`:
    what is wrong with it.
    """

    host: str
    drive: str
    model: str
    result: str
    tests: str
    why: str
    good: bool
    rank: tuple[int, bool] = (0, False)


def lines(run: Mapping, records: t.Sequence[Mapping], summary: Mapping | None) -> list[str]:
    """run: run.json or {}. records: the newest of each key. summary: the run's report/summary.json, when it was made
    just now.
    """
    rows = [_row(key, run, records, summary) for key in _drives(run, records, summary)]
    shown = rows if len(rows) <= MOST_DRIVES else [row for row in rows if not row.good]
    shown = shown if len(shown) <= MOST_ROWS else sorted(shown, key=lambda row: row.rank)
    names = {
        row: progress.short_name(row.drive, [other.drive for other in rows if other.host == row.host])
        for row in shown[:MOST_ROWS]
    }
    table = [
        TITLES,
        *[
            (row.host, names[row], row.model, row.result, "; ".join(filter(None, (row.tests, row.why))))
            for row in shown[:MOST_ROWS]
        ],
    ]
    told = [f"warning: {text}" for text in ((summary or {}).get("warnings") or [])[:MOST_WARNINGS]]
    text = _fleet(run, summary) + told + (progress.columns(table, indent="") if shown else [])
    if len(shown) > MOST_ROWS:
        text.append(f"… and {len(shown) - MOST_ROWS} more drives that need attention")
    return text + [_total(rows)]


def _fleet(run: Mapping, summary: Mapping | None) -> list[str]:
    """Return what the report says of the fleet; of each test by the figure that the drives' rows show too."""
    fleet = (summary or {}).get("fleet") or {}
    told = run.get("tests") or {}
    figures: dict[str, str] = {}
    for group in fleet.get("groups") or []:
        tracked = next((item["metric"] for item in (told.get(group["test"]) or {}).get("tracked") or []), None)
        of_test = {item["metric"]: item for item in fleet["groups"] if item["test"] == group["test"]}
        headline = _headline(of_test, told.get(group["test"]) or {}) or str(group["metric"])
        figures.setdefault(group["test"], tracked if tracked is not None and tracked in of_test else headline)
    return final_tables.lines(fleet, figures)


def _drives(run: Mapping, records: t.Iterable[Mapping], summary: Mapping | None) -> list[Key]:
    """Return every drive asked for, then those that only have records, in that order."""
    known = [
        *(run.get("asked") or []),
        *((summary or {}).get("drives") or []),
        *[r for r in records if r["kind"] in ("drive", "test")],
    ]
    return list(dict.fromkeys((item["host"], item["drive"]) for item in known))


def _row(key: Key, run: Mapping, records: t.Sequence[Mapping], summary: Mapping | None) -> _Row:
    host, drive = key
    mine = [record for record in records if record["host"] == host and record.get("drive") == drive]
    campaign = next((record for record in mine if record["kind"] == "drive"), {})
    judged = next((item for item in (summary or {}).get("drives") or [] if (item["host"], item["drive"]) == key), None)
    model = ((campaign.get("identity") or {}).get("model") or (judged or {}).get("model") or "").strip()
    about = run.get("tests") or {}
    tests = "; ".join(_test(record, about.get(record["test"]) or {}) for record in mine if record["kind"] == "test")
    if judged:
        good = judged["verdict"] == "pass"
        # A pass is shown without its reasons, unless it was held against nothing.
        why = "; ".join(judged["reasons"][:2]) if not good or judged_criteria.NO_CRITERION in judged["reasons"] else ""
        # What a slow host made fail must not take the room of bad drives.
        rank = VERDICTS.index(judged["verdict"]), bool(judged.get("host_fault"))
        return _Row(host, drive, model, judged["verdict"].replace("_", " "), tests, why, good, rank)
    outcome = campaign.get("outcome") or "no result yet"
    said = next((record["message"] for record in records if record["kind"] == "host" and record["host"] == host), "")
    why = campaign.get("message") or ("" if campaign else said)
    return _Row(host, drive, model, outcome, tests, why, outcome == "complete")


def _test(record: Mapping, about: Mapping) -> str:
    """`iops steady after 5 rounds, write 41,201 IOPS`. about: what run.json tells of the test."""
    text = f"{record['test']} {record['outcome'].replace('_', ' ')}"
    tracked = next((item for item in record.get("steady_state") or [] if item.get("average") is not None), None)
    if tracked:
        rounds = f" after {record['rounds']} rounds" if record["outcome"] == "steady" and record.get("rounds") else ""
        return f"{text}{rounds}, {progress.metric(tracked['metric'], tracked['average'])}"
    metrics = record.get("metrics") or {}
    name = _headline(metrics, about)
    return f"{text}, {progress.metric(name, metrics[name])}" if name else text


def _headline(metrics: Mapping, about: Mapping) -> str | None:
    """Return the figure of a test without steady state: the I/Os, and the rate for large blocks; of its one direction,
    if it has one.
    """
    # The figures are those of the test's first cell, whose id tells the block size (cells.cell_id).
    block = BLOCK_OF_CELL.match(next(iter(about.get("cells") or []), ""))
    size_bytes = int(block["number"]) * {"b": 1, "k": 1024}[block["unit"]] if block else 0
    kind = "bandwidth" if size_bytes >= LARGE_BLOCK_BYTES else "iops"
    directions = [name for name in (f"read_{kind}", f"write_{kind}") if name in metrics]
    wanted = directions if len(directions) == 1 else [kind, *directions]
    return next((name for name in wanted if name in metrics), next(iter(metrics), None))


def _total(rows: t.Sequence[_Row]) -> str:
    """`3 drives: 2 pass, 1 fail`."""
    results = [row.result for row in rows]
    counts = ", ".join(f"{results.count(result)} {result}" for result in dict.fromkeys(results))
    unjudged = sum(row.good and row.why == judged_criteria.NO_CRITERION for row in rows)
    counts += f" ({unjudged} without a criterion)" if unjudged else ""
    return f"{len(rows)} drive{'' if len(rows) == 1 else 's'}" + (f": {counts}" if counts else "")
