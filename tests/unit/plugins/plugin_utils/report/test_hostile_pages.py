# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What hosts say is text on the pages: no script, no path, no character that XML cannot hold."""

from __future__ import annotations

import csv
import json
import re
from xml.etree import ElementTree

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import page_names, render, write_report
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import results_log
from ansible_collections.ssdlab.fleet.tests.fixtures.report import generator
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.report.built import (
    all_pages,
    charts,
    drive_page,
    embedded,
    made,
    page,
    without_plotly,
)

EVIL = "</script><script>throw 1</script><img src=x onerror=throw(2)>"


@pytest.mark.parametrize(
    "evil",
    [
        EVIL,
        "\u2028throw 3\u2029",
        "{{ 7 * 7 }}",
        "'\"><svg onload=throw(4)>",
        "-->]]><!--",
        "</style>",
        "javascript:throw(5)",
    ],
)
def test_what_hosts_say_is_text_only(tmp_path, evil):
    drive = generator.Drive("server-4", "=cmd|'/c calc'!A0", evil, 90_000, 40_000, "steady")
    run_dir = generator.make(tmp_path, [*generator.DEMO, drive], unreachable=[(evil, evil)])
    write_report.make(str(tmp_path), run_dir.name, asked=write_report.ReportOptions(supplier_model="*"))
    pages = all_pages(run_dir)
    assert len(pages) == 1 + 5 + 5 + 1
    for html in map(without_plotly, pages):
        for tag in ("<img", "<svg onload", "<!--"):
            assert tag not in html
        assert not any(
            separator in script
            for script in re.findall(r"<script.*?</script>", html, re.DOTALL)
            for separator in "\u2028\u2029"
        )
        # Every script is one of ours, and every one ends where it was meant to.
        opened = re.findall(r"<script([^>]*)>", html)
        assert len(opened) == html.count("</script>") and html.count("</style>") <= 1
        assert set(opened) <= {"", *(f' type="application/json" {name}' for name in DATA), *SCRIPTS}
        assert not re.search(r'(?:href|src)="javascript', html)
    data = embedded(page(run_dir), "fleet-data")
    # The gate shows separators of lines as what they are.
    shown = evil.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    assert shown in data["models"] and evil in [host[0] for host in data["hosts"]] and "49" not in data["models"]
    assert charts(drive_page(run_dir, drive.host, drive.serial))[0]["model"] == shown
    rows = list(csv.DictReader((run_dir / "report" / "results.csv").open(newline="")))
    assert rows[3]["drive"] == "'" + drive.serial


DATA = ('id="fleet-data"', 'class="chart-data"')
SCRIPTS = {f' src="{up}{name}" defer' for up in ("", "../") for name in ("plotly.min.js", "pages.js")}


@pytest.mark.parametrize("text", ["</script>", "\u2028", "\u2029", "<!--", "&amp;", "\ud800", "é", '"', "\\"])
def test_data_for_scripts_holds_every_text_and_ends_no_script(text):
    shown = render.script_data({"key": text})
    assert not re.search("[<>&\u2028\u2029\ud800]", shown) and json.loads(shown) == {"key": text}


def test_pages_have_path_safe_names_that_differ(tmp_path):
    given = ["a/b", "a_b", "A_b", "..", "../../etc/passwd", "x" * 255, "", "a\0b", "é", ".hidden"]
    found = (
        [page_names.host_page(name) for name in given]
        + [page_names.drive_page("h", name) for name in given]
        + [page_names.supplier_page(name) for name in given]
    )
    assert len({name.lower() for name in found}) == len(found)
    assert all(
        re.fullmatch(r"(?:hosts/|drives/|supplier-)[A-Za-z0-9_-][A-Za-z0-9._-]{0,180}\.html", name) for name in found
    )


def test_characters_that_xml_cannot_hold(tmp_path):
    run_dir = generator.make(tmp_path, unreachable=[("h\x00\x1b[31m", "d\ufffe")])
    made(run_dir)
    ElementTree.parse(run_dir / "report" / "junit.xml")


def test_a_host_name_does_not_lead_out_of_the_run(tmp_path):
    run_dir = generator.make(tmp_path)
    for name in ("..", "../../etc"):
        results_log.append(
            str(run_dir / "results.jsonl"),
            [{"schema_version": 1, "kind": "host", "host": name, "state": "ok", "message": ""}],
        )
    made(run_dir)
