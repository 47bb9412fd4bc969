# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which jobs fill their buffers anew for each write."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import fio_sanity
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.render_plan import load_plan
from ansible_collections.ssdlab.fleet.tests.fixtures.plans import planned

MIXED = {"block_size": "4KiB", "read_pct": 70}
CELLS = [{"block_size": "4KiB", "read_pct": 0}, MIXED, {"block_size": "4KiB", "read_pct": 100}]
ZEROS = {"data": "zeros"}
TRIMS = {
    "name": "trims",
    "jobs": [
        {"name": "trim", "block_size": "4KiB", "trim": True, "range": {"to_pct": 20}},
        {"name": "mixed", "block_size": "4KiB", "read_pct": 50, "range": {"from_pct": 20}},
        {"name": "writes", "block_size": "4KiB", "read_pct": 0},
    ],
}


def refilling(*tests):
    """For each test of a plan, or phase: rw= of the sections of its cells that refill their buffers."""
    first = {"purge": False, "rounds": {"max": 1}, "cells": CELLS}
    plan = load_plan([{"name": f"t{number}", **first, **test} for number, test in enumerate(tests)])
    found = []
    for test in planned(plan)["drives"][0]["tests"]:
        sections = [job for cell in test["cells"] for job in list(fio_sanity.sections(cell["job"]).values())[1:]]
        found.append([options["rw"] for options in sections if options.get("refill_buffers") == "1"])
    return found


PHASE = {"name": "on", "rounds": {"max": 1}, "cells": [MIXED]}


@pytest.mark.parametrize(
    "tests, refills",
    [
        ([{}], [[]]),
        ([{"precondition": False}], [["randrw"]]),
        ([{"precondition": ZEROS}], [["randrw"]]),
        ([{"precondition": {"passes": 1}, "active_range_pct": 50}], [[]]),
        ([{"refill_buffers": True}], [["randwrite", "randrw", "randread"]]),
        # Another test's fill may be long overwritten, or never have been made.
        ([{}, {"precondition": False}], [[], ["randrw"]]),
        ([{"phases": [PHASE, {**PHASE, "name": "off"}]}], [[], [], []]),
        ([{"precondition": False, "phases": [PHASE]}], [["randrw"], ["randrw"]]),
        ([{"refill_buffers": True, "cells": [MIXED], "phases": [PHASE]}], [["randrw"], ["randrw"]]),
        # What was trimmed reads as zeros, for the other cells of the next round too.
        ([{"cells": [MIXED, TRIMS]}], [["randrw", "randrw"]]),
        ([{"cells": [{"access": "sequential", **MIXED}], "precondition": False}], [["rw"]]),
    ],
)
def test_cells_refill_where_they_would_write_back_what_is_not_random(tests, refills):
    assert refilling(*tests) == refills


@pytest.mark.parametrize("data, refills", [("random", "1"), ("zeros", None)])
def test_a_fill_of_random_data_refills(data, refills):
    fill = planned(load_plan([{"name": "t", "cells": CELLS, "precondition": {"data": data}}]))["drives"][0]["tests"][0]
    for job in (fill["precondition"]["job"], fill["precondition"]["remainder_job"]):
        (options,) = list(fio_sanity.sections(job).values())[1:]
        assert (options.get("refill_buffers"), options.get("zero_buffers")) == (refills, None if refills else "1")
