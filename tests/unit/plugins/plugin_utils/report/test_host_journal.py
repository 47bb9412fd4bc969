# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host's calibration looks like in the report, and what of it passes the gate."""

from __future__ import annotations

import json

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.machine import snapshot
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import parallelism_search
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base, measurement
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import ReadTogether
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import json_schema
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import host_journal
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.validation import record_check, sanitizer


def setting(name, path, outcome="changed", **more):
    return dict(
        {"name": name, "path": path, "before": "0", "wanted": "1", "effective": "1", "outcome": outcome, "message": ""},
        **more,
    )


ENVELOPE = {"schema_version": 1, "time": "2026-11-21T13:00:00.000Z", "run_id": "r", "host": "h"}


def journal(tmp_path, *events):
    folder = tmp_path / "raw" / "h"
    folder.mkdir(parents=True)
    (folder / "journal.jsonl").write_text("".join(json.dumps({**ENVELOPE, **event}) + "\n" for event in events))
    return host_journal.read(str(tmp_path), "h")


def test_settings_that_went_alike_are_one_line_and_a_few_stay_apart(tmp_path):
    many = [setting("governor", f"/cpu{number}") for number in range(64)]
    managed = [setting("interrupt", f"/irq/{number}", "managed", effective=str(number)) for number in range(9)]
    odd = setting("governor", "/cpu64", "failed", effective="0")
    few = [setting("scheduler", "/nvme0n1"), setting("scheduler", "/nvme1n1")]
    back = [setting("governor", f"/cpu{number}", "restored") for number in range(64)]
    raw = journal(
        tmp_path, {"event": "tuned", "settings": [*many, *managed, odd, *few]}, {"event": "restored", "settings": back}
    )
    assert [item["path"] for item in raw.settings] == [
        "/cpu0 and 63 more",
        "/irq/0 and 8 more",
        "/cpu64",
        "/nvme0n1",
        "/nvme1n1",
    ]
    assert raw.settings[0]["restored"]["outcome"] == "restored"


def test_the_largest_gap_between_cells_is_kept(tmp_path):
    """The brief's drive is always being accessed; before the first cell there is no gap."""
    cell = {
        "event": "cell",
        "drive": "d",
        "test": "t",
        "attempt": 1,
        "cell": "c",
        "read": None,
        "write": None,
    }
    cell = {**cell, "seed": 1, "causes": [], "seconds": 1.0, "raw": "raw/d/x.json.gz"}
    raw = journal(
        tmp_path,
        *({**cell, "round": number, "gap_s": gap} for number, gap in enumerate((None, 0.04, 0.3, 0.05), start=1)),
    )
    assert raw.measurements["d", "t", 1].largest_gap_s == 0.3


def test_the_hosts_facts_are_those_of_its_snapshot(tmp_path):
    started = {"event": "job_started", "pid": 7, "engine_version": "1", "fio_version": "fio-3.33", "boot_id": "b"}
    facts = journal(tmp_path, started, dict(base.to_json(snapshot.gather(Host())), event="snapshot")).facts
    assert facts["fio_version"] == "fio-3.33" and facts["kernel"] and facts["memory"].endswith(" GiB")
    assert all(value is None or isinstance(value, (str, int)) for value in facts.values())


def test_the_page_of_a_host_tells_how_many_drives_ran_at_once_also_after_a_second_job(tmp_path):
    cell = "rand-4k-r100-tc4-qd32-ramp1s"
    trials = [{"number": 2, "held": False, "cell": cell, "drive": "S1", "share": share} for share in (0.9, None)]
    trials[1]["number"] = 3
    told = {"event": "calibration", "parallel_drives": 1, "kept_share": 0.98, "why": "S1 is slow", "trials": trials}
    told.update(drives=["S0", "S1", "S2"], cells=[cell], seconds=80.5)
    started = {"event": "job_started", "pid": 7, "engine_version": "1", "fio_version": "fio-3.33", "boot_id": "b"}
    facts = journal(tmp_path, started, told, started).facts
    few = f"with 3 together, S1 has too few figures for {cell}"
    assert facts["drives_at_a_time"] == f"1: S1 is slow; with 2 together, S1 kept 90.0 % in {cell}; {few}"


