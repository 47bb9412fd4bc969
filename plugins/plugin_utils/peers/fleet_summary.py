# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet of report/summary.json (fleet_record.py), from a run's records. Pure."""

from __future__ import annotations

import typing as t

from ...module_utils.records import base
from ...module_utils.records.base import Json
from ..common import drives, units
from . import (
    host_effects,
    metric_kinds,
    moved_drives,
    outliers,
    previous_runs,
    repeatability,
    robust_statistics,
    trends,
)
from .fleet_record import Cause, ClaimedTwice, LowHost, MarginComparison, Outlier
from .long_table import FIGURE, of_run, of_summary, with_distinct_serials
from .scipy_imports import pandas

Mapping = t.Mapping[str, t.Any]
# What differs by less is as far off.
_DIGITS = 9


class _Evidence(t.NamedTuple):
    """What tells an outlier's cause. moved, contradicted: of moved_drives.hosts_by_low_drive. until: of
    moved_drives.last_measured.
    """

    moved: t.Mapping[str, list[str]]
    contradicted: t.Mapping[str, str]
    until: t.Mapping[tuple[str, str], str]
    low_hosts: t.Collection[str]


class PeerStanding(t.NamedTuple):
    """Drives and hosts against their peers. judged: of outliers.held."""

    judged: pandas.DataFrame
    outliers: list[Outlier]
    claimed_twice: list[ClaimedTwice]
    low_hosts: list[LowHost]

    def section(self) -> Json:
        """Return what the section of summary.json has of them."""
        names = ("outliers", "claimed_twice", "low_hosts")
        return {name: base.to_json(getattr(self, name)) for name in names}


class EarlierRuns(t.NamedTuple):
    """The runs of this name before this one. past: without their reports. margin: of repeatability.compare with
    the newest.
    """

    past: previous_runs.Past
    margin: MarginComparison | None


def before(run: Mapping, records: t.Sequence[Mapping], judgement: Mapping, earlier: t.Iterable[Mapping]) -> EarlierRuns:
    """earlier: summaries, newest first; each is read when its turn comes, and let go. The others as of make."""
    margins = repeatability.Newest(run, judgement, records)
    past = previous_runs.of_summaries(map(margins.note, earlier))
    return EarlierRuns(past, margins.told)


def make(
    run: Mapping,
    records: t.Sequence[Mapping],
    valid: t.Container[tuple[str, str, str]],
    judgement: Mapping,
    earlier: EarlierRuns,
    baseline: tuple[str, Mapping | None] = ("", None),
) -> Json:
    """Return the section. valid: judge.valid_tests. judgement: of judge.judge. earlier: of `before`.

    baseline: the id of a run to compare with ("": none) and its summary, None where it has no report.
    """
    found = standing(run, records, valid, judgement, earlier.past.claims)
    judged, flagged = found.judged, int(found.judged["outlier"].sum())
    same = with_distinct_serials(judged)
    told = {
        "groups": _groups(judged),
        **found.section(),
        "too_few": [{**row, "needed": robust_statistics.FEWEST_PEERS} for row in _plain(outliers.too_few(judged))],
        "comparisons": int(judged["p"].notna().sum()),
        "flagged": flagged,
        "expected_false": robust_statistics.FALSE_DISCOVERY_RATE * max(1, flagged),
        "firmwares": _plain(trends.firmwares(judged)),
        "margin": base.to_json(earlier.margin),
        "baseline": _baseline(same, run["run"]["id"], *baseline),
    }
    low_hosts, measured = {entry.host for entry in found.low_hosts}, set(same["host"])
    earlier.past.figures.add(same)
    # Grouping millions of figures is what takes most memory: of this run's they are enough.
    del found, judged, same
    return {**told, **_over_runs(judgement, earlier.past, low_hosts, measured)}


def _over_runs(
    judgement: Mapping, past: previous_runs.Past, low: t.Collection[str], measured: t.AbstractSet[str]
) -> Json:
    """{since, nights, repeatability}. past: with the figures of the run itself behind those of the nights. measured:
    the hosts that have figures in it.
    """
    count = len(past.runs)
    table = past.figures.table()
    last, before = (table.iloc[: past.figures.end(runs)] for runs in (min(1, count), count))
    now = table.iloc[past.figures.end(count) :]
    # Where there is but the last run, `since` tells of it.
    compared = {"runs": list(past.runs), "changes": _plain(trends.regressions(now, [before]))} if count > 1 else None
    since = _since(judgement, past.last, low, measured) if past.last else None
    return {
        "since": since and {**since, "changes": _plain(trends.regressions(now, [last]))},
        "nights": compared,
        "repeatability": _plain(trends.repeatability(table)) if len(before) else [],
    }


