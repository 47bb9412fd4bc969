# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pandas
import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.peers import long_table
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import distributions

FEW_DIGITS_APART = 200.0 + 2.9e-14


@pytest.mark.parametrize("metric", ["write_iops", "write_p99_latency_us"])
@pytest.mark.parametrize(
    "values", [(200.0, FEW_DIGITS_APART), (200.0, 200.0), (5e-324, 1e-323), (1.0, 1.7e308)], ids=repr
)
def test_drives_however_alike_have_a_strip(metric, values):
    """Two drives of one rate ended the report: numpy finds no 40 bins between them."""
    group = dict.fromkeys(long_table.FIGURE, "x") | {"metric": metric, "median": values[0], "firmware": "x"}
    table = pandas.DataFrame([{**group, "value": value} for value in values])
    (drawn,) = distributions.groups({"groups": [group]}, table)
    assert "of 2 drives" in drawn["strip"]
