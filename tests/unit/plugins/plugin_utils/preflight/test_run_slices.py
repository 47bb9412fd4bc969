# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a later play of a run takes from how its drives are judged (preflight: test_decision_definitions.py)."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import run_slices

ONE, OTHER = {"metric": "iops", "min": 1}, {"metric": "iops", "min": 2}


@pytest.mark.parametrize(
    ("before", "criteria", "strict", "lost"),
    [
        ({}, None, None, []),
        ({"criteria": [ONE]}, [OTHER, ONE], "warn", []),
        ({"criteria": [ONE]}, [OTHER], "warn", ["criterion iops min 1"]),
        ({"criteria": [ONE, OTHER]}, None, "warn", ["criterion iops min 1", "criterion iops min 2"]),
        ({"criteria": ["no mapping"]}, "not a list", None, []),
        ({"unknown_causes": "spoil"}, [], None, ["ssd_unknown_causes spoil"]),
        ({"unknown_causes": "warn"}, [], "spoil", []),
    ],
)
def test_what_is_given_up(before, criteria, strict, lost):
    assert run_slices.given_up(before, criteria, strict) == lost
