# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import fleet_checks
from ansible_collections.ssdlab.fleet.tests.fixtures import host_answers

SNAPSHOT = {
    "bios": {"system_vendor": "Maker", "system": "M1", "version": "1.0"},
    "cpu": {"microcode": "0x1"},
    "memory": {"total_bytes": 64 << 30},
    "kernel": {"release": "6.1"},
    "command_line": "root=/dev/sda1 quiet",
    "tunables": {"clock_source": "tsc"},
    "tools": {"fio": {"path": "/usr/bin/fio", "version": "3.33"}, "nvme": None},
}


def view(name, *drives, levels=None, **changes):
    """A host with drives (serial, model, firmware), and a snapshot in which `changes` replaces whole parts."""
    entries = [
        {"drive": serial, "identity": {"model": model, "firmware": firmware}} for serial, model, firmware in drives
    ]
    return host_answers.of(
        name, {"preflight_levels": levels or {}}, drives=entries, checks=[], snapshot={**SNAPSHOT, **changes}
    )


def told(*views):
    return {
        seen.name: [(item.check, item.level, item.message) for item in seen.checks]
        for seen in fleet_checks.added(views)
    }


def test_hosts_and_drives_that_are_alike_find_nothing():
    alike = [
        view("h1", ("S1", "A", "1"), ("S2", "B", "2")),
        view("h2", ("S3", "A", "1"), ("S4", None, "9"), ("S5", "B", None)),
    ]
    assert told(*alike) == {"h1": [], "h2": []}


def test_one_model_with_two_firmwares_is_told_to_every_host_that_has_one():
    message = "drives of the model A have different firmware: 1 on h1 (S1), h2 (S3); 2 on h2 (S4)"
    seen = told(
        view("h1", ("S1", "A", "1")), view("h2", ("S3", "A", "1"), ("S4", "A", "2")), view("h3", ("S5", "B", "7"))
    )
    assert seen == {
        "h1": [("fleet_firmware", "warning", message)],
        "h2": [("fleet_firmware", "warning", message)],
        "h3": [],
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bios": {**SNAPSHOT["bios"], "version": "1.1"}}, "BIOS: 1.0 on h1; 1.1 on h2"),
        ({"cpu": {"microcode": "0x2"}}, "microcode: 0x1 on h1; 0x2 on h2"),
        ({"memory": {"total_bytes": 32 << 30}}, "memory: 32 GiB on h2; 64 GiB on h1"),
        ({"kernel": {"release": "6.2"}}, "kernel: 6.1 on h1; 6.2 on h2"),
        ({"command_line": "root=/dev/sda1 quiet idle=poll"}, "kernel command line: quiet on h1; quiet idle=poll on h2"),
        ({"tunables": {"clock_source": "hpet"}}, "clock source: hpet on h2; tsc on h1"),
        ({"tools": {"fio": {"path": "/usr/bin/fio", "version": "3.40"}}}, "fio: 3.33 on h1; 3.40 on h2"),
    ],
)
def test_what_hosts_should_have_alike(changes, message):
    expected = [("fleet_hosts", "warning", "the hosts differ in " + message)]
    assert told(view("h1"), view("h2", **changes)) == {"h1": expected, "h2": expected}


@pytest.mark.parametrize(
    "changes",
    [
        {"command_line": "quiet root=/dev/nvme0n1p2"},
        {"memory": {"total_bytes": (64 << 30) - 300000000}},
        {
            "bios": {**SNAPSHOT["bios"], "system": "M2", "version": "7"},
            "cpu": {"microcode": "0x7"},
            "memory": {"total_bytes": 8 << 30},
            "command_line": "x",
        },
        {"bios": {}, "cpu": {}, "memory": {}, "kernel": {}, "command_line": None, "tools": {}},
    ],
    ids=["the host's own root", "a little less memory", "another make", "nothing is known"],
)
def test_what_may_differ(changes):
    assert told(view("h1"), view("h2", **changes)) == {"h1": [], "h2": []}


def bios(unknown="", pending=None, **attributes):
    return {"bios_settings": {"attributes": attributes, "unknown": unknown, "pending": pending or {}}}


def test_bios_attributes_are_compared_one_by_one_within_a_make():
    other = {"bios": {**SNAPSHOT["bios"], "system": "M2"}}
    seen = told(
        view("h1", **bios(ProcC1E="On", AssetTag="1", Delay=60)),
        view("h2", **bios(ProcC1E="Off", AssetTag="2", Delay=60)),
        view("h3", **{**bios(ProcC1E="Never"), **other}),
        view("h4", **bios("the BMC b4: timed out")),
        view("h5"),
    )
    message = "the hosts differ in BIOS attributes: ProcC1E: Off on h2; On on h1"
    assert seen["h1"] == seen["h2"] == [("fleet_hosts", "warning", message)]
    unknown = ("bios_unknown", "warning", "the BIOS attributes are unknown: the BMC b4: timed out")
    assert (seen["h3"], seen["h4"], seen["h5"]) == ([], [unknown], [])


def test_what_waits_for_a_boot_is_told():
    message = "BIOS attributes wait for the next boot: ProcC1E=Off"
    assert told(view("h1", **bios(pending={"ProcC1E": "Off"}, ProcC1E="On"))) == {
        "h1": [("bios_pending", "warning", message)]
    }


def test_each_hosts_inventory_chooses_the_level_and_an_unchecked_host_stays_so():
    seen = told(
        view("h1", ("S1", "A", "1"), levels={"fleet_firmware": "blocks"}),
        view("h2", ("S2", "A", "2"), levels="nonsense"),
    )
    assert [seen[host][0][1] for host in ("h1", "h2")] == ["blocks", "warning"]
    (unchecked,) = fleet_checks.added([host_answers.of("h3", {})])
    assert unchecked.checks is None
