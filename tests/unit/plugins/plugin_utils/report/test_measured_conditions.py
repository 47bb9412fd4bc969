# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Warnings and samples as the report shows them."""

from __future__ import annotations

import json

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import measured_conditions, page_names, write_report
from ansible_collections.ssdlab.fleet.tests.fixtures.report import generator

EVIL = "</script><script>throw 1</script>"


def sample(second, **fields):
    record = {
        "time": f"2026-11-21T13:00:{second:02d}.000Z",
        "temperature_c": 34 + second,
        "throttle_counts": {"t1": 3, "t2": 0},
        "link_speed_gts": 16.0,
        "link_width": 4,
        "aer": {"0000:01:00.0": {"correctable": 0, "nonfatal": 0, "fatal": 0}},
        "error": "",
        "critical_warning": 0,
        "warning_temp_min": 0,
        "critical_temp_min": 0,
        "throttle_s": None,
        "media_errors": 0,
        "seconds": 0.1,
    }
    return {**record, **fields}


def test_samples_in_a_few_words():
    seen = measured_conditions.samples([sample(0), sample(10), sample(20)])
    assert (seen["count"], seen["temperature"], seen["link"]) == (3, "34 to 54 °C", "16 GT/s x4")
    assert (seen["throttled"], seen["errors"], seen["unread"]) == ("never", "none", "")
    assert len(seen["polyline"].split()) == 3
    hot = measured_conditions.samples(
        [
            sample(0),
            sample(
                10,
                throttle_counts={"t1": 5, "t2": 0},
                link_width=1,
                aer={"a": {"correctable": 2, "nonfatal": 0, "fatal": 0}},
                temperature_c=34,
            ),
        ]
    )
    assert (hot["throttled"], hot["link"]) == ("2 × thermal management 1", "16 GT/s x4, then 16 GT/s x1")
    assert (hot["errors"], hot["temperature"]) == ("a: 2 correctable", "34 °C")
    cooled = [sample(0, fans_rpm={"a": 9000, "b": 4200}, inlet_c=23.5), sample(9, fans_rpm={"a": 9100}, inlet_c=24)]
    seen = measured_conditions.samples(cooled)
    assert (seen["fans"], seen["inlet"]) == ("4200 to 9100 rpm", "23.5 to 24 °C")


def test_what_nobody_could_read_is_not_made_up():
    empty = sample(
        0, temperature_c=None, throttle_counts=None, link_speed_gts=None, link_width=None, aer={}, error="no health"
    )
    seen = measured_conditions.samples([empty, empty])
    assert {key: seen[key] for key in ("temperature", "polyline", "link", "throttled", "errors", "unread")} == {
        "temperature": None,
        "polyline": "",
        "link": None,
        "throttled": None,
        "errors": None,
        "unread": "no health",
    }
    assert (
        measured_conditions.samples([]) is None and measured_conditions.samples([sample(0, time="?")])["polyline"] == ""
    )


def test_the_page_shows_the_warnings_of_host_and_drive_and_the_samples(tmp_path):
    folder = generator.make(tmp_path, generator.DEMO, ("wsat",))
    run = json.loads((folder / "run.json").read_text())
    common = {"host": "server-1", "level": "warning", "remedy": "do it"}
    run["warnings"] = [
        dict(common, check="cpufreq", drive=None, message="no driver " + EVIL),
        dict(common, check="health", drive="SIM0001", message="unreadable"),
        dict(common, check="wear", drive="SIM0001", message="unreadable"),
        dict(common, check="spare", drive="SIM0001", message="let pass", level="ok"),
    ]
    (folder / "run.json").write_text(json.dumps(run))
    journal = folder / "raw" / "server-1" / "journal.jsonl"
    measured = next(
        record for record in map(json.loads, journal.read_text().splitlines()) if record["event"] == "round"
    )
    with journal.open("a") as out:
        for second in (1, 2):
            out.write(json.dumps({**measured, **sample(second), "event": "sample"}) + "\n")
    write_report.make(str(folder.parent), folder.name)
    of_host = (folder / "report" / page_names.host_page("server-1")).read_text()
    page = of_host + (folder / "report" / page_names.drive_page("server-1", "SIM0001")).read_text()
    assert (
        EVIL not in page and "<code>cpufreq</code> no driver &lt;/script&gt;" in page and "To fix this: do it" in page
    )
    assert (
        page.count("<code>health</code> <code>wear</code> unreadable <span>To fix this: do it</span></li>") == 1
        and "let pass" not in page
    )
    assert "<dt>Samples</dt><dd>2: 35 to 36 °C" in page and page.count("<dt>Samples</dt>") == 1
