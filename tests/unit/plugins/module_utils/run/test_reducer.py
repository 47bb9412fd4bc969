# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One attempt's result from its events, as the running job and the controller compute it."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import health_metrics
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.criterion import Criterion
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import PlannedTest, Validity
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.storage_layers import PlannedArray, PlannedFilesystem
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import criteria, reducer
from ansible_collections.ssdlab.fleet.tests.fixtures import planned, steady_test

OTHER_IO = {"cause": "other_io", "level": "disturbs", "message": "another process wrote 8.0 MiB"}
ARRAY = PlannedArray(0, 65536, ["A1", "A2"])
FILESYSTEM = PlannedFilesystem("ext4", 4096, [], None)
SEEN = {
    "fio_bytes": {},
    "kernel_bytes": None,
    "merged_share": None,
    "mean_latency_s": None,
    "queued": None,
    "in_flight": None,
    "limits": {"nr_requests": None, "hw_queues": None, "device_depth": None},
}
DISCARDED = {"cause": "discarded", "level": "disturbs", "message": "another process discarded 8.0 MiB"}


def reduced(events, test=None):
    made = reducer.AttemptReducer(test or steady_test.spec())
    for event in events:
        made.take(event)
    return made


def with_causes(number, *causes):
    """The events of a steady test, one round's cell with these causes."""
    found = steady_test.events()
    for event in found:
        if event["event"] == "cell" and event["round"] == number:
            event["causes"] = list(causes)
    return found


def ending(**end):
    return [*steady_test.events()[:-1], {**steady_test.end(), **end}]


HEALTH = {"media_errors": 3, "io_timeout_s": 30.0}


@pytest.mark.parametrize(
    "end",
    [
        {},
        {"disturbed": ["it was throttled"]},
        {"ended": "error", "reasons": ["fio ended"]},
        {"ended": "invalid", "reasons": ["its link fell"]},
    ],
)
def test_the_health_of_the_drive_is_a_metric_whatever_became_of_the_test(end):
    found = reduced(ending(**end, health=HEALTH)).result()
    assert found.metrics["media_errors"] == 3 and found.metrics["drive_gone"] is None
    assert found.health.media_errors == 3
    assert criteria.missed([], "M", [found], [Criterion("media_errors", max=0)]) == [
        "iops: it counted 3 more media errors (media_errors, max 0)"
    ]
    # Its own figures stay what they were.
    assert set(reduced(ending(**end)).result().metrics) == set(found.metrics) - set(health_metrics.TABLE)


def test_of_a_journal_before_there_was_health_nothing_is_said():
    found = reduced(steady_test.events()).result()
    assert found.health is None and not set(found.metrics) & set(health_metrics.TABLE)
    assert criteria.missed([], "M", [found], criteria.usable(health_metrics.DEFAULT_CRITERIA)) == []


@pytest.mark.parametrize("more, longest_s", [({}, 31.2), ({"array": ARRAY}, None), ({"filesystem": FILESYSTEM}, None)])
def test_the_longest_io_is_of_all_rounds_and_only_of_a_bare_drive(more, longest_s):
    events = ending(health=HEALTH)
    for event in events:
        if event["event"] == "cell":
            stuck = {"longest_s": 31.2, "longest_stop_s": 0.0} if event["round"] == 2 else {"longest_s": 35.0}
            event["seen"] = {**SEEN, **stuck}
            event["causes"] = [OTHER_IO] if event["round"] == 2 else []
    test = dataclasses.replace(steady_test.spec(), **more)
    assert reduced(events, test).result().metrics["longest_io_s"] == longest_s


def test_a_steady_test_has_the_figures_of_its_window():
    result = reduced(steady_test.events(200.0)).result()
    assert (result.outcome, result.reasons, result.rounds) == ("steady", [], 5)
    assert result.metrics["write_iops"] == 200.0 and result.metrics["write_iops_fitted_end"] == 200.0
    assert result.steady_state[0].window_rounds == [1, 2, 3, 4, 5]
    assert result.written_bytes == 5 * 200 * 4096 and result.cells[0].steady.steady is True


