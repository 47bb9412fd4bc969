# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a plan asks of a host that is to find how many drives it measures at the same time."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import io_pattern, parallelism_search
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import parallel_drives
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.render_plan import load_plan
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import plan_text
from ansible_collections.ssdlab.fleet.tests.fixtures import planned
from ansible_collections.ssdlab.fleet.tests.fixtures import plans as planned_plans
from ansible_collections.ssdlab.fleet.tests.fixtures.plans import found

EXPECTED = {"size_bytes": 1 << 30, "logical_block_size_bytes": 4096}


def drive(number, *shared, link_mb_s=7876.8, model="A", **entry):
    """A drive as the module examine returns it. shared: [(name, carries_mb_s, most_drives)]; none: unknown."""
    parts = [{"name": name, "carries_mb_s": carries, "most_drives": most} for name, carries, most in shared]
    return {
        "drive": f"S{number}",
        "selector": {"serial": f"S{number}", **entry},
        "identity": {"serial": f"S{number}", "model": model},
        "link_mb_s": link_mb_s,
        **({"shared": parts} if parts else {}),
    }


def spec(asked, drives, any_test=True):
    settings = {"ssd_parallel_drives": asked, "workload_ioengine": "libaio"}
    return parallel_drives.spec(settings, found(drives), any_test)


def server(count, *parts, **given):
    return [drive(number, *parts, **given) for number in range(count)]


CORES, PORT = ("the 32 cores", None, 32), ("the link 16 GT/s x16 of 40:01.1", 31507.2, None)
ROOT = ("the link 16 GT/s x4 of 41:01.0", 7876.8, None)
UNKNOWN = ("the link ? GT/s x? of 42:01.0", None, None)
LOOPS = ("the disk or memory behind loop devices", None, 1)
# (drives, sure, most, why); between sure and most reads decide.
DECIDED = [
    ("a port for each", [drive(n, (f"port {n}", 7876.8, None), CORES) for n in range(24)], 24, 24, "carry all 24"),
    ("a switch with lanes for four", server(24, PORT, CORES), 4, 24, "carries 31507 MB/s, the 24 drives behind it"),
    ("SATA behind it", server(24, PORT, CORES, link_mb_s=600), 24, 24, "carry all 24"),
    ("drives of two rates", [*server(4, PORT), drive(9, PORT, link_mb_s=15754)], 3, 5, "up to 47261"),
    ("fewer cores than drives", server(24, ("the 16 cores", None, 16)), 16, 16, "24 drives share the 16 cores"),
    ("a switch and few cores", server(24, PORT, ("the 6 cores", None, 6)), 4, 6, "carries 31507"),
    ("a link that is unknown", server(3, UNKNOWN), 1, 3, "what it or they can move is unknown"),
    ("a drive of which nothing is known", [*server(2, CORES), drive(2)], 1, 3, "what S2 shares"),
    ("loop devices", server(3, LOOPS), 1, 1, "3 drives share the disk or memory behind loop devices"),
    ("a loop device beside a drive", [drive(1, LOOPS), drive(2, ROOT)], 2, 2, "carry all 2"),
    ("CPUs by hand, twice", [drive(n, ROOT, cpus="0-3") for n in range(2)], 1, 1, "CPU 0 is given to S0 and S1"),
    ("one", server(1, CORES), 1, 1, "it is the only drive"),
]


@pytest.mark.parametrize(("drives", "sure", "most", "why"), [case[1:] for case in DECIDED], ids=[c[0] for c in DECIDED])
def test_what_drives_share_decides_or_leaves_it_to_reads(drives, sure, most, why):
    number, together, told = spec("auto", drives)
    assert number == most and why in told and (together is not None) is (sure < most)
    assert not together or (together.otherwise, together.numbers[0]) == (sure, most)


def test_namespaces_of_one_drive_run_one_after_the_other():
    two = [drive(number, CORES) for number in range(2)]
    two[1]["identity"]["serial"] = "S0"
    assert spec("auto", two)[::2] == (1, "S0 and S1 are one drive, S0")


@pytest.mark.parametrize(("asked", "number"), [(1, 1), ("2", 2), (24, 24)])
def test_a_number_that_is_given_is_not_questioned(asked, number):
    assert spec(asked, server(3, UNKNOWN)) == (number, None, "")


def test_no_reads_without_a_test():
    assert spec("auto", server(3, UNKNOWN), any_test=False).together is None


def test_a_run_that_only_purges_reads_nothing_to_find_the_number():
    identities = [{"selector": {"serial": name}, "identity": {**EXPECTED, "serial": name}} for name in ("S1", "S2")]
    (measured,) = load_plan([{"name": "a", "cells": [{"block_size": "4KiB", "read_pct": 0}]}])
    purged = dataclasses.replace(measured, cells=[], precondition=None)
    made = [planned_plans.plan_of([test], drives=identities, ssd_parallel_drives="auto") for test in (measured, purged)]
    assert [bool(plan.together) for plan in made] == [True, False]


def test_the_cells_only_read():
    asked = spec("auto", server(2, UNKNOWN)).together
    assert asked.repeats >= parallelism_search.FEWEST_REPEATS
    for cell in asked.cells:
        assert io_pattern.sides(cell) == {"read"} and ("rw=randread\n" in cell.job or "rw=read\n" in cell.job)


@pytest.mark.parametrize("count", [2, 3, 4, 8, 12, 24, 48, 96])
@pytest.mark.parametrize("part", [UNKNOWN, PORT])
def test_reads_take_three_minutes_at_most(count, part):
    drives = [drive(number, part, model="AB"[number % 2]) for number in range(count)]
    _number, together, _why = spec("auto", drives)
    low_s, high_s = parallel_drives.span_s(together, count)
    assert 0 <= low_s <= high_s <= 180
    # As many alone as the time allows, of both models.
    alone = {int(name[1:]) % 2 for name in together.alone} if together else set()
    assert len(alone) == (min(2, len(together.alone)) if together else 0)


def test_plan_mode_tells_how_long_it_takes():
    most, together, why = spec("auto", server(2, UNKNOWN))
    plan = dataclasses.replace(planned.plan_of(), parallel_drives=most, together=together, parallel_why=why)
    plan = dataclasses.replace(plan, drives=[planned.drive(tests=[], expected=EXPECTED)] * 2)
    line = plan_text.describe(plan, {})[0]
    assert line.startswith("h1: 2 drives, 1 to 2 at a time: 2 drives share") and "reads of at most 43 s find" in line
