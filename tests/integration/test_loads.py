# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bursts, mixes and phases under the real fio: what the drive gets, and what is found of a drive whose true figures are
known.
"""

from __future__ import annotations

import collections
import math
import os
import subprocess
import types

import pytest
import simulated_ssd as simulator
from host_jobs import events
from measuring import Measuring, found

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import fio, fio_result
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.validity_limits import Limits
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import render_plan as planning
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import derived_metrics
from ansible_collections.ssdlab.fleet.tests.fixtures.plans import identity_of, planned

MIB = 1 << 20
PAGE = 4096
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root for loop devices")
# So few I/Os a second that a machine without a free CPU keeps up.
FRESH, STEADY, ROOM = 60, 15, 60


@pytest.mark.exclusive(depth=4)
def test_idle_recovery_is_recovered_from_the_bursts(tmp_path):
    """Of a burst of 2 s after a wait of 5 s, 60 writes go at 60 a second, which takes 1 s, and the rest at 15: 75 in
    all, 37.5 a second. Neither the pauses between cells nor how exact the wait is matters: it gives back what the spare
    area holds.
    """
    figures = {"size_bytes": 16 * MIB, "fresh_iops": FRESH, "steady_iops": STEADY, "read_iops": 3000, "noise_pct": 0}
    recovery = {"idle_gc_bandwidth": 4 * ROOM * PAGE, "spare_pct": 100 * ROOM * PAGE / (16 * MIB), "collect_after_s": 3}
    rates = [STEADY, (ROOM + (2 - ROOM / FRESH) * STEADY) / 2]
    steady, bursts = _idle_recovery(tmp_path, {**figures, **recovery})
    assert [steady.write.iops, bursts.write.iops] == pytest.approx(rates, rel=0.1)
    assert found(bursts) == {}


def _idle_recovery(folder, figures):
    with simulator.simulated_ssd(folder / "drives", "idle", simulator.model_plugin(**figures)) as drive:
        measuring = Measuring(drive["device"], folder)
        try:
            measuring.cell(access="sequential", block_size_bytes=MIB, queue_depth=8, runtime_s=2)
            # A busy machine takes long to start fio.
            measuring.bench.limits = Limits(idle_gap_s=60)
            steady = measuring.cell(queue_depth=4, ramp_s=1, runtime_s=4)
            return steady, measuring.cell(queue_depth=4, burst_s=2, idle_s=5, ramp_s=7, runtime_s=14)
        finally:
            measuring.close()


@pytest.mark.long
@pytest.mark.exclusive(depth=16)
def test_the_sweet_spot_of_a_drive_is_where_its_latency_is_hidden(tmp_path):
    """240 ms a read and 10 reads a second: two in flight are not enough (6), 16 are (47), also where the machine adds
    a second to each.
    """
    sweep = _sweep(tmp_path)
    spot = sweep["sweet_spot"]
    seen = [point["observed_outstanding"] for point in sweep["points"]]
    assert spot["queue_depth"] == 16 and spot["iops"] == pytest.approx(10, rel=0.1)
    assert seen == pytest.approx([1, 2, 16, 32], rel=0.15)


def _sweep(folder):
    figures = {"size_bytes": 16 * MIB, "fresh_iops": FRESH, "steady_iops": STEADY, "read_iops": 10, "noise_pct": 0}
    cells, averages = [], []
    with simulator.simulated_ssd(folder / "drives", "deep", simulator.model_plugin(**figures, latency_s=0.24)) as drive:
        measuring = Measuring(drive["device"], folder)
        try:
            for depth in (1, 2, 16, 32):
                # No ramp: fio counts the I/Os that began after it, over the time in which the last ones end too. It is
                # long beside that end, in which fewer are in flight.
                result = measuring.cell(read_pct=100, queue_depth=depth, runtime_s=12)
                cell = {"access": "random", "block_size_bytes": PAGE, "read_pct": 100, "threads": 1}
                cells.append({**cell, "id": str(depth), "queue_depth": depth})
                averages.append({"cell": str(depth), "metrics": fio_result.metrics(result.read, result.write)})
        finally:
            measuring.close()
    (sweep,) = derived_metrics.sweeps(cells, averages)
    return sweep


@pytest.mark.exclusive(depth=4)
def test_a_stream_after_small_writes_is_as_slow_as_the_scatter_makes_it(tmp_path):
    """A stream that rewrites a share x of the drive meets what is still scattered: size / bandwidth x (x + cost x
    scattered x (x - x^2 / 2)) seconds.
    """
    size, bandwidth, cost = 32 * MIB, 16e6, 1.5
    figures = {
        "size_bytes": size,
        "fresh_iops": 4000,
        "steady_iops": 4000,
        "read_iops": 3000,
        "write_bandwidth": bandwidth,
        "noise_pct": 0,
    }
    with simulator.simulated_ssd(
        tmp_path / "drives", "mixed", simulator.model_plugin(**figures, scatter_cost=cost)
    ) as drive:
        measuring = Measuring(drive["device"], tmp_path)
        try:
            first = measuring.cell(access="sequential", block_size_bytes=MIB, queue_depth=4)
            small = measuring.cell(queue_depth=16, runtime_s=2)
            again = measuring.cell(access="sequential", block_size_bytes=MIB, queue_depth=4)
        finally:
            measuring.close()
    scattered = 1 - math.exp(-small.write.ios * PAGE / size)
    written = again.write.bytes / size
    seconds = size / bandwidth * (written + cost * scattered * (written - written**2 / 2))
    assert first.write.bandwidth_bytes_per_s == pytest.approx(bandwidth, rel=0.15)
    assert seconds == pytest.approx(again.seen.run_s, rel=0.15)
    assert again.write.bandwidth_bytes_per_s < 0.8 * first.write.bandwidth_bytes_per_s


def test_a_mix_is_as_large_as_asked_where_it_was_asked_for(loop_drive, tmp_path):
    drive = loop_drive("mix", 256 * MIB)
    sizes = [{"size": "512B", "pct": 10}, {"size": "4KiB", "pct": 60}, {"size": "16KiB", "pct": 30}]
    ranges = [{"pct": 5, "of_ios_pct": 50}, {"pct": 15, "of_ios_pct": 30}, {"pct": 80, "of_ios_pct": 20}]
    cell = {
        "block_size": "4KiB",
        "read_pct": 40,
        "queue_depth": 8,
        "runtime_s": 1,
        "mix": {"sizes": sizes, "ranges": ranges},
    }
    plan = planned(
        planning.load_plan(
            [{"name": "mix", "purge": False, "precondition": False, "cells": [cell], "rounds": {"max": 1}}]
        ),
        identity_of(256 * MIB),
    )
    (rendered,) = plan["drives"][0]["tests"][0]["cells"]
    values = {
        "device": drive.path,
        "seed": 1,
        "size_bytes": 256 * MIB,
        "numa_node": None,
        "cpus_allowed": None,
        "threads": 1,
        "queue_depth": 8,
    }
    log = tmp_path / "log"
    job = tmp_path / "mix.fio"
    job.write_text(fio.fill(rendered["job"], values) + f"write_iolog={log}\n")
    subprocess.run(["fio", f"--output={tmp_path / 'out'}", str(job)], check=True, timeout=60)
    ios = [
        (int(words[-2]), int(words[-1]))
        for words in map(str.split, log.read_text().splitlines())
        if words[-3:-2] in (["read"], ["write"])
    ]
    assert len(ios) > 500 and all(offset % PAGE == 0 for offset, _size in ios)
    shares = {size: count / len(ios) for size, count in collections.Counter(size for _offset, size in ios).items()}
    assert {size: pytest.approx(share, abs=0.08) for size, share in shares.items()} == {512: 0.1, 4096: 0.6, 16384: 0.3}
    edges = (0.05 * 256 * MIB, 0.2 * 256 * MIB)
    parts = collections.Counter(sum(offset >= edge for edge in edges) for offset, _size in ios)
    assert [parts[part] / len(ios) for part in range(3)] == [
        pytest.approx(share, abs=0.08) for share in (0.5, 0.3, 0.2)
    ]


CELL = {"block_size": "4KiB", "read_pct": 0, "runtime_s": 1}
CHAIN = {
    "name": "chain",
    "purge": False,
    "precondition": False,
    "cells": [{**CELL, "rate_iops": 20}],
    "rounds": {"max": 1},
    "phases": [
        {
            "name": "sweep",
            "lead": CELL,
            "cells": [{**CELL, "rate_iops": 40}, {**CELL, "queue_depth": 2, "rate_iops": 10}],
            "rounds": {"max": 1},
        },
        {
            "name": "least",
            "cells": [{**CELL, "rate_iops": 20, "point": {"of": "sweep", "take": "fewest"}}],
            "rounds": {"max": 1},
        },
        {
            "name": "again",
            "cells": [{**CELL, "rate_iops": 20}],
            "rounds": {"max": 2},
            "last_rounds": 1,
            "repeats": True,
        },
    ],
}


def rates(journal, test):
    """The rate of each cell of a test by its last record."""
    cells = [record for record in events(journal, "cell") if record["test"] == test]
    return {record["cell"]: record["write"]["iops"] for record in cells}


def test_phases_follow_each_other_and_a_point_takes_what_the_sweep_showed(jobs, loop_drive):
    drive = loop_drive()
    journal, status = jobs.run(jobs.plan([drive], planning.load_plan([CHAIN])))
    ends = {record["test"]: record for record in jobs.ended()}
    assert {name: record["outcome"] for name, record in ends.items()} == dict.fromkeys(
        ("chain", "chain-sweep", "chain-least", "chain-again"), "complete"
    )
    (point,) = [record for record in events(journal, "cell") if record["test"] == "chain-least"]
    assert point["chosen"] == {"cell": "rand-4k-w100-tc1-qd2-10iops", "threads": 1, "queue_depth": 2}
    # The first figures are the test's: not those of the cell that leads.
    assert ends["chain-sweep"]["metrics"]["write_iops"] == rates(journal, "chain-sweep")["rand-4k-w100-tc1-qd1-40iops"]
    assert ends["chain-again"]["metrics"]["write_iops"] == list(rates(journal, "chain-again").values())[-1]
    assert status["drives"][0]["outcome"] == "complete"


def test_a_profiles_cache_that_a_drive_does_not_tell_of_makes_the_test_invalid(jobs, loop_drive):
    journal, _status = jobs.run(
        jobs.plan([loop_drive()], planning.load_plan([{**CHAIN, "phases": [], "write_cache": "off"}]))
    )
    (end,) = jobs.ended()
    assert (end["outcome"], end["rounds"]) == ("invalid", 0) and "nothing proves that it is off" in end["reasons"][0]
    assert not events(journal, "cell")


@pytest.mark.parametrize(("access", "cpus", "threads"), [("random", "0", 1), ("sequential", "0-1", 2)])
def test_threads_follow_the_cpus_that_fio_has(jobs, tmp_path, access, cpus, threads):
    """Eight at most, with 16 I/Os in flight together; what was in flight is recorded, and nothing is disturbed. One CPU
    would limit a drive as fast as memory.
    """
    cell = {**CELL, "access": access, "threads": 8, "queue_depth": 2, "per_cpu": True, "runtime_s": 4}
    test = {"name": "by-cpus", "purge": False, "precondition": False, "cells": [cell], "rounds": {"max": 2}}
    figures = {"size_bytes": 16 * MIB, "fresh_iops": 200, "steady_iops": 200, "read_iops": 200, "noise_pct": 0}
    with simulator.simulated_ssd(tmp_path / "drives", "slow", simulator.model_plugin(**figures)) as drive:
        selected = types.SimpleNamespace(selector={"backing_file": drive["backing_file"]})
        plan = jobs.plan([selected], planning.load_plan([test]))
        plan["drives"][0]["selector"]["cpus"] = cpus
        plan["tune"]["numa"] = {"limits": []}
        journal, _status = jobs.run(plan)
    load = {"threads": threads, "queue_depth": 16 // threads, "cpus": threads}
    cells, (end,) = events(journal, "cell"), jobs.ended()
    assert [cell["chosen"] for cell in cells] == [load] * 2
    assert (end["outcome"], end["reasons"]) == ("complete", [])
    assert end["loads"] == [{"cell": cells[0]["cell"], **load}] and "tc1to8-load16" in cells[0]["cell"]


@pytest.mark.parametrize(("access", "name"), [("random", "rand"), ("sequential", "seq")])
def test_a_slow_drive_stays_with_one_thread_and_its_trial_is_in_no_figure(jobs, tmp_path, access, name):
    cell = {**CELL, "access": access, "threads": "auto", "queue_depth": 16, "runtime_s": 4}
    fill = {"passes": 1, "of": "active_range"}
    test = {"name": "auto", "purge": False, "precondition": fill, "cells": [cell], "rounds": {"max": 2}}
    figures = {"size_bytes": 16 * MIB, "fresh_iops": 200, "steady_iops": 200, "read_iops": 200, "noise_pct": 0}
    with simulator.simulated_ssd(tmp_path / "drives", "slow", simulator.model_plugin(**figures)) as drive:
        selected = types.SimpleNamespace(selector={"backing_file": drive["backing_file"]})
        plan = jobs.plan([selected], planning.load_plan([test]))
        plan["drives"][0]["selector"]["cpus"] = "0-1"
        plan["tune"]["numa"] = {"limits": []}
        journal, _status = jobs.run(plan)
    cells, (end,) = events(journal, "cell"), jobs.ended()
    assert [cell["cell"] for cell in cells] == [f"{name}-4k-w100-tcauto-load16"] * 2
    chosen = cells[0]["chosen"]
    assert (chosen["threads"], chosen["queue_depth"], chosen["cpus"]) == (1, 16, 2) and chosen["trial_cpu"] < 0.375
    assert cells[1]["chosen"] == chosen and end["metrics"].get("read_iops") is None
    assert (end["outcome"], end["reasons"]) == ("complete", [])
    load = {key: chosen[key] for key in ("threads", "queue_depth", "cpus")}
    assert end["loads"] == [{"cell": cells[0]["cell"], **load}]
