# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How fast earlier runs filled a drive or, where none did, drives of its model and firmware, for
ssd_assumed_write_mib_s: auto. Read from the results folder, through the gate.
"""

from __future__ import annotations

import statistics
import typing as t

from ...module_utils.drive.attributes import VIRTUAL
from ...module_utils.records.found_drives import FoundDrive
from ..plan.write_rates import Measured
from ..run_folder import run_record
from ..run_folder.runs import KnownRun
from ..validation.record_check import Record
from . import timings
from .findings import HostAnswer

# A kind of drives: model, firmware and size; of virtual ones, the host and the drive itself.
Kind = tuple[t.Any, ...]
# What one fill of a drive showed: who it is, of which kind, and bytes/s.
Filled = tuple[str, Kind, float]


def with_rates(views: t.Sequence[HostAnswer], own: t.Sequence[KnownRun], run_id: str) -> list[HostAnswer]:
    """Return the answers with what earlier runs measured of their drives. own: the controller's runs; run_id: of this
    run: one that goes on keeps to what was known when it began.
    """
    began = next((run.started for run in own if run.id == run_id), "")
    earlier = [run for run in own if run.id != run_id and (not began or run.started < began)]
    wanted = {(view.name, str(one.drive)): _who(view.name, one) for view in views for one in view.drives or ()}
    found = _of_runs(earlier, {who: kind for who, kind in wanted.values() if kind})
    return [
        view._replace(
            measured={
                str(one.drive): found[who]
                for one in view.drives or ()
                for who in wanted[view.name, str(one.drive)][:1]
                if who in found
            }
        )
        for view in views
    ]


def _who(host: str, one: FoundDrive) -> tuple[str, Kind]:
    identity = one.identity
    if identity is None or not identity.size_bytes:
        return "", ()
    return _of_identity(host, str(one.drive), vars(identity))


def _of_identity(host: str, drive: str, identity: t.Mapping[str, t.Any]) -> tuple[str, Kind]:
    """Return who a drive is, wherever it is, and its kind."""
    size = identity.get("size_bytes")
    if not size:
        return "", ()
    if identity.get("transport") in VIRTUAL:
        return f"{host} {drive}", (host, drive, size)
    model = str(identity.get("model") or "")
    who = str(identity.get("serial") or identity.get("wwn") or f"{host} {drive}")
    return f"{model} {who}", (model, str(identity.get("firmware") or ""), size) if model else ()


def _of_runs(own: t.Sequence[KnownRun], wanted: t.Mapping[str, Kind]) -> dict[str, Measured]:
    """Return what the newest run that measured a drive tells of it, else the newest that measured its kind."""
    found: dict[str, Measured] = {}
    of_kind: dict[Kind, Measured] = {}
    kinds, read = set(wanted.values()), 0
    for run in sorted(own, key=lambda one: (one.started, one.id), reverse=True)[: timings.MOST_RUNS]:
        read += run_record.results_size(run.folder)
        if read > timings.MOST_BYTES or wanted.keys() <= found.keys():
            break
        filled = list(_fills(run, kinds))
        for who in {one for one, _kind, _rate in filled} & wanted.keys() - found.keys():
            own_rates = [rate for one, _kind, rate in filled if one == who]
            found[who] = Measured(statistics.median(own_rates), max(own_rates), f"as in run {run.id}")
        for kind in {of for _one, of, _rate in filled} - of_kind.keys():
            rates = [rate for _one, of, rate in filled if of == kind]
            source = f"as drives of its model and firmware in run {run.id}"
            of_kind[kind] = Measured(statistics.median(rates), max(rates), source)
    return {**{who: of_kind[kind] for who, kind in wanted.items() if kind in of_kind}, **found}


def _fills(run: KnownRun, kinds: t.Collection[Kind]) -> t.Iterator[Filled]:
    """Yield the fills of drives of these kinds in a run."""
    drives: dict[tuple[str, str], tuple[str, Kind]] = {}
    for record in timings.records(run.folder, timings.DRIVE) if kinds else ():
        who, kind = _of_identity(record["host"], record["drive"], record.get("identity") or {})
        if kind in kinds and len(drives) < timings.MOST_DRIVES:
            drives[record["host"], record["drive"]] = who, kind
    for record in timings.records(run.folder, timings.TEST, drives) if drives else ():
        rate = _rate(record)
        if rate:
            yield (*drives[record["host"], record["drive"]], rate)


def _rate(record: Record) -> float:
    """Return the rate of a test's fill in bytes/s; 0 without one, or of an array's."""
    fill = record.get("precondition") or {}
    is_of_drive = record["outcome"] in timings.WHOLE and not record.get("array")
    return float(fill["bytes_written"] / fill["seconds"]) if is_of_drive and fill.get("seconds") else 0.0
