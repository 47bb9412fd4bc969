# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nights with a few disturbances each: tests of healthy drives count, their rates are right, and bad drives fail."""

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.ssdlab.fleet.tests.fixtures import simulated_fleet, simulated_night
from ansible_collections.ssdlab.fleet.tests.fixtures.simulated_night import Night

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a host job trusts the folders of root alone")


def test_a_night_with_disturbances_gives_figures_that_count(tmp_path):
    found = simulated_night.play(str(tmp_path), Night(1, hosts=2, drives=4))
    assert found.holds() and found.tests >= 10, (found.told(), found.wrong)


def test_a_busy_host_that_nobody_sees_gives_wrong_rates(tmp_path):
    """So the nights could fail."""
    found = simulated_night.play(str(tmp_path), Night(1, hosts=1, drives=6, limits={"steal_max": 1, "waited_max": 1}))
    assert found.worst == pytest.approx(simulated_fleet.STOLEN, abs=0.01), (found.told(), found.wrong)


def test_what_is_refused_or_does_not_answer_costs_the_others_nothing(tmp_path):
    night = Night(2, hosts=2, drives=4, staged=["refused"], lost=["blocked", "unreachable"])
    found = simulated_night.play(str(tmp_path), night)
    assert found.holds() and found.tests == 14, (found.told(), found.wrong)


def test_sick_drives_fail_and_nobody_else_does(tmp_path):
    found = simulated_night.play(str(tmp_path), Night(3, hosts=2, drives=4, staged=simulated_fleet.SICK))
    assert found.holds() and found.tests == 8, (found.told(), found.wrong)


def test_a_drive_that_is_pulled_between_two_cells_fails_and_the_others_go_on(tmp_path):
    # Of night 7 it is the first drive.
    found = simulated_night.play(str(tmp_path), Night(7, hosts=1, drives=2, staged=["gone"]))
    assert found.holds() and found.tests == 2, (found.told(), found.wrong)
    (ledger,) = tmp_path.glob("*/h0-state/drives/S7-0-0-*.json")
    kept = json.loads(ledger.read_text())
    assert kept["state"] == "evidence" and "drive_gone" in kept["reason"], kept


def test_drives_that_are_reset_together_are_the_hosts_fault(tmp_path):
    night = Night(4, hosts=2, drives=4, staged=(), reset_together=3)
    found = simulated_night.play(str(tmp_path), night)
    assert found.holds() and found.tests == 10, (found.told(), found.wrong)


@pytest.mark.thorough
def test_a_week_of_nights_of_a_fleet(tmp_path):
    found = simulated_night.Outcome()
    for number in range(1, simulated_night.NIGHTS + 1):
        found = found.with_night(
            simulated_night.play(str(tmp_path), simulated_night.of_week(number, hosts=4, drives=24))
        )
    assert found.holds(), (found.told(), found.wrong)
