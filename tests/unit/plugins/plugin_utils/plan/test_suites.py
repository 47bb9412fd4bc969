# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The suites after the PTS, Micron's brief and blog, and those for every day: what they hold, and what they say of
themselves.
"""

from __future__ import annotations

import dataclasses
import re

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import PlannedFill, PlannedPurge
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import write_rates
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.render_plan import PlanError, load_plan
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.testfiles import SHIPPED_DIR
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.time_estimates import repeats_s, span_s, window_s
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import plan_text
from ansible_collections.ssdlab.fleet.tests.fixtures import documents
from ansible_collections.ssdlab.fleet.tests.fixtures.plans import known, planned, typed

WORKLOADS = (SHIPPED_DIR.parents[2] / "docs" / "workloads.md").read_text(encoding="utf-8")
PLAN_FILES = sorted(SHIPPED_DIR.glob("plans/*.yml"))
KIB = 1024
CELL = {"block_size": "4KiB", "read_pct": 0}


def rendered(plan, size_bytes=3_840_755_982_336, block=512):
    identity = {"serial": "S1", "size_bytes": size_bytes, "logical_block_size_bytes": block}
    return planned(load_plan(plan), identity)


@pytest.mark.parametrize(
    ("name", "access", "sizes", "mixes", "tc_qd", "tracked"),
    [
        ("throughput", "sequential", [1024], [100, 0], (1, 32), [("seq-1024k-w100-tc1-qd32", "write_bandwidth")]),
        ("throughput-128k", "sequential", [128], [100, 0], (1, 32), [("seq-128k-w100-tc1-qd32", "write_bandwidth")]),
        ("latency", "random", [8, 4, 0.5], [100, 65, 0], (1, 1), [("rand-4k-w100-tc1-qd1", "write_mean_latency_us")]),
    ],
)
def test_the_tests_of_the_pts_are_as_the_specification_has_them(name, access, sizes, mixes, tc_qd, tracked):
    (test,) = load_plan([name])
    assert (
        test.purge == PlannedPurge("auto")
        and test.precondition == PlannedFill(2, 128 * KIB)
        and test.active_range_pct == 100
    )
    assert [(cell.read_pct, cell.block_size_bytes) for cell in test.cells] == [
        (mix, size * KIB) for mix in mixes for size in sizes
    ]
    assert {(cell.access, cell.threads, cell.queue_depth, cell.runtime_s) for cell in test.cells} == {
        (access, *tc_qd, 60)
    }
    assert [(item.cell, item.metric) for item in test.steady_state.tracked] == tracked
    assert (test.steady_state.window, test.rounds.max) == (5, 25)


def test_the_profiles_differ_in_active_range_and_load():
    enterprise, client = load_plan("pts-enterprise"), load_plan("pts-client")
    assert {test.active_range_pct for test in enterprise} == {100} and {test.active_range_pct for test in client} == {
        75
    }
    loads = {test.name: {(cell.threads, cell.queue_depth) for cell in test.cells} for test in [*enterprise, *client]}
    assert loads["iops"] == loads["wsat"] == {(4, 32)} and loads["iops-client"] == loads["wsat-client"] == {(2, 16)}
    sizes = {
        cell.block_size_bytes // KIB for test in client if test.name.startswith("throughput") for cell in test.cells
    }
    assert sizes == {1024}
    assert {test.name for test in load_plan("full")} == {test.name for test in enterprise} - {"wsat"}


def test_host_idle_recovery_waits_and_comes_back():
    baseline, *phases = load_plan(["hir"])
    assert baseline.name == "hir" and baseline.steady_state.sample_every == 30 and not baseline.precondition
    waits, returns = phases[::2], phases[1::2]
    assert [test.name for test in waits] == [f"hir-wait-{wait}s" for wait in (5, 10, 15, 25, 50)]
    for test, back, wait in zip(waits, returns, (5, 10, 15, 25, 50)):
        (cell,) = test.cells
        assert (cell.burst_s, cell.idle_s) == (5, wait) and test.rounds.max * cell.runtime_s == 360 * (5 + wait)
        assert back.rounds.max * back.cells[0].runtime_s == 1800 and back.follows == test.name
        assert test.repeats == back.repeats == "hir"


def test_cross_stimulus_recovery_is_eight_six_and_eight_hours():
    tests = load_plan(["xsr"])
    hours = [test.rounds.time_limit_s or test.rounds.max * 60 for test in tests]
    assert [hours[0], hours[1], hours[2] + hours[3]] == [8 * 3600, 6 * 3600, 8 * 3600]
    assert [(test.cells[0].access, test.cells[0].block_size_bytes // KIB) for test in tests] == [
        ("sequential", 1024),
        ("random", 8),
        ("sequential", 1024),
        ("sequential", 1024),
    ]
    assert {(cell.threads, cell.queue_depth) for test in tests for cell in test.cells} == {(1, 32)}
    assert [test.repeats for test in tests] == [None, None, "xsr", "xsr"]


def test_the_composite_workload_and_demand_intensity_go_over_49_loads_from_high_to_low():
    grid = [(threads, depth) for threads in (32, 16, 8, 6, 4, 2, 1) for depth in (32, 16, 8, 6, 4, 2, 1)]
    for name, read_pct in (("ecw", 40), ("dirth", 0)):
        main, sweep, *_points = load_plan([name])
        lead, *cells = sweep.cells
        assert [(cell.threads, cell.queue_depth) for cell in cells] == grid and {cell.read_pct for cell in cells} == {
            read_pct
        }
        assert (lead.runtime_s, lead.threads, lead.queue_depth, lead.read_pct) == (300, 32, 32, 0)
        assert (main.cells[0].threads, main.cells[0].queue_depth, main.steady_state.sample_every) == (
            32,
            32,
            30,
        )
    (cell,) = load_plan(["ecw"])[0].cells
    assert {item.size_bytes: item.pct for item in cell.mix.sizes} == {
        512: 4,
        1024: 1,
        1536: 1,
        2048: 1,
        2560: 1,
        3072: 1,
        3584: 1,
        4096: 67,
        8192: 10,
        16384: 7,
        32768: 3,
        65536: 3,
    }
    assert [(item.pct, item.of_ios_pct) for item in cell.mix.ranges] == [(5, 50), (15, 30), (80, 20)]
    points = load_plan(["dirth"])[2:]
    assert [[cell.runtime_s for cell in test.cells] for test in points] == [[3600, 600]] * 3
    assert [test.cells[1].point.take for test in points] == ["most", "middle", "fewest"]


@pytest.mark.parametrize("plan", ["pts-enterprise", "pts-client", "full"])
def test_a_histogram_follows_its_latency_test_at_once(plan):
    names = [test.name for test in load_plan(plan)]
    for name in names:
        if name.startswith("latency-histogram"):
            assert names[names.index(name) - 1] == name.replace("-histogram", "")


@pytest.mark.parametrize("path", PLAN_FILES, ids=lambda path: path.stem)
def test_every_plan_says_what_it_shows_and_what_it_does_not(path):
    head = path.read_text(encoding="utf-8").partition("\n- ")[0]
    assert re.search(r"^# Shows: \w.*\.", head, re.MULTILINE) and re.search(r"^# Does not show: \w", head, re.MULTILINE)
    for test in load_plan(path.stem):
        said = test.description
        assert re.search(r"\b(Shows|Brings|Finds|For comparison)\b", said), test["name"]
        assert re.search(r"\bDoes not (show|cover)\b", said), test["name"]
        assert not re.search(r"\btells?\b", said, re.IGNORECASE), test["name"]


# micron-p420m-small refuses drives of 4 KiB blocks.
ON_BLOCKS = [
    (path.stem, block)
    for path in PLAN_FILES
    for block in (512, 4096)
    if (path.stem, block) != ("micron-p420m-small", 4096)
]


@pytest.mark.parametrize(("plan", "block"), ON_BLOCKS)
def test_every_plan_fits_the_schema_of_hosts(plan, block):
    documents.validate(rendered(plan, block=block), "plan")


CAPACITIES_TB = (0.24, 0.48, 0.96, 1.92, 3.84, 7.68, 15.36, 30.72, 61.44)
RATES_GB_S = (0.4, 0.55, 1, 2, 3.9, 7.9, 14)


def longest_s(tests, terabytes, gb_s):
    """Beside the purge, which may end at once."""
    identity = known(size_bytes=int(terabytes * 1e12) // 4096 * 4096, logical_block_size_bytes=512)
    return sum(span_s(test, identity, gb_s * 1e9, 0.0)[1] for test in tests)


@pytest.mark.parametrize(
    ("plan", "most_s"), [("smoke", 600), ("incoming", 2700), ("in-service", 1800), ("nightly", 7200)]
)
def test_what_is_for_every_day_keeps_its_time_whatever_the_drive(plan, most_s):
    """A plan of theirs claims no steady state."""
    tests = load_plan(plan)
    longest = {(size, rate): longest_s(tests, size, rate) for size in CAPACITIES_TB for rate in RATES_GB_S}
    assert {pair: took_s for pair, took_s in longest.items() if took_s > most_s} == {}
    assert not any(test.steady_state for test in tests)


def test_drives_in_service_are_given_back_in_time_whatever_their_users_do():
    """Rounds that they disturb are measured again, and each test waits for them."""
    tests = load_plan("in-service")
    identity = known(size_bytes=61_440 * 10**9, logical_block_size_bytes=512)
    assert sum(span_s(test, identity, 4e8)[1] + repeats_s(test, 1.0) for test in tests) <= 1800


@pytest.mark.parametrize(
    ("link_mb_s", "without"), [(3938.4, ["self-test-extended"]), (7876.8, []), (15754, [])], ids=["3", "4", "5"]
)
def test_acceptance_of_7_68_tb_takes_a_night(link_mb_s, without):
    tests = [test for test in load_plan("acceptance") if test.name not in without]
    identity = known(transport="nvme", size_bytes=7_680 * 10**9, logical_block_size_bytes=512)
    rate = write_rates.of_drive("auto", identity, link_mb_s).assumed
    assert sum(span_s(test, identity, rate)[1] for test in tests) <= 8 * 3600
    assert [test.purge.method for test in tests].count("auto") == 1


def test_full_shares_states_and_says_which_tests_are_no_longer_those_of_the_standard():
    tests = {test.name: test for test in load_plan("full")}
    shared = {name: test.departs for name, test in tests.items() if test.departs}
    state = ["purge", "precondition"]
    assert {name: departs.keys for name, departs in shared.items()} == {
        "throughput-128k": state,
        "iops": [*state, "rounds"],
        "latency": [*state, "rounds"],
        "dirth": ["rounds"],
        "hir": ["purge", "rounds", "steady_state"],
        "ecw": ["rounds"],
    }
    # Each says why, and by which clause.
    assert all(re.search(r"\((TP|IOPS|LAT|HIR|ECW|WSAT, DIRTH)\)", departs.because) for departs in shared.values())
    purged = [name for name, test in tests.items() if test.purge.method != "none"]
    assert purged == ["throughput", "dirth", "ecw", "xsr"]
    # The table of docs/workloads.md names them, and no other.
    table = WORKLOADS.partition("| test of `full` |")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| `([a-z0-9-]+)`", table, re.MULTILINE)) == {*shared, "wsat"}
    # What WSAT measures is DIRTH's first part, at DIRTH's load; HIR goes on from it only where it is steady.
    (wsat,) = load_plan(["wsat"])
    first, hir = tests["dirth"], tests["hir"]
    assert first.purge == wsat.purge and not first.precondition and hir.steady_state.required
    tracked = wsat.steady_state.tracked
    assert dataclasses.replace(first.steady_state, tracked=tracked) == wsat.steady_state
    assert list(tests).index("hir") > list(tests).index("dirth-fewest-iops")


@pytest.mark.parametrize("link_mb_s", [3938.4, 7876.8, 15754], ids=["3", "4", "5"])
def test_full_of_7_68_tb_takes_four_days_even_where_every_test_runs_to_its_limit(link_mb_s):
    identity = known(transport="nvme", size_bytes=7_680 * 10**9, logical_block_size_bytes=512)
    rate = write_rates.of_drive("auto", identity, link_mb_s).assumed
    longest_s = {
        plan: sum(span_s(test, identity, rate)[1] for test in load_plan(plan)) for plan in ("full", "pts-enterprise")
    }
    assert longest_s["full"] <= 4 * 86400 < longest_s["pts-enterprise"] - 3 * 86400


def test_a_slice_is_the_same_on_every_large_drive_and_plan_mode_says_why():
    identity = {"serial": "S1", "size_bytes": 7_680 * 10**9, "logical_block_size_bytes": 4096}
    plan = typed(planned(load_plan("smoke"), identity))
    (test,) = plan.drives[0].tests
    sizes = [test.active_range_bytes(size, 4096) for size in (identity["size_bytes"], 257 << 30, 8 << 30)]
    assert sizes == [64 << 30, 64 << 30, 2 << 30]
    text = "\n".join(plan_text.describe(plan, {}))
    assert (
        "precondition 1 x the ActiveRange of 68.72 GB (less than 25 %, so that a large drive takes no longer)" in text
    )
    assert "(0.00895 x the user capacity)" in text


def test_the_briefs_sequences_are_purged_once_and_repeat_their_first_stimulus():
    tests = {test.name: test for test in load_plan("micron-brief")}
    for sequence, stimuli in (
        ("first", ["random", "sequential", "random"]),
        ("second", ["sequential", "random", "sequential"]),
    ):
        three = [tests[f"brief-{sequence}-{number}-{stimulus}"] for number, stimulus in enumerate(stimuli, start=1)]
        assert [test.purge.method for test in three] == ["auto", "none", "none"] and not any(
            test.precondition for test in three
        )
        assert [test.cells[0].access for test in three] == stimuli
        assert [test.repeats for test in three] == [None, None, three[0].name]
        assert [test.steady_state.min_capacity_multiple for test in three] == [2, 1, 1]
    assert {cell.runtime_s for test in tests.values() for cell in test.cells} == {300}
    assert all(window_s(test) >= 1800 for test in tests.values())


def test_the_blogs_sweeps_go_over_the_depth_once_settled():
    settle_4k, sweep_4k, settle_32k, sweep_32k = load_plan("micron-blog")
    for settle, sweep, size in ((settle_4k, sweep_4k, 4), (settle_32k, sweep_32k, 32)):
        assert [cell.queue_depth for cell in sweep.cells] == [1 << power for power in range(9)]
        assert {(cell.threads, cell.runtime_s, cell.block_size_bytes) for cell in sweep.cells} == {(1, 900, size * KIB)}
        assert settle.steady_state and sweep.purge == PlannedPurge("none") and sweep.rounds.max == 1
        assert window_s(settle) >= 1800
        assert 595 <= 700 * sweep.active_range_pct / 100 <= 605


def test_each_cell_is_a_test_of_its_own():
    test = {
        "name": "each",
        "each_cell": True,
        "matrix": {**CELL, "read_pct": [0, 70]},
        "steady_state": {"tracked": [{"metric": "iops"}]},
    }
    write, mixed = load_plan([test])
    assert (write.name, mixed.name) == ("each-rand-4k-w100", "each-rand-4k-r70")
    assert [item.cell for item in mixed.steady_state.tracked] == [mixed.cells[0].id] == ["rand-4k-r70-tc1-qd1"]
    deeper = {**test, "matrix": {**CELL, "queue_depth": [1, 2]}}
    assert [one.name for one in load_plan([deeper])] == ["each-rand-4k-w100-tc1-qd1", "each-rand-4k-w100-tc1-qd2"]


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        ([{"name": "a" * 40, "each_cell": True, "cells": [CELL]}], "name: 'aaaa"),
        (
            [{"name": "a", "cells": [CELL], "repeats": "b"}, {"name": "b", "cells": [CELL]}],
            "repeats: 'b' names no test before it",
        ),
        (
            [{"name": "a", "cells": [CELL]}, {"name": "b", "cells": [{**CELL, "queue_depth": 2}], "repeats": "a"}],
            "has other cells",
        ),
        (
            [{"name": "a", "cells": [{**CELL, "ioengine": "sync", "queue_depth": 2}]}],
            "ioengine sync has one I/O in flight",
        ),
        (
            [
                {
                    "name": "a",
                    "cells": [CELL, {**CELL, "read_pct": 1}],
                    "steady_state": {"tracked": [{"metric": "iops"}]},
                }
            ],
            "2 cells have no key but the metric",
        ),
    ],
)
def test_what_is_wrong_with_these_keys(plan, expected):
    with pytest.raises(PlanError) as caught:
        load_plan(plan)
    assert expected in str(caught.value)


def test_a_cell_may_have_an_engine_of_its_own():
    (test,) = rendered([{"name": "a", "cells": [{**CELL, "ioengine": "sync"}]}])["drives"][0]["tests"]
    (cell,) = test["cells"]
    assert cell["id"] == "rand-4k-w100-tc1-qd1-sync" and cell["job"].index("ioengine=libaio") < cell["job"].index(
        "[rand"
    ) < cell["job"].index("ioengine=sync")
