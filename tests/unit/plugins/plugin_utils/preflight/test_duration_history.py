# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The time of a plan by earlier runs: of constructed histories whose truth is known the range has the truth in it."""

from __future__ import annotations

import dataclasses
import datetime
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.records.purge import OfferedPurge
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import units
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.render_plan import load_plan, render
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import (
    decision,
    duration_history,
    earlier_rates,
    host_plans,
    plan_text,
    timings,
)
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight.timings import AROUND, Timing
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import runs
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.verdict import comparability
from ansible_collections.ssdlab.fleet.tests.fixtures import host_answers
from ansible_collections.ssdlab.fleet.tests.fixtures.plans import found

SIZE, MODEL = 960 * 10**9, "MTFD 960"
IDENTITY = {"serial": "S1", "model": MODEL, "size_bytes": SIZE, "logical_block_size_bytes": 512, "transport": "nvme"}
TESTS = load_plan(["iops"])
ABOUT = {test.name: host_plans.about_test(test) for test in TESTS}
DEFINED = comparability.definitions({"tests": ABOUT})
ROUND_S = 56 * 60.4


def planned(host="h1", **identity):
    drives = found([{"selector": {"serial": "S1"}, "identity": {**IDENTITY, **identity}}])
    about = {"run": {"id": "r", "name": "n"}, "host": host, "boot_id": "b", "engine_version": "0"}
    return render(TESTS, drives=drives, variables={"ssd_leave": "blank"}, **about)


def timing(number=1, rate=5e8, purge_s=60.0, rounds=5, round_s=ROUND_S, **changes):
    made = Timing(f"r{number}", "h1", f"S{number}", MODEL, SIZE, "iops", DEFINED["iops"], "nvme_format", purge_s, rate,
                  rounds, rounds * round_s)  # fmt: skip
    return made._replace(**changes)


def truth(rate=5e8, purge_s=60.0, rounds=5, round_s=ROUND_S):
    return purge_s + 2 * SIZE / rate + rounds * round_s


def of(seen, plan=None, chosen=None):
    return duration_history.known(plan or planned(), DEFINED, seen, chosen).get(("S1", "iops"))


near = st.floats(0.955, 1.045)


@given(
    rate=st.floats(5e7, 1e10),
    purge_s=st.floats(0, 7200),
    rounds=st.integers(5, 25),
    seen=st.lists(st.tuples(near, near, near), min_size=1, max_size=30),
)
def test_the_range_has_the_truth_in_it_and_is_within_ten_percent(rate, purge_s, rounds, seen):
    known = of(
        [
            timing(number, rate * one, purge_s * two, rounds, ROUND_S * max(1.0, three))
            for number, (one, two, three) in enumerate(seen)
        ]
    )
    true_s = truth(rate, purge_s, rounds)
    assert known.low_s <= true_s <= known.high_s
    middle = (known.low_s + known.high_s) / 2
    assert (known.high_s - known.low_s) / 2 <= 0.1 * middle * 1.0001 and known.runs == len(seen)


def test_runs_that_differ_are_told_as_they_were():
    """Five rounds or ten: nobody knows which, and a narrow range would be a lie."""
    known = of([timing(1, rounds=5), timing(2, rounds=10), timing(3, rounds=5)])
    assert known.low_s == pytest.approx(0.95 * truth()) and known.high_s == pytest.approx(truth(rounds=10))


def test_one_bad_drive_of_many_widens_nothing():
    known = of([timing(number % 3, drive=f"S{number}") for number in range(30)] + [timing(9, rate=1e7)])
    assert known.high_s == pytest.approx(1.05 * truth()) and known.runs == 4


def test_a_single_figure_says_less():
    known = of([timing()])
    assert (known.low_s, known.high_s) == (pytest.approx(0.9 * truth()), pytest.approx(1.1 * truth()))


