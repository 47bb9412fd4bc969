# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was written to a drive in its life, as it counts itself: by the host and, where OCP's log or its vendor's tells,
to its flash. What a drive does not tell is None.

Vendors count in SMART attributes (SATA) and log pages (NVMe). An attribute is known by the name that smartctl's
database gives it for the model: the same number has other meanings in other models, which the database does not name
so. What is not in these tables is unknown.
"""

from __future__ import annotations

import typing as t

from ..core.host import Host
from ..core.sysfs import nvme_controllers
from ..records.health import Wear
from ..records.identity import Identity
from ..tools.nvme import nvme_number
from . import ata_health, health

MIB, GIB = 1 << 20, 1 << 30

Mapping = t.Mapping[str, t.Any]

# NVM Express counts data units of 1,000 blocks of 512 bytes, rounded up.
UNIT_BYTES = 512_000
SECTOR_BYTES = 512
ATA_WRITTEN = "Logical Sectors Written"
# nvme-cli's names of the field of OCP's log C0h, before and from version 2.11 on.
MEDIA_WRITTEN = ("Physical media units written", "physical_media_units_written")
# With less written, the units' rounding and the drive's own housekeeping are a large part of the quotient.
LEAST_BYTES = 10**9
LEAST_UNITS = 100
# Counts, and what tells of which of a drive's counters each is; pages have one alone.
SOURCES = (("host_bytes", "host_source"), ("media_bytes", "media_source"), ("host_pages", ""), ("media_pages", ""))


class Lifetime(t.NamedTuple):
    """What was written in a drive's life. The sources: which of its counters each is."""

    host_bytes: int | None = None
    host_source: str | None = None
    media_bytes: int | None = None
    media_source: str | None = None
    # Of its rated life, by its own count.
    used_pct: int | None = None
    # In bytes, the coarsest of both counts.
    unit: int = 1
    # Of a size that the drive does not tell.
    host_pages: int | None = None
    media_pages: int | None = None


class Count(t.NamedTuple):
    """Bytes, in steps of `unit` bytes; source: which of a drive's counters it is."""

    bytes: int
    unit: int
    source: str


class VendorLog(t.NamedTuple):
    """A log page that a plug-in of nvme-cli reads.

    arguments: of nvme, before the device and after it, one line for each spelling that versions have. keys: of the
      count in the JSON, each somewhere below the one before.
    """

    arguments: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    keys: tuple[str, ...]
    unit: int


# Names of smartctl's drivedb.h (commit f1d0da9): Intel and Solidigm, SanDisk, Phison (Kingston among them), Seagate,
# SK hynix, SandForce, Innodisk. Samsung's NAND_Writes has no unit there.
ATA_MEDIA = {
    "NAND_Writes_32MiB": 32 * MIB,
    "NAND_Writes_1GiB": GIB,
    "NAND_Writes_GiB": GIB,
    "NAND_GiB_Written": GIB,
    "Total_NAND_Writes_GiB": GIB,
    "Flash_Writes_32MiB": 32 * MIB,
    "Flash_Writes_GiB": GIB,
}
# What the host wrote, of drives without the standard statistic of it.
ATA_HOST = {
    "Host_Writes_32MiB": 32 * MIB,
    "Host_Writes_GiB": GIB,
    "Lifetime_Writes_GiB": GIB,
    "Total_Writes_GiB": GIB,
}
# Micron (TN-FD-22, TN-FD-23: write amplification is (247 + 248) / 247) counts pages, and does not tell their size.
ATA_HOST_PAGES = ("Host_Program_Page_Count",)
ATA_OWN_PAGES = ("FTL_Program_Page_Count", "Bckgnd_Program_Page_Cnt")

# By PCI vendor. Intel's product specifications have the unit, as many sectors of 512 bytes; nvme-cli calls it sectors.
_INTEL_KEYS = ("Device stats", "nand_bytes_written", "raw")
NVME_LOGS = {
    "0x8086": VendorLog(((("intel", "smart-log-add"), ("--json",)),), _INTEL_KEYS, 32 * MIB),
    "0x025e": VendorLog(((("solidigm", "smart-log-add"), ("--output-format=json",)),), _INTEL_KEYS, 32 * MIB),
    "0x1344": VendorLog(
        (
            (("micron", "vs-nand-stats"), ("--format=json",)),
            (("micron", "vs-nand-stats"), ("--output-format=json",)),
        ),
        ("NAND Writes (Bytes Written)",),
        1,
    ),
}


def attribute_count(told: Mapping, units: t.Mapping[str, int]) -> Count | None:
    """Return the count of a drive, from smartctl's JSON. units: ATA_MEDIA or ATA_HOST."""
    found = [(value * units[name], units[name], name) for name, value in _attributes(told) if name in units]
    if len({count[:2] for count in found}) != 1:
        return None
    return Count(*found[0][:2], " ".join(sorted({name for _bytes, _unit, name in found})))


def program_pages(told: Mapping) -> tuple[int | None, int | None]:
    """Pages that were programmed: (for the host, in all), from smartctl's JSON."""
    host, own = (
        {value for name, value in _attributes(told) if name in names} for names in (ATA_HOST_PAGES, ATA_OWN_PAGES)
    )
    if len(host) != 1 or len(own) != 1:
        return None, None
    written = host.pop()
    return written, written + own.pop()


def _attributes(told: Mapping) -> list[tuple[str, int]]:
    rows = [row for row in ata_health.attributes(told) if isinstance(row.get("raw"), dict)]
    values = [(str(row.get("name")), nvme_number(row["raw"].get("value"))) for row in rows]
    return [(name, value) for name, value in values if value is not None]


