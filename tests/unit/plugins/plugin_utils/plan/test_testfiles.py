# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses

import jsonschema
import pytest
import yaml

from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import (
    Departure,
    PlannedFill,
    PlannedIntegrity,
    PlannedPurge,
    RoundLimits,
)
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import schema as schemas
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import testfiles
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.render_plan import PlanError, load_plan
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.testfiles import SHIPPED_DIR
from ansible_collections.ssdlab.fleet.tests.fixtures import documents

CELL = {"block_size": "4KiB", "read_pct": 0}
SMALL = {"name": "small", "cells": [CELL]}


def write(folder, files):
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(data if isinstance(data, str) else yaml.safe_dump(data), encoding="utf-8")
    return folder


def problems_of(plan, dirs=()):
    with pytest.raises(PlanError) as caught:
        load_plan(plan, dirs)
    return caught.value.problems


def test_iops_is_the_matrix_of_the_pts():
    (test,) = load_plan(["iops"])
    assert len(test.cells) == 56 and sum(cell.runtime_s for cell in test.cells) == 56 * 60
    assert [cell.block_size_bytes for cell in test.cells[:8]] == [
        1 << 20,
        131072,
        65536,
        32768,
        16384,
        8192,
        4096,
        512,
    ]
    assert [cell.read_pct for cell in test.cells[::8]] == [100, 95, 65, 50, 35, 5, 0]
    assert {(cell.threads, cell.queue_depth, cell.access) for cell in test.cells} == {(4, 32, "random")}
    assert test.precondition == PlannedFill(2, 131072)
    assert test.rounds.max == 25 and test.steady_state.window == 5
    assert [item.cell for item in test.steady_state.tracked] == [
        "rand-4k-w100-tc4-qd32",
        "rand-64k-r65-tc4-qd32",
        "rand-1024k-r100-tc4-qd32",
    ]


def test_the_last_pass_of_a_verified_fill_is_an_integrity_test_s():
    fill = {"passes": 2, "of": "user_capacity", "verify": True}
    tests = [{"base": "iops", "precondition": fill}, {**SMALL, "active_range_pct": 50, "precondition": fill}]
    whole, half = load_plan(tests)
    assert whole.precondition.passes == 1 and half.precondition.passes == 3
    assert whole.integrity == half.integrity == PlannedIntegrity(1) and whole.cells
    # What it is read back in between, no published test asks for.
    assert whole.departs == Departure("iops", ["precondition", "integrity"])


def test_wsat_begins_fresh_and_is_not_limited_to_25_rounds():
    (test,) = load_plan(["wsat"])
    assert test.precondition is None and test.purge == PlannedPurge("auto")
    assert test.rounds == RoundLimits(None, 4, 86400)
    assert test.steady_state.sample_every == 30
    assert [cell.id for cell in test.cells] == ["rand-4k-w100-tc4-qd32"]


def test_cells_are_shuffled_where_no_source_fixes_their_order():
    shuffled = [test.name for plan in ("smoke", "nightly", "full") for test in load_plan(plan) if test.cell_order]
    assert shuffled == ["smoke", "nightly-corners", "nightly-latency"]


def test_a_margin_is_a_rule_where_it_is_asked_for():
    (asked,) = load_plan([{"base": "wsat", "name": "mine", "steady_state": {"margin": 0.1}}])
    assert asked.steady_state.margin == 0.1 and asked.departs.keys == ["steady_state"]
    assert load_plan(["wsat"])[0].steady_state.margin is None


def test_demo_is_laid_over_the_full_tests():
    wsat, iops = load_plan("demo")
    assert (wsat.name, iops.name) == ("wsat", "iops")
    assert wsat.precondition is None and iops.precondition.passes == 2
    assert 4 <= len(iops.cells) <= 6 and {cell.runtime_s for cell in wsat.cells + iops.cells} == {1, 2}
    steady, (cell,) = wsat.steady_state, wsat.cells
    # A window of ten seconds: longer than the fresh state of the demo's drives, of five.
    assert steady.range_limit == 0.2 and steady.window * steady.sample_every * cell.runtime_s == 10
    assert not wsat.own_cells and not iops.own_cells


@pytest.mark.parametrize("path", sorted(SHIPPED_DIR.glob("tests/*.yml")), ids=lambda path: path.stem)
def test_every_shipped_test_fits_the_schema_and_loads(path):
    documents.validate(yaml.safe_load(path.read_text()), "test")
    tests = load_plan([path.stem])
    assert tests[0].name == path.stem and all(test.source and test.title != test.name for test in tests)


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(schemas.load("test"))


