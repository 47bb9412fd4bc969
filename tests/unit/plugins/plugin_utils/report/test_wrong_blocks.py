# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of a drive that did not keep what an integrity test wrote."""

from __future__ import annotations

import csv
import json
import re
import typing

import jsonschema
import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.records.measurement import WrongKind
from ansible_collections.ssdlab.fleet.tests.fixtures import documents
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.report.built import drive_page, made

BLOCK = {
    "pass_number": 2,
    "offset_bytes": 57344,
    "kind": "stale",
    "found": "what was written there by pass 1",
    "wrong_sectors": 8,
    "read_right": 0,
}
FOUND = {
    "passes": 2,
    "block_size_bytes": 4096,
    "bytes_written": 2 << 30,
    "bytes_read": 2 << 30,
    "write_s": 9.5,
    "read_s": 4.5,
    "other_write_bytes": 0,
    "wrong_blocks": {"stale": 1},
    "complete": True,
    "first": [BLOCK],
    "wrong_by_part": [0, 2, 0, 1],
}


@pytest.fixture(name="lied")
def fixture_lied(mixed):
    """The run, with an integrity test of SIM0001 that found a stale block."""
    results, about = mixed / "results.jsonl", mixed / "run.json"
    records = [json.loads(line) for line in results.read_text().splitlines()]
    like = next(one for one in records if (one.get("drive"), one.get("test")) == ("SIM0001", "iops"))
    nothing = {"metrics": {}, "steady_state": [], "rounds": 0, "precondition": None, "not_applicable": []}
    record = {**like, **nothing, "test": "integrity", "title": "Integrity", "outcome": "complete", "integrity": FOUND}
    documents.validate(record, "results")
    results.write_text("".join(json.dumps(one) + "\n" for one in [*records, record]))
    run = json.loads(about.read_text())
    test = {"title": "Integrity", "purge": {"method": "auto"}, "precondition": None, "integrity": {"passes": 2}}
    run["tests"]["integrity"] = {**{key: None for key in run["tests"]["iops"]}, "cells": [], **test}
    about.write_text(json.dumps(run))
    return mixed


def test_the_drive_fails_and_its_page_lists_the_blocks(lied):
    made(lied)
    summary = json.loads((lied / "report" / "summary.json").read_text())
    verdicts = {drive["drive"]: drive["verdict"] for drive in summary["drives"]}
    assert verdicts["SIM0001"] == "fail" and verdicts["SIM0002"] != "fail"
    html = drive_page(lied, "server-1", "SIM0001")
    (table,) = re.findall(r"Blocks that were not read back as written.*?</table>", html, re.DOTALL)
    cells = [" ".join(cell.split()) for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", table, re.DOTALL)]
    assert cells[-6:] == ["57344", "2", "stale", "8", "0 of 3", "what was written there by pass 1"]
    assert "1 block of 4,096 bytes not read back as written (1 stale)" in html
    assert "2 ×: 2.147 GB written in 9.5 s, 2.147 GB read in 4.5 s" in html
    rows = list(csv.DictReader((lied / "report" / "results.csv").open(newline="")))
    (row,) = [row for row in rows if row["test"] == "integrity" and row["drive"] == "SIM0001"]
    assert row["verdict"] == "fail"


def test_its_page_has_a_map_of_where_they_lie(lied):
    made(lied)
    html = drive_page(lied, "server-1", "SIM0001")
    (picture,) = re.findall(r'<figure class="wrong-map">.*?</figure>', html, re.DOTALL)
    assert "in 2 of 4 equal parts of what was written, 2 at most in one of them" in picture
    # A quarter of 240 px each; the tallest fills the strip.
    assert re.findall(r"M([\d.]+) 26v-([\d.]+)", picture) == [("60.0", "25.0"), ("180.0", "17.7")]
    assert re.findall(r"<span>([^<]*)</span>", picture) == ["0 B", "1.074 GB"]
    assert 'aria-label="3 wrong blocks in 2 of 4 equal parts' in picture


def test_blocks_of_a_host_that_does_not_tell_where_have_no_map(lied):
    lines = [json.loads(line) for line in (lied / "results.jsonl").read_text().splitlines()]
    for line in lines:
        if line.get("test") == "integrity":
            del line["integrity"]["wrong_by_part"]
    (lied / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    made(lied)
    html = drive_page(lied, "server-1", "SIM0001")
    assert "Blocks that were not read back as written" in html and 'class="wrong-map"' not in html


@pytest.mark.parametrize("kind", [*typing.get_args(WrongKind), "<b>", "stale ", ""])
def test_a_host_makes_up_no_kind(lied, kind):
    lines = map(json.loads, (lied / "results.jsonl").read_text().splitlines())
    (record,) = [line for line in lines if line.get("test") == "integrity"]
    record["integrity"]["wrong_blocks"] = {kind: 1}
    if kind in typing.get_args(WrongKind):
        documents.validate(record, "results")
    else:
        with pytest.raises(jsonschema.ValidationError):
            documents.validate(record, "results")
