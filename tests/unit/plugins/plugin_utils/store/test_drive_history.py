# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drive's figures over the runs, from a store."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import write_report
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store import drive_history, engine, importer
from ansible_collections.ssdlab.fleet.tests.fixtures.report import fleets


@pytest.fixture(name="folder")
def fixture_folder(tmp_path):
    """Three nights of two drives, in the store of their folder."""
    url = engine.resolve("", str(tmp_path))
    for day, speed in ((20, 1.0), (21, 0.5), (22, 0.25)):
        run, records = fleets.fleet(1, 2, noise=0, low={0: speed}, run_id=f"n{day}")
        made = fleets.write(tmp_path, {**run, "started": f"2026-11-{day}T01:00:00Z"}, records)
        write_report.make(str(tmp_path), made.name)
        with engine.opened(url, make=True) as store:
            importer.import_run(store, str(made), False)
    return tmp_path


def test_figures_of_the_drives_asked_for_before_this_run(folder):
    tests = {"iops": {"tracked": [{"cell": "c", "metric": "write_iops"}]}}
    run = {"run": {"id": "n22", "name": "qualify"}, "started": "2026-11-22T01:00:00Z", "tests": tests}
    found = drive_history.of_drives(str(folder), "", run, ["S0-1"])
    expected = {
        ("S0-1", "iops", "write_iops"): [
            ("n20", "2026-11-20T01:00:00Z", 100_000.0),
            ("n21", "2026-11-21T01:00:00Z", 50_000.0),
        ]
    }
    assert found == expected
    # A store that cannot be read costs the history no more than its store: the reports of earlier runs tell the same.
    assert drive_history.of_drives(str(folder), "postgresql://nobody@127.0.0.1:1/none", run, ["S0-1"]) == expected
    assert drive_history.of_drives(str(folder), "none", {**run, "tests": {}}, ["S0-1"]) == {}


def test_a_measurement_that_did_not_count_is_no_history(folder):
    """Neither out of the store nor out of the reports."""
    run, records = fleets.fleet(1, 2, run_id="n19")
    for record in records:
        record.update({"outcome": "interrupted"} if record["kind"] == "test" else {})
    made = fleets.write(folder, {**run, "started": "2026-11-19T01:00:00Z"}, records)
    write_report.make(str(folder), made.name)
    with engine.opened(engine.resolve("", str(folder)), make=True) as store:
        importer.import_run(store, str(made), False)
    now = {**run, "run": {"id": "n22", "name": "qualify"}, "started": "2026-11-22T01:00:00Z"}
    for url in ("", "none"):
        [points] = drive_history.of_drives(str(folder), url, now, ["S0-1"]).values()
        assert [point[0] for point in points] == ["n20", "n21"]