@pytest.mark.parametrize(
    ("events", "outcome", "reasons"),
    [
        (ending(disturbed=["it was throttled"]), "invalid", ["it was throttled"]),
        (ending(ended="error", reasons=["fio ended"], disturbed=["hot"]), "error", ["fio ended"]),
        (ending(ended="invalid", reasons=["no point"], disturbed=["hot"]), "invalid", ["no point", "hot"]),
        (ending(ended="interrupted", reasons=["interrupted: stopped"]), "interrupted", ["interrupted: stopped"]),
        ([steady_test.events()[0], steady_test.end()], "invalid", ["no round was completed"]),
        (steady_test.events()[:-1], "interrupted", ["interrupted: the host job ended before this test did"]),
    ],
)
def test_what_ends_a_test_decides_where_its_rounds_do_not(events, outcome, reasons):
    result = reduced(events).result()
    assert (result.outcome, result.reasons) == (outcome, reasons)


def test_a_disturbed_round_is_in_no_window_and_a_discard_ends_the_test():
    result = reduced(with_causes(3, OTHER_IO)).result()
    assert result.outcome == "invalid" and "1 of 5 rounds" in result.reasons[0]
    assert [item.rounds for item in result.validity] == [[[3, 3]]]
    events = with_causes(3, DISCARDED)
    made = reduced([event for event in events if event.get("round", 0) <= 3 and event["event"] != "test_finished"])
    assert made.is_complete() and made.discarded == DISCARDED["message"]
    assert made.result(steady_test.end_record()).outcome == "invalid"


BUSY = {"cause": "host_limited", "level": "disturbs", "message": "the hypervisor took 9 %"}
OTHER = "rand-4k-w100-tc1-qd32"


def of_two_cells(busy, cause, rule=True):
    """The result of a test of two cells, of which one is tracked; in these rounds this cell is disturbed, and slow."""
    events = []
    for event in steady_test.events():
        events.append(event)
        if event["event"] == "cell":
            disturbed = (event["round"], OTHER) in busy
            write = {
                **event["write"],
                "iops": 10.0 if disturbed else 300.0,
                "max_latency_us": 7e6 if disturbed else 5.0,
            }
            events.append({**event, "cell": OTHER, "write": write, "causes": [cause] * disturbed})
            event["causes"] = [cause] * ((event["round"], steady_test.CELL) in busy)
    return of_two(events, rule)


def of_two(events, rule=True):
    """The result of a test of two cells, of which the first is tracked."""
    cells = [{"id": name, "read_pct": 0} for name in (steady_test.CELL, OTHER)]
    changes = planned.spec_json(cells=cells, rounds={"max": 5}, steady_state=None)
    changes = {"cells": changes["cells"], **({} if rule else {"steady_state": None})}
    return reduced(events, steady_test.spec(**changes)).result()


@pytest.mark.parametrize("rounds", [[2], [2, 3], [1, 2, 3, 4, 5]])
def test_what_disturbs_a_cell_that_decides_nothing_leaves_its_own_figures_out(rounds):
    result = of_two_cells([(number, OTHER) for number in rounds], BUSY)
    assert (result.outcome, result.reasons) == ("steady", [])
    assert result.steady_state[0].window_rounds == [1, 2, 3, 4, 5]
    tracked, other = result.cells
    assert tracked.metrics["write_iops"] == 100.0 and other.metrics["write_max_latency_us"] == 7e6
    # A criterion on a figure that is null is invalid, and one on a figure that is not there asks another test.
    assert other.metrics["write_iops"] == (300.0 if len(rounds) < 5 else None)
    assert [(item.cause, item.count) for item in result.validity] == [("host_limited", len(rounds))]


