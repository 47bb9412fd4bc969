# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The recovery suites from the playbook to the report, scaled, on a simulated drive whose true figures are known
(scripts/simulator/model.py).
"""

from __future__ import annotations

import os

import jsonschema
import pytest
import simulated_ssd as simulator

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import schema

MIB = 1 << 20
FRESH, STEADY, ROOM_A_SECOND = 800, 100, 300
pytestmark = [pytest.mark.long, pytest.mark.skipif(os.geteuid() != 0, reason="needs root for loop devices")]

LOAD = {"access": "random", "block_size": "4KiB", "read_pct": 0, "threads": 1, "queue_depth": 32, "runtime_s": 2}
HIR = {
    "name": "hir",
    "base": "hir",
    "cells": [LOAD],
    "steady_state": {"sample_every": 1},
    "rounds": {"max": 60, "capacity_multiple": 20, "time_limit_s": 150},
    "phases": [
        {
            "name": "wait",
            "repeats": True,
            "cells": [{**LOAD, "burst_s": 1, "idle_s": 1, "runtime_s": 8}],
            "rounds": {"max": 2},
        },
        {"name": "back", "repeats": True, "cells": [LOAD], "rounds": {"max": 4}, "last_rounds": 2},
    ],
}
SWEEP = {"block_size": "4KiB", "read_pct": 0, "threads": [2, 1], "queue_depth": [8, 4, 2, 1], "runtime_s": 1}
DIRTH = {
    "name": "dirth",
    "base": "dirth",
    "cells": [LOAD],
    "steady_state": {"sample_every": 1},
    "rounds": {"max": 60, "capacity_multiple": 20, "time_limit_s": 150},
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


def test_idle_recovery_and_a_demand_curve_are_recovered_in_the_report(site, tmp_path):
    figures = {"size_bytes": 16 * MIB, "fresh_iops": FRESH, "steady_iops": STEADY, "read_iops": 3000, "noise_pct": 1}
    more = {"idle_gc_bandwidth": ROOM_A_SECOND * 4096, "spare_pct": 50, "latency_s": 0.03}
    with simulator.simulated_ssd(tmp_path / "drives", "idle", simulator.model_plugin(**figures, **more)) as drive:
        site.hosts = {"server": {"ssd_drives": [{"backing_file": drive["backing_file"]}]}}
        site.vars.update(ssd_plan=[HIR, DIRTH], ssd_criteria=[])
        code, output = site.play("qualify")
    assert code == 0, output
    summary = site.summary()
    jsonschema.validate(summary, schema.load("summary"))
    tests = {test["test"]: test for test in summary["drives"][0]["tests"]}
    assert {name: test["verdict"] for name, test in tests.items()} == dict.fromkeys(tests, "pass")
    assert tests["hir"]["metrics"]["write_iops"] == pytest.approx(STEADY, rel=0.1)
    # Of a second, 300 writes take 0.375 s at 800 a second; the rest go at 100.
    true_pct = 100 * (ROOM_A_SECOND + (1 - ROOM_A_SECOND / FRESH) * STEADY) / STEADY - 100
    waits, back = tests["hir-wait"]["repeated"], tests["hir-back"]["repeated"]
    assert (waits["first_test"], waits["metric"]) == ("hir", "write_iops") and waits["change_pct"] == pytest.approx(
        true_pct, rel=0.2
    )
    assert abs(back["change_pct"]) < 10
    curve = tests["dirth-sweep"]["demand"]
    # 30 ms each and 100 a second: four in flight are as good as sixteen.
    assert curve["sweet_spot"]["asked_outstanding"] == 4 and len(curve["points"]) == 8
    (point,) = tests["dirth-fewest-iops"]["points"]
    assert (point["threads"], point["queue_depth"]) == (1, 1)