def vendor_log_count(told: Mapping, log: VendorLog) -> Count | None:
    """Return the count of a drive, from the JSON of its vendor's plug-in; None also for 0, which is what nvme-cli shows
    of a page that the drive does not fill.
    """
    found: t.Any = told
    for key in log.keys:
        found = _below(found, key)
    number = _number(found)
    return Count(number * log.unit, log.unit, " ".join(log.keys)) if number else None


def _below(data: t.Any, key: str) -> t.Any:
    """Return the first value of a key in mappings and lists, however deep."""
    if isinstance(data, dict) and key in data:
        return data[key]
    inner = list(data.values()) if isinstance(data, dict) else data if isinstance(data, list) else []
    return next((found for found in (_below(item, key) for item in inner) if found is not None), None)


def _number(value: t.Any) -> int | None:
    if isinstance(value, str) and value.lower().startswith("0x"):
        try:
            return int(value, 16)
        except ValueError:
            return None
    return nvme_number(value)


def read(host: Host, identity: Identity) -> Lifetime:
    """Return what the drive with this identity counted so far."""
    path, transport = str(identity.path), identity.transport
    if transport == "nvme":
        log, error = health.ask(host, ["nvme", "smart-log", path, "--output-format=json"])
        units = None if error else nvme_number(log.get("data_units_written"))
        written = None if units is None else Count(units * UNIT_BYTES, UNIT_BYTES, "smart-log")
        media = _ocp(host, path) or _vendors(host, identity)
        return _counts(written, media, None if error else nvme_number(log.get("percent_used")))
    if transport not in ("sata", "sas"):
        return _counts(None, None, None)
    told, _error = health.ask(host, ["smartctl", "--json=c", "-a", "-l", "devstat", path], any_code=True)
    return _counts(
        _of_smartctl(told) or attribute_count(told, ATA_HOST),
        attribute_count(told, ATA_MEDIA),
        health.from_smartctl(told).used_pct,
        program_pages(told),
    )


def _counts(
    written: Count | None,
    media: Count | None,
    used_pct: int | None,
    pages: tuple[int | None, int | None] = (None, None),
) -> Lifetime:
    return Lifetime(
        host_bytes=written.bytes if written else None,
        host_source=written.source if written else None,
        media_bytes=media.bytes if media else None,
        media_source=media.source if media else None,
        used_pct=used_pct,
        unit=max([count.unit for count in (written, media) if count], default=1),
        host_pages=pages[0],
        media_pages=pages[1],
    )


def _ocp(host: Host, path: str) -> Count | None:
    log, error = health.ask(host, ["nvme", "ocp", "smart-add-log", path, "--output-format=json"])
    told = next((log[name] for name in MEDIA_WRITTEN if name in log), None) if not error else None
    if isinstance(told, dict):
        high, low = nvme_number(told.get("hi")), nvme_number(told.get("lo"))
        return None if None in (high, low) else Count((t.cast(int, high) << 64) + t.cast(int, low), 1, "ocp")
    number = nvme_number(told)
    return None if number is None else Count(number, 1, "ocp")


def _vendors(host: Host, identity: Identity) -> Count | None:
    """By the vendor's own log page, of a vendor that is known to have it: others have other pages of that number."""
    name = identity.name
    vendors = {(host.get(controller + "/device/vendor") or "").lower() for controller in nvme_controllers(host, name)}
    log = NVME_LOGS.get(vendors.pop()) if len(vendors) == 1 else None
    for before, after in log.arguments if log else ():
        told, error = health.ask(host, ["nvme", *before, str(identity.path), *after])
        if log and not error:
            return vendor_log_count(told, log)
    return None


def _of_smartctl(told: Mapping) -> Count | None:
    for row in ata_health.statistics(told):
        if row.get("name") == ATA_WRITTEN:
            sectors = nvme_number(row.get("value"))
            block = nvme_number(told.get("logical_block_size")) or SECTOR_BYTES
            return None if sectors is None else Count(sectors * block, block, ATA_WRITTEN)
    counters = told.get("scsi_error_counter_log")
    written = counters.get("write") if isinstance(counters, dict) else None
    try:
        gigabytes = float(written["gigabytes_processed"]) if isinstance(written, dict) else None
        return None if gigabytes is None else Count(int(gigabytes * 1e9), 1, "scsi_error_counter_log")
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def spent(before: Lifetime, now: Lifetime) -> Wear | None:
    """Return what a test cost; None where the drive tells nothing.

    write_amplification: media over host, in bytes or else in pages; None below LEAST_BYTES and LEAST_UNITS. used_pct:
      of the rated life, by the drive, at the end.
    """
    host_bytes, media_bytes, host_pages, media_pages = (_grown(before, now, of, source) for of, source in SOURCES)
    if host_bytes is None and media_bytes is None and now.used_pct is None:
        return None
    quotient = None
    if host_bytes is not None and host_bytes >= max(LEAST_BYTES, LEAST_UNITS * now.unit):
        media_bytes = media_bytes or None  # a count that stands still beside so much
        if media_bytes:
            quotient = round(media_bytes / host_bytes, 3)
        elif host_pages and media_pages:
            quotient = round(media_pages / host_pages, 3)
    return Wear(host_bytes, media_bytes, quotient, now.used_pct)


def _grown(before: Lifetime, now: Lifetime, of: str, source: str) -> int | None:
    """By how much a count grew; None also where it began anew, or is of another of the drive's counters now."""
    first, last = getattr(before, of), getattr(now, of)
    other = source and getattr(before, source) != getattr(now, source)
    if other or not isinstance(first, int) or not isinstance(last, int):
        return None
    return last - first if last >= first else None
