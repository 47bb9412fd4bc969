# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A journal as an honest host writes it, and what the controller makes of it."""

from __future__ import annotations

import copy
import math

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import fio_result, histogram, seeds, steady_state
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.limits import Limits
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.rounds import FITTED_END, Rounds
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.windows import fitted_end
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.results import proof, sequence

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
    "longest_gap_s": 0.01,
    "waited_s": 0.0,
    "elapsed_s": 10.5,
    "idle_s": 0.1,
    "between_bytes": None,
    "beside_bytes": None,
    "suspended_s": 0.0,
    "clock_jump_s": 0.0,
}
COMMON = {"drive": "d", "test": "t", "attempt": 1}


def side(number):
    """A round's writes: the tenth of them slow. (Their bins, their figures as the host tells them.)"""
    bins, write = of_latencies({100_000_000 + 1000 * number: IOS * 9 // 10, 240_000_000 + 1000 * number: IOS // 10})
    iops = write["iops"] + number % 3 / 10
    return bins, {**write, "iops": iops, "bandwidth_bytes_per_s": 4096 * iops}


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
    mean_s, run_s = write["mean_latency_us"] / 1e6, write["ios"] / write["iops"]
    return {
        **SEEN,
        "run_s": run_s,
        "mean_latency_s": mean_s,
        "longest_s": round(write["max_latency_us"] / 1e6, 6),
        "queued": round(mean_s * write["ios"] / run_s, 4),
    }


SPOILING = {"cause": "other_io", "level": "spoils", "message": "another process wrote"}


def journal(test=None, spoilt=()):
    """The events of an honest host. spoilt: rounds that another user of the drive spoiled."""
    test = test or TEST
    rounds, events, written = Rounds({"after_steady_rounds": 0, **test}, SIZE), [], 0
    while not rounds.finished():
        number = rounds.count + 1
        bins, write = side(number)
        written += write["bytes"]
        causes = [SPOILING] if number in spoilt else []
        told = {"accepted": True, "read": None, "write": write, "seen": seen_of(write), "causes": causes}
        events.append(dict(COMMON, event="cell", round=number, cell="c", seed=seed_of(number, "c"), **told))
        metrics, histograms = {"c": fio_result.metrics(None, write)}, {"c": {"write": bins}}
        rounds.add(metrics, written, 60.0 * number, histograms, number in spoilt)
        told = {"tracked": rounds.tracked(), "bytes_written": written, "elapsed_s": 60.0 * number}
        events.append(dict(COMMON, event="round", round=number, **told))
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


def seed_of(number, cell):
    return seeds.seed("r", *COMMON.values(), number, cell)


def about(test):
    """The test as run.json has it."""
    return {**test, "cells": [cell["id"] for cell in test["cells"]]}


def figures_of_window(events, numbers):
    """Let a test's figures be those of the window of these rounds, all that a host makes from them included."""
    by_round = {
        event["round"]: fio_result.metrics(None, event["write"]) for event in events if event["event"] == "cell"
    }
    for metrics in (events[-1]["metrics"], events[-1]["cells"][0]["metrics"]):
        for name in by_round[1]:
            if "max" not in name:
                metrics[name] = sum(by_round[number][name] for number in numbers) / len(numbers)
    again = steady_state.evaluate([by_round[number]["write_iops"] for number in numbers], len(numbers))
    events[-1]["steady_state"][0].update(again, fitted_end=fitted_end(again), window_rounds=numbers)
    events[-1]["metrics"]["write_iops" + FITTED_END] = fitted_end(again)


def proved(events, limits=Limits(), test=None, cells=None):
    cells = cells or {"c": CELL}
    made = proof.Proof(cells, about(test or TEST), limits, sequence=sequence.Sequence(cells, seed_of))
    for event in events:
        made.take(event)
    return made


def record_of(events):
    record = {key: events[-1].get(key) for key in proof.TOLD_TWICE}
    return {**record, "proof": proof.of(record, proved(events))}


def last(events, kind):
    return [event for event in events if event["event"] == kind][-1]


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


MS = 1_000_000
BODY, TAIL, ALL = 5 * IOS * 9 // 10, 5 * IOS // 10, {"ios": 5 * IOS}
