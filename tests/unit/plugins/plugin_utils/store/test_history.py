# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run out of the store is judged as the report judges it, and against the nights before."""

from __future__ import annotations

import functools
import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy")
pytest.importorskip("pandas")
pytest.importorskip("scipy")

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.peers import fleet_verdicts
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import write_report
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store import (
    database,
    earlier_runs,
    frames,
    history,
    importer,
)
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store.store_requirements import StoreError
from ansible_collections.ssdlab.fleet.tests.bench import store as bench
from ansible_collections.ssdlab.fleet.tests.fixtures.report import generator, specs

NIGHTS = (
    "20261118T010000Z-nightly",
    "20261119T010000Z-nightly",
    "20261120T010000Z-nightly",
    "20261121T010000Z-other",
    "20261122T010000Z-nightly",
)
SAMPLE = {
    "temperature_c": 41,
    **dict.fromkeys(("critical_warning", "warning_temp_min", "critical_temp_min", "media_errors"), 0),
    **dict.fromkeys(("throttle_counts", "throttle_s")),
    "error": "",
    "aer": {},
    "seconds": 0.01,
}


@pytest.fixture(name="url", scope="module")
def fixture_url(tmp_path_factory):
    """Four nights of nine drives and one run of another name. In the last night all are 12 % slower, and one has no
    valid result; another is worn.
    """
    folder = tmp_path_factory.mktemp("results")
    url = database.resolve("", str(folder))
    for number, run_id in enumerate(NIGHTS):
        slower = 0.88 if run_id == NIGHTS[-1] else 1.0
        drives = [
            generator.DEMO[0]._replace(host=f"server-{at}", serial=f"SIM{at:04}", steady_iops=41_200 * slower)
            for at in range(10)
        ]
        drives[8] = drives[8]._replace(steady_iops=17_400 * slower)
        drives[9] = drives[9]._replace(outcome="interrupted" if slower < 1 else "steady")
        # With seed 0 two good drives stand out by chance, as they do in one fleet of twenty.
        run_dir = generator.make(folder / run_id, drives, rounds=12, seed=number + 10, criteria=())
        for name in ("run.json", "results.jsonl"):
            text = (
                (run_dir / name)
                .read_text()
                .replace(generator.RUN_ID, run_id)
                .replace('"name": "qualify"', f'"name": "{run_id.partition("-")[2]}"')
            )
            (run_dir / name).write_text(
                text.replace('"started": "2026-11-21T13:00:00', f'"started": "2026-11-{18 + number}T13:00:00')
            )
        with database.opened(url, make=True) as store:
            assert importer.import_run(store, str(run_dir)).problems == []
    return url


def test_the_newest_run_is_held_against_its_peers_and_the_nights_of_its_name(url):
    told = history.judged(url)
    assert told.against == [NIGHTS[2], NIGHTS[1], NIGHTS[0]]
    assert set(told.figures["run"]) == {NIGHTS[-1]} and "SIM0009" not in set(told.figures["serial"]), (
        "what does not count is not there"
    )
    assert set(told.figures.loc[told.figures["outlier"], "serial"]) == {"SIM0008"}
    change = told.changes[(told.changes["metric"] == "write_iops") & (told.changes["cell"] == "")].iloc[0]
    assert (change["verdict"], change["n"], change["nights"]) == ("worse", 9, 3) and change["by"] == pytest.approx(
        1 / 0.88 - 1, abs=0.03
    )
    repeats = told.repeatability[
        (told.repeatability["metric"] == "write_iops") & (told.repeatability["cell"] == "")
    ].iloc[0]
    assert (repeats["drives"], repeats["runs"]) == (10, 3) and repeats["cv"] < 0.05
    # The tracked cell's own figures are judged too, each beside its own.
    assert set(told.changes["cell"]) == {"", specs.WSAT_CELL}


def test_a_baseline_and_fewer_nights_are_what_is_asked_for(url):
    assert history.judged(url, nights=2).against == [NIGHTS[2], NIGHTS[1]]
    told = history.judged(url, run_id=NIGHTS[3], baseline=NIGHTS[0])
    assert told.against == [NIGHTS[0]] and "worse" not in set(told.changes["verdict"])
    assert history.judged(url, run_id=NIGHTS[0]).changes.empty


def test_what_is_not_there_is_told(url, tmp_path):
    with pytest.raises(StoreError, match="no run 20990101T000000Z-x; the newest ones: 20261122"):
        history.judged(url, "20990101T000000Z-x")
    empty = database.resolve("", str(tmp_path))
    with database.opened(empty, make=True):
        pass
    with pytest.raises(StoreError, match="the store has no run: playbooks/import.yml"):
        history.judged(empty)


def test_only_the_columns_asked_for_are_read(url):
    whole, some = (
        frames.long(url, rounds=False),
        frames.long(url, rounds=False, columns=("value", "unit", "capacity_bytes")),
    )
    assert list(some) == ["capacity_bytes", "unit", "value"] and some.equals(whole[list(some)])
    assert list(frames.long(url, columns=("metric",))) == ["metric"]


