# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The long table that a fleet is judged from: one row for each figure of each drive. Pure; pandas.

Columns: run, host, drive (the inventory's label), serial, model, firmware, capacity_bytes, lba_bytes, metadata_bytes,
  link, engine, load ("" but for threads that follow the CPUs), test, conditions (verdict/comparability.py), round,
  cell, metric, unit, value. A figure of the whole window has no round, or round 0 as in the store. The store's long
  table (without drive; no cell for a test's own figures) passes too: see `complete`.
"""

from __future__ import annotations

import collections
import typing as t

from ...module_utils.run.criteria import number
from ..common import drives, units
from ..verdict import comparability
from . import metric_kinds
from .scipy_imports import pandas

ABOUT = ("run", "host", "drive", "serial", "model", "firmware")
UNDER = ("capacity_bytes", "lba_bytes", "metadata_bytes", "link", "engine")
COLUMNS = (*ABOUT, *UNDER, "load", "test", "conditions", "round", "cell", "metric", "unit", "value")
# Drives that are alike in all of these are peers, for one figure.
PEERS = ("model", "firmware", *UNDER, "load", "test")
FIGURE = (*PEERS, "cell", "metric")

Mapping = t.Mapping[str, t.Any]
Key = tuple[str, str, str]
Row = tuple[t.Any, ...]


def of_run(
    run: Mapping, records: t.Iterable[Mapping], valid: t.Container[Key], cells: bool = False
) -> pandas.DataFrame:
    """Return the figures of a run's valid tests.

    run: run.json. records: the newest of each key of results.jsonl. valid: (host, drive, test) whose figures count
      (judge.valid_tests).
    cells: the figures of every cell (of `cells` in a test's record), instead of those of its tracked one.
    """
    given = list(records)
    run_id = str((run.get("run") or {}).get("id") or "")
    asked = {(entry["host"], entry["drive"]): entry for entry in run.get("asked") or []}
    defined = comparability.definitions(run)
    identities = {
        (record["host"], record["drive"]): record.get("identity") or {} for record in given if record["kind"] == "drive"
    }
    mine = tests_by_drive(given)
    rows: list[Row] = []
    for record in given:
        if record["kind"] != "test" or (record["host"], record["drive"], record["test"]) not in valid:
            continue
        key = (record["host"], record["drive"])
        entry, identity = asked.get(key, {}), identities.get(key, {})
        under, load = comparability.of_drive(entry, identity, mine[key]), comparability.load(record)
        about = (run_id, *key, *_about(identity, under, key[1]))
        alike = comparability.conditions_key(under, defined.get(record["test"]), load, record.get("parallel_drives"))
        tracked = next((window.get("cell") or "" for window in record.get("steady_state") or []), "")
        figures = [(tracked, record.get("metrics") or {})]
        if cells:
            figures = [(cell["cell"], cell.get("metrics") or {}) for cell in record.get("cells") or []]
        rows += _rows((*about, load, record["test"], alike), figures)
    return _frame(rows)


def of_summary(summary: Mapping) -> pandas.DataFrame:
    """Return the figures of a report/summary.json: of an earlier run, to compare with by serial. What it was measured
    under is in `conditions` alone.
    """
    run_id, defined = summary["run"]["id"], summary.get("definitions")
    defined = defined if isinstance(defined, dict) else {}
    rows: list[Row] = []
    for drive in summary.get("drives") or []:
        about = (
            run_id,
            drive["host"],
            drive["drive"],
            drive.get("serial") or drive["drive"],
            _text(drive, "model"),
            _text(drive, "firmware"),
            0,
            0,
            0,
            "",
            "",
        )
        for test in drive["tests"]:
            if test["counts"]:
                load = test.get("load") or ""
                at_once = test.get("parallel_drives")
                alike = comparability.conditions_key(drive.get("conditions"), defined.get(test["test"]), load, at_once)
                rows += _rows((*about, load, test["test"], alike), [("", test["metrics"])])
    return _frame(rows)


def complete(frame: pandas.DataFrame) -> pandas.DataFrame:
    """Return a long table with every column, and those that say what a drive is without gaps, so that pandas groups by
    them; whole windows only, and no counts.
    """
    whole = frame[pandas.to_numeric(frame["round"]).fillna(0) == 0] if "round" in frame else frame
    whole = whole[~counts(whole)]
    lacking = {name: whole["serial"] if name == "drive" else "" for name in COLUMNS if name not in whole}
    known = whole.assign(**lacking)
    filled = {
        name: known[name].astype(object).where(known[name].notna(), "") for name in (*FIGURE, "host", "drive", "serial")
    }
    # As `_text` has them: how a host's tool pads a name makes no peers of their own.
    filled |= {name: filled[name].map(_unpadded(filled[name].unique())) for name in ("model", "firmware")}
    found = known.assign(**filled, value=known["value"].astype(float)).reset_index(drop=True)
    one = [*FIGURE, "host", "drive"]
    if "drive" in lacking and (twice := found.duplicated([*one, "run"], keep=False)).any():
        # Two drives of a host that tell one serial number: which is which nobody knows, but they are two.
        place = found[twice].groupby([*one, "run"], sort=False).cumcount() + 1
        found.loc[twice, "drive"] = found.loc[twice, "drive"].astype(str) + " #" + place.astype(str)
    return found


def with_distinct_serials(frame: pandas.DataFrame) -> pandas.DataFrame:
    """Return a run's table with serials by which other runs know the same drive: one that several drives have, or that
    is a place on a host, goes with host and drive. Texts may be categories.
    """
    known = frame[["serial", "host", "drive"]].drop_duplicates()
    doubtful = known["serial"].duplicated(keep=False) | known["serial"].map(drives.is_place).astype(bool)
    mine = frame["serial"].isin(known.loc[doubtful, "serial"])
    if not mine.any():
        return frame
    serial, host, drive = (frame[name].astype(object) for name in ("serial", "host", "drive"))
    return frame.assign(serial=serial.where(~mine, host + " " + drive))


def counts(frame: pandas.DataFrame) -> t.Any:
    """Return which rows are no figures of how good a drive is."""
    return (
        frame["metric"]
        .isin([name for name in frame["metric"].unique() if not metric_kinds.is_compared(str(name))])
        .to_numpy()
    )


def tests_by_drive(records: t.Iterable[Mapping]) -> dict[tuple[str, str], list[Mapping]]:
    """{(host, drive): its test records}; of others none."""
    found: dict[tuple[str, str], list[Mapping]] = collections.defaultdict(list)
    for record in records:
        if record["kind"] == "test":
            found[record["host"], record["drive"]].append(record)
    return found


def _about(identity: Mapping, under: Mapping, drive: str) -> Row:
    # What has no serial number is told apart by what the inventory calls it.
    serial = identity.get("serial") or drive
    told = (under.get(name) or (0 if name.endswith("_bytes") else "") for name in UNDER)
    return (serial, _text(identity, "model"), _text(identity, "firmware"), *told)


def _unpadded(names: t.Iterable[t.Any]) -> dict[t.Any, str]:
    return {name: " ".join(str(name).split()) for name in names}


def _text(source: Mapping, key: str) -> str:
    return " ".join(str(source.get(key) or "").split())


def _rows(about: Row, figures: t.Iterable[tuple[str, Mapping]]) -> list[Row]:
    return [
        (*about, None, cell, metric, units.base(metric), value)
        for cell, found in figures
        for metric, given in found.items()
        if (value := number(given)) is not None and metric_kinds.is_compared(metric)
    ]


def _frame(rows: list[Row]) -> pandas.DataFrame:
    frame = pandas.DataFrame(rows, columns=list(COLUMNS))
    return frame.assign(value=frame["value"].astype(float), round=frame["round"].astype("Int64"))
