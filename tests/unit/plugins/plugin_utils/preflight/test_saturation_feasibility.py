# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A saturation test that no drive of a model can finish is refused where that was measured, and only there."""

from __future__ import annotations

import json

import pytest
import yaml

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import time_estimates
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.render_plan import load_plan, render
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import saturation_feasibility
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight.saturation_feasibility import Saturation
from ansible_collections.ssdlab.fleet.tests.fixtures.plans import found

TB, MIB = 10**12, 1 << 20
CELL = "rand-4k-w100-tc4-qd32"
FRESH = {"method": "nvme_sanitize_block", "seconds": 9, "verified": True, "purge_class": "pts"}
FRESH["verification"] = {"sentinels": 8, "survived": 0, "unreadable": 0}
FILLED = {"passes": 2, "bytes_written": 8, "seconds": 1, "bandwidth_bytes_per_s": 8, "remainder_bytes": 0}
FILLED.update(block_size_bytes=1, data="random", kernel_bytes_written=None)
MODEL = "QLC 61"
# Fresh at 30,000 IOPS for one capacity of 7.68 TB, then 20,000.
SEEN = Saturation(MODEL, 7_680 * 10**9, CELL, 7_680 * 10**9, 62_500.0, 82e6, "r1", "h1", "S9")
# Another drive of the model, which took no less.
OTHER = SEEN._replace(drive="S8")


# A test that has to become steady, after which the shipped one is not asked.
WSAT = {"name": "wsat", "base": "wsat", "steady_state": {"required": True}}


def planned(size=7_680 * 10**9, model=MODEL, plan=(WSAT,), transport="nvme"):
    identity = {
        "serial": "S1",
        "model": model,
        "size_bytes": size,
        "logical_block_size_bytes": 512,
        "transport": transport,
    }
    drives = [{"selector": {"serial": "S1"}, "identity": identity}]
    return {
        "h1": render(
            load_plan(list(plan)),
            run={"id": "r", "name": "n"},
            host="h1",
            boot_id="b",
            drives=found(drives),
            engine_version="0",
            variables={},
        )
    }


def test_the_refusal_has_the_arithmetic_its_source_and_another_test():
    (found,) = saturation_feasibility.findings(planned(), [SEEN, OTHER])
    text = found.text()
    for part in (
        "test wsat",
        "2 x 7.68 TB",
        "at least 39 h",
        "run r1",
        "7.68 TB in 17 h 22 min",
        "82 MB/s",
        "no write saturation",
        "h1",
        "S1",
    ):
        assert part in text, (part, text)


def test_one_host_has_no_other_ones_tests_refused():
    """Whatever it says of however many drives of the fleet's model: the others are warned."""
    liar = [SEEN._replace(host="h2", drive=f"F{number}", then_bytes_per_s=1.0) for number in range(200)]
    assert (
        saturation_feasibility.findings(planned(), liar) == []
        and len(saturation_feasibility.warnings(planned(), liar)) == 1
    )
    assert saturation_feasibility.findings({"h2": planned()["h1"]}, liar) and saturation_feasibility.findings(
        planned(), [*liar, SEEN]
    )


@pytest.mark.parametrize(
    "known, made",
    [
        ([], {}),
        ([SEEN._replace(model="other")], {}),
        ([SEEN._replace(size_bytes=TB)], {}),
        ([SEEN._replace(cell="rand-4k-w100-tc1-qd1")], {}),
        ([SEEN._replace(then_bytes_per_s=4e9)], {}),
        ([SEEN, SEEN._replace(then_bytes_per_s=4e9)], {}),  # one drive that could is enough
        ([SEEN._replace(written_bytes=2 * SEEN.size_bytes)], {}),  # it did
        ([SEEN], {"transport": "loop"}),
        ([SEEN], {"plan": ("iops",)}),
        ([SEEN], {"plan": ("wsat",)}),  # its curve counts
        ([SEEN], {"plan": ({**WSAT, "rounds": {"time_limit_s": 10**6}},)}),
    ],
)
def test_what_is_not_proved_is_not_refused(known, made):
    assert (
        saturation_feasibility.findings(planned(**made), known)
        == saturation_feasibility.warnings(planned(**made), known)
        == []
    )


