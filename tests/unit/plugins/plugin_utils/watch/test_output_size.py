# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much the terminal shows after a bad night: pytest -s prints lines and bytes."""

from __future__ import annotations

import re

import pytest

from ansible_collections.ssdlab.fleet.tests.fixtures import bad_nights


@pytest.mark.parametrize(
    ("drives", "equal", "most_lines", "most_bytes"),
    [(6, True, 12, 1500), (6, False, 16, 2500), (96, True, 12, 2500), (96, False, 45, 6000)],
)
def test_what_a_person_has_to_read(drives, equal, most_lines, most_bytes):
    night = bad_nights.night(drives, equal)
    lines = night.printed()
    size_bytes = len("\n".join(lines).encode())
    print(f"{drives} drives, {'equal' if equal else 'unequal'} causes: {len(lines)} lines, {size_bytes:,} bytes")
    print("\n".join(lines))
    assert len(lines) <= most_lines and size_bytes <= most_bytes
    assert lines[-1].startswith(f"0 of {drives} drives passed; {drives} not measured validly: host busy")
    assert lines[-1].endswith("host busy") == equal
    # Nobody has to look for the name of a drive elsewhere.
    told = "\n".join(lines)
    assert all(re.search(rf"\b{drive['drive']}\b", told) for drive in night.summary["drives"])
