# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tests of both PTS profiles, scaled, from the playbook to the report (suites_lab.py); `full` has the same. A loop
device does not say whether its write cache is on, so they leave it out. The truth of HIR, DIRTH and ECW:
test_recovery.py.
"""

from __future__ import annotations

import math
import os

import pytest
import suites_lab as lab

pytestmark = [
    pytest.mark.long,
    pytest.mark.exclusive(depth=4),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root for loop devices"),
]

FRESH = 400
PROFILES = {"pts-enterprise": "", "pts-client": "-client"}
UNTIL_STEADY = {"cells": [lab.SMALL_WRITES], "precondition": lab.WORN, **lab.SETTLED}


@pytest.fixture(name="of", params=PROFILES)
def fixture_of(request):
    """A test of a profile, scaled."""

    def make(name, **keys):
        return lab.scaled(request.param, name + PROFILES[request.param], name=name, write_cache=None, **keys)

    make.active = 0.75 if request.param == "pts-client" else 1.0
    return make


def test_saturation_and_iops(of, site, tmp_path):
    """Saturation keeps the shipped rule: twice the capacity first, and a window that confirms the one that counts."""
    saturated = {"cells": [lab.SMALL_WRITES], "steady_state": {"window": 3, "sample_every": 1}}
    wsat = of("wsat", **saturated, rounds={"max": None, "capacity_multiple": 12, "time_limit_s": 300})
    grid = {**lab.LOAD, "read_pct": [100, 65, 0], "block_size": ["1024KiB", "64KiB", "4KiB"], "runtime_s": 1}
    iops = of("iops", matrix=grid, **lab.SETTLED)
    true = {
        ("1024KiB", 100): lab.READ_BANDWIDTH / lab.MIB,
        ("64KiB", 0): lab.WRITE_BANDWIDTH / (64 << 10),
        ("4KiB", 100): lab.READS,
        ("4KiB", 65): min(lab.WRITES / 0.35, lab.READS / 0.65),
        ("4KiB", 0): lab.WRITES,
    }
    cells = {("1024KiB", 100): "1024k-r100", ("64KiB", 0): "64k-w100", ("4KiB", 100): "4k-r100", ("4KiB", 65): "4k-r65"}
    cells[("4KiB", 0)] = "4k-w100"

    def problems_of(played):
        told = played.cells("iops")
        seen = {
            cells[key]: (told[f"rand-{cells[key]}-tc1-qd4"]["iops"], pytest.approx(true[key], rel=0.15)) for key in true
        }
        seen["wsat"] = (played.metric("wsat", "write_iops"), pytest.approx(lab.WRITES, rel=0.1))
        seen["end"] = (played.metric("wsat", "write_iops_fitted_end"), pytest.approx(lab.WRITES, rel=0.15))
        seen["tracked"] = (len(played.tests["iops"]["windows"]), 3)
        charts = [f'data-chart="{kind}"' for kind in ("convergence", "flat", "solid")]
        return (
            lab.unlike(seen)
            + played.untold("wsat", "Tracked figure over the rounds", "Steady-state window")
            + played.untold("iops", "Convergence of every block size", "IOPS by block size and R/W mix", *charts)
        )

    figures = {"size_bytes": lab.SMALL_DRIVE, "fresh_iops": FRESH}
    assert not lab.wrong_when_played(site, tmp_path, [wsat, iops], figures, problems_of)


def test_throughput_and_latency(of, site, tmp_path):
    both = ["throughput"] + (["throughput-128k"] if of.active == 1 else [])
    tests = [of(name, matrix={**lab.LOAD, "runtime_s": 1}, **lab.SETTLED) for name in both]
    grid = {"read_pct": [100, 0], "block_size": ["8KiB", "4KiB", "512B"], "runtime_s": 1}
    tests.append(of("latency", matrix=grid, **lab.SETTLED))
    tests.append(of("latency-histogram", cells=[lab.load("4KiB", 0, queue_depth=1, runtime_s=3)]))

    def problems_of(played):
        told, mean_us = played.cells("latency"), 1e6 / lab.WRITES
        seen = {
            name: (played.metric(name, "write_bandwidth"), pytest.approx(lab.WRITE_BANDWIDTH, rel=0.1)) for name in both
        }
        seen |= {
            f"{name} reads": (
                next(cell["mb_s"] for key, cell in played.cells(name).items() if "-r100-" in key),
                pytest.approx(lab.READ_BANDWIDTH / 1e6, rel=0.1),
            )
            for name in both
        }
        seen |= {
            f"{size}-{mix}": (told[f"rand-{size}-{mix}-tc1-qd1"]["mean_us"], pytest.approx(true, rel=0.2))
            for size in ("8k", "4k", "512b")
            for mix, true in (("w100", mean_us), ("r100", 1e6 / lab.READS))
        }
        seen["latency"] = (played.metric("latency", "write_mean_latency_us"), pytest.approx(mean_us, rel=0.2))
        long = played.metric("latency-histogram", "write_mean_latency_us")
        seen["histogram"] = (long, pytest.approx(mean_us, rel=0.2))
        tables = ("Mean latency (µs) by block size", "Maximum latency (µs) by block size", 'data-chart="solid"')
        untold = [line for name in both for line in played.untold(name, "Tracked figure over the rounds")]
        return (
            lab.unlike(seen)
            + untold
            + played.untold("latency", *tables, "Latency histogram")
            + played.untold("latency-histogram")
        )

    assert not lab.wrong_when_played(site, tmp_path, tests, {"size_bytes": lab.SMALL_DRIVE}, problems_of)


# Streams of two seconds, which is a pass over the drive; between them small writes that scatter it.
STREAM_BYTES_PER_S, SCATTER_COST, SCATTERING_S = 4 * lab.MIB, 1.5, 12


def test_cross_stimulus_recovery(of, site, tmp_path):
    """How slow the stream begins after small writes, and that it gets back to its rate."""
    stream = lab.load("1024KiB", 0, "sequential", runtime_s=2)
    phases = [
        {
            "name": "random",
            "cells": [lab.load("8KiB", 0, runtime_s=SCATTERING_S)],
            "rounds": lab.ONCE,
            "last_rounds": 1,
        },
        {"name": "return", "repeats": True, "cells": [stream], "rounds": lab.ONCE},
        {"name": "sequential", "repeats": True, "cells": [stream], "rounds": {**lab.ONCE, "max": 4}, "last_rounds": 1},
    ]
    xsr = of("xsr", cells=[stream], rounds={**lab.ONCE, "max": 2}, last_rounds=1, phases=phases)

    def problems_of(played):
        writes = played.metric("xsr-random", "write_iops")
        scattered = of.active * (1 - math.exp(-writes * SCATTERING_S * 8192 / (of.active * lab.SMALL_DRIVE)))
        passes = stream["runtime_s"] * STREAM_BYTES_PER_S / lab.SMALL_DRIVE
        true_pct = 100 * lab.slowed(passes, SCATTER_COST, scattered, of.active) - 100
        first, last = (played.tests[name]["repeated"] for name in ("xsr-return", "xsr-sequential"))
        seen = {
            "stream": (played.metric("xsr", "write_bandwidth"), pytest.approx(STREAM_BYTES_PER_S, rel=0.1)),
            "random": (writes, pytest.approx(lab.WRITES, rel=0.1)),
            "return": (first["change_pct"], pytest.approx(true_pct, abs=8)),
            "end": (last["change_pct"], pytest.approx(0, abs=8)),
        }
        return (
            lab.unlike(seen)
            + played.untold("xsr", "Repeated stimuli against this test, in per cent")
            + played.untold("xsr-return", "Repeated stimulus", "lower than in xsr (")
            + played.untold("xsr-random")
        )

    figures = {"size_bytes": lab.SMALL_DRIVE, "write_bandwidth": STREAM_BYTES_PER_S, "scatter_cost": SCATTER_COST}
    assert not lab.wrong_when_played(site, tmp_path, [xsr], figures, problems_of)


SWEEP = {"threads": [2, 1], "queue_depth": [4, 2, 1], "runtime_s": 1}
POINTS = [
    {
        "name": f"{take}-iops",
        "cells": [{**lab.SMALL_WRITES, "point": {"of": "sweep", "take": take}}],
        "lead": lab.SMALL_WRITES,
        "rounds": lab.ONCE,
    }
    for take in ("most", "middle", "fewest")
]


def test_recovery_and_demand(of, site, tmp_path):
    """Each of the three ways on from a steady state, at the ActiveRange of the profile."""
    bursts = {**lab.SMALL_WRITES, "burst_s": 1, "idle_s": 1, "runtime_s": 4}
    waits = [
        {"name": "wait-5s", "repeats": True, "cells": [bursts], "rounds": lab.ONCE},
        {
            "name": "back-5s",
            "repeats": True,
            "cells": [lab.SMALL_WRITES],
            "rounds": {**lab.ONCE, "max": 2},
            "last_rounds": 1,
        },
    ]
    sweep = {"block_size": "4KiB", "read_pct": 0, **SWEEP}
    of_small = [{"name": "sweep", "lead": lab.SMALL_WRITES, "matrix": sweep, "rounds": lab.ONCE}, *POINTS]
    mixed = lab.load("4KiB", 0, mix={"sizes": [{"size": "4KiB", "pct": 50}, {"size": "8KiB", "pct": 50}]})
    of_mix = [{"name": "sweep", "lead": mixed, "matrix": {**mixed, "read_pct": 40, **SWEEP}, "rounds": lab.ONCE}]
    tests = [
        of("hir", **UNTIL_STEADY, phases=waits),
        of("dirth", **UNTIL_STEADY, phases=of_small),
        of("ecw", **{**UNTIL_STEADY, "cells": [mixed]}, phases=of_mix),
    ]

    def problems_of(played):
        seen = {
            name: (played.metric(name, "write_iops"), pytest.approx(lab.WRITES, rel=0.1))
            for name in ("hir", "dirth", "ecw")
        }
        repeated = {name: played.tests[f"hir-{name}"]["repeated"]["change_pct"] for name in ("wait-5s", "back-5s")}
        seen |= {name: (change, pytest.approx(0, abs=15)) for name, change in repeated.items()}
        ways = {name: len(played.tests[f"{name}-sweep"]["demand"]["points"]) for name in ("dirth", "ecw")}
        seen |= {"curve": (ways, {"dirth": 6, "ecw": 6}), "points": (len(played.tests["dirth-most-iops"]["points"]), 1)}
        return (
            lab.unlike(seen)
            + played.untold("hir", "Repeated stimuli against this test, in per cent")
            + played.untold("dirth-sweep", "Demand intensity", "Sweet spot: ")
            + played.untold("ecw-sweep", "Demand intensity")
        )

    assert not lab.wrong_when_played(site, tmp_path, tests, {"size_bytes": lab.SMALL_DRIVE}, problems_of)
