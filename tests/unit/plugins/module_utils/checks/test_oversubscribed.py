# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A PCI Express switch, or another link on the way, that is too narrow for the drives measured through it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.checks import link, table
from ansible_collections.ssdlab.fleet.plugins.module_utils.checks.base import (
    Check,
    Harmless,
    HostFacts,
)
from ansible_collections.ssdlab.fleet.tests.unit.plugins.module_utils.checks.machines import (
    GOOD_MACHINE,
    REQUIRED,
    device,
    drive,
    found,
    port,
)


def switch(lanes_down, width_up, count, parallel=1, under_test=None):
    """Drives of so many lanes behind one switch, all first generation as in the guide's example: (level, message) of
    each that is under test.
    """
    up, root = (
        port("0000:01:00.0", speed=2.5, width=width_up, max_speed=2.5, max_width=width_up),
        port("0000:00:02.0", speed=2.5, width=width_up),
    )
    below, drives = [], []
    for number in range(count):
        down = port(f"0000:02:0{number}.0", speed=2.5, width=lanes_down, max_speed=2.5, max_width=lanes_down)
        card = device(f"0000:0{number + 3}:00.0", speed=2.5, width=lanes_down, max_speed=2.5, max_width=lanes_down)
        above = (down.address, up.address, root.address)
        below += [replace(card, above=above), replace(down, above=above[1:])]
        drives.append(drive()._replace(path=[card, down, up, root]))
    devices = {item.address: item for item in [*below, replace(up, above=(root.address,)), root]}
    facts = HostFacts(GOOD_MACHINE, REQUIRED._replace(parallel_drives=parallel), drives[:under_test], devices)
    return [
        (item.level, item.message)
        for item in table.run(facts, {"pcie_slot": "ok"})
        if item.check == "pcie_oversubscribed"
    ]


def test_the_guides_balanced_and_oversubscribed_systems():
    """Appendix D: A has 16 lanes of cards and 16 to the root, B has 12 and 8; its report of such a bus says 3000 MB/s
    needed, 2000 there.
    """
    assert switch(4, 16, 4, parallel=4) == []
    told = switch(4, 8, 3, parallel=3)
    assert [level for level, _message in told] == ["warning"] * 3
    for _level, message in told:
        assert "need 3000 MB/s, its link of 2.5 GT/s x8 has 2000 MB/s" in message
        assert (
            "over-subscribed at 0000:01:00.0: the devices below it (0000:03:00.0, 0000:04:00.0, 0000:05:00.0)"
            in message
        )
        assert message.endswith("; what is measured at the same time (ssd_parallel_drives: 3) needs 3000 MB/s")


@pytest.mark.parametrize(
    "parallel, under_test, level, needs",
    [
        (1, 3, "ok", "needs 1000 MB/s, which it has"),
        (2, 3, "ok", "needs 2000 MB/s, which it has"),
        (3, 3, "warning", "needs 3000 MB/s"),
        (8, 3, "warning", "needs 3000 MB/s"),
        (3, 2, "ok", "needs 2000 MB/s, which it has"),
    ],
)
def test_an_oversubscribed_bus_harms_only_drives_that_are_measured_together(parallel, under_test, level, needs):
    told = switch(4, 8, 3, parallel, under_test)
    assert [found_level for found_level, _message in told] == [level] * under_test and all(
        needs in message for _level, message in told
    )


def test_a_bus_that_is_too_narrow_for_one_drive_alone_harms_it():
    ((level, message),) = switch(8, 4, 1)
    assert (
        level == "warning"
        and "need 2000 MB/s" in message
        and message.endswith("(ssd_parallel_drives: 1) needs 2000 MB/s")
    )


def test_the_widest_of_the_drives_count():
    card = device("0000:03:00.0", speed=2.5, width=8)
    facts = HostFacts(
        GOOD_MACHINE,
        REQUIRED._replace(parallel_drives=2),
        [drive()._replace(path=[replace(card, address=f"0000:0{bus}:00.0")]) for bus in (3, 4, 5)],
    )
    loads = {"0000:03:00.0": 1000.0, "0000:04:00.1": 2000.0, "0000:05:00.0": 1500.0, "0000:06:00.0": 9000.0}
    assert link.measured_at_once(facts, loads) == 3500.0


def test_what_harms_nothing_does_not_block_though_the_check_does():
    assert (
        table.level(Check("pcie_oversubscribed", "warning", "r"), Harmless("x"), {"pcie_oversubscribed": "blocks"})
        == "ok"
    )


def test_functions_of_one_device_share_its_link_and_bridges_load_nothing():
    one = drive({"speed": 2.5, "width": 4, "max_speed": 2.5})
    own = replace(one.path[0], above=("0000:00:01.0",))
    devices = {item.address: item for item in (own, one.path[1], replace(own, address="0000:01:00.1"))}
    facts = HostFacts(GOOD_MACHINE, REQUIRED, [one], devices)
    assert link.links_below(facts, "0000:00:01.0") == {"0000:01:00.0": 1000.0}


def test_an_unknown_link_on_the_way_is_told():
    (told,) = found(drive(bridges=[port(speed=None)]))["pcie_oversubscribed"]
    assert "the link at 0000:00:01.0, or one below it, is unknown" in told
