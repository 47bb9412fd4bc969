# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The vendors' suites, scaled, from the playbook to the report (suites_lab.py). The blog's 4 KiB: test_recovery.py."""

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


# The stream takes 2 s for a pass over the drive, and twelve seconds of small writes before it scatter half of that.
STREAM_BYTES_PER_S, SCATTER_COST, SCATTERING_S = 4 * lab.MIB, 1.5, 12


def test_the_briefs_single_stimuli_and_both_sequences(site, tmp_path):
    """A small write is the same after a stream; a stream after small writes has to move what lies around its data."""
    small, stream = [lab.SMALL_WRITES], [lab.load("128KiB", 0, "sequential", runtime_s=2)]
    ones = {"steady_state": False, "rounds": lab.ONCE}
    scatter = {**ones, "cells": [{**lab.SMALL_WRITES, "runtime_s": SCATTERING_S}]}
    keys = {
        "brief-random-write-4k": {"cells": small, **lab.SETTLED},
        "brief-random-mixed-8k": {"cells": [lab.load("8KiB", 67)], **lab.SETTLED},
        "brief-sequential-write-64k": {"cells": [lab.load("64KiB", 0, "sequential")], **lab.SETTLED},
        "brief-first-1-random": {"cells": small, **lab.SETTLED},
        "brief-first-2-sequential": {"cells": stream, **ones},
        "brief-first-3-random": {"cells": small, **lab.SETTLED},
        "brief-second-1-sequential": {"cells": stream, **lab.SETTLED},
        "brief-second-2-random": scatter,
        "brief-second-3-sequential": {"cells": stream, **ones},
    }
    tests = [lab.scaled("micron-brief", name, **own) for name, own in keys.items()]
    true_iops = {
        "brief-random-write-4k": lab.WRITES,
        "brief-random-mixed-8k": lab.WRITES / 0.33,
        "brief-sequential-write-64k": STREAM_BYTES_PER_S / (64 << 10),
        "brief-first-1-random": lab.WRITES,
        "brief-second-1-sequential": STREAM_BYTES_PER_S / (128 << 10),
        "brief-second-2-random": lab.WRITES,
    }

    def problems_of(played):
        writes = played.metric("brief-second-2-random", "write_iops")
        scattered = 1 - math.exp(-writes * SCATTERING_S * 4096 / lab.SMALL_DRIVE)
        true_pct = (
            100 * lab.slowed(stream[0]["runtime_s"] * STREAM_BYTES_PER_S / lab.SMALL_DRIVE, SCATTER_COST, scattered)
            - 100
        )
        small_again, stream_again = (
            played.tests[name]["repeated"] for name in ("brief-first-3-random", "brief-second-3-sequential")
        )
        seen = {name: (played.metric(name, "iops"), pytest.approx(true, rel=0.15)) for name, true in true_iops.items()}
        seen["small again"] = (small_again["change_pct"], pytest.approx(0, abs=8))
        seen["stream again"] = (stream_again["change_pct"], pytest.approx(true_pct, abs=6))
        fill_s = played.tests["brief-second-1-sequential"]["fill_time"]["seconds"]
        seen["time of two fills"] = (fill_s, pytest.approx(2 * lab.SMALL_DRIVE / STREAM_BYTES_PER_S, rel=0.1))
        untold = [line for name in keys for line in played.untold(name)]
        untold += played.untold("brief-second-3-sequential", "lower than in brief-second-1-sequential (")
        return lab.unlike(seen) + untold + played.untold("brief-second-1-sequential", "Time to write the drive twice")

    figures = {"size_bytes": lab.SMALL_DRIVE, "write_bandwidth": STREAM_BYTES_PER_S, "scatter_cost": SCATTER_COST}
    assert not lab.wrong_when_played(site, tmp_path, tests, {**figures, "read_iops": 1000}, problems_of)


