# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The health of drives that neither nvme-cli nor smartctl know: Micron P320h / P420m by rssdm, ioMemory by fio-status.
Parts of the form of drive/health.py.

Sources: see rssdm.py and iomemory.py; /sys/block/rssd*/status: drivers/block/mtip32xx; the P320h's and P420m's spare:
Dell OpenManage's user guide ("PCIe SSD, device life status": read-only below 10 %); `fio-status -fj`: release notes of
VSL 3.2.9, and public programs that read it.
"""

from __future__ import annotations

import math
import re
import typing as t

from ..core import tool_json
from ..core.host import Host
from ..records.vendor_tools import Card
from . import iomemory, rssdm
from .vendor_identity import is_iomemory, is_micron
from .vendor_tool import ToolError

HEALTHY = "Healthy"
MICRON_SPARE_THRESHOLD_PCT = 10
# What mtip32xx reports of a drive, as bits of NVMe's critical_warning.
MICRON_STATUS = {"online": 0x00, "thermal_shutdown": 0x02, "write_protect": 0x08}
# Where an ioMemory begins to throttle, in °C; the second is older.
THROTTLES_AT = ("controller_throttle_start_deg_c", "temp_internal_warn_deg_c")

# Fields of drive/health.Health, which lies above this package.
Found = t.Dict[str, t.Any]


def read(host: Host, name: str, serial: str, limits: bool = True) -> tuple[Found, str]:
    """Return (what the vendor's tool reports, why it reports nothing) of the drive with this kernel name, such as rssda
    or fioa. limits false: only what changes.
    """
    try:
        if is_micron(name):
            drive = rssdm.find(host, serial)
            return dict(from_rssdm(drive, _smart(host, drive.drive_id)), **glance(host, name)), ""
        if is_iomemory(name):
            found = from_card(iomemory.find(host, serial))
            if limits:
                found["warning_temperature_c"] = throttle_c(
                    host.run(["fio-status", "-fj"], timeout_s=iomemory.TIMEOUT_S).stdout, "/dev/" + name
                )
            return found, ""
    except ToolError as error:
        return {}, str(error)
    return {}, f"no tool is known for {name}"


def _smart(host: Host, drive_id: str) -> dict[str, int]:
    """Read the SMART values; none if this rssdm does not report them: what its list reports still counts."""
    try:
        return rssdm.smart(host, drive_id)
    except ToolError:
        return {}


def glance(host: Host, name: str) -> Found:
    """Read, without a command to the drive, whether a P320h or P420m has shut down for heat or is read-only."""
    status = host.get(f"/sys/block/{name}/status") if is_micron(name) else None
    return {"critical_warning": MICRON_STATUS[status]} if status in MICRON_STATUS else {}


def from_rssdm(drive: rssdm.RssdmDrive, smart: t.Mapping[str, int]) -> Found:
    """Return the health from `rssdm -L` and `rssdm -S`."""
    spare = smart.get(rssdm.RESERVED_SPACE)
    return {
        "source": "rssdm",
        "temperature_c": _degrees(drive.fields.get("temp(c)", "")),
        "passed": drive.status == rssdm.GOOD_HEALTH if drive.status else None,
        "verdict": drive.status or None,
        "spare_pct": spare if spare is not None and spare <= 100 else None,
        "spare_threshold_pct": MICRON_SPARE_THRESHOLD_PCT,
        "used_pct": smart.get(rssdm.LIFETIME_USED),
        "media_errors": smart.get(rssdm.UNCORRECTABLE),
    }


def from_card(card: Card) -> Found:
    """Return the health from `fio-status -a`, per cent rounded so that a check fires neither early nor late."""
    good = None if card.reserve is None else card.reserve == HEALTHY
    return {
        "source": "fio-status",
        "temperature_c": None if card.temperature_c is None else round(card.temperature_c),
        "highest_temperature_c": None if card.highest_c is None else round(card.highest_c),
        "passed": False if card.trouble else good,
        "verdict": card.trouble or card.reserve,
        "spare_pct": None if card.reserves_pct is None else math.ceil(card.reserves_pct),
        "spare_threshold_pct": None if card.reserves_warn_pct is None else math.ceil(card.reserves_warn_pct),
        "used_pct": None if card.writes_left_pct is None else math.floor(100 - card.writes_left_pct),
        "volatile_write_cache": False if card.power_loss == "protected" else None,
    }


def throttle_c(text: str, path: str) -> int | None:
    """Return the temperature at which the card with this block device begins to throttle, by `fio-status -fj`."""
    try:
        data = tool_json.read(text)
    except tool_json.NotOneObject:
        return None
    modules = [module for adapter in _list(data, "adapter") for module in _list(adapter, "iomemory")]
    own = [module for module in modules if path in [vsu.get("device_path") for vsu in _list(module, "vsu")]]
    limits = [_degrees(str(own[0].get(key))) for key in THROTTLES_AT] if len(own) == 1 else []
    return next((value for value in limits if value is not None), None)


def _degrees(text: str) -> int | None:
    match = re.fullmatch(r"\s*([0-9]{1,3})(?:\.[0-9]*)?\s*C?", text)
    return int(match.group(1)) if match else None


def _list(data: t.Any, key: str) -> list[dict[str, t.Any]]:
    value = data.get(key) if isinstance(data, dict) else None
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
