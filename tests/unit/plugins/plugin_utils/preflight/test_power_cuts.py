# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps a host from having its power cut, before anything is erased, and what plan mode says of it."""

from __future__ import annotations

import types

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.records.host_snapshot import CutFilesystem, CutReach
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import PlannedPowerCut
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import power_cuts

ROOT = CutFilesystem("/", "/dev/nvme9n1p2", "ext4", ["nvme9n1"])
DATA = CutFilesystem("/srv", "/dev/sdb1", "xfs", ["sdb"])
MEMORY = CutFilesystem("/var/lib/ssdlab-fleet", "tmpfs", "tmpfs", [])
UUID = "4c4c4544-0042-3110-8051-b4c04f564433"
NOBODY = {"uuid": UUID, "serials": [], "state_dir": ROOT, "system": [ROOT], "further": [], "further_count": 0}
NOBODY.update(guests=[], guests_count=0)


def plan(mode="hard", cycles=20):
    asked = PlannedPowerCut(cycles=cycles, mode=mode)
    return types.SimpleNamespace(drives=[types.SimpleNamespace(tests=[types.SimpleNamespace(power_cut=asked)])])


def view(name="rack1-07", asked=None, drive="nvme0n1", **reach):
    facts = types.SimpleNamespace(cut_reach=CutReach(**{**NOBODY, **reach}))
    drives = [types.SimpleNamespace(identity=types.SimpleNamespace(kernel_name=drive))]
    return types.SimpleNamespace(name=name, asked=asked or {}, facts=facts, drives=drives)


@pytest.mark.parametrize(
    ("mode", "seen", "told"),
    [
        ("hard", view(), []),
        ("warm", view(asked={"bmc": "no vendor_bmc_address"}), []),
        ("hard", view(asked={"bmc": "no vendor_bmc_address"}), ["no vendor_bmc_address"]),
        ("pull", view(), ["pull is not available"]),
        ("hard", view(state_dir=MEMORY), ["ssd_state_dir lies on tmpfs"]),
        ("hard", view(state_dir=None), ["ssd_state_dir lies on nothing"]),
        ("hard", view(drive="nvme9n1"), ["which is under test", "holds the system"]),
        ("hard", view(further=[DATA], further_count=1), ["would also cut 1 further file system (/srv on sdb)"]),
        ("hard", view(guests=["virtual machine kvm (process 7)"], guests_count=1), ["(virtual machine kvm (process"]),
        ("hard", view(asked={"ssd_power_cut_others": "accept"}, further=[DATA], further_count=1), []),
    ],
)
def test_what_would_be_cut_wrongly_is_refused(mode, seen, told):
    found = power_cuts.findings([seen], {"rack1-07": plan(mode)}, "bmc")
    assert len(found) == len(told) and all(text in one.message for text, one in zip(told, found))
    assert all(one.host == "rack1-07" and one.concerns == "" for one in found)


def test_two_hosts_that_no_bmc_can_tell_apart_are_refused():
    views = [view("a"), view("b"), view("c", uuid="27946b59-9e44-4fa7-8e91-f3527a1ef094")]
    found = power_cuts.findings(views, {"a": plan(), "b": plan(), "c": plan()}, "bmc")
    assert [one.host for one in found] == ["a", "b"] and "no BMC can be told apart" in found[0].message


def test_a_host_that_told_nothing_is_refused_and_one_without_cuts_is_not():
    silent = view()
    silent.facts.cut_reach = None
    assert "did not tell" in power_cuts.findings([silent], {"rack1-07": plan()}, "bmc")[0].message
    assert power_cuts.findings([silent], {"rack1-07": types.SimpleNamespace(drives=[])}, "bmc") == []


def test_plan_mode_names_what_is_cut():
    seen = view(further=[DATA], further_count=1)
    told = "\n".join(power_cuts.lines(seen, plan()))
    assert (
        "would cut the host's power by its BMC 20 times" in told and "its system drive nvme9n1 (/ on nvme9n1)" in told
    )
    assert "what is cut besides: 1 further file system (/srv on sdb)" in told
    assert power_cuts.modes({"a": plan("warm"), "b": plan()}, ["a"]) == {"a": "warm"}
