# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run out of the store as files for others: CSV, Parquet, JUnit, OCP ocptv, Prometheus' textfile. What was judged is
taken as it was, never judged anew.
"""

from __future__ import annotations

import collections
import datetime
import os
import typing as t

from ...module_utils.core.files import own_slug, write_atomic
from ..common import units
from ..common.drives import order
from ..report import download_files
from ..verdict.verdicts import VERDICTS
from . import frames, import_records, ocptv
from .database import Store, opened
from .schema import tables
from .store_requirements import StoreError, sa

Record = dict[str, t.Any]
PREFIX = "ssdlab_fleet_"


class StoredRun(t.NamedTuple):
    """A run in the store. judgement: as judge.judge gives it; hosts: {host: (state, message)}; times: {(host, drive,
    test): (started, finished)}.
    """

    run: Record
    judgement: Record
    hosts: dict[str, tuple[str | None, str | None]]
    times: dict[tuple[str, str, str], tuple[str | None, str | None]]


def load(store: Store, run_id: str) -> StoredRun:
    """Return all of a run but its figures over rounds. Raises StoreError where the store has no such run."""
    run, part, host, campaign, judgement, record = (
        getattr(tables(), name) for name in ("run", "part", "host", "campaign", "judgement", "record")
    )
    with store.reading() as connection:
        row = connection.execute(sa.select(run.c.id, run.c.content).where(run.c.run_id == run_id)).one_or_none()
        if row is None:
            raise StoreError(
                f"the store {store.name} has no run {run_id}: import its folder first (playbooks/import.yml)"
            )
        parts = part.join(host, part.c.host_id == host.c.id)
        hosts = connection.execute(
            sa.select(host.c.name, part.c.state, part.c.message).select_from(parts).where(part.c.run_id == row.id)
        ).all()
        judged = judgement.join(campaign, judgement.c.campaign_id == campaign.c.id).join(
            part, campaign.c.part_id == part.c.id
        )
        drives = (
            connection.execute(sa.select(judgement.c.content).select_from(judged).where(part.c.run_id == row.id))
            .scalars()
            .all()
        )
        kept = sa.select(record.c.content).select_from(record.join(part, record.c.part_id == part.c.id))
        tests = connection.execute(kept.where(part.c.run_id == row.id, record.c.kind == "test")).scalars().all()
    found = sorted(map(import_records.unpacked, drives), key=lambda drive: order(drive["host"], drive["drive"]))
    times = {
        (one["host"], one["drive"], one["test"]): (one["started"], one["finished"])
        for one in map(import_records.unpacked, tests)
    }
    counts = {verdict: sum(drive["verdict"] == verdict for drive in found) for verdict in reversed(VERDICTS)}
    judgement_ = {"verdicts": counts, "all_passed": bool(found) and counts["pass"] == len(found), "drives": found}
    return StoredRun(
        import_records.unpacked(row.content),
        judgement_,
        {name: (state, message) for name, state, message in hosts},
        times,
    )


def write(url: str, run_id: str, folder: str, formats: t.Sequence[str]) -> list[str]:
    """Write a run in these formats (of FORMATS) into a folder, each file as a whole; returns their paths. Raises
    StoreError, OSError.
    """
    unknown = sorted(set(formats) - set(FORMATS))
    if unknown:
        raise StoreError(f"{', '.join(unknown)}: not a format of export; known are {', '.join(FORMATS)}")
    with opened(url) as store:
        run = load(store, run_id)
    os.makedirs(folder, exist_ok=True)
    return [path for name in formats for path in FORMATS[name](url, run, folder)]


def csv(url: str, run: StoredRun, folder: str) -> list[str]:
    """figures.csv: the long table."""
    table = frames.long(url, runs=[run.run["run"]["id"]])
    # Texts come from hosts, and a spreadsheet takes some for formulas.
    table = table.assign(
        **{
            name: table[name].map(download_files.spreadsheet_cell)
            for name in ("run", "host", "serial", "model", "firmware", "link")
        }
    )
    path = os.path.join(folder, "figures.csv")
    return _aside(path, lambda aside: table.to_csv(aside, index=False, lineterminator="\n"))


def parquet(url: str, run: StoredRun, folder: str) -> list[str]:
    """figures.parquet: the long table."""
    table = frames.long(url, runs=[run.run["run"]["id"]])
    return _aside(
        os.path.join(folder, "figures.parquet"),
        lambda aside: table.to_parquet(aside, engine="pyarrow", compression="zstd", index=False),
    )


def _aside(path: str, make: t.Callable[[str], t.Any]) -> list[str]:
    """Make a file beside its place, then put it there."""
    aside = f"{path}.{os.getpid()}.part"
    try:
        make(aside)
        os.replace(aside, path)
    finally:
        if os.path.exists(aside):
            os.unlink(aside)
    return [path]


def junit(_url: str, run: StoredRun, folder: str) -> list[str]:
    """junit.xml, as the report writes it."""
    return _text(os.path.join(folder, "junit.xml"), download_files.junit(run.run, run.judgement))


def ocp(_url: str, run: StoredRun, folder: str) -> list[str]:
    """ocptv/<host>.<drive>.jsonl: a test run for each drive."""
    folder = os.path.join(folder, "ocptv")
    os.makedirs(folder, exist_ok=True)
    written: list[str] = []
    names = _file_names((drive["host"], drive["drive"]) for drive in run.judgement["drives"])
    for drive, name in zip(run.judgement["drives"], names):
        times = {
            test["test"]: run.times.get((drive["host"], drive["drive"], test["test"]), (None, None))
            for test in drive["tests"]
        }
        lines = ocptv.lines(run.run, drive, run.hosts.get(drive["host"], (None, None)), times)
        written += _text(os.path.join(folder, name + ".jsonl"), lines)
    return written


def _file_names(drives: t.Iterable[tuple[str, str]]) -> list[str]:
    """Return a name for the file of each (host, drive), none twice, whatever their own names are."""
    pairs = list(drives)
    counts = collections.Counter(".".join(pair) for pair in pairs)
    texts = [".".join(pair) if counts[".".join(pair)] == 1 else f"{'.'.join(pair)}@{pair[0]}" for pair in pairs]
    return [own_slug(text, texts) for text in texts]


def prometheus(_url: str, run: StoredRun, folder: str) -> list[str]:
    """ssdlab_fleet.prom, for node_exporter's textfile collector."""
    return _text(os.path.join(folder, "ssdlab_fleet.prom"), prometheus_text(run))


