# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The second measurement of drives that missed only relative criteria (ssd_retest): a run of its own, `<run id>-again`,
in a folder beside the first run's. Where it has a result, that one counts; the first stays with it.
"""

from __future__ import annotations

import os
import typing as t

from . import results_log, run_record

SUFFIX = "-again"
# Key of run.json: the run whose drives are measured again; key of `asked`: the tests whose second result counts.
OF, COUNTS = "again_of", "again"
NOT_YET = "it has no result in that run"
BEFORE = "its result in that run is older than the first run's, which the host has repeated since"
Record = dict[str, t.Any]
Place = tuple[str, str, str]


def id_of(run_id: str) -> str:
    """Return the id of the second measurement of a run."""
    return run_id + SUFFIX


def folder_of(run_dir: str) -> str:
    """Return the folder of the second measurement of a run, beside that of the first."""
    return id_of(run_dir.rstrip(os.sep))


def read(run_dir: str) -> Record | None:
    """run.json of the second measurement; None where there is none. Raises ValueError for a damaged one."""
    record = run_record.read_run(folder_of(run_dir))
    return record if record is not None and record.get(OF) == os.path.basename(run_dir.rstrip(os.sep)) else None


def second(run_dir: str, run: t.Mapping[str, t.Any]) -> dict[Place, Record]:
    """Return what was measured again: (host, drive, test) of run.json's `asked` -> its test record, or {} with why
    there is none in `problem`.
    """
    newest, firsts = (
        {results_log.key(record): record for record in results_log.load(os.path.join(folder, run_record.RESULTS))}
        for folder in (folder_of(run_dir), run_dir)
    )
    found: dict[Place, Record] = {}
    for entry in run["asked"]:
        host, drive = entry["host"], entry["drive"]
        for test in entry.get(COUNTS) or ():
            place = ("test", host, drive, test)
            record = newest.get(place)
            if record and record["started"].rstrip("Z") < firsts.get(place, record)["started"].rstrip("Z"):
                record = {"problem": BEFORE}
            found[host, drive, test] = record or {"problem": entry.get("left_out") or _why_none(newest, host, drive)}
    return found


def _why_none(newest: t.Mapping[t.Any, Record], host: str, drive: str) -> str:
    of_drive, of_host = newest.get(("drive", host, drive, None), {}), newest.get(("host", host, None, None), {})
    refusals = "; ".join(str(refusal.get("message")) for refusal in of_drive.get("refusals") or [])
    return str(refusals or of_drive.get("message") or of_host.get("message") or NOT_YET)


def merged(run_dir: str, records: list[Record]) -> list[Record]:
    """Return the records of a run, where a test was measured again with its second result and `again`: {run_id, first:
    the record before}, or {run_id, problem: why there is none}. Raises OSError and ValueError.
    """
    run = read(run_dir)
    if run is None:
        return records
    newer, run_id = second(run_dir, run), run["run"]["id"]
    found = []
    for record in records:
        then = newer.get((record["host"], record.get("drive", ""), record.get("test", "")))
        if record["kind"] == "test" and then is not None:
            record = _joined(record, then, run_id)
        found.append(record)
    return found


def _joined(first: Record, then: Record, run_id: str) -> Record:
    if "kind" not in then:
        return {**first, "again": {"run_id": run_id, "problem": then["problem"]}}
    # The attempts are counted on: the journals of both are one story.
    own = {"run_id": first["run_id"], "attempt": first["attempt"] + then["attempt"]}
    return {**then, **own, "again": {"run_id": run_id, "first": first}}
