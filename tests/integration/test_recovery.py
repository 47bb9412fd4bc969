# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The recovery suites from the playbook to the report, scaled, on a simulated drive whose true figures are known
(scripts/simulator/model.py).
"""

from __future__ import annotations

import json
import math
import os
import re

import pytest
import suites_lab as lab
import yaml

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.render_plan import load_plan
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.test_library import SHIPPED_DIR

PAGE = 4096
# So few I/Os a second that a machine without a free CPU keeps up.
FRESH, STEADY = 60, 15
RATES = {"fresh_iops": FRESH, "steady_iops": STEADY, "read_iops": 3000}
# What a wait gives back, as soon as it is somewhat longer than COLLECTS_AFTER_S: the spare area is no larger. So
# neither the pauses between rounds, on a busy machine, nor how exact a wait is, changes a figure.
ROOM, COLLECTS_AFTER_S = 60, 3
WAIT_S, BURST_S = 5, 2
pytestmark = [
    pytest.mark.long,
    pytest.mark.exclusive(depth=4),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root for loop devices"),
]

LOAD = {"access": "random", "block_size": "4KiB", "read_pct": 0, "threads": 1, "queue_depth": 4, "runtime_s": 4}
# Two fills in place of hours of small writes: the drive is as worn.
UNTIL_STEADY = {
    "cells": [LOAD],
    "precondition": {"passes": 2},
    "steady_state": {"sample_every": 1},
    "rounds": {"max": 25, "capacity_multiple": None, "time_limit_s": None},
}
BURSTS = {**LOAD, "burst_s": BURST_S, "idle_s": WAIT_S, "runtime_s": 2 * (BURST_S + WAIT_S)}
HIR = {
    "name": "hir",
    "base": "hir",
    **UNTIL_STEADY,
    "phases": [
        {"name": "wait", "repeats": True, "cells": [BURSTS], "rounds": {"max": 1}},
        {"name": "back", "repeats": True, "cells": [LOAD], "rounds": {"max": 3}, "last_rounds": 2},
    ],
}
# Four in flight are 12 a second at most, eight would be 24: they reach all 15, also where the machine adds 0.2 s.
LATENCY_S = 0.33
SWEEP = {"block_size": "4KiB", "read_pct": 0, "threads": [2, 1], "queue_depth": [8, 2, 1], "runtime_s": 4}
DIRTH = {
    "name": "dirth",
    "base": "dirth",
    **UNTIL_STEADY,
    "phases": [
        {"name": "sweep", "lead": LOAD, "matrix": SWEEP, "rounds": {"max": 1}},
        {
            "name": "fewest-iops",
            "lead": LOAD,
            "cells": [{**LOAD, "point": {"of": "sweep", "take": "fewest"}}],
            "rounds": {"max": 1},
        },
    ],
}


# A stream, small writes that scatter the drive, and the stream again, which has to move what lies around its data.
STREAM_BYTES_PER_S, SCATTERING_IOPS, SCATTER_COST = 4 * lab.MIB, 300, 1.5
STREAM = {"access": "sequential", "block_size": "128KiB", "read_pct": 0, "queue_depth": 4, "runtime_s": 2}
ONCE = {"purge": False, "precondition": False, "rounds": {"max": 1}}
STIMULI = [
    {**ONCE, "name": "stream", "purge": {"method": "auto"}, "cells": [STREAM]},
    {**ONCE, "name": "small", "cells": [{**LOAD, "runtime_s": 20}]},
    {**ONCE, "name": "again", "repeats": "stream", "cells": [STREAM]},
]

# The shipped mix of sizes; by this bandwidth larger writes cost more than their share, 8 KiB ones already.
MIX_IOPS, MIX_BYTES_PER_S = 300, 2 * lab.MIB
MIXED = {
    **LOAD,
    "queue_depth": 8,
    "mix": yaml.safe_load((SHIPPED_DIR / "tests" / "ecw.yml").read_text(encoding="utf-8"))["cells"][0]["mix"],
}
MIXED_SWEEP = {**MIXED, "read_pct": 40, "runtime_s": 8, "threads": [2, 1], "queue_depth": [16, 8, 1]}
ECW = {
    "name": "ecw",
    "base": "ecw",
    **UNTIL_STEADY,
    "cells": [MIXED],
    "phases": [{"name": "sweep", "lead": MIXED, "matrix": MIXED_SWEEP, "rounds": {"max": 1}}],
}

# The blog's own tests, over fewer depths.
BLOG_DEPTHS = [1, 2, 4, 8, 16]


def blog():
    """Settling and sweep of the shipped plan, scaled."""
    scaled = {"sample_every": 1, "min_capacity_multiple": 0}
    settle = {"base": "micron-blog/blog-settle-4k", **UNTIL_STEADY, "steady_state": scaled}
    sweep = {"base": "micron-blog/blog-sweep-4k", "matrix": {"queue_depth": BLOG_DEPTHS, "runtime_s": 10}}
    return [settle, sweep]


def check_played(site, folder, tests, figures, problems_of):
    """Play these tests on a drive with these figures, else `RATES`: no problem is found."""
    assert not lab.wrong_when_played(site, folder, tests, {**RATES, **figures}, problems_of)


def drawn(site):
    """What the charts of the run's only drive are given, by test."""
    (index,) = site.results.glob("*/report/index.html")
    data = re.findall(r'class="chart-data">(.*?)</script>', index.read_text(encoding="utf-8"), re.DOTALL)
    return {test["test"]: test for test in map(json.loads, data)}


