# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a look is said to prove, against what it sees."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import data_scan, scan_offsets
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.block_classifier import BlockClassifier, DataScan
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common.units import data_size
from ansible_collections.ssdlab.fleet.tests.fixtures.detection import detection_probability

SIZE = 8 << 20
DATA, BLANK = b"data" * 1024, bytes(4096)


def test_the_issues_example():
    scan = DataScan(size_bytes=2_750_000_000_000, blocks=182_000)
    text = "read 182,000 blocks: 104.4 MB of data anywhere on 2.75 TB would have been found with 99.9 % probability"
    assert scan_offsets.scan_text(scan.record(), data_size) == text
    told = scan_offsets.scan_text(scan.record(allocated_bytes=8 << 20), data_size)
    assert told == text + "; the drive reports 8.389 MB in use"


@given(st.integers(1, 10**6), st.integers(10**7, 10**14))
def test_the_chance_and_the_size_that_is_told_agree(blocks, size):
    data = scan_offsets.seen_bytes(blocks, size, whole=False)
    assert detection_probability(data, blocks, size) >= 0.999 - 1e-6 or data == size
    assert data <= 4096 or detection_probability(data * 0.9 - 8192, blocks, size) < 0.9991


class Simulated:
    """A drive of blocks, of which these hold data, that answers as a reader does."""

    def __init__(self, blocks, data):
        self.size_bytes, self._data = blocks * 4096, data

    def read(self, offsets):
        return b"".join(DATA if offset // 4096 in self._data else BLANK for offset in offsets)

    def sees(self, batches):
        """Whether one look at so many random blocks, 32 at a time, sees data."""
        seeing = BlockClassifier(DataScan(self.size_bytes), (), True, data_scan.never)
        offsets = itertools.islice(scan_offsets.random_offsets(self.size_bytes, 4096, scan_offsets.AT_A_TIME), batches)
        data_scan._some(self, seeing, offsets, 1.0, lambda: 0.0)
        return seeing.look.foreign is not None


@pytest.mark.parametrize("arranged", ["in one piece", "scattered", "across blocks"])
@settings(max_examples=15, deadline=None)
@given(blocks=st.integers(64, 4096), part=st.floats(0.0005, 0.05), batches=st.integers(1, 4))
def test_data_is_seen_at_least_as_often_as_is_told(arranged, blocks, part, batches):
    """And no more often, by these blocks alone: a chance that is told too small costs nights of ssd_look: full. Data
    that lies across blocks touches one more.
    """
    count, looks = max(1, int(blocks * part)), 400
    first = random.randrange(blocks - count)
    across = arranged == "across blocks"
    data = random.sample(range(blocks), count) if arranged == "scattered" else range(first, first + count + across)
    drive = Simulated(blocks, set(data))
    told = detection_probability(count * 4096, 32 * batches, drive.size_bytes)
    seen = sum(drive.sees(batches) for _look in range(looks)) / looks
    # Beyond six deviations less than once in a hundred million, and as much for a chance near 0 or 1.
    noise = 6 * math.sqrt(max(told * (1 - told), 0.01) / looks)
    assert told <= seen + noise
    assert across or seen <= told + noise


def test_a_look_at_nothing_proves_nothing():
    assert scan_offsets.seen_bytes(0, 10**12, whole=False) == 10**12 and math.isclose(
        detection_probability(4096, 10**5, 4096 * 10**6), 1 - (1 - 1e-6) ** 10**5
    )
    record = DataScan(SIZE, SIZE // 4096, 0.5, True).record()
    assert scan_offsets.scan_text(record, data_size) == "read all 8.389 MB in 0.5 s"
