# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plans for every day and of hyperscale operators, scaled, from the playbook to the report (suites_lab.py)."""

from __future__ import annotations

import os

import pytest
import suites_lab as lab

pytestmark = [
    pytest.mark.exclusive(depth=4),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root for loop devices"),
]

CORNERS = [
    lab.load("128KiB", 100, "sequential"),
    lab.load("4KiB", 100),
    lab.load("128KiB", 0, "sequential"),
    lab.load("4KiB", 0),
]
CORNER_IOPS = {
    "seq-128k-r100-tc1-qd4": lab.READ_BANDWIDTH / (128 << 10),
    "rand-4k-r100-tc1-qd4": lab.READS,
    "seq-128k-w100-tc1-qd4": lab.WRITE_BANDWIDTH / (128 << 10),
    "rand-4k-w100-tc1-qd4": lab.WRITES,
}


def corner_problems(played, name):
    """Each of CORNERS by its own rate, and in the page's table of all cells."""
    told = played.cells(name)
    seen = {cell: (told[cell]["iops"], pytest.approx(iops, rel=0.15)) for cell, iops in CORNER_IOPS.items()}
    return lab.unlike(seen) + played.untold(name, "All 4 cells", *CORNER_IOPS)


def test_smoke(site, tmp_path):
    """All of its workloads once, in seconds: what scripts/test plays of the shipped plans, beside the demo."""
    asked = lab.scaled("smoke", "smoke", cells=CORNERS, rounds=lab.ONCE)
    assert not lab.wrong_when_played(site, tmp_path, [asked], {}, lambda played: corner_problems(played, "smoke"))


@pytest.mark.long
def test_incoming(site, tmp_path):
    """But for the drive's own self-test, which a simulated one has none of (test_own_self_test.py)."""
    asked = lab.scaled("incoming", "incoming", cells=CORNERS, rounds=lab.ONCE)

    def problems_of(played):
        read_back = played.untold("incoming", "read back")
        return corner_problems(played, "incoming") + read_back

    assert lab.names("incoming") == ["self-test-short", "incoming"]
    assert not lab.wrong_when_played(site, tmp_path, [asked], {}, problems_of)


@pytest.mark.long
def test_acceptance(site, tmp_path):
    """One purge and one fill, and each test goes on from what the one before left."""
    depths = [1, 2, 4]
    tests = [
        lab.scaled("acceptance", "acceptance-corners", cells=CORNERS, rounds=lab.ONCE),
        lab.scaled("acceptance", "acceptance-steady", cells=[lab.SMALL_WRITES], **lab.SETTLED),
        lab.scaled("acceptance", "acceptance-depth", matrix={"threads": 1, "queue_depth": depths, "runtime_s": 2}),
        lab.scaled(
            "acceptance",
            "acceptance-mixed",
            matrix={"block_size": "4KiB", "queue_depth": [1, 4], "runtime_s": 4},
            rounds=lab.ONCE,
        ),
        lab.scaled("acceptance", "acceptance-read-back", active_range_pct=50),
    ]

    def problems_of(played):
        sweeps = {sweep["read_pct"]: sweep for sweep in played.tests["acceptance-depth"].get("sweeps") or []}
        # Its writes keep a mix back.
        mixed = lab.WRITES / 0.3
        seen = {f"spot {mix}": (sweeps[mix]["sweet_spot"]["queue_depth"], 1) for mix in (0, 100) if mix in sweeps}
        seen["steady"] = (played.metric("acceptance-steady", "write_iops"), pytest.approx(lab.WRITES, rel=0.1))
        seen |= {
            cell: (one["iops"], pytest.approx(mixed, rel=0.15))
            for cell, one in played.cells("acceptance-mixed").items()
        }
        lacks = [] if set(sweeps) == {0, 100} else [f"sweeps of {sorted(sweeps)}"]
        lacks += played.untold("acceptance-depth", "Sweet spot") + played.untold("acceptance-read-back")
        return lab.unlike(seen) + corner_problems(played, "acceptance-corners") + lacks

    # A simulated drive has no self-test of its own.
    assert lab.names("acceptance") == [test["base"].partition("/")[2] for test in tests] + ["self-test-extended"]
    assert not lab.wrong_when_played(site, tmp_path, tests, {}, problems_of)


