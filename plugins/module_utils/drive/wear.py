# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was written to a drive in its life, as it counts itself: by the host and, where it tells (OCP's log), to its
flash. What a drive does not tell is None.
"""

from __future__ import annotations

import typing as t

from ..core.host import Host
from . import health

# NVM Express counts data units of 1,000 blocks of 512 bytes, rounded up.
UNIT_BYTES = 512_000
SECTOR_BYTES = 512
ATA_WRITTEN = "Logical Sectors Written"
# nvme-cli's names of the field of OCP's log C0h, before and from version 2.11 on.
MEDIA_WRITTEN = ("Physical media units written", "physical_media_units_written")
# With less written, the units' rounding and the drive's own housekeeping are a large part of the quotient.
LEAST_BYTES = 10**9

Mapping = t.Mapping[str, t.Any]
Written = t.Dict[str, t.Any]


def read(host: Host, identity: Mapping) -> Written:
    """{host_bytes, media_bytes, used_pct}."""
    path, transport = str(identity.get("path")), identity.get("transport")
    if transport == "nvme":
        log, error = health.ask(host, ["nvme", "smart-log", path, "--output-format=json"])
        units = None if error else health.whole(log.get("data_units_written"))
        return {
            "host_bytes": None if units is None else units * UNIT_BYTES,
            "media_bytes": _media(host, path),
            "used_pct": None if error else health.whole(log.get("percent_used")),
        }
    if transport not in ("sata", "sas"):
        return {"host_bytes": None, "media_bytes": None, "used_pct": None}
    told, _error = health.ask(host, ["smartctl", "--json=c", "-a", "-l", "devstat", path], any_code=True)
    return {
        "host_bytes": _of_smartctl(told),
        "media_bytes": None,
        "used_pct": health.from_smartctl(told)["used_pct"],
    }


def _media(host: Host, path: str) -> int | None:
    log, error = health.ask(host, ["nvme", "ocp", "smart-add-log", path, "--output-format=json"])
    told = next((log[name] for name in MEDIA_WRITTEN if name in log), None) if not error else None
    if isinstance(told, dict):
        high, low = health.whole(told.get("hi")), health.whole(told.get("lo"))
        return None if None in (high, low) else (t.cast(int, high) << 64) + t.cast(int, low)
    return health.whole(told)


def _of_smartctl(told: Mapping) -> int | None:
    for row in health.ata_statistics(told):
        if row.get("name") == ATA_WRITTEN:
            sectors = health.whole(row.get("value"))
            block = health.whole(told.get("logical_block_size")) or SECTOR_BYTES
            return None if sectors is None else sectors * block
    counters = told.get("scsi_error_counter_log")
    written = counters.get("write") if isinstance(counters, dict) else None
    try:
        return int(float(written["gigabytes_processed"]) * 1e9) if isinstance(written, dict) else None
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def spent(before: Mapping, now: Mapping) -> Written | None:
    """What a test cost: {host_bytes, media_bytes, write_amplification, used_pct}; None where the drive tells nothing.

    write_amplification: media over host; None below LEAST_BYTES. used_pct: of the rated life, by the drive, at the end.
    """
    host_bytes, media_bytes = (_grown(before.get(key), now.get(key)) for key in ("host_bytes", "media_bytes"))
    if host_bytes is None and media_bytes is None and now.get("used_pct") is None:
        return None
    quotient = None
    if host_bytes is not None and media_bytes is not None and host_bytes >= LEAST_BYTES:
        quotient = round(media_bytes / host_bytes, 3)
    return {
        "host_bytes": host_bytes,
        "media_bytes": media_bytes,
        "write_amplification": quotient,
        "used_pct": now.get("used_pct"),
    }


def _grown(before: t.Any, now: t.Any) -> int | None:
    """None also where the count began anew."""
    return now - before if isinstance(before, int) and isinstance(now, int) and now >= before else None
