# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the second measurement of a run is to be (ssd_retest): each host's drives and tests, by what the first says."""

from __future__ import annotations

import os
import typing as t

from ...module_utils.run.folder import RUN_ID_PATTERN
from ..peers import fleet_verdicts, retest
from ..run_folder import remeasurement, results_log, run_record
from . import run_sources, write_report

Record = dict[str, t.Any]
LONGEST_NAME = 60
# Who a drive is, whatever path it has.
IDENTITY = ("serial", "wwn", "model", "size_bytes", "backing_file")


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
        wanted = retest.drives_to_remeasure(
            record, loaded.records, fleet_verdicts.Judged(sources.judgement, sources.fleet)
        )
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


def _unfinished(run_dir: str, begun: Record) -> list[retest.Again]:
    """Return all that was asked of a second measurement, where a result of it is lacking."""
    lacking = [place for place, record in remeasurement.second(run_dir, begun).items() if "kind" not in record]
    hosts = {place[0] for place in lacking}
    return [
        retest.Again(entry["host"], entry["drive"], tuple(entry[remeasurement.COUNTS]), "begun in an earlier play")
        for entry in begun["asked"]
        if entry["host"] in hosts and entry.get(remeasurement.COUNTS)
    ]


def _add(hosts: dict[str, Record], drive: retest.Again, looked_at: Record, common: Record) -> None:
    own = hosts.setdefault(drive.host, {**common, "drives": [], "tests": [], "counts": {}, "identities": {}})
    own["drives"].append(looked_at["selector"])
    own["tests"] += [name for name in drive.tests if name not in own["tests"]]
    own["counts"][drive.drive] = list(drive.tests)
    own["identities"][drive.drive] = {key: (looked_at.get("identity") or {}).get(key) for key in IDENTITY}
