# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drives in service where others are to be erased: a list that cannot be read, and entries that name no drive."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import service_drives, service_plans
from ansible_collections.ssdlab.fleet.tests.fixtures import host_answers

SERIAL = {"serial": "SN1"}


@pytest.mark.parametrize(
    "given, is_wrong",
    [
        ("all", False),
        ("", False),
        (None, False),
        ([], False),
        ([SERIAL], False),
        ("ALL", True),
        ("all ", True),
        ({"all": True}, True),
        (SERIAL, True),
        (True, True),
    ],
)
def test_a_list_that_is_none_leaves_the_host_out(given, is_wrong):
    view = host_answers.of("h", {"ssd_drives": [SERIAL], service_drives.LIST: given})
    found = service_plans.protection(view)
    assert [(one.host, one.concerns) for one in found] == [("h", "")] * is_wrong
    assert all("is not a list" in one.message and "or all" in one.message for one in found)
    reads = {**(view.asked or {}), service_drives.READS_SERVICE: True}
    assert service_plans.protection(view._replace(asked=reads)) == []


def test_an_entry_that_names_no_drive_is_told():
    views = [host_answers.of("h", {}, service_not_found=["GONE1"]), host_answers.of("i", {})]
    (warning,) = service_plans.warnings(views)
    assert warning.host == "h" and "GONE1" in warning.message
