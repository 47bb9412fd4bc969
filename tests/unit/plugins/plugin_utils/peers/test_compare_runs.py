# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configurations A and B side by side: in summary.json, and on the page of the fleet."""

from __future__ import annotations

import json
import re

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.peers import fleet_verdicts
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import write_report
from ansible_collections.ssdlab.fleet.tests.fixtures import documents
from ansible_collections.ssdlab.fleet.tests.fixtures.report import fleets

A, B = "20261121T010000Z-config-a", "20261122T010000Z-config-b"


def page_of(results, otherwise=lambda records: None, both=lambda run_id, records: None):
    """(summary.json, index.html) of B, other drives on a host that is a fifth slower, beside A."""
    for run_id, given in ((A, {}), (B, {"low": {0: 0.8}, "seed": 2})):
        run, records = fleets.fleet(hosts=1, drives=2, noise=0.001, run_id=run_id, **given)
        if run_id == B:
            otherwise(records)
        both(run_id, records)
        folder = fleets.write(results, run, records)
        write_report.make(str(results), run_id, against=fleet_verdicts.Baseline(A if run_id == B else ""))
    report = folder / "report"
    return json.loads((report / "summary.json").read_text()), (report / "index.html").read_text()


def others(records):
    for record in records:
        if record["kind"] == "drive":
            record["identity"].update(serial="T" + record["identity"]["serial"])


def test_two_drives_of_each_configuration_stand_side_by_side_though_nothing_can_be_judged(tmp_path):
    told, html = page_of(tmp_path, others)
    documents.validate(told, "summary")
    baseline = told["fleet"]["baseline"]
    assert baseline["changes"] == []  # no drive is in both
    (rate,) = [side for side in baseline["figures"] if side["metric"] == "write_iops"]
    assert rate["by"] == pytest.approx(-0.2, abs=0.01) and (rate["n"], rate["of"], rate["test"]) == (2, 2, "iops")
    assert rate["here"] / rate["there"] - 1 == pytest.approx(rate["by"])
    assert f"Side by side: {A} and this run" in html and re.search(
        r"<td data-v=\"-0\.\d+\">−(19|20)\.?\d* %</td>", html
    )


def test_what_was_measured_otherwise_stands_beside_the_figures(tmp_path):
    def formatted(records):
        for record in records:
            if record["kind"] == "drive":
                record["identity"]["logical_block_size_bytes"] = 4096

    told, html = page_of(tmp_path, formatted)
    assert {side["changed"] for side in told["fleet"]["baseline"]["figures"]} == {"LBA format 512 → 4096"}
    assert "<td>LBA format 512 → 4096</td>" in html


def test_counts_maxima_and_ends_of_fitted_lines_are_left_to_the_summary(tmp_path):
    told, _html = page_of(tmp_path)
    shown = {side["metric"] for side in told["fleet"]["baseline"]["figures"]}
    assert shown and all(name.endswith(("iops", "bandwidth", "mean_latency_us", "p99_9_latency_us")) for name in shown)


def test_how_many_drives_ran_at_a_time_is_told_and_keeps_nothing_from_being_compared(tmp_path):
    def numbered(run_id, records):
        for record in records:
            if record["kind"] == "test":
                record["parallel_drives"] = 2 if run_id == A else 1

    told, html = page_of(tmp_path, both=numbered)
    documents.validate(told, "summary")
    assert {test["parallel_drives"] for drive in told["drives"] for test in drive["tests"]} == {1}
    baseline = told["fleet"]["baseline"]
    assert {side["changed"] for side in baseline["figures"]} == {"drives at a time 2 → 1"}
    assert "<td>drives at a time 2 → 1</td>" in html
    assert baseline["changes"] and {item["verdict"] for item in baseline["changes"]}.isdisjoint({"conditions changed"})
