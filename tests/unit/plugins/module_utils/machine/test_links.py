# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Links of trees of files as the kernel shows them."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.machine import links

ATA = "/sys/devices/pci0000:00/0000:00:1f.2/ata3"
SAS = "/sys/devices/pci0000:00/0000:00:02.0/0000:03:00.0/host6"


def sata(fake, spd="6.0 Gbps", policy="max_performance"):
    fake.disk("sda", "8:0", ATA + "/host2/target2:0:0/2:0:0:0")
    fake.put(ATA + "/link3/ata_link/link3/sata_spd", spd + "\n")
    fake.put("/sys/class/scsi_host/host2/link_power_management_policy", policy + "\n")


def sas(fake, *rates, expander="", file="negotiated_linkrate"):
    base = SAS + "/port-6:0" + expander
    port = base if not expander else base + "/port-6:0:1"
    fake.disk("sdb", "8:16", port + "/end_device-6:0/target6:0:0/6:0:0:0")
    for number, rate in enumerate(rates):
        fake.put(f"{port}/phy-6:{number}/sas_phy/phy-6:{number}/{file}", rate + "\n")


@pytest.mark.parametrize(
    "text, rate",
    [
        ("6.0 Gbps", 6.0),
        ("1.5 Gbps", 1.5),
        ("12.0 Gbit", 12.0),
        ("<unknown>", None),
        ("Unknown", None),
        (None, None),
        ("", None),
    ],
)
def test_rate(text, rate):
    assert links.rate(text) == rate


def test_a_sata_link(fake):
    sata(fake)
    assert (links.rate_gbit_s(fake, "sda"), links.policy(fake, "sda")) == (6.0, "max_performance")
    fake.put(ATA + "/link3/ata_link/link3/sata_spd", "<unknown>\n")
    assert links.rate_gbit_s(fake, "sda") is None


@pytest.mark.parametrize(
    ("speed", "width", "mb_s"),
    [("16.0 GT/s PCIe", "4", 7876.8), ("8.0 GT/s PCIe", "2", 1969.2), ("Unknown", "4", None), ("16.0 GT/s", "0", None)],
)
def test_what_the_link_of_an_nvme_drive_carries(fake, speed, width, mb_s):
    function = "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0"
    fake.disk("nvme0n1", "259:0", function + "/nvme/nvme0")
    fake.put("/sys/bus/pci/devices/0000:01:00.0/current_link_speed", speed + "\n")
    fake.put("/sys/bus/pci/devices/0000:01:00.0/current_link_width", width + "\n")
    assert links.carries_mb_s(fake, "nvme0n1", "nvme") == mb_s


def test_what_the_links_of_sata_and_sas_drives_carry_and_that_of_others_is_unknown(fake):
    sata(fake)
    sas(fake, "12.0 Gbit", "12.0 Gbit")
    assert links.carries_mb_s(fake, "sda", "sata") == 600 and links.carries_mb_s(fake, "sdb", "sas") == 1200
    assert links.carries_mb_s(fake, "sda", "usb") is None and links.carries_mb_s(fake, "sda", None) is None


def test_behind_a_port_multiplier_the_drives_own_link_and_that_of_all_count(fake):
    fake.disk("sda", "8:0", ATA + "/host2/target2:1:0/2:1:0:0")
    rates = {"link3": "3.0 Gbps", "link3.0": "1.5 Gbps", "link3.1": "6.0 Gbps", "link3.2": "<unknown>"}
    for link, rate in rates.items():
        fake.put(f"{ATA}/{link}/ata_link/{link}/sata_spd", rate + "\n")
    assert links.rate_gbit_s(fake, "sda") == 3.0
    fake.put(ATA + "/link3.1/ata_link/link3.1/sata_spd", "1.5 Gbps\n")
    assert links.rate_gbit_s(fake, "sda") == 1.5


def test_a_sas_link_of_several_phys_is_as_fast_as_the_slowest(fake):
    sas(fake, "12.0 Gbit", "6.0 Gbit")
    assert links.rate_gbit_s(fake, "sdb") == 6.0 and links.policy(fake, "sdb") is None


def test_behind_an_expander_the_drives_own_port_counts(fake):
    sas(fake, "12.0 Gbit", expander="/expander-6:0")
    fake.put(SAS + "/port-6:0/phy-6:0/sas_phy/phy-6:0/negotiated_linkrate", "3.0 Gbit\n")
    assert links.rate_gbit_s(fake, "sdb") == 12.0


@pytest.mark.parametrize("told, most", [("3.0 Gbps", 3.0), ("6.0 Gbps", 6.0), ("<unknown>", None), ("", None)])
def test_the_most_that_a_sata_port_can_do(fake, told, most):
    sata(fake)
    fake.put(ATA + "/link3/ata_link/link3/hw_sata_spd_limit", told + "\n")
    assert links.port_gbit_s(fake, "sda") == most


@pytest.mark.parametrize(
    "caps, limit, most",
    [
        ("c722ff05", "<unknown>", 3.0),  # as of old chipsets: bits 23:20 are 2
        ("c734ff05", "<unknown>", 6.0),
        ("c734ff05", "1.5 Gbps", 1.5),
        ("c702ff05", "3.0 Gbps", 3.0),
        ("", "<unknown>", None),
        ("none", "<unknown>", None),
    ],
)
def test_an_ahci_controller_limits_its_ports(fake, caps, limit, most):
    sata(fake)
    fake.put(ATA + "/link3/ata_link/link3/hw_sata_spd_limit", limit + "\n")
    fake.put("/sys/class/scsi_host/host2/ahci_host_caps", caps + "\n")
    assert links.port_gbit_s(fake, "sda") == most


@pytest.mark.parametrize("told, most", [("3.0 Gbit", 3.0), ("12.0 Gbit", 12.0), ("Unknown", None)])
@pytest.mark.parametrize("expander", ["", "/expander-6:0"])
def test_the_most_that_a_sas_port_can_do(fake, told, most, expander):
    sas(fake, told, expander=expander, file="maximum_linkrate_hw")
    # Of the host adapter: it does not limit the link between expander and drive.
    fake.put(SAS + "/port-6:0/phy-6:9/sas_phy/phy-6:9/maximum_linkrate_hw", "12.0 Gbit\n" if expander else told)
    assert links.port_gbit_s(fake, "sdb") == most


def test_a_phy_that_does_not_tell_leaves_it_unknown(fake):
    sas(fake, "12.0 Gbit", "Unknown")
    assert links.rate_gbit_s(fake, "sdb") is None


@pytest.mark.parametrize("told, state", [("D0\n", "D0"), ("D3hot\n", "D3hot"), ("unknown\n", None), ("", None)])
def test_pci_power(fake, told, state):
    fake.put("/sys/bus/pci/devices/0000:01:00.0/power_state", told)
    assert links.pci_power(fake, "0000:01:00.0") == state and links.pci_power(fake, None) is None


def test_a_loop_device_has_none(fake):
    fake.loop(0, "/x")
    assert (links.rate_gbit_s(fake, "loop0"), links.policy(fake, "loop0")) == (None, None)
