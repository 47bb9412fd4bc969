# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long the tests of earlier runs took, by model and definition: read from the results folder, through the gate."""

from __future__ import annotations

import datetime
import os
import typing as t

from ...module_utils.records.base import Scalar
from ...module_utils.run.criteria import MEASURED
from ..run_folder import run_record, runs
from ..validation import record_check, sanitizer
from ..validation.record_check import Record
from ..verdict import comparability

# Newest first, and no more than plan mode can be waited for.
LAST_RUNS = 5
MOST_RUNS = 50
MOST_BYTES = 256 << 20
MOST_DRIVES = 50
# Outcomes of a test that took all its time; one that is invalid may have waited for somebody else.
WHOLE = (*MEASURED, "not_steady")
# In place of a test's name: what a drive's campaign took beside its tests.
AROUND = ""
DRIVE, TEST = b'"kind": "drive"', b'"kind": "test"'

Records = dict[tuple[str, str], Record]


class Timing(t.NamedTuple):
    """What one test took on one drive of a run.

    definition: digests of comparability.definitions; of AROUND {"left": how the drive was left}. method: of the
    purge, "" without one. fill_bytes_per_s: 0 without a fill. rounds_s: all that is neither purge nor fill.
    """

    run_id: str
    host: str
    drive: str
    model: str
    size_bytes: int
    test: str
    definition: t.Mapping[str, str]
    method: str
    purge_s: float
    fill_bytes_per_s: float
    rounds: int
    rounds_s: float


def model(identity: t.Mapping[str, Scalar]) -> str:
    """Return what drives have in common that take equally long; a loop device has no model."""
    return str(identity.get("model") or identity.get("transport") or "")


def of_models(
    own: t.Iterable[runs.KnownRun], models: t.Collection[str], tests: t.Collection[str], but: str = ""
) -> list[Timing]:
    """Return what the LAST_RUNS newest runs tell of each model and test. but: the run that is under way. Raises nothing
    for damage.
    """
    found: list[Timing] = []
    told: dict[tuple[str, str], int] = {}
    wanted = {(model, test) for model in models for test in tests}
    read = 0
    newest = sorted(own, key=lambda run: (run.started, run.id), reverse=True)[:MOST_RUNS]
    for run in newest if wanted else ():
        read += run_record.results_size(run.folder)
        if read > MOST_BYTES or all(told.get(pair, 0) >= LAST_RUNS for pair in wanted):
            break
        mine = _of_run(run, models, tests) if run.id != but else []
        pairs = {(item.model, item.test) for item in mine}
        found += [item for item in mine if told.get((item.model, item.test), 0) < LAST_RUNS]
        told.update({pair: told.get(pair, 0) + 1 for pair in pairs})
    return found


def _of_run(run: runs.KnownRun, models: t.Collection[str], tests: t.Collection[str]) -> list[Timing]:
    try:
        about = run_record.read_run(run.folder) or {}
    except ValueError:
        return []
    defined = comparability.definitions(about)
    drives: Records = {}
    for record in records(run.folder, DRIVE):
        known = model(record.get("identity") or {}) in models and bool(record["identity"].get("size_bytes"))
        if known and len(drives) < MOST_DRIVES:
            drives[record["host"], record["drive"]] = record
    newest: dict[tuple[str, str], dict[str, Record]] = {}
    for record in records(run.folder, TEST, drives) if drives else ():
        newest.setdefault((record["host"], record["drive"]), {})[record["test"]] = record
    found = []
    for key, drive in drives.items():
        mine = newest.get(key, {})
        made = [_timing(run, drive, record, defined) for name, record in mine.items() if name in tests]
        found += [item for item in (*made, _around(run, drive, list(mine.values()))) if item is not None]
    return found


def records(folder: str, part: bytes, drives: t.Collection[tuple[str, str]] | None = None) -> t.Iterator[Record]:
    """Yield the records that pass of lines with a part, of all drives or of these: to pass costs more than to
    be read.
    """
    try:
        with open(os.path.join(folder, run_record.RESULTS), "rb") as file:
            for line in file:
                record = _passed(line, drives) if part in line else None
                if record is not None:
                    yield record
    except OSError:
        return


def _passed(line: bytes, drives: t.Collection[tuple[str, str]] | None) -> Record | None:
    try:
        told = sanitizer.decoded(line)
        if drives is not None and (str(told.get("host")), str(told.get("drive"))) not in drives:
            return None
        return record_check.stored(told)
    except (sanitizer.Unfit, AttributeError):
        return None


def _timing(
    run: runs.KnownRun, drive: Record, record: Record, defined: t.Mapping[str, t.Mapping[str, str]]
) -> Timing | None:
    """None of a test that was cut short, or whose times can't be."""
    if record["outcome"] not in WHOLE or not record["finished"] or record["test"] not in defined:
        return None
    purge, fill = record["purge"] or {}, record["precondition"] or {}
    purge_s, fill_s = purge.get("seconds") or 0.0, fill.get("seconds") or 0.0
    rate = fill["bytes_written"] / fill_s if fill and fill_s > 0 else 0.0
    rest_s = _seconds(record["started"], record["finished"]) - purge_s - fill_s
    if rest_s < 0 or bool(fill) != (rate > 0):
        return None
    name, method = record["test"], str(purge.get("method") or "")
    return Timing(*_who(run, drive), name, defined[name], method, purge_s, rate, record["rounds"], rest_s)


def _around(run: runs.KnownRun, drive: Record, tests: t.Sequence[Record]) -> Timing | None:
    """Return the look before the first test, and what came after the last one."""
    ends = [test.get("finished") for test in tests]
    if drive["outcome"] != "complete" or not ends or not all(ends) or not drive.get("left"):
        return None
    after_s = _seconds(max(map(str, ends)), drive["time"])
    look_s = (drive.get("look") or {}).get("seconds") or 0.0
    return Timing(*_who(run, drive), AROUND, {"left": drive["left"]}, "", 0.0, 0.0, 0, look_s + max(0.0, after_s))


def _who(run: runs.KnownRun, drive: Record) -> tuple[str, str, str, str, int]:
    identity = drive["identity"]
    return run.id, drive["host"], drive["drive"], model(identity), identity["size_bytes"]


def _seconds(begin: str, end: str) -> float:
    """Between two times of records; below 0 where one is of no day, such as 31 February, which the gate lets pass."""
    try:
        one, other = (datetime.datetime.fromisoformat(text[:19]) for text in (begin, end))
    except ValueError:
        return -1.0
    return (other - one).total_seconds() + _fraction(end) - _fraction(begin)


def _fraction(text: str) -> float:
    return float(f"0{text[19:-1]}")
