# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.render_plan import load_plan, render
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import plan_text, variable_rules, wear
from ansible_collections.ssdlab.fleet.tests.fixtures.plans import found, plan_of

RATE_MIB_S = 500
GB = 10**9
SIZE = 480 * GB
WRITE = {"block_size": "4KiB", "read_pct": 0, "runtime_s": 60}
READ = {**WRITE, "read_pct": 100}
MINUTE = 60 * RATE_MIB_S * (1 << 20)


def planned(*tests, model="MTFD 1", method="auto"):
    identity = {"serial": "S1", "model": model, "size_bytes": SIZE, "logical_block_size_bytes": 512}
    return render(
        load_plan(
            [{"name": f"t{number}", "purge": False, "precondition": False, **test} for number, test in enumerate(tests)]
        ),
        run={"id": "r1", "name": "q"},
        host="h1",
        boot_id="b",
        engine_version="0",
        variables={"purge_method": method},
        drives=found([{"selector": {"serial": "S1"}, "identity": identity}]),
    )


def written(*tests, **more):
    return wear.of_drive(planned(*tests, **more).drives[0])


@pytest.mark.parametrize(
    ("test", "least", "most"),
    [
        ({"cells": [READ]}, 0, 0),
        ({"cells": [READ], "precondition": {"passes": 2}}, 2 * SIZE, 2 * SIZE),
        ({"cells": [READ], "precondition": {"passes": 2}, "active_range_pct": 50}, 2 * SIZE, 2 * SIZE),
        ({"cells": [READ], "precondition": {"passes": 2, "of": "active_range"}, "active_range_pct": 50}, SIZE, SIZE),
        ({"cells": [READ], "precondition": {"passes": 2, "verify": True}}, 2 * SIZE, 2 * SIZE),
        ({"cells": [READ], "purge": {"method": "overwrite"}}, SIZE, SIZE),
        ({"integrity": {"passes": 3}}, 3 * SIZE, 3 * SIZE),
        ({"integrity": {"passes": 3, "heat_s": 30}}, 3 * SIZE + MINUTE, 3 * SIZE + MINUTE),
        # A pass of 1,831 s, 5,000 s of them: three.
        ({"integrity": {"duration_s": 5000}}, 3 * SIZE, 3 * SIZE),
        ({"integrity": True, "active_range_pct": 50}, SIZE, SIZE),
        ({"cells": [WRITE], "rounds": {"max": 10}}, 0, 10 * MINUTE),
        ({"cells": [WRITE, READ], "rounds": {"max": 10}}, 0, 10 * MINUTE),
        ({"cells": [{**WRITE, "rate_iops": 100}], "rounds": {"max": 10}}, 0, 10 * 60 * 100 * 4096),
        (
            {"cells": [WRITE], "rounds": {"max": None, "capacity_multiple": 4, "time_limit_s": 10**7}},
            0,
            4 * SIZE + MINUTE,
        ),
        # A ramp half as long as the cell writes half as much again, which fio does not count.
        ({"cells": [{**WRITE, "ramp_s": 30}], "rounds": {"max": 10}}, 0, 15 * MINUTE),
        (
            {
                "cells": [{**WRITE, "ramp_s": 30}],
                "rounds": {"max": None, "capacity_multiple": 4, "time_limit_s": 10**7},
            },
            0,
            6 * SIZE + 1.5 * MINUTE,
        ),
        (
            {
                "cells": [WRITE],
                "rounds": {"max": 25},
                "steady_state": {"tracked": [{"metric": "iops"}], "min_capacity_multiple": 1},
            },
            SIZE,
            25 * MINUTE,
        ),
    ],
)
def test_what_a_plan_writes(test, least, most):
    found = written(test)
    # plan_text counts 0.4 s for each cell's start, in which nothing is written.
    assert found[0] == pytest.approx(least, rel=0.01) and found[1] == pytest.approx(most, rel=0.01)