def test_a_store_tells_what_was_measured_otherwise(tmp_path):
    """Ten drives twice; then their LBA format is another, and they are 30 % slower: nobody can blame the drives."""
    url = database.resolve("", str(tmp_path))
    for number, run_id in enumerate(NIGHTS[:3]):
        last = run_id == NIGHTS[2]
        drives = [
            generator.DEMO[0]._replace(host=f"s{at}", serial=f"SIM{at:04}", steady_iops=41_200 * (0.7 if last else 1))
            for at in range(10)
        ]
        run_dir = generator.make(tmp_path / run_id, drives, rounds=8, seed=number, criteria=())
        records = [json.loads(line) for line in (run_dir / "results.jsonl").read_text().splitlines()]
        for record in records:
            record["run_id"] = run_id
            if record["kind"] == "drive":
                record["identity"]["logical_block_size_bytes"] = 4096 if last else 512
        (run_dir / "results.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
        run = json.loads((run_dir / "run.json").read_text())
        run.update(run={"id": run_id, "name": "nightly"}, started=f"2026-11-{18 + number}T13:00:00Z")
        for entry in run["asked"][:4]:
            entry["engine"] = "libaio"
        (run_dir / "run.json").write_text(json.dumps(run))
        with database.opened(url, make=True) as store:
            assert importer.import_run(store, str(run_dir)).problems == []
    told = history.judged(url)
    assert set(told.changes["verdict"]) == {"conditions changed"}
    assert set(told.changes["changed"]) == {"LBA format 512 → 4096"}
    assert set(history.judged(url, run_id=NIGHTS[1]).changes["changed"]) == {""}
    # Six of one engine and four of another are no group of ten.
    assert set(told.figures["n"]) == {4, 6} and set(told.too_few["lba_bytes"]) == {4096}


def test_the_stores_bench_copies_every_column(tmp_path):
    """It writes the tables by itself, and was left behind by each column that they got."""
    run_dir = bench.folder(tmp_path, 8)
    url = database.resolve("", str(tmp_path))
    with database.opened(url, make=True) as store:
        importer.import_run(store, str(run_dir))
    bench.multiply(str(tmp_path / database.FILE), 3)
    assert len(frames.long(url, rounds=False).groupby("run", observed=True).size().unique()) == 1
    told = history.judged(url)
    assert len(told.against) == 2 and set(told.changes["changed"]) == {""}
    assert set(told.figures["engine"]) == {"io_uring"} and set(told.figures["lba_bytes"]) == {512}


def test_a_report_without_earlier_reports_is_held_to_the_nights_of_the_store(url, tmp_path):
    """As in an execution environment, where no file of the night before is left: it says what it says beside them."""
    results = Path(database.path(url)).parent
    beside, alone = tmp_path / "beside", tmp_path / "alone"
    for run_id in NIGHTS:
        if "nightly" in run_id:
            shutil.copytree(next(results.glob(f"{run_id}/*/run.json")).parent, beside / run_id)
            write_report.make(str(beside), run_id)
    shutil.copytree(beside / NIGHTS[-1], alone / NIGHTS[-1])
    stored = functools.partial(earlier_runs.of_store, "", url)
    write_report.make(str(alone), NIGHTS[-1], against=fleet_verdicts.Baseline(stored=stored))
    told, wanted = (json.loads((place / NIGHTS[-1] / "report/summary.json").read_text()) for place in (alone, beside))
    for part in ("since", "nights"):
        assert told["fleet"][part] == wanted["fleet"][part] and wanted["fleet"][part], part
    in_order = [sorted(found["fleet"]["repeatability"], key=lambda row: row["metric"]) for found in (told, wanted)]
    # Of the same figures, added in another order.
    assert [rounded(row) for row in in_order[0]] == [rounded(row) for row in in_order[1]] != []


def rounded(row):
    return {key: float(f"{value:.12g}") if isinstance(value, float) else value for key, value in row.items()}


def test_the_store_and_the_report_have_the_same_peers(tmp_path):
    """Both take the link from the first sample of the run, in the same words."""
    drives = [generator.DEMO[0]._replace(host=f"server-{at}", serial=f"SIM{at:04}") for at in range(9)]
    run_dir = generator.make(tmp_path, drives, rounds=8, criteria=())
    for at in range(9):
        path = run_dir / "raw" / f"server-{at}" / "journal.jsonl"
        events = [json.loads(line) for line in path.read_text().splitlines()]
        place = next(number for number, event in enumerate(events) if event["event"] == "round")
        sample = {**SAMPLE, "link_speed_gts": 8.0, "link_width": 4 if at else 2}
        names = ("schema_version", "time", "run_id", "host", "drive", "test", "attempt")
        events.insert(place, {**{name: events[place][name] for name in names}, "event": "sample", **sample})
        path.write_text("".join(json.dumps(event) + "\n" for event in events))
    url = database.resolve("", str(tmp_path))
    with database.opened(url, make=True) as store:
        importer.import_run(store, str(run_dir))
    write_report.make(str(tmp_path), run_dir.name)
    summary = json.loads((run_dir / "report" / "summary.json").read_text())
    of_report = {(group["link"], group["n"]) for group in summary["fleet"]["groups"]}
    told = history.judged(url)
    assert of_report == set(zip(told.groups["link"], told.groups["n"])) == {("8 GT/s x2", 1), ("8 GT/s x4", 8)}
    assert {drive["conditions"]["link"] for drive in summary["drives"]} == {"8 GT/s x2", "8 GT/s x4"}
