# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`fio-pci-check` as findings: an over-subscribed bus, PCIe errors, a narrow link.

Source: ioMemory VSL Peak Performance Guide, appendix D. Pure, but for `check`.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import replace

from ..core.host import Host
from ..records.check_finding import CheckFinding, CheckLevel
from ..records.vendor_tools import Card
from .iomemory import failure_text, run
from .vendor_tool import ToolError

# Report only: without -n it clears the errors that it shows (release notes of VSL 3.2.4).
COMMAND = ("fio-pci-check", "-n")
_NODE = re.compile(
    r"(Root Bridge|Bridge|io\w+|SX\w*|PX\w*)\b\s*(?:([0-9a-fA-F]{2}[:L][0-9a-fA-F]{2}\.[0-9a-fA-F]{1,2}))?(.*)"
)
_ERROR = re.compile(r"(.+?)\(s\):\s*(\w+)")
LEAST_LANES = 4  # of any ioMemory card
BRIDGES = ("Bridge", "Root Bridge")
RESEAT = (
    "Reseat all risers and cards, read from the card and check again; then swap the riser, then the card, "
    "then the board (guide, appendix D)."
)
RESEAT_CARD = RESEAT + " fio-beacon lights its LEDs (beacon: true in vendor_iomemory)."


class Node(t.NamedTuple):
    """A bridge or a card of the tree.

    buses: those behind it. needed, available: MB/s as printed. marked: lines with an asterisk that were not understood.
    """

    kind: str
    address: str
    buses: tuple[int, int] | None
    needed: int | None = None
    available: int | None = None
    lanes: int | None = None
    lanes_max: int | None = None
    errors: tuple[str, ...] = ()
    marked: tuple[str, ...] = ()
    bandwidth_marked: bool = False


def parse(text: str) -> list[Node]:
    """Parse a report to its nodes, root first."""
    nodes: list[Node] = []
    for raw in text.splitlines():
        marked = raw.strip().startswith("*")
        line = raw.strip().lstrip("* ").strip()
        match = _NODE.match(line)
        if match and (match.group(2) or match.group(1) == "Root Bridge"):
            # "00L04.00" is how the guide prints one address; the colon is meant.
            address = (match.group(2) or "").replace("L", ":").lower()
            nodes.append(Node(match.group(1), address, _buses(match.group(3))))
        elif nodes and line:
            nodes[-1] = _add(nodes[-1], line, marked)
    return nodes


def _buses(text: str) -> tuple[int, int] | None:
    match = re.search(r"\(([0-9a-fA-F]{2})-([0-9a-fA-F]{2})\)", text)
    return (int(match.group(1), 16), int(match.group(2), 16)) if match else None


def _add(node: Node, line: str, marked: bool) -> Node:
    rate = re.match(r"Needed ([0-9]{1,9}) MB/sec Avail ([0-9]{1,9}) MB/sec", line)
    if rate:
        return node._replace(needed=int(rate.group(1)), available=int(rate.group(2)), bandwidth_marked=marked)
    lanes = re.match(r"(Maximum l|L)ink width(?::| is)\s*([0-9]{1,3}) lanes?", line)
    if lanes:
        return (
            node._replace(lanes_max=int(lanes.group(2)))
            if lanes.group(1) == "Maximum l"
            else node._replace(lanes=int(lanes.group(2)))
        )
    error = _ERROR.match(line)
    if error and error.group(2).lower() == "detected":
        return node._replace(errors=(*node.errors, error.group(1).strip()))
    return node._replace(marked=(*node.marked, line)) if marked else node


def findings(nodes: t.Sequence[Node], cards: t.Sequence[Card] = (), parallel: int | None = None) -> list[CheckFinding]:
    """Return what is wrong, one finding for each node and kind.

    cards: to name the card at an address. parallel: how many are measured at a time.
    """
    serials = {_short(card.pci_address): card.serial for card in cards if card.pci_address}
    found: list[CheckFinding] = []
    for node in nodes:
        where = (f"{node.kind} {node.address}").strip()
        drive = serials.get(_short(node.address)) if node.address else None
        rate = _bandwidth(node, where, _suffices(nodes, node, parallel))
        found += [
            replace(finding, drive=drive)
            for finding in (*rate, *_errors(node, where), *_width(node, where), *_marked(node, where))
        ]
    return found


