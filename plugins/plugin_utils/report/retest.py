# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the second measurement of a run is to be (ssd_retest): which drives are measured again before they fail, and
each host's drives and tests, by what the first says. Nothing here touches a host.
"""

from __future__ import annotations

import collections
import os
import typing as t

from ...module_utils.run.folder import RUN_ID_PATTERN
from ..peers import fleet_verdicts
from ..peers.fleet_verdicts import Judged
from ..run_folder import remeasurement, results_log, run_record
from ..verdict import judge, judged_criteria
from . import run_sources, write_report

Record = dict[str, t.Any]
# More at once than this share of the drives is no matter of single drives: the run or the criterion is at fault.
MOST_OF_FLEET = 0.25
LONGEST_NAME = 60
# Who a drive is, whatever path it has.
IDENTITY = ("serial", "wwn", "model", "size_bytes", "backing_file")


class Again(t.NamedTuple):
    """A drive to measure again, the tests whose second result counts, and why."""

    host: str
    drive: str
    tests: tuple[str, ...]
    why: str


class Wanted(t.NamedTuple):
    """drives: those to measure again. left: why drives that missed relative criteria alone are not, as sentences."""

    drives: list[Again]
    left: list[str]


def drives_to_remeasure(run: Record, records: t.Sequence[Record], judged: Judged) -> Wanted:
    """Return the drives that fail by relative criteria alone: those of their tests, and the tests that these go on
    from.

    A drive that misses an absolute limit is not measured again: its host keeps it as evidence. Nor is one of a low
    host, as the host would be the same, nor any where more than MOST_OF_FLEET of the drives would be.
    """
    absolute = judge.judge({**run, "criteria": _absolute(run.get("criteria") or [])}, records)["drives"]
    firm = {(drive["host"], drive["drive"]) for drive in absolute if drive["verdict"] == "fail"}
    low = {(entry["host"], drive) for entry in judged.fleet["low_hosts"] for drive in entry["drives"]}
    drives, left = [], []
    asked = {(entry["host"], entry["drive"]) for entry in run.get("asked") or []}
    theirs = [
        ((drive["host"], drive["drive"]), drive)
        for drive in judged.judgement["drives"]
        # What a host adds by itself is not measured again, and keeps no other's drive from it.
        if (drive["host"], drive["drive"]) in asked
    ]
    for key, drive in theirs:
        missed = [test for test in drive["tests"] if test["verdict"] == "fail"]
        if drive["verdict"] != "fail" or key in firm or not missed:
            continue
        if key in low:
            left.append(f"{key[0]} {key[1]}: not measured again, as its host is low as a whole")
            continue
        why = "; ".join(f"{test['test']}: {reason}" for test in missed for reason in test["reasons"])
        drives.append(Again(*key, _with_those_before([test["test"] for test in missed], run.get("tests") or {}), why))
    found, told = _few(drives, [place for place, _drive in theirs])
    return Wanted(found, left + told)


def _few(drives: list[Again], asked: t.Sequence[tuple[str, str]]) -> tuple[list[Again], list[str]]:
    """Return the drives to measure again unless they are too many, and what to say then. One host that has most of them
    is that host's matter, and keeps no other's from being measured again. asked: (host, drive) of all.
    """
    if len(drives) <= _most(len(asked)):
        return drives, []
    of_hosts = collections.Counter(again.host for again in drives)
    worst, count = max(of_hosts.items(), key=lambda item: item[1])
    others = [again for again in drives if again.host != worst]
    if 2 * count > len(drives) and others and len(others) <= _most(sum(1 for host, _drive in asked if host != worst)):
        return others, [
            f"{worst}: {count} of its drives missed relative criteria, more than on all other hosts together. That "
            "points to the host, so none of them is measured again"
        ]
    return [], [
        f"{len(drives)} of {len(asked)} drives missed relative criteria: too many to be single bad drives, so none "
        "is measured again"
    ]


def _most(drives: int) -> int:
    return max(1, int(MOST_OF_FLEET * drives))


def _absolute(criteria: t.Sequence[Record]) -> list[Record]:
    """Return the criteria without their relative limits."""
    bare = [
        {key: value for key, value in criterion.items() if key not in (*judged_criteria.RELATIVE, "baseline")}
        for criterion in criteria
        if not judged_criteria.criterion_problems(criterion)
    ]
    return [
        criterion for criterion in bare if any(criterion.get(limit) is not None for limit in judged_criteria.ABSOLUTE)
    ]


def _with_those_before(names: list[str], about: t.Mapping[str, Record]) -> tuple[str, ...]:
    """Return the tests and those whose state they go on from, in the order of the plan."""
    found = list(names)
    for name in found:
        before = (about.get(name) or {}).get("follows")
        if before and before not in found:
            found.append(before)
    return tuple([name for name in about if name in found] + [name for name in found if name not in about])


class Plan(t.NamedTuple):
    """hosts: `ssd_again` of each host that measures again (docs/internals.md). lines: for people."""

    hosts: dict[str, Record]
    lines: list[str]


def plan(results_dir: str, run: t.Mapping[str, str], seen: t.Mapping[str, t.Any]) -> Plan:
    """run: {id, name}. seen: of each host what preflight of this play saw of its drives, as drive_facts returns them.

    A second measurement that was begun goes on as it was asked for. Raises ReportError, OSError and ValueError.
    """
    run_dir, run_id = os.path.join(results_dir, run["id"]), remeasurement.id_of(run["id"])
    record = write_report.load_run(results_dir, run["id"])
    begun = remeasurement.read(run_dir)
    if begun is not None:
        found = _unfinished(run_dir, begun)
        lines = [f"{len(found)} drives of {run_id} have no second result yet"] if found else []
    elif not RUN_ID_PATTERN.fullmatch(run_id):
        return Plan({}, [f"ssd_retest: the run id {run['id']} is too long to add -again; nothing is measured again"])
    else:
        loaded = results_log.load_all(os.path.join(run_dir, run_record.RESULTS))
        sources = run_sources.sources(run_dir, record, loaded)
        wanted = drives_to_remeasure(record, loaded.records, fleet_verdicts.Judged(sources.judgement, sources.fleet))
        found, lines = wanted.drives, wanted.left
    hosts: dict[str, Record] = {}
    for drive in found:
        looked_at = next((entry for entry in seen.get(drive.host) or () if entry["drive"] == drive.drive), None)
        if looked_at is None:
            lines.append(f"{drive.host} {drive.drive}: not measured again, because this play did not check it")
            continue
        lines.append(f"{drive.host} {drive.drive}: measured again: {drive.why}")
        _add(hosts, drive, looked_at, {"run_id": run_id, "run_name": _name(run["name"]), "of": run["id"]})
    return Plan(hosts, lines)


def _name(name: str) -> str:
    """Return the second run's name: another, so that nobody takes it up for the next night."""
    return name[: LONGEST_NAME - len(remeasurement.SUFFIX)] + remeasurement.SUFFIX


def _unfinished(run_dir: str, begun: Record) -> list[Again]:
    """Return all that was asked of a second measurement, where a result of it is lacking."""
    lacking = [place for place, record in remeasurement.second(run_dir, begun).items() if "kind" not in record]
    hosts = {place[0] for place in lacking}
    return [
        Again(entry["host"], entry["drive"], tuple(entry[remeasurement.COUNTS]), "begun in an earlier play")
        for entry in begun["asked"]
        if entry["host"] in hosts and entry.get(remeasurement.COUNTS)
    ]


def _add(hosts: dict[str, Record], drive: Again, looked_at: Record, common: Record) -> None:
    own = hosts.setdefault(drive.host, {**common, "drives": [], "tests": [], "counts": {}, "identities": {}})
    own["drives"].append(looked_at["selector"])
    own["tests"] += [name for name in drive.tests if name not in own["tests"]]
    own["counts"][drive.drive] = list(drive.tests)
    own["identities"][drive.drive] = {key: (looked_at.get("identity") or {}).get(key) for key in IDENTITY}
