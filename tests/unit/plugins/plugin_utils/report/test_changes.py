# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What changed, at the top of the fleet's page and in its tables."""

from __future__ import annotations

import pathlib
import re

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import changes, write_report
from ansible_collections.ssdlab.fleet.tests.fixtures.report import fleets, generator

CHANGE = {
    "model": "M",
    "test": "iops",
    "metric": "iops",
    "verdict": "worse",
    "by": 0.071,
    "n": 9,
    "before": 9,
    "firmware": "2",
    "against": "2",
}
BETTER = {**CHANGE, "verdict": "better", "by": -0.2}
LIMIT = [{"test": "iops", "metric": "write_iops", "min": 70_000}]


def was(before, now, drive="S1"):
    return {"host": "h1", "drive": drive, "before": before, "now": now}


@pytest.mark.parametrize(
    ("verdicts", "figures", "told"),
    [
        ([], [], []),
        ([was("pass", "fail")], [], ["1 drive (S1 on h1) no longer passes"]),
        ([was("pass", "fail"), was("pass", "invalid", "S2")], [], ["2 drives no longer pass"]),
        ([was("fail", "pass"), was(None, "pass", "S2")], [], ["1 drive (S1 on h1) now passes", "1 drive is new"]),
        ([was("invalid", "fail"), was("fail", "fail", "S2")], [], ["1 drive (S1 on h1) fails now"]),
        ([was(None, "fail"), was(None, "pass", "S2")], [], ["2 drives are new, 1 of which fails"]),
        ([was("fail", "invalid")], [], []),
        ([], [CHANGE], ["M: iops iops is 7.1 % worse"]),
        ([], [BETTER, {**CHANGE, "verdict": "same"}], ["M: iops iops is 20 % better"]),
        (
            [],
            [BETTER, CHANGE, {**CHANGE, "by": 0.3, "against": "1"}],
            ["M with firmware 2 instead of 1: iops iops is 30 % worse, and 1 more figure worse"],
        ),
        ([], [{**CHANGE, "verdict": "conditions changed", "changed": "x"}], []),
    ],
)
def test_the_news_since_the_run_before(verdicts, figures, told):
    since = {"run": "r1", "verdicts": verdicts, "changes": figures}
    assert changes.news({"since": since}, ["r1"]) == {"run": "r1", "href": "../../r1/report/index.html", "told": told}


def test_without_a_run_before_or_a_judgement_there_is_no_news():
    assert changes.news({"since": None}, []) == {"run": "", "href": "", "told": []}
    assert changes.news({"problem": "no pandas", "since": None}, []) is None


def page_of(results, nights):
    """The page of the last of these runs: (run id, what fleets.fleet takes)."""
    for run_id, given in nights:
        run, records = fleets.fleet(run_id=run_id, criteria=LIMIT, **given)
        folder = fleets.write(results, {**run, "started": f"2026-11-{run_id[6:8]}T01:00:00Z"}, records)
        write_report.make(str(results), run_id)
    return (folder / "report" / "index.html").read_text()


def test_the_page_says_at_the_top_what_changed_and_shows_it_below(tmp_path):
    days = [f"202611{day}T010000Z-qualify" for day in (20, 21, 22)]
    html = page_of(tmp_path, [(days[0], {}), (days[1], {}), (days[2], {"slow": {(1, 2): 0.5}, "firmware": "D1MU030"})])
    top = html[: html.index('id="drives-title"')]
    assert "Since the previous run" in top and "1 drive (S1-2 on h1) no longer passes" in top
    assert f'href="../../{days[1]}/report/index.html"' in top and 'href="#since-title"' in top
    assert re.search(r'id="nights-title">Against the 2 runs before', html)
    assert "There is no run of this name" in (tmp_path / days[0] / "report/index.html").read_text()


def test_two_firmwares_of_a_run_are_compared_on_the_page(tmp_path):
    """What the new firmware did is on the page that people open first."""
    run, records = fleets.fleet(hosts=4, run_id="20261122T010000Z-qualify")
    other, newer = fleets.fleet(hosts=4, firmware="D1MU030", low=dict.fromkeys(range(4), 0.8), seed=2)
    for record in newer + other["asked"]:
        record["host"] = "n" + record["host"]
    run["asked"] += other["asked"]
    folder = fleets.write(tmp_path, run, records + newer)
    write_report.make(str(tmp_path), folder.name)
    html = (folder / "report" / "index.html").read_text()
    top = html[: html.index('id="drives-title"')]
    assert "in this run, MTFDDAK960TDS with firmware D1MU030 instead of D1MU020: iops write_" in top
    assert re.search(r"D1MU030 instead of D1MU020</td><td>iops</td><td>write_iops</td><td data-v=\"16\">16</td>", html)


def test_drives_that_share_a_reason_and_a_host_are_told_once(tmp_path):
    """A host that never answered is told once, not for each of its drives and once more for itself."""
    lost = [("server-9", f"SIM9{number:02}") for number in range(10)]
    run_dir = generator.make(tmp_path, unreachable=lost)
    html = pathlib.Path(write_report.make(str(tmp_path), run_dir.name).path).read_text()
    told = html[html.index('class="first"') : html.index('id="drives-title"')]
    assert told.count("connection timed out") == 1 and "10 drives on" in told and "SIM907" not in told


@pytest.mark.parametrize(
    ("hosts", "drives", "outcome", "headline"),
    [
        (1, 0, "steady", "No drive was asked for."),
        (1, 1, "steady", "The drive passed (held to no criterion)."),
        (6, 4, "invalid", "0 of 24 drives passed; 24 not measured validly: "),
    ],
)
def test_a_fleet_of_none_of_one_and_of_nothing_that_counts_has_its_page(tmp_path, hosts, drives, outcome, headline):
    index = fleets.odd_page(tmp_path, hosts, drives, outcome)
    html = index.read_text()
    assert headline in html and ("fleet-data" in html) == (drives == 4) and ('id="rows"' in html) == (drives == 4)
    assert ("chart-data" in html) == (drives == 1) and 'class="groups"' not in html
    assert (index.parent / "summary.json").exists() and "NaN" not in (index.parent / "summary.json").read_text()
