# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the default store costs: time and peak memory of an import, of reading the long table and of judging the newest
run against the others, each in a process of its own; and why figures are vectors.

    python tests/bench/store.py [--drives 100 1000 10000] [--runs 30] [--layouts]

Four drives a host, 60 metrics a drive (a test's own twelve, and those of four cells), which spread by 1 % from drive to
drive and by 0.5 % from night to night. The first run comes through the importer from a folder, the others are copies of
its rows: 30 real folders would take as many times the import that is shown. Seconds are of the clock, and in brackets
of the CPU, which a busy machine changes less. It works in TMPDIR.
--layouts instead compares the same values as rows or vectors of SQLite, and in DuckDB.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
import typing as t
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "playbooks" / "collections"))

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store import database, frames, history, importer
from ansible_collections.ssdlab.fleet.tests.fixtures.planned import spec_json

FIGURES = ("iops", "bandwidth", "mean_latency_us", "max_latency_us")
METRICS = [side + figure for side in ("", "read_", "write_") for figure in FIGURES]
CELLS = [f"rand-4k-w{mix}-tc4-qd32" for mix in (100, 65, 35, 5)]
RUN_ID, HOST_DRIVES = "20261121T130000Z-bench", 4
TIME = "2026-11-21T13:00:00.000Z"
PER_DRIVE = len(METRICS) * (1 + len(CELLS))
IDENTITY = {"wwn": None, "size_bytes": 960_197_124_096, "logical_block_size_bytes": 512}
# Of a test in its journal, and in results.jsonl.
OF_TEST = {"test": "iops", "attempt": 1}
PLANNED = spec_json(
    name="iops",
    rounds={"max": 1},
    cells=[{"id": cell, "read_pct": 50, "runtime_s": 60} for cell in CELLS],
)
ENDED = {"ended": None, "reasons": [], "disturbed": [], "conditions": [], "vendor_settings": None, "wear": None}
CELL = {"round": 1, "seed": 1, "causes": [], "seconds": 60, "gap_s": None, "raw": "x"}
TEST = {
    **OF_TEST,
    "outcome": "complete",
    "reasons": [],
    "rounds": 1,
    "steady_state": [],
    "title": "IOPS",
    "started": TIME,
    "finished": TIME,
    "purge": None,
    "precondition": None,
    "not_applicable": [],
}


def values(seed: int) -> dict:
    """Twelve figures that differ between drives."""
    spread = random.Random(seed)
    return {name: 1000.0 * spread.gauss(1, 0.01) for name in METRICS}


def events(number: int) -> t.Iterator[dict]:
    """What a host's journal has of the test of a drive."""
    yield {"event": "test_started", "title": "IOPS"}
    yield {"event": "measurement_started", "user_capacity_bytes": IDENTITY["size_bytes"]}
    for at, cell in enumerate(CELLS, 1):
        found = values(number + 1_000_003 * at)
        read, write = ({name: found[f"{side}_{name}"] for name in FIGURES} for side in ("read", "write"))
        for side in (read, write):
            side.update(bandwidth_bytes_per_s=side.pop("bandwidth"), ios=1000, bytes=4096, percentiles_us={})
        yield {"event": "cell", "cell": cell, "read": read, "write": write, **CELL}
    yield {"event": "round", "round": 1, "elapsed_s": 240}
    yield {"event": "test_finished", **ENDED}


