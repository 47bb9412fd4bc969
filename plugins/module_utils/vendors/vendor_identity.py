# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The identity of drives whose driver puts nothing into sysfs: Micron's P320h and P420m (mtip32xx, /dev/rssda),
Fusion-io's ioMemory (/dev/fioa).

mtip32xx answers HDIO_GET_IDENTITY with its IDENTIFY DEVICE page, whose texts it has put into reading order
(drivers/block/mtip32xx). ioMemory's driver answers nothing: fio-status does. What cannot be read is missing, so that
the guard refuses the drive.
"""

from __future__ import annotations

import os
import re

from ..core.host import Host
from . import iomemory
from .iomemory import BLOCK_NAME
from .vendor_tool import ToolError

TRANSPORT = "pcie"
HDIO_GET_IDENTITY = 0x030D  # include/uapi/linux/hdreg.h
_MICRON = re.compile(r"rssd[a-z]{1,3}")
_IDENTIFY_BYTES = 512
_TEXTS = {"serial": slice(20, 40), "firmware": slice(46, 54), "model": slice(54, 94)}


def is_micron(name: str) -> bool:
    """Return whether a kernel name is a whole drive of mtip32xx."""
    return _MICRON.fullmatch(name) is not None


def is_iomemory(name: str) -> bool:
    """Return whether a kernel name is a whole drive of ioMemory's driver."""
    return BLOCK_NAME.fullmatch(name) is not None


def transport(name: str) -> str | None:
    """Return `pcie` for the two; None for any other drive."""
    return TRANSPORT if is_micron(name) or is_iomemory(name) else None


def read(host: Host, name: str) -> dict[str, str]:
    """Return serial, model, firmware and for ioMemory pci_address, as far as known; {} for any other drive."""
    if is_micron(name):
        page = _identify(host, "/dev/" + name)
        texts = {key: page[place].decode("ascii", "replace").strip("\0 ") for key, place in _TEXTS.items()}
        return {key: text for key, text in texts.items() if text}
    return _card(host, name) if is_iomemory(name) else {}


def numa_node(host: Host, name: str) -> int | None:
    """Return the NUMA node of an ioMemory card's slot, as its block device has no parent in sysfs; None without one."""
    address = read(host, name).get("pci_address") if is_iomemory(name) else None
    text = host.get(f"/sys/bus/pci/devices/0000:{address}/numa_node") if address else None
    return int(text) if text is not None and re.fullmatch(r"[0-9]+", text) else None


def _identify(host: Host, path: str) -> bytes:
    try:
        handle = host.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        return host.ioctl(handle, HDIO_GET_IDENTITY, bytes(_IDENTIFY_BYTES))
    except OSError:
        return b""
    finally:
        os.close(handle)


def _card(host: Host, name: str) -> dict[str, str]:
    try:
        own = [card for card in iomemory.cards(host) if card.block == name]
    except ToolError:
        return {}
    if len(own) != 1:
        return {}
    facts = {key: getattr(own[0], key) for key in ("serial", "model", "firmware", "pci_address")}
    return {key: value for key, value in facts.items() if value}
