# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's own figures are worth what its journal gives when they are computed again from it."""

from __future__ import annotations

import copy
import json
import math

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import causes, fio, histogram, steady_state
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.rounds import FITTED_END, Rounds, fitted_end
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.results import judge, proof, tail_laws

IOS = 350
SIZE = 2 * IOS * 4096
CELL = {"id": "c", "threads": 1, "queue_depth": 4, "runtime_s": 10, "read_pct": 0, "block_size_bytes": 4096}
RULE = {
    "tracked": [{"cell": "c", "metric": "write_iops"}],
    "window": 5,
    "range_limit": 0.2,
    "slope_limit": 0.1,
    "sample_every": 1,
    "min_capacity_multiple": 2,
    "confirm_windows": 1,
    "settle_s": 0,
}
TEST = {"cells": [CELL], "rounds": {"max": 40}, "steady_state": RULE, "latency_targets_us": [150_000]}
SEEN = {
    "fio_bytes": {"read": 0, "write": IOS * 4096},
    "process_bytes": None,
    "kernel_bytes": {"read": 0, "write": IOS * 4096, "discard": 0},
    "merged_share": 0.0,
    "run_s": 10.0,
    "in_flight": 3.8,
    "fio_cpu": 0.1,
    "cpus": 2,
    "cpu_idle": 0.9,
    "limits": {"nr_requests": 64, "hw_queues": 1, "device_depth": None},
    "cpu_steal": 0.0,
    "throttled_s": 0.0,
    "elapsed_s": 10.5,
    "idle_s": 0.1,
    "suspended_s": 0.0,
    "clock_jump_s": 0.0,
}
COMMON = {"drive": "d", "test": "t", "attempt": 1}


