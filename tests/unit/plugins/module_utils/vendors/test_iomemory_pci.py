# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses
import os

import emulator
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.records.vendor_tools import Card
from ansible_collections.ssdlab.fleet.plugins.module_utils.vendors import iomemory, iomemory_pci
from ansible_collections.ssdlab.fleet.plugins.module_utils.vendors.vendor_tool import ToolError

# The examples of the ioMemory VSL Peak Performance Guide, appendix D, which the emulator prints.
FOLDER = os.path.join(os.path.dirname(emulator.__file__), "pci-check")


def report(name):
    with open(os.path.join(FOLDER, name + ".txt"), encoding="utf-8") as file:
        return file.read()


def card(serial="C1", **changes):
    empty = {field.name: None for field in dataclasses.fields(Card)}
    return Card(**dict(empty, control="/dev/fct0", state="attached", serial=serial, pci_address="0b:00.0", **changes))


def brief(findings):
    return [
        (
            finding.check,
            finding.level,
            finding.message.split(" is ")[0].split(" reports")[0].split(":  ")[0][:20].strip(),
        )
        for finding in findings
    ]


@pytest.mark.parametrize(
    "name, found",
    [
        ("balanced", []),
        (
            "oversubscribed",
            [
                ("pcie_bandwidth", "blocks", "Bridge 00:02.00"),
                ("pcie_bandwidth", "blocks", "Bridge 01:00.00"),
                ("pcie_bandwidth", "warning", "Bridge 02:00.00"),
            ],
        ),
        ("errors", [("pcie_errors", "warning", "Bridge 09:00.00")]),
        ("width", [("pcie_link_width", "blocks", "Bridge 00:01.00: the")]),
    ],
)
def test_the_guides_examples(name, found):
    findings = iomemory_pci.findings(iomemory_pci.parse(report(name)))
    assert brief(findings) == found
    assert all(finding.remedy for finding in findings)


def test_figures_and_errors_are_in_the_message():
    over = iomemory_pci.findings(iomemory_pci.parse(report("oversubscribed")))[0]
    assert "need 3000 MB/s, it has 2000 MB/s" in over.message
    errors = iomemory_pci.findings(iomemory_pci.parse(report("errors")))[0]
    assert "Fatal Error, Unsupported Type" in errors.message and "false errors" in errors.remedy
    width = iomemory_pci.findings(iomemory_pci.parse(report("width")))[0]
    assert "1 of 16 possible lanes" in width.message


def test_errors_of_a_card_block_and_name_it():
    text = report("balanced").replace(
        "ioDrive 03:00.0 Firmware 14071", "ioDrive 0b:00.0 Firmware 1\n  * Fatal Error(s): Detected"
    )
    (finding,) = iomemory_pci.findings(iomemory_pci.parse(text), [card()])
    assert (finding.check, finding.level, finding.drive) == ("pcie_errors", "blocks", "C1")
    order = [finding.remedy.index(word) for word in ("Reseat", "swap the riser", "then the card", "then the board")]
    assert order == sorted(order)


def test_errors_that_are_not_detected_and_a_narrow_but_right_link_are_told_apart():
    assert (
        iomemory_pci.findings(
            iomemory_pci.parse("Root Bridge PCIe 1 MB/sec\nBridge 00:01.00 (1)\n  Fatal Error(s): None\n")
        )
        == []
    )
    four_lanes = report("width").replace("is 1 lanes", "is 4 lanes")
    assert brief(iomemory_pci.findings(iomemory_pci.parse(four_lanes)))[0][1] == "warning"
    assert iomemory_pci.findings(iomemory_pci.parse(report("width").replace("is 1 lanes", "is 16 lanes"))) == []


def test_an_asterisk_that_is_not_understood_is_not_lost():
    (finding,) = iomemory_pci.findings(iomemory_pci.parse("Bridge 00:01.00 (1)\n * Slot is haunted\n"))
    assert finding.check == "pcie_other" and "Slot is haunted" in finding.message


def test_what_fio_status_shows():
    seen = iomemory_pci.card_findings(
        [card(bus_errors="correctable", link_lanes=1, trouble="minimal mode"), card("C2", link_lanes=4)], lanes=4
    )
    told = [("pcie_errors", "warning", "C1"), ("pcie_link_width", "blocks", "C1"), ("iomemory_state", "blocks", "C1")]
    assert [(finding.check, finding.level, finding.drive) for finding in seen] == told
    # Without knowing the card's lanes: no card has one.
    assert [
        finding.check for finding in iomemory_pci.card_findings([card(link_lanes=1), card("C2", link_lanes=4)])
    ] == ["pcie_link_width"]


@pytest.mark.parametrize(
    "parallel, level", [(None, "blocks"), (1, "warning"), (2, "warning"), (3, "blocks"), (9, "blocks")]
)
def test_an_oversubscribed_bus_blocks_only_cards_that_are_measured_together(parallel, level):
    cards = "".join(f"          ioDrive 0{bus}:00.0 Firmware 1\n" for bus in (3, 4, 5))
    nodes = iomemory_pci.parse(
        "Root Bridge PCIe 3000 MB/sec\n  Bridge 00:02.00 (01-05)\n    * Needed 3000 MB/sec Avail 2000 MB/sec\n" + cards
    )
    (finding,) = iomemory_pci.findings(nodes, parallel=parallel)
    assert (finding.level, "one at a time" in finding.remedy) == (level, True)
    assert ("enough for those measured at a time" in finding.message) is (level == "warning")


def test_one_card_behind_too_narrow_a_bridge_blocks_however_it_is_measured():
    assert [
        finding.level for finding in iomemory_pci.findings(iomemory_pci.parse(report("oversubscribed")), parallel=1)
    ] == ["blocks", "blocks", "warning"]


def test_the_remedy_says_how_to_find_the_card():
    assert "fio-beacon" in iomemory_pci.card_findings([card(bus_errors="correctable")])[0].remedy


def test_the_check_clears_nothing(emulated):
    host = emulated(cards=[emulator.card(0, "C1")], pci_check="errors")
    for _again in range(2):
        assert [finding.check for finding in iomemory_pci.check(host, iomemory.cards(host))] == ["pcie_errors"]
    assert ["fio-pci-check", "-n"] in host.commands and ["fio-pci-check"] not in host.commands


def test_no_report_is_no_clean_bill(fake):
    with pytest.raises(ToolError, match="fio-util"):
        iomemory_pci.check(fake, [])
    fake.answers["fio-pci-check"] = (0, "nothing here\n", "")
    with pytest.raises(ToolError, match="nothing here"):
        iomemory_pci.check(fake, [])


LINES = st.lists(
    st.sampled_from("".join(report(name) for name in ("errors", "width", "oversubscribed")).splitlines()) | st.text(),
    max_size=40,
)


@given(LINES.map("\n".join) | st.text())
def test_garbage_gives_findings_or_none(text):
    for finding in iomemory_pci.findings(iomemory_pci.parse(text)):
        assert finding.level in ("warning", "blocks") and finding.message