def standing(
    run: Mapping,
    records: t.Sequence[Mapping],
    valid: t.Container[tuple[str, str, str]],
    judgement: Mapping,
    claims: t.Iterable[moved_drives.Claim] = (),
) -> PeerStanding:
    """Drives and hosts against their peers. claims: of moved_drives.of_summary, of the runs before. The others as
    of make.
    """
    judged = outliers.held(of_run(run, records, valid))
    snapshots = {record["host"]: record.get("snapshot") or {} for record in records if record["kind"] == "host"}
    low = host_effects.effects(judged)
    flagged = judged[judged["outlier"].astype(bool)]
    own = flagged[~host_effects.explained(judged, set(low["host"]))[flagged.index]]
    until = moved_drives.last_measured(records)
    low_now = {(row.host, row.serial, row.drive): until.get((row.host, row.drive), "") for row in own.itertuples()}
    claims = [
        *claims,
        *moved_drives.of_drives(judgement["drives"], run["run"]["id"], run.get("started") or "", low_now),
    ]
    moved, contradicted = moved_drives.hosts_by_low_drive(claims)
    return PeerStanding(
        judged,
        _outliers(own, judged, _Evidence(moved, contradicted, until, set(low["host"]))),
        [ClaimedTwice(serial=serial, told=told) for serial, told in contradicted.items()],
        _low_hosts(low, judged, snapshots),
    )


def _before(summary: Mapping) -> pandas.DataFrame:
    """Return the figures of an earlier run, by names that its drives have in this one."""
    return with_distinct_serials(of_summary(summary))


def _plain(table: pandas.DataFrame) -> list[Json]:
    """Rows as JSON has them."""
    return [
        {key: value.item() if hasattr(value, "item") else value for key, value in row.items()}
        for row in table.to_dict("records")
    ]


def _groups(judged: pandas.DataFrame) -> list[Json]:
    """Return a row a figure of a group, with its worst drive."""
    if judged.empty:
        return []
    lower = ~judged["metric"].map(metric_kinds.is_latency).astype(bool)
    order = judged["value"].where(lower, -judged["value"])
    places = order.groupby([judged[name] for name in FIGURE], sort=False).idxmin()
    worst = judged.loc[places.to_numpy(), ["host", "drive", "value"]]
    return [{**row, "worst": bad} for row, bad in zip(_plain(outliers.groups(judged)), _plain(worst))]


def _outliers(
    own: pandas.DataFrame,
    judged: pandas.DataFrame,
    known: _Evidence,
) -> list[Outlier]:
    if own.empty:
        return []
    rates = own[own["metric"].map(metric_kinds.is_rate).astype(bool)]
    slow = set(zip(rates["host"], rates["drive"], rates["test"]))
    alike = judged.groupby([*FIGURE, "host"], sort=False)["value"].transform("size")
    told = []
    order = own.assign(far=-own["z"].round(_DIGITS), no_iops=~own["metric"].str.endswith("iops"))
    order = order.sort_values(["far", "host", "drive", "no_iops", "test", "cell", "metric"])
    for place, row in order.iterrows():
        mates = int(alike[place])
        cause: Cause = "drive"
        why = f"{mates} similar drives on {row['host']} do not point to the host"
        if row["serial"] in known.moved:
            cause, why = "drive", f"it was low on {' and on '.join(known.moved[row['serial']])}"
        elif row["host"] in known.low_hosts and (row["host"], row["drive"], row["test"]) not in slow:
            # Tails and shares within a time follow a slow host by leaps; a rate does not.
            cause, why = "can't tell", f"{row['host']} is low as a whole, and no rate of the drive stands out there"
        elif mates < host_effects.FEWEST_DRIVES:
            cause, why = (
                "can't tell",
                (
                    f"{row['host']} has {mates} drive{'s' if mates > 1 else ''} like it; "
                    f"{host_effects.FEWEST_DRIVES} tell a host from a drive"
                ),
            )
        if row["serial"] in known.contradicted:
            why += f"; its serial number proves nothing: {known.contradicted[row['serial']]}"
        about = {name: row[name] for name in ("host", "drive", "serial", "model", "firmware", "test", "cell", "metric")}
        told.append(
            Outlier(
                **about,
                value=float(row["value"]),
                median=float(row["median"]),
                by_pct=100 * float(row["by"]),
                z=float(row["z"]),
                n=int(row["n"]),
                until=known.until.get((row["host"], row["drive"]), ""),
                cause=cause,
                why=why,
                reason=reason(row["metric"], row["value"], row["median"], row["by"], row["n"] - 1),
            )
        )
    return told