def side(number):
    """A round's writes: the tenth of them slow. (Their bins, their figures as the host tells them.)"""
    bins, write = of_latencies({100_000_000 + 1000 * number: IOS * 9 // 10, 240_000_000 + 1000 * number: IOS // 10})
    return bins, {**write, "iops": write["iops"] + number % 3 / 10}


def of_latencies(counts):
    """(Bins, figures) of so many I/Os of each latency, as fio tells them."""
    ios = sum(counts.values())
    mean = sum(ns * count for ns, count in counts.items()) / ios
    bins = histogram.merged({histogram.value_of(histogram.bin_of(ns)): count} for ns, count in counts.items())
    squares = sum((ns - mean) ** 2 * count for ns, count in counts.items())
    return bins, {
        "iops": ios / 10,
        "bandwidth_bytes_per_s": 4096 * ios // 10,
        "ios": ios,
        "bytes": ios * 4096,
        "mean_latency_us": mean / 1000,
        "max_latency_us": max(counts) / 1000,
        "min_latency_us": min(counts) / 1000,
        "stddev_latency_us": math.sqrt(squares / (ios - 1)) / 1000,
        "percentiles_us": histogram.percentiles_us(bins),
    }


def seen_of(write):
    """What the witness saw of a cell that wrote so."""
    mean_s = write["mean_latency_us"] / 1e6
    return {
        **SEEN,
        "mean_latency_s": mean_s,
        "longest_s": round(write["max_latency_us"] / 1e6, 6),
        "queued": round(mean_s * write["ios"] / SEEN["run_s"], 4),
    }


def journal(test=None, spoilt=()):
    """The events of an honest host. spoilt: rounds that another user of the drive spoiled."""
    test = test or TEST
    rounds, events, written = Rounds({"after_steady_rounds": 0, **test}, SIZE), [], 0
    while not rounds.finished():
        number = rounds.count + 1
        bins, write = side(number)
        written += write["bytes"]
        found = [{"cause": "other_io", "level": "spoils", "message": "somebody else wrote"}] if number in spoilt else []
        events.append(
            dict(
                COMMON,
                event="cell",
                round=number,
                cell="c",
                accepted=True,
                read=None,
                write=write,
                seen=seen_of(write),
                causes=found,
            )
        )
        rounds.add({"c": fio.metrics(None, write)}, written, 60.0 * number, {"c": {"write": bins}}, number in spoilt)
        events.append(
            dict(
                COMMON,
                event="round",
                round=number,
                tracked=rounds.tracked(),
                bytes_written=written,
                elapsed_s=60.0 * number,
            )
        )
    kept = [dict(item, event="histogram", **COMMON) for item in rounds.histograms()]
    averages, windows = rounds.averages(), rounds.steady_state()
    ends = {window["metric"] + FITTED_END: window["fitted_end"] for window in windows}
    outcome, reasons = rounds.outcome()
    told = dict(
        outcome=outcome,
        reasons=reasons,
        rounds=rounds.count,
        steady_state=windows,
        saturation=rounds.saturation(),
        validity=[],
        cells=averages,
    )
    end = dict(COMMON, event="test_finished", metrics=dict(averages[0]["metrics"], **ends), **told)
    return copy.deepcopy(events + kept + [end])


def proved(events, limits=causes.Limits(), test=None):
    made = proof.Proof({"c": CELL}, test or TEST, limits)
    for event in events:
        made.take(event)
    return made


def record_of(events):
    record = {key: events[-1].get(key) for key in proof.TOLD_TWICE}
    return {**record, "proof": proof.of(record, proved(events))}


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
    assert events[-1]["outcome"] in proof.COUNTED and (made.wrong, made.unproved) == ([], [])


def test_a_point_is_held_to_the_load_that_its_sweep_gave():
    """Its plan has the most that it may ask for."""
    test = dict(TEST, steady_state=None, rounds={"max": 3})
    events = journal(test)
    for event in events[:-2]:
        event.update({"chosen": {"cell": "s", "threads": 1, "queue_depth": 4}} if event["event"] == "cell" else {})
    made = proof.Proof({"c": dict(CELL, threads=32, queue_depth=32, point={"test": "s"})}, test, causes.Limits())
    for event in events:
        made.take(event)
    assert (made.wrong, made.unproved) == ([], [])


def last(events, kind):
    return [event for event in events if event["event"] == kind][-1]


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
        numbers = events[-1]["steady_state"][0]["window_rounds"]
        by_round = {event["round"]: fio.metrics(None, event["write"]) for event in events if event["event"] == "cell"}
        for metrics in (events[-1]["metrics"], events[-1]["cells"][0]["metrics"]):
            for name in by_round[1]:
                if "max" not in name:
                    metrics[name] = sum(by_round[number][name] for number in numbers) / len(numbers)
        values = [by_round[number]["write_iops"] for number in numbers]
        again = steady_state.evaluate(values, len(values))
        events[-1]["steady_state"][0].update(again, fitted_end=fitted_end(again))
        events[-1]["metrics"]["write_iops" + FITTED_END] = fitted_end(again)

    return change


def forged(kept, *counts):
    """Give a histogram record other bins, with the percentiles and shares that follow from them."""

    def change(events):
        item = last(events, "histogram")
        bins, _figures = of_latencies(dict(counts))
        item.update(bins={str(value): count for value, count in bins.items()})
        item.update(kept)
        for metrics in (events[-1]["metrics"], events[-1]["cells"][0]["metrics"]):
            metrics.update(histogram.metrics({"write": bins}, TEST["latency_targets_us"]))

    return change


def of_cells(key, value, shown=None):
    """A figure of every cell; shown: of what was seen of it."""

    def change(events):
        for event in events:
            if event["event"] == "cell":
                event["write"][key] = value
                event["seen"].update(shown or {})

    return change


def told(place, key, value):
    def change(events):
        end = events[-1]
        target = {
            "metrics": end["metrics"],
            "cell": end["cells"][0]["metrics"],
            "window": end["steady_state"][0],
            "before": end["saturation"],
        }[place]
        target[key] = value(target[key]) if callable(value) else value

    return change


def told_everywhere(key, value):
    def change(events):
        told("metrics", key, value)(events)
        told("cell", key, value)(events)

    return change


def seen(changes):
    def change(events):
        last(events, "cell")["seen"].update(changes)

    return change


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
        (seen({"kernel_bytes": {"read": 0, "write": 2 << 30, "discard": 0}}), "somebody else wrote"),
        (seen({"queued": 1.0}), "in flight of 4 asked"),
        (cells_times(2, "iops"), "write iops 7"),
        (cells_times(0.5, "mean_latency_us"), "µs were seen"),
        (cells_times(2, "bytes"), "and fio reported 1433600 (write)"),
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


MS = 1_000_000
BODY, TAIL, ALL = 5 * IOS * 9 // 10, 5 * IOS // 10, {"ios": 5 * IOS}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            forged(ALL, (100 * MS, BODY + TAIL - 1), (240 * MS, 1)),
            "the mean latency of its rounds, 114012 µs",
        ),
        (forged({}, (100 * MS, BODY - 5), (240 * MS, TAIL)), "its bins count 1745 I/Os, it tells 1750"),
        (forged({"ios": 1745}, (100 * MS, BODY - 5), (240 * MS, TAIL)), "counts 1745 I/Os, its rounds 1750"),
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
        (forged({**ALL, "bins": {"1001": 5 * IOS}}, (100 * MS, 5)), "1001 ns is the middle of no bin"),
        (of_cells("percentiles_us", {}), "the percentile 50 takes 20 I/Os, but its rounds tell it otherwise"),
        (of_cells("min_latency_us", 5.0), "the shortest latency of its rounds is 5.0"),
        (of_cells("max_latency_us", 9e5, {"longest_s": 0.9}), "the longest latency of its rounds is 900000.0"),
        (of_cells("max_latency_us", 9e5), "a longest latency of 0.9 s, and 0.240001 s were seen"),
        (of_cells("stddev_latency_us", 5.0), "the standard deviation of its rounds"),
        (seen({"queued": 3.95}), "IOPS x latency are 3.99049 I/Os in flight, and 3.95 were seen"),
        (seen({"run_s": 9.7}), "it ran for 9.7 s of 10 s"),
        (of_cells("bytes", 4096, {"fio_bytes": {"write": 4096}}), "4096 bytes are not 350 I/Os of 4096 (write)"),
        (lambda events: events[0].update(trim=events[0]["write"]), "trims in a cell that has none"),
    ],
)
def test_a_histogram_and_its_percentiles_cannot_be_changed_together(change, says):
    """What each round tells by itself has to be changed alike, and what was seen of it too."""
    events = journal()
    change(events)
    wrong = "; ".join(proved(events).wrong)
    assert says in wrong and proof.problem(record_of(events))