def folder(results: Path, drives: int) -> Path:
    """A run's folder."""
    run_dir = results / RUN_ID
    asked, lines, planned = [], [], {}
    for number in range(drives):
        host, drive = f"rack{number // 160}-{number // HOST_DRIVES}", f"SN{number:06}"
        envelope = {"schema_version": 1, "time": TIME, "run_id": RUN_ID, "host": host}
        if number % HOST_DRIVES == 0:
            lines.append({**envelope, "kind": "host", "state": "ok", "message": ""})
            (run_dir / "raw" / host).mkdir(parents=True)
        identity = {**IDENTITY, "serial": drive, "model": f"MODEL {number % 3}", "firmware": f"FW{number % 2}"}
        told = {"path": "/dev/nvme0n1", "identity": identity, "outcome": "complete", "message": "", "refusals": []}
        lines.append({**envelope, "kind": "drive", "drive": drive, **told})
        lines.append({**envelope, "kind": "test", "drive": drive, **TEST, "metrics": values(number)})
        with open(run_dir / "raw" / host / "journal.jsonl", "a", encoding="utf-8") as out:
            out.writelines(
                json.dumps({**envelope, "drive": drive, **OF_TEST, **event}) + "\n" for event in events(number)
            )
        planned.setdefault(host, []).append({"drive": drive, "tests": [PLANNED]})
        asked.append({"host": host, "drive": drive, "tests": ["iops"], "engine": "io_uring"})
    for host, of_host in planned.items():
        (run_dir / "raw" / host / "plan.json").write_text(json.dumps({"drives": of_host}))
    run = {
        "schema_version": 1,
        "run": {"id": RUN_ID, "name": "bench"},
        "started": TIME,
        "asked": asked,
        "criteria": [],
        "tests": {"iops": {"title": "IOPS", "cells": list(CELLS), "rounds": {"max": 25}}},
    }
    (run_dir / "run.json").write_text(json.dumps(run))
    (run_dir / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return run_dir


def multiply(path: str, runs: int) -> None:
    """Copy the first run's rows, each figure a little different, so that the store has so many runs. The imported one
    stays the newest.
    """
    import numpy

    noise = numpy.random.default_rng(1)
    connection = sqlite3.connect(path)
    ((parts, campaigns),) = connection.execute(
        "SELECT (SELECT max(id) FROM ssd_part), (SELECT max(id) FROM ssd_campaign)"
    )
    kept = ", ".join(_columns(connection, "ssd_measurement", but=("id", "campaign_id", "figures")))
    for number in range(1, runs):
        started = f"2026-10-{number:02}T13:00:00Z"
        connection.execute(
            "INSERT INTO ssd_run SELECT ?, run_id || ?, name, ?, content FROM ssd_run WHERE id = 1",
            (number + 1, f"-{number}", started),
        )
        _copied(connection, "ssd_part", {"id": number * parts, "run_id": number}, "run_id = 1")
        _copied(connection, "ssd_campaign", {"id": number * campaigns, "part_id": number * parts}, f"id <= {campaigns}")
        rows = connection.execute(
            f"SELECT campaign_id + ?, {kept}, figures FROM ssd_measurement WHERE campaign_id <= ?",
            (number * campaigns, campaigns),
        ).fetchall()
        figures = numpy.frombuffer(b"".join(row[-1] for row in rows)).reshape(len(rows), -1)
        figures = figures * (1 + 0.005 * noise.standard_normal(figures.shape))
        connection.executemany(
            f"INSERT INTO ssd_measurement (campaign_id, {kept}, figures) VALUES ({', '.join('?' * len(rows[0]))})",
            [(*row[:-1], vector.tobytes()) for row, vector in zip(rows, figures)],
        )
    connection.commit()
    connection.close()


def _columns(connection: sqlite3.Connection, table: str, but: t.Collection[str] = ()) -> list[str]:
    """As the store has them now."""
    return [row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[1] not in but]


def _copied(connection: sqlite3.Connection, table: str, moved: dict[str, int], of: str) -> None:
    """Copy rows, with the keys `moved` by so much."""
    names = _columns(connection, table)
    values = ", ".join(f"{name} + {moved[name]}" if name in moved else name for name in names)
    connection.execute(f"INSERT INTO {table} ({', '.join(names)}) SELECT {values} FROM {table} WHERE {of}")


def measured(step: str, place: str) -> dict:
    """Run a step of this file in a process of its own: its {seconds, peak_mib, …}."""
    done = subprocess.run(
        [sys.executable, __file__, "--step", step, "--place", place], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)


def one_step(step: str, place: str) -> None:
    """Import, read or judge, and print what that took."""
    url, began = database.resolve("", place), time.monotonic()
    told = {}
    if step == "import":
        with database.opened(url, make=True) as store:
            told["hosts"] = importer.import_run(store, os.path.join(place, RUN_ID)).hosts
    elif step == "judge":
        found = history.judged(url)
        told = {
            "rows": len(found.figures),
            "nights": len(found.against),
            "flagged": int(found.figures["outlier"].sum()),
            "changes": len(found.changes),
        }
    else:
        table = frames.long(url)
        told["rows"] = len(table)
        told["table_mib"] = int(table.memory_usage(deep=True).sum()) >> 20
    seconds = time.monotonic() - began
    used = resource.getrusage(resource.RUSAGE_SELF)
    took = f"{seconds:.1f} s ({used.ru_utime + used.ru_stime:.1f} s)"
    print(json.dumps({**told, "took": took, "peak_mib": used.ru_maxrss >> 10}))


def sizes(drives: list[int], runs: int) -> None:
    """Print the table."""
    head = (
        "drives",
        "runs",
        "values",
        "store on disk",
        "import of one run",
        "again",
        "read all",
        "judge",
        "peak of import",
        "of reading",
        "of judging",
    )
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head), flush=True)
    for number in drives:
        with tempfile.TemporaryDirectory(prefix="ssdlab-bench-") as place:
            folder(Path(place), number)
            steps = [measured("import", place), measured("import", place)]
            multiply(os.path.join(place, database.FILE), runs)
            steps += [measured("read", place), measured("judge", place)]
            first, again, read, judge = steps
            assert (
                read["rows"] == number * runs * PER_DRIVE
                and judge["rows"] == number * PER_DRIVE
                and judge["nights"] == runs - 1
            ), steps
            size = os.path.getsize(os.path.join(place, database.FILE)) >> 20
            peaks = [f"{step['peak_mib']} MiB" for step in (first, read, judge)]
            row = (f"{number:,}", runs, f"{read['rows']:,}", f"{size} MiB", *(step["took"] for step in steps), *peaks)
            print("| " + " | ".join(map(str, row)) + " |", flush=True)


