# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The share of reads of a mixed cell, as its record in the journal tells it."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.results import cell_laws

MIXED = {"read_pct": 65, "threads": 1, "queue_depth": 1}


@pytest.mark.parametrize(
    ("reads", "cell", "says"),
    [
        (65_000, {}, ""),
        (65_800, {}, ""),  # 5.3 standard deviations
        (66_500, {}, "66500 of 100000 I/Os were reads, not 65%"),
        (35_000, {}, "35000 of 100000 I/Os were reads, not 65%"),
        (35_000, {"rate_iops": 100}, ""),
        (35_000, {"read_pct": 35}, ""),
    ],
)
def test_reads_and_writes_are_mixed_as_asked(reads, cell, says):
    event = {"round": 2, "cell": "c", "read": {"ios": reads}, "write": {"ios": 100_000 - reads}, "seen": {"run_s": 0.1}}
    found = cell_laws.contradictions(event, {**MIXED, **cell})
    assert found == ([f"round 2, c: {says}"] if says else [])
