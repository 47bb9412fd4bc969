# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The vendor's settings that are active on a drive, compared with those that the inventory requests. It only reads.

A setting of a P320h or P420m is active from the next power cycle on, ioMemory's write delay from the next load of its
driver: until then what was set is `pending`, and what is measured is the old value.
"""

from __future__ import annotations

import typing as t

from ..core.host import Host
from . import iomemory, iomemory_settings, rssdm, rssdm_settings, vendor_identity
from .vendor_tool import ToolError

IOMEMORY = "iomemory"
Settings = t.Dict[str, t.Any]


def read(host: Host, identity: t.Mapping[str, t.Any], state_dir: str) -> Settings | None:
    """Return {tool, settings: {name: value, None if it is not shown}, pending: {name: value}, error}; None for a drive
    without such a tool.
    """
    name, serial = str(identity.get("kernel_name") or ""), str(identity.get("serial") or "")
    if vendor_identity.is_micron(name):
        return _read(rssdm.TOOL, lambda: _read_micron(host, serial, state_dir))
    if vendor_identity.is_iomemory(name):
        return _read(IOMEMORY, lambda: _read_iomemory(host, serial))
    return None


def _read(tool: str, query: t.Callable[[], Settings]) -> Settings:
    try:
        return dict(query(), tool=tool, error="")
    except (ToolError, OSError) as error:
        return {"tool": tool, "settings": {}, "pending": {}, "error": str(error)}


def _read_micron(host: Host, serial: str, state_dir: str) -> Settings:
    _drive, current = rssdm.read_settings(host, serial)
    pending = rssdm_settings.read_pending(host, serial, current, state_dir)
    return {"settings": rssdm_settings.format_values(current), "pending": rssdm_settings.format_values(pending)}


def _read_iomemory(host: Host, serial: str) -> Settings:
    card = iomemory.find(host, serial)
    delay = iomemory_settings.apply_dma_delay(host, None)
    pending = delay.configured is not None and delay.effective is not None and delay.configured != delay.effective
    settings = {"dma_delay": delay.effective, "size_pct": card.size_pct, "sector_bytes": card.sector_bytes}
    return {"settings": settings, "pending": {"dma_delay": delay.configured} if pending else {}}


def differences(found: t.Mapping[str, t.Any], options: t.Mapping[str, t.Any]) -> list[str]:
    """Return, in sentences, what is active and not as requested. options: the drive's part of the plan (vendor_rssdm,
    vendor_iomemory_dma_delay).

    vendor_settings spoils: `rssdm -L -d`, `/sys/module/*/parameters/iodrive_dma_delay`; kept with every result. Limit:
      any difference from the inventory's (`vendor_rssdm`, `vendor_iomemory_dma_delay`)
    """
    try:
        requested = _requested(found["tool"], options)
    except ToolError as error:
        return [str(error)]
    texts = []
    for name, value in sorted(requested.items()):
        now = found["settings"].get(name)
        if now is not None and now != value:
            text = "its {0} is {1}, the inventory wants {2}".format(name.replace("_", " "), now, value)
            pending = found["pending"].get(name) == value
            texts.append(text + ("; that value is set but not yet in force" if pending else ""))
    return texts


def unknown(found: t.Mapping[str, t.Any], options: t.Mapping[str, t.Any]) -> list[str]:
    """Return, in sentences, what can't be known: the tool failed, or does not show what is requested.

    vendor_settings unknown: the vendor's tool failed, or does not show what the inventory wants. Limit: none
    """
    if found["error"]:
        return ["the vendor's settings are unknown: {0}".format(found["error"])]
    try:
        requested = _requested(found["tool"], options)
    except ToolError:
        return []
    return [
        "its {0} is unknown, the inventory wants {1}".format(name.replace("_", " "), requested[name])
        for name in sorted(requested)
        if found["settings"].get(name) is None
    ]


def pending(found: t.Mapping[str, t.Any]) -> list[str]:
    """Return, in sentences, what was set and is not active yet.

    vendor_settings told: a setting that waits for a power cycle, if the inventory does not name it. Limit: any
    """
    text = (
        "its {0} was set to {1} but measured at {2}: the change takes a power cycle (ioMemory: a reload of the driver)"
    )
    return [
        text.format(name.replace("_", " "), value, found["settings"].get(name))
        for name, value in sorted(found["pending"].items())
    ]


def _requested(tool: str, options: t.Mapping[str, t.Any]) -> Settings:
    """Return what the inventory requests, in the form of `read`. Raises ToolError."""
    if tool == rssdm.TOOL:
        return rssdm_settings.format_values(rssdm_settings.requested(options))
    delay = iomemory_settings.parse_dma_delay(options.get("dma_delay"))
    return {} if delay is None else {"dma_delay": iomemory_settings.DMA_DEFAULT if delay == "default" else delay}
