# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import emulator
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.vendors import iomemory
from ansible_collections.ssdlab.fleet.plugins.module_utils.vendors.vendor_tool import ToolError, find_by_serial

# Lines of `fio-status -a` 3.2.16, as published with the driver (RemixVSL/iomemory-vsl, README).
RECORDED = """Found 1 ioMemory device in this system
Driver version: 3.2.16 build 1731

Adapter: Single Controller Adapter
\tFusion-io ioDrive2 1.205TB, Product Number:F00-001-1T20-CS-0001, SN:1241D0259, FIO SN:1241D0259
\tioDrive2 Adapter Controller, PN:PA004137009
\tExternal Power: NOT connected
\tPCIe Bus voltage: avg 12.02V
\tPCIe Power limit threshold: 24.75W
\tConnected ioMemory modules:
\t  fct0:\tProduct Number:F00-001-1T20-CS-0001, SN:1241D0259

fct0\tAttached
\tioDrive2 Adapter Controller, Product Number:F00-001-1T20-CS-0001, SN:1241D0259
\tioDrive2 Adapter Controller, PN:PA004137009
\tLocated in slot 0 Center of ioDrive2 Adapter Controller SN:1241D0259
\tPowerloss protection: protected
\tPCI:00:04.0, Slot Number:3
\tVendor:1aed, Device:2001, Sub vendor:1aed, Sub device:2001
\tFirmware v7.1.15, rev 110356 Public
\t1205.00 GBytes device size
\tFormat: v500, 2353515625 sectors of 512 bytes
\tPCIe negotiated link: 4 lanes at 5.0 Gt/sec each, 2000.00 MBytes/sec total
\tInternal temperature: 64.47 degC, max 64.97 degC
\tReserve space status: Healthy; Reserves: 100.00%, warn at 10.00%
\tActive media: 100.00%
\tRated PBW: 17.00 PB, 99.46% remaining
\tContained VSUs:
\t  fioa:\tID:0, UUID:0f402a7e-9948-7a4f-a2d0-7b0cb4d1ecda

fioa\tState: Online, Type: block device
\tID:0, UUID:0f402a7e-9948-7a4f-a2d0-7b0cb4d1ecda
\t1205.00 GBytes device size
\tFormat: 2353515625 sectors of 512 bytes
"""
# `fio-status` 3.2.15 of a card with two modules (same source, an older README).
DUO = """
Found 2 ioMemory devices in this system with 1 ioDrive Duo
Driver version: 3.2.15 build 1700

Adapter: Dual Adapter
    Fusion-io ioDrive Duo 640GB, Product Number:FS3-204-320-CS, SN:440178, FIO SN:440178
    PCIe Power limit threshold: 24.75W
    Connected ioMemory modules:
      fct0: SN:443248
      fct1: SN:443247

fct0    Attached
    ioDIMM3 320G MLC, SN:443248
    Located in slot 0 Upper of ioDrive Duo HL SN:440178
    PCI:0b:00.0, Slot Number:17
    Firmware v7.1.13, rev 109322 Public
    320.00 GBytes device size
    Contained VSUs:
      fioa: ID:0, UUID:43836c20-2782-4279-91a3-25ac72c1a270

fioa    State: Online, Type: block device
    320.00 GBytes device size

fct1    Detached
    ioDIMM3 320G MLC, SN:443247
    Located in slot 1 Lower of ioDrive Duo HL SN:440178
    PCI:0c:00.0, Slot Number:17
"""

# What pt-summary keeps of `fio-status -a` 3.1.5 (percona-toolkit, samples/Linux/004/fio-004): modules of a Duo differ
# after a hyphen, and the line of a module's name has its serial number alone. The rest of the sections is as above.
DUO2 = """Found 2 ioMemory devices in this system with 1 ioDrive Duo
Fusion-io driver version: 3.1.5 build 126

Adapter: Dual Controller Adapter
\tFusion-io ioDrive2 Duo 2.41TB, Product Number:F01-001-2T41-CS-0001, SN:1150D0121, FIO SN:1150D0121
\tConnected ioMemory modules:
\t  fct0:\tSN:1150D0121-1121
\t  fct1:\tSN:1150D0121-1111

fct0\tAttached as 'fioa' (block device)
\tSN:1150D0121-1121
\tLocated in slot 0 Upper of ioDrive2 Adapter Controller SN:1150D0121
\tPCI:0b:00.0
\tFirmware v7.0.0, rev 107322 Public

fct1\tAttached as 'fiob' (block device)
\tSN:1150D0121-1111
\tPCI:0c:00.0
\tFirmware v7.0.0, rev 107322 Public
"""


def test_a_recorded_card():
    (card,) = iomemory.parse_status(RECORDED)
    assert (card.control, card.state, card.serial, card.block, card.pci_address) == (
        "/dev/fct0",
        "attached",
        "1241D0259",
        "fioa",
        "00:04.0",
    )
    assert (card.size_bytes, card.sector_bytes, card.advertised_bytes, card.size_pct) == (
        1205000000000,
        512,
        1205000000000,
        100,
    )
    assert (card.link_lanes, card.link_speed_gts, card.temperature_c, card.reserve) == (4, 5.0, 64.47, "Healthy")
    assert (card.reserves_pct, card.reserves_warn_pct, card.writes_left_pct, card.power_loss) == (
        100.0,
        10.0,
        99.46,
        "protected",
    )
    assert (card.firmware, card.bus_errors, card.trouble) == ("v7.1.15", None, None)


