# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import histogram
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.render_plan import load_plan
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import (
    demand_intensity,
    derived_metrics,
    write_report,
)
from ansible_collections.ssdlab.fleet.tests.fixtures import documents, planned
from ansible_collections.ssdlab.fleet.tests.fixtures.report import generator

# Micron's blog, part 2: outstanding I/Os, IOPS, average latency in µs, at device queue depths of 31 and 255.
DEPTH_31 = [(2, 33_279, 29), (4, 51_586, 38), (8, 61_364, 65), (16, 58_586, 136), (32, 57_111, 279), (64, 54_854, 583)]
DEPTH_255 = [(2, 32_282, 30), (4, 52_848, 37), (8, 80_433, 49), (16, 80_117, 99), (32, 75_266, 212), (64, 71_527, 447)]
# Part 3: at 1 outstanding "more than 90 % of maximum"; the sweet spot is 2.
PART_3 = [(1, 8_300, 117), (2, 9_078, 220), (4, 9_100, 439)]


def cells_of(rows, **more):
    common = {"access": "random", "block_size_bytes": 4096, "read_pct": 0, "threads": 1}
    return [{**common, "id": f"c{depth}", "queue_depth": depth, **more} for depth, _iops, _latency in rows]


def averages_of(rows):
    return [
        {"cell": f"c{depth}", "metrics": {"iops": iops, "mean_latency_us": latency}} for depth, iops, latency in rows
    ]


@pytest.mark.parametrize(("rows", "depth"), [(DEPTH_31, 8), (DEPTH_255, 8), (PART_3, 2)])
def test_the_sweet_spot_of_the_blogs_tables(rows, depth):
    (sweep,) = derived_metrics.sweeps(cells_of(rows), averages_of(rows))
    assert sweep["sweet_spot"]["queue_depth"] == depth
    # All rows of part 2 have half of the I/Os in flight that they name.
    if rows is not PART_3:
        assert all(
            0.45 <= point["observed_outstanding"] / point["asked_outstanding"] <= 0.55 for point in sweep["points"]
        )


@pytest.mark.parametrize(
    ("iops", "depth", "share"),
    [
        ([100, 100, 100], 1, 1.0),
        ([95, 99, 100], 1, 0.95),
        ([94.99, 95, 100], 2, 0.95),
        ([50, 70, 100], 3, 1.0),
        ([100, 60, 90], 1, 1.0),
    ],
)
def test_the_lowest_depth_within_five_per_cent(iops, depth, share):
    spot = derived_metrics.sweet_spot(
        [{"queue_depth": number, "iops": value} for number, value in enumerate(iops, start=1)]
    )
    assert spot["queue_depth"] == depth and spot["share"] == pytest.approx(share)


def test_a_spot_at_the_end_says_that_it_may_lie_beyond():
    rows = [(1, 10, 100), (2, 20, 100), (4, 40, 100)]
    (sweep,) = derived_metrics.sweeps(cells_of(rows), averages_of(rows))
    assert "may lie beyond" in derived_metrics.sweep_text(sweep)
    (sweep,) = derived_metrics.sweeps(cells_of(DEPTH_255), averages_of(DEPTH_255))
    assert (
        derived_metrics.sweep_text(sweep)
        == "depth 8: 80,433 IOPS at 49 µs, 100.0 % of the most IOPS of the sweep; at depth 64 71,527 IOPS at 447 µs"
    )


@pytest.mark.parametrize(
    ("cells", "averages"),
    [
        (cells_of(DEPTH_31[:2]), averages_of(DEPTH_31[:2])),
        (cells_of(DEPTH_31), averages_of(DEPTH_31[1:])),
        (cells_of(DEPTH_31), averages_of([(2, 0, 0), *DEPTH_31[1:]])),
        (
            [{**cell, "threads": number} for number, cell in enumerate(cells_of(DEPTH_31), start=1)],
            averages_of(DEPTH_31),
        ),
        (
            [{key: cell[key] for key in ("id", "block_size_bytes", "read_pct")} for cell in cells_of(DEPTH_31)],
            averages_of(DEPTH_31),
        ),
        ([], []),
    ],
    ids=[
        "two depths",
        "a depth without figures",
        "a figure of nothing",
        "other threads",
        "cells of unknown depth",
        "nothing",
    ],
)
def test_what_is_no_sweep(cells, averages):
    assert derived_metrics.sweeps(cells, averages) == []


