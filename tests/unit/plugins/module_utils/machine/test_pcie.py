# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import struct

import emulator
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.machine import pcie

# A root port's configuration space as far as the slot's capabilities, with the Express capability behind a power
# management one.
PM_AT, EXPRESS_AT = 0x40, 0x80


def config(slot_capabilities, flags=0x0142, express_id=0x10, status=0x10):
    data = bytearray(256)
    data[0x06], data[0x34] = status, PM_AT
    data[PM_AT : PM_AT + 2] = bytes([0x01, EXPRESS_AT])
    data[EXPRESS_AT : EXPRESS_AT + 4] = bytes([express_id, 0]) + struct.pack("<H", flags)
    data[EXPRESS_AT + 0x14 : EXPRESS_AT + 0x18] = struct.pack("<I", slot_capabilities)
    return bytes(data)


@pytest.mark.parametrize(
    "data, watts",
    [
        (config(75 << 7), 75.0),
        (config(250 << 7 | 1 << 15), 25.0),
        (config(0xF0 << 7), 250.0),
        (config(0xF0 << 7 | 1 << 15), 24.0),
        (config(0), None),
        (config(75 << 7, flags=0x0042), None),
        (config(75 << 7, express_id=0x05), None),
        (config(75 << 7, status=0), None),
        (config(75 << 7)[:64], None),
        (b"", None),
    ],
    ids=[
        "75 W",
        "scale 0.1",
        "code F0h",
        "F0h is a figure at another scale",
        "never told",
        "no slot",
        "no PCIe",
        "no list",
        "no root",
        "nothing",
    ],
)
def test_slot_power_is_read_from_the_slot_capabilities(data, watts):
    assert pcie.slot_power_w(data) == watts


@pytest.mark.parametrize(
    "control, sizes", [(0x2810, (128, 512)), (0x5930, (256, 4096)), (0, (128, 128)), (None, (None, None))]
)
def test_packet_sizes_are_read_from_device_control(control, sizes):
    data = bytearray(config(0))
    data[EXPRESS_AT + 8 : EXPRESS_AT + 10] = struct.pack("<H", control or 0)
    assert pcie.packet_sizes(bytes(data[:64] if control is None else data)) == sizes


def test_a_list_that_leads_back_to_itself_ends():
    data = bytearray(config(75 << 7))
    data[PM_AT + 1] = PM_AT
    assert pcie.slot_power_w(bytes(data)) is None


@settings(deadline=None)
@given(st.binary(max_size=512))
def test_any_configuration_space_gives_watts_or_nothing(data):
    watts = pcie.slot_power_w(data)
    assert watts is None or 0 < watts <= 300


@pytest.mark.parametrize(
    "text, gts",
    [
        ("16.0 GT/s PCIe", 16.0),
        ("8 GT/s", 8.0),
        ("2.5 GT/s PCIe", 2.5),
        ("64.0 GT/s PCIe", 64.0),
        ("Unknown", None),
        ("Unknown speed", None),
        (None, None),
    ],
)
def test_rates_of_all_kernels(text, gts):
    assert pcie.speed_gts(text) == gts


@pytest.mark.parametrize("text, lanes", [("4", 4), ("16", 16), ("0", None), ("255", None), ("x4", None), (None, None)])
def test_widths(text, lanes):
    assert pcie.lanes(text) == lanes


@settings(deadline=None)
@given(st.text(max_size=40))
def test_any_text_is_a_figure_or_unknown(text):
    assert pcie.speed_gts(text) is None or pcie.speed_gts(text) >= 0
    assert pcie.lanes(text) is None or pcie.lanes(text) > 0
    assert pcie.aer_total(text, "TOTAL_ERR_COR") is None or pcie.aer_total(text, "TOTAL_ERR_COR") >= 0


# The kernel's own example (sysfs-bus-pci-devices-aer_stats).
CORRECTABLE = """Receiver Error 2
Bad TLP 0
Bad DLLP 0
RELAY_NUM Rollover 0
Replay Timer Timeout 0
Advisory Non-Fatal 0
Corrected Internal Error 0
Header Log Overflow 0
TOTAL_ERR_COR 2"""


