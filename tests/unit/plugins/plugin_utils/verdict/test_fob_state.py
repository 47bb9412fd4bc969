# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A test begins from fresh after a purge that the PTS takes for one, whatever the host calls it."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.verdict import fob_state

PURGE = {"method": "nvme_sanitize_block", "verified": True, "purge_class": "pts"}


@pytest.mark.parametrize(
    ("purge", "says"),
    [
        (PURGE, ""),
        ({**PURGE, "verified": False}, "nvme_sanitize_block was not verified"),
        ({**PURGE, "method": "deallocate", "purge_class": "not_pts"}, "deallocate is not a PTS purge"),
        ({**PURGE, "method": "deallocate"}, "deallocate is not a PTS purge"),
        ({**PURGE, "method": "wish"}, "wish is not a PTS purge"),
        (None, "it was not purged"),
    ],
)
def test_why_a_test_did_not_begin_from_fresh(purge, says):
    assert fob_state.why_not({"purge": purge, "precondition": None}) == says
    title = fob_state.title("Write saturation", {"purge": purge, "precondition": None})
    assert title == (f"Writes, not from fresh ({says})" if says else "Write saturation")