def test_the_share_within_a_time_is_told_by_depth():
    """Of 52,727,650 writes, 52,651,003 took at most a millisecond, as Micron's blog has it: 99.855 %."""
    within, all_ios = 52_651_003, 52_727_650
    bins = {histogram.value_of(histogram.bin_of(900_000)): within, 1_500_000: all_ios - within}
    told = histogram.metrics({"write": histogram.merge([bins])}, (1000, 2000))
    averages = averages_of(DEPTH_255)
    averages[2]["metrics"].update(told)
    averages[0]["metrics"].update(within_1ms_pct=None)
    (sweep,) = derived_metrics.sweeps(cells_of(DEPTH_255), averages)
    shares = [{key: point[key] for key in point if key.startswith("within_")} for point in sweep["points"]]
    assert shares == [{}, {}, {"within_1ms_pct": pytest.approx(99.855, abs=5e-4), "within_2ms_pct": 100.0}, {}, {}, {}]
    assert sweep["sweet_spot"]["within_2ms_pct"] == 100.0
    (shown,) = derived_metrics.derived_view({"sweeps": [sweep]})["sweeps"]
    assert shown["shares"] == ["I/O ≤ 1 ms (%)", "I/O ≤ 2 ms (%)"]
    assert [row["texts"][4:] for row in shown["rows"][1:4]] == [["–", "–"], ["99.855", "100"], ["–", "–"]]
    curve = demand_intensity.curve([sweep, {**sweep, "threads": 2}])
    shown = demand_intensity.curve_view(curve)
    assert shown["shares"] == ["I/O ≤ 1 ms (%)", "I/O ≤ 2 ms (%)"]
    assert [row["texts"][4:] for row in shown["rows"]].count(["99.855", "100"]) == 2


def test_sweeps_are_told_apart_by_all_but_the_depth():
    rows = DEPTH_31[:3]
    other = [{**cell, "id": "r" + cell["id"], "read_pct": 100} for cell in cells_of(rows)]
    figures = averages_of(rows) + [{**entry, "cell": "r" + entry["cell"]} for entry in averages_of(rows)]
    found = derived_metrics.sweeps([*other, *cells_of(rows)][::-1], figures)
    assert sorted(sweep["read_pct"] for sweep in found) == [0, 100]
    assert all([point["queue_depth"] for point in sweep["points"]] == [2, 4, 8] for sweep in found)


def judged(first="pass", second="pass"):
    tests = [{"test": "one", "verdict": first, "metrics": {}}, {"test": "two", "verdict": second, "metrics": {}}]
    records = {
        name: {"steady_state": [{"metric": "iops", "average": value}]}
        for name, value in (("one", 4160.0), ("two", 3648.0))
    }
    return derived_metrics.of_drive(
        {"tests": tests}, records, {}, {"two": {"repeats": "one"}, "one": {"repeats": None}}
    )


def test_a_repeated_stimulus_is_compared_with_its_first_time():
    assert judged() == {
        "two": {
            "repeated": {"first_test": "one", "metric": "iops", "first": 4160.0, "value": 3648.0, "change_pct": -12.31}
        }
    }
    assert (
        derived_metrics.repeated_text(judged()["two"]["repeated"])
        == "12.3 % lower than in one (4,160 IOPS → 3,648 IOPS)"
    )


@pytest.mark.parametrize(
    "verdicts", [("invalid", "pass"), ("pass", "invalid"), ("error", "pass"), ("pass", "not_tested")]
)
def test_figures_that_are_not_trusted_lead_to_none(verdicts):
    assert judged(*verdicts) == {}


def test_a_host_that_tells_nothing_leads_to_nothing():
    tests = [{"test": "one", "verdict": "pass", "metrics": {}}]
    assert derived_metrics.of_drive({"tests": tests}, {}, {}, {"one": {"repeats": "gone"}}) == {}


def test_page_and_summary_tell_them(tmp_path):
    run_dir = generator.make(tmp_path, generator.DEMO[:1], tests=("wsat", "iops"), criteria=[])
    # Names that say nothing of the load, which is changed below.
    plan = run_dir / "raw" / "server-1" / "plan.json"
    for path in (run_dir / "run.json", run_dir / "results.jsonl", plan, plan.with_name("journal.jsonl")):
        path.write_text(path.read_text().replace('"rand-', '"at-'))
    content = json.loads(plan.read_text())
    for number, cell in enumerate(content["drives"][0]["tests"][1]["cells"]):
        cell.update(block_size_bytes=4096, read_pct=0, queue_depth=number + 1)
    plan.write_text(json.dumps(content))
    run = json.loads((run_dir / "run.json").read_text())
    run["tests"]["iops"].update(repeats="wsat", description="Tells <b>much</b>.")
    (run_dir / "run.json").write_text(json.dumps(run))
    write_report.make(str(tmp_path), generator.RUN_ID)
    summary = json.loads((run_dir / "report" / "summary.json").read_text())
    documents.validate(summary, "summary")
    wsat, iops = summary["drives"][0]["tests"]
    assert "sweeps" not in wsat and len(iops["sweeps"]) == 1 and iops["repeated"]["first_test"] == "wsat"
    html = (run_dir / "report" / "index.html").read_text()
    assert "Sweet spot: depth " in html and "Repeated stimulus" in html and "Tells &lt;b&gt;much" in html


