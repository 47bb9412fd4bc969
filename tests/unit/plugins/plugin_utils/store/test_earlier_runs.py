# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nights before are the same out of the store as out of reports, whatever drives tell of themselves."""

from __future__ import annotations

import functools
import json

import pytest

pytest.importorskip("sqlalchemy")
pytest.importorskip("scipy")

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.peers import fleet_verdicts
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import write_report
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store import earlier_runs, engine, importer
from ansible_collections.ssdlab.fleet.tests.fixtures.report import fleets


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
        with engine.opened(url, make=True) as store:
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
