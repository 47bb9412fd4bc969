# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bursts, mixes, points and phases: from the keys of a test to its jobs, and what is wrong with them."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import fio_sanity
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.planned_cell import SizeShare
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import io_patterns
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.render_plan import PlanError, load_plan
from ansible_collections.ssdlab.fleet.tests.fixtures import plans
from ansible_collections.ssdlab.fleet.tests.fixtures.plans import planned

CELL = {"block_size": "4KiB", "read_pct": 0}
SIZES = [{"size": "512B", "pct": 10}, {"size": "4KiB", "pct": 60}, {"size": "16KiB", "pct": 30}]
RANGES = [{"pct": 5, "of_ios_pct": 50}, {"pct": 95, "of_ios_pct": 50}]


def rendered(plan, block=512):
    identity = {"serial": "S1", "size_bytes": 1 << 40, "logical_block_size_bytes": block}
    done = planned(load_plan(plan), identity)
    return done["drives"][0]["tests"]


def options(cell):
    return fio_sanity.sections(cell["job"])[cell["id"]]


def one(**cell):
    return {"name": "a", "precondition": False, "purge": False, "cells": [{**CELL, **cell}], "rounds": {"max": 1}}


def test_bursts_are_thinktime_after_a_first_burst_that_is_in_no_figure():
    (test,) = rendered([one(burst_s=5, idle_s=10, runtime_s=45)])
    (cell,) = test["cells"]
    found = options(cell)
    assert (found["thinktime"], found["thinktime_iotime"], found["ramp_time"], found["runtime"]) == (
        "10s",
        "5s",
        "15",
        "45",
    )
    assert cell["id"] == "rand-4k-w100-tc1-qd1-burst5s-idle10s"


def test_a_mix_is_sizes_at_one_alignment_and_ranges_of_the_active_range():
    (test,) = rendered([one(mix={"sizes": SIZES, "ranges": RANGES})])
    found = options(test["cells"][0])
    assert (found["bssplit"], found["ba"], found["random_distribution"]) == (
        "512/10:4096/60:16384/30",
        "4096",
        "zoned:50/5:50/95",
    )
    assert "bs" not in found
    other = rendered([one(mix={"sizes": SIZES})])[0]["cells"][0]
    assert other["id"] != test["cells"][0]["id"] and "random_distribution" not in options(other)


def test_sizes_below_the_logical_block_leave_a_shipped_mix_and_the_others_are_rescaled():
    main, sweep = rendered(["ecw"], block=4096)
    assert options(main["cells"][0])["bssplit"] == "4096/75:8192/11:16384/8:32768/3:65536/3"
    assert len(sweep["cells"]) == 50 and {item["id"] for item in main["not_applicable"]} == {main["cells"][0]["id"]}
    assert (
        "(10 % of the I/O)" in main["not_applicable"][0]["reason"] and "rescaled" in main["not_applicable"][0]["reason"]
    )
    with pytest.raises(
        PlanError,
        match=(
            "512 B .10 % of the I/O. are not multiples of the drive's logical block size of 4 KiB; take them out "
            "of the mix"
        ),
    ):
        rendered([one(mix={"sizes": SIZES})], block=4096)