def reason(metric: str, value: float, median: float, by: float, peers: int) -> str:
    """As a sentence: "write_iops 81,000 is 19 % worse than the median of 11 peers, 100,000"."""
    shown, middle = units.format_distinct(metric, value, median)
    return f"{metric} {shown} is {100 * by:.0f} % worse than the median of {peers:.0f} peers, {middle}"


def _low_hosts(low: pandas.DataFrame, judged: pandas.DataFrame, snapshots: t.Mapping[str, Mapping]) -> list[LowHost]:
    """One entry a host, told by its rate that is lowest, else by the figure that is worst; the worst rate first,
    and of what is as far off the first by name, so that the order of records is no matter.
    """
    told = []
    for host, rows in low.groupby("host", sort=False):
        rates = rows[rows["metric"].map(metric_kinds.is_rate).astype(bool)]
        # IOPS and bandwidth of one block size say the same, but for the last digits; people know a drive by its IOPS.
        order = (rates if len(rates) else rows).assign(
            as_far=lambda table: -table["by"].round(_DIGITS),
            no_iops=lambda table: ~table["metric"].str.endswith("iops"),
        )
        worst = order.sort_values(["as_far", "no_iops", "test", "cell", "metric"]).iloc[0]
        others = judged[(judged["model"] == worst["model"]) & (judged["host"] != host)]["host"].unique()
        serials = {serial for each in rows["serials"] for serial in each}
        mine = judged[(judged["host"] == host) & judged["serial"].isin(serials)]["drive"].unique()
        about = {name: worst[name] for name in ("model", "firmware", "test", "cell", "metric")}
        differs = host_effects.differences(str(host), snapshots, others)
        told.append(
            LowHost(
                host=str(host),
                by_pct=100 * float(worst["by"]),
                drives=sorted(mine.tolist(), key=drives.order),
                differs=differs,
                **about,
                z=float(worst["z"]),
            )
        )
    # Rates first: a tail is soon worse by half, and says less.
    return sorted(
        told,
        key=lambda entry: (
            not metric_kinds.is_rate(entry.metric),
            -round(entry.by_pct, _DIGITS),
            drives.order(entry.host),
        ),
    )


def _since(
    judgement: Mapping, before: previous_runs.Night, low: t.Collection[str], measured: t.AbstractSet[str]
) -> Json:
    """Return what changed since the run before: verdicts and low hosts."""
    was_there = {(drive["host"], drive["drive"]): drive["verdict"] for drive in before.drives}
    # Moved, or on a host that has another name now: known where its serial number is one drive's alone, then and now.
    then, now = _by_serial(before.drives), _by_serial(judgement["drives"])
    verdicts = []
    for drive in judgement["drives"]:
        key, serial = (drive["host"], drive["drive"]), (drive.get("model"), drive.get("serial"))
        moved = len(now.get(serial, ())) == 1 == len(then.get(serial, ()))
        was = was_there.get(key) or (then[serial][0] if moved else None)
        if was != drive["verdict"]:
            verdicts.append({"host": key[0], "drive": key[1], "before": was, "now": drive["verdict"]})
    both = before.measured & measured
    return {
        "run": before.run,
        "verdicts": verdicts,
        "hosts_low": sorted((before.measured - before.low) & set(low), key=drives.order),
        "hosts_well": sorted((both & before.low) - set(low), key=drives.order),
    }


def _by_serial(given: t.Iterable[Mapping]) -> dict[tuple[t.Any, ...], list[str]]:
    """Return the verdicts of the drives of each model and serial number."""
    found: dict[tuple[t.Any, ...], list[str]] = {}
    for drive in given:
        if drive.get("serial"):
            found.setdefault((drive.get("model"), drive["serial"]), []).append(drive["verdict"])
    return found


def _baseline(judged: pandas.DataFrame, own_id: str, run_id: str, summary: Mapping | None) -> Json | None:
    if not run_id:
        return None
    if run_id == own_id:
        return {"run": run_id, "problem": f"the baseline {run_id} is this run itself: name another", "changes": []}
    if summary is None:
        return {
            "run": run_id,
            "problem": f"there is no report of the baseline {run_id}: run report.yml with ssd_run_id={run_id}",
            "changes": [],
        }
    before = _before(summary)
    figures = trends.side_by_side(judged, before)
    return {"run": run_id, "changes": _plain(trends.regressions(judged, [before])), "figures": base.to_json(figures)}
