# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's part of a power-cut test, on a host and a BMC that are played, by a clock of their own."""

from __future__ import annotations

import signal

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.host_snapshot import CutReach
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import PlannedPowerCut
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.run_files import DriveStatus, PowerCutStatus, Status
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.power import cut_cycles, switches
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.power.bmc import BmcAccess, BmcError, BmcIdentity
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.watch.remote_status import HostStatus

UUID, OTHER = "4c4c4544-0042-3110-8051-b4c04f564433", "27946b59-9e44-4fa7-8e91-f3527a1ef094"
ASKED = PlannedPowerCut(cycles=3, mode="hard", min_write_s=2, max_write_s=9, back_s=100)
ACCESS = BmcAccess("redfish", "bmc.example", "operator", "secret")
TIME = "2026-11-28T21:00:00.000Z"


def drive(name, phase="power_cut", step="writing", cycle=1):
    cut = PowerCutStatus(cycle, 3, step, TIME) if phase == "power_cut" else None
    outcome = "complete" if phase == "done" else None
    return DriveStatus(name, None, phase, outcome, None, 1, 1, 0, None, None, None, None, "", None, None, None, cut)


def status(*drives):
    return Status(1, "r", "r", "h", "b", 1, None, None, "0", "running", TIME, TIME, False, "", list(drives))