def card_findings(cards: t.Sequence[Card], lanes: int | None = None) -> list[CheckFinding]:
    """Return the same from fio-status. lanes: of a full link (4 for an ioDrive2, 8 for a Duo; else any card's)."""
    found = []
    for card in cards:
        if card.bus_errors:
            text = f"{card.label}: PCIe errors: {card.bus_errors}"
            found.append(_finding("pcie_errors", "warning", text, RESEAT_CARD, card.serial))
        if card.link_lanes and card.link_lanes < (lanes or LEAST_LANES):
            text = f"{card.label}: the link has {card.link_lanes} of {lanes or LEAST_LANES} lanes"
            found.append(_finding("pcie_link_width", "blocks", text, RESEAT_CARD, card.serial))
        if card.trouble:
            found.append(
                _finding(
                    "iomemory_state",
                    "blocks",
                    f"{card.label}: {card.trouble}",
                    "Check fio-status -a; firmware and driver must match.",
                    card.serial,
                )
            )
    return found


def _suffices(nodes: t.Sequence[Node], node: Node, parallel: int | None) -> bool:
    """Return whether a bridge is wide enough for the cards that are measured at a time, though not for all."""
    low, high = node.buses or (1, 0)
    cards = sum(1 for other in nodes if other.kind not in BRIDGES and low <= int(other.address[:2], 16) <= high)
    return bool(parallel and node.needed and node.available and node.needed * parallel <= node.available * cards)


def _bandwidth(node: Node, where: str, suffices: bool) -> list[CheckFinding]:
    if node.needed is None or node.available is None:
        return []
    if node.needed > node.available:
        rates = f"the devices behind it need {node.needed} MB/s, it has {node.available} MB/s"
        text = f"{where} is over-subscribed: {rates}"
        if suffices:
            text += "; that is enough for those measured at a time (ssd_parallel_drives)"
        remedy = "Spread the cards over slots of other root ports, or measure them one at a time."
        return [_finding("pcie_bandwidth", "warning" if suffices else "blocks", text, remedy)]
    if node.bandwidth_marked:
        text = (
            f"{where} is marked by fio-pci-check, although its bandwidth is enough ({node.needed} MB/s); a bridge "
            "above it may be over-subscribed"
        )
        return [_finding("pcie_bandwidth", "warning", text, "Check the bridges above it.")]
    return []


def _errors(node: Node, where: str) -> list[CheckFinding]:
    if not node.errors:
        return []
    text = "{} reports PCIe errors: {}".format(where, ", ".join(node.errors))
    if node.kind in BRIDGES:
        return [
            _finding(
                "pcie_errors",
                "warning",
                text,
                "Bridges may report false errors without traffic, or when polled often. Read from the cards and "
                "check again; if the errors return: " + RESEAT,
            )
        ]
    return [_finding("pcie_errors", "blocks", text, RESEAT_CARD)]


def _width(node: Node, where: str) -> list[CheckFinding]:
    if not node.lanes or not node.lanes_max or node.lanes >= node.lanes_max:
        return []
    level: CheckLevel = "blocks" if node.lanes < LEAST_LANES else "warning"  # one with four is right in a wider slot
    text = f"{where}: the link uses {node.lanes} of {node.lanes_max} possible lanes"
    return [
        _finding(
            "pcie_link_width", level, text, "Normal for a card with fewer lanes than the slot; otherwise: " + RESEAT
        )
    ]


def _marked(node: Node, where: str) -> list[CheckFinding]:
    return [
        _finding("pcie_other", "warning", f"{where}: fio-pci-check marks: {line:.160}", "See the vendor's user guide.")
        for line in node.marked
    ]


def _finding(check: str, level: CheckLevel, message: str, remedy: str, drive: str | None = None) -> CheckFinding:
    return CheckFinding(check, drive, level, message, remedy)


def _short(address: str | None) -> str:
    """Return bb:dd.f, whether the function is written with one digit or two."""
    match = re.fullmatch(r"([0-9a-f]{2}:[0-9a-f]{2})\.0?([0-9a-f])", (address or "").lower())
    return "{}.{}".format(*match.groups()) if match else ""


def check(host: Host, cards: t.Sequence[Card], parallel: int | None = None) -> list[CheckFinding]:
    """Run fio-pci-check, which clears nothing. parallel: how many cards are measured at a time. Raises ToolError."""
    result = run(host, COMMAND)
    nodes = parse(result.stdout)
    if not nodes:
        raise ToolError(failure_text(result))
    return findings(nodes, cards, parallel) + card_findings(cards)