@pytest.mark.parametrize("rule", [True, False])
@pytest.mark.parametrize("slow", [steady_test.CELL, OTHER])
def test_the_longest_io_of_any_cell_is_the_tests(slow, rule):
    """What a criterion without a cell is held against: its other figures are those of the first cell."""
    events = []
    for event in steady_test.events():
        events.append(event)
        if event["event"] == "cell":
            event["write"] = {**event["write"], "iops": 100.0, "max_latency_us": 9e6 if slow == event["cell"] else 5.0}
            side = {**event["write"], "iops": 300.0, "max_latency_us": 9e6 if slow == OTHER else 5.0}
            events.append({**event, "cell": OTHER, "write": None, "read": side})
    result = of_two(events, rule)
    assert (result.outcome, result.metrics["write_iops"]) == ("steady" if rule else "complete", 100.0)
    seen = {name: value for name, value in result.metrics.items() if "max_latency" in name}
    assert seen == {
        "write_max_latency_us": 9e6 if slow == steady_test.CELL else 5.0,
        "read_max_latency_us": 9e6 if slow == OTHER else 5.0,
        "max_latency_us": 9e6,
    }
    limits = [{"metric": "max_latency_us", "max": 1e6}, {"metric": "iops", "min": 200}]
    missed = ["t: max_latency_us is 9e+06 (max 1000000.0)", "t: iops is 100 (min 200)"]
    assert criteria.missed(criteria.usable(limits), "M", [result]) == [
        text.replace("t:", f"{result.test}:") for text in missed
    ]


@pytest.mark.parametrize(
    ("cell", "cause", "rule"),
    [
        (steady_test.CELL, BUSY, True),
        # It may have changed the state of the drive.
        (OTHER, OTHER_IO, True),
        # Without a rule a round is measured again as a whole.
        (OTHER, BUSY, False),
    ],
)
def test_what_disturbs_more_than_a_cells_own_figures_disturbs_the_round(cell, cause, rule):
    result = of_two_cells([(2, cell)], cause, rule)
    assert result.outcome == ("invalid" if rule else "complete")
    assert [item.metrics["write_iops"] for item in result.cells] == [100.0, 300.0]


def compared(shown, taken=(), before=(), test=None):
    """The events of a steady test of these rounds: of each the rate, as a share of the usual one, and the part of fio's
    latency that the kernel's count holds. taken: rounds with a cause by time that was taken from fio.
    """
    found = [*before, *steady_test.events(rounds=len(shown))]
    for event in found:
        if event["event"] == "cell":
            rate, part = shown[event["round"] - 1]
            event["write"] = {**event["write"], "iops": 100.0 * rate}
            event["causes"] = [{**BUSY, "time_taken": True}] * (event["round"] in taken)
            event["seen"] = {
                "fio_bytes": {"write": 4096},
                "kernel_bytes": {"write": 4096},
                "merged_share": 0.0,
                "mean_latency_s": 0.01 / rate,
                "queued": 1.0,
                "in_flight": part,
                "limits": {"nr_requests": None, "hw_queues": None, "device_depth": None},
            }
    return found


QUIET, TAKEN = (1.0, 0.95), (0.9, 0.855)


