# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What relative criteria are shares of: the median of a drive's peers, or what a baseline run had. Pure."""

from __future__ import annotations

import typing as t

from ...module_utils.records.criterion import Criterion
from ..common import drives
from ..verdict import comparability
from ..verdict.judged_criteria import Reference, References
from . import robust_statistics
from .long_table import FIGURE, complete, of_run, of_summary, tests_by_drive
from .scipy_imports import pandas

Mapping = t.Mapping[str, t.Any]
Found = dict[tuple[str, ...], Reference]
# Of each figure also what it was measured under.
Baseline = dict[tuple[str, ...], tuple[Reference, str]]
TOO_FEW = "too few peers"
# How a drive was measured, as only its own host tells it.
HOST_TELLS = ("lba_bytes", "metadata_bytes", "link", "load")
# How `conditions.changed` begins to tell of these.
_BY_HOST = (f"{comparability.NAMES['link']} ", f"{comparability.NAMES['load']} ")
_ALIKE = tuple(name for name in FIGURE if name not in HOST_TELLS)


def references(
    run: Mapping,
    records: t.Sequence[Mapping],
    valid: t.Container[tuple[str, str, str]],
    baselines: t.Callable[[str], Mapping | None],
) -> References:
    """For judge.judge. valid: judge.valid_tests. baselines: the report/summary.json of a run by its id, None where
    there is none.
    """
    known = _Known(run, records, baselines)
    medians: dict[bool, Found] = {}

    def reference(criterion: Criterion, limit: str, host: str, drive: str, test: str) -> Reference:
        if not limit.endswith("_of_median"):
            return known.of_baseline(criterion, host, drive, test)
        cell, metric = criterion.cell, criterion.metric
        whole = bool(cell)
        if whole not in medians:
            medians[whole] = _medians(of_run(run, records, valid, cells=whole))
        return medians[whole].get(
            (host, drive, test, cell or "", metric), Reference(None, f"{TOO_FEW}: the measurement does not count")
        )

    return reference


class _Known:
    """What a run says of its drives, and the baselines that its criteria name; all as of `references`."""

    def __init__(
        self, run: Mapping, records: t.Sequence[Mapping], baselines: t.Callable[[str], Mapping | None]
    ) -> None:
        self._run_id = str((run.get("run") or {}).get("id"))
        self._summary_of = baselines
        self._baselines: dict[str, Baseline | None] = {}
        self._tests = tests_by_drive(records)
        self._asked = {(entry["host"], entry["drive"]): entry for entry in run.get("asked") or []}
        self._defined = comparability.definitions(run)
        self._loads = {
            (record["host"], record["drive"], record["test"]): comparability.load(record)
            for record in records
            if record["kind"] == "test"
        }
        self._identities = {
            (record["host"], record["drive"]): record.get("identity") or {}
            for record in records
            if record["kind"] == "drive"
        }

    def of_baseline(self, criterion: Criterion, host: str, drive: str, test: str) -> Reference:
        """Return what a drive was at in the baseline that a criterion names, if it was measured as it is now."""
        name, cell, metric = str(criterion.baseline), criterion.cell, criterion.metric
        if name == self._run_id:
            return Reference(None, f"the baseline {name} is this run itself: name another")
        if cell:
            return Reference(None, f"a baseline has no figures of single cells, but the criterion names {cell}")
        known = self._baseline(name)
        if known is None:
            return Reference(None, f"there is no report of the baseline {name}: run report.yml with ssd_run_id={name}")
        identity = self._identities.get((host, drive), {})
        told, before = known.get(
            (drives.name(identity.get("serial"), host, drive), test, metric),
            (Reference(None, f"the baseline {name} has no valid {test} {metric} of this drive"), ""),
        )
        changed = comparability.changed(self._now(host, drive, test), before)
        if not changed:
            return told
        # A format or a definition is the operator's to change.
        apart = any(text.startswith(_BY_HOST) for text in changed.split(", "))
        return Reference(None, f"the baseline {name} was measured under other conditions: {changed}", apart)

    def _baseline(self, name: str) -> Baseline | None:
        if name not in self._baselines:
            summary = self._summary_of(name)
            self._baselines[name] = None if summary is None else _baseline(summary, name)
        return self._baselines[name]

    def _now(self, host: str, drive: str, test: str) -> str:
        """Return the conditions of this run."""
        key = (host, drive)
        under = comparability.of_drive(self._asked.get(key, {}), self._identities.get(key, {}), self._tests[key])
        return comparability.conditions_key(under, self._defined.get(test), self._loads.get((host, drive, test)))


def _medians(frame: pandas.DataFrame) -> Found:
    """By host, drive, test, cell (of one named) and metric: the median of the peers, without the drive itself."""
    known = complete(frame)
    found: Found = {}
    groups = known.groupby(list(FIGURE), sort=False).indices
    few = any(len(places) < robust_statistics.FEWEST_PEERS for places in groups.values())
    alike = known.groupby(list(_ALIKE), sort=False).indices if few else {}
    for (*_peers, test, cell, metric), places in groups.items():
        group = known.iloc[places]
        if len(group) >= robust_statistics.FEWEST_PEERS:
            medians = robust_statistics.without_each(group["value"].to_numpy())
            told = [Reference(float(median), f"median of {len(group) - 1} peers") for median in medians]
        else:
            key = tuple(group[name].iloc[0] for name in _ALIKE)
            told = [_too_few(group, known.iloc[alike[key]])] * len(group)
        for host, drive, reference in zip(group["host"], group["drive"], told):
            # A criterion without a cell is about the tracked one, whatever its name.
            found.update({(host, drive, test, name, metric): reference for name in (cell, "")})
    return found


def _too_few(group: pandas.DataFrame, alike: pandas.DataFrame) -> Reference:
    """alike: the group, with those that differ from it only in what their hosts tell."""
    text = f"{TOO_FEW}: {len(group)} like it, {robust_statistics.FEWEST_PEERS} are needed"
    if len(alike) < robust_statistics.FEWEST_PEERS:
        return Reference(None, text)
    other = [comparability.NAMES[name] for name in HOST_TELLS if alike[name].nunique() > 1]
    more = f"{len(alike) - len(group)} more of its model differ in {', '.join(other)}"
    return Reference(None, f"{text}; {more}", apart=True)


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