class Machine:
    """A host, its BMC and the time. script: what the next questions to the BMC do instead of what they are to."""

    def __init__(self, boots_s=30.0, steps=("preparing", "writing"), ends_after=3):
        self.now, self.boot, self.power_is, self.boots_s = 0.0, 1, "on", boots_s
        self.cuts, self.back_at, self.running, self.steps, self.ends_after = [], 0.0, True, steps, ends_after
        self.looks, self.script, self.said, self.notes, self.uuid, self.starts = 0, [], [], [], UUID, 0
        self.marks = []

    def clock(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds

    # the host
    def look(self):
        self.now += 0.1
        if self.power_is != "on" or self.now < self.back_at:
            return None
        boot = f"boot-{self.boot}"
        if not self.running:
            return HostStatus("dead", status(), boot)
        if len(self.cuts) >= self.ends_after:
            return HostStatus("finished", status(drive("a", "done")), boot)
        step = self.steps[min(self.looks, len(self.steps) - 1)]
        self.looks += 1
        return HostStatus("running", status(drive("a", step=step, cycle=len(self.cuts) + 1)), boot)

    def go_on(self):
        self.starts += 1
        self.running, self.looks = True, 0
        return ""

    def forget(self):
        pass

    # its mark, and in which state the power was then
    def set(self):
        self.marks.append(self.power_is)

    def clear(self):
        self.marks.append(self.power_is)

    # the BMC
    def _ask(self):
        answer = self.script.pop(0) if self.script else None
        if isinstance(answer, Exception):
            raise answer  # pylint: disable=raising-bad-type
        return answer

    def identity(self):
        return BmcIdentity((self.uuid,), ())

    def power(self):
        return self._ask() or self.power_is

    def force_off(self):
        if self._ask() != "lost" and self.power_is == "on":
            self.power_is, self.running = "off", False
            self.cuts.append(self.now)

    def switch_on(self):
        if self.power_is == "off" and self._ask() != "lost":
            self.power_is, self.boot, self.back_at = "on", self.boot + 1, self.now + self.boots_s

    def last_line(self):
        return "the last line of its console (SOL): GRUB error"

    def play(self, reach_uuid=UUID):
        reach = CutReach(reach_uuid, [], None, [], [], 0, [], 0)
        switch = switches.BmcSwitch(ACCESS, reach, 15.0, self, self, self.clock, self.sleep)
        fixed = {"clock": self.clock, "sleep": self.sleep, "uniform": lambda least, most: (least + most) / 2}
        return cut_cycles.Cycles(self, switch, ASKED, self.said.append, self.notes.append, **fixed).play()


def test_each_cycle_is_cut_once_and_the_job_goes_on():
    machine = Machine()
    assert machine.play() == cut_cycles.Played(3)
    assert machine.marks == ["on"] * 6
    assert machine.starts == 3 and [note["cycle"] for note in machine.notes] == [1, 2, 3]
    assert all(30 <= note["back_s"] < 35 for note in machine.notes)


def test_a_job_that_is_done_is_not_cut():
    machine = Machine(ends_after=0)
    assert machine.play() == cut_cycles.Played(0) and not machine.cuts


def test_it_goes_on_where_another_play_left_off():
    """The job died with the power, and nobody started it again."""
    machine = Machine()
    machine.cuts, machine.running = [0.0], False
    assert machine.play() == cut_cycles.Played(2) and machine.starts == 3


def test_a_host_that_is_not_back_is_told_and_not_waited_for_any_longer():
    machine = Machine(boots_s=1e9)
    played = machine.play()
    assert played.cuts == 1 and not played.is_back and "did not come back within 100 s" in played.problem
    assert "look at its console; the last line of its console (SOL): GRUB error" in played.problem
    assert machine.notes[-1]["problem"] in played.problem and machine.now < 200


def test_a_host_that_goes_on_in_the_same_boot_was_not_cut():
    """The BMC says so, but it was another machine's power."""
    machine = Machine()
    machine.force_off = lambda: setattr(machine, "power_is", "off")
    machine.switch_on = lambda: setattr(machine, "power_is", "on")
    played = machine.play()
    assert "has not booted anew" in played.problem and played.is_back and len(machine.notes) == 1


@pytest.mark.parametrize(
    "script",
    [
        [BmcError("503")],
        ["lost", *["on"] * 10],
        [None, BmcError("timed out"), BmcError("timed out"), "PoweringOff"],
        [None, None, BmcError("500"), *[BmcError("timed out")] * 5],
    ],
)
def test_a_slow_bmc_and_one_that_loses_orders_is_asked_again(script):
    machine = Machine()
    machine.script = list(script)
    assert machine.play() == cut_cycles.Played(3)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_ends_a_play_waits_until_its_host_is_on(number):
    machine, came = Machine(), []

    def switch_off():
        Machine.force_off(machine)
        signal.raise_signal(number)

    machine.force_off = switch_off
    before = signal.signal(number, lambda *_received: came.append(machine.power_is))
    try:
        assert machine.play() == cut_cycles.Played(3)
    finally:
        signal.signal(number, before)
    assert came == ["on"] * 3


def test_a_cut_that_could_not_be_marked_is_not_done():
    """Nobody would know of the host, should the controller die."""
    machine = Machine()

    def fails():
        raise OSError(28, "No space left on device", "/results/switched-off/a.json")

    machine.set = fails
    played = machine.play()
    assert not machine.cuts and played.is_back and "switched-off/a.json can't be written: No space" in played.problem


def test_a_bmc_that_does_nothing_ends_it_before_anything_is_lost():
    machine = Machine()
    machine.force_off = lambda: None
    played = machine.play()
    assert played.cuts == 0 and played.is_back and "did not switch the power off within 120 s" in played.problem


def test_a_bmc_that_switches_nothing_on_is_asked_for_long():
    machine = Machine()
    machine.switch_on = lambda: None
    played = machine.play()
    assert not played.is_back and "did not switch the power on within 600 s" in played.problem


def test_a_bmc_that_becomes_another_hosts_cuts_nothing():
    """Its address moved in between."""
    machine = Machine()
    machine.go_on = lambda: setattr(machine, "uuid", OTHER) or Machine.go_on(machine)
    played = machine.play()
    assert len(machine.cuts) == 1 and "is not proved to be this host's" in played.problem and played.is_back


def test_no_power_is_cut_of_a_host_that_is_another():
    machine = Machine()
    played = machine.play(OTHER)
    assert not machine.cuts and "is not proved" in played.problem


def test_a_job_that_dies_by_itself_is_not_started_for_ever():
    machine = Machine()
    machine.running = False
    machine.go_on = lambda: setattr(machine, "starts", machine.starts + 1) or ""
    assert "died 3 times" in machine.play().problem and machine.starts == 3 and not machine.cuts


@pytest.mark.parametrize(
    ("drives", "cycle"),
    [
        ([drive("a")], 1),
        ([drive("a", cycle=2), drive("b", cycle=3)], 3),
        ([drive("a"), drive("b", "queued")], 1),
        ([drive("a"), drive("b", "done")], 1),
        ([drive("a"), drive("b", step="verifying")], None),
        ([drive("a"), drive("b", step="preparing")], None),
        ([drive("a"), drive("b", "purge")], None),
        ([drive("a", "measure")], None),
        ([drive("a", "done")], None),
        ([], None),
    ],
)
def test_a_host_is_cut_only_once_all_of_its_drives_are_written_to(drives, cycle):
    assert cut_cycles.ready_cycle(status(*drives)) == cycle
    assert base.to_json(status(*drives))["drives"] is not None