@pytest.mark.long
def test_nightly(site, tmp_path):
    """Its figures are those of a fresh drive, as it says: the simulated one writes half as fast once it is worn."""
    single = {"read_pct": [100, 0], "block_size": "4KiB", "runtime_s": 2}
    tests = [
        lab.scaled("nightly", "nightly-saturation", cells=[lab.load("4KiB", 0)], rounds={**lab.ONCE, "max": 3}),
        lab.scaled("nightly", "nightly-corners", cells=CORNERS, rounds={**lab.ONCE, "max": 2}),
        lab.scaled("nightly", "nightly-latency", matrix=single, rounds=lab.ONCE),
    ]

    def problems_of(played):
        told = played.cells("nightly-latency")
        seen = {
            mix: (told[f"rand-4k-{mix}-tc1-qd1"]["mean_us"], pytest.approx(1e6 / true, rel=0.25))
            for mix, true in (("r100", lab.READS), ("w100", lab.WRITES))
        }
        seen["fresh"] = (played.metric("nightly-saturation", "write_iops"), pytest.approx(lab.WRITES, rel=0.1))
        untold = played.untold("nightly-saturation") + played.untold("nightly-latency")
        return lab.unlike(seen) + corner_problems(played, "nightly-corners") + untold

    assert not lab.wrong_when_played(
        site, tmp_path, tests, {"size_bytes": 64 * lab.MIB, "steady_iops": lab.WRITES / 2}, problems_of
    )


# So small a drive asks for little by the terabyte.
FASTER = 438


def streamed(name):
    """The streams of a shipped test of hyperscale's, at more for each terabyte, with trims that its range holds."""
    (cell,) = lab.written(name, "tests")["cells"]
    jobs = [{**job, "rate_mib_s_per_tb": job["rate_mib_s_per_tb"] * FASTER} for job in cell["jobs"]]
    return {**cell, "runtime_s": 8, "jobs": [{**job, "block_size": "1MiB"} if job.get("trim") else job for job in jobs]}


@pytest.mark.long
def test_hyperscale_streams_keep_their_rates(site, tmp_path):
    size, loads = 64 * lab.MIB, ("hyperscale-l2r6", "hyperscale-l2r9")
    cells = {name: streamed(name) for name in loads}
    tests = [lab.scaled("hyperscale", name, cells=[cells[name]]) for name in loads]

    def problems_of(played):
        seen, untold = {}, []
        for name in loads:
            told = {cell.rpartition(".")[2]: figures for cell, figures in played.cells(name).items()}
            for job in cells[name]["jobs"]:
                true = job["rate_mib_s_per_tb"] * lab.MIB * size / 1e12 / 1e6
                seen[f"{name}.{job['name']}"] = (told[job["name"]]["mb_s"], pytest.approx(true, rel=0.2))
            untold += played.untold(name)
        return lab.unlike(seen) + untold

    bandwidths = {"write_bandwidth": 32 * lab.MIB, "read_bandwidth": 32 * lab.MIB}
    assert not lab.wrong_when_played(
        site, tmp_path, tests, {"size_bytes": size, "read_iops": 3000, **bandwidths}, problems_of
    )


