# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How vendors count what was written to a drive: SMART attributes of SATA drives, and log pages of NVMe drives. Pure.

An attribute is known by the name that smartctl's database gives it for the model: the same number has other meanings in
other models, which the database does not name so. What is not in these tables is unknown.
"""

from __future__ import annotations

import typing as t

from . import health

MIB, GIB = 1 << 20, 1 << 30

Mapping = t.Mapping[str, t.Any]


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


def of_attributes(told: Mapping, units: t.Mapping[str, int]) -> Count | None:
    """Return the count of a drive, from smartctl's JSON. units: ATA_MEDIA or ATA_HOST."""
    found = [(value * units[name], units[name], name) for name, value in _attributes(told) if name in units]
    if len({count[:2] for count in found}) != 1:
        return None
    return Count(*found[0][:2], " ".join(sorted({name for _bytes, _unit, name in found})))


def pages(told: Mapping) -> tuple[int | None, int | None]:
    """Pages that were programmed: (for the host, in all), from smartctl's JSON."""
    host, own = (
        {value for name, value in _attributes(told) if name in names} for names in (ATA_HOST_PAGES, ATA_OWN_PAGES)
    )
    if len(host) != 1 or len(own) != 1:
        return None, None
    written = host.pop()
    return written, written + own.pop()


def _attributes(told: Mapping) -> list[tuple[str, int]]:
    rows = [row for row in health.ata_attributes(told) if isinstance(row.get("raw"), dict)]
    values = [(str(row.get("name")), health.nvme_number(row["raw"].get("value"))) for row in rows]
    return [(name, value) for name, value in values if value is not None]


def of_log(told: Mapping, log: VendorLog) -> Count | None:
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
    return health.nvme_number(value)