def test_a_base_is_merged_and_lists_are_replaced():
    (test,) = load_plan(
        [
            {
                "base": "iops",
                "name": "short",
                "matrix": {"runtime_s": 5, "block_size": ["1024KiB", "64KiB", "4KiB"]},
                "rounds": {"max": 7},
            }
        ]
    )
    assert len(test.cells) == 21 and test.cells[0].threads == 4 and test.cells[0].runtime_s == 5
    assert test.rounds == RoundLimits(7, None, None) and test.own_cells
    assert test.title == "Random IOPS, block sizes by R/W mixes"


def test_a_list_of_queue_depths_is_a_sweep():
    """As in Micron's blog on the P420m: 2 to 64 I/Os outstanding."""
    depths = [2, 4, 8, 16, 32, 64]
    (test,) = load_plan([{"name": "sweep", "matrix": {"read_pct": 0, "block_size": "4KiB", "queue_depth": depths}}])
    assert [(cell.queue_depth, cell.threads) for cell in test.cells] == [(depth, 1) for depth in depths]


def test_cells_alone_replace_the_matrix_of_a_base():
    (test,) = load_plan([{"base": "iops", "cells": [CELL], "steady_state": False}])
    assert [cell.id for cell in test.cells] == ["rand-4k-w100-tc1-qd1"] and test.steady_state is None


@pytest.mark.parametrize(
    ("layer", "own"),
    [
        ({}, False),
        ({"rounds": {"max": 9}}, False),
        ({"matrix": {"runtime_s": 2}}, False),
        ({"matrix": {"block_size": ["4KiB", "64KiB", "1MiB"]}}, True),
        ({"cells": [CELL], "steady_state": False}, True),
    ],
)
def test_the_site_owns_the_cells_that_it_chooses(layer, own):
    assert load_plan([{"base": "iops", **layer}])[0].own_cells is own


def test_cells_stay_the_sites_own_below_another_layer(tmp_path):
    write(tmp_path, {"mine.yml": {"base": "iops", "cells": [CELL], "steady_state": False}})
    assert load_plan([{"base": "mine", "rounds": {"max": 3}}], [tmp_path])[0].own_cells


def test_a_loaded_plan_is_the_callers_own_and_follows_its_files(tmp_path):
    folder = write(tmp_path, {"tests/mine.yml": SMALL})
    (first,) = load_plan(["mine"], [folder])
    first.cells.clear()
    assert len(load_plan(["mine"], [folder])[0].cells) == 1
    write(tmp_path, {"tests/mine.yml": {**SMALL, "cells": [CELL, {**CELL, "read_pct": 100}]}})
    assert len(load_plan(["mine"], [folder])[0].cells) == 2
    (tmp_path / "tests/mine.yml").unlink()
    assert "no test named 'mine'" in problems_of(["mine"], [folder])[0]


def test_a_site_file_comes_first_and_may_build_on_its_namesake(tmp_path):
    write(
        tmp_path,
        {
            "tests/iops.yml": {"base": "iops", "rounds": {"max": 6}},
            "plans/ours.yml": ["iops", "quick"],
            "quick.yml": {"cells": [CELL]},
        },
    )
    iops, quick = load_plan("ours", [tmp_path])
    assert iops.rounds.max == 6 and len(iops.cells) == 56
    assert quick.name == "quick" and quick.own_cells and quick.origin == str(tmp_path / "quick.yml")


def test_a_test_of_a_plan_is_run_or_built_on_by_the_name_of_both(tmp_path):
    """So whole suites can be scaled by keys, also those whose tests are in the plan's file alone."""
    folder = write(
        tmp_path,
        {
            "mine.yml": {"cells": [CELL]},
            "plans/ours.yml": ["mine", {"base": "mine", "name": "again", "rounds": {"max": 7}}, {"base": "iops"}],
        },
    )
    entries = ["ours/mine", "ours/again", {"base": "ours/again", "name": "more", "title": "More"}, "ours/iops"]
    tests = load_plan(entries, [folder])
    assert [test.name for test in tests] == ["mine", "again", "more", "iops"]
    assert [test.rounds.max for test in tests] == [25, 7, 7, 25] and tests[2].title == "More"
    assert [test.own_cells for test in tests] == [True, True, True, False]


def test_a_test_of_a_shipped_plan_that_is_changed_is_no_longer_that_of_its_source():
    """Each entry of this plan states its source itself, so a copy of it would claim to be after the specification."""
    names = [test.name for test in load_plan("pts-client") if not test.follows]
    same = load_plan([{"base": f"pts-client/{name}"} for name in names])
    assert same == [dataclasses.replace(test, origin=mine.origin) for test, mine in zip(load_plan("pts-client"), same)]
    (scaled,) = load_plan([{"base": "pts-client/iops-client", "matrix": {"runtime_s": 1}}])
    assert scaled.departs == Departure("iops-client", ["cells"]) and scaled.active_range_pct == 75


