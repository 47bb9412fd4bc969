# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nights before are the same out of the store as out of reports, whatever drives tell of themselves. A drive's
figures over the runs, from a store.
"""

from __future__ import annotations

import functools
import json

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import write_report
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store import database, earlier_runs, importer
from ansible_collections.ssdlab.fleet.tests.fixtures.report import fleets

pytest.importorskip("sqlalchemy")
pytest.importorskip("scipy")

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.peers import fleet_verdicts


def told_as(labels=str, **identity):
    """What makes a run's drives other ones. labels: their names in the inventory, of those that they have."""

    def change(run, records):
        for entry in [*run["asked"], *(record for record in records if "drive" in record)]:
            entry["drive"] = labels(entry["drive"])
            if entry.get("kind") == "drive" and entry["host"] in ("h1", "h2"):
                entry["identity"].update(identity)

    return change


def night(number, change):
    run, records = fleets.fleet(4, seed=number, run_id=f"202611{number:02}T010000Z-qualify")
    change(run, records)
    return {**run, "started": f"2026-11-{number:02}T01:00:00Z"}, records


def texts(rows):
    """Rows in an order of their own; sums that began elsewhere differ in the last digits."""
    known = [{name: round(v, 9) if isinstance(v, float) else v for name, v in row.items()} for row in rows]
    return sorted(map(json.dumps, known))


@pytest.mark.parametrize(
    "change",
    [
        told_as(),
        told_as(serial=None),
        told_as(serial=None, labels=lambda name: f"/dev/nvme{name[-1]}n1"),
        told_as(model=None),
        told_as(firmware=None),
        told_as(serial="X"),
        told_as(model="MTFD   A ", firmware=" 1  b"),
    ],
)
def test_the_store_tells_of_nights_what_their_reports_do(tmp_path, change):
    url, results = f"sqlite:///{tmp_path}/store.sqlite", str(tmp_path / "results")
    for number in (1, 2):
        folder = fleets.write(results, *night(number, change))
        write_report.make(results, folder.name)
        with database.opened(url, make=True) as store:
            importer.import_run(store, str(folder))
    elsewhere = str(tmp_path / "elsewhere")
    stored = fleet_verdicts.Baseline(stored=functools.partial(earlier_runs.of_store, elsewhere, url))
    told = [
        fleet_verdicts.judge_run(folder, *night(9, change), against).fleet
        for folder, against in ((results, fleet_verdicts.Baseline()), (elsewhere, stored))
    ]
    of_reports, of_store = [
        [texts(rows) for rows in (fleet["since"]["changes"], fleet["nights"]["changes"], fleet["repeatability"])]
        for fleet in told
    ]
    assert all(of_reports) and of_store == of_reports


@pytest.fixture(name="folder")
def fixture_folder(tmp_path):
    """Three nights of two drives, in the store of their folder."""
    url = database.resolve("", str(tmp_path))
    for day, speed in ((20, 1.0), (21, 0.5), (22, 0.25)):
        run, records = fleets.fleet(1, 2, noise=0, low={0: speed}, run_id=f"n{day}")
        made = fleets.write(tmp_path, {**run, "started": f"2026-11-{day}T01:00:00Z"}, records)
        write_report.make(str(tmp_path), made.name)
        with database.opened(url, make=True) as store:
            importer.import_run(store, str(made), False)
    return tmp_path


def test_figures_of_the_drives_asked_for_before_this_run(folder):
    tests = {"iops": {"tracked": [{"cell": "c", "metric": "write_iops"}]}}
    run = {"run": {"id": "n22", "name": "qualify"}, "started": "2026-11-22T01:00:00Z", "tests": tests}
    found = earlier_runs.figures_of_drives(str(folder), "", run, ["S0-1"])
    expected = {
        ("S0-1", "iops", "write_iops"): [
            ("n20", "2026-11-20T01:00:00Z", 100_000.0),
            ("n21", "2026-11-21T01:00:00Z", 50_000.0),
        ]
    }
    assert found == expected
    # A store that cannot be read costs the history no more than its store: the reports of earlier runs tell the same.
    assert (
        earlier_runs.figures_of_drives(str(folder), "postgresql://nobody@127.0.0.1:1/none", run, ["S0-1"]) == expected
    )
    assert earlier_runs.figures_of_drives(str(folder), "none", {**run, "tests": {}}, ["S0-1"]) == {}


def test_a_measurement_that_did_not_count_is_no_history(folder):
    """Neither out of the store nor out of the reports."""
    run, records = fleets.fleet(1, 2, run_id="n19")
    for record in records:
        record.update({"outcome": "interrupted"} if record["kind"] == "test" else {})
    made = fleets.write(folder, {**run, "started": "2026-11-19T01:00:00Z"}, records)
    write_report.make(str(folder), made.name)
    with database.opened(database.resolve("", str(folder)), make=True) as store:
        importer.import_run(store, str(made), False)
    now = {**run, "run": {"id": "n22", "name": "qualify"}, "started": "2026-11-22T01:00:00Z"}
    for url in ("", "none"):
        [points] = earlier_runs.figures_of_drives(str(folder), url, now, ["S0-1"]).values()
        assert [point[0] for point in points] == ["n20", "n21"]