def layouts(count: int) -> None:
    """The same values as rows of SQLite, as vectors of SQLite, and as rows of DuckDB where that is installed."""
    import numpy

    figures = numpy.random.default_rng(1).random((count // PER_DRIVE, PER_DRIVE))
    kinds = {"SQLite, a row each": _rows, "SQLite, a vector a measurement": _vectors, "DuckDB, a row each": _duckdb}
    print("| layout | write | read | on disk |\n|---|---|---|---|")
    for name, run in kinds.items():
        with tempfile.TemporaryDirectory(prefix="ssdlab-bench-") as place:
            path = os.path.join(place, "store")
            try:
                wrote, read = run(path, figures)
            except ImportError:
                continue
            print(f"| {name} | {wrote:.1f} s | {read:.1f} s | {os.path.getsize(path) / 1e6:.0f} MB |", flush=True)


def _timed(write, read) -> tuple[float, float]:
    began = time.monotonic()
    write()
    between = time.monotonic()
    read()
    return between - began, time.monotonic() - between


def _filler(connection, statement, rows):
    def fill():
        connection.executemany(statement, rows)
        connection.commit()

    return fill


def _rows(path, figures):
    import numpy

    connection = sqlite3.connect(path)
    connection.execute(
        "CREATE TABLE v (m INTEGER NOT NULL, f INTEGER NOT NULL, v REAL, PRIMARY KEY (m, f)) WITHOUT ROWID"
    )
    rows = ((m, f, value) for m, vector in enumerate(figures) for f, value in enumerate(vector.tolist()))
    kinds = [("m", "i4"), ("f", "i2"), ("v", "f8")]
    return _timed(
        _filler(connection, "INSERT INTO v VALUES (?, ?, ?)", rows),
        lambda: numpy.fromiter(connection.execute("SELECT m, f, v FROM v"), dtype=kinds),
    )


def _vectors(path, figures):
    import numpy

    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE v (m INTEGER PRIMARY KEY, v BLOB)")
    rows = ((m, vector.tobytes()) for m, vector in enumerate(figures))
    read = "SELECT m, v FROM v ORDER BY m"
    return _timed(
        _filler(connection, "INSERT INTO v VALUES (?, ?)", rows),
        lambda: numpy.frombuffer(b"".join(row[1] for row in connection.execute(read))),
    )


def _duckdb(path, figures):
    import duckdb
    import numpy
    import pandas

    connection = duckdb.connect(path)
    many = len(figures)
    table = pandas.DataFrame(
        {
            "m": numpy.repeat(numpy.arange(many), PER_DRIVE),
            "f": numpy.tile(numpy.arange(PER_DRIVE), many),
            "v": figures.ravel(),
        }
    )
    connection.register("given", table)
    fill = "CREATE TABLE v AS SELECT * FROM given; CHECKPOINT"
    return _timed(lambda: connection.execute(fill), lambda: connection.execute("SELECT m, f, v FROM v").fetchnumpy())


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--drives", type=int, nargs="+", default=[100, 1000, 10000])
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--layouts", action="store_true", help="compare ways to keep 3 million values")
    parser.add_argument("--step", choices=["import", "read", "judge"], help=argparse.SUPPRESS)
    parser.add_argument("--place", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.step:
        one_step(given.step, given.place)
    elif given.layouts:
        layouts(3_000_000)
    else:
        sizes(given.drives, given.runs)


if __name__ == "__main__":
    main()
