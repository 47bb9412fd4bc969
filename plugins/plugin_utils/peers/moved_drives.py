# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drives that were moved to another host and were low there too: then it is the drive, not the host.

A serial number is a host's word, and a hostile host may say another's. So a move needs the operator's word as well: the
inventory has the drive on both hosts by one name, that is no place there. And the serial must never have been in two
places: not in one run, not at one time, not there and back. Pure.
"""

from __future__ import annotations

import collections
import itertools
import typing as t

from ..common import drives

Mapping = t.Mapping[str, t.Any]


class Claim(t.NamedTuple):
    """A host said in a run that it has this drive. until: when it was last measured there; "" where that is unknown or
    it was no outlier. low: it was an outlier, and the operator asked for it.
    """

    serial: str
    host: str
    label: str
    run: str
    started: str
    until: str = ""
    low: bool = False


def of_summary(summary: Mapping) -> list[Claim]:
    """Return what the hosts of a report/summary.json claimed."""
    run, started = summary["run"]["id"], summary["run"].get("started") or ""
    low = {
        (item["host"], item["serial"], item.get("drive")): str(item.get("until") or "")
        for item in (summary.get("fleet") or {}).get("outliers") or []
    }
    return of_drives(summary.get("drives") or [], run, started, low)


def of_drives(
    told: t.Iterable[Mapping], run: str, started: str, low: t.Mapping[tuple[str, str, t.Any], str]
) -> list[Claim]:
    """told: `drives` of judge.judge. low: {(host, serial, label) of an outlier: its `until`}."""
    claims = []
    for drive in told:
        host, label, serial = drive["host"], drive["drive"], str(drive.get("serial") or drive["drive"])
        if not drives.is_place(serial):
            key = (host, serial, label)
            claims.append(Claim(serial, host, label, run, started, low.get(key, ""), key in low))
    return claims


def last_measured(records: t.Iterable[Mapping]) -> dict[tuple[str, str], str]:
    """{(host, label): when its last test ended, by its host's clock}; without those of which one's end is unknown."""
    ends: dict[tuple[str, str], list[str]] = collections.defaultdict(list)
    for record in records:
        if record["kind"] == "test":
            ends[record["host"], record["drive"]].append(record.get("finished") or "")
    return {key: max(found) for key, found in ends.items() if all(found)}


def hosts_by_low_drive(claims: t.Iterable[Claim]) -> tuple[dict[str, list[str]], dict[str, str]]:
    """({serial: the hosts on which the drive was low, in the order of the runs}, {serial: how its claims contradict
    each other}). No serial is in both.
    """
    seen: dict[str, list[Claim]] = collections.defaultdict(list)
    for claim in sorted(claims, key=lambda claim: (claim.started, claim.run)):
        seen[claim.serial].append(claim)
    several = {serial: found for serial, found in seen.items() if len({claim.host for claim in found}) > 1}
    wrong = {serial: text for serial, found in several.items() if (text := _contradiction(found))}
    moved = {serial: _moved(found) for serial, found in several.items() if serial not in wrong}
    return {serial: hosts for serial, hosts in moved.items() if len(hosts) > 1}, wrong


def _contradiction(found: t.Sequence[Claim]) -> str:
    """found: of one serial, in the order of the runs."""
    for run, group in itertools.groupby(found, key=lambda claim: claim.run):
        hosts = list(dict.fromkeys(claim.host for claim in group))
        if len(hosts) > 1:
            return f"{_and(hosts)} both claim it in run {run}"
    for number, claim in enumerate(found):
        for other in found[number + 1 :]:
            if other.host != claim.host and claim.until > other.started:
                return f"{claim.host} measured it until {claim.until}, and {other.host} claims it since {other.started}"
    stays = [host for host, _group in itertools.groupby(claim.host for claim in found)]
    if len(stays) > len(set(stays)):
        return f"it is claimed by {', then '.join(stays[:5])}"
    return ""


def _moved(found: t.Sequence[Claim]) -> list[str]:
    """Return the hosts on which it was low, where that can be told of one drive: the operator called it the same on
    all, and on each but the last it is known when it was there.
    """
    low = [claim for claim in found if claim.low]
    known = all(claim.until and claim.started for claim in low if claim.run != found[-1].run)
    labels = {claim.label for claim in low}
    return list(dict.fromkeys(claim.host for claim in low)) if known and len(labels) == 1 else []


def _and(hosts: t.Sequence[str]) -> str:
    shown = list(hosts[:4]) + ([f"{len(hosts) - 4} more"] if len(hosts) > 4 else [])
    return f"{', '.join(shown[:-1])} and {shown[-1]}"
