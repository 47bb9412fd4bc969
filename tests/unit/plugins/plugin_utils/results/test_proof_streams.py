# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Streams are computed again from the journal, each with its tails."""

from __future__ import annotations

import json

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import fio_result
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.rounds import Rounds
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.results import proof
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.results.proven_journals import (
    COMMON,
    SEEN,
    SIZE,
    about,
    seed_of,
    side,
)

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
        place["seed"] = seed_of(place["round"], name)
        events.append({**place, **whole, "streams": told})
        metrics = {
            name: fio_result.metrics_of(whole),
            **{stream["name"]: fio_result.metrics_of(stream) for stream in told},
        }
        histograms = {key: {one: bins for one in fio_result.SIDES if f"{one}_iops" in metrics[key]} for key in metrics}
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
    made = proof.Proof({STREAMS["id"]: STREAMED["cells"][0]}, about(STREAMED), None)
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
        (lambda cell, end: cell["streams"][0].update(name="c.log"), "c.log is not one of its streams"),
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