@pytest.mark.parametrize(
    ("shown", "taken", "outcome", "window", "disturbed"),
    [
        # A tenth of each latency, which nothing else shows.
        ([QUIET] * 3 + [TAKEN] + [QUIET] * 2, (), "steady", [1, 2, 3, 5, 6], [4]),
        # The first rounds are judged again once there are three.
        ([TAKEN, TAKEN, *[QUIET] * 5], (), "steady", [3, 4, 5, 6, 7], [1, 2]),
        # The rate counts, whatever was taken.
        ([QUIET] * 5, (4,), "steady", [1, 2, 3, 4, 5], []),
        ([(1.0, 0.95), QUIET, (0.9, 0.95), *[QUIET] * 3], (3,), "steady", [1, 2, 4, 5, 6], [3]),
        # In all rounds it may have changed all figures, and nothing shows what they are without.
        ([QUIET] * 10, range(1, 11), "invalid", None, list(range(1, 11))),
        # The drive itself is slower, and the host as ever.
        ([QUIET] * 3 + [(0.95, 0.9525)] * 2, (), "steady", [1, 2, 3, 4, 5], []),
    ],
)
def test_rounds_are_judged_beside_the_cells_quiet_rounds(shown, taken, outcome, window, disturbed):
    events = compared(shown, taken)
    made = reduced(events[:-1])
    assert made.is_complete() and made.count == len(shown)
    result = reduced(events).result()
    assert result.outcome == outcome
    assert [
        number
        for item in result.validity
        if item.level == "disturbs"
        for first, last in item.rounds
        for number in range(first, last + 1)
    ] == disturbed
    if window:
        assert result.steady_state[0].window_rounds == window
        assert result.metrics["write_iops"] == pytest.approx(sum(100 * shown[n - 1][0] for n in window) / len(window))
    assert collected(json.loads(json.dumps(events))) == result


def test_the_limits_of_the_plan_hold():
    events = compared([QUIET] * 3 + [TAKEN, QUIET])
    lenient = reducer.AttemptReducer(steady_test.spec(), 1, Validity(False, {"host_excess_max": 0.2, "later": 1}))
    for event in events:
        lenient.take(event)
    assert lenient.result().outcome == "steady" and lenient.result().metrics["write_iops"] == 98.0
    assert reduced(events).result().outcome == "invalid"


@pytest.mark.parametrize(
    ("shown", "left", "percentile"),
    [
        ([QUIET] * 5, [], 80.384),
        # The host took a twentieth of the latency at the same rate.
        ([QUIET] * 3 + [(0.985, 0.90)] + [QUIET], [4], 80.384),
        ([QUIET, (0.985, 0.90), QUIET, (0.985, 0.90), QUIET], [2, 4], 80.384),
        ([QUIET, *[(0.985, 0.90)] * 3, QUIET], [2, 3, 4], None),
    ],
)
def test_a_round_of_which_the_host_took_latency_gives_no_percentiles(shown, left, percentile):
    made = reduced(compared(shown)[:-1])
    assert made.latencies_left_out() == ({steady_test.CELL: set(left)} if left else {})
    histogram = {"event": "histogram", "cell": steady_test.CELL, "direction": "write", "bins": {"80384": 5000}}
    result = reduced([*compared(shown)[:-1], histogram, steady_test.end()]).result()
    assert result.outcome == "steady" and result.metrics["write_p99_latency_us"] == percentile


def test_too_few_rounds_give_no_percentiles_and_leave_the_rate_as_it_is():
    odd = (0.985, 0.90)
    shown = [QUIET] * 5 + [odd] * 3 + [QUIET] * 2
    test = steady_test.spec(steady_state=None, last_rounds=5, rounds={**planned.ROUNDS, "max": 10})
    test = base.parse(PlannedTest, {**base.to_json(test), "latency_targets_us": [1000]})
    result = reduced(compared(shown), test).result()
    assert result.outcome == "complete" and result.metrics["write_iops"] == pytest.approx(99.1)
    names = [name for name, value in result.metrics.items() if value is None]
    assert "write_p99_latency_us" in names and "write_within_1ms_pct" in names and "within_1ms_pct" in names
    assert result.metrics["write_max_latency_us"] > 0
    (tails,) = [item for item in result.validity if item.cause == "no_percentiles"]
    assert (tails.level, tails.rounds) == ("told", [[6, 8]])
    assert "5% more of each latency" in tails.first or "4% more of each latency" in tails.first


