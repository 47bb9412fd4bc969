# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet of summary.json as the tests of it make it."""

from __future__ import annotations

import json

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.peers import fleet_summary
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import download_files
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.verdict import judge
from ansible_collections.ssdlab.fleet.tests.fixtures import documents


def made(run, records, earlier=(), baseline=("", None)):
    """The section, held to its schema and to be JSON."""
    judgement = judge.judge(run, records)
    before = fleet_summary.before(run, records, judgement, earlier)
    found = fleet_summary.make(run, records, judge.valid_tests(run, records), judgement, before, baseline)
    documents.validate(json.loads(json.dumps(found, allow_nan=False)), "fleet")
    return found


def summary(run, records, earlier=()):
    """As the report writes it."""
    judgement = judge.judge(run, records)
    drives = {(record["host"], record["drive"]): record for record in records if record["kind"] == "drive"}
    return json.loads(download_files.summary(run, judgement, made(run, records, earlier), None, drives))


def flagged(found):
    return sorted({(item["host"], item["drive"]) for item in found["outliers"]})


def night(name, began, host, label="S4-0", until="", serial="S4-0", low=True):
    """An earlier run's summary: one drive of one host."""
    drive = {"host": host, "drive": label, "serial": serial, "verdict": "pass", "tests": []}
    outliers = [{"serial": serial, "host": host, "drive": label, "until": until}] if low else []
    return {"run": {"id": name, "started": began}, "drives": [drive], "fleet": {"outliers": outliers}}


def of_files(run, records):
    """The same fleet of loop devices: no serial numbers, and the same file on every host."""
    for each in [*records, *run["asked"]]:
        if "drive" in each:
            each["drive"] = f"/var/ssd{each['drive'][-1]}"
        if each.get("kind") == "drive":
            each["identity"]["serial"] = None
    return run, records
