# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts that a power cut left off: what is on record of them, who is switched on, and who is not."""

from __future__ import annotations

import json

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.records.host_snapshot import CutReach
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.power import left_off, switch_on_again, switches
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.power.bmc import BmcAccess, BmcIdentity

UUID, OTHER = "4c4c4544-0042-3110-8051-b4c04f564433", "27946b59-9e44-4fa7-8e91-f3527a1ef094"
ACCESS = BmcAccess("redfish", "bmc.example", "operator", "secret")
LEFT = left_off.LeftOff("r", "2026-11-29T01:00:00.000Z", 0.1, UUID, [])


class Bmc:
    """A BMC, and the host that it switches."""

    def __init__(self, uuid=UUID, answers=True, state="off"):
        self.uuid, self.answers, self.state, self.orders = uuid, answers, state, 0

    def identity(self):
        return BmcIdentity((self.uuid,), ())

    def power(self):
        return self.state

    def switch_on(self):
        self.orders += 1
        self.state = "on"

    def ask(self):
        if self.state != "on" or not self.answers:
            raise OSError("no route to host")

    def host(self):
        reach = CutReach(LEFT.uuid, LEFT.serials, None, [], [], 0, [], 0)
        return switch_on_again.Host(LEFT, switches.BmcSwitch(ACCESS, reach, 0.0, bmc=self), self.ask)


@pytest.mark.parametrize(
    ("bmc", "orders", "is_on", "problem"),
    [
        (Bmc(), 1, True, ""),
        (Bmc(answers=False), 1, True, "a: it is switched on, and gave no answer for 0.1 s"),
        (Bmc(uuid=OTHER), 0, False, "it is another machine's; switch it on by hand"),
        # Switched on by hand, or never off.
        (Bmc(uuid=OTHER, state="on"), 0, True, ""),
    ],
)
def test_only_the_host_s_own_bmc_switches_it_on(bmc, orders, is_on, problem):
    said = []
    done = switch_on_again.all_of({"a": bmc.host()}, 1.0, False, said.append)
    assert bmc.orders == orders and done.is_on == ["a"] * is_on
    assert problem in " ".join(done.problems) and bool(problem) == bool(done.problems)
    assert said[0] == f"a: {LEFT.text}"


def test_what_only_tells_switches_nothing():
    bmc, said = Bmc(), []
    assert switch_on_again.all_of({"a": bmc.host()}, 1.0, True, said.append) == ([], [], [])
    assert bmc.orders == 0 and "restore.yml switches it on" in said[0]


def test_a_mark_is_found_once_nobody_holds_it_and_until_the_host_is_on(tmp_path):
    mark, reader = left_off.Mark(str(tmp_path), "a"), left_off.Mark(str(tmp_path), "a")
    assert reader.find() is None and left_off.said(str(tmp_path), "a") == ""
    mark.set(LEFT)
    assert reader.find() is None
    mark.release()  # as the kernel does for who dies
    assert "run r cut its power at 2026" in left_off.said(str(tmp_path), "a")
    assert reader.find() == LEFT
    reader.clear()
    assert reader.find() is None
    mark.set(LEFT)
    mark.clear()
    assert left_off.said(str(tmp_path), "a") == ""


def test_a_mark_that_is_no_record_is_none(tmp_path):
    mark = left_off.Mark(str(tmp_path), "a")
    (tmp_path / left_off.FOLDER).mkdir()
    for text in ("", "x", "[]", json.dumps({"run_id": 1})):
        (tmp_path / left_off.FOLDER / "a.json").write_text(text)
        assert mark.find() is None
