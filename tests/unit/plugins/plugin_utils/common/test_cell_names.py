# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import cell_names


@pytest.mark.parametrize(
    ("name", "size_bytes", "expected"),
    [
        ("rand-preferred-w100-tc4-qd32", 16_384, "rand-16k-w100-tc4-qd32"),
        ("seq-preferred-r65-tc1-qd1-lead", 4_608, "seq-4608b-r65-tc1-qd1-lead"),
        ("rand-preferred-w100-tc4-qd32", None, "rand-preferred-w100-tc4-qd32"),
        ("rand-4k-w100-tc4-qd32", 16_384, "rand-4k-w100-tc4-qd32"),
        # A cell of streams may have any word for a name.
        ("jobs-preferred-3f2a", 16_384, "jobs-preferred-3f2a"),
    ],
)
def test_the_name_of_a_cell_on_a_drive(name, size_bytes, expected):
    assert cell_names.on_drive(name, size_bytes) == expected
    assert cell_names.is_preferred(name) == (name.split("-")[0] != "jobs" and "preferred" in name)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("rand-4k-w100-tc4-qd32", (4096, 0, 0, 0, 4, 32)),
        ("seq-1024k-r100-tc1-qd8-ramp5s", (1048576, 100, 0, 0, 1, 8)),
        ("rand-512b-r65-tc2-qd16-1000iops-batch4-lead", (512, 65, 1000, 4, 2, 16)),
        ("rand-4k-w100-most", (4096, 0, 0, 0)),
        ("rand-4k-w100-tc1to8-load256", (4096, 0, 0, 0, 8, 32)),
        ("seq-128k-r100-tcauto-load32", (131072, 100, 0, 0, 1, 32)),
        # More than a plan may ask for: a host's threads are looked for one by one, so many would take hours.
        ("rand-4k-w100-tc1to999999999989-load999999999989", (4096, 0, 0, 0)),
        ("rand-preferred-w100-tc4-qd32", ()),
        ("jobs-web-3f2a", ()),
    ],
)
def test_what_a_name_says_of_the_load(name, told):
    assert tuple(cell_names.parse(name).values()) == told