def grid(threads, depths):
    """A sweep over threads and depth of a drive of 100 us and 40,000 IOPS."""
    cells, averages = [], []
    for number in threads:
        for depth in depths:
            iops = min(40_000, number * depth * 10_000)
            name = f"t{number}d{depth}"
            cells.append(planned.cell_json(id=name, read_pct=0, threads=number, queue_depth=depth))
            averages.append({"cell": name, "metrics": {"iops": iops, "mean_latency_us": 1e6 * number * depth / iops}})
    return cells, averages


def test_sweeps_at_several_thread_counts_are_one_curve_over_the_ios_in_flight():
    cells, averages = grid([1, 2, 4], [1, 2, 4])
    lead = {**cells[-1], "id": "lead", "lead": True}
    specs = {
        "dirth-sweep": {"cells": [lead, *cells]},
        "dirth-most": {
            "cells": [
                {
                    **cells[0],
                    "id": "most",
                    "point": {"test": "dirth-sweep", "take": "most", "mean_latency_below_us": None},
                }
            ]
        },
    }
    records = {
        "dirth-sweep": {"cells": [*averages, {"cell": "lead", "metrics": {"iops": 1, "mean_latency_us": 1}}]},
        "dirth-most": {"cells": []},
    }
    judged_tests = [{"test": name, "verdict": "pass", "metrics": {}} for name in specs]
    found = derived_metrics.of_drive({"tests": judged_tests}, records, specs, {})
    curve = found["dirth-sweep"]["demand"]
    assert [point["asked_outstanding"] for point in curve["points"]] == [1, 2, 2, 4, 4, 4, 8, 8, 16]
    assert (curve["sweet_spot"]["asked_outstanding"], curve["sweet_spot"]["threads"], curve["sweet_spot"]["share"]) == (
        4,
        1,
        1.0,
    )
    assert found["dirth-most"]["points"] == [
        {"cell": "most", "sweep": "dirth-sweep", "of": "t1d4", "threads": 1, "queue_depth": 4}
    ]
    (shown,) = derived_metrics.derived_view(found["dirth-sweep"])["sweeps"]
    points = found["dirth-sweep"]["demand"]["points"]
    assert [line["label"] for line in shown["plot"]["lines"]] == ["4 threads", "2 threads", "1 thread"]
    mine, drawn = [point for point in points if point["threads"] == 1], shown["plot"]["lines"][2]
    assert drawn["x"] == [point["iops"] for point in mine]
    assert drawn["y"] == [point["mean_latency_us"] / 1000 for point in mine]
    assert (
        shown["spot"] == "1 thread x depth 4: 40,000 IOPS at 100 µs, 100.0 % of the most IOPS"
        and len(shown["rows"]) == 9
    )
    assert derived_metrics.derived_view(found["dirth-most"])["points"] == [
        "most: 1 thread x depth 4, as t1d4 of dirth-sweep"
    ]


def test_sweeps_that_differ_in_more_than_threads_are_no_one_curve():
    cells, averages = grid([1, 2], [1, 2, 4])
    other = [{**cell, "read_pct": 100} if cell["threads"] == 2 else cell for cell in cells]
    found = derived_metrics.of_drive(
        {"tests": [{"test": "a", "verdict": "pass", "metrics": {}}]},
        {"a": {"cells": averages}},
        {"a": {"cells": other}},
        {},
    )
    assert "demand" not in found["a"] and len(found["a"]["sweeps"]) == 2


def test_a_repeat_without_a_rule_is_compared_by_what_the_first_one_tracked():
    tests = [
        {"test": "one", "verdict": "pass", "metrics": {}},
        {"test": "two", "verdict": "pass", "metrics": {"iops": 600, "write_iops": 500}},
    ]
    records = {"one": {"steady_state": [{"metric": "write_iops", "average": 400}]}, "two": {}}
    found = derived_metrics.of_drive({"tests": tests}, records, {}, {"two": {"repeats": "one"}})
    assert found["two"]["repeated"] == {
        "first_test": "one",
        "metric": "write_iops",
        "first": 400,
        "value": 500,
        "change_pct": 25.0,
    }