@pytest.mark.parametrize(
    ("files", "where"),
    [
        ({"a.yml": {"base": "b"}, "b.yml": {"base": "a"}}, "a.yml"),
        ({"a.yml": {"base": "a", "cells": [CELL]}}, "a.yml"),
        (
            {"a.yml": {"base": "p/b"}, "plans/p.yml": [{"name": "b", "base": "p/c"}, {"name": "c", "base": "p/b"}]},
            "p/b",
        ),
        ({"a.yml": {"base": "p/a"}, "plans/p.yml": ["a"]}, "a.yml"),
    ],
)
def test_a_cycle_of_bases_is_an_error(tmp_path, files, where):
    (problem,) = problems_of(["a"], [write(tmp_path, files)])
    assert "leads back to itself" in problem and where in problem


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (None, "ssd_plan: must be a list"),
        ([], "ssd_plan: must be a list"),
        ({"wsat": None}, "ssd_plan: must be a list"),
        ("dmo", "ssd_plan: no plan file named 'dmo'; did you mean demo?"),
        ("iops", "write ssd_plan: [iops]"),
        (["iosp"], "ssd_plan[0]: no test named 'iosp'; did you mean iops?"),
        (["wsat", 7], "ssd_plan[1]: must be a test name or a mapping"),
        ([{"base": "iosp"}], "ssd_plan[0]: no test named 'iosp'"),
        (["smok"], "no test named 'smok'; did you mean the plan smoke? Give it without brackets: ssd_plan: smoke ("),
        (["smoke"], "no test named 'smoke'; did you mean the plan smoke? Give it without brackets: ssd_plan: smoke ("),
        (["smoke/smok"], "no test named 'smoke/smok'; did you mean smoke/smoke? (known tests: smoke/smoke)"),
        ([{"base": "smok/smoke"}], "no test named 'smok/smoke'; did you mean smoke/smoke?"),
        ([{"cells": [CELL]}], "ssd_plan[0]: name: is missing"),
        ([{**SMALL, "rouns": {}}], "ssd_plan[0]: rouns: unknown key; did you mean rounds?"),
        ([{**SMALL, "rounds": {"maxx": 3}}], "ssd_plan[0]: rounds.maxx: unknown key; did you mean max?"),
        ([{**SMALL, "name": "../x"}], "ssd_plan[0]: name: '../x' does not fit"),
        (
            [{**SMALL, "purge": {"method": "format"}}],
            "purge.method: 'format' must be one of: auto, nvme_sanitize_crypto, ",
        ),
        ([{**SMALL, "purge": "auto"}], 'purge: "auto" must be a mapping or true or false'),
        ([{"name": "x"}], "ssd_plan[0]: cells: the test has neither cells nor a matrix"),
        ([{"name": "x", "matrix": {"read_pct": 0}}], "ssd_plan[0]: matrix.block_size: is missing"),
        (
            [{"name": "x", "cells": [{**CELL, "block_size": "4k"}]}],
            "cells[0].block_size: '4k' does not fit; 512B, 4KiB",
        ),
        ([{"name": "x", "cells": [{**CELL, "block_size": "4KiB\n"}]}], "cells[0].block_size: '4KiB\\n' does not fit"),
        ([{"name": "x\n", "cells": [CELL]}], "name: 'x\\n' does not fit"),
        ([{"name": "x", "cells": [CELL], "steady_state": True}], "steady_state.tracked: is missing"),
        ([{"name": "x", "cells": [{**CELL, "block_size": 1000}]}], "is not a multiple of 512 B"),
        ([{"name": "x", "cells": [{**CELL, "read_pct": 101}]}], "cells[0].read_pct: 101 must be at most 100"),
        ([{"name": "x", "cells": [{**CELL, "read_pct": -1}]}], "cells[0].read_pct: -1 must be at least 0"),
        (
            [{"name": "x", "cells": [{**CELL, "access": "rand"}]}],
            "cells[0].access: 'rand' must be one of: random, sequential; did you mean random?",
        ),
        ([{"name": "x", "cells": [{**CELL, "threads": 0}]}], "cells[0].threads: 0 must be at least 1"),
        ([{"name": "x", "cells": [{**CELL, "threads": 256, "queue_depth": 4096}]}], "1048576 I/Os outstanding"),
        ([{"name": "x", "cells": [CELL, CELL]}], "cell rand-4k-w100-tc1-qd1: is in the test twice"),
        ([{"name": "x", "cells": [{**CELL, "rate_iops": 1, "threads": 4}]}], "rate_iops 1 leaves less than 1 IOPS"),
        (
            [{"name": "x", "cells": [{**CELL, "queue_depth": 8, "batch": 16}]}],
            "batch 16 is more than its queue_depth of 8",
        ),
        (
            [{"name": "x", "cells": [{**CELL, "runtime_s": 5, "ramp_s": 5}]}],
            "ramp_s 5 must be shorter than its runtime_s of 5",
        ),
        (
            [{"name": "x", "matrix": {"read_pct": 0, "block_size": "4KiB", "batch": 0}}],
            "matrix.batch: 0 must be at least 1",
        ),
        ([{**SMALL, "rounds": {"max": None}}], "rounds: nothing ends the test"),
        (
            [{"name": "x", "cells": [{**CELL, "read_pct": 100}], "rounds": {"capacity_multiple": 4}}],
            "no cell of the test writes",
        ),
        (
            [{"base": "iops", "rounds": {"max": 4}}],
            "rounds.max: 4 rounds can't hold a window of 5 (sample_every 1, confirm_windows 0)",
        ),
        ([{"base": "wsat", "rounds": {"max": 25}}], "at least 300"),
        ([{"base": "iops", "active_range_pct": 0}], "active_range_pct: 0 must be at least 1"),
        ([{"base": "iops", "active_range_max_gib": 64}], "active_range_max_gib: needs a precondition with of: active_"),
        (
            [{"name": "x", "cells": [CELL], "lead": {**CELL, "read_pct": 50}, "cell_order": "shuffled"}],
            "cell_order: shuffled cannot be combined with lead",
        ),
        ([{"base": "iops", "cell_order": "random"}], "cell_order: 'random' must be one of"),
        (["wsat", {"base": "wsat"}], "name: 'wsat' is in the plan twice"),
        ([{"base": "integrity", "cells": [CELL]}], "integrity: cannot be combined with cells: it measures nothing"),
        (
            [{"base": "integrity", "precondition": True}],
            "integrity: cannot be combined with precondition: it measures nothing; give it precondition: false",
        ),
        (
            [{"base": "iops", "integrity": True, "precondition": False}],
            "integrity: cannot be combined with cells: it measures nothing; build on another base, such as integrity",
        ),
        ([{"base": "integrity", "integrity": {"pases": 2}}], "integrity.pases: unknown key; did you mean passes?"),
        ([{"base": "burn-in", "integrity": {"duration_s": 0}}], "integrity.duration_s: 0 must be at least 1"),
        (
            [{"base": "integrity", "integrity": {"passes": 1, "heat_s": 60}}],
            "integrity.heat_s: has no effect on a single pass; give passes: 2, or a duration_s",
        ),
        (
            [{"base": "integrity", "integrity": {"passes": 1, "stop_at_first": True}}],
            "integrity.stop_at_first: has no effect on a single pass",
        ),
        ([{"base": "integrity", "filesystem": {"type": "xfs"}}], "filesystem: can't be combined with integrity"),
        ([{"base": "integrity", "array": {}}], "array: can't be combined with integrity"),
        ([{"base": "integrity", "integrity": {"passes": 11}}], "integrity.passes: 11 must be at most 10"),
        ([{"base": "integrity", "integrity": {"pause_s": 604801}}], "integrity.pause_s: 604801 must be at most 604800"),
        (
            [{"base": "iops", "precondition": {"verify": True, "passes": 1}}],
            "precondition.verify: needs passes: 2 or more, the last of which is read back",
        ),
        (
            [{"base": "iops", "precondition": {"verify": True, "data": "zeros"}}],
            "precondition.verify: can't be combined with data: zeros",
        ),
        (
            [{"base": "iops", "precondition": {"verify": True}, "filesystem": {"type": "xfs"}}],
            "filesystem: can't be combined with integrity or precondition.verify",
        ),
        (
            [{"base": "iops", "precondition": {"verify": True}, "purge": False, "array": {}}],
            "array: can't be combined with integrity or precondition.verify",
        ),
        (
            [{"base": "iops", "integrity": True, "precondition": {"verify": True}}],
            "integrity: cannot be combined with precondition",
        ),
        ([{"base": "burn-in", "integrity": {"duration_s": 2592001}}], "duration_s: 2592001 must be at most 2592000"),
        ([{"base": "burn-in", "integrity": {"heat_s": 86401}}], "integrity.heat_s: 86401 must be at most 86400"),
        ([{"base": "self-test-short", "cells": [CELL]}], "self_test: cannot be combined with cells"),
        (
            [{"base": "self-test-short", "integrity": True}],
            "integrity: cannot be combined with self_test: it measures nothing; make two",
        ),
        ([{"base": "self-test-short", "self_test": "long"}], "self_test: 'long' must be one of: short, extended"),
        ([{"base": "self-test-short", "filesystem": {"type": "xfs"}}], "filesystem: can't be combined with self_test"),
        ([{"base": "self-test-short", "array": {}}], "array: can't be combined with self_test"),
        ([{"base": "integrity", "integrity": False}], "cells: the test has neither cells nor a matrix"),
    ],
)
def test_a_wrong_plan_names_place_and_key(plan, expected):
    assert expected in "\n".join(problems_of(plan))