@pytest.mark.parametrize("shares", [[67, 10, 7, 3, 3], [1, 1, 1], [50, 25], [33, 33, 33], [98, 1]])
def test_rescaled_shares_make_100_and_keep_their_proportions(shares):
    found = io_patterns.rescaled([SizeShare(4096 << place, share) for place, share in enumerate(shares)])
    assert sum(item.pct for item in found) == 100
    assert all(abs(item.pct - share * 100 / sum(shares)) < 1 for item, share in zip(found, shares))


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ({"burst_s": 5}, "burst_s and idle_s go together"),
        ({"burst_s": 5, "idle_s": 5, "runtime_s": 25}, "must be a multiple of burst_s + idle_s = 10"),
        ({"burst_s": 5, "idle_s": 5, "runtime_s": 10}, "at least two of them"),
        ({"burst_s": 5, "idle_s": 5, "ramp_s": 3}, "ramp_s can't be combined with burst_s"),
        ({"mix": {"ranges": RANGES}, "access": "sequential"}, "mix needs access: random"),
        ({"mix": {"ranges": RANGES}, "ramp_s": 3}, "mix can't be combined with ramp_s"),
        ({"mix": {"ranges": RANGES[:1] + [{"pct": 90, "of_ios_pct": 50}]}}, "mix.ranges: pct add up to 95 %, not 100"),
        ({"mix": {"sizes": SIZES[:2]}}, "mix.sizes: pct add up to 70 %, not 100"),
        (
            {"mix": {"sizes": [{"size": "700B", "pct": 50}, {"size": "4KiB", "pct": 50}]}},
            "700 B is not a multiple of 512 B",
        ),
        ({"mix": {"sizes": [{"size": "4KiB", "pct": 50}, {"size": "4096", "pct": 50}]}}, "does not fit"),
        ({"mix": {"sizes": [{"size": "4KiB", "pct": 50}, {"size": 4096, "pct": 50}]}}, "4 KiB is listed twice"),
        ({"mix": {}}, "mix"),
        ({"point": {"of": "sweep", "take": "most"}}, "point.of: 'sweep' is not an earlier phase"),
        ({"per_cpu": True}, "it must be more than 1"),
        ({"per_cpu": True, "threads": 2, "rate_iops": 100}, "per_cpu can't be combined with rate_iops"),
        ({"per_cpu": True, "threads": 2, "ioengine": "sync"}, "per_cpu can't be combined with ioengine"),
        ({"per_cpu": True, "threads": 2, "fdatasync": 1}, "per_cpu can't be combined with fdatasync"),
        (
            {"per_cpu": True, "threads": 2, "access": "sequential", "range": {"to_pct": 50}},
            "per_cpu can't be combined with range in sequence",
        ),
        ({"point": {"of": "sweep", "take": "best"}}, "must be one of: most, middle, fewest"),
        ({"threads": "many"}, "cells[0].threads: 'many' does not fit; A number, or auto"),
        ({"threads": "auto", "per_cpu": True}, "threads: auto can't be combined with per_cpu"),
        ({"threads": "auto", "batch": 4}, "threads: auto can't be combined with batch"),
        ({"threads": "auto", "rate_iops": 100}, "threads: auto can't be combined with rate_iops"),
        ({"threads": "auto", "ioengine": "sync"}, "threads: auto can't be combined with ioengine"),
        ({"threads": "auto", "fdatasync": 1}, "threads: auto can't be combined with fdatasync"),
        ({"threads": "auto", "burst_s": 5, "idle_s": 5}, "threads: auto can't be combined with burst_s"),
        (
            {"threads": "auto", "access": "sequential", "range": {"to_pct": 50}},
            "threads: auto can't be combined with range in sequence",
        ),
    ],
)
def test_what_is_wrong_with_a_load(cell, expected):
    with pytest.raises(PlanError) as caught:
        rendered([one(**cell)])
    assert expected in str(caught.value)


PHASES = [
    {"name": "sweep", "lead": CELL, "matrix": {**CELL, "threads": [4, 2], "queue_depth": [8, 1]}, "rounds": {"max": 2}},
    {"name": "top", "cells": [{**CELL, "point": {"of": "sweep", "take": "most"}}], "rounds": {"max": 1}},
    {"name": "again", "cells": [CELL], "rounds": {"max": 9}, "last_rounds": 3, "repeats": True},
]
CHAIN = {
    "name": "all",
    "title": "All",
    "cells": [CELL],
    "rounds": {"max": 1},
    "active_range_pct": 50,
    "source": "us",
    "phases": PHASES,
}


def test_phases_are_tests_that_follow_each_other_in_the_state_that_the_first_one_made():
    first, sweep, top, again = rendered([CHAIN])
    assert [test["name"] for test in (first, sweep, top, again)] == ["all", "all-sweep", "all-top", "all-again"]
    assert [test["follows"] for test in (first, sweep, top, again)] == [None, "all", "all-sweep", "all-top"]
    assert first["precondition"] and all(
        not test["precondition"] and test["purge"]["method"] == "none" for test in (sweep, top, again)
    )
    assert {test["active_range_pct"] for test in (first, sweep, top, again)} == {50} and sweep["title"] == "All: sweep"
    assert again["last_rounds"] == 3 and load_plan([CHAIN])[3].repeats == "all"