def test_an_array_is_told_in_times_of_one_drive():
    tests = [{"test": name, "verdict": "pass", "metrics": {}} for name in ("one", "all")]
    records = {
        "one": {"steady_state": [{"metric": "write_iops", "average": 1000.0}]},
        "all": {
            "steady_state": [{"metric": "write_iops", "average": 1800.0}],
            "array": {"members": [{"drive": "a"}, {"drive": "b"}]},
        },
    }
    found = derived_metrics.of_drive({"tests": tests}, records, {}, {"all": {"repeats": "one"}})["all"]
    assert found["repeated"]["drives"] == 2
    shown = derived_metrics.derived_view(found)
    assert shown["of_drives"] and shown["repeated"] == (
        "2 drives as one give 1.80 times what this drive gives in one (1,000 IOPS → 1,800 IOPS), 90 % of 2 times"
    )


def test_what_repeats_a_stimulus_is_a_bar_of_its_change():
    repeats = {
        f"hir{name}": {"repeated": {"first_test": first, "metric": "write_iops", "first": 100.0, "change_pct": change}}
        for name, first, change in (("-wait-5s", "hir", 40.0), ("-<b>", "hir", -5.0), ("-other", "xsr", 7.0))
    }
    drawn = derived_metrics.changes("hir", repeats)
    assert drawn["bars"] == [("wait-5s", 40.0), ("<b>", -5.0)] and drawn["x_title"] == "0: 100 IOPS, of hir"
    assert derived_metrics.changes("hir", dict(list(repeats.items())[:1])) is None


# It counts 1 GB as 1,024 MB.
MB = 10**6
GB = 1024 * MB
# Micron's brief, Table 1: capacity (GB), 128K SEQ write rate (MB/s), fill x2 (minutes).
TABLE_1 = [(480, 380, 43), (960, 520, 63), (1920, 520, 126), (7680, 520, 504)]
(FROM_FRESH,) = [
    base.sparse_json(test) for test in load_plan("micron-brief") if test.name == "brief-second-1-sequential"
]


@pytest.mark.parametrize(("capacity", "rate", "minutes"), TABLE_1)
def test_the_time_of_two_fills_is_that_of_the_briefs_table(capacity, rate, minutes):
    found = derived_metrics.precondition_time(FROM_FRESH, True, rate * MB, capacity * GB)
    assert found["bytes"] == 2 * capacity * GB and int(found["seconds"] / 60) == minutes


def changed(**cell):
    return {**FROM_FRESH, "cells": [{**FROM_FRESH["cells"][0], **cell}]}


@pytest.mark.parametrize(
    "other",
    [
        {"spec": changed(access="random")},
        {"spec": changed(block_size_bytes=64 << 10)},
        {"spec": changed(read_pct=50)},
        {"spec": changed(rate_iops=100)},
        {"spec": changed(range={"from_pct": 0, "to_pct": 20})},
        {"spec": {**FROM_FRESH, "cells": FROM_FRESH["cells"] * 2}},
        {"spec": {**FROM_FRESH, "active_range_pct": 75}},
        {"spec": {}},
        {"steady": False},
        {"bandwidth": None},
        {"bandwidth": 0.0},
        {"size_bytes": None},
    ],
)
def test_any_other_test_tells_none(other):
    assert (
        derived_metrics.precondition_time(
            **{"spec": FROM_FRESH, "steady": True, "bandwidth": 5e8, "size_bytes": 10**12, **other}
        )
        is None
    )


@pytest.mark.parametrize(("verdict", "told"), [("pass", True), ("fail", True), ("invalid", False)])
def test_the_report_tells_it_where_the_rate_is_trusted(verdict, told):
    test = {"test": "fill", "verdict": verdict, "metrics": {"write_bandwidth": 520.0 * MB}}
    record = {"steady_state": [{"metric": "iops", "average": 3967.0}]}
    found = derived_metrics.of_drive({"tests": [test]}, {"fill": record}, {"fill": FROM_FRESH}, {}, 960 * GB)
    assert ("fill_time" in found.get("fill", {})) is told
    if told:
        assert derived_metrics.derived_view(found["fill"])["fill_time"] == "63 min: 1.966 TB at 520 MB/s"
