# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The map of read tails over the rates of reads and writes."""

from __future__ import annotations

import types

from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.render_plan import load_plan
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import interference


def measured(cells, tails):
    """A measurement with these tails by (reads, writes), each cell at the rate asked but the last at half of it."""
    averages = []
    for cell, tail in zip(cells, tails):
        asked = cell["jobs"][0]["rate_iops"] if "jobs" in cell else cell["rate_iops"]
        rate = asked / 2 if cell is cells[-1] else asked
        averages.append({"cell": cell["id"], "metrics": {"read_p99_latency_us": tail, "read_iops": rate}})
    return types.SimpleNamespace(averages=averages)


def test_the_shipped_grid_is_a_map_of_tails_by_both_rates():
    (test,) = base.sparse_json(load_plan(["interference"]))
    cells = test["cells"]
    tails = [100 + 10 * index for index in range(len(cells))]
    found = interference.table(cells, measured(cells, tails))
    assert found["mixes"] == ["1,000 reads/s", "10,000 reads/s", "50,000 reads/s", "200,000 reads/s"]
    heads = ["reads alone", "400 writes/s", "1,600 writes/s", "4,000 writes/s", "8,000 writes/s"]
    assert [row["block_size"] for row in found["rows"]] == heads
    texts = [[value["text"] for value in row["values"]] for row in found["rows"]]
    assert texts[0] == ["100", "110", "120", "130"] and texts[1][0] == "140"
    # The drive did not reach the last rate: its tail is another load's.
    assert texts[-1][-1] == "(290)" and found["rows"][0]["values"][0]["heat"] == 0.0
    assert found["rows"][-1]["values"][-1]["heat"] == 1.0


def test_other_cells_make_no_map():
    (test,) = base.sparse_json(load_plan(["interference"]))
    cells = test["cells"]
    assert interference.table(cells, None) is None
    assert interference.table(cells[:4], measured(cells[:4], [1, 2, 3, 4])) is None
    unlimited = {**cells[-1], "jobs": [{**cells[-1]["jobs"][0]}, {**cells[-1]["jobs"][1], "rate_iops": None}]}
    assert interference.table([*cells[:-1], unlimited], measured([*cells[:-1], unlimited], range(1, 21))) is None
    assert interference.table(base.sparse_json(load_plan(["iops"])[0].cells), measured(cells, range(1, 21))) is None
