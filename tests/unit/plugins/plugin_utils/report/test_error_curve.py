# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wrong blocks of a burn-in by pass."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import error_curve


def record(*counts):
    return {"integrity": {"by_pass": [{"elapsed_s": 60.0 * n, "wrong_blocks": c} for n, c in enumerate(counts, 1)]}}


@pytest.mark.parametrize("found", [{}, {"integrity": None}, {"integrity": {"passes": 2}}])
def test_other_tests_have_none(found):
    assert error_curve.of_test(found) is None


@pytest.mark.parametrize(
    ("counts", "passes", "wrong_passes", "first", "step", "bars"),
    [
        ([0, 0, 0], 3, 0, None, 1, 0),
        ([0, 2, 0, 1], 4, 2, 2, 1, 2),
        ([0] * 120 + [5], 121, 1, 121, 3, 1),
        ([1] * 1000, 1000, 1000, 1, 17, 59),
    ],
)
def test_a_burn_in_has_a_bar_for_each_few_passes(counts, passes, wrong_passes, first, step, bars):
    found = error_curve.of_test(record(*counts))
    told = found["passes"], found["wrong_passes"], found["first"], found["step"]
    assert told == (passes, wrong_passes, first, step) and found["elapsed_s"] == 60 * passes
    assert str(found["picture"]).count("z") == bars
