# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host that measured other cells than the run asks for is found out, whatever they are called."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.results import asked_cells

NAME = "rand-4k-w100-tc4-qd32"
CELL = {"id": NAME, "block_size_bytes": 4096, "read_pct": 0, "threads": 4, "queue_depth": 32, "runtime_s": 60}
MIXED = {**CELL, "id": "rand-8k-r65-tc4-qd32", "block_size_bytes": 8192, "read_pct": 65}
SMALL = "rand-512b-w100-tc4-qd32"


@pytest.mark.parametrize(
    ("cells", "about", "says"),
    [
        ([CELL], {"cells": [NAME], "runtimes_s": [60]}, ""),
        ([CELL, MIXED], {"cells": [NAME, MIXED["id"]]}, ""),
        ([CELL], {}, ""),
        ([], {"cells": [NAME]}, ""),
        ([{"id": "c", "threads": 7}], {"cells": ["c"]}, ""),
        ([{**CELL, "id": "rand-4k-w100-most", "threads": 9}], {"cells": ["rand-4k-w100-most"]}, ""),
        ([CELL], {"cells": [NAME, MIXED["id"]]}, "lacks cells that the run asks for: rand-8k-r65-tc4-qd32"),
        ([CELL, MIXED], {"cells": [NAME]}, "has cells that the run does not ask for: rand-8k-r65-tc4-qd32"),
        ([{**CELL, "threads": 1, "queue_depth": 1}], {"cells": [NAME]}, f"{NAME} (threads 1, queue_depth 1)"),
        ([{**CELL, "block_size_bytes": 131072}], {"cells": [NAME]}, f"{NAME} (block_size_bytes 131072)"),
        ([{**CELL, "rate_iops": None, "batch": 0}], {"cells": [NAME]}, ""),
        ([{**CELL, "rate_iops": 100}], {"cells": [NAME]}, f"{NAME} (rate_iops 100)"),
        ([{**MIXED, "read_pct": 95}], {"cells": [MIXED["id"]]}, "(read_pct 95)"),
    ],
)
def test_cells_are_those_that_the_run_asks_for(cells, about, says):
    found = asked_cells.problems({cell["id"]: cell for cell in cells}, about)
    assert says in "; ".join(found) and bool(found) == bool(says)


def test_what_a_drive_cannot_do_is_left_out_and_its_preferred_size_is_its_own():
    about = {
        "cells": ["rand-preferred-w100-tc4-qd32", SMALL],
        "steady_state": {"tracked": [{"cell": "rand-preferred-w100-tc4-qd32", "metric": "write_iops"}]},
    }
    spec = {"cells": [CELL], "not_applicable": [{"id": SMALL, "reason": "the logical block has 4096 B"}]}
    made = asked_cells.on_drive(about, 4096, spec)
    assert made["steady_state"]["tracked"] == [{"cell": NAME, "metric": "write_iops"}]
    assert asked_cells.problems({NAME: CELL}, made) == []
    assert asked_cells.problems({NAME: CELL}, asked_cells.on_drive(about, 4096, {"cells": [CELL]}))


def test_a_host_leaves_out_no_more_than_the_controller_did():
    about = {"cells": [NAME, SMALL]}
    spec = {"cells": [CELL], "not_applicable": [{"id": SMALL, "reason": "the drive can't"}]}
    assert asked_cells.problems({NAME: CELL}, asked_cells.on_drive(about, 4096, spec, known=[SMALL])) == []
    (problem,) = asked_cells.problems({NAME: CELL}, asked_cells.on_drive(about, 4096, spec, known=[]))
    assert problem == f"the host's plan lacks cells that the run asks for: {SMALL}"


def test_a_cell_that_is_another_one_on_this_drive_leaves_that_one_in():
    own = "rand-preferred-w100-tc4-qd32"
    for known, spec in (([own], {}), (None, {"not_applicable": [{"id": own}]})):
        made = asked_cells.on_drive({"cells": [own, NAME, MIXED["id"]]}, 4096, spec, known)
        assert asked_cells.problems({NAME: CELL, MIXED["id"]: MIXED}, made) == []
        assert asked_cells.problems({MIXED["id"]: MIXED}, made) == [
            f"the host's plan lacks cells that the run asks for: {NAME}, {NAME}"
        ]


@pytest.mark.parametrize(
    ("about", "preferred", "known", "cells"),
    [
        ({"cells": [NAME, SMALL]}, None, [SMALL], [NAME]),
        ({"cells": ["rand-preferred-w100-tc4-qd32", SMALL]}, 4096, [], [NAME, SMALL]),
        # Nobody knows what that one is called.
        ({"cells": ["rand-preferred-w100-tc4-qd32", SMALL]}, None, [], []),
        ({}, None, [], []),
    ],
)
def test_the_controller_knows_the_cells_of_a_drive_without_its_hosts_plan(about, preferred, known, cells):
    assert asked_cells.expected(asked_cells.on_drive(about, preferred, {}, known)) == cells


def test_a_cell_that_lost_some_of_its_sizes_is_measured_all_the_same():
    spec = {"cells": [CELL], "not_applicable": [{"id": NAME, "reason": "512 B: left out"}, {"id": SMALL, "reason": ""}]}
    made = asked_cells.on_drive({"cells": [NAME, SMALL]}, None, spec)
    assert made["left_out"] == [SMALL] and asked_cells.expected(made) == [NAME]
