# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""run.json. How preflight makes it is tested in preflight/test_decision.py."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import PlannedRun
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import run_record
from ansible_collections.ssdlab.fleet.tests.fixtures import documents

RECORD = run_record.RunRecord(
    schema_version=1,
    run=PlannedRun("r1", "qualify"),
    started="2026-11-21T13:00:00Z",
    asked=[run_record.RequestedDrive("h1", "S1", wear_budget_bytes=0)],
    criteria=[{"metric": "write_iops", "min": "5", "max": None}],
    tests={"iops": {"title": "IOPS", "source": None, "cells": ["c"]}},
    versions={"collection": "0.1.0"},
    warnings=[run_record.RunWarning("h1", "governor", None, "ok", "powersave", "set it")],
)


def test_what_is_not_known_of_a_drive_is_not_there():
    written = base.to_json(RECORD)
    documents.validate(written, "run")
    assert written["asked"] == [{"host": "h1", "drive": "S1", "wear_budget_bytes": 0}]
    assert base.parse(run_record.RunRecord, written) == RECORD


@pytest.mark.parametrize(
    "change",
    [
        {"run": {"id": "../r1", "name": "qualify"}},
        {"started": None},
        {"asked": [{"host": "h1"}]},
        {"asked": [{"host": "h1", "drive": "S1", "model": None}]},
        {"criteria": [{"min": 5}]},
        {"criteria": [{"metric": "write_iops"}]},
        {"criteria": [{"metric": "write_iops", "min_of_baseline": 0.9}]},
        {"criteria": [{"metric": "write_iops", "min": 5, "mim": 4}]},
        {"tests": {"iops": {}}},
        {"tests": {"iops": {"title": "IOPS", "departs": {"test": "iops", "keys": []}}}},
        {"unknown_causes": "ignore"},
        {"warnings": [{"host": "h1"}]},
    ],
)
def test_a_wrong_record_is_refused(change):
    assert not documents.validator("run").is_valid({**base.to_json(RECORD), **change})


def test_slices_of_a_run_keep_what_each_of_them_asked_for():
    other = run_record.RequestedDrive("h2", "S2", preferred_write_bytes=4096)
    first = {**base.to_json(RECORD), "asked": [base.to_json(other)], "started": "2026-11-21T12:00:00Z"}
    loose = {"metric": "longest_io_s", "max": 60}
    first["health_criteria"] = {"h1": [loose], "h2": [loose]}
    merged = run_record.merge_run(first, {**base.to_json(RECORD), "health_criteria": {"h1": []}})
    assert merged["health_criteria"] == {"h1": [], "h2": [loose]}
    assert [entry["drive"] for entry in merged["asked"]] == ["S2", "S1"]
    assert merged["started"] == "2026-11-21T12:00:00Z" and len(merged["warnings"]) == 1