def test_what_a_cell_that_decides_nothing_loses_to_the_host_leaves_its_own_figures_out():
    events = []
    for event in compared([QUIET] * 5):
        events.append(event)
        if event["event"] == "cell":
            busy = event["round"] == 4
            other = compared([TAKEN if busy else QUIET] * 5)[1]
            events.append({**event, "cell": OTHER, "write": {**other["write"]}, "seen": other["seen"]})
    cells = [{"id": name, "read_pct": 0} for name in (steady_test.CELL, OTHER)]
    test = steady_test.spec(cells=planned.spec_json(cells=cells)["cells"])
    result = reduced(events, test).result()
    assert result.outcome == "steady" and result.steady_state[0].window_rounds == [1, 2, 3, 4, 5]
    assert [one.metrics["write_iops"] for one in result.cells] == [100.0, 100.0]


@given(st.lists(st.tuples(st.floats(0.5, 1.5), st.floats(0.3, 1.0), st.booleans()), min_size=1, max_size=30))
def test_the_journal_gives_what_the_running_job_decided(shown):
    """Whatever rounds are judged again: the controller sees them in the same order."""
    events = compared([one[:2] for one in shown], [number for number, one in enumerate(shown, 1) if one[2]])
    running, taken = reducer.AttemptReducer(steady_test.spec()), []
    for event in events[:-1]:
        running.take(event)
        taken.append(event)
        if event["event"] == "round" and running.is_complete():
            break
    result = running.result(steady_test.end_record())
    assert collected(json.loads(json.dumps([*taken, steady_test.end()]))) == result
    assert set(running.span()).isdisjoint(
        number
        for item in result.validity
        if item.level == "disturbs"
        for first, last in item.rounds
        for number in range(first, last + 1)
    )


def test_a_round_is_due_until_the_test_is_steady():
    made = reducer.AttemptReducer(steady_test.spec())
    due = []
    for event in steady_test.events()[:-1]:
        due += [made.is_complete()] if event["event"] == "cell" else []
        made.take(event)
    assert due == [False] * 5 and made.is_complete() and made.count == 5


def test_a_round_that_lacks_a_cell_or_does_not_follow_is_damage():
    events = steady_test.events()
    for lost in range(1, 9):
        with pytest.raises(ValueError, match="follows round"):
            reduced([*events[:lost], *events[lost + 1 :]])
        result = collected([*events[:lost], *events[lost + 1 :]])
        assert result.outcome == "invalid" and "its journal is damaged" in result.reasons[0]


def shuffled_events(orders, names=("a", "b", "c")):
    """Rounds of cells in these orders; the seeds make b, c, a the one of round 1 and c, a, b that of round 2."""
    seeds = {1: {"a": 9, "b": 3, "c": 5}, 2: {"a": 4, "b": 8, "c": 2}}
    (started, cell, ended), found = steady_test.events()[:3], []
    for number, order in enumerate(orders, start=1):
        for name in order:
            write = {**cell["write"], "iops": 100.0 * (1 + names.index(name))}
            found.append({**cell, "round": number, "cell": name, "seed": seeds[number][name], "write": write})
        found.append({**ended, "round": number})
    return [started, *found, steady_test.end()]


@pytest.mark.parametrize(
    ("order", "rounds", "counts"),
    [
        ("shuffled", ["bca", "cab"], True),
        ("shuffled", ["bca", "abc"], False),
        ("shuffled", ["abc", "abc"], False),
        (None, ["abc", "abc"], True),
        (None, ["bca", "cab"], False),
        (None, ["abc", "aabc"], False),
    ],
)
def test_a_round_counts_only_in_the_order_of_its_plan_or_its_seeds(order, rounds, counts):
    cells = [{"id": name, "read_pct": 0} for name in "abc"]
    test = planned.spec(cells=cells, rounds={"max": 2}, **({"cell_order": order} if order else {}))
    result = collected(shuffled_events(rounds), test)
    assert result.outcome == ("complete" if counts else "invalid")
    if counts:
        # The first cell of the plan is that of the test, whichever ran first.
        assert result.metrics["write_iops"] == 100.0 and [cell.cell for cell in result.cells] == ["a", "b", "c"]
    else:
        assert "another order" in result.reasons[0]


