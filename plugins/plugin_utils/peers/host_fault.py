# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Failed drives that failed only because of their host: it is low as a whole, they missed nothing but relative
criteria, and their neighbours there are as low. The verdict stays `fail`; the fault is not the drive's. Pure.
"""

from __future__ import annotations

import statistics
import typing as t

from ...module_utils.records.criterion import Criterion
from ...module_utils.run.criteria import is_met
from ..common.values import number
from ..verdict import judged_criteria
from . import host_effects, metric_kinds, moved_drives, robust_statistics

Mapping = t.Mapping[str, t.Any]
Record = dict[str, t.Any]
# (host, drive)
Place = tuple[str, str]
# (test, criterion) of a check
Which = tuple[str, str]


class Missed(t.NamedTuple):
    """A relative criterion that a drive missed on the bad side. share: its limit there. value: the figure as a share of
    its reference.
    """

    which: Which
    metric: str
    share: float
    value: float


def suspects(run: Mapping, judgement: Mapping) -> dict[Place, list[Missed]]:
    """Return what each failed drive missed, (host, drive), of those that missed relative criteria alone."""
    told = judged_criteria.criteria_by_name(run.get("criteria") or [])
    found = {}
    for drive in judgement["drives"]:
        # What a test misses that does not count, the drive did not fail for.
        failed = [test for test in drive["tests"] if test["verdict"] == "fail"]
        missed = [_missed(test, check, told) for test in failed for check in test["criteria"] if check["met"] is False]
        sound = [one for one in missed if one]
        if any(test.get("health") for test in failed):
            continue
        if sound and len(sound) == len(missed):
            found[drive["host"], drive["drive"]] = sound
    return found


def marked(
    run: Mapping,
    judgement: Record,
    fleet: Mapping,
    claims: t.Iterable[moved_drives.Claim],
    until: t.Mapping[Place, str],
) -> Record:
    """Return the judgement, with `host_fault` true of the drives that failed only because of their host, and a reason
    that says so before the others.

    fleet: low_hosts and outliers as fleet_summary.make gives them. claims: of moved_drives.of_summary, of the runs
      before. until: of moved_drives.last_measured.
    """
    found = _only_by_host(run, judgement, fleet)
    if found:
        low = {(host, _serial(drive), name): until.get((host, name), "") for (host, name), drive in found.items()}
        tonight = moved_drives.of_drives(judgement["drives"], run["run"]["id"], run.get("started") or "", low)
        moved, _wrong = moved_drives.hosts_by_low_drive([*claims, *tonight])
        found = {place: drive for place, drive in found.items() if _serial(drive) not in moved}
    if not found:
        return judgement
    made = [
        {**drive, "host_fault": True, "reasons": [_told(drive["host"]), *drive["reasons"]]}
        if (drive["host"], drive["drive"]) in found
        else drive
        for drive in judgement["drives"]
    ]
    return {**judgement, "drives": made}


def _serial(drive: Mapping) -> str:
    return str(drive.get("serial") or drive["drive"])


def _told(host: str) -> str:
    """Without a figure: what names the low host may be one of another model."""
    return f"the host's fault: {host} is slow as a whole, and the drive is no worse than the others in it"


def _only_by_host(run: Mapping, judgement: Mapping, fleet: Mapping) -> dict[Place, Mapping]:
    """Return the drives of low hosts, by (host, drive), whose neighbours have the share of the reference that they
    have.
    """
    mates = {(entry["host"], drive): entry for entry in fleet["low_hosts"] for drive in entry["drives"]}
    own = {(item["host"], item["drive"]) for item in fleet["outliers"] if item["cause"] == "drive"}
    chosen = {
        place: missed for place, missed in suspects(run, judgement).items() if place in mates and place not in own
    }
    if not chosen:
        return {}
    keyed = {(drive["host"], drive["drive"]): drive for drive in judgement["drives"]}
    told = judged_criteria.criteria_by_name(run.get("criteria") or [])
    # A figure of the same test and criterion as a share of its reference, of all drives of low hosts.
    shares = {place: _shares(keyed[place], told) for place in mates if place in keyed}
    found = {}
    for (host, name), missed in chosen.items():
        drive = keyed[host, name]
        # Of its own kind: a host may slow one of its models alone.
        others = [keyed[host, mate] for mate in mates[host, name]["drives"] if mate != name and (host, mate) in keyed]
        alike = [shares[host, mate["drive"]] for mate in others if _kind(mate) == _kind(drive)]
        if all(_as_low(one, [known.get(one.which) for known in alike]) for one in missed):
            found[host, name] = drive
    return found


def _kind(drive: Mapping) -> tuple[str, ...]:
    """Return what makes drives comparable; how a host's tool pads a name makes no other model (long_table.py)."""
    return tuple(" ".join(str(drive.get(name) or "").split()) for name in ("model", "firmware"))


def _as_low(missed: Missed, neighbours: t.Sequence[float | None]) -> bool:
    """Return whether the neighbours are low, too, and the drive would meet the criterion if they were its reference."""
    known = [value for value in neighbours if value is not None]
    middle = statistics.median(known) if len(known) + 1 >= host_effects.FEWEST_DRIVES else 0
    if middle <= 0:
        return False
    side = _bad_side(missed.metric)
    off = middle - 1 if side == "max" else 1 - middle
    return off > robust_statistics.PRACTICAL and _keeps(side, missed.share, missed.value / middle)


def _missed(test: Mapping, check: Mapping, told: t.Mapping[str, Criterion]) -> Missed | None:
    """None where the figure misses an absolute limit, or none on the bad side, or nobody can say what it was held
    to.
    """
    criterion, side = told.get(check["criterion"]), _bad_side(check["metric"])
    found = _share_of_reference(check, criterion) if criterion else None
    if criterion is None or found is None or not is_met(check["value"], criterion.min, criterion.max):
        return None
    if _keeps(side, check[side], check["value"]):
        return None  # It is too good to be true, which no slow host makes it.
    return Missed((test["test"], check["criterion"]), check["metric"], *found)


def _shares(drive: Mapping, told: t.Mapping[str, Criterion]) -> dict[Which, float]:
    found = {}
    for test in drive["tests"]:
        for check in test["criteria"] if test["counts"] else ():
            criterion = told.get(check["criterion"])
            share = _share_of_reference(check, criterion) if criterion else None
            if share:
                found[test["test"], check["criterion"]] = share[1]
    return found


def _share_of_reference(check: Mapping, criterion: Criterion) -> tuple[float, float] | None:
    """(the relative limit on the bad side, the figure as a share of what that is a share of); None where it cannot be
    told, as another limit is there that is the stricter one, or may be.
    """
    side = _bad_side(check["metric"])
    given = judged_criteria.limits_of(criterion, judged_criteria.RELATIVE)
    limits = [share for name, limit in given.items() if name.startswith(side) and (share := number(limit))]
    if len(limits) != 1 or not check[side] or check[side] == number(criterion.max if side == "max" else criterion.min):
        return None
    return limits[0], limits[0] * check["value"] / check[side]


def _keeps(side: str, limit: float | None, value: float) -> bool:
    return is_met(value, None, limit) if side == "max" else is_met(value, limit, None)


def _bad_side(metric: str) -> str:
    return "max" if metric_kinds.is_latency(metric) else "min"
