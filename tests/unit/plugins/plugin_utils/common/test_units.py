# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import units


@pytest.mark.parametrize(
    ("size", "text"),
    [(512, "512 B"), (64 << 20, "67.11 MB"), (480_103_981_056, "480.1 GB"), (7_681_501_126_656, "7.682 TB")],
)
def test_what_a_drive_holds_is_decimal(size, text):
    assert units.data_size(size) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (512, "512 B"), (4608, "4608 B"), (4096, "4 KiB"), (131072, "128 KiB"), (1 << 20, "1 MiB")],
)
def test_block_sizes_are_binary(size, text):
    assert units.block_size(size) == text
