# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import plan_groups


def block(number, kind="M, 1 TB", own=(), details=("    1. x",)):
    identity = f"M, serial S{number}, 1 TB"
    return plan_groups.Block(
        f"S{number}", "would erase", f"/dev/nvme{number}n1", kind, identity, list(own), list(details)
    )


def test_commands_that_differ_by_the_device_alone_are_told_once():
    blocks = [block(n, details=["    1. x", f"         nvme format /dev/nvme{n} --namespace-id=1"]) for n in range(2)]
    same = f"         nvme format {plan_groups.ITS_DEVICE} --namespace-id=1"
    assert plan_groups.lines(blocks, "h1", {})[-1] == same
    assert plan_groups.lines(blocks[:1], "h1", {})[-1] == "         nvme format /dev/nvme0 --namespace-id=1"


def test_a_drive_of_another_kind_has_a_line_of_its_own():
    lines = plan_groups.lines([*map(block, range(3)), block(3, kind="N, 2 TB")], "h1", {})
    assert lines == [
        "  would erase 3 drives (M, 1 TB):",
        "    S0 /dev/nvme0n1, S1 /dev/nvme1n1, S2 /dev/nvme2n1",
        "  S3: would erase /dev/nvme3n1 (M, serial S3, 1 TB)",
        "  each of these 4 drives:",
        "    1. x",
    ]


def test_drives_that_are_refused_are_not_counted_with_those_that_are_erased():
    refused = [block(number)._replace(where="nothing, as it is refused") for number in range(3, 6)]
    lines = plan_groups.lines([*map(block, range(3)), *refused], "h1", {})
    assert lines[0] == "  would erase 3 drives (M, 1 TB):"
    assert lines[2:5] == [f"  S{n}: would erase nothing, as it is refused (M, serial S{n}, 1 TB)" for n in range(3, 6)]


def test_what_was_told_of_a_host_is_not_told_again_of_the_next():
    told = {}
    assert plan_groups.lines([block(0)], "h1", told)[-1] == "    1. x"
    assert plan_groups.lines([block(1)], "h2", told)[1:] == ["    the same tests and times as on h1"]
    assert plan_groups.lines([block(2), block(3)], "h3", told)[2:] == [
        "  each of these 2 drives: the same tests and times as on h1"
    ]
    assert plan_groups.lines([block(4, details=["    1. y"])], "h4", told)[1:] == ["    1. y"]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["read 1,024 blocks in 0.15 s", "read 900 blocks in 0.2 s"], "read 900 to 1,024 blocks in 0.15 to 0.2 s"),
        (["the same 7"] * 3, "the same 7"),
        (["1, then", "12, then"], "1 to 12, then"),
        (["12 % used", "unknown"], None),
        (["900 MB in use", "1 GB in use"], None),
    ],
)
def test_lines_that_differ_in_numbers_alone_become_one(texts, expected):
    assert plan_groups.merged(texts) == expected
