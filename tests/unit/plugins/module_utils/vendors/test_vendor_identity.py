# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import emulator
import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.vendors import vendor_identity


def identify(serial, model="Micron P420m-MTFDGAR700MAX", firmware="B2120508"):
    """IDENTIFY DEVICE as mtip32xx returns it: texts in reading order, not swapped."""
    page = bytearray(512)
    page[20:40], page[46:54], page[54:94] = (
        text.encode().ljust(size) for text, size in ((serial, 20), (firmware, 8), (model, 40))
    )
    return bytes(page)


@pytest.fixture
def answers(monkeypatch):
    """What HDIO_GET_IDENTITY gives; None: the driver does not know it."""
    given = {"page": None}

    def ioctl(_host, _handle, request, _size):
        if given["page"] is None:
            raise OSError(25, "Inappropriate ioctl for device")
        assert request == 0x030D
        return given["page"]

    monkeypatch.setattr(Host, "ioctl", ioctl)
    return given


def test_a_p420m_says_who_it_is(emulated, answers):
    host = emulated()
    host.block("rssda", "252:0", "04:00.0")
    host.put("/sys/devices/pci0000:00/0000:04:00.0/numa_node", "1")
    answers["page"] = identify("000000001215A4B2")
    seen = identity.identity(host, "rssda")
    assert (seen.serial, seen.model, seen.firmware) == (
        "000000001215A4B2",
        "Micron P420m-MTFDGAR700MAX",
        "B2120508",
    )
    assert (seen.transport, seen.numa_node, seen.path) == ("pcie", 1, "/dev/rssda")
    assert identity.find(host, parse({"serial": "000000001215A4B2"})) == ["rssda"]
    assert identity.find(host, parse({"serial": "1215A4B2"})) == []


@pytest.mark.parametrize("page", [None, bytes(512), b""])
def test_a_driver_that_does_not_answer_leaves_it_unnamed(emulated, answers, page):
    host = emulated()
    host.block("rssda", "252:0", "04:00.0")
    answers["page"] = page
    assert identity.identity(host, "rssda").serial is None
    assert identity.best_entry(host, "rssda") is None


def test_an_iomemory_card_is_named_by_fio_status(emulated):
    host = emulated(cards=[emulator.card(0, "C1"), emulator.card(1, "C2")])
    for name, number in (("fioa", "251:0"), ("fiob", "251:16")):
        host.block(name, number, "")
    host.put("/sys/bus/pci/devices/0000:05:00.0/numa_node", "1")
    host.put("/sys/bus/pci/devices/0000:04:00.0/numa_node", "-1")
    assert identity.find(host, parse({"serial": "C2"})) == ["fiob"]
    seen = identity.identity(host, "fiob")
    assert (seen.serial, seen.transport, seen.numa_node, seen.firmware) == ("C2", "pcie", 1, "v7.1.15")
    assert identity.identity(host, "fioa").numa_node is None


def test_without_fio_status_a_card_has_no_name(fake):
    fake.disk("fioa", "251:0", "/sys/devices/virtual")
    assert identity.identity(fake, "fioa").serial is None


@pytest.mark.parametrize(
    "name, transport",
    [("rssda", "pcie"), ("fiob", "pcie"), ("rssda1", None), ("fct0", None), ("sda", None), ("fio", None)],
)
def test_only_whole_drives_of_these_drivers(name, transport):
    assert vendor_identity.transport(name) == transport