def test_the_total_counts_or_the_sum_where_one_message_told_of_several():
    assert pcie.aer_total(CORRECTABLE, "TOTAL_ERR_COR") == 2
    assert pcie.aer_total(CORRECTABLE.replace("Bad TLP 0", "Bad TLP 5"), "TOTAL_ERR_COR") == 7
    # A kernel that counts an error of a kind that has no line here.
    assert pcie.aer_total(CORRECTABLE.replace("TOTAL_ERR_COR 2", "TOTAL_ERR_COR 9"), "TOTAL_ERR_COR") == 9
    assert pcie.aer_total("", "TOTAL_ERR_COR") is None


def counters(*counts):
    return {"a": dict(zip(("correctable", "nonfatal", "fatal"), counts)) if counts else None}


@pytest.mark.parametrize(
    "before, after, rose, fell",
    [
        (counters(1, 2, 3), counters(1, 2, 3), {}, []),
        (counters(1, 0, 0), counters(4, 0, 1), {"a": {"correctable": 3, "fatal": 1}}, []),
        (counters(9, 0, 0), counters(2, 0, 0), {}, ["a"]),
        (counters(), counters(2, 0, 0), {"a": {"correctable": 2}}, []),
        (counters(1, 0, 0), counters(), {}, []),
    ],
    ids=["still", "rose", "reset", "appeared", "gone"],
)
def test_what_counters_rose_by(before, after, rose, fell):
    assert (pcie.aer_increase(before, after), pcie.aer_fell(before, after)) == (rose, fell)


def test_a_function_is_read_with_its_way_to_the_root(fake):
    fake.pci("0000:00:01.0", bridge=True, config=config(75 << 7), max_link_speed="16.0 GT/s PCIe", max_link_width="4")
    fake.pci("0000:00:01.0", "0000:01:00.0", aer=(1, 2, 3), current_link_speed="8.0 GT/s PCIe", current_link_width="2")
    fake.link("/sys/bus/pci/devices/0000:01:00.0/driver", "/sys/bus/pci/drivers/nvme")
    drive, port = pcie.path_to_root(fake, "0000:01:00.0")
    assert (drive.address, drive.speed_gts, drive.width, drive.driver) == ("0000:01:00.0", 8.0, 2, "nvme")
    assert drive.aer == {"correctable": 1, "nonfatal": 2, "fatal": 3} and drive.max_width is None
    assert (port.address, port.slot_power_w, port.max_speed_gts, port.aer) == (
        "0000:00:01.0",
        75.0,
        16.0,
        None,
    )
    assert pcie.topology(fake) == {"0000:00:01.0": [], "0000:01:00.0": ["0000:00:01.0"]}
    assert pcie.path_to_root(fake, None) == []


def test_the_function_behind_a_block_device(fake):
    path = fake.pci("0000:00:01.0", bridge=True) and fake.pci("0000:00:01.0", "0000:01:00.0")
    fake.put(path + "/nvme/nvme0/transport", "pcie")
    block = fake.disk("nvme0n1", "259:0", path + "/nvme/nvme0")
    fake.link(block + "/device", path + "/nvme/nvme0")
    assert pcie.address_of(fake, "nvme0n1") == "0000:01:00.0"
    fake.loop(0, "/tmp/a.img")
    assert pcie.address_of(fake, "loop0") is None


def test_the_function_of_an_iomemory_card_is_told_by_fio_status(emulated):
    """Its block device has no parent in sysfs."""
    host = emulated(cards=[emulator.card(0, "C1"), emulator.card(1, "C2")])
    host.pci("0000:00:01.0", bridge=True)
    host.pci("0000:00:01.0", "0000:05:00.0", current_link_speed="5.0 GT/s", current_link_width="4")
    for name, number in (("fioa", "251:0"), ("fiob", "251:16")):
        host.block(name, number, "")
    assert pcie.address_of(host, "fiob") == "0000:05:00.0"
    assert [device.address for device in pcie.path_to_root(host, "0000:05:00.0")] == ["0000:05:00.0", "0000:00:01.0"]
    assert pcie.address_of(host, "fioa") is None  # 04:00.0 is not in this machine


