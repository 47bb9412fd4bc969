# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.validity_limits import Limits
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import variable_rules


@pytest.mark.parametrize(
    "variable, value, says",
    [
        ("ssd_validity_limits", {}, ""),
        ("ssd_validity_limits", Limits()._asdict(), ""),
        ("ssd_validity_limits", {"idle_gap_s": "10"}, ""),
        (
            "ssd_validity_limits",
            {"idle_gap": 10},
            "unknown name 'idle_gap'; did you mean idle_gap_s? (known: other_io_share",
        ),
        ("ssd_validity_limits", {"zzz": 10}, "unknown name 'zzz' (known: other_io_share"),
        ("ssd_validity_limits", {"idle_gap_s": -1}, "idle_gap_s: -1 must be a number of at least 0"),
        ("ssd_validity_limits", {"idle_gap_s": "long"}, "must be a number"),
        ("ssd_validity_limits", [1], "must be a mapping"),
        ("ssd_unknown_causes", "warn", ""),
        ("ssd_unknown_causes", "disturb", ""),
        ("ssd_unknown_causes", True, "must be one of: warn, disturb"),
        ("ssd_unknown_causes", ["warn"], "must be one of: warn, disturb"),
    ],
)
def test_what_disturbs_a_cell_can_be_set(variable, value, says):
    found = variable_rules.problems({variable: value})
    assert (len(found) == 1 and says in found[0] and variable in found[0]) if says else found == []


@pytest.mark.parametrize(
    "variable, value, says",
    [
        ("precondition_passes", "2", ""),
        ("precondition_passes", "many", "precondition_passes: 'many' must be a whole number from 1 to 100"),
        ("precondition_passes", 0, "precondition_passes: 0 must be a whole number from 1 to 100"),
        ("precondition_block_size", "1MiB", ""),
        ("precondition_block_size", "1 MB", "precondition_block_size: '1 MB' must be a block size, such as 128KiB"),
        (
            "workload_ioengine",
            "io_urng",
            "must be one of: libaio, io_uring, io_uring_fixed, io_uring_polled; did you mean io_uring?",
        ),
        ("ssd_rated_tbw", [{"model": "*", "tbw": 7300}], ""),
        (
            "ssd_passing_programs",
            [{"path": "/a", "opens_for_write": True}],
            "a list of mappings with path, opens_for_writing",
        ),
        ("ssd_rated_tbw", [{"model": "*", "tbw": 1e300}], "a number of terabytes above 0, up to a billion"),
        ("ssd_step", "pruge", "ssd_step: 'pruge' must be one of: qualify, purge, precondition, tune"),
        ("ssd_collect_limits", "all", "ssd_collect_limits: 'all' must be a mapping"),
        ("ssd_folders_in_store", "maybe", "ssd_folders_in_store: 'maybe' must be true or false"),
    ],
)
def test_what_a_run_would_stumble_over_later_is_told_before_it(variable, value, says):
    found = variable_rules.problems({variable: value})
    assert (len(found) == 1 and says in found[0]) if says else found == []