@pytest.mark.parametrize("known", [[SEEN], [SEEN, SEEN._replace(run_id="r2", then_bytes_per_s=81e6)]])
def test_one_drive_may_be_a_bad_one_of_its_model_and_is_only_a_warning(known):
    assert saturation_feasibility.findings(planned(), known) == []
    (warned,) = saturation_feasibility.warnings(planned(), known)
    assert warned.level == "warning" and "run r1 measured" in warned.message and "steady-writes" in warned.remedy
    assert saturation_feasibility.warnings(planned(), [*known, OTHER]) == []


def test_what_is_offered_is_a_test_that_is_no_wsat_and_waits_for_nothing():
    (wsat,) = load_plan(["wsat"])
    (offered,) = load_plan([yaml.safe_load(saturation_feasibility.alternative(wsat))])
    assert offered.name != "wsat" and "saturation" not in offered.title.lower()
    assert offered.precondition.passes == 2 and offered.steady_state.min_capacity_multiple == 0
    assert offered.cells == wsat.cells and time_estimates.time_for_writing_s(offered) is None


def results(folder, run_id, model=MODEL, cells=(CELL,), **changes):
    """A run's folder in which one wsat ended for want of time."""
    place = folder / run_id
    place.mkdir()
    about = {"wsat": {"title": "x", "source": "", "tracked": [], "cells": list(cells)}}
    run = {
        "schema_version": 1,
        "run": {"id": run_id, "name": "q"},
        "started": "2026-01-01T00:00:00Z",
        "criteria": [],
        "tests": about,
    }
    run.update(asked=[{"host": "h1", "drive": "S9", "tests": ["wsat"]}], versions={})
    (place / "run.json").write_text(json.dumps(run))
    common = {"schema_version": 1, "time": "2026-01-01T00:00:00.000Z", "run_id": run_id, "host": "h1", "drive": "S9"}
    records = drive_of(common, model), {**not_steady(common), **changes}
    (place / "results.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


def drive_of(common, model):
    """The record of its drive."""
    drive = {**common, "kind": "drive", "path": "/dev/x", "outcome": "complete", "message": "", "refusals": []}
    drive["identity"] = {"model": model, "size_bytes": SEEN.size_bytes, "serial": "S9", "wwn": None, "firmware": None}
    return drive


def not_steady(common):
    """The record of the test."""
    window = {
        "cell": CELL,
        "metric": "write_iops",
        "steady": True,
        "rounds": 9,
        "window_rounds": [9],
        "window_values": [1.0],
        "average": 20_000.0,
    }
    window.update(range_ratio=0.0, slope=0.0, slope_ratio=0.0, reasons=[])
    shown = {
        "min_capacity_multiple": 2,
        "confirm_windows": 1,
        "settle_s": 0,
        "user_capacity_bytes": SEEN.size_bytes,
        "averages": [],
    }
    shown.update(written_before_bytes=SEEN.written_bytes, elapsed_before_s=SEEN.elapsed_s)
    test = {
        **common,
        "kind": "test",
        "test": "wsat",
        "attempt": 1,
        "title": "x",
        "started": common["time"],
        "finished": None,
        "outcome": "not_steady",
    }
    test.update(
        reasons=[],
        rounds=9,
        steady_state=[window],
        saturation=shown,
        metrics={"write_bandwidth": 82e6},
        precondition=None,
    )
    test.update(purge=FRESH, not_applicable=[])
    return test


def test_earlier_results_are_read_from_the_results_folder(tmp_path):
    results(tmp_path, "r1")
    results(tmp_path, "r2", model="other")
    results(tmp_path, "r3", cells=(CELL, "rand-4k-r100-tc4-qd32"))
    results(tmp_path, "r4", outcome="error")
    results(tmp_path, "r5", metrics={"write_bandwidth": None})
    results(tmp_path, "r6", precondition=FILLED)
    results(tmp_path, "r7", purge=None)
    results(tmp_path, "r8", purge={**FRESH, "verified": False})
    results(tmp_path, "r9", purge={**FRESH, "purge_class": "not_pts"})
    (tmp_path / "r5" / "results.jsonl").open("a").write('{"kind": "test", "written_before_bytes": 7, "torn')
    assert saturation_feasibility.saturations(str(tmp_path), {MODEL}) == [SEEN]
    assert (
        saturation_feasibility.saturations(str(tmp_path), set())
        == saturation_feasibility.saturations(str(tmp_path / "none"), {MODEL})
        == []
    )
    assert (
        saturation_feasibility.wanted_models(planned()) == {MODEL}
        and saturation_feasibility.wanted_models(planned(plan=("iops",))) == set()
    )
