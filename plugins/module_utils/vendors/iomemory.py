# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fusion-io's ioMemory tools: the cards of a host as `fio-status -a` shows them, and how each tool is called.

Source: ioMemory VSL Peak Performance Guide (2013); layout of fio-status 3.1 to 4.3 as published with the driver. A card
has a control device (/dev/fct0) that is always there, and a block device (/dev/fioa) while it is attached. A line that
is missing is None, never a guess.
"""

from __future__ import annotations

import os
import re
import shutil
import typing as t

from ..core.files import make_folders
from ..core.host import COMMAND_NOT_FOUND, Host, Result
from ..records.vendor_tools import Card
from .vendor_tool import ToolError, find_by_serial

TIMEOUT_S = 120
# Below the state folder: where a bug report waits to be fetched.
BUGREPORT = "fio-bugreport"
# Of the advertised capacity; the guide has presets of 90 and 80 %, and fio-format takes any.
LEAST_SIZE_PCT, MOST_SIZE_PCT = 1, 100
SECTOR_BYTES = (512, 4096)  # the guide: 512 B below 4 KiB of block size, else 4 KiB
ATTACHED, DETACHED, UNKNOWN = "attached", "detached", "unknown"
_UNITS = {"M": 10**6, "G": 10**9, "T": 10**12}
_HEADING = re.compile(r"(Adapter:|fct[0-9]+\b|fio[a-z]+\b|[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]\b)\s*(.*)")
_RESERVE = r"(?:Reserve space|Media) status:\s*"  # VSL 2 says "Media"
BLOCK_NAME = re.compile(r"fio[a-z]{1,3}")


def cards(host: Host) -> list[Card]:
    """List the cards of the host. Raises ToolError."""
    return parse_status(run(host, ["fio-status", "-a"]).stdout)


def run(host: Host, argv: t.Sequence[str], timeout_s: float = TIMEOUT_S) -> Result:
    """Run one of the tools. Raises ToolError if it fails."""
    result = host.run(argv, timeout_s=timeout_s)
    if result.rc == COMMAND_NOT_FOUND:
        raise ToolError(f"{argv[0]} is not installed or not in PATH: install Fusion-io's fio-util")
    if result.rc != 0:
        raise ToolError(failure_text(result))
    return result


def find(host: Host, serial: str) -> Card:
    """Return the one card with this serial number. Raises ToolError."""
    return find_by_serial(cards(host), serial, "fio-status", "shows", "card")


def failure_text(result: Result) -> str:
    """Return what a tool that failed printed, in one line."""
    lines = [line.strip() for line in (result.stderr + "\n" + result.stdout).splitlines() if line.strip()]
    return result.ended(" | ".join(lines[-4:]))


def attach_arguments(control: str) -> list[str]:
    """Return the command that makes the block device appear."""
    return ["fio-attach", control]


def detach_arguments(control: str) -> list[str]:
    """Return the command that removes the block device; it fails while that is in use, and is never forced."""
    return ["fio-detach", control]


def format_arguments(control: str, sector_bytes: int, size_pct: int) -> list[str]:
    """Return the command that erases; -b and -s as in the guide, -y answers its question. Raises ToolError."""
    if sector_bytes not in SECTOR_BYTES:
        raise ToolError(
            f"sector_bytes {sector_bytes} is refused: the guide formats to 512 (blocks below 4 KiB) or 4096"
        )
    if not isinstance(size_pct, int) or not LEAST_SIZE_PCT <= size_pct <= MOST_SIZE_PCT:
        raise ToolError(
            f"size_pct {size_pct} is refused: {LEAST_SIZE_PCT} to {MOST_SIZE_PCT} per cent of the advertised capacity, "
            "such as 90 or 80"
        )
    return ["fio-format", "-y", "-b", str(sector_bytes), "-s", f"{size_pct}%", control]


def format_commands(control: str, sector_bytes: int, size_pct: int) -> list[list[str]]:
    """Return exactly what a format runs: detach, erase, attach. Raises ToolError."""
    formatting = format_arguments(control, sector_bytes, size_pct)
    return [detach_arguments(control), formatting, attach_arguments(control)]


def beacon_arguments(control: str, lit: bool) -> list[str]:
    """Return the command that switches the LEDs by which a card is found."""
    return ["fio-beacon", "-1" if lit else "-0", control]


def bugreport(host: Host) -> str:
    """Run fio-bugreport, and return the path of its archive on the host. Raises ToolError."""
    result = run(host, ["fio-bugreport"], timeout_s=900)
    found: list[str] = re.findall(r"(/[\w./-]*fio-bugreport-[\w.-]+\.tar\.\w+)", result.stdout + "\n" + result.stderr)
    if not found:
        raise ToolError(failure_text(result))
    if not host.exists(found[-1]):
        raise ToolError(f"fio-bugreport says that its report is {found[-1]}, which is not there")
    return found[-1]


def keep_bugreport(host: Host, state_dir: str) -> str:
    """Make a bug report and return its own name. It is left at <state_dir>/fio-bugreport, for the action to fetch.

    Raises ToolError, OSError.
    """
    path = bugreport(host)
    make_folders(state_dir)
    target = os.path.join(state_dir, BUGREPORT)
    shutil.move(path, target)
    os.chmod(target, 0o644)  # as a run's archive: it is fetched by the connection's user
    return os.path.basename(path)


class _Section(t.NamedTuple):
    name: str
    title: str
    lines: list[str]


def parse_status(text: str) -> list[Card]:
    """Parse `fio-status -a`. An entry without a control device or a serial number can't be named, and is left out."""
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
    advertised = _advertised(adapter)
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
        advertised_bytes=advertised,
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
        size_pct=round(100 * size / advertised) if size and advertised else None,
    )


def _model(section: _Section, adapter: _Section | None) -> str:
    """Return the module's name; its card's if the line has only a serial number (VSL 3.1)."""
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
    """Return the block device: "Attached as 'fioa'" (3.1), or the line under "Contained VSUs:" (3.2)."""
    named = _search(r"\bas '(fio[a-z]+)'", section.title)
    listed = [found for found in (_search(r"^(fio[a-z]+):\s+ID:", line) for line in section.lines) if found]
    return named or (listed[0] if len(listed) == 1 else None)


def _format(lines: list[str]) -> tuple[int | None, int | None]:
    """Return (capacity, sector) in bytes, of "Format: v500, 2353515625 sectors of 512 bytes"."""
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
    """Return the advertised capacity of a module: its share of the card's, by the name (1.205TB, 640GB, SX300-1300)."""
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