UNBOUND = {"nr_requests": None, "hw_queues": None, "device_depth": None}
UNCOUNTED = {"fio_bytes": {"write": 4096}, "limits": UNBOUND} | dict.fromkeys(
    ("kernel_bytes", "merged_share", "mean_latency_s", "queued", "in_flight")
)


def test_what_averages_hide_is_in_the_figures_of_cell_and_test():
    rates = [600.0, 509.0, 600.0, 509.0, 600.0]
    events = steady_test.events()
    for event in events:
        if event["event"] == "cell":
            event["write"] = {**event["write"], "iops": rates[event["round"] - 1]}
            event["seen"] = {**UNCOUNTED, "slowest_second_pct": 80.0 + event["round"]}
    for figures in (reduced(events).result().metrics, reduced(events).result().cells[0].metrics):
        assert figures["alternation_pct"] == pytest.approx(8.07, abs=0.01)
        assert figures["slowest_second_pct"] == 83.0 and figures["hourly_drift_pct"] is None


THROTTLED = {"cause": "throttled", "level": "disturbs", "message": "2 s more"}


@pytest.mark.parametrize(
    ("rounds", "unknown", "pct"),
    [
        ((), [], 0.0),
        ((2, 3), [], 40.0),
        ((), ["throttled"], None),
        ((), ["world"], None),
        ((), ["temperature"], None),
        ((), ["link"], 0.0),
        ((2,), ["samples"], 20.0),
    ],
)
def test_the_share_of_throttled_rounds_is_a_figure_of_the_test(rounds, unknown, pct):
    events = steady_test.events()
    for event in events:
        if event["event"] == "round" and event["round"] in rounds:
            event["causes"] = [THROTTLED]
    conditions = [{"cause": cause, "level": "unknown", "message": "nobody counts"} for cause in unknown]
    result = reduced([*events[:-1], {**events[-1], "conditions": conditions}]).result()
    assert result.metrics["throttled_pct"] == pct and "throttled_pct" not in result.cells[0].metrics


def test_only_rounds_that_are_held_to_the_rule_cost_of_a_hosts_budget(monkeypatch):
    """Five figures for each sampled round until the test is steady, and for the result."""
    monkeypatch.setattr(reducer, "MOST_FIGURES", 30)
    enough, short = reducer.Budget(), reducer.Budget()
    short.spend(1)
    results = []
    for budget in (enough, short):
        attempt = reducer.JournalAttempt(steady_test.spec(), budget)
        for event in steady_test.events():
            attempt.take(event)
        results.append(attempt.result())
    assert [result.outcome for result in results] == ["steady", "invalid"]
    assert "more than 30 figures" in results[1].reasons[0] and "damaged" not in results[1].reasons[0]


def test_a_round_that_is_held_to_the_rule_after_others_were_judged_again_costs_too(monkeypatch):
    """Of samples of two: the third round is the second undisturbed one once more, as the first one is no longer."""
    test = planned.spec_json(**{**steady_test.planned_json(), "rounds": {"max": 11}})
    test["steady_state"]["sample_every"] = 2
    events = compared([TAKEN, *[QUIET] * 10])
    for allowed, outcome in ((5 * 7, "steady"), (5 * 7 - 1, "invalid")):
        monkeypatch.setattr(reducer, "MOST_FIGURES", allowed)
        attempt = reducer.JournalAttempt(base.parse(PlannedTest, test), reducer.Budget())
        for event in events:
            attempt.take(event)
        assert attempt.result().outcome == outcome


def collected(events, test=None):
    made = reducer.JournalAttempt(test or steady_test.spec())
    for event in events:
        made.take(event)
    return made.result()


@given(st.lists(st.floats(1, 1e7), min_size=5, max_size=5))
def test_the_journal_gives_what_the_running_job_saw(rates):
    events = steady_test.events()
    for event in events:
        if event["event"] == "cell":
            event["write"] = {**event["write"], "iops": rates[event["round"] - 1]}
    there = [json.loads(json.dumps(event)) for event in events]
    assert collected(there) == reduced(events).result()


