# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which of a vendor's settings are in force on a drive, and whether they are those that the inventory wants. It only
reads.

A setting of a P320h or P420m counts from the next power cycle on, ioMemory's write delay from the next load of its
driver: until then what was set is `pending`, and what is measured is the old value.
"""

from __future__ import annotations

import typing as t

from ..core.host import Host
from . import iomemory, iomemory_dma, rssdm, rssdm_settings, vendor_identity
from .vendor_tool import ToolError

IOMEMORY = "iomemory"


def read(host: Host, identity: t.Mapping[str, t.Any], state_dir: str) -> dict[str, t.Any] | None:
    """{tool, settings: {name: value; None: it does not show it}, pending: {name: value}, error}; None for a drive
    without such a tool.
    """
    name, serial = str(identity.get("kernel_name") or ""), str(identity.get("serial") or "")
    if vendor_identity.is_micron(name):
        return _told(rssdm.TOOL, lambda: _micron(host, serial, state_dir))
    if vendor_identity.is_iomemory(name):
        return _told(IOMEMORY, lambda: _iomemory(host, serial))
    return None


def _told(tool: str, ask: t.Any) -> dict[str, t.Any]:
    try:
        return dict(ask(), tool=tool, error="")
    except (ToolError, OSError) as error:
        return {"tool": tool, "settings": {}, "pending": {}, "error": str(error)}


def _micron(host: Host, serial: str, state_dir: str) -> dict[str, t.Any]:
    _drive, seen = rssdm.read(host, serial)
    pending = rssdm_settings.pending(host, serial, seen, state_dir)
    return {"settings": rssdm_settings.show(seen), "pending": rssdm_settings.show(pending)}


def _iomemory(host: Host, serial: str) -> dict[str, t.Any]:
    card = iomemory.find(iomemory.cards(host), serial)
    delay = iomemory_dma.apply(host, None)
    waiting = delay.configured is not None and delay.effective is not None and delay.configured != delay.effective
    settings = {"dma_delay": delay.effective, "size_pct": card.size_pct, "sector_bytes": card.sector_bytes}
    return {"settings": settings, "pending": {"dma_delay": delay.configured} if waiting else {}}


def differences(seen: t.Mapping[str, t.Any], wanted: t.Mapping[str, t.Any]) -> list[str]:
    """What is in force and is not what the inventory wants, as sentences. wanted: the drive's part of the plan
    (vendor_rssdm, vendor_iomemory_dma_delay).
    """
    try:
        asked = _asked(seen["tool"], wanted)
    except ToolError as error:
        return [str(error)]
    found = []
    for name, value in sorted(asked.items()):
        now = seen["settings"].get(name)
        if now is not None and now != value:
            text = "its {0} is {1}, the inventory wants {2}".format(name.replace("_", " "), now, value)
            found.append(
                text + ("; that value is set but not yet in force" if seen["pending"].get(name) == value else "")
            )
    return found


def unseen(seen: t.Mapping[str, t.Any], wanted: t.Mapping[str, t.Any]) -> list[str]:
    """What can't be known of a vendor's settings, as sentences: the tool's failure, or what the inventory wants and the
    tool does not show.
    """
    if seen["error"]:
        return ["the vendor's settings are unknown: {0}".format(seen["error"])]
    try:
        asked = _asked(seen["tool"], wanted)
    except ToolError:
        return []
    return [
        "its {0} is unknown, the inventory wants {1}".format(name.replace("_", " "), asked[name])
        for name in sorted(asked)
        if seen["settings"].get(name) is None
    ]


def waiting(seen: t.Mapping[str, t.Any]) -> list[str]:
    """What was set and is not in force, as sentences."""
    text = (
        "its {0} was set to {1} but measured at {2}: the change takes a power cycle (ioMemory: a reload of the driver)"
    )
    return [
        text.format(name.replace("_", " "), value, seen["settings"].get(name))
        for name, value in sorted(seen["pending"].items())
    ]


def _asked(tool: str, wanted: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """What the inventory wants, as `read` shows it."""
    if tool == rssdm.TOOL:
        return rssdm_settings.show(rssdm_settings.wanted(wanted))
    delay = iomemory_dma.wanted_value(wanted.get("dma_delay"))
    return {} if delay is None else {"dma_delay": iomemory_dma.DEFAULT if delay == "default" else delay}