def test_idle_recovery_is_recovered_in_the_report(site, tmp_path):
    # Of 2 s, 60 writes take one at 60 a second; in the other go 15.
    true_pct = 100 * (ROOM + (BURST_S - ROOM / FRESH) * STEADY) / (BURST_S * STEADY) - 100

    def problems_of(played):
        waits, back = played.tests["hir-wait"]["repeated"], played.tests["hir-back"]["repeated"]
        assert (waits["first_test"], waits["metric"]) == ("hir", "write_iops")
        figures = {
            "steady": (played.metric("hir", "write_iops"), pytest.approx(STEADY, rel=0.1)),
            "waits": (waits["change_pct"], pytest.approx(true_pct, rel=0.2)),
            "back": (back["change_pct"], pytest.approx(0, abs=10)),
        }
        return lab.unlike(figures)

    spare_pct = 100 * ROOM * PAGE / lab.SIZE
    idling = {"idle_gc_bandwidth": 4 * ROOM * PAGE, "spare_pct": spare_pct, "collect_after_s": COLLECTS_AFTER_S}
    check_played(site, tmp_path, [HIR], idling, problems_of)


def test_a_demand_curve_is_recovered_in_the_report(site, tmp_path):
    def problems_of(played):
        curve = played.tests["dirth-sweep"].get("demand")
        if not curve:
            return ["no curve"]
        (point,) = played.tests["dirth-fewest-iops"]["points"]
        seen = (curve["sweet_spot"]["asked_outstanding"], len(curve["points"]), point["threads"], point["queue_depth"])
        return [] if seen == (8, 6, 1, 1) else [seen]

    check_played(site, tmp_path, [DIRTH], {"latency_s": LATENCY_S}, problems_of)
    point = drawn(site)["dirth-fewest-iops"]
    (bars,) = point["histogram"]
    assert point["cell"] == "rand-4k-w100-fewest" and bars["direction"] == "write"
    assert bars["from_us"][0] >= 0.95e6 * LATENCY_S and sum(bars["share_pct"]) == pytest.approx(100, abs=0.1)


def test_the_blogs_sweet_spot_is_recovered_in_the_report(site, tmp_path):
    """15 a second of 0.33 s each are 5 in flight: four are too few, eight the fewest of the powers of 2."""

    def problems_of(played):
        (sweep,) = played.tests["blog-sweep-4k"].get("sweeps") or [None]
        if not sweep:
            return ["no sweep"]
        points, spot = sweep["points"], sweep["sweet_spot"]
        figures = {
            "spot": (spot["queue_depth"], 8),
            "most": (points[-1]["iops"], pytest.approx(STEADY, rel=0.1)),
            "observed": ([point["observed_outstanding"] for point in points], pytest.approx(BLOG_DEPTHS, rel=0.2)),
        }
        return lab.unlike(figures)

    check_played(site, tmp_path, blog(), {"latency_s": LATENCY_S}, problems_of)


def test_the_effect_of_the_stimulus_before_is_recovered_in_the_report(site, tmp_path):
    def problems_of(played):
        change = played.tests["again"]["repeated"]
        stream, small = played.metric("stream", "write_bandwidth"), played.metric("small", "write_iops")
        scattered = 1 - math.exp(-small * 20 * PAGE / lab.SIZE)
        true_pct = 100 * lab.slowed(STREAM["runtime_s"] * STREAM_BYTES_PER_S / lab.SIZE, SCATTER_COST, scattered) - 100
        figures = {
            "stream": (stream, pytest.approx(STREAM_BYTES_PER_S, rel=0.1)),
            "small": (small, pytest.approx(SCATTERING_IOPS, rel=0.1)),
            "again": (change["change_pct"], pytest.approx(true_pct, abs=5)),
        }
        return lab.unlike(figures)

    rates = {"fresh_iops": SCATTERING_IOPS, "steady_iops": SCATTERING_IOPS, "write_bandwidth": STREAM_BYTES_PER_S}
    check_played(site, tmp_path, STIMULI, {**rates, "scatter_cost": SCATTER_COST}, problems_of)


def test_the_composite_mix_is_recovered_in_the_report(site, tmp_path):
    """How long a write of the mix takes and how large it is; and that three in five I/Os of the sweep are writes, which
    the reads beside them don't slow.
    """
    (cell,) = load_plan(["ecw"])[0].cells
    sizes = {item.size_bytes: item.pct / 100 for item in cell.mix.sizes}
    mean_bytes = sum(size * share for size, share in sizes.items())
    true_iops = 1 / sum(share * max(1 / MIX_IOPS, size / MIX_BYTES_PER_S) for size, share in sizes.items())

    def problems_of(played):
        writes, sweep = played.tests["ecw"]["metrics"], played.tests["ecw-sweep"]
        if not sweep.get("demand"):
            return ["no curve"]
        mixed, most = sweep["metrics"], max(point["iops"] for point in sweep["demand"]["points"])
        figures = {
            "iops": (writes["write_iops"], pytest.approx(true_iops, rel=0.1)),
            "size": (writes["write_bandwidth"] / writes["write_iops"], pytest.approx(mean_bytes, rel=0.1)),
            "reads": (mixed["read_ios"] / (mixed["read_ios"] + mixed["write_ios"]), pytest.approx(0.4, abs=0.03)),
            "size of reads": (mixed["read_bandwidth"] / mixed["read_iops"], pytest.approx(mean_bytes, rel=0.15)),
            "most": (most, pytest.approx(true_iops / 0.6, rel=0.1)),
        }
        return lab.unlike(figures)

    assert (round(mean_bytes), round(true_iops)) == (7818, 204)
    rates = {"fresh_iops": MIX_IOPS, "steady_iops": MIX_IOPS, "write_bandwidth": MIX_BYTES_PER_S}
    check_played(site, tmp_path, [ECW], rates, problems_of)
