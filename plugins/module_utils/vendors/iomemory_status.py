# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Fusion-io's `fio-status -a` says of the host's ioMemory cards. Pure.

Source: layout of fio-status 3.1 to 4.3 as published with the driver. A card has a control device (/dev/fct0) that is
always there, and a block device (/dev/fioa) while it is attached. A line that is missing is None, never a guess.
"""

from __future__ import annotations

import re
import typing as t

ATTACHED, DETACHED, UNKNOWN = "attached", "detached", "unknown"
_UNITS = {"M": 10**6, "G": 10**9, "T": 10**12}
_HEADING = re.compile(r"(Adapter:|fct[0-9]+\b|fio[a-z]+\b|[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]\b)\s*(.*)")
_RESERVE = r"(?:Reserve space|Media) status:\s*"  # VSL 2 says "Media"
BLOCK_NAME = re.compile(r"fio[a-z]{1,3}")


class Card(t.NamedTuple):
    """One ioMemory device, one or two to a card. Sizes in bytes; `block`: fioa while attached; `trouble`: fio-status's
    own warning.
    """

    control: str
    state: str
    serial: str
    block: str | None
    pci_address: str | None
    model: str | None
    firmware: str | None
    size_bytes: int | None
    sector_bytes: int | None
    advertised_bytes: int | None
    link_lanes: int | None
    link_speed_gts: float | None
    temperature_c: float | None
    reserve: str | None
    reserves_pct: float | None
    reserves_warn_pct: float | None
    writes_left_pct: float | None
    power_loss: str | None
    bus_errors: str | None
    trouble: str | None
    # The highest that it had since the driver was loaded.
    highest_c: float | None = None

    @property
    def size_pct(self) -> int | None:
        """The capacity in per cent of what is advertised, which under-formatting lowers."""
        if not self.size_bytes or not self.advertised_bytes:
            return None
        return round(100 * self.size_bytes / self.advertised_bytes)


class _Section(t.NamedTuple):
    name: str
    title: str
    lines: list[str]


def parse_status(text: str) -> list[Card]:
    """The cards that `fio-status -a` shows. An entry without a control device or a serial number is left out: it can't
    be named.
    """
    cards: list[Card] = []
    adapter: _Section | None = None
    sections = _sections(text)
    for section in sections:
        if section.name == "Adapter:":
            adapter = section
        elif section.name.startswith("fct"):
            card = _card(section, adapter, [other for other in sections if BLOCK_NAME.fullmatch(other.name)])
            if card is not None:
                cards.append(card)
    return cards


def _sections(text: str) -> list[_Section]:
    sections: list[_Section] = []
    for line in text.splitlines():
        match = _HEADING.match(line)
        if match:
            sections.append(_Section(match.group(1), match.group(2).strip(), []))
        elif line.strip() and sections:
            sections[-1].lines.append(line.strip())
    return sections


def _card(section: _Section, adapter: _Section | None, blocks: list[_Section]) -> Card | None:
    # "Located in slot …" carries the serial number of the card that holds the module, which two modules may share.
    serials = [_search(r"\bSN:\s*(\w+(?:-\w+)*)", line) for line in section.lines if not line.startswith("Located")]
    serial = next((found for found in serials if found), None)
    if serial is None:
        return None
    state, trouble = _state(section)
    block = _block(section) if state == ATTACHED else None
    own = [line for other in blocks if other.name == block for line in other.lines]
    lines = section.lines + own
    size, sector = _format(lines)
    link = re.search(
        r"PCIe negotiated link:\s*([0-9]+) lanes? at ([0-9.]+) Gt/sec",
        "\n".join(section.lines + (adapter.lines if adapter else [])),
    )
    return Card(
        control="/dev/" + section.name,
        state=state,
        serial=serial,
        block=block,
        pci_address=_first(r"PCI:([0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])", section.lines),
        model=_model(section, adapter),
        firmware=_first(r"Firmware (v[^,]+)", section.lines),
        size_bytes=size,
        sector_bytes=sector,
        advertised_bytes=_advertised(adapter),
        link_lanes=int(link.group(1)) if link else None,
        link_speed_gts=_float(link.group(2)) if link else None,
        temperature_c=_figure(r"Internal temperature:\s*(?:avg )?([0-9.]+)", section.lines),
        reserve=_first(_RESERVE + r"([^;]+)", section.lines),
        reserves_pct=_figure(_RESERVE + r"[^;]*; *Reserves: *([0-9.]+)%", section.lines),
        reserves_warn_pct=_figure(_RESERVE + r".*\bwarn at *([0-9.]+)%", section.lines),
        writes_left_pct=_figure(r"Rated PBW:.*?\b([0-9.]+)% remaining", section.lines),
        power_loss=_first(r"Power ?loss protection:\s*(.+)", section.lines),
        bus_errors=_first(r"PCIe bus errors:\s*(.+)", section.lines + (adapter.lines if adapter else [])),
        trouble=trouble,
        highest_c=_figure(r"Internal temperature:.*\bmax ([0-9.]+)", section.lines),
    )


def _model(section: _Section, adapter: _Section | None) -> str:
    """The module's name; its card's where the line has a serial number alone (VSL 3.1)."""
    own = section.lines[0].split(",")[0]
    return adapter.lines[0].split(",")[0] if own.startswith("SN:") and adapter and adapter.lines else own


def _state(section: _Section) -> tuple[str, str | None]:
    warning = next(
        (
            line
            for line in section.lines
            if re.search(r"ACTIVE WARNINGS|minimal (mode|state)|\bERROR\b", line, re.IGNORECASE)
        ),
        None,
    )
    word = section.title.split(" ")[0].rstrip(":").lower() if section.title else ""
    if word in (ATTACHED, DETACHED):
        return word, warning
    return UNKNOWN, warning or section.title or "it states none"


def _block(section: _Section) -> str | None:
    """The block device: "Attached as 'fioa'" (3.1) or the line under "Contained VSUs:" (3.2)."""
    named = _search(r"\bas '(fio[a-z]+)'", section.title)
    listed = [found for found in (_search(r"^(fio[a-z]+):\s+ID:", line) for line in section.lines) if found]
    return named or (listed[0] if len(listed) == 1 else None)


def _format(lines: list[str]) -> tuple[int | None, int | None]:
    """(capacity, sector) in bytes: "Format: v500, 2353515625 sectors of 512 bytes"."""
    found = {
        match.groups()
        for match in (
            re.search(r"\b([0-9]{1,18}) sectors of ([0-9]{1,6}) bytes", line.replace(",", " ")) for line in lines
        )
        if match
    }
    if len(found) != 1:
        return None, None
    sectors, sector = map(int, found.pop())
    return sectors * sector, sector


def _advertised(adapter: _Section | None) -> int | None:
    """The advertised capacity of one module: the card's, out of its name (1.205TB, 640GB, SX300-1300), shared by its
    modules.
    """
    if adapter is None or not adapter.lines:
        return None
    modules = sum(1 for line in adapter.lines if re.match(r"(fct[0-9]+|[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]):", line))
    name = adapter.lines[0].split(",")[0]
    written = re.search(r"\b([0-9]{1,6}(?:\.[0-9]{1,6})?) ?([MGT])B\b", name)
    coded = re.search(r"\b[SP]X[0-9]+-([0-9]{3,5})\b", name)
    if not modules or not (written or coded):
        return None
    size = (
        float(written.group(1)) * _UNITS[written.group(2)] if written else int(coded.group(1)) * 10**9 if coded else 0
    )
    return round(size / modules) or None


def _search(pattern: str, text: str) -> str | None:
    match = re.search(pattern, text)
    return match.group(1).strip() if match else None


def _first(pattern: str, lines: list[str]) -> str | None:
    return next((found for found in (_search(pattern, line) for line in lines) if found), None)


def _figure(pattern: str, lines: list[str]) -> float | None:
    found = _first(pattern, lines)
    return _float(found) if found else None


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