def test_tests_add_up_and_least_is_never_above_most():
    alone = [written({"cells": [WRITE], "rounds": {"max": 3}}), written({"cells": [READ], "precondition": {}})]
    assert written({"cells": [WRITE], "rounds": {"max": 3}}, {"cells": [READ], "precondition": {}}) == tuple(
        sum(pair) for pair in zip(*alone)
    )
    for plan in ("smoke", "nightly", "pts-enterprise", "micron-brief", "micron-blog", "full"):
        identity = {"serial": "S1", "size_bytes": SIZE, "logical_block_size_bytes": 512}
        done = render(
            load_plan(plan),
            run={"id": "r", "name": "q"},
            host="h",
            boot_id="b",
            engine_version="0",
            variables={},
            drives=found([{"selector": {"serial": "S1"}, "identity": identity}]),
        )
        least, most = wear.of_drive(done.drives[0])
        assert 0 <= least <= most and most > 0, plan


@pytest.mark.parametrize(
    ("model", "rated"), [("MTFDKCC 7", 7000), ("MTFD 1", 1), ("INTEL", None), (None, None), ("  MTFD 1 ", 1)]
)
def test_the_first_rating_that_fits_counts(model, rated):
    ratings = [{"model": "MTFDKC*", "tbw": "7000"}, {"model": "MTFD*", "tbw": 1}]
    assert wear.rated_bytes(model, ratings) == (None if rated is None else rated * wear.TB)


@pytest.mark.parametrize(
    ("budget", "ratings", "expected"),
    [
        ("", [], ""),
        (None, [], ""),
        ("1TB", [], ""),
        ("0.9TB", [], "ssd_wear_budget: the plan may write 960 GB, more than the 900 GB of the budget"),
        ("5%", [{"model": "MTFD*", "tbw": 20}], ""),
        ("4%", [{"model": "MTFD*", "tbw": 20}], "more than the 800 GB of the budget; take tests out"),
        ("5%", [], "5 % of an unknown rated life: add model 'MTFD 1' to ssd_rated_tbw"),
    ],
)
def test_a_plan_beyond_the_budget_is_refused(budget, ratings, expected):
    plan = planned({"cells": [READ], "precondition": {"passes": 2}})
    found = wear.findings("h1", plan, {"ssd_wear_budget": budget, "ssd_rated_tbw": ratings})
    assert len(found) == bool(expected) and all(
        expected in finding.text() and finding.host == "h1" and finding.drive == "S1" for finding in found
    )


def test_a_plan_that_only_reads_needs_no_rating():
    assert wear.findings("h1", planned({"cells": [READ]}), {"ssd_wear_budget": "5%"}) == []


@pytest.mark.parametrize(
    ("least", "most", "rated", "used", "text"),
    [
        (0, 0, 1.0, 12, "writes nothing"),
        (960 * GB, 960 * GB, None, None, "writes 960 GB (share of its rated life unknown: set ssd_rated_tbw)"),
        (
            960 * GB,
            960 * GB,
            None,
            12,
            "writes 960 GB (share of its rated life unknown: set ssd_rated_tbw; 12 % used, by its own count)",
        ),
        (960 * GB, 4800 * GB, 480 * wear.TB, None, "writes 960 GB to 4.8 TB, 0.2 to 1 % of its rated 480 TB"),
        (
            960 * GB,
            4800 * GB,
            480 * wear.TB,
            0,
            "writes 960 GB to 4.8 TB, 0.2 to 1 % of its rated 480 TB (0 % used, by its own count)",
        ),
    ],
)
def test_plan_mode_says_how_much(least, most, rated, used, text):
    assert wear.wear_text(least, most, rated, used) == text


@pytest.mark.parametrize(
    ("budget", "used", "expected"),
    [
        (
            "4%",
            {"S1": 12},
            "more than the 800 GB of the budget; 12 % of its rated life is used already, by its own count;",
        ),
        ("0.9TB", {"S1": 97}, "97 % of its rated life is used already, by its own count; take tests out"),
        ("4%", {"S2": 12}, "of the budget; take tests out"),
        ("4%", {"S1": None}, "of the budget; take tests out"),
    ],
)
def test_a_refusal_says_what_is_used_already(budget, used, expected):
    plan = planned({"cells": [READ], "precondition": {"passes": 2}})
    asked = {"ssd_wear_budget": budget, "ssd_rated_tbw": [{"model": "MTFD*", "tbw": 20}]}
    (found,) = wear.findings("h1", plan, asked, used=used)
    assert expected in found.text()


def test_of_an_unknown_rated_life_the_drives_own_count_is_told_too():
    plan = planned({"cells": [READ], "precondition": {"passes": 2}})
    (found,) = wear.findings("h1", plan, {"ssd_wear_budget": "5%"}, used={"S1": 12})
    assert found.message.endswith("or give the budget in TB; 12 % of it is used already, by the drive's own count")


@pytest.mark.parametrize(
    "name, value",
    [("ssd_wear_budget", "lots"), ("ssd_wear_budget", 5), ("ssd_wear_budget", "-1TB"), ("ssd_wear_budget", "5 GB")],
)
@pytest.mark.parametrize(
    "ratings", [[], {"model": "A"}, [{"model": "A"}], [{"model": "A", "tbw": 0}], [{"model": "A", "tbw": "much"}], [7]]
)
def test_wrong_values_are_told(name, value, ratings):
    found = variable_rules.problems({name: value, "ssd_rated_tbw": ratings})
    assert any(line.startswith("ssd_wear_budget: ") for line in found)
    assert any(line.startswith("ssd_rated_tbw: ") for line in found) is (ratings != [])


def test_a_drive_may_write_as_much_as_its_size_and_link_let_it_and_takes_as_long_as_most_drives_do():
    """PCIe 4.0 x4: 60 s at 7.9 GB/s, of which 160 GB go to fast flash; a fill at the 624 MB/s of drives of 480 GB."""
    identity = {"serial": "S1", "transport": "nvme", "size_bytes": SIZE, "logical_block_size_bytes": 512}
    drives = [{"selector": {"serial": "S1"}, "identity": identity, "link_mb_s": 7876.8}]
    test = {"name": "x", "purge": False, "precondition": {"passes": 1}, "cells": [WRITE], "rounds": {"max": 1}}
    plan = plan_of(load_plan([test]), drives=drives, ssd_assumed_write_mib_s="auto")
    least, most = wear.of_drive(plan.drives[0])
    assert least == SIZE and most == pytest.approx(SIZE + 60.4 * 1920e6 + SIZE / 3, rel=0.01)
    (took,) = plan_text.estimate(plan)
    assert took.max_s == pytest.approx(SIZE / 624e6 + 60, rel=0.01)
    assert "if it writes at most 1,920 MB/s" in "\n".join(plan_text.describe(plan, {}, wear={"S1": "writes 1 TB"}))


@pytest.mark.parametrize(("share_pct", "most"), [(30, 60.4 * 7876.8e6), (100, 60.4 * 1920e6 + SIZE / 3)])
def test_a_slice_may_be_written_as_fast_as_the_link_carries(share_pct, most):
    """A drive's fast flash may take all of it."""
    identity = {"serial": "S1", "transport": "nvme", "size_bytes": SIZE, "logical_block_size_bytes": 512}
    drives = [{"selector": {"serial": "S1"}, "identity": identity, "link_mb_s": 7876.8}]
    test = {"name": "x", "purge": False, "precondition": False, "cells": [WRITE], "rounds": {"max": 1}}
    test["active_range_pct"] = share_pct
    plan = plan_of(load_plan([test]), drives=drives, ssd_assumed_write_mib_s="auto")
    assert wear.of_drive(plan.drives[0])[1] == pytest.approx(most, rel=0.01)


def test_the_plan_has_a_line_of_it():
    plan = planned({"cells": [READ], "precondition": {"passes": 2}})
    lines = plan_text.describe(plan, {}, wear={"S1": "writes 960 GB"})
    assert "    writes 960 GB, if it writes at most 524.3 MB/s" in lines