def test_two_modules_of_one_card():
    first, second = iomemory.parse_status(DUO)
    assert [(card.control, card.serial, card.state, card.block) for card in (first, second)] == [
        ("/dev/fct0", "443248", "attached", "fioa"),
        ("/dev/fct1", "443247", "detached", None),
    ]
    assert first.advertised_bytes == second.advertised_bytes == 320 * 10**9
    assert (first.sector_bytes, first.size_pct) == (None, None)


def test_modules_whose_serial_numbers_differ_after_a_hyphen():
    cards = iomemory.parse_status(DUO2)
    assert [(card.serial, card.block, card.model) for card in cards] == [
        ("1150D0121-1121", "fioa", "Fusion-io ioDrive2 Duo 2.41TB"),
        ("1150D0121-1111", "fiob", "Fusion-io ioDrive2 Duo 2.41TB"),
    ]
    assert find_by_serial(cards, "1150D0121-1111", "fio-status", "shows", "card").control == "/dev/fct1"
    with pytest.raises(ToolError, match="no cards"):
        find_by_serial(cards, "1150D0121", "fio-status", "shows", "card")


def test_the_emulator_reads_as_what_was_recorded(emulated):
    host = emulated(cards=[emulator.card(0, "1241D0259", pci="00:04.0")])
    (recorded,) = iomemory.parse_status(RECORDED)
    assert iomemory.cards(host) == [recorded]


@pytest.mark.parametrize(
    "old, new, changes",
    [
        ("fct0\tAttached", "fct0\tAttached as 'fiob' (block device)", {"block": "fiob"}),
        (
            "fct0\tAttached",
            "fct0\tStatus unknown: Driver is in MINIMAL MODE",
            {"state": "unknown", "block": None, "trouble": "Status unknown: Driver is in MINIMAL MODE"},
        ),
        ("fct0\tAttached", "fct0", {"state": "unknown", "trouble": "it states none", "block": None}),
        (
            "Powerloss protection: protected",
            "ACTIVE WARNINGS: The ioMemory is currently running in a minimal state.",
            {"trouble": "ACTIVE WARNINGS: The ioMemory is currently running in a minimal state."},
        ),
        (
            "External Power: NOT connected",
            "PCIe bus errors: correctable, unsupported request",
            {"bus_errors": "correctable, unsupported request"},
        ),
        ("ioDrive2 1.205TB", "ioMemory SX300-1300", {"advertised_bytes": 1300 * 10**9}),
        ("ioDrive2 1.205TB", "a card", {"advertised_bytes": None}),
        (
            "Format: v500, 2353515625 sectors",
            "Format: v500, 2353515624 sectors",
            {"size_bytes": None, "sector_bytes": None},
        ),
        (
            "Reserve space status: Healthy; Reserves: 100.00%",
            "Media status: Write-reduced; Reserves: 9.50%",
            {"reserve": "Write-reduced", "reserves_pct": 9.5, "reserves_warn_pct": 10.0},
        ),
        ("\tRated PBW: 17.00 PB, 99.46% remaining\n", "", {"writes_left_pct": None}),
        ("Internal temperature: 64.47", "Internal temperature: 6.4.7", {"temperature_c": None}),
    ],
)
def test_variants(old, new, changes):
    (card,) = iomemory.parse_status(RECORDED.replace(old, new))
    assert {key: getattr(card, key) for key in changes} == changes


def test_a_card_without_a_serial_number_of_its_own_is_left_out():
    own = "ioDrive2 Adapter Controller, Product Number:F00-001-1T20-CS-0001, SN:1241D0259"
    assert iomemory.parse_status(RECORDED.replace(own, "ioDrive2 Adapter Controller")) == []
    assert iomemory.parse_status(RECORDED.replace("SN:1241D0259", "")) == []


def test_argument_lists():
    assert iomemory.format_arguments("/dev/fct0", 4096, 80) == [
        "fio-format",
        "-y",
        "-b",
        "4096",
        "-s",
        "80%",
        "/dev/fct0",
    ]
    assert iomemory.beacon_arguments("/dev/fct0", False) == ["fio-beacon", "-0", "/dev/fct0"]
    for sector_bytes, size_pct in ((520, 90), (512, 0), (512, 101), (512, "90"), (512, 90.5)):
        with pytest.raises(ToolError, match="is refused"):
            iomemory.format_arguments("/dev/fct0", sector_bytes, size_pct)


def test_the_report_is_where_the_tool_says(emulated, tmp_path):
    host = emulated(cards=[emulator.card(0, "C")], bugreport_dir=str(tmp_path))
    host.root = "/"
    path = iomemory.bugreport(host)
    assert path.startswith(str(tmp_path)) and path.endswith(".tar.bz2")


def test_a_tool_that_is_missing_or_fails_is_told(fake, emulated):
    with pytest.raises(ToolError, match="fio-util"):
        iomemory.cards(fake)
    fake.answers["fio-bugreport"] = (0, "no file\n", "")
    with pytest.raises(ToolError, match="no file"):
        iomemory.bugreport(fake)
    with pytest.raises(ToolError, match="ended with 1 and said: Error: no driver"):
        iomemory.cards(emulated(cards=[], status_fails=True))


ODD = ["fct9", "fioa State", "Format: 1 sectors of 0 bytes", "PCIe negotiated link: 99999 lanes at . Gt/sec"]
LINES = st.lists(st.sampled_from((RECORDED + DUO).splitlines() + ODD) | st.text(), max_size=40)


@given(LINES.map("\n".join) | st.text())
def test_garbage_never_becomes_a_card_without_a_name(text):
    for card in iomemory.parse_status(text):
        assert card.serial and card.control.startswith("/dev/fct") and card.state in ("attached", "detached", "unknown")
        assert card.block is None or card.state == "attached"
        assert isinstance(card.size_pct, (int, type(None)))