def test_a_lead_begins_each_round_and_is_told_apart():
    _first, sweep, _top, _again = rendered([CHAIN])
    assert [cell["id"] for cell in sweep["cells"]][:2] == ["rand-4k-w100-tc1-qd1-lead", "rand-4k-w100-tc4-qd8"]
    assert len(sweep["cells"]) == 5 and [cell.get("lead") for cell in sweep["cells"]] == [True, None, None, None, None]


def test_a_points_threads_and_depth_are_left_to_the_host():
    _first, _sweep, top, _again = rendered([CHAIN])
    (cell,) = top["cells"]
    assert cell["id"] == "rand-4k-w100-most" and (cell["threads"], cell["queue_depth"]) == (4, 8)
    assert cell["point"] == {"take": "most", "mean_latency_below_us": None, "test": "all-sweep"}
    assert (options(cell)["numjobs"], options(cell)["iodepth"]) == ("@ssd_threads@", "@ssd_queue_depth@")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"each_cell": True}, "phases: can't be combined with each_cell"),
        (
            {"phases": [{**PHASES[0], "cells": [{"block_size": "4KiB"}]}]},
            "phase all-sweep: cells[0].read_pct: is missing",
        ),
        ({"phases": [{"name": "x"}]}, "phases[0].rounds: is missing"),
        ({"phases": [{**PHASES[2], "cells": [{**CELL, "queue_depth": 2}]}]}, "has other cells than"),
        ({"phases": [PHASES[2], PHASES[2]]}, "'all-again' is in the plan twice"),
        (
            {"steady_state": {"tracked": [{"metric": "iops"}]}, "last_rounds": 3, "rounds": {"max": 25}},
            "last_rounds: cannot be combined with steady_state",
        ),
    ],
)
def test_what_is_wrong_with_phases(change, expected):
    with pytest.raises(PlanError) as caught:
        load_plan([{**CHAIN, **change}])
    assert expected in str(caught.value)


def test_a_repeated_load_may_come_in_bursts():
    burst = {
        "name": "waits",
        "cells": [{**CELL, "burst_s": 1, "idle_s": 1, "runtime_s": 4}],
        "rounds": {"max": 1},
        "repeats": True,
    }
    assert load_plan([{**CHAIN, "phases": [burst]}])[1].repeats == "all"


def test_a_profile_needs_the_write_cache_in_one_state_through_all_its_phases():
    for plan, state in (("pts-enterprise", "off"), ("pts-client", "on")):
        assert {test.write_cache for test in load_plan(plan)} == {state}
    assert {test.write_cache for test in load_plan("full")} == {None}
    both = [{**one(), "write_cache": True}, {**one(), "name": "b", "write_cache": "off"}]
    with pytest.raises(PlanError, match="b needs it off, a on, and a run sets it only once"):
        load_plan(both)


def test_a_drives_entry_must_not_stand_against_what_a_test_needs():
    drive = {
        "selector": {"serial": "S1", "write_cache": True},
        "identity": {"serial": "S1", "size_bytes": 1 << 40, "logical_block_size_bytes": 512},
    }
    common = {
        "run": {"id": "r", "name": "n"},
        "host": "h1",
        "boot_id": "b",
        "engine_version": "0",
        "variables": {},
        "drives": [drive],
    }
    with pytest.raises(
        PlanError, match="h1: drive S1: write_cache: on in its entry contradicts test a, which needs it off"
    ):
        plans.rendered(load_plan([{**one(), "write_cache": "off"}]), **common)
    assert (
        plans.rendered(load_plan([{**one(), "write_cache": "on"}]), **common)["drives"][0]["tests"][0]["write_cache"]
        == "on"
    )


@pytest.mark.parametrize(("access", "size"), [("random", "@ssd_size_bytes@"), ("sequential", "@ssd_share_bytes@")])
def test_a_cell_that_follows_the_cpus_leaves_threads_and_depth_to_the_host(access, size):
    given = {"name": "a", "matrix": {**CELL, "access": access, "threads": 8, "queue_depth": 32, "per_cpu": True}}
    (test,) = rendered([{**given, "precondition": False, "purge": False, "rounds": {"max": 1}}])
    (cell,) = test["cells"]
    assert cell["id"] == f"{access[:4].replace('sequ', 'seq')}-4k-w100-tc1to8-load256" and cell["per_cpu"] is True
    found = options(cell)
    assert (found["numjobs"], found["iodepth"], found["size"]) == ("@ssd_threads@", "@ssd_queue_depth@", size)
    assert ("offset_increment" in found) == (access == "sequential")


