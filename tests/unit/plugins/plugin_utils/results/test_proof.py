# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's own figures are worth what its journal gives when they are computed again from it."""

from __future__ import annotations

import copy

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import histogram
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.limits import Limits
from ansible_collections.ssdlab.fleet.plugins.module_utils.run.criteria import MEASURED
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.results import proof
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.results.proven_journals import (
    ALL,
    BODY,
    CELL,
    IOS,
    MS,
    RULE,
    TAIL,
    TEST,
    about,
    figures_of_window,
    forged,
    journal,
    last,
    proved,
    record_of,
    seen,
    told,
    told_everywhere,
)


@pytest.mark.parametrize("spoilt", [(), (3,), (7, 12)])
@pytest.mark.parametrize(
    "test",
    [
        TEST,
        dict(TEST, steady_state=dict(RULE, sample_every=2)),
        dict(TEST, steady_state=None, rounds={"max": 6}),
        dict(TEST, steady_state=None, rounds={"max": 15}, last_rounds=5),
    ],
)
def test_what_an_honest_host_tells_stands(test, spoilt):
    events = journal(test, spoilt)
    made = proved(events, test=test)
    assert events[-1]["outcome"] in MEASURED and (made.wrong, made.unproved) == ([], [])


def test_a_point_is_held_to_the_load_that_its_sweep_gave():
    """Its plan has the most that it may ask for."""
    test = dict(TEST, steady_state=None, rounds={"max": 3})
    events = journal(test)
    for event in events[:-2]:
        event.update({"chosen": {"cell": "s", "threads": 1, "queue_depth": 4}} if event["event"] == "cell" else {})
    cell = dict(CELL, threads=32, queue_depth=32, point={"test": "s"})
    made = proof.Proof({"c": cell}, about(test), Limits())
    for event in events:
        made.take(event)
    assert (made.wrong, made.unproved) == ([], [])


def by_the_cpus(change):
    """What is wrong with the journal of a cell that may have 4 threads, on 2 CPUs; change: of its events."""
    test = dict(TEST, steady_state=None, rounds={"max": 3})
    name, load = "rand-4k-w100-tc1to4-load4", {"threads": 2, "queue_depth": 2, "cpus": 2}
    events = [{**event, **({"cell": name} if "cell" in event else {})} for event in journal(test)]
    for event in events:
        event.update({"chosen": dict(load)} if event["event"] == "cell" else {})
    events[-1]["cells"] = [{**item, "cell": name} for item in events[-1]["cells"]]
    events[-1]["loads"] = [{"cell": name, **load}]
    change(events)
    cell = dict(CELL, id=name, threads=4, queue_depth=1, per_cpu=True)
    made = proof.Proof({name: cell}, about({**test, "cells": [cell]}), Limits())
    for event in events:
        made.take(event)
    return " ".join(made.wrong)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda events: None, ""),
        (lambda events: events[-1].pop("loads"), "its end reports other loads than its cells"),
        (lambda events: events[-1]["loads"][0].update(threads=4), "its end reports other loads than its cells"),
        (lambda events: last(events, "cell").pop("chosen"), "its journal has the load {}"),
        (lambda events: last(events, "cell")["chosen"].update(cpus=1, threads=1, queue_depth=4), "its first cell"),
        (lambda events: last(events, "cell")["chosen"].update(queue_depth=1), "by its CPUs"),
    ],
)
def test_a_load_by_the_cpus_is_held_to_its_rule_and_told_at_the_end(change, says):
    found = by_the_cpus(change)
    assert says in found and bool(found) == bool(says)


