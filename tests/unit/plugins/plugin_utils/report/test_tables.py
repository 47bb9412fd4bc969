# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import types

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import tables


def test_a_stream_that_only_trims_has_the_figures_of_its_trims():
    averages = [
        {"cell": "jobs-x", "metrics": {"iops": 250.0, "bandwidth": 2e6, "trim_iops": 20.0, "within_1ms_pct": 99.0}},
        {"cell": "jobs-x.trims", "metrics": {"trim_iops": 20.0, "trim_bandwidth": 1e6, "trim_within_1ms_pct": 12.5}},
    ]
    rows = tables.cells([{"id": "jobs-x"}], types.SimpleNamespace(averages=averages))
    assert [row["figures"][0] for row in rows] == ["250", "20"]
    assert [row["shares"] for row in rows] == [[("I/O ≤ 1 ms (%)", text)] for text in ("99", "12.5")]