def test_the_notes_figure_11_before_its_fill_and_after_dd(site, tmp_path):
    """Corners of each of the note's three plans: cells whose threads follow the CPUs, several of them tests by
    themselves.
    """
    depth = {"threads": 8, "queue_depth": 1, "runtime_s": 1}
    random = {**depth, "access": "random"}
    grids = [
        ("micron-p420m", "micron-read", {**depth, "block_size": ["1MiB", "4KiB", "512B"]}),
        ("micron-p420m", "micron", {**random, "block_size": ["4KiB", "1MiB"]}),
        ("micron-p420m", "micron-mixed", {**random, "read_pct": [70, 10], "block_size": "4KiB"}),
        ("micron-p420m-small", "micron-small", {**random, "read_pct": [0, 70], "block_size": "512B"}),
    ]
    tests = [lab.scaled(plan, test, matrix=matrix, **lab.SETTLED) for plan, test, matrix in grids]
    for name in ("micron-dd-random-write-4k", "micron-dd-random-read-4k"):
        cells = [{**cell, **depth} for cell in by_name("micron-p420m-dd")[name]["cells"]]
        tests.append(lab.scaled("micron-p420m-dd", name, cells=cells, **lab.SETTLED))
    true_iops = {
        "micron-rand-4k-w100": lab.WRITES,
        "micron-rand-1024k-w100": lab.WRITE_BANDWIDTH / lab.MIB,
        "micron-mixed-rand-4k-r70": lab.WRITES / 0.3,
        "micron-mixed-rand-4k-r10": lab.WRITES / 0.9,
        "micron-small-rand-512b-w100": lab.WRITES,
        "micron-small-rand-512b-r70": lab.WRITES / 0.3,
        "micron-dd-random-write-4k": lab.WRITES,
        "micron-dd-random-read-4k": lab.READS,
    }
    load_name = "tc1to8-load8"

    def problems_of(played):
        told = played.cells("micron-read")
        by_size = {"1024k": lab.READ_BANDWIDTH / lab.MIB, "4k": lab.READS, "512b": lab.READS}
        seen = {
            f"{access}-{size}": (told[f"{access}-{size}-r100-{load_name}"]["iops"], pytest.approx(true, rel=0.15))
            for size, true in by_size.items()
            for access in ("rand", "seq")
        }
        own = {named(played, name): true for name, true in true_iops.items()}
        seen |= {name: (played.metric(name, "iops"), pytest.approx(true, rel=0.15)) for name, true in own.items()}
        loads = {test["load"] for test in played.tests.values()}
        seen["threads x depth"] = ({math.prod(map(int, text_numbers(text))) for text in loads}, {8})
        untold = [line for name in played.tests for line in played.untold(name, "Load chosen by the host")]
        return lab.unlike(seen) + untold + played.untold("micron-dd-random-read-4k", "of zeros")

    assert not lab.wrong_when_played(site, tmp_path, tests, {"size_bytes": lab.SMALL_DRIVE}, problems_of)


def named(played, begin):
    """The test whose name begins so: that of a cell ends with its load where plans differ in that."""
    (one,) = [name for name in played.tests if name == begin or name.startswith(begin + "-")]
    return one


def text_numbers(text):
    return "".join(char if char.isdigit() else " " for char in text).split()


def by_name(plan):
    """The entries of a shipped plan by their names."""
    return {entry["name"]: entry for entry in lab.written(plan)}


# 32 KiB are slow by their bytes. Four in flight of 0.165 s each are 24 a second at most, eight would be 48: they reach
# all 30, also where the machine adds 0.1 s.
BLOG_IOPS, BLOG_LATENCY_S, BLOG_DEPTHS = 30, 0.165, [1, 2, 4, 8, 16]


def test_the_blogs_sweep_of_32_kib(site, tmp_path):
    settle = [lab.load("32KiB", 0, runtime_s=4, queue_depth=8)]
    tests = [
        lab.scaled(
            "micron-blog",
            "blog-settle-32k",
            cells=settle,
            precondition={"passes": 1, "of": "active_range"},
            **lab.SETTLED,
        ),
        lab.scaled("micron-blog", "blog-sweep-32k", matrix={"queue_depth": BLOG_DEPTHS, "runtime_s": 8}),
    ]

    def problems_of(played):
        (sweep,) = played.tests["blog-sweep-32k"].get("sweeps") or [None]
        if not sweep:
            return ["no sweep"]
        seen = {
            "spot": (sweep["sweet_spot"]["queue_depth"], 8),
            "most": (sweep["points"][-1]["iops"], pytest.approx(BLOG_IOPS, rel=0.1)),
            "observed": (
                [point["observed_outstanding"] for point in sweep["points"]],
                pytest.approx(BLOG_DEPTHS, rel=0.2),
            ),
        }
        return lab.unlike(seen) + played.untold("blog-sweep-32k", "Sweet spot: depth 8", "random 32 KiB, R/W 0/100")

    figures = {"size_bytes": lab.SMALL_DRIVE, "write_bandwidth": BLOG_IOPS * (32 << 10), "latency_s": BLOG_LATENCY_S}
    assert not lab.wrong_when_played(site, tmp_path, tests, figures, problems_of)


