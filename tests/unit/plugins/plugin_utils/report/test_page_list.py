# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet's page, the pages that a report has, a supplier's page, and the one copy of plotly, from constructed
fleets.
"""

from __future__ import annotations

import functools
import json
import os
import pathlib
import re
import shutil

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import (
    assets,
    distributions,
    page_list,
    page_names,
    write_report,
)
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store import earlier_runs
from ansible_collections.ssdlab.fleet.tests.fixtures.report import fleets, generator
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.report.built import charts, without_plotly


@pytest.fixture(name="index", scope="module")
def fixture_index(tmp_path_factory):
    """Six hosts of four drives: S1-2 is bad, h4 is slow as a whole and has another BIOS."""
    return fleets.page(tmp_path_factory.mktemp("fleet"))


def test_what_is_wrong_comes_first(index):
    html = index.read_text()
    assert ">23 of 24 drives passed; 1 failed: write IOPS below its limit.</h2>" in html
    assert "bios: AMI 2.4 where 5 of 5 others have AMI 2.6" in html and "It is the drive, not the host." in html
    drives = fleets.data_of(index)["drives"]
    assert [drive[2] for drive in drives[:5]][0] == "S1-2" and {drive[2][:2] for drive in drives[1:5]} == {"S4"}
    assert "plotly" not in html


def test_drives_that_failed_by_their_host_come_after_those_that_failed_by_themselves(tmp_path):
    """S1-2, of another model, has no peers that it could stand out of."""
    share = {"test": "iops", "metric": "write_iops", "min_of_median": 0.9}
    limit = {"test": "iops", "metric": "write_iops", "min": 200_000, "model": "OTHER"}
    run, records = fleets.fleet(8, low={4: 0.8}, criteria=[share, limit], run_id="20261122T010000Z-qualify")
    for record in records:
        if record["kind"] == "drive" and record["drive"] == "S1-2":
            record["identity"]["model"] = "OTHER"
    folder = fleets.write(tmp_path, run, records)
    drives = fleets.data_of(pathlib.Path(write_report.make(str(tmp_path), folder.name).path))["drives"]
    assert drives[0][2] == "S1-2" and {drive[2] for drive in drives[1:5]} == {f"S4-{number}" for number in range(4)}


def test_drives_of_one_rank_come_by_name_as_people_count(tmp_path):
    lost = [(f"server-{number}", f"SIM{number}") for number in (10, 11, 9)]
    run_dir = generator.make(tmp_path, unreachable=lost)
    drives = fleets.data_of(pathlib.Path(write_report.make(str(tmp_path), run_dir.name).path))["drives"]
    assert [drive[2] for drive in drives][1:4] == ["SIM9", "SIM10", "SIM11"]


def test_the_map_has_a_level_for_each_drive(index):
    data = fleets.data_of(index)
    (figure,) = [each for each in data["heat"] if each["metric"] == "write_iops"]
    middle = ord("A") + distributions.HEAT_STEPS
    levels = [ord(level) - middle for level in figure["levels"]]
    assert len(levels) == len(data["drives"]) == 24
    # 40 % worse is beyond the scale, 20 % is 8 steps of 2.5 %.
    assert (
        levels[0] == distributions.HEAT_STEPS
        and all(7 <= level <= 9 for level in levels[1:5])
        and all(abs(level) <= 1 for level in levels[5:])
    )


def test_every_figure_of_a_group_has_its_distribution_and_names_who_stands_out(index):
    html = index.read_text()
    assert html.count('<svg class="strip"') == 4
    assert html.count('<circle class="outlier"') >= 1 and "h1 S1-2: " in html
    assert re.search(r'aria-label="write_iops of 24 drives, [0-9,]+ IOPS to [0-9,]+ IOPS; 1 outlier"', html)


def test_racks_come_from_the_inventory(index):
    data = fleets.data_of(index)
    assert data["racks"] == ["A", "B", "C"] and [data["racks"][host[2]] for host in data["hosts"]][:1] == ["A"]


def test_the_page_of_a_drive_and_of_its_host_lead_to_each_other(index):
    drive = (index.parent / page_names.drive_page("h1", "S1-2")).read_text()
    host = (index.parent / page_names.host_page("h4")).read_text()
    assert f'href="../{page_names.host_page("h1")}"' in drive and "It is the drive, not the host" in drive
    assert (
        f'href="../{page_names.drive_page("h4", "S4-0")}"' in host
        and "Slow as a whole" in host
        and "AMI 2.4 where 5 of 5" in host
    )


def test_how_well_figures_repeat_is_on_the_fleets_page(tmp_path):
    for night in (1, 2, 3):
        run, records = fleets.fleet(noise=0.02, seed=night, run_id=f"2026112{night}T010000Z-qualify")
        run["started"] = f"2026-11-2{night}T01:00:00Z"
        folder = fleets.write(tmp_path, run, records)
        html = pathlib.Path(write_report.make(str(tmp_path), folder.name).path).read_text()
        assert ('id="repeats-title"' in html) is (night > 1)
    (table,) = re.findall(r'<table class="plain" id="repeats">.*?</table>', html, re.DOTALL)
    rows = [
        re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)[1:]
    ]
    (iops,) = [row for row in rows if row[2] == "write_iops"]
    assert iops[:2] == [fleets.MODEL, "iops"] and iops[3:5] == ["24", "3"]
    cv, at_most = (float(text.strip("± %")) for text in iops[5:])
    assert 1.5 < cv < at_most < 3


def test_every_link_leads_somewhere(tmp_path):
    run_dir = generator.make(tmp_path, tests=("wsat", "iops"), unreachable=[("no such/host?#", "d%41")])
    raw = run_dir / "raw" / "server-1" / "raw" / "SIM0001"
    raw.mkdir(parents=True)
    (raw / "wsat-1-0001-rand.json.gz").write_bytes(b"")
    write_report.make(str(tmp_path), run_dir.name)
    from urllib.parse import unquote

    seen = 0
    for page in (run_dir / "report").rglob("*.html"):
        for href in re.findall(r'(?:href|src)="([^"#]+)"', page.read_text()):
            if not href.startswith("data:"):
                seen += 1
                assert (page.parent / unquote(href)).resolve().exists(), (page.name, href)
    assert (
        seen > 40
        and "wsat-1-0001-rand.json.gz"
        in (run_dir / "report" / page_names.drive_page("server-1", "SIM0001")).read_text()
    )


def test_no_link_leads_to_what_a_browser_would_run(tmp_path):
    """A web server that has the report and raw/ would give a host's own script the report's rights."""
    run_dir = generator.make(tmp_path, tests=("wsat", "iops"))
    raw = run_dir / "raw" / "server-1" / "raw" / "SIM0001"
    raw.mkdir(parents=True)
    hostile = ["a.html", "b.svg", "c.xhtml", "d", "e.fio.html", "f.htm.json.gz.js"]
    for name in ("iops-1-0001-rand.fio", *hostile):
        (raw / name).write_text("<script>alert(1)</script>")
    write_report.make(str(tmp_path), run_dir.name)
    page = (run_dir / "report" / page_names.drive_page("server-1", "SIM0001")).read_text()
    linked = dict(re.findall(r'<a href="[^"]*/raw/[^"]*/([^"/]+)"([^>]*)>', page))
    assert linked == {"iops-1-0001-rand.fio": " download", "journal.jsonl": " download"}
    assert all(f"<li>{name}</li>" in page for name in hostile)


@pytest.mark.parametrize(
    "count, asked, before, expected",
    [
        (3, [], set(), ["bad", "d1", "d2"]),
        (300, [], set(), ["bad"]),
        (300, ["d7", "h29*"], set(), ["bad", "d7", "d29", *[f"d{n}" for n in range(290, 300)]]),
        (300, [], {"d9"}, ["bad", "d9"]),
    ],
)
def test_which_drives_of_a_large_fleet_have_a_page(tmp_path, count, asked, before, expected):
    given = [
        {"host": f"h{n}", "drive": f"d{n}", "serial": f"S{n}", "verdict": "pass", "outliers": [], "low": None}
        for n in range(1, count)
    ]
    given = [{"host": "h0", "drive": "bad", "serial": None, "verdict": "fail", "outliers": [], "low": None}, *given]
    rows = [{**row, "page": page_names.drive_page(row["host"], row["drive"])} for row in given]
    for drive in before:
        path = tmp_path / next(row["page"] for row in rows if row["drive"] == drive)
        path.parent.mkdir()
        path.write_text("")
    assert [row["drive"] for row in page_list.chosen(rows, asked, str(tmp_path))] == expected


def test_a_suppliers_page_tells_nothing_of_other_models(tmp_path):
    drives = [*generator.DEMO, generator.Drive("other-1", "OTHER1", "RIVAL 9000", 80_000, 20_000, "steady")]
    criteria = [
        {"test": "wsat", "metric": "write_iops", "min": least, "model": model}
        for least, model in ((35_000, "SIM*"), (12_345, "RIVAL*"))
    ]
    run_dir = generator.make(tmp_path, drives, ("wsat", "iops"), criteria=criteria)
    write_report.make(str(tmp_path), run_dir.name, asked=write_report.ReportOptions(supplier_model="SIM*"))
    html = (run_dir / "report" / page_names.supplier_page("SIM*")).read_text()
    own = without_plotly(html)
    assert not re.search("RIVAL|other-1|OTHER1|12,?345", own)
    assert "2 of 3 drives passed; 1 failed: " in own and "SIM0003" in own and "class not_pts" in own
    # One file: its charts' data and the scripts that draw them are in it.
    assert len(own) + 1e6 < len(html) and "<script src" not in own
    assert [data["test"] for data in charts(own)] == ["wsat", "iops"] * 3 and own.count('class="chart"') >= 3 * 8


def test_a_model_that_no_drive_has_costs_the_suppliers_page_alone(tmp_path):
    run_dir = generator.make(tmp_path)
    made = write_report.make(str(tmp_path), run_dir.name, asked=write_report.ReportOptions(supplier_model="NONE"))
    (warning,) = made.warnings
    assert warning.startswith("report_supplier_model: no drive of the run is of a model like 'NONE'; there are: ")
    assert (run_dir / "report" / "index.html").exists() and not list((run_dir / "report").glob("supplier-*"))


def test_plotly_is_there_once_for_all_runs(tmp_path):
    first, second = (generator.make(tmp_path / name) for name in "ab")
    runs = tmp_path / "runs"
    for number, run_dir in enumerate((first, second)):
        shutil.move(run_dir, runs / str(number))
        (runs / str(number) / "report").mkdir()
        assert assets.put(str(runs), str(runs / str(number) / "report")) is True
        assert assets.put(str(runs), str(runs / str(number) / "report")) is False
    assert (
        len({os.stat(path).st_ino for path in runs.rglob("plotly*.js")}) == 1
        and len(list(runs.rglob("plotly*.js"))) == 3
    )
    assert [path.name for path in (runs / "0" / "report").iterdir()] == [assets.NAME]


def test_without_hard_links_every_run_has_a_copy(tmp_path, monkeypatch):
    def refused(*_names):
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", refused)
    assert assets.put(str(tmp_path), str(tmp_path)) is True and assets.put(str(tmp_path), str(tmp_path)) is False
    assert (tmp_path / assets.NAME).read_text() == assets.script()


def test_a_drive_has_its_history_from_the_runs_before(tmp_path):
    """From the reports of earlier runs; from the store: tests/unit/plugins/plugin_utils/store/test_earlier_runs.py."""
    for day, speed in ((20, 1.0), (21, 0.5), (22, 0.25)):
        run, records = fleets.fleet(1, 2, noise=0, low={0: speed}, run_id=f"202611{day}T010000Z-qualify")
        folder = fleets.write(tmp_path, {**run, "started": f"2026-11-{day}T01:00:00Z"}, records)
        past = functools.partial(earlier_runs.figures_of_drives, str(tmp_path), "none")
        write_report.make(str(tmp_path), folder.name, asked=write_report.ReportOptions(history=past))
    html = (folder / "report" / page_names.drive_page("h0", "S0-0")).read_text()
    rows = re.findall(
        (
            r'<tr><th scope="row">.*?(202611\d\d).*?</th>.*?<td data-v="[^"]*">([^<]*)</td><td '
            r'data-v="[^"]*">([^<]*)</td></tr>'
        ),
        html,
    )
    assert rows == [
        ("20261122", "25,000 IOPS", "−50 %"),
        ("20261121", "50,000 IOPS", "−50 %"),
        ("20261120", "100,000 IOPS", "–"),
    ]
    # An earlier run's page does not learn of later ones.
    first = pathlib.Path(tmp_path / "20261120T010000Z-qualify")
    write_report.make(str(tmp_path), first.name, asked=write_report.ReportOptions(history=past))
    assert "Over earlier runs" not in (first / "report" / page_names.drive_page("h0", "S0-0")).read_text()


def test_a_failed_drives_own_logs_are_linked_and_what_is_missing_says_why(tmp_path):
    run_dir = generator.make(tmp_path, tests=("wsat", "iops"))
    raw = run_dir / "raw" / "server-1" / "raw" / "SIM0001"
    raw.mkdir(parents=True)
    (raw / "drive-error-log.json.gz").write_bytes(b"")
    kept = [
        {"log": "error log", "file": "drive-error-log.json.gz", "size_bytes": 2048, "message": ""},
        {
            "log": "telemetry",
            "file": "",
            "size_bytes": None,
            "message": "nvme telemetry-log ended with 1: Invalid Log Page",
        },
    ]
    results = run_dir / "results.jsonl"
    records = [json.loads(line) for line in results.read_text().splitlines()]
    for record in records:
        if (record["kind"], record.get("drive")) == ("drive", "SIM0001"):
            record["logs"] = {"reason": "iops: write_iops is 5 (min 9)", "logs": kept}
            record.update(retired="true", gives_up=["ext4, label <srv>", "/etc/fstab line 3"])
    results.write_text("".join(json.dumps(record) + "\n" for record in records))
    write_report.make(str(tmp_path), run_dir.name)
    page = (run_dir / "report" / page_names.drive_page("server-1", "SIM0001")).read_text()
    told = page[page.index('id="logs-title"') : page.index('id="files-title"')]
    assert "Saved when it failed: iops: write_iops is 5 (min 9)" in told
    assert re.search(r'href="[^"]*/SIM0001/drive-error-log.json.gz" download>', told)
    assert "telemetry: none: nvme telemetry-log ended with 1: Invalid Log Page" in told
    for text in ("Its entry says retired: true. The run gave up:", "ext4, label &lt;srv&gt;", "/etc/fstab line 3"):
        assert f"<p>{text}</p>" in page
    drives = json.loads((run_dir / "report" / "summary.json").read_text())["drives"]
    told = {drive["drive"]: drive.get("gives_up") for drive in drives if drive.get("retired") == "true"}
    assert told == {"SIM0001": ["ext4, label <srv>", "/etc/fstab line 3"]}
    other = next(path for path in (run_dir / "report" / "drives").iterdir() if "SIM0001" not in path.read_text()[:400])
    assert "logs-title" not in other.read_text() and "gave up" not in other.read_text()


def test_every_page_says_of_a_changed_test_that_it_is_no_result_by_its_source(tmp_path):
    run_dir = generator.make(tmp_path, generator.DEMO, ("wsat", "iops"))
    run_json = run_dir / "run.json"
    run = json.loads(run_json.read_text())
    run["tests"]["iops"].update(
        source="after PTS-E <2.0>",
        departs={"test": "iops", "keys": ["cells", "steady_state"], "because": "it is <ours>"},
    )
    run_json.write_text(json.dumps(run))
    write_report.make(str(tmp_path), run_dir.name, asked=write_report.ReportOptions(supplier_model="SIM*"))
    made = list((run_dir / "report").rglob("*.html"))
    assert len(made) > 3
    for path in made:
        html = path.read_text()
        assert (
            "<code>iops</code> (after PTS-E &lt;2.0&gt;; other cells, steady state; it is &lt;ours&gt;). "
            "Its figures are not results" in html
        )
        assert "<code>wsat</code> (" not in html
    drive = (run_dir / "report" / page_names.drive_page(generator.DEMO[0].host, generator.DEMO[0].serial)).read_text()
    assert "changed in cells, steady state: not a result of that source" in drive