@pytest.mark.parametrize("key", ["self_test", "write_cache", "cell_order"])
def test_a_word_that_is_none_of_those_is_told_what_may_be_written(key):
    """Null is what stands for none, and no word."""
    (problem,) = problems_of([{"base": "iops", key: "what"}])
    assert f"{key}: 'what' must be one of: " in problem and "None" not in problem


def test_a_pass_with_heat_or_an_end_after_it_is_no_single_one():
    for asked in ({"heat_s": 60}, {"passes": 1, "heat_s": 60, "duration_s": 60, "stop_at_first": True}):
        assert load_plan([{"base": "integrity", "integrity": asked}])


@pytest.mark.parametrize(
    ("tracked", "expected"),
    [
        (
            {"block_size": "8KiB", "read_pct": 0, "metric": "write_iops"},
            "tracked[0]: the test has no cell with block_size 8KiB, read_pct 0",
        ),
        (
            {"block_size": "4KiB", "read_pct": 0, "metric": "read_iops"},
            "tracked[0].metric: read_iops: cell rand-4k-w100-tc1-qd1 has no reads",
        ),
        ({"block_size": "4KiB", "read_pct": 0, "metric": "iosp"}, "tracked[0].metric: 'iosp' must be one of"),
        (
            {"block_size": "4KiB", "read_pct": 50, "metric": "iops"},
            "2 cells have block_size 4KiB, read_pct 50; name queue_depth too",
        ),
    ],
)
def test_a_tracked_cell_is_found_by_what_it_is(tracked, expected):
    cells = [CELL, {**CELL, "read_pct": 50}, {**CELL, "read_pct": 50, "queue_depth": 4}]
    assert expected in "\n".join(problems_of([{"name": "x", "cells": cells, "steady_state": {"tracked": [tracked]}}]))


