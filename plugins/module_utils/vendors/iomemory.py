# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fusion-io's ioMemory tools: the cards of a host, and how each tool is called.

Source: ioMemory VSL Peak Performance Guide (2013).
"""

from __future__ import annotations

import os
import re
import shutil
import typing as t

from ..core.files import make_folders
from ..core.host import COMMAND_NOT_FOUND, Host, Result
from .iomemory_status import Card, parse_status

TIMEOUT_S = 120
# Below the state folder: where a bug report waits to be fetched.
BUGREPORT = "fio-bugreport"
# Of the advertised capacity; the guide has presets of 90 and 80 %, and fio-format takes any.
LEAST_SIZE_PCT, MOST_SIZE_PCT = 1, 100
SECTOR_BYTES = (512, 4096)  # the guide: 512 B below 4 KiB of block size, else 4 KiB


class IomemoryError(Exception):
    """A tool failed, or said what cannot be relied on; the message says what to do."""


def cards(host: Host) -> list[Card]:
    """The cards of the host now. Raises IomemoryError."""
    result = host.run(["fio-status", "-a"], timeout_s=TIMEOUT_S)
    if result.rc == COMMAND_NOT_FOUND:
        raise IomemoryError("fio-status is not installed or not in PATH: install Fusion-io's fio-util")
    if result.rc != 0:
        raise IomemoryError(said(result))
    return parse_status(result.stdout)


def find(listed: list[Card], serial: str) -> Card:
    """The one card with this serial number, compared as a whole. Raises IomemoryError."""
    same = [card for card in listed if serial.strip() and card.serial == serial.strip()]
    if len(same) == 1:
        return same[0]
    known = ", ".join(f"{card.serial} ({card.control})" for card in listed) or "no card"
    raise IomemoryError(
        "fio-status shows {} cards with the serial {}; it shows {}".format(
            len(same) or "no", serial.strip() or "(empty)", known
        )
    )


def said(result: Result) -> str:
    """What a tool that failed said, in one line."""
    lines = [line.strip() for line in (result.stderr + "\n" + result.stdout).splitlines() if line.strip()]
    return result.ended(" | ".join(lines[-4:]))


def attach_arguments(control: str) -> list[str]:
    """Makes the block device appear."""
    return ["fio-attach", control]


def detach_arguments(control: str) -> list[str]:
    """Takes the block device away; the tool refuses while it is in use. Never forced."""
    return ["fio-detach", control]


def format_arguments(control: str, sector_bytes: int, size_pct: int) -> list[str]:
    """Erases. -b and -s as in the guide; -y answers its question. Raises IomemoryError."""
    if sector_bytes not in SECTOR_BYTES:
        raise IomemoryError(
            f"sector_bytes {sector_bytes} is refused: the guide formats to 512 (blocks below 4 KiB) or 4096"
        )
    if not isinstance(size_pct, int) or not LEAST_SIZE_PCT <= size_pct <= MOST_SIZE_PCT:
        raise IomemoryError(
            f"size_pct {size_pct} is refused: {LEAST_SIZE_PCT} to {MOST_SIZE_PCT} per cent of the advertised capacity, "
            "such as 90 or 80"
        )
    return ["fio-format", "-y", "-b", str(sector_bytes), "-s", f"{size_pct}%", control]


def format_commands(control: str, sector_bytes: int, size_pct: int) -> list[list[str]]:
    """Exactly what a format runs: detach, erase, attach. Raises IomemoryError."""
    formatting = format_arguments(control, sector_bytes, size_pct)
    return [detach_arguments(control), formatting, attach_arguments(control)]


def beacon_arguments(control: str, lit: bool) -> list[str]:
    """The LEDs that tell which card it is."""
    return ["fio-beacon", "-1" if lit else "-0", control]


def bugreport(host: Host) -> str:
    """Run fio-bugreport; the path of its archive on the host. Raises IomemoryError."""
    result = host.run(["fio-bugreport"], timeout_s=900)
    found: list[str] = re.findall(r"(/[\w./-]*fio-bugreport-[\w.-]+\.tar\.\w+)", result.stdout + "\n" + result.stderr)
    if result.rc != 0 or not found:
        raise IomemoryError(said(result))
    if not host.exists(found[-1]):
        raise IomemoryError(f"fio-bugreport says that its report is {found[-1]}, which is not there")
    return found[-1]


def kept_bugreport(host: Host, state_dir: str) -> str:
    """Make a bug report and leave it at <state_dir>/fio-bugreport, a path that whoever fetches it knows; its own name.
    Raises IomemoryError, OSError.
    """
    path = bugreport(host)
    make_folders(state_dir)
    kept = os.path.join(state_dir, BUGREPORT)
    shutil.move(path, kept)
    os.chmod(kept, 0o644)  # as a run's archive: it is fetched by the connection's user
    return os.path.basename(path)


def facts(card: Card) -> dict[str, t.Any]:
    """A card as the module returns it."""
    return dict(card._asdict(), size_pct=card.size_pct)


def formatted_as(card: Card) -> dict[str, t.Any]:
    """How a card is formatted."""
    return {"sector_bytes": card.sector_bytes, "size_bytes": card.size_bytes, "size_pct": card.size_pct}