@pytest.mark.parametrize(
    "lie",
    [
        {"parallel_drives": 0},
        {"parallel_drives": 10**9},
        {"parallel_drives": True},
        {"trials": [{}]},
        {"trials": [{"number": 2, "held": True, "cell": "<b>", "drive": "S1", "share": 1}]},
        {"trials": [{"number": 2, "held": True, "cell": "c", "drive": "S1", "share": "1"}]},
        {"drives": ["S0"] * 1001},
    ],
)
def test_a_calibration_of_another_shape_is_left_out_and_told(tmp_path, lie):
    told = {"event": "calibration", "parallel_drives": 1, "kept_share": 0.98, "why": "", "trials": [], "drives": ["S0"]}
    raw = journal(tmp_path, {**told, "cells": [], "seconds": 1, **lie})
    assert "drives_at_a_time" not in raw.facts and "(calibration)" in raw.problem


@pytest.mark.parametrize(
    "line", ["[" * 5000, "{", "7", '{"event": "round"}', '{"event": ["round"]}', '{"event": "unknown", "time": 7}']
)
def test_a_line_that_does_not_pass_costs_only_itself(tmp_path, line):
    """Torn lines and events of later versions are silently left out; a line of ours in a wrong shape is told."""
    cell = {
        "event": "round",
        "drive": "d",
        "test": "t",
        "attempt": 1,
        "round": 1,
        "elapsed_s": 1.0,
    }
    journal(tmp_path, cell, cell)
    path = tmp_path / "raw" / "h" / "journal.jsonl"
    whole = path.read_text().splitlines()
    path.write_text("\n".join([whole[0], line, whole[1]]) + "\n")
    raw = host_journal.read(str(tmp_path), "h")
    assert len(raw.measurements["d", "t", 1].rounds) == 2
    assert ("line 2 (round)" in raw.problem) == (line == '{"event": "round"}')


DRIVES = ("S0", "S1", "S2", "S3")


def told(most, drives=DRIVES):
    """As a host job tells it of drives of which so many keep what they do alone."""
    asked = ReadTogether(repeats=3, cells=[], alone=list(drives), numbers=[4, 3, 2], otherwise=1)
    alone = {"c1": {drive: [1000.0, 1001.0, 999.0] for drive in drives}}
    trials = []
    while (number := parallelism_search.next_number(asked, alone, trials)) is not None:
        share = 1.0 if number <= most else most / number
        parts = [
            {"c1": {drive: [1000.0 * share] * 3 for drive in group}}
            for group in parallelism_search.groups(drives, number, drives)
        ]
        trials.append(parallelism_search.Trial(number, parts if share == 1 else parts[:1]))
    decided = parallelism_search.decide(drives, asked, alone, trials)
    return {**base.to_json(decided), "cells": ["c1"], "seconds": 90.5}


CALIBRATION = sanitizer.Shape(json_schema.of(measurement.Calibration))
HOST = {"schema_version": 1, "kind": "host", "time": "2026-11-21T13:00:00Z", "run_id": "r", "host": "h", "state": "ok"}


@pytest.mark.parametrize("most", [1, 2, 3, 4])
def test_what_the_rule_made_passes_the_gate_and_is_shown(most):
    true = told(most)
    assert true["parallel_drives"] == most
    assert record_check.stored({**HOST, "message": "", "calibration": true})["calibration"] == true
    assert CALIBRATION.passed(true) == (true, 0)
    first, *trials = host_journal.parallelism_lines(true)
    assert first == f"{most}: {true['why']}" and len(trials) == len(true["trials"])


def test_a_trial_with_too_few_figures_says_so():
    shown = {"number": 3, "cell": "c1", "drive": "S1", "share": None}
    lines = host_journal.parallelism_lines({"parallel_drives": 1, "why": "S1 is slow", "trials": [shown]})
    assert lines == ["1: S1 is slow", "with 3 together, S1 has too few figures for c1"]


@pytest.mark.parametrize(
    "change", [{"parallel_drives": 0}, {"parallel_drives": True}, {"why": 5}, {"trials": [{}] * 3}, {"seconds": -1}]
)
def test_what_has_another_shape_does_not_pass(change):
    with pytest.raises(sanitizer.Unfit):
        CALIBRATION.passed({**told(2), **change})


def test_a_flood_of_trials_costs_the_host_its_own_record_alone():
    flood = {**told(2), "drives": ["S" * 4000 + str(number) for number in range(200)]}
    stored = record_check.stored({**HOST, "message": "", "calibration": flood})
    assert stored["state"] == "failed" and len(str(stored)) < 2000
    with pytest.raises(sanitizer.Unfit):
        sanitizer.shape_of_record(measurement.Calibration).passed({**told(2), "trials": told(2)["trials"] * 99})
