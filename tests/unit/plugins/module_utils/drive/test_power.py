# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The power state of an NVMe drive."""

from __future__ import annotations

import json

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import power

FLAGS = {"psds": [{"flags": 0}, {"flags": 0}, {"flags": 3}]}
NAMED = {"psds": [{"non-operational_state": 0}, {"non-operational_state": 0}, {"non-operational_state": 1}]}


@pytest.mark.parametrize(
    "text, number",
    [
        ("get-feature:0x2 (Power Management), Current value:00000000", 0),
        ("get-feature:0x02 (Power Management), Current value:0x00000001\n", 1),
        ("get-feature:0x02 (Power Management), Current value:00000142", 2),  # the workload hint is in the bits above
        ("NVMe status: INVALID_FIELD", None),
        ("", None),
    ],
)
def test_the_number(text, number):
    assert power.current(text) == number


@pytest.mark.parametrize("told", [FLAGS, NAMED])
def test_a_state_that_does_no_io_is_known_as_such(fake, told):
    fake.answers["nvme id-ctrl"] = (0, json.dumps(told), "")
    seen = []
    for number in (1, 2, 3):
        fake.answers["nvme get-feature"] = (0, f"Current value:0000000{number}", "")
        seen.append(power.read(fake, "/dev/nvme0n1"))
    assert seen == [power.State(1, True), power.State(2, False), power.State(3, None)]


def test_what_does_not_answer_is_unknown(fake):
    assert power.read(fake, "/dev/nvme0n1") == power.State(None, None)
    fake.answers["nvme get-feature"] = (0, "Current value:00000000", "")
    for text in ("", "[]", "{}", '{"psds": 3}', '{"psds": [{}]}'):
        fake.answers["nvme id-ctrl"] = (0, text, "")
        assert power.read(fake, "/dev/nvme0n1") == power.State(0, None)


@pytest.mark.parametrize(
    ("told", "number"),
    [(FLAGS, 2), (NAMED, 2), ({"psds": FLAGS["psds"][:2]}, None), ({"psds": [{}]}, None), ({}, None)],
)
def test_the_state_of_least_power_in_which_no_io_is_done(fake, told, number):
    fake.answers["nvme id-ctrl"] = (0, json.dumps(told), "")
    assert power.deepest(fake, "/dev/nvme0n1") == number


@pytest.mark.parametrize(
    ("code", "reports", "problem"),
    [
        (0, "Current value:00000004", ""),
        (0, "Current value:00000000", "it reports power state 0, not 4"),
        (0, "", "it reports power state unknown, not 4"),
        (1, "", "nvme set-feature /dev/nvme0n1 --feature-id=2 --value=4 ended with 1 and said: Invalid Field"),
    ],
)
def test_a_drive_is_in_a_state_only_if_it_says_so(fake, code, reports, problem):
    fake.answers["nvme set-feature"] = (code, "", "Invalid Field" if code else "")
    fake.answers["nvme get-feature"] = (0, reports, "")
    assert power.enter(fake, "/dev/nvme0n1", 4) == problem
