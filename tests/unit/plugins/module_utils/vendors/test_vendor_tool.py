# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import collections

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.vendors.vendor_tool import ToolError, find_by_serial

Drive = collections.namedtuple("Drive", ["serial", "label"])
LISTED = [Drive(serial, f"{serial} (id {number})") for number, serial in enumerate(["S1", "S10", "", "T", "T"])]


def test_a_drive_is_found_by_its_whole_serial_number():
    assert find_by_serial(LISTED, " S10 ", "rssdm -L", "lists", "drive") is LISTED[1]


@pytest.mark.parametrize(
    "serial, says",
    [
        (
            "S",
            "rssdm -L lists no drives with the serial S; it lists S1 (id 0), S10 (id 1),  (id 2), T (id 3), T (id 4)",
        ),
        ("s1", "lists no drives with the serial s1;"),
        ("", "lists no drives with the serial (empty);"),
        ("T", "lists 2 drives with the serial T;"),
        ("0", "lists no drives with the serial 0;"),
    ],
)
def test_any_other_serial_number_is_refused(serial, says):
    with pytest.raises(ToolError) as error:
        find_by_serial(LISTED, serial, "rssdm -L", "lists", "drive")
    assert says in str(error.value)


def test_an_empty_list_is_told():
    with pytest.raises(ToolError, match="it shows no card$"):
        find_by_serial([], "C1", "fio-status", "shows", "card")
