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
from ..records.base import Scalar
from ..records.vendor_tools import VendorSettings
from . import iomemory, iomemory_settings, rssdm, rssdm_settings, vendor_identity
from .vendor_tool import ToolError


def read(host: Host, name: str, serial: str, state_dir: str) -> VendorSettings | None:
    """Return the settings of the drive with this kernel name, None for one that is not shown; None for a drive without
    such a tool.
    """
    if vendor_identity.is_micron(name):
        return _read("rssdm", lambda: _read_micron(host, serial, state_dir))
    if vendor_identity.is_iomemory(name):
        return _read("iomemory", lambda: _read_iomemory(host, serial))
    return None


def _read(tool: t.Literal["rssdm", "iomemory"], query: t.Callable[[], VendorSettings]) -> VendorSettings:
    try:
        return query()
    except (ToolError, OSError) as error:
        return VendorSettings(tool, {}, {}, str(error))


def _read_micron(host: Host, serial: str, state_dir: str) -> VendorSettings:
    _drive, current = rssdm.read_settings(host, serial)
    pending = rssdm_settings.read_pending(host, serial, current, state_dir)
    return VendorSettings(
        "rssdm", rssdm_settings.format_values(current), rssdm_settings.format_values(pending), error=""
    )


def _read_iomemory(host: Host, serial: str) -> VendorSettings:
    card = iomemory.find(host, serial)
    delay = iomemory_settings.apply_dma_delay(host, None)
    waits = delay.configured is not None and delay.effective is not None and delay.configured != delay.effective
    settings = {"dma_delay": delay.effective, "size_pct": card.size_pct, "sector_bytes": card.sector_bytes}
    return VendorSettings("iomemory", {**settings}, {"dma_delay": delay.configured} if waits else {}, error="")


def differences(found: VendorSettings, options: t.Mapping[str, t.Any]) -> list[str]:
    """Return, in sentences, what is active and not as requested. options: the drive's part of the plan (vendor_rssdm,
    vendor_iomemory_dma_delay).

    vendor_settings disturbs: `rssdm -L -d`, `/sys/module/*/parameters/iodrive_dma_delay`; kept with every result.
      Limit: any difference from the inventory's (`vendor_rssdm`, `vendor_iomemory_dma_delay`)
    """
    try:
        requested = _requested(found, options)
    except ToolError as error:
        return [str(error)]
    texts = []
    for name, value in sorted(requested.items()):
        now = found.settings.get(name)
        if now is not None and now != value:
            text = "its {0} is {1}, the inventory wants {2}".format(name.replace("_", " "), now, value)
            pending = found.pending.get(name) == value
            texts.append(text + ("; that value is set but not yet in force" if pending else ""))
    return texts


def unknown(found: VendorSettings, options: t.Mapping[str, t.Any]) -> list[str]:
    """Return, in sentences, what can't be known: the tool failed, or does not show what is requested.

    vendor_settings unknown: the vendor's tool failed, or does not show what the inventory wants. Limit: none
    """
    if found.error:
        return [f"the vendor's settings are unknown: {found.error}"]
    try:
        requested = _requested(found, options)
    except ToolError:
        return []
    return [
        "its {0} is unknown, the inventory wants {1}".format(name.replace("_", " "), requested[name])
        for name in sorted(requested)
        if found.settings.get(name) is None
    ]


def pending(found: VendorSettings) -> list[str]:
    """Return, in sentences, what was set and is not active yet.

    vendor_settings told: a setting that waits for a power cycle, if the inventory does not name it. Limit: any
    """
    text = (
        "its {0} was set to {1} but measured at {2}: the change takes a power cycle (ioMemory: a reload of the driver)"
    )
    return [
        text.format(name.replace("_", " "), value, found.settings.get(name))
        for name, value in sorted(found.pending.items())
    ]


def _requested(found: VendorSettings, options: t.Mapping[str, t.Any]) -> dict[str, Scalar]:
    """Return what the inventory requests, in the form of `read`. Raises ToolError."""
    if found.tool == rssdm.TOOL:
        return rssdm_settings.format_values(rssdm_settings.requested(options))
    delay = iomemory_settings.parse_dma_delay(options.get("dma_delay"))
    return {} if delay is None else {"dma_delay": iomemory_settings.DMA_DEFAULT if delay == "default" else delay}