def test_each_attempt_has_its_result():
    def of(events, **names):
        return [{"drive": "A1", "test": "iops", **event, **names} for event in events]

    reset = {"event": "kernel_event", "kind": "reset", "name": "nvme0", "is_own": True, "boot_s": 1.0, "message": "x"}
    first = of([*steady_test.events()[:3], steady_test.end("error", ["x"])], attempt=1)
    cut_short = of([*steady_test.events()[:5], reset], attempt=2)
    third = of(steady_test.events(), attempt=3)
    others = of(steady_test.events(), test="other", attempt=1) + of([reset], drive="B1", attempt=1)
    journal = [
        {"event": "job_started"},
        *first,
        *cut_short,
        {"event": "job_started"},
        *third,
        *others,
        {"event": "left"},
    ]
    results = reducer.results_of_attempts([steady_test.spec()], "A1", journal)
    assert [(one.attempt, one.outcome, one.rounds, one.metrics.get("controller_resets")) for one in results] == [
        (1, "error", 1, None),
        (2, "interrupted", 2, 1.0),
        (3, "steady", 5, None),
    ]


READ_BACK = {
    "event": "integrity",
    "passes": 1,
    "block_size_bytes": 4096,
    "bytes_written": steady_test.SIZE_BYTES,
    "bytes_read": steady_test.SIZE_BYTES,
    "write_s": 1.0,
    "read_s": 1.0,
    "other_write_bytes": 0,
    "wrong_blocks": {},
    "complete": True,
    "first": [],
}


def verified(**changes):
    return steady_test.spec(integrity={"passes": 1}, precondition=planned.FILL, **changes)


def test_a_fill_that_was_read_back_changes_no_figure_of_its_rounds():
    """Nor counts it towards a limit of the rounds in bytes, which it alone would reach."""
    rounds = {**planned.ROUNDS, "max": 5, "capacity_multiple": 1}
    plain = reduced(steady_test.events(), steady_test.spec(rounds=rounds)).result()
    found = reduced([READ_BACK, *steady_test.events()], verified(rounds=rounds)).result()
    assert (found.outcome, found.rounds) == ("steady", 5) == (plain.outcome, plain.rounds)
    assert (found.metrics, found.steady_state) == (plain.metrics, plain.steady_state)
    assert found.written_bytes == plain.written_bytes + steady_test.SIZE_BYTES


def test_what_was_read_back_is_not_counted_as_written_by_the_rounds():
    attempt = reducer.JournalAttempt(verified())
    for event in (READ_BACK, *steady_test.events()[:-1]):
        attempt.take(event)
    assert attempt.cells_bytes == 5 * 100 * 4096 == attempt.written_bytes - steady_test.SIZE_BYTES


def test_what_disturbs_the_rounds_after_a_fill_that_was_read_back_bears():
    events = [READ_BACK, *steady_test.events()[:-1], {**steady_test.end(), "disturbed": ["it was throttled"]}]
    assert reduced(events, verified()).result().outcome == "invalid"


@pytest.mark.parametrize(
    ("read_back", "outcome"),
    [
        ({"wrong_blocks": {"stale": 1}}, "complete"),
        ({"wrong_blocks": {"unreadable": 1}, "complete": False}, "complete"),
        ({"wrong_blocks": {"stale": 1}, "other_write_bytes": 4096}, "invalid"),
        ({}, "invalid"),
    ],
)
def test_a_test_whose_fill_was_not_kept_stands_without_a_round(read_back, outcome):
    """So no second attempt erases what the drive is kept for."""
    result = reduced([{**READ_BACK, **read_back}, steady_test.end()], verified()).result()
    assert (result.outcome, result.rounds) == (outcome, 0)
    assert bool(criteria.missed([], "m", [result])) == (outcome == "complete")
