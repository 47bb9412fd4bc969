# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The first lines of the fleet's page, a host's fault on all pages, and the pages of hosts with findings."""

from __future__ import annotations

import os
import pathlib
import re

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import page_list, page_names, write_report
from ansible_collections.ssdlab.fleet.tests.fixtures.report import fleets


@pytest.fixture(name="index", scope="module")
def fixture_index(tmp_path_factory):
    """Six hosts of four drives: S1-2 is bad, h4 is slow as a whole and has another BIOS."""
    return fleets.page(tmp_path_factory.mktemp("fleet"))


def top(index):
    """What the fleet's page says before anything else but its title, as lines of text."""
    html = index.read_text()
    (found,) = re.findall(r'</h2>.*?(<ul class="first".*?</ul>)', html, re.DOTALL)
    return [" ".join(re.sub("<[^>]*>", "", item).split()) for item in found.split("</li>")[:-1]], found


def test_the_very_first_lines_name_bad_drives_and_bad_hosts(index):
    lines, html = top(index)
    assert len(lines) == 2
    assert re.fullmatch(r"Failed: S1-2 on h1 \(iops write_iops [0-9.,]+ IOPS, at least 70,000 IOPS\)", lines[0])
    assert re.fullmatch(
        r"Slow host: h4 \((19|20|21) % worse in iops write_iops; bios: AMI 2\.4 where 5 of 5 others have AMI 2\.6\)",
        lines[1],
    )
    for page in (page_names.drive_page("h1", "S1-2"), page_names.host_page("h1"), page_names.host_page("h4")):
        assert f'href="{page}"' in html


def test_the_first_lines_count_what_is_too_much_to_name(tmp_path):
    slow = {(host, 0): 0.5 for host in range(14)}
    limit = {"test": "iops", "metric": "write_iops", "min": 70000}
    run, records = fleets.fleet(24, 2, slow=slow, criteria=[limit], run_id="20261122T010000Z-qualify")
    folder = fleets.write(tmp_path, run, records)
    lines = top(pathlib.Path(write_report.make(str(tmp_path), folder.name).path))[0]
    assert lines[0].count(" on h") == 10 and lines[0].endswith(") and 4 more")


def test_a_drive_that_only_stands_out_is_named_too_and_a_good_fleet_names_none(tmp_path):
    run, records = fleets.fleet(slow={(2, 1): 0.7}, run_id="20261122T010000Z-qualify")
    folder = fleets.write(tmp_path / "a", run, records)
    lines = top(pathlib.Path(write_report.make(str(folder.parent), folder.name).path))[0]
    assert len(lines) == 1 and re.match(
        r"Stands out: S2-1 on h2 \(iops: write_iops 7.* worse than the median of", lines[0]
    )
    good = fleets.write(tmp_path / "b", *fleets.fleet(run_id="20261122T010000Z-qualify"))
    assert 'class="first"' not in pathlib.Path(write_report.make(str(good.parent), good.name).path).read_text()


@pytest.fixture(name="by_host", scope="module")
def fixture_by_host(tmp_path_factory):
    """Eight hosts of four drives: h3 is low, and its drives miss a relative criterion by that; S5-2 by itself."""
    share = {"test": "iops", "metric": "write_iops", "min_of_median": 0.9}
    run_id = "20261122T010000Z-qualify"
    run, records = fleets.fleet(8, low={3: 0.82}, slow={(5, 2): 0.7}, criteria=[share], run_id=run_id)
    folder = fleets.write(tmp_path_factory.mktemp("fleet"), run, records)
    return pathlib.Path(write_report.make(str(folder.parent), folder.name).path)


def test_a_hosts_fault_is_on_every_page(by_host):
    lines = top(by_host)[0]
    assert [line.split(" (")[0] for line in lines] == ["Failed: S5-2 on h5", "Slow host: h3"]
    assert lines[1].endswith("; 4 of its drives failed because of that)")
    fault = '<span class="pill low">the host\'s fault</span>'
    assert (by_host.parent / page_names.host_page("h3")).read_text().count(fault) == 4
    assert fault in (by_host.parent / page_names.drive_page("h3", "S3-1")).read_text()
    assert fault not in (by_host.parent / page_names.drive_page("h5", "S5-2")).read_text()
    told = fleets.data_of(by_host)
    assert sum(told["texts"][drive[8]] == "slow host" for drive in told["drives"]) == 4
    assert sum(told["texts"][drive[11]].startswith("the host's fault: h3") for drive in told["drives"]) == 4


def broken_links(folder):
    """(page, link) of links to pages that are not there."""
    html = [(page, page.read_text()) for page in folder.rglob("*.html")]
    hrefs = [(page, href) for page, text in html for href in re.findall(r'href="([^"#]+\.html)"', text)]
    data = fleets.data_of(folder / "index.html")
    hrefs += [
        (folder / "index.html", listed[place]) for key, place in (("drives", 3), ("hosts", 1)) for listed in data[key]
    ]
    return [(page.name, href) for page, href in hrefs if href and not (page.parent / href).resolve().exists()]


def test_every_host_with_a_finding_has_its_page_however_many_drives_have_theirs(tmp_path, monkeypatch):
    """h4 is low; h1 has a failed drive, h2 one that passed and stands out, h6 one that was not measured."""
    monkeypatch.setattr(page_list, "MOST_PAGES", 2)
    limit = {"test": "iops", "metric": "write_iops", "min": 70_000}
    run_id = "20261122T010000Z-qualify"
    slow = {(1, 0): 0.4, (1, 1): 0.4, (2, 1): 0.75, (5, 0): 0.4}
    run, records = fleets.fleet(8, slow=slow, low={4: 0.8}, criteria=[limit], run_id=run_id)
    records = [record for record in records if (record["kind"], record.get("drive")) != ("test", "S6-0")]
    folder = fleets.write(tmp_path, run, records)
    index = pathlib.Path(write_report.make(str(tmp_path), folder.name).path)
    assert len(list((folder / "report" / "drives").iterdir())) == 2
    assert {path.name for path in (folder / "report" / "hosts").iterdir()} == {
        os.path.basename(page_names.host_page(name)) for name in ("h1", "h2", "h4", "h5")
    }
    assert broken_links(folder / "report") == []
    page = (index.parent / page_names.host_page("h5")).read_text()
    assert "S5-0" in page and page_names.drive_page("h5", "S5-0") not in page
    assert page_names.host_page("h2") in top(index)[1] and page_names.host_page("h4") in top(index)[1]


def test_names_do_not_fill_the_first_lines(tmp_path):
    """Of a failed drive, of one that stands out, and of the low host."""
    limit = {"test": "iops", "metric": "write_iops", "min": 70000}
    slow = {(1, 2): 0.5, (2, 1): 0.75}
    run, records = fleets.fleet(slow=slow, low={4: 0.8}, criteria=[limit], run_id="20261122T010000Z-qualify")
    for record in [*records, *run["asked"]]:
        record["host"] = record["host"].replace("h4", "h4" + "n" * 200)
        if record.get("drive") in ("S1-2", "S2-1") and "identity" in record:
            record["identity"]["serial"] = record["drive"] + "<b>\u202e" + "N" * 9000
    folder = fleets.write(tmp_path, run, records)
    lines, html = top(pathlib.Path(write_report.make(str(tmp_path), folder.name).path))
    assert len(lines) == 3 and max(map(len, lines)) < 200
    assert "<b>N" not in html and "\u202e" not in html