def with_another_cell(events, cpus):
    """A second cell in each round, on other CPUs."""
    other, load = "rand-4k-w100-tc1to4-load8", {"threads": cpus, "queue_depth": 8 // cpus, "cpus": cpus}
    for place in reversed([index for index, event in enumerate(events) if event["event"] == "cell"]):
        events.insert(place + 1, {**copy.deepcopy(events[place]), "cell": other, "chosen": dict(load)})
    events[-1]["loads"].append({"cell": other, **load})


@pytest.mark.parametrize(("cpus", "says"), [(2, False), (4, True)])
def test_all_cells_of_a_test_have_the_same_cpus(cpus, says):
    """With CPUs of its own for each cell a host chose its drive's peers among many."""
    found = by_the_cpus(lambda events: with_another_cell(events, cpus))
    assert ("its journal has the load {'threads': 4" in found) is says


@pytest.mark.parametrize(
    ("gap_s", "says"),
    [(0.01, ""), (0.2, "rounds that count are spoilt"), (None, "rounds that count are spoilt")],
)
def test_a_remark_of_time_that_was_taken_is_judged_again_by_the_gap(gap_s, says):
    """The drive had work for 110 ms; the host calls it a remark each time."""
    events = journal()
    for event in events:
        if event["event"] == "cell":
            event["seen"].update(cpu_steal=0.06, longest_gap_s=gap_s)
            event["causes"] = [{"cause": "host_limited", "level": "told", "message": "the hypervisor took 6%"}]
    wrong = "; ".join(proved(events).wrong)
    assert says in wrong and bool(wrong) == bool(says)


@pytest.mark.parametrize("spoils", ["causes", "seen"])
def test_no_round_that_is_spoilt_counts_in_a_test_without_a_rule(spoils):
    """Whatever its end says: nothing would be left to compute its figures again from."""
    test = dict(TEST, steady_state=None, rounds={"max": 3})
    events = journal(test)
    for event in events:
        if event["event"] == "cell" and spoils == "causes":
            event["causes"] = [{"cause": "other_io", "level": "spoils", "message": "another process wrote"}]
        elif event["event"] == "cell":
            event["seen"]["kernel_bytes"] = {"read": 0, "write": 2 << 30, "discard": 0}
    assert "all rounds that could count are spoilt" in " ".join(proved(events, test=test).wrong)


@pytest.mark.parametrize("test", [TEST, dict(TEST, steady_state=None, rounds={"max": 3})])
def test_a_cell_that_was_never_measured_hides_no_figure(test):
    """With it nothing was computed again."""
    events = journal(test)
    events[-1]["cells"].append({"cell": "ghost", "metrics": {}})
    assert "its end reports ghost, which its journal does not have" in proved(events, test=test).wrong


@pytest.mark.parametrize("cell", [CELL, dict(CELL, threads=8, queue_depth=64)])
@pytest.mark.parametrize("point", [None, {"test": "s"}])
def test_no_cell_that_tells_its_load_has_another(cell, point):
    """A point that its plan calls one: its name would not tell a load."""
    name, test = "rand-4k-w100-tc8-qd64", dict(TEST, steady_state=None, rounds={"max": 3})
    events = [{**event, **({"cell": name} if "cell" in event else {})} for event in journal(test)]
    for event in events:
        event.update({"chosen": {"cell": "s", "threads": 1, "queue_depth": 4}} if event["event"] == "cell" else {})
    cell = dict(cell, id=name, **({"point": point} if point else {}))
    made = proof.Proof({name: cell}, about({**test, "cells": [cell]}), Limits())
    for event in events:
        made.take(event)
    assert "another load than the test asks for" in " ".join(made.wrong)


def with_cells(names, test):
    """A journal of these cells, which all do the same, and what is found of it: (events, judge(about))."""
    events = []
    for event in journal(test):
        if event["event"] in ("cell", "histogram"):
            events += [dict(copy.deepcopy(event), cell=name) for name in names]
        else:
            events.append(event)
    end = events[-1]
    end["cells"] = [dict(copy.deepcopy(end["cells"][0]), cell=name) for name in names]
    end["steady_state"] = [dict(copy.deepcopy(window), cell=name) for name in names for window in end["steady_state"]]

    def judge(more):
        cells = {name: dict(CELL, id=name) for name in names}
        tracked = [{"cell": name, "metric": "write_iops"} for name in sorted(names)]
        rule = test["steady_state"] and dict(test["steady_state"], tracked=tracked)
        made = proof.Proof(cells, {**test, "cells": sorted(names), "steady_state": rule, **more}, Limits())
        for event in events:
            made.take(event)
        return " ".join(made.wrong)

    return judge


@pytest.mark.parametrize(
    ("names", "test", "more", "says"),
    [
        (["a", "b"], dict(TEST, steady_state=None, rounds={"max": 3}), {"leads": ["a"]}, "those of a, not of b"),
        (["b", "a"], dict(TEST, steady_state=None, rounds={"max": 3}), {"leads": ["a"]}, ""),
        (["b", "a"], dict(TEST, steady_state=None, rounds={"max": 3}), {"leads": []}, "those of b, not of a"),
        (["b", "a"], dict(TEST, steady_state=None, rounds={"max": 3}), {"leads": [], "left_out": ["a"]}, ""),
        (["a", "b"], dict(TEST, steady_state=dict(RULE)), {}, ""),
        (["b", "a"], dict(TEST, steady_state=dict(RULE)), {}, "its tracked variables are not those of the run"),
    ],
)
def test_the_controller_says_which_cell_has_the_figures_of_a_test(names, test, more, says):
    found = with_cells(names, test)(more)
    assert says in found
    assert says or not [text for text in ("tracked variables", "its figures are those") if text in found]


def test_a_figure_that_no_histogram_has_is_none_of_a_test():
    """Such as a percentile that the template does not ask for."""
    events = journal()
    for metrics in (events[-1]["metrics"], events[-1]["cells"][0]["metrics"]):
        metrics["write_p98_latency_us"] = 1.0
    assert "write_p98_latency_us is reported as 1.0" in " ".join(proved(events).wrong)


def shift_bins(events):
    kept = last(events, "histogram")
    kept["bins"] = {
        str(histogram.value_of(histogram.bin_of(2 * int(value)))): count for value, count in kept["bins"].items()
    }


def cells_times(factor, key):
    """A figure of every cell, with all that the host would have made from it."""

    def change(events):
        for event in events:
            if event["event"] == "cell":
                event["write"][key] *= factor
        figures_of_window(events, events[-1]["steady_state"][0]["window_rounds"])

    return change


def of_cells(key, value, shown=None):
    """A figure of every cell; shown: of what was seen of it."""

    def change(events):
        for event in events:
            if event["event"] == "cell":
                event["write"][key] = value
                event["seen"].update(shown or {})

    return change


def longest_before_the_window(events):
    """The longest latency of a saturation test lies before its window, and is not told."""
    events[0]["write"]["max_latency_us"] = 9e5
    events[0]["seen"]["longest_s"] = 0.9


def started_late(events):
    """Rounds that say they took a minute each, of cells that took ten seconds."""
    for event in events:
        event.update({"gap_s": 0.5} if event["event"] == "cell" else {})
        event.get("seen", {}).update(idle_s=0.5)


def idled(events):
    last(events, "cell")["gap_s"] = 30.0


def spoilt_and_not_told(events):
    last(events, "cell")["causes"] = [{"cause": "idle_gap", "level": "spoils", "message": "the drive idled"}]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (told_everywhere("write_p90_latency_us", 500.0), "write_p90_latency_us is reported as 500.0"),
        (told_everywhere("write_p50_latency_us", 1.0), "write_p50_latency_us"),
        (told_everywhere("write_within_150ms_pct", 99.9), "write_within_150ms_pct"),
        (told_everywhere("write_ios", 10**9), "write_ios"),
        (told_everywhere("write_mean_latency_us", 3.0), "write_mean_latency_us"),
        (told_everywhere("write_max_latency_us", 3.0), "write_max_latency_us"),
        (told_everywhere("write_iops", 9000.0), "write_iops is reported as 9000.0"),
        (told("metrics", "write_bandwidth", 9e9), "write_bandwidth"),
        (told("metrics", "write_iops_fitted_end", 480.0), "write_iops_fitted_end"),
        (told("window", "fitted_end", 480.0), "write_iops_fitted_end"),
        (told("window", "window_values", [500.0] * 5), "the window of c write_iops is reported as"),
        (
            told("window", "window_rounds", lambda rounds: [n - 4 for n in rounds]),
            "the window of c write_iops is reported as",
        ),
        (told("before", "written_before_bytes", 10**9), "bytes are reported as written before round"),
        (told("before", "elapsed_before_s", 1e6), "is reported to begin after"),
        (shift_bins, "latency_us is reported as"),
        (spoilt_and_not_told, "rounds that count are spoilt"),
        (seen({"kernel_bytes": {"read": 0, "write": 2 << 30, "discard": 0}}), "another process wrote"),
        (seen({"queued": 1.0}), "in flight instead of 4"),
        (cells_times(2, "iops"), "write iops 7"),
        (cells_times(0.5, "mean_latency_us"), "µs were observed"),
        (cells_times(1.03, "iops"), "but its counts give 35"),
        (seen({"run_s": 0.1}), "it ran for 0.1 s of 10 s"),
        (idled, "it idled for 0.1 s, but its gap gives 30 s"),
        (started_late, "its cells took 42"),
        (longest_before_the_window, "write_max_latency_us is reported as"),
        (lambda events: events[-1]["cells"][0]["steady"].update(steady=False), "reported as not steady itself"),
        (cells_times(2, "bytes"), "but fio reported 1433600 (write)"),
        (told_everywhere("read_iops", 9000.0), "read_iops is reported as 9000.0"),
        (told("metrics", "write_within_200ms_pct", 100.0), "write_within_200ms_pct is reported as 100.0"),
        (lambda events: events.insert(3, events[1]), "twice or out of order"),
        (lambda events: events.insert(0, events.pop(5)), "twice or out of order"),
        (lambda events: events.insert(2, events[0]), "twice"),
    ],
)
def test_what_the_journal_contradicts_does_not_count(change, says):
    events = journal()
    change(events)
    said = proof.problem(record_of(events))
    assert says in said


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            forged(ALL, (100 * MS, BODY + TAIL - 1), (240 * MS, 1)),
            "the mean latency of its rounds, 114012 µs",
        ),
        (forged({}, (100 * MS, BODY - 5), (240 * MS, TAIL)), "its bins count 1745 I/Os, but it reports 1750"),
        (forged({"ios": 1745}, (100 * MS, BODY - 5), (240 * MS, TAIL)), "counts 1745 I/Os, but its rounds 1750"),
        (
            forged(ALL, (80 * MS, 1), (100 * MS, BODY - 1), (240 * MS, TAIL)),
            "the shortest latency of its rounds is",
        ),
        (
            forged(ALL, (100 * MS, BODY), (240 * MS, TAIL - 1), (260 * MS, 1)),
            "the longest latency of its rounds is",
        ),
        (forged(ALL, (100 * MS, 1), (114 * MS, 1747), (240 * MS, 1), (115 * MS, 1)), "the standard deviation of its"),
        (
            forged(ALL, (100 * MS, BODY - 300), (140 * MS, 300), (200 * MS, 100), (240 * MS, TAIL - 100)),
            "the percentile 90 of its histogram",
        ),
        (forged({**ALL, "bins": {"100": 5 * IOS + 1, "101": -1}}, (100 * MS, 5)), "histogram: -1 I/Os in the bin"),
        (forged({**ALL, "bins": {"1001": 5 * IOS}}, (100 * MS, 5)), "1001 ns is not the middle of a bin"),
        (of_cells("percentiles_us", {}), "the percentile 50 takes 20 I/Os, which contradicts its rounds"),
        (of_cells("min_latency_us", 5.0), "the shortest latency of its rounds is 5.0"),
        (of_cells("max_latency_us", 9e5, {"longest_s": 0.9}), "the longest latency of its rounds is 900000.0"),
        (of_cells("max_latency_us", 9e5), "a longest latency of 0.9 s, but 0.240001 s were observed"),
        (of_cells("stddev_latency_us", 5.0), "the standard deviation of its rounds"),
        (seen({"queued": 3.95}), "IOPS x latency gives 4.01329 I/Os in flight, but 3.95 were observed"),
        (seen({"run_s": 9.7}), "it ran for 9.7 s of 10 s"),
        (of_cells("bytes", 4096, {"fio_bytes": {"write": 4096}}), "4096 bytes are not 350 I/Os of 4096 (write)"),
        (lambda events: events[0].update(trim=events[0]["write"]), "trims in a cell without trims"),
    ],
)
def test_a_histogram_and_its_percentiles_cannot_be_changed_together(change, says):
    """What each round tells by itself has to be changed alike, and what was seen of it too."""
    events = journal()
    change(events)
    wrong = "; ".join(proved(events).wrong)
    assert says in wrong and proof.problem(record_of(events))


@pytest.mark.parametrize("key", ["metrics", "steady_state", "validity", "outcome"])
def test_the_record_and_the_journal_tell_the_same(key):
    record = record_of(journal())
    assert proof.problem(record) == ""
    other = {**record, key: [{"x": 1}]}
    assert proof.problem({**other, "proof": proof.of(other, proved(journal()))}).startswith(
        f"its journal has another {key}"
    )
