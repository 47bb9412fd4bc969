# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What relative criteria are shares of: the median of a drive's peers, or what a baseline run had. Pure."""

from __future__ import annotations

import typing as t

from ..common import drives
from ..results import conditions
from ..results.held_to import Reference, References
from . import robust
from .frame import FIGURE, complete, of_run, of_summary, tests_by_drive
from .libraries import pandas

Mapping = t.Mapping[str, t.Any]
Found = t.Dict[t.Tuple[str, ...], Reference]
# Of each figure also what it was measured under.
Baseline = t.Dict[t.Tuple[str, ...], t.Tuple[Reference, str]]
TOO_FEW = "too few peers"


def references(
    run: Mapping,
    records: t.Sequence[Mapping],
    valid: t.Container[tuple[str, str, str]],
    baselines: t.Callable[[str], Mapping | None],
) -> References:
    """For judge.judge. valid: judge.valid_tests. baselines: the report/summary.json of a run by its id, None where
    there is none.
    """
    medians: dict[bool, Found] = {}
    of_baseline: dict[str, Baseline | None] = {}

    def reference(criterion: Mapping, limit: str, host: str, drive: str, test: str) -> Reference:
        cell, metric = criterion.get("cell"), criterion["metric"]
        if limit.endswith("_of_median"):
            whole = bool(cell)
            if whole not in medians:
                medians[whole] = _medians(of_run(run, records, valid, cells=whole))
            return medians[whole].get(
                (host, drive, test, cell or "", metric), Reference(None, f"{TOO_FEW}: the measurement does not count")
            )
        name = str(criterion["baseline"])
        if name == str((run.get("run") or {}).get("id")):
            return Reference(None, f"the baseline {name} is this run itself: name another")
        if cell:
            return Reference(None, f"a baseline has no figures of single cells, and {cell} is asked for")
        if name not in of_baseline:
            summary = baselines(name)
            of_baseline[name] = None if summary is None else _baseline(summary, name)
        known = of_baseline[name]
        if known is None:
            return Reference(None, f"there is no report of the baseline {name}: run report.yml with ssd_run_id={name}")
        identity = identities.get((host, drive), {})
        told, before = known.get(
            (drives.name(identity.get("serial"), host, drive), test, metric),
            (Reference(None, f"the baseline {name} has no valid {test} {metric} of this drive"), ""),
        )
        now = conditions.text(under(host, drive), defined.get(test), loads.get((host, drive, test)))
        changed = conditions.changed(now, before)
        return Reference(None, f"the baseline {name} was measured otherwise: {changed}") if changed else told

    def under(host: str, drive: str) -> Mapping:
        key = (host, drive)
        return conditions.of_drive(asked.get(key, {}), identities.get(key, {}), mine[key])

    mine = tests_by_drive(records)
    asked = {(entry["host"], entry["drive"]): entry for entry in run.get("asked") or []}
    defined = conditions.definitions(run)
    loads = {
        (record["host"], record["drive"], record["test"]): conditions.load(record)
        for record in records
        if record["kind"] == "test"
    }
    identities = {
        (record["host"], record["drive"]): record.get("identity") or {}
        for record in records
        if record["kind"] == "drive"
    }
    return reference


def _medians(frame: pandas.DataFrame) -> Found:
    """By host, drive, test, cell (of one named) and metric: the median of the peers, without the drive itself."""
    known = complete(frame)
    found: Found = {}
    for (*_peers, test, cell, metric), places in known.groupby(list(FIGURE), sort=False).indices.items():
        group = known.iloc[places]
        medians = (
            robust.without_each(group["value"].to_numpy()) if len(group) >= robust.FEWEST_PEERS else [None] * len(group)
        )
        for host, drive, median in zip(group["host"], group["drive"], medians):
            if median is None:
                told = Reference(None, f"{TOO_FEW}: {len(group)} like it, {robust.FEWEST_PEERS} are needed")
            else:
                told = Reference(float(median), f"median of {len(group) - 1} peers")
            # A criterion without a cell is about the tracked one, whatever its name.
            found.update({(host, drive, test, name, metric): told for name in (cell, "")})
    return found


def _baseline(summary: Mapping, name: str) -> Baseline:
    """By serial, test and metric: what each drive had. A serial that several drives have names none, but the drive that
    the inventory calls so: a host may claim any.
    """
    found: Baseline = {}
    named: set[tuple[str, ...]] = set()
    columns = ["host", "drive", "serial", "test", "conditions", "metric", "value"]
    for host, drive, told_serial, test, alike, metric, value in of_summary(summary)[columns].itertuples(
        index=False, name=None
    ):
        serial = drives.name(None, host, drive) if drives.is_place(told_serial) else told_serial
        key, told = (serial, test, metric), Reference(float(value), f"in run {name}")
        if key in found and (drive == serial) == (key in named):
            told = Reference(None, f"run {name} has several drives with the serial {serial}")
        elif key in named:
            continue
        named |= {key} if drive == serial else set()
        found[key] = told, alike
    return found