@pytest.mark.parametrize(
    ("seen", "plan"),
    [
        ([], {}),
        ([timing(model="another")], {}),
        ([timing(size_bytes=SIZE // 2)], {}),
        ([timing(test="wsat")], {}),
        ([timing(definition={**DEFINED["iops"], "rounds": "0"})], {}),
        ([timing(method="")], {}),  # it was not purged then
        ([timing(round_s=ROUND_S / 2)], {}),  # its cells were shorter, whatever they are called
        ([timing(model="loop", host="h2")], {"model": None, "transport": "loop"}),
    ],
)
def test_what_was_not_the_same_says_nothing(seen, plan):
    assert of(seen, planned(**plan)) is None


def test_a_virtual_drive_is_like_others_of_its_host():
    assert of([timing(model="loop")], planned(model=None, transport="loop"))


@pytest.mark.parametrize(("method", "counts"), [("nvme_format", True), ("overwrite", False)])
def test_another_purge_takes_another_time(method, counts):
    offer = OfferedPurge(method, True, "", "", "pts", [], 60.0)
    assert bool(of([timing()], chosen={("S1", "iops"): offer})) == counts


def test_the_whole_plan_is_known_with_what_is_around_its_tests():
    plan, left = (
        planned(),
        timing(test=AROUND, definition={"left": "blank"}, rounds=0, rounds_s=100.0, fill_bytes_per_s=0.0),
    )
    known = duration_history.known(plan, DEFINED, [timing(), timing(2), left._replace(purge_s=0.0)])
    whole = duration_history.of_drive(plan.drives[0], known)
    assert whole.low_s == pytest.approx(0.95 * truth() + 90) and whole.runs == 1
    assert duration_history.of_drive(plan.drives[0], {}) is None


def test_plan_mode_says_from_how_many_runs_it_knows_and_falls_back_to_the_assumed_rate():
    plan = planned()
    known = duration_history.known(plan, DEFINED, [timing(1), timing(2), timing(3)])
    lines = plan_text.describe(plan, {}, known=known)
    assert lines[-1] == "    in all 5 h 30 min to 6 h 4 min, from 3 earlier runs of this model"
    assert lines[2].endswith("; 5 h 30 min to 6 h 4 min, from 3 earlier runs of this model")
    line = plan_text.describe(plan, {}, known={})[-1]
    assert line.endswith("if it writes 1,248 MB/s (by its link and size: ssd_assumed_write_mib_s)")


def test_of_a_plan_that_is_known_in_part_both_are_told():
    plan = planned()
    plan.drives[0].tests.append(dataclasses.replace(plan.drives[0].tests[0], name="other"))
    text = plan_text.describe(plan, {}, known=duration_history.known(plan, DEFINED, [timing(1), timing(2)]))[-1]
    assert text.endswith(
        "if it writes 1,248 MB/s (by its link and size: ssd_assumed_write_mib_s); the time of iops is known from "
        "earlier runs"
    )


@pytest.mark.parametrize(
    ("seconds", "text"), [(45, "45 s"), (100, "1 min 40 s"), (120, "2 min"), (3599.6, "1 h"), (7800, "2 h 10 min")]
)
def test_a_known_time_is_told_within_a_hundredth(seconds, text):
    assert units.plan_duration_closely(seconds) == text


# A run on disk
BEGAN = datetime.datetime(2026, 1, 1)


def stamp(seconds):
    return f"{BEGAN + datetime.timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S}.500Z"


def write(folder, run_id, round_s=ROUND_S, started="2026-01-01T00:00:00Z", **changes):
    """A run's folder with the iops test of one drive, that took: look 10 s, purge 60 s, fill at 5e8 B/s, 5 rounds, and
    30 s to be left blank.
    """
    (folder / run_id).mkdir()
    asked = [{"host": "h1", "drive": "S9", "tests": ["iops"]}]
    run = {"schema_version": 1, "run": {"id": run_id, "name": "q"}, "started": started, "criteria": [], "tests": ABOUT}
    (folder / run_id / "run.json").write_text(json.dumps({**run, "asked": asked, "versions": {}}))
    end_s = truth(round_s=round_s)
    common = {"schema_version": 1, "run_id": run_id, "host": "h1", "drive": "S9"}
    look = {"blocks": 1, "size_bytes": SIZE, "seconds": 10.0, "whole": False, "seen_bytes": 1}
    drive = {
        **common,
        "kind": "drive",
        "time": stamp(end_s + 30),
        "path": "/dev/x",
        "outcome": "complete",
        "message": "",
    }
    drive.update(refusals=[], identity={**IDENTITY, "serial": "S9"}, look=look, left="blank")
    test = {**common, "kind": "test", "time": stamp(end_s), "test": "iops", "attempt": 1, "title": "IOPS"}
    test.update(started=stamp(0), finished=stamp(end_s), outcome="steady", reasons=[], rounds=5, steady_state=[])
    fill = {"passes": 2, "bytes_written": 2 * SIZE, "seconds": 2 * SIZE / 5e8, "bandwidth_bytes_per_s": 5e8}
    purge = {"method": "nvme_format", "seconds": 60.0, "verified": True, "purge_class": "pts"}
    purge["verification"] = {"sentinels": 8, "survived": 0, "unreadable": 0}
    fill.update(remainder_bytes=0, block_size_bytes=131072, data="random", kernel_bytes_written=None)
    test.update(metrics={}, purge=purge, precondition=fill, not_applicable=[])
    test.update(changes)
    (folder / run_id / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in (drive, test)))


def read(folder, **more):
    return timings.of_models(runs.on_controller(str(folder)), {MODEL}, {"iops"}, **more)


def test_the_times_of_a_run_are_read_from_its_folder(tmp_path):
    write(tmp_path, "r1")
    test, around = read(tmp_path)
    assert (
        duration_history.took_s(test, 2 * SIZE) == pytest.approx(truth(), abs=1.1)
        and test.definition == DEFINED["iops"]
    )
    assert (test.rounds, test.method, test.purge_s, test.fill_bytes_per_s) == (5, "nvme_format", 60.0, 5e8)
    assert around.test == AROUND and around.rounds_s == pytest.approx(40, abs=1.1)


@pytest.mark.parametrize(
    "changes",
    [
        {"outcome": "interrupted"},
        {"outcome": "invalid"},
        {"finished": None},
        {"finished": stamp(5)},  # before its purge and fill can have ended
        {"finished": "2026-02-31T00:00:00Z"},
        {"test": "other"},
        {"rounds": "x"},
    ],
)
def test_a_test_that_did_not_take_its_time_or_is_damaged_is_not_read(tmp_path, changes):
    write(tmp_path, "r1", **changes)
    with open(tmp_path / "r1" / "results.jsonl", "ab") as file:
        file.write(b'\xff{"kind": "test"\n["kind": "test"]\n["\\"kind\\": \\"test\\""]\n')
    assert [item for item in read(tmp_path) if item.test != AROUND] == []


def test_the_last_runs_count_and_never_the_one_that_is_on(tmp_path):
    for number in range(8):
        write(tmp_path, f"r{number}", started=f"2026-01-0{number + 1}T00:00:00Z")
    assert {item.run_id for item in read(tmp_path, but="r7") if item.test} == {"r6", "r5", "r4", "r3", "r2"}
    assert timings.of_models(runs.on_controller(str(tmp_path)), {"x"}, {"iops"}) == []


def test_plan_mode_tells_it_from_the_results_folder(tmp_path):
    for number, factor in enumerate((1.0, 1.03, 1.06)):
        write(tmp_path, f"r{number}", round_s=factor * ROUND_S)
    asked = {"ssd_drives": [{"serial": "S1"}], "ssd_plan": ["iops"], "ssd_step": "qualify", "ssd_mode": "plan"}
    asked.update(ssd_run_name="qualify", ssd_run_id="", ssd_results_dir=str(tmp_path), ssd_tests_dirs=[])
    asked.update(ssd_parallel_drives=1, ssd_assumed_write_mib_s=500, ssd_fio_min_version="3.28")
    drive = {"selector": {"serial": "S1"}, "drive": "S1", "path": "/dev/x", "identity": IDENTITY, "eligible": True}
    facts = {"boot_id": "b", "tools": {"fio": {"path": "/usr/bin/fio", "version": "3.33"}}}
    views = [host_answers.of("h1", asked, [], facts, [{**drive, "refusals": [], "own_data": None}])]
    decided = decision.decide(
        decision.Request(views, False, datetime.datetime(2026, 2, 1, tzinfo=datetime.timezone.utc))
    )
    assert decided.findings == []
    (line,) = [line for line in decided.plan_text if line.startswith("    in all ")]
    hours = [int(hour) + int(minute) / 60 for hour, minute in re.findall(r"(\d+) h (\d+) min", line)]
    assert line.endswith("from 3 earlier runs of this model") and len(hours) == 2
    true_h = (truth(round_s=1.03 * ROUND_S) + 40) / 3600
    assert hours[0] < true_h < hours[1] and hours[1] - hours[0] <= 0.2 * true_h


# How fast earlier runs filled a drive


def rates_of(folder, run_id="now", **identity):
    """What earlier runs tell of the drive S1."""
    drive = {"selector": {"serial": "S1"}, "drive": "S1", "path": "/dev/x", "identity": {**IDENTITY, **identity}}
    drive.update(eligible=True, refusals=[], own_data=None)
    views = [host_answers.of("h1", {}, drives=[drive])]
    return earlier_rates.with_rates(views, runs.on_controller(str(folder)), run_id)[0].measured.get("S1")


def filled(bytes_per_s):
    fill = {"passes": 2, "bytes_written": 2 * SIZE, "seconds": 2 * SIZE / bytes_per_s, "data": "random"}
    fill.update(bandwidth_bytes_per_s=bytes_per_s, remainder_bytes=0, block_size_bytes=131072)
    return {"precondition": {**fill, "kernel_bytes_written": None}}


@pytest.mark.parametrize(
    ("identity", "rate", "source"),
    [
        ({"serial": "S9"}, 8e8, "as in run r2"),
        ({}, 8e8, "as drives of its model and firmware in run r2"),
        ({"firmware": "2.0"}, None, ""),
        ({"size_bytes": SIZE // 2}, None, ""),
        ({"serial": "S9", "transport": "loop"}, None, ""),
    ],
)
def test_the_newest_run_that_filled_the_drive_or_its_kind_tells_its_rate(tmp_path, identity, rate, source):
    write(tmp_path, "r1", started="2026-01-01T00:00:00Z", **filled(5e8))
    write(tmp_path, "r2", started="2026-01-02T00:00:00Z", **filled(8e8))
    write(tmp_path, "r3", started="2026-01-03T00:00:00Z", outcome="error", **filled(9e8))
    found = rates_of(tmp_path, **identity)
    assert (found and (found.bytes_per_s, found.source)) == (rate and (pytest.approx(rate), source))


def test_a_run_that_goes_on_keeps_to_what_was_known_when_it_began(tmp_path):
    for number in (1, 2, 3):
        write(tmp_path, f"r{number}", started=f"2026-01-0{number}T00:00:00Z", **filled(number * 1e8))
    assert rates_of(tmp_path, "r2").source.endswith("run r1") and rates_of(tmp_path).source.endswith("run r3")


def test_plan_mode_takes_time_and_wear_by_it_and_says_so(tmp_path):
    write(tmp_path, "r1", **filled(8e8), outcome="not_steady")
    measured = rates_of(tmp_path)
    drives = found([{"selector": {"serial": "S1"}, "identity": IDENTITY, "measured": measured}])
    about = {"run": {"id": "r", "name": "n"}, "host": "h1", "boot_id": "b", "engine_version": "0"}
    auto = {"ssd_leave": "blank", "ssd_assumed_write_mib_s": "auto"}
    plan = render(TESTS, drives=drives, variables=auto, **about)
    line = plan_text.describe(plan, {})[-1]
    assert line.endswith("if it writes 800 MB/s (as drives of its model and firmware in run r1)")
    assert plan.drives[0].lasting_write_bytes_per_s == pytest.approx(1e9)
    given = render(TESTS, drives=drives, variables={**auto, "ssd_assumed_write_mib_s": 500}, **about)
    assert given.drives[0].write_rate_from == "ssd_assumed_write_mib_s"
