# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.limits import Limits
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import values


@pytest.mark.parametrize(
    "variable, value, says",
    [
        ("ssd_validity_limits", {}, ""),
        ("ssd_validity_limits", Limits()._asdict(), ""),
        ("ssd_validity_limits", {"idle_gap_s": "10"}, ""),
        ("ssd_validity_limits", {"idle_gap": 10}, "unknown name 'idle_gap'; known are other_io_share"),
        ("ssd_validity_limits", {"idle_gap_s": -1}, "idle_gap_s: -1 must be a number of at least 0"),
        ("ssd_validity_limits", {"idle_gap_s": "long"}, "must be a number"),
        ("ssd_validity_limits", [1], "must be a mapping"),
        ("ssd_unknown_causes", "warn", ""),
        ("ssd_unknown_causes", "spoil", ""),
        ("ssd_unknown_causes", True, "must be one of: warn, spoil"),
        ("ssd_unknown_causes", ["warn"], "must be one of: warn, spoil"),
    ],
)
def test_what_spoils_a_cell_can_be_set(variable, value, says):
    found = values.problems({variable: value})
    assert (len(found) == 1 and says in found[0] and variable in found[0]) if says else found == []
