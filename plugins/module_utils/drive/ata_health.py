# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The health of a SATA drive by smartctl's JSON. Pure.

An attribute is known by the name that smartctl's database has for it in this model, never by its number, whose meaning
differs between models. A name that is not in these tables says nothing. For a model that is not in the database
smartctl prints the names that most drives use; then only the standard's own statistics (ATA ACS-4, Device Statistics
log) count.
"""

from __future__ import annotations

import typing as t

from ..tools.nvme import nvme_number

Json = t.Mapping[str, t.Any]

# Names of smartctl's drivedb.h (commit f1d0da9). Each counts on: Offline_Uncorrectable falls when a sector is written
# again, and Current_Pending_Sector flips between 0 and 1 on some client SSDs while all is well (smartmontools ticket
# 1227).
COUNTERS: t.Mapping[str, frozenset[str]] = {
    "media_errors": frozenset(
        (
            "Reported_Uncorrect",
            "Reported_Uncorr_Errors",
            "Reported_UE_Counts",
            "Uncorrectable_Error_Cnt",
            "Uncorrectable_Err_Ct",
            "Uncorrectable_ECC_Ct",
            "Uncorrectable_Sectors",
            "Uncor_Read_Error_Ct",
            "SATA_UNC_Count",
            "UECC_Sector_Count",
            "Lifetime_UECC_Ct",
            "Total_Unc_Read_Failures",
        )
    ),
    "interface_crc_errors": frozenset(
        (
            "UDMA_CRC_Error_Count",
            "CRC_Error_Count",
            "CRC_Errors",
            "SATA_CRC_Error",
            "SATA_CRC_Error_Count",
            "SATA_Error_Ct_CRC",
            "SATA_FIS_CRC_Errors",
        )
    ),
    "unsafe_shutdowns": frozenset(
        (
            "Unsafe_Shutdown_Count",
            "Unclean_Shutdown_Ct",
            "Unexpect_Power_Loss",
            "Unexpect_Power_Loss_Cnt",
            "Unexpect_Power_Loss_Ct",
            "Unexpect_PwrLoss_Ct",
            "Unexpected_Power_Loss",
            "Unexpected_Pwr_Loss_Cnt",
            "Unexpected_Pwr_Loss_Ct",
        )
    ),
}
# The same in the standard's own statistics; it has none of unsafe shutdowns.
STATISTICS = {
    "media_errors": "Number of Reported Uncorrectable Errors",
    "interface_crc_errors": "Number of Interface CRC Errors",
}
USED = "Percentage Used Endurance Indicator"
# Of a drive's rated life: the attribute, the one of its figures that counts (value: normalized; raw), and whether that
# is what is left of 100 %. Of several the first one counts.
LIFE = (
    ("Percent_Lifetime_Used", "raw", False),
    ("Perc_Rated_Life_Used", "raw", False),
    ("Percent_Life_Used", "raw", False),
    ("Remaining_Lifetime_Perc", "raw", True),
    ("Percent_Lifetime_Remain", "value", True),
    ("Percent_Life_Remaining", "value", True),
    ("Perc_Rated_Life_Remain", "value", True),
    ("SSD_Life_Left", "value", True),
    ("Media_Wearout_Indicator", "value", True),
    ("Wear_Leveling_Count", "value", True),
)
# Media_Wearout_Indicator of SanDisk and Western Digital has this number, and begins at 1.
COUNTS_UP = 230
# A larger raw value holds several figures.
MOST_COUNT = 1 << 32


def attributes(data: Json) -> list[dict[str, t.Any]]:
    """Return the rows of smartctl's table of SMART attributes."""
    return _rows(data.get("ata_smart_attributes"), "table")


def statistics(data: Json) -> list[dict[str, t.Any]]:
    """Return the rows of smartctl's device statistics."""
    return [row for page in _rows(data.get("ata_device_statistics"), "pages") for row in _rows(page, "table")]


def counters(data: Json) -> dict[str, dict[str, int]]:
    """Return how often each of COUNTERS happened in the drive's life, by each attribute or statistic that counts it;
    those alone that are counted.
    """
    standard = {str(row.get("name")): nvme_number(row.get("value")) for row in statistics(data)}
    found = {}
    for counter, names in COUNTERS.items():
        # Models give several attributes one name.
        counts = {f"{row.get('id')} {row.get('name')}": _raw(row) for row in named(data) if row.get("name") in names}
        counts.update({name: count for name, count in standard.items() if name == STATISTICS.get(counter)})
        found[counter] = {
            name: count for name, count in counts.items() if count is not None and 0 <= count < MOST_COUNT
        }
    return {counter: counts for counter, counts in found.items() if counts}


def used_pct(data: Json) -> int | None:
    """Return how much of its rated life the drive has used, in %."""
    standard = [nvme_number(row.get("value")) for row in statistics(data) if row.get("name") == USED]
    if standard:
        return standard[0]
    rows = [row for row in named(data) if row.get("id") != COUNTS_UP]
    for name, figure, is_left in LIFE:
        for row in rows:
            value = _raw(row) if figure == "raw" else nvme_number(row.get("value"))
            if row.get("name") == name and value is not None and 0 <= value <= 100:
                return 100 - value if is_left else value
    return None


def named(data: Json) -> list[dict[str, t.Any]]:
    """Return the attributes whose names are those of the drive's own model."""
    return [] if data.get("in_smartctl_database") is False else attributes(data)


def _raw(row: Json) -> int | None:
    raw = row.get("raw")
    return nvme_number(raw.get("value")) if isinstance(raw, dict) else None


def _rows(data: t.Any, key: str) -> list[dict[str, t.Any]]:
    listed = data.get(key) if isinstance(data, dict) else None
    return [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []
