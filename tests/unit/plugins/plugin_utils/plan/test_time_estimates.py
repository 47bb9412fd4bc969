# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import argument_specs
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import hostplan, time_estimates
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.render_plan import PlanError, load_plan
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import variable_rules
from ansible_collections.ssdlab.fleet.tests.fixtures.plans import found, known

RATE = 500 * (1 << 20)
SIZES = {"size_bytes": 480 * 10**9, "logical_block_size_bytes": 512}
SMALL = known(**SIZES)
LARGE = known(size_bytes=7_680 * 10**9, logical_block_size_bytes=512)
HOUR = {
    "purge": {"method": "none"},
    "precondition": False,
    "rounds": {"max": 60},
    "cells": [{"block_size": "4KiB", "read_pct": 0, "runtime_s": 60}],
}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2h", 7200),
        (" 90 min ", 5400),
        ("1.5d", 129600),
        ("", None),
        (None, None),
        ("2", None),
        (2, None),
        ("0h", None),
        ("-1h", None),
        ("2 hours", None),
    ],
)
def test_a_time_budget(text, seconds):
    assert time_estimates.budget_s(text) == seconds
    wrong = variable_rules.problems({"ssd_time_budget": text})
    assert bool(wrong) is (seconds is None and text not in ("", None)) and all(
        "must be empty or a time such as 90min" in line for line in wrong
    )


def plan_of(*lengths_min, **more):
    """Tests a, b, c … that purge by an instant method's share and last so many minutes of rounds."""
    return [
        {
            **HOUR,
            "name": chr(97 + number),
            "purge": {"method": "nvme_format_crypto"},
            "rounds": {"max": length},
            **more.get(chr(97 + number), {}),
        }
        for number, length in enumerate(lengths_min)
    ]


def loaded(plan):
    return load_plan(plan)


def names_within(plan, minutes, identities=(SMALL,)):
    kept, left_out = time_estimates.within(loaded(plan), identities, minutes * 60, [RATE] * len(identities))
    return "".join(kept), "".join(left_out)


# A purge by command counts a tenth of a fill: 1.5 minutes on SMALL; each cell's start 0.4 s.
@pytest.mark.parametrize(
    ("lengths", "minutes", "kept", "left_out"),
    [
        ((10, 10, 10), 60, "abc", ""),
        ((10, 10, 10), 25, "ab", "c"),
        ((10, 60, 10), 30, "ac", "b"),
        ((60, 10, 10), 30, "bc", "a"),
        ((60, 60), 30, "", "ab"),
    ],
)
def test_tests_are_taken_in_order_as_far_as_they_fit(lengths, minutes, kept, left_out):
    assert names_within(plan_of(*lengths), minutes) == (kept, left_out)


def test_a_test_that_goes_on_from_another_is_left_out_with_it():
    follows = {"b": {"purge": False}}
    assert names_within(plan_of(60, 10, 10, **follows), 30) == ("c", "ab")
    assert names_within(plan_of(10, 60, 10, **follows), 30) == ("ac", "b")
    filled = {"b": {"purge": False, "precondition": {"passes": 1, "of": "active_range"}, "active_range_pct": 1}}
    assert names_within(plan_of(60, 10, 10, **filled), 30) == ("bc", "a")


def test_a_self_test_neither_needs_the_state_of_a_test_nor_changes_it():
    a, b = plan_of(60, 10, b={"purge": False})
    own, whole = ({"base": f"self-test-{kind}", "name": name} for kind, name in (("short", "s"), ("extended", "l")))
    assert names_within([a, own], 30) == ("s", "a")
    # It reads 15 minutes.
    assert names_within([whole, {**b, "purge": True}], 14) == ("b", "l")
    assert names_within([a, own, b], 30) == ("s", "ab") and names_within([a, whole, b], 75) == ("ab", "l")


def test_the_drive_that_takes_longest_decides():
    assert names_within(plan_of(10, 10), 25) == ("ab", "") and names_within(plan_of(10, 10), 25, (SMALL, LARGE)) == (
        "",
        "ab",
    )


@pytest.mark.parametrize("plan", ["micron-p420m", "pts-enterprise", "full", "micron-brief", "nightly"])
@pytest.mark.parametrize("hours", [0.1, 1, 8, 24, 72, 10_000])
def test_the_budget_is_kept_and_more_time_keeps_no_fewer(plan, hours):
    tests = loaded(plan)
    kept, left_out = time_estimates.within(tests, [SMALL], hours * 3600, [RATE])
    assert sum(time_estimates.span_s(test, SMALL, RATE)[1] for test in tests if test.name in kept) <= hours * 3600
    assert sorted([*kept, *left_out]) == sorted(test.name for test in tests)
    if hours == 10_000:
        assert not left_out


def variables(**changed):
    return {**{name: argument_specs.default(name) for name in hostplan.VARIABLES}, "ssd_step": "qualify", **changed}


def chosen(given, drives=()):
    """The names of a host's tests, and of those that the budget leaves out."""
    tests, left_out = hostplan.choose_tests(hostplan.load_tests(given), given, found(drives))
    return [test.name for test in tests], list(left_out)


def test_a_hosts_plan_has_what_fits_and_the_rest_is_told():
    drives = [{"selector": {"serial": "S1"}, "identity": SIZES}, {"selector": {"serial": "S2"}, "identity": None}]
    given = variables(ssd_plan=plan_of(10, 60, 10), ssd_time_budget="30min")
    assert chosen(given, drives) == (["a", "c"], ["b"])
    # Of drives that nobody saw nothing is known, and a step is what was asked for.
    assert chosen(given) == (["a", "b", "c"], [])
    assert chosen(variables(ssd_step="purge", ssd_time_budget="1min"), drives) == (["purge"], [])


@pytest.mark.parametrize(
    ("discard_bytes", "kept"),
    # Discards count a tenth of a fill (1.5 minutes), an overwrite all of it (15 minutes).
    [(1 << 30, ["a", "b"]), (0, ["a"])],
)
def test_the_budget_counts_the_purge_that_the_drive_will_get(discard_bytes, kept):
    """As the range that plan mode prints does: a plan within the budget must not take longer than it."""
    drive = {"path": "/dev/sdb", "size_bytes": SMALL.size_bytes, "max_discard_bytes": discard_bytes}
    drives = [{"selector": {"serial": "S1"}, "identity": {**SIZES, **drive}, "purge_capabilities": {"any": drive}}]
    plan = [{**test, "purge": {"method": "auto"}} for test in plan_of(10, 10)]
    given = variables(ssd_plan=plan, ssd_time_budget="30min")
    assert chosen(given, drives) == (kept, [name for name in "ab" if name not in kept])


def test_the_budget_counts_the_reads_that_tell_how_many_drives_run_at_a_time():
    """Four drives: 2 minutes. Alone a drive needs none, and a number that is given needs none either."""
    four = [{"selector": {"serial": serial}, "identity": SIZES} for serial in ("S1", "S2", "S3", "S4")]
    given = variables(ssd_plan=plan_of(10, 16), ssd_time_budget="30min")
    for asked, drives, kept in ((1, four, ["a", "b"]), ("auto", four[:1], ["a", "b"]), ("auto", four, ["a"])):
        mine = {**given, "ssd_parallel_drives": asked}
        assert chosen(mine, drives)[0] == kept, (asked, len(drives))
    with pytest.raises(PlanError, match=r"a, may take 11 min 36 s, and finding how many drives run at a time 2 min 10"):
        chosen({**given, "ssd_parallel_drives": "auto", "ssd_time_budget": "1min"}, four)


@pytest.mark.parametrize(
    ("asked", "link_mb_s", "kept"),
    # Two fills of 480 GB: 31 minutes at 500 MiB/s; a link of PCIe 4.0 x4 lets such a drive write 624 MB/s.
    [("auto", None, ["a"]), ("auto", 7876.8, ["a"]), (500, 7876.8, []), (2000, None, ["a"])],
)
def test_the_budget_counts_by_what_each_drive_is_taken_to_write(asked, link_mb_s, kept):
    test = {**HOUR, "name": "a", "precondition": {"passes": 2}, "rounds": {"max": 1}}
    drive = {"selector": {"serial": "S1"}, "identity": {**SIZES, "transport": "nvme"}, "link_mb_s": link_mb_s}
    given = variables(ssd_plan=[test], ssd_time_budget="30min", ssd_assumed_write_mib_s=asked)
    if kept:
        assert chosen(given, [drive])[0] == kept
    else:
        with pytest.raises(PlanError, match="no test of the plan fits"):
            chosen(given, [drive])


def test_a_budget_that_nothing_fits_into_is_an_error():
    with pytest.raises(
        PlanError, match="ssd_time_budget: no test of the plan fits into 1min: the shortest, b, may take"
    ):
        chosen(
            variables(ssd_plan=plan_of(20, 10), ssd_time_budget="1min"),
            [{"selector": {"serial": "S1"}, "identity": SIZES}],
        )
