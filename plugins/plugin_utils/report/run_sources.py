# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read a run's folder and judge it: all that the report is made from."""

from __future__ import annotations

import functools
import json
import os
import typing as t

from ..peers import fleet_verdicts
from ..run_folder import results_log
from . import chart_series, derived_metrics, host_journal, thinning
from .host_journal import HostRaw

Record = dict[str, t.Any]
Key = tuple[str, str]
NO_RAW = HostRaw({}, [], {}, {})
# {(host, drive): {test: …}}
OfTests = dict[Key, dict[str, Record]]

# In a larger fleet a drive's outline is thinned, its page has no median of the others, and a host is read again for its
# pages.
MOST_WHOLE = 500
THIN_POINTS = 60
_FEW_HOSTS = 2


class Sources(t.NamedTuple):
    """All that the pages are made from; a Key is (host, drive).

    `tests`: a drive's test records by name, with `cells`. `drives`, `hosts`: their records. `raw`: reads what a host
      left (host_journal.read), as often as it is
    asked. `outlines`: {test: chart_series.outline} of each drive. `derived`: derived_metrics.of_drive of each drive.
    """

    run: Record
    judgement: Record
    fleet: Record
    tests: dict[Key, dict[str, Record]]
    drives: dict[Key, Record]
    hosts: dict[str, Record]
    raw: t.Callable[[str], HostRaw]
    outlines: dict[Key, dict[str, Record]]
    derived: dict[Key, Record]
    damaged_lines: list[int]


def racks(run: Record) -> dict[str, str]:
    """Return the rack of each host that has one (ssd_rack), as preflight noted it."""
    return {entry["host"]: str(entry["rack"]) for entry in run.get("asked") or [] if entry.get("rack")}


def sources(
    run_dir: str, run: Record, loaded: results_log.Loaded, against: fleet_verdicts.Baseline = fleet_verdicts.Baseline()
) -> Sources:
    """From run.json and the records of results.jsonl (their newest, as `store` loads them), and what the hosts left in
    raw/.

    against: what the fleet is compared with.
    """
    of_kind: dict[str, list[Record]] = {"host": [], "drive": [], "test": []}
    for record in loaded.records:
        of_kind.setdefault(record["kind"], []).append(record)
    whole = len(of_kind["test"]) <= MOST_WHOLE
    read = functools.lru_cache(maxsize=None if whole else _FEW_HOSTS)(functools.partial(host_journal.read, run_dir))
    drives: dict[Key, Record] = {(record["host"], record["drive"]): record for record in of_kind["drive"]}
    tests: OfTests = {}
    for record in sorted(of_kind["test"], key=lambda record: record["host"]):
        tests.setdefault((record["host"], record["drive"]), {})[record["test"]] = record
    specs, outlines = _measured(run, tests, drives, read, whole)
    judged = fleet_verdicts.judge_run(os.path.dirname(run_dir), run, loaded.records, against)
    abouts = run.get("tests") or {}
    keyed: dict[Key, Record] = {(drive["host"], drive["drive"]): drive for drive in judged.judgement["drives"]}
    found = {
        key: derived_metrics.of_drive(
            drive, tests.get(key, {}), specs.get(key, {}), abouts, _size_bytes(drives.get(key))
        )
        for key, drive in keyed.items()
    }
    if whole:
        models = {key: drive["model"] or "" for key, drive in keyed.items()}
        chart_series.medians(
            [
                {"model": models.get(key, ""), "series": each}
                for key, of_tests in outlines.items()
                for each in of_tests.values()
            ]
        )
    hosts = {record["host"]: record for record in of_kind["host"]}
    return Sources(
        run, judged.judgement, judged.fleet, tests, drives, hosts, read, outlines, found, loaded.damaged_lines
    )


def _size_bytes(record: Record | None) -> int | None:
    size = ((record or {}).get("identity") or {}).get("size_bytes")
    return size if isinstance(size, int) else None


def _measured(
    run: Record,
    tests: OfTests,
    drives: t.Mapping[Key, Record],
    read: t.Callable[[str], host_journal.HostRaw],
    whole: bool,
) -> tuple[OfTests, OfTests]:
    """Give each test record its cells, and return the rendered tests and the outlines of each drive, host by host."""
    alike: dict[str, Record] = {}
    specs: OfTests = {}
    outlines: OfTests = {}
    for key, records in tests.items():
        host = read(key[0])
        size_bytes = (drives.get(key, {}).get("identity") or {}).get("size_bytes")
        for name, record in records.items():
            measured = host.measurements.get((key[1], name, record.get("attempt", 1)))
            record["cells"] = measured.averages if measured else []
            record["link"] = measured.link if measured else None
            first = (record.get("again") or {}).get("first")
            if first:
                before = host.measurements.get((key[1], name, first.get("attempt", 1)))
                first["cells"] = before.averages if before else []
            spec = host.tests.get(key[1], {}).get(name, {})
            # Most hosts have the same plan: it is kept once.
            specs.setdefault(key, {})[name] = alike.setdefault(json.dumps(spec, sort_keys=True), spec)
            about = (run.get("tests") or {}).get(name) or {}
            outline = chart_series.outline(record, spec, about, measured, chart_series.active_bytes(spec, size_bytes))
            outlines.setdefault(key, {})[name] = outline if whole else _thinned(outline)
    return specs, outlines


def _thinned(outline: Record) -> Record:
    if not outline["curves"]:
        return outline
    first = outline["curves"][0]
    indexes, values = thinning.thin(list(range(len(first["values"]))), first["values"], THIN_POINTS)
    along = {
        name: [outline[name][int(i or 0)] for i in indexes]
        for name in ("rounds", "elapsed_s", "multiples")
        if outline[name]
    }
    return {**outline, **along, "curves": [{**first, "values": values}]}
