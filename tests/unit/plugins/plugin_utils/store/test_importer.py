# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run folders into a store: all of it, once, in any order, with the judge's verdicts."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

import pytest

sa = pytest.importorskip("sqlalchemy")

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import write_report
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store import database, import_records, rawfiles, schema
from ansible_collections.ssdlab.fleet.tests.fixtures.report import generator
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.store.imports import (
    change,
    everything,
    put,
    read,
    slice_of,
    verdicts,
)


def test_the_newest_attempt_is_the_last_one_also_where_the_clock_was_set_back():
    first = {"kind": "test", "drive": "d", "test": "t", "attempt": 1, "time": "2036-01-01T00:00:00Z", "outcome": "x"}
    second = {**first, "attempt": 2, "time": "2026-11-22T00:00:00Z", "outcome": "steady"}
    assert import_records.merged([first], [second]) == import_records.merged([second], [first]) == [second]


def test_the_store_says_what_the_report_says(url, run_dir):
    done = put(url, run_dir)
    assert done.changed and done.hosts == 5 and done.problems == []
    judged = write_report.make(str(run_dir.parent), run_dir.name, write=False).judgement
    assert verdicts(url) == {drive["drive"]: drive["verdict"] for drive in judged["drives"]}
    assert sorted(set(verdicts(url).values())) == ["fail", "invalid", "not_tested", "pass"]


@pytest.mark.parametrize("relative", [False, True])
def test_what_is_invalid_is_so_in_the_store_too(url, run_dir, relative):
    """Also where a relative criterion has it judged again, from what the store kept."""
    host, path = generator.DEMO[0].host, run_dir / "run.json"
    if relative:
        run = json.loads(path.read_text())
        run["criteria"] = [*(run.get("criteria") or []), {"metric": "write_iops", "min_of_median": 0.1}]
        path.write_text(json.dumps(run))
    change(
        run_dir, lambda record: {**record, "outcome": "invalid", "reasons": ["its journal is damaged"]}, host, "test"
    )
    put(url, run_dir)
    judged = write_report.make(str(run_dir.parent), run_dir.name, write=False).judgement
    told = {drive["host"]: drive["verdict"] for drive in judged["drives"]}
    assert verdicts(url) == {drive["drive"]: drive["verdict"] for drive in judged["drives"]} and told[host] == "invalid"


def test_a_second_import_changes_nothing(url, run_dir):
    put(url, run_dir)
    before = everything(url)
    assert put(url, run_dir)[1:3] == (False, 0)
    assert everything(url) == before


def test_an_edited_folder_is_what_the_store_says_then(url, run_dir, tmp_path):
    """Figures, criteria and what a host said, changed by hand: as the report says it, without a second row of anything,
    and as a new store has it.
    """
    put(url, run_dir)
    before = {name: len(found) for name, found in everything(url).items()}
    worn = next(drive for drive in generator.DEMO if drive.serial == "SIM0003")
    for path in (run_dir / "results.jsonl", run_dir / "raw" / worn.host / "journal.jsonl"):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            if line.get("drive") == worn.serial and line.get("test") == "wsat":
                edited(line)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    change(run_dir, lambda record: {**record, "state": "ok", "message": "edited"}, "server-9", "host")
    done = put(url, run_dir)
    assert done.changed and done.hosts == 2 and not put(url, run_dir).changed
    assert {name: len(found) for name, found in everything(url).items()} == before
    judged = write_report.make(str(run_dir.parent), run_dir.name, write=False).judgement
    assert verdicts(url) == {drive["drive"]: drive["verdict"] for drive in judged["drives"]}
    # No longer below the limit.
    assert verdicts(url)["SIM0003"] == "pass" and verdicts(url)["SIM0009"] == "not_tested"
    anew = database.resolve("", str(tmp_path / "anew"))
    (tmp_path / "anew").mkdir()
    put(anew, run_dir)
    assert [figures(store) for store in (url, anew)] == [figures(anew)] * 2
    assert max(figures(url)["SIM0003"]) > 3 * 35_000


def edited(record):
    """A record or an event of a test with three times the rate, a third of the latency."""
    figures = [record.get("metrics"), record.get("read"), record.get("write")]
    for named in filter(None, figures):
        for name, value in named.items():
            if isinstance(value, (int, float)):
                named[name] = value / 3 if "latency" in name else value * 3
    for window in record.get("steady_state", []):
        in_iops = ("average", "slope", "fitted_start", "fitted_end")
        window.update({key: window[key] * 3 for key in in_iops if key in window})
        window["window_values"] = [value * 3 for value in window["window_values"]]


def figures(url):
    """The vectors of each drive's measurements."""
    with database.opened(url) as store, store.reading() as connection:
        campaign, measurement = schema.tables().campaign, schema.tables().measurement
        query = sa.select(campaign.c.label, measurement.c.figures).where(measurement.c.campaign_id == campaign.c.id)
        found = {}
        for label, vector in connection.execute(query):
            found.setdefault(label, []).extend(struct.unpack(f"<{len(vector) // 8}d", vector))
        return {label: sorted(values) for label, values in found.items()}


def test_what_was_taken_out_of_a_folder_stays_until_the_store_is_rebuilt(url, run_dir):
    """Another slice's folder lacks it too, and takes nothing back."""
    put(url, run_dir)
    slice_of(run_dir, run_dir.parent / "less", ["server-1", "server-2"])
    for name in ("run.json", "results.jsonl"):
        shutil.copy(run_dir.parent / "less" / run_dir.name / name, run_dir / name)
    assert not put(url, run_dir).changed and len(verdicts(url)) == 5
    Path(database.path(url)).unlink()
    put(url, run_dir)
    assert sorted(verdicts(url)) == ["SIM0001", "SIM0002"]


def test_other_criteria_give_other_verdicts(url, run_dir):
    put(url, run_dir)
    run = json.loads((run_dir / "run.json").read_text())
    run["criteria"][0]["min"] = 1_000
    (run_dir / "run.json").write_text(json.dumps(run))
    assert put(url, run_dir).changed
    assert verdicts(url)["SIM0003"] == "pass"


def test_a_drive_that_moves_is_one_drive(url, tmp_path):
    for host in ("server-1", "server-7"):
        drive = generator.DEMO[0]._replace(host=host)
        folder = generator.make(tmp_path / host, [drive], rounds=8)
        put(url, folder)
    assert len(read(url, "drive")) == 1 and len(read(url, "campaign")) == 2


def test_raw_files_come_back_as_they_were(url, run_dir, tmp_path):
    packed = run_dir / "raw" / "server-1" / "raw" / "SIM0001" / "wsat-1-0001-x.json.gz"
    packed.parent.mkdir(parents=True)
    packed.write_bytes(b"\x1f\x8b not even gzip")
    put(url, run_dir)
    assert read(url, "raw_file") == []
    assert put(url, run_dir, raw=True).changed
    assert not put(url, run_dir, raw=True).changed
    with database.opened(url) as store:
        done = rawfiles.extract(store, run_dir.name, str(tmp_path / "back"))
    assert len(done) == 9
    for path in (run_dir / "raw").rglob("*"):
        if path.is_file():
            assert (tmp_path / "back" / path.relative_to(run_dir / "raw")).read_bytes() == path.read_bytes()
