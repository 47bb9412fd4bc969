# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A vendor's settings, as they are and as they are requested."""

from __future__ import annotations

import dataclasses

import emulator
import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.records.vendor_tools import VendorSettings
from ansible_collections.ssdlab.fleet.plugins.module_utils.vendors import (
    active_settings,
    iomemory_settings,
    rssdm_settings,
)

MICRON = ("rssda", "S1")
CARD = ("fioa", "C1")


@pytest.fixture
def server(emulated, tmp_path):
    host = emulated(rssdm=[emulator.p420m(0, "S1")], cards=[emulator.card(0, "C1")])
    host.folder = str(tmp_path / "state")
    return host


def test_what_is_in_force_is_read(server):
    seen = active_settings.read(server, *MICRON, server.folder)
    assert seen == VendorSettings(
        tool="rssdm",
        settings={"interrupt_coalescing": "0xD200F", "power_limiting": False, "write_cache": True},
        pending={},
        error="",
    )
    assert not any(command[1] == "-M" for command in server.commands)
    assert active_settings.read(server, "nvme0n1", "S1", server.folder) is None


@pytest.mark.parametrize(
    "wanted, says",
    [
        ({}, []),
        ({"interrupt_coalescing": "0xD200F", "power_limiting": False}, []),
        ({"queue_depth": 64}, []),
        ({"queue_depth": 256}, ["its interrupt coalescing is 0xD200F, the inventory wants 0xD801F"]),
        ({"power_limiting": True}, ["its power limiting is False, the inventory wants True"]),
        ({"interrupt_coalescing": "0x1"}, ["interrupt coalescing 0x1 is refused"]),
    ],
)
def test_it_is_held_to_what_the_inventory_wants(server, wanted, says):
    found = active_settings.differences(active_settings.read(server, *MICRON, server.folder), wanted)
    assert len(found) == len(says) and all(text.startswith(start) for text, start in zip(found, says))


def test_what_waits_for_a_power_cycle_is_not_in_force(server):
    rssdm_settings.apply(server, "S1", rssdm_settings.requested({"queue_depth": 256}), server.folder)
    seen = active_settings.read(server, *MICRON, server.folder)
    assert seen.pending == {"interrupt_coalescing": "0xD801F"} and seen.settings["interrupt_coalescing"] == "0xD200F"
    assert active_settings.differences(seen, {"queue_depth": 256}) == [
        "its interrupt coalescing is 0xD200F, the inventory wants 0xD801F; that value is set but not yet in force",
    ]
    assert active_settings.pending(seen)[0].startswith(
        "its interrupt coalescing was set to 0xD801F but measured at 0xD200F"
    )
    emulator.power_cycle(server.machine)
    server.reboot("boot-2")
    after = active_settings.read(server, *MICRON, server.folder)
    assert (
        after.pending,
        active_settings.differences(after, {"queue_depth": 256}),
        active_settings.pending(after),
    ) == (
        {},
        [],
        [],
    )


def test_a_tool_that_fails_leaves_it_unknown_and_not_fine(server):
    seen = active_settings.read(server, "rssda", "OTHER", server.folder)
    assert seen.settings == {} and "rssdm -L lists no drives with the serial OTHER" in seen.error
    assert active_settings.differences(seen, {"queue_depth": 256}) == []
    assert active_settings.unknown(seen, {"queue_depth": 256}) == ["the vendor's settings are unknown: " + seen.error]
    shown = dataclasses.replace(seen, error="", settings={"interrupt_coalescing": None})
    assert active_settings.unknown(shown, {"queue_depth": 256}) == [
        "its interrupt coalescing is unknown, the inventory wants 0xD801F"
    ]
    assert active_settings.unknown(shown, {}) == []


def test_iomemorys_delay_counts_once_its_driver_is_loaded_anew(server):
    server.put("/sys/module/iomemory_vsl/parameters/iodrive_dma_delay", "16\n")
    assert active_settings.read(server, *CARD, server.folder).settings == {
        "dma_delay": 16,
        "size_pct": 100,
        "sector_bytes": 512,
    }
    iomemory_settings.apply_dma_delay(server, "31")
    seen = active_settings.read(server, *CARD, server.folder)
    assert (seen.settings["dma_delay"], seen.pending) == (16, {"dma_delay": 31})
    assert active_settings.differences(seen, {"dma_delay": "31"}) == [
        "its dma delay is 16, the inventory wants 31; that value is set but not yet in force"
    ]
    assert active_settings.differences(seen, {"dma_delay": "default"}) == active_settings.differences(seen, {}) == []