def test_rounds_of_an_older_engine_are_held_to_what_they_tell():
    events = journal()
    for event in events:
        if event["event"] == "cell":
            del event["write"]["min_latency_us"], event["write"]["stddev_latency_us"]
    made = proved(events)
    assert made.wrong == [] and made.unproved == [tail_laws.NOT_TOLD.format("min_latency_us, stddev_latency_us")]
    forged(ALL, (100 * MS, BODY + TAIL - 1), (240 * MS, 1))(events)
    assert "the mean latency of its rounds" in "; ".join(proved(events).wrong)


@pytest.mark.parametrize("key", ["metrics", "steady_state", "validity", "outcome"])
def test_the_record_and_the_journal_tell_the_same(key):
    record = record_of(journal())
    assert proof.problem(record) == ""
    other = {**record, key: [{"x": 1}]}
    assert proof.problem({**other, "proof": proof.of(other, proved(journal()))}).startswith(
        f"its journal has another {key}"
    )


@pytest.mark.parametrize(
    ("lost", "says"),
    [
        ("cell", "its journal lacks cells of the rounds that count"),
        ("histogram", "no histogram was kept of it"),
        ("test_finished", "its journal was not collected"),
    ],
)
def test_what_cannot_be_computed_again_is_said(lost, says):
    events = journal()
    kept = [event for event in events if event["event"] != lost]
    record = record_of(events)
    record = {**record, "proof": proof.of(record, proved(kept))}
    assert says in " ".join(proof.lacking(record)) and proof.problem(record) == ""
    assert lost == "test_finished" or says in proof.problem(record, strict=True)


@pytest.mark.parametrize("lost", [(), ("limits",), ("kernel_bytes", "fio_bytes")])
def test_a_cell_that_lost_what_was_seen_of_it_is_not_taken_for_a_clean_one(lost):
    events = journal()
    cell = last(events, "cell")
    cell["seen"] = {key: value for key, value in cell["seen"].items() if lost and key not in lost}
    record = record_of(events)
    assert proof.NOT_SEEN in proof.lacking(record) and proof.problem(record) == ""
    assert proof.NOT_SEEN in proof.problem(record, strict=True)


def test_a_host_cannot_have_the_controller_count_up_to_any_number():
    far = 9 * 10**15
    for changes in ({"rounds": far}, {"rounds": far, "steady_state": []}):
        events = journal()
        events[-1].update(changes)
        assert proved(events).unproved
    events = journal()
    for event in events[2:4]:
        event["round"] = far
    events[-1]["steady_state"][0]["window_rounds"] = [1, far]
    assert proved(events).wrong and proved(events).unproved


def test_without_the_limits_of_the_run_causes_are_not_looked_for_again():
    events = journal()
    seen({"in_flight": 0.1})(events)
    assert proved(events).wrong and proved(events, limits=None).wrong == []


def test_a_host_that_measured_cells_of_another_length_is_found_out():
    for seconds, wrong in (([10], []), ([60], ["the host's plan has another length of cells: c 10 s"])):
        assert proved(journal(), test={**TEST, "runtimes_s": seconds}).wrong == wrong