def test_the_guides_nine_jobs(site, tmp_path):
    """Only the formats are left out: the simulated drive is no card (tests/unit/plugins/module_utils/purge)."""
    # A batch of sixteen 1 MiB is half a second of writes.
    bandwidths = {"write_bandwidth": 32 * lab.MIB, "read_bandwidth": 64 * lab.MIB}
    guide = by_name("iomemory-guide")
    tests = []
    for name, entry in guide.items():
        cells = [{**cell, "threads": 1, "runtime_s": 4, "ramp_s": 1} for cell in entry["cells"]]
        tests.append(
            lab.scaled("iomemory-guide", name, purge={"method": "deallocate", "lba_size_bytes": None}, cells=cells)
        )
    true_iops = {
        "iomemory-write-latency": lab.WRITES,
        "iomemory-random-write": lab.WRITES,
        "iomemory-sequential-write": lab.WRITES,
        "iomemory-write-bandwidth": bandwidths["write_bandwidth"] / lab.MIB,
        "iomemory-read-bandwidth": bandwidths["read_bandwidth"] / lab.MIB,
    }

    def problems_of(played):
        reads = {
            f"read {cell}": (one["iops"], pytest.approx(lab.READS, rel=0.2))
            for cell, one in played.cells("iomemory-read").items()
        }
        seen = {name: (played.metric(name, "iops"), pytest.approx(true, rel=0.2)) for name, true in true_iops.items()}
        return lab.unlike({**reads, **seen}) + [line for name in guide for line in played.untold(name)]

    assert not lab.wrong_when_played(site, tmp_path, tests, {"size_bytes": lab.SMALL_DRIVE, **bandwidths}, problems_of)


def test_the_guides_hot_and_cold_data(site, tmp_path):
    """The simulated drive writes hot data no faster than cold, so rewriting all of it changes nothing."""
    hot = lab.load("4KiB", 0, range={"to_pct": 20})
    rest = {"name": "all", "repeats": True, "cells": [lab.SMALL_WRITES], "rounds": lab.ROUNDS}
    tracked = {"steady_state": {**lab.SOON, "tracked": [{"metric": "write_iops"}]}}
    asked = lab.scaled("iomemory-strategies", "hot-cold", cells=[hot], phases=[{**rest, **tracked}], **lab.SETTLED)

    def problems_of(played):
        change = played.tests["hot-cold-all"]["repeated"]
        seen = {name: (played.metric(name, "write_iops"), pytest.approx(lab.WRITES, rel=0.1)) for name in played.tests}
        seen["repeats"] = ((change["first_test"], change["metric"]), ("hot-cold", "write_iops"))
        seen["change"] = (change["change_pct"], pytest.approx(0, abs=8))
        return (
            lab.unlike(seen)
            + played.untold("hot-cold-all", "Repeated stimulus", "in hot-cold (")
            + played.untold("hot-cold")
        )

    assert not lab.wrong_when_played(site, tmp_path, [asked], {"size_bytes": lab.SMALL_DRIVE}, problems_of)


def test_the_guides_file_systems(site, tmp_path):
    """What they cost is nothing where the drive takes its time: each is the raw drive's equal."""
    names = ["filesystem-none", "filesystem-ext4", "filesystem-xfs"]
    cells = [
        lab.load("4KiB", 0),
        lab.load("4KiB", 100),
        lab.load("128KiB", 0, "sequential"),
        lab.load("128KiB", 100, "sequential"),
    ]
    keys = {"cells": cells, "active_range_pct": 10, "precondition": {"passes": 1}, **lab.SETTLED}
    tests = [lab.scaled("iomemory-strategies", name, **keys) for name in names]

    def problems_of(played):
        seen = {name: (played.metric(name, "write_iops"), pytest.approx(lab.WRITES, rel=0.1)) for name in played.tests}
        untold = played.untold("filesystem-none", "All 4 cells")
        for name in names[1:]:
            change = played.tests[name]["repeated"]
            seen[f"{name} repeats"] = (change["first_test"], names[0])
            seen[f"{name} change"] = (change["change_pct"], pytest.approx(0, abs=8))
            untold += played.untold(name, "Repeated stimulus", "in filesystem-none (")
        return lab.unlike(seen) + untold

    # XFS takes 300 MB at least.
    bandwidths = {"write_bandwidth": 64 * lab.MIB, "read_bandwidth": 64 * lab.MIB}
    assert not lab.wrong_when_played(site, tmp_path, tests, {"size_bytes": 320 * lab.MIB, **bandwidths}, problems_of)
