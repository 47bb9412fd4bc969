# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An inventory may call things what no file can hold: the report, the store and every export are made all the same."""

from __future__ import annotations

import json

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import write_report
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store import database, exports, importer
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.validation import printable
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.watch import final_tables
from ansible_collections.ssdlab.fleet.tests.fixtures.report.fleets import fleet, write

HALF = "a\ud800b\udc80c"
TOLD = "a\\ud800b\\udc80c"


@pytest.fixture(name="folder")
def fixture_folder(tmp_path):
    """A fleet whose host h1, its drive, rack, engine, test, criterion and a warning have half a letter in their names;
    and a run before it whose report was edited to have some.
    """
    for run_id, started in (("r1", "2026-11-21T01:00:00Z"), ("r2", "2026-11-22T01:00:00Z")):
        run, records = fleet(hosts=3, run_id=run_id, criteria=[{"metric": "write_iops", "min": 1, "source": HALF}])
        run["started"] = started
        run["asked"].append({"host": HALF, "drive": HALF, "tests": ["iops"], "rack": HALF, "engine": HALF})
        for entry in run["asked"][:4]:
            entry.update(rack=HALF, engine=HALF)
        run["tests"]["iops"].update(title=HALF, source=HALF)
        run["tests"][HALF] = {"title": HALF}
        run["versions"] = {"collection": HALF}
        run["warnings"] = [
            {"host": HALF, "check": "x", "drive": HALF, "level": "warning", "message": HALF, "remedy": HALF}
        ]
        folder = write(tmp_path, run, records)
        if run_id == "r1":
            path = write_report.make(str(tmp_path), "r1").path.replace("index.html", "summary.json")
            told = json.loads(open(path, encoding="utf-8").read())
            told["drives"][0].update(host=HALF, reasons=[HALF], verdict=HALF, serial=HALF)
            with open(path, "w", encoding="ascii") as file:
                json.dump(told, file)
    return folder


def test_half_a_letter_in_a_name_ends_no_report(folder):
    report = write_report.make(str(folder.parent), folder.name)
    summary = json.loads((folder / "report" / "summary.json").read_text(encoding="utf-8"))
    lost = [drive for drive in summary["drives"] if drive["verdict"] != "pass"]
    assert [(drive["host"], drive["drive"], drive["verdict"]) for drive in lost] == [(TOLD, TOLD, "not_tested")]
    for path in (folder / "report").rglob("*.html"):
        path.read_text(encoding="utf-8")
    assert TOLD in (folder / "report" / "results.csv").read_text(encoding="utf-8") and report.message
    assert write_report.make(str(folder.parent), folder.name).changed is False
    run = json.loads((folder / "run.json").read_text())
    "\n".join(final_tables.lines(printable.writable(run), [], summary)).encode()


def test_nor_does_it_end_the_store_or_an_export(folder, tmp_path):
    pytest.importorskip("sqlalchemy")
    pytest.importorskip("pyarrow")
    url = database.resolve("", str(tmp_path))
    with database.opened(url, make=True) as store:
        [_before, done] = importer.import_all(store, str(tmp_path))
    assert done.problems == [] and done.changed
    made = exports.write(url, folder.name, str(tmp_path / "out"), exports.FORMATS)
    assert made and all((tmp_path / "out").rglob("*"))
    assert TOLD in (tmp_path / "out" / "junit.xml").read_text(encoding="utf-8")
    assert TOLD.replace("\\", "\\\\") in (tmp_path / "out" / "ssdlab_fleet.prom").read_text(encoding="utf-8")


def test_a_whole_letter_stays_what_it_is():
    given = {"ä😀": ["é", {"x": "\x1b", "y": 1.5, "z": None}]}
    assert printable.writable(given) == given and printable.writable({HALF: [HALF]}) == {TOLD: [TOLD]}
