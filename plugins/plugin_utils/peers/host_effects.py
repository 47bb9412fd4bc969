# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Host or drive: drives are nested in hosts, so only several drives of a host can speak for it. Pure, over what
outliers.held made.
"""

from __future__ import annotations

import math
import typing as t

from . import metric_kinds, robust_statistics
from .host_diff import describe_differences, flat, peers
from .long_table import FIGURE, PEERS
from .scipy_imports import numpy as np
from .scipy_imports import pandas

# Of one host and model; with fewer it can't be told.
FEWEST_DRIVES = 4
# Of a low host's drives, how many have to be worse than the practical threshold.
MOST_OF_THEM = 0.75
# Hosts with FEWEST_DRIVES beside it, from which on the spread of their medians counts.
FEWEST_HOSTS = 5
# A low host has to be so many times as far off as hosts go on the good side (robust_statistics.good_limit). By
# simulation (tests/bench/fleet_statistics.py): of 96 good drives whose noise has long tails and is their hosts' to a
# half, at 1.6 one fleet in 13 had a low host.
BEYOND_GOOD = robust_statistics.SideLimit(math.log(2.1))
# The variance of a normal sample's median is about so many times that of its mean.
_OF_MEDIAN = math.pi / 2

Mapping = t.Mapping[str, t.Any]


def effects(judged: pandas.DataFrame) -> pandas.DataFrame:
    """Hosts whose drives are worse than the other hosts' of their group: FIGURE, host, serials, by (a share), z, p.

    A host is low where most of its drives are worse by more than robust_statistics.PRACTICAL and their median stands
    out of the spread of the others, drives and, where there are enough, hosts; at the false discovery rate over all
    hosts and figures, and beyond what hosts do on the good side.
    """
    columns = [*FIGURE, "host", "serials", "by", "z", "p"]
    enough = judged[judged["p"].notna()]
    if len(enough):
        enough = enough[enough.groupby([*FIGURE, "host"], sort=False)["value"].transform("size") >= FEWEST_DRIVES]
    if enough.empty:
        return pandas.DataFrame(columns=columns)
    comparisons = enough.groupby([*FIGURE, "host"], sort=False).ngroups
    # Whoever is not worse against all is not worse against the others either: most hosts need no closer look.
    worse = (
        (enough["by"] > robust_statistics.PRACTICAL / 2)
        .groupby([enough[name] for name in (*FIGURE, "host")], sort=False)
        .transform("mean")
    )
    suspects = enough[worse >= MOST_OF_THEM].groupby([*FIGURE, "host"], sort=False).groups
    groups = judged.groupby(list(FIGURE), sort=False).indices if suspects else {}
    found = [_effect(judged.iloc[groups[key[:-1]]], key) for key in suspects]
    table = pandas.DataFrame([row for row in found if row], columns=columns)
    if len(table):
        table = table[robust_statistics.discoveries(table["p"], of=comparisons)]
    return table[_beyond_good(table, enough)].reset_index(drop=True) if len(table) else table


def _beyond_good(found: pandas.DataFrame, enough: pandas.DataFrame) -> np.ndarray:
    """Return which of these are farther off than the medians of their group's hosts go on the good side in any figure;
    all, where there are too few hosts to show that.
    """
    stands = np.ones(len(found), dtype=bool)
    groups = enough.groupby(list(PEERS), sort=False).indices
    for key, places in found.groupby(list(PEERS), sort=False).indices.items():
        off: dict[tuple[str, str, str], float] = {}
        for (cell, metric), rows in enough.iloc[groups[key]].groupby(["cell", "metric"], sort=False):
            medians = rows.groupby("host", sort=False)["value"].median()
            if len(medians) > FEWEST_HOSTS:
                z = robust_statistics.score_leave_one_out(metric, medians.to_numpy()).z
                off.update({(cell, metric, host): each for host, each in zip(medians.index, z)})
        best: dict[str, float] = {}
        for (_cell, _metric, host), z in off.items():
            best[host] = max(best.get(host, 0.0), -z)
        limit = robust_statistics.good_limit(np.array(list(best.values())), np.zeros(len(best), dtype=int), BEYOND_GOOD)
        for place in places:
            row = found.iloc[place]
            stands[place] = off.get((row["cell"], row["metric"], row["host"]), np.inf) > limit.max(initial=0.0)
    return stands


def _effect(group: pandas.DataFrame, key: tuple[t.Any, ...]) -> tuple[t.Any, ...] | None:
    metric, host = key[-2], key[-1]
    mine, rest = group[group["host"] == host], group[group["host"] != host]
    if len(rest) < robust_statistics.FEWEST_PEERS:
        return None
    drives = robust_statistics.score_against(metric, mine["value"], rest["value"])
    if np.mean(np.asarray(drives.by) > robust_statistics.PRACTICAL) < MOST_OF_THEM:
        return None
    median = np.exp(np.log(mine["value"]).median()) if metric_kinds.is_tail(metric) else mine["value"].median()
    as_one = robust_statistics.score_against(metric, [median], rest["value"])
    # The median of several drives spreads less than one drive.
    sharper = np.sqrt((1 + _OF_MEDIAN / len(rest)) / (_OF_MEDIAN / len(mine) + _OF_MEDIAN / len(rest)))
    z = float(as_one.z[0] * sharper)
    p = float(robust_statistics.p_value(z, len(rest)))
    of_hosts = rest.groupby("host")["value"].agg(["median", "size"])
    medians = of_hosts[of_hosts["size"] >= FEWEST_DRIVES]["median"]
    if len(medians) >= FEWEST_HOSTS:
        among = robust_statistics.score_against(metric, [median], medians)
        z, p = min(z, float(among.z[0])), max(p, float(among.p[0]))
    return (*key, mine["serial"].tolist(), float(as_one.by[0]), z, p) if z > robust_statistics.Z_LIMIT else None


def explained(judged: pandas.DataFrame, low: t.Collection[str]) -> np.ndarray:
    """Return which outliers are their low host's: no worse than the other drives of that host."""
    result = np.zeros(len(judged), dtype=bool)
    on_low = judged[judged["host"].isin(list(low))]
    by_host = on_low.groupby([*FIGURE, "host"], sort=False).groups if on_low["outlier"].any() else {}
    for place in on_low.index[on_low["outlier"]]:
        own = judged.loc[place]
        mates = by_host[tuple(own[name] for name in (*FIGURE, "host"))].drop([place])
        if len(mates) + 1 < FEWEST_DRIVES:
            continue
        values = np.append(judged.loc[mates, "value"], own["value"])
        speeds = robust_statistics.speed(own["metric"], values)
        z = robust_statistics.modified_z(own["metric"], speeds[-1:], np.median(speeds[:-1]), own["mad"])[0]
        by = robust_statistics.worse_by(own["metric"], values[-1:], np.median(values[:-1]))[0]
        result[place] = by <= robust_statistics.PRACTICAL or z <= robust_statistics.Z_LIMIT
    return result


def differences(host: str, snapshots: t.Mapping[str, Mapping], others: t.Iterable[str]) -> list[str]:
    """Return what a host's snapshot (host_brief.py) has otherwise than most of the others': "bios 2.4 where 7 of
    8 others have 2.6".
    """
    rest = [flat(snapshots[name]) for name in others if name != host and snapshots.get(name)]
    return describe_differences(flat(snapshots.get(host) or {}), peers(rest))