def test_what_does_not_follow_the_cpus_has_the_load_that_it_says():
    (test,) = rendered([one(threads=8, queue_depth=32, per_cpu=False)])
    assert test["cells"][0]["id"] == "rand-4k-w100-tc8-qd32" and "per_cpu" not in test["cells"][0]


def test_loads_that_follow_the_cpus_are_no_sweep():
    sweep = {"name": "sweep", "cells": [{**CELL, "threads": 4, "per_cpu": True}], "rounds": {"max": 1}}
    point = {"name": "top", "cells": [{**CELL, "point": {"of": "sweep", "take": "most"}}], "rounds": {"max": 1}}
    with pytest.raises(PlanError, match="follow the CPUs .per_cpu., so they are not a sweep"):
        rendered([{**one(), "phases": [sweep, point]}])


@pytest.mark.parametrize(("access", "rw"), [("random", "randread"), ("sequential", "read")])
@pytest.mark.parametrize("read_pct", [100, 65, 0])
def test_a_cell_with_threads_auto_leaves_them_to_the_host_and_has_a_trial_that_reads(access, rw, read_pct):
    matrix = {**CELL, "access": access, "read_pct": read_pct, "threads": "auto", "queue_depth": 128, "ramp_s": 9}
    given = {"name": "a", "matrix": matrix, "precondition": {"passes": 1, "of": "active_range"}, "rounds": {"max": 1}}
    (test,) = rendered([given])
    (cell,) = test["cells"]
    assert "-tcauto-load128-ramp9s" in cell["id"]
    assert (cell["threads"], cell["queue_depth"], cell["auto_threads"]) == (1, 128, True)
    measured, trial = options(cell), fio_sanity.sections(cell["trial_job"])["trial"]
    same = ("numjobs", "iodepth", "size", "bs", "offset_increment", "norandommap")
    assert {name: measured.get(name) for name in same} == {name: trial.get(name) for name in same}
    assert (trial["rw"], trial["runtime"], "ramp_time" in trial) == (rw, "3", False)
    assert (trial["numjobs"], trial["iodepth"]) == ("@ssd_threads@", "@ssd_queue_depth@")
    assert ("offset_increment" in trial) == (access == "sequential")


def test_reads_and_writes_of_a_shape_share_their_trial():
    matrix = {**CELL, "threads": "auto", "read_pct": [65, 0]}
    (test,) = rendered([{"name": "a", "matrix": matrix, "rounds": {"max": 1}}])
    assert len(test["cells"]) == 2 and len({cell["trial_job"] for cell in test["cells"]}) == 1


def test_a_fixed_number_of_threads_has_no_trial():
    (test,) = rendered([one(threads=4)])
    assert not {"auto_threads", "trial_job"} & set(test["cells"][0])


def test_threads_that_the_host_chooses_are_no_sweep_and_no_streams():
    sweep = {"name": "sweep", "cells": [{**CELL, "threads": "auto"}], "rounds": {"max": 1}}
    point = {"name": "top", "cells": [{**CELL, "point": {"of": "sweep", "take": "most"}}], "rounds": {"max": 1}}
    with pytest.raises(PlanError, match="the host chooses the threads of 'sweep' .auto., so they are not a sweep"):
        rendered([{**one(), "phases": [sweep, point]}])
    stream = {"name": "b", "block_size": "4KiB", "read_pct": 0, "threads": "auto"}
    with pytest.raises(PlanError, match="threads: .*must be a whole number"):
        rendered([{**one(), "cells": [{"name": "c", "jobs": [{**stream, "name": "a", "threads": 1}, stream]}]}])


@pytest.mark.parametrize(("threads", "name"), [("auto", "tcauto-load32"), (1, "tc1-qd32")])
def test_a_cell_is_tracked_by_its_threads(threads, name):
    cells = [{**CELL, "threads": each, "queue_depth": 32} for each in ("auto", 1)]
    tracked = [{"threads": threads, "metric": "write_iops"}]
    (test,) = rendered([{**one(), "cells": cells, "steady_state": {"tracked": tracked}, "rounds": {}}])
    assert test["steady_state"]["tracked"] == [{"cell": f"rand-4k-w100-{name}", "metric": "write_iops"}]