def test_the_judge_asks():
    run = {"tests": {"t": {"steady_state": RULE}}, "criteria": [], "asked": [{"host": "h", "drive": "d"}]}
    drive = {
        "kind": "drive",
        "host": "h",
        "drive": "d",
        "outcome": "complete",
        "identity": {"model": "M", "size_bytes": SIZE},
    }
    events = journal()
    honest = {"kind": "test", "host": "h", "drive": "d", "test": "t", **record_of(events)}
    assert judge.judge(run, [drive, honest])["drives"][0]["verdict"] == "pass"
    told_everywhere("write_p90_latency_us", 500.0)(events)
    lying = {"kind": "test", "host": "h", "drive": "d", "test": "t", **record_of(events)}
    found = judge.judge(run, [drive, lying])["drives"][0]
    assert found["verdict"] == "invalid" and "the host's data give" in found["reasons"][0]


STREAMS = {"id": "jobs-web-1a2b", "read_pct": 0, "threads": 2, "queue_depth": 1, "runtime_s": 10}
JOBS = [
    {"name": "log", "read_pct": 0, "threads": 1, "queue_depth": 1, "rate_iops": 50, "fdatasync": 1},
    {"name": "trims", "read_pct": 0, "trim": True},
]
STREAMED = {
    "cells": [{**STREAMS, "jobs": JOBS}],
    "rounds": {"max": 3},
    "steady_state": None,
    "latency_targets_us": [150_000],
}


def of_streams():
    """The events of an honest host whose one cell has a stream that writes and flushes, and one that trims."""
    name = STREAMS["id"]
    rounds, events = Rounds({"after_steady_rounds": 0, **STREAMED}, SIZE), []
    while not rounds.finished():
        bins, figures = side(rounds.count + 1)
        log, trims = {"write": figures, "sync": figures}, {"trim": figures}
        told = [{"name": f"{name}.log", **log}, {"name": f"{name}.trims", **trims}]
        whole = {"read": None, **log, **trims}
        place = dict(COMMON, event="cell", round=rounds.count + 1, cell=name, accepted=True, seen=SEEN, causes=[])
        events.append({**place, **whole, "streams": told})
        metrics = {name: fio.metrics_of(whole), **{stream["name"]: fio.metrics_of(stream) for stream in told}}
        histograms = {key: {one: bins for one in fio.SIDES if f"{one}_iops" in metrics[key]} for key in metrics}
        rounds.add(metrics, figures["bytes"], 60.0, histograms)
        ended = {"round": rounds.count, "tracked": [], "bytes_written": figures["bytes"], "elapsed_s": 60.0}
        events.append(dict(COMMON, event="round", **ended))
    kept = [dict(item, event="histogram", **COMMON) for item in rounds.histograms()]
    averages = rounds.averages()
    told = {"outcome": "complete", "reasons": [], "rounds": 3, "steady_state": [], "saturation": None, "validity": []}
    end = dict(COMMON, event="test_finished", metrics=averages[0]["metrics"], cells=averages, **told)
    # As a journal has them: nothing is one object twice.
    return json.loads(json.dumps([*events, *kept, end]))


def proved_streams(events):
    made = proof.Proof({STREAMS["id"]: STREAMED["cells"][0]}, STREAMED, None)
    for event in events:
        made.take(event)
    return made


def test_streams_of_an_honest_host_stand_each_with_its_tails():
    events = of_streams()
    made = proved_streams(events)
    assert (made.wrong, made.unproved) == ([], [])
    figures = {item["cell"]: item["metrics"] for item in events[-1]["cells"]}
    assert list(figures) == [STREAMS["id"], f"{STREAMS['id']}.log", f"{STREAMS['id']}.trims"]
    assert figures[f"{STREAMS['id']}.trims"]["trim_p50_latency_us"] > 0 and "trim_iops" in events[-1]["metrics"]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            lambda cell, end: cell["streams"][1]["trim"].update(ios=49),
            "its streams report 49 I/Os of trim, the cell 350",
        ),
        (lambda cell, end: cell["streams"].pop(), "its streams report 0 I/Os of trim, the cell 350"),
        (lambda cell, end: cell["streams"][0].update(name="c.log"), "c.log is no stream of it"),
        (lambda cell, end: end["cells"][2]["metrics"].update(trim_iops=1e6), "trim_iops is reported as 1000000.0"),
        (
            lambda cell, end: end["cells"][1]["metrics"].update(sync_p50_latency_us=1.0),
            "sync_p50_latency_us is reported",
        ),
    ],
)
def test_a_stream_that_is_told_otherwise_is_wrong(change, text):
    events = of_streams()
    change(events[0], events[-1])
    assert text in "; ".join(proved_streams(events).wrong)
