# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A held drive as its campaign sees it."""

from __future__ import annotations

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.held import HeldDrive


def test_no_field_takes_the_place_of_a_method():
    """`look` once was both: what the last look found, and the method that every round of a campaign calls."""
    held = HeldDrive(Host(), {"entry": parse({"serial": "S1"}), "expected": {}}, {"run": "r"}, same_boot=True)
    assert not [name for name in vars(held) if hasattr(HeldDrive, name)]