def test_all_problems_of_a_plan_are_told_at_once_with_their_files(tmp_path):
    write(
        tmp_path,
        {
            "one.yml": {"cels": []},
            "two.yml": "a: [",
            "three.yml": "",
            "four.yml": {"base": "one"},
            "five.yml": "cells: []\ncells: []\n",
        },
    )
    found = problems_of(["one", "two", "three", "four", "five", {"base": "iops", "matrix": {"thread": 3}}], [tmp_path])
    text = "\n".join(found)
    assert f"{tmp_path}/one.yml: cels: unknown key; did you mean cells?" in text
    assert f"{tmp_path}/two.yml: cannot be read" in text and f"{tmp_path}/three.yml: must be" in text
    assert f"{tmp_path}/five.yml: cannot be read: the key cells is given twice" in text and "line 1" in text
    assert "ssd_plan[5]: matrix.thread: unknown key; did you mean threads?" in text


@pytest.mark.parametrize(
    ("dirs", "expected"),
    [
        ("/srv/tests", "'/srv/tests' is not a list of folders"),
        (None, "None is not a list"),
        (["no/such"], "there is no folder /"),
    ],
)
def test_folders_of_tests_have_to_be_there(dirs, expected):
    (problem,) = problems_of(["wsat"], dirs)
    assert problem.startswith("ssd_tests_dirs: ") and expected in problem


def test_ansibles_own_containers_and_texts_are_taken_as_data():
    class Text(str):
        pass

    class Mapping(dict):
        pass

    (test,) = load_plan(
        (Mapping({Text("base"): Text("wsat"), "name": Text("ours"), Text("rounds"): Mapping(max=300)}),)
    )
    assert test.rounds.max == 300 and yaml.safe_dump(test.name) == "ours\n...\n"


def test_a_file_that_is_no_test_is_none_that_may_be_asked_for():
    assert "platforms" not in testfiles.Library().names("tests")
    with pytest.raises(PlanError, match="no test named 'platforms'"):
        load_plan(["platforms"])