def test_a_drive_behind_vmd_has_its_own_domain(fake):
    """Intel VMD: the drives' root ports are in a domain of their own below the controller, which is no bridge."""
    controller = ["0000:5d:05.5", "pci10000:00", "10000:00:02.0"]
    fake.pci("0000:5d:05.5", base="/sys/devices/pci0000:5d", **{"class": "0x010400"})
    fake.pci(
        *controller,
        base="/sys/devices/pci0000:5d",
        bridge=True,
        current_link_speed="8.0 GT/s PCIe",
        current_link_width="4",
    )
    path = fake.pci(
        *controller,
        "10000:01:00.0",
        base="/sys/devices/pci0000:5d",
        current_link_speed="8.0 GT/s PCIe",
        current_link_width="4",
    )
    fake.put(path + "/nvme/nvme0/transport", "pcie")
    fake.link(fake.disk("nvme0n1", "259:0", path + "/nvme/nvme0") + "/device", path + "/nvme/nvme0")
    assert pcie.address_of(fake, "nvme0n1") == "10000:01:00.0"
    devices = pcie.path_to_root(fake, "10000:01:00.0")
    assert [device.address for device in devices if pcie.is_bridge(device.class_code)] == ["10000:00:02.0"]
    assert pcie.topology(fake)["10000:01:00.0"] == ["10000:00:02.0", "0000:5d:05.5"]


def test_virtual_functions_load_no_link_of_their_own(fake):
    fake.pci("0000:00:01.0", bridge=True)
    physical = fake.pci("0000:00:01.0", "0000:01:00.0")
    fake.link(fake.pci("0000:00:01.0", "0000:01:10.0") + "/physfn", physical)
    assert set(pcie.topology(fake)) == {"0000:00:01.0", "0000:01:00.0"}


def test_native_multipath_leads_to_the_one_controller_and_to_none_of_two(fake):
    subsystem = "/sys/devices/virtual/nvme-subsystem/nvme-subsys0"
    for number in (0, 1):
        path = fake.pci(f"0000:0{number + 1}:00.0")
        fake.put(f"{path}/nvme/nvme{number}/transport", "pcie")
    fake.link(subsystem + "/nvme0", "/sys/devices/pci0000:00/0000:01:00.0/nvme/nvme0")
    block = fake.disk("nvme0n1", "259:0", subsystem)
    fake.link(block + "/device", subsystem)
    assert pcie.address_of(fake, "nvme0n1") == "0000:01:00.0"
    fake.link(subsystem + "/nvme1", "/sys/devices/pci0000:00/0000:02:00.0/nvme/nvme1")
    assert pcie.address_of(fake, "nvme0n1") is None


@pytest.mark.parametrize(
    "address, vendor, device, is_chipset",
    [
        ("0000:00:1c.4", "0x8086", "0x1c18", True),
        ("0000:00:1d.0", "0x8086", "0x1d10", True),
        ("0000:00:03.0", "0x8086", "0x1c18", False),
        ("0000:17:1c.0", "0x8086", "0x1c18", False),
        ("0000:00:1a.0", "0x8086", "0x7ac8", True),
        ("0000:01:00.2", "0x1022", "0x43c6", True),
        ("0000:05:00.0", "0x1022", "0x43f4", True),
        ("0000:06:08.0", "0x1022", "0x43f5", True),
        ("0000:00:01.1", "0x1022", "0x1453", False),
        ("0000:00:1c.0", "0x1b36", "0x000c", False),
    ],
)
def test_ports_of_chipsets(address, vendor, device, is_chipset):
    assert pcie.is_chipset_port(address, vendor, device) is is_chipset


def test_bandwidth_counts_the_line_code():
    assert pcie.bandwidth_mb_s(2.5, 4) == 1000 and pcie.bandwidth_mb_s(5.0, 8) == 4000
    assert pcie.bandwidth_mb_s(16.0, 4) == pytest.approx(7877, abs=1)
    assert pcie.bandwidth_mb_s(None, 4) is pcie.bandwidth_mb_s(8.0, None) is pcie.bandwidth_mb_s(3.0, 4) is None