def prometheus_text(run: StoredRun) -> str:
    """Return a run as gauges in base units, one family after the other, without timestamps, which the textfile
    collector refuses.
    """
    run_id = run.run["run"]["id"]
    families: dict[str, tuple[str, list[tuple[t.Mapping[str, t.Any], float]]]] = {}

    def add(name: str, about: str, labels: t.Mapping[str, t.Any], value: float) -> None:
        families.setdefault(PREFIX + name, (about, []))[1].append((labels, value))

    for verdict, count in run.judgement["verdicts"].items():
        add("drives", "Drives of the run by verdict.", {"run": run_id, "verdict": verdict}, count)
    started = _seconds(run.run.get("started"))
    if started is not None:
        add("run_started_timestamp_seconds", "When the run was started.", {"run": run_id}, started)
    for drive in run.judgement["drives"]:
        labels = {
            "run": run_id,
            **{name: drive[name] or "" for name in ("host", "drive", "serial", "model", "firmware")},
        }
        add("drive_verdict", "1 for the verdict of a drive.", {**labels, "verdict": drive["verdict"]}, 1)
        at_fault = "1 for a drive that failed only because its host is low as a whole."
        add("drive_host_fault", at_fault, labels, 1 if drive.get("host_fault") else 0)
        for test in drive["tests"]:
            for metric, value in test["metrics"].items():
                if value is not None:
                    name, factor = _gauge(metric)
                    add(
                        name,
                        f"{metric} of a test, averaged over its window.",
                        {**labels, "test": test["test"]},
                        value * factor,
                    )
    return "".join(_family(name, *families[name]) for name in sorted(families))


def _gauge(metric: str) -> tuple[str, float]:
    """Return a metric's name and factor in Prometheus' base units: seconds, not microseconds."""
    unit = units.base(metric)
    if unit == "µs":
        return metric.replace("_us", "_seconds"), 1e-6
    return (metric.replace("bandwidth", "bandwidth_bytes_per_second"), 1.0) if unit == "bytes/s" else (metric, 1.0)


def _family(name: str, about: str, samples: t.Iterable[tuple[t.Mapping[str, t.Any], float]]) -> str:
    lines = [f"# HELP {name} {about}", f"# TYPE {name} gauge"]
    for labels, value in samples:
        lines.append(
            f"{name}{{{','.join(f'{label}={_quoted(text)}' for label, text in labels.items())}}} {float(value)!r}"
        )
    return "\n".join(lines) + "\n"


def _quoted(text: t.Any) -> str:
    return '"' + str(text).replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"') + '"'


def _seconds(time: str | None) -> float | None:
    """Seconds since 1970 of a record's time."""
    try:
        return datetime.datetime.fromisoformat(str(time).replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None


def _text(path: str, text: str) -> list[str]:
    write_atomic(path, text)
    return [path]


FORMATS: dict[str, t.Callable[[str, StoredRun, str], list[str]]] = {
    "csv": csv,
    "parquet": parquet,
    "junit": junit,
    "ocptv": ocp,
    "prometheus": prometheus,
}