@pytest.mark.long
def test_hyperscale_writes_that_wait_and_of_the_preferred_size(site, tmp_path):
    """Nothing of the plan fills the drive before them here, so they do it themselves."""
    small = [lab.load("4KiB", 0, "sequential", queue_depth=1, **wait) for wait in ({"fdatasync": 1}, {"sync": "dsync"})]
    preferred = lab.load("preferred", 0)
    then = {
        "cells": [lab.load("4KiB", 0)],
        "rounds": lab.ROUNDS,
        "steady_state": {**lab.SOON, "tracked": [{"metric": "write_bandwidth"}]},
    }
    soon = {**lab.SETTLED}
    tests = [
        lab.scaled("hyperscale", "sync-writes", precondition=lab.WORN, cells=small, **soon),
        lab.scaled("hyperscale", "preferred-writes", cells=[preferred], phases=[{"name": "4k", **then}], **soon),
    ]

    def problems_of(played):
        told, bandwidth = played.cells("sync-writes"), pytest.approx(lab.WRITES * 4096, rel=0.1)
        flushes = played.tests["sync-writes"]["metrics"]
        seen = {cell: (figures["iops"], pytest.approx(lab.WRITES, rel=0.15)) for cell, figures in told.items()}
        seen["kinds"] = (sorted(cell.partition("-qd1-")[2] for cell in told), ["fdatasync1", "o_dsync"])
        seen["flushes"] = (flushes["sync_ios"], pytest.approx(flushes["write_ios"], abs=5))
        seen |= {
            name: (played.metric(name, "write_bandwidth"), bandwidth)
            for name in ("preferred-writes", "preferred-writes-4k")
        }
        latencies = 'scope="row">sync</th>'
        return (
            lab.unlike(seen)
            + played.untold("sync-writes", latencies)
            + played.untold("preferred-writes-4k", "rand-4k-w100")
        )

    assert not lab.wrong_when_played(site, tmp_path, tests, {}, problems_of)


@pytest.mark.long
def test_the_map_shows_which_reads_writes_keep_from_coming(site, tmp_path):
    """Reads wait for as long as writes take. So of 500 a second 344 are left beside 20 streamed writes, 266 beside 30;
    the map has its figures in brackets where fewer reads came than asked.
    """
    most, reads, writes = 500, (200, 400), (0, 20, 30)
    left = {rate: most * (1 - rate * (128 << 10) / lab.WRITE_BANDWIDTH) for rate in writes}

    def cell(read, write):
        reading = {"block_size": "4KiB", "read_pct": 100, "threads": 1, "queue_depth": 32, "rate_iops": read}
        writing = {"access": "sequential", "block_size": "128KiB", "read_pct": 0, "queue_depth": 8, "rate_iops": write}
        if not write:
            return {**reading, "runtime_s": 4}
        jobs = [{"name": "reads", **reading}, {"name": "writes", **writing}]
        return {"name": f"r{read}w{write}", "runtime_s": 4, "jobs": jobs}

    cells = [cell(read, write) for write in writes for read in reads]
    asked = lab.scaled("hyperscale", "interference", cells=cells, rounds={**lab.ONCE, "max": 2})

    def problems_of(played):
        shown = played.table("interference", "99th percentile of reads")
        in_brackets = [[text.startswith("(") for text in row] for row in shown]
        tails = [[lab.number(text.strip("()")) for text in row] for row in shown]
        told = {
            key.split(".")[0].split("-")[1]: each["iops"]
            for key, each in played.cells("interference").items()
            if key.endswith(".reads")
        }
        seen = {
            f"{read} beside {rate}": (told[f"r{read}w{rate}"], pytest.approx(min(read, left[rate]), rel=0.1))
            for rate in writes[1:]
            for read in reads
        }
        seen["brackets"] = (in_brackets, [[read > left[rate] for read in reads] for rate in writes])
        seen["tails grow"] = (sorted(row[1] for row in tails), [row[1] for row in tails])
        return lab.unlike(seen) + played.untold("interference", "reads alone", "20 writes/s", "400 reads/s")

    assert not lab.wrong_when_played(site, tmp_path, [asked], {"read_iops": most, "reads_wait": 1}, problems_of)
