# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a look reads."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import scan_offsets
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.facts import Extent

MIB = 1 << 20
SIZE = 8 * MIB
EXTENTS = st.lists(st.tuples(st.integers(0, SIZE), st.integers(0, MIB)).map(lambda pair: Extent(*pair)), max_size=5)


@given(extents=EXTENTS, few=st.booleans())
def test_what_a_drive_says_it_holds_is_looked_at(extents, few):
    most = scan_offsets.ALL_AIMED if few else 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan_offsets, "ALL_AIMED", most)
        seen = [
            offset for offsets in itertools.islice(scan_offsets.aimed_offsets(SIZE, extents), 80) for offset in offsets
        ]
    within = {
        block * 4096
        for one in extents
        for block in range(one.offset // 4096, min(SIZE, one.offset + one.length + 4095) // 4096)
    }
    assert set(seen) <= within and all(0 <= offset <= SIZE - 4096 for offset in seen)
    if few and len(within) < 2000:
        assert set(seen) == within
    assert {one.offset // 4096 * 4096 for one in extents if one.offset // 4096 * 4096 in within and one.length} <= set(
        seen
    )


def test_two_looks_fall_on_other_blocks():
    first, second = (next(scan_offsets.random_offsets(1 << 40, 4096, 32)) for _look in range(2))
    assert first != second and all(offset % 4096 == 0 and 0 <= offset < 1 << 40 for offset in first + second)
