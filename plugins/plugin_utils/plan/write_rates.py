# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drive is taken to write in sequence until its own rate is known: by the user's word, or by its link. Pure."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ...module_utils.records.found_drives import FoundDrive
from ...module_utils.records.identity import Identity
from ...module_utils.records.plan import OTHER_WRITE_BYTES_PER_S
from ..common import values

MIB = 1 << 20
MB = 10**6


class WriteRates(t.NamedTuple):
    """Bytes/s. assumed: what most drives write at least, by which time is estimated. Wear is bounded by most, which no
    drive exceeds, and by lasting: what none keeps up over all of its capacity. source: whose word that is.
    """

    assumed: float
    most: float
    lasting: float
    source: str


class Measured(t.NamedTuple):
    """How fast an earlier run filled a drive, in bytes/s: its median and its highest. source: which run, and whether
    this drive.
    """

    bytes_per_s: float
    highest: float
    source: str


@dataclass(frozen=True)
class DriveToPlan(FoundDrive):
    """A drive as its host found it, with how fast an earlier run filled it, where one did."""

    measured: Measured | None = None


class Kind(t.NamedTuple):
    """Drives of a transport: the share of what their link carries that most of them write in sequence, and what it
    carries at least and at most where the host does not tell, in MB/s.
    """

    share: float
    least_mb_s: float
    most_mb_s: float


# SATA at 6 Gb/s, SAS at 12 and 24, NVMe from PCIe 3.0 x4 to 5.0 x4, cards of PCIe 2.0 x4 to x8.
KINDS = {
    "sata": Kind(7 / 8, 600.0, 600.0),
    "sas": Kind(7 / 8, 1200.0, 2400.0),
    "nvme": Kind(0.4, 3938.4, 15754.0),
    "pcie": Kind(0.4, 2000.0, 4000.0),
}
# The fewer dies a drive has, the less they write: data sheets of 0.24 to 1.92 TB say 1.3 to 1.5 GB/s for each TB.
MB_S_PER_TB = 1300.0
# What no drive of TLC keeps up once its fast flash is full. A TB has 16 dies of 512 Gbit; the fastest published ones
# program 160 to 205 MB/s each (papers of ISSCC 2021 to 2024), so 3.3 GB/s; drives of mixed use hide a fifth of them.
# Of data sheets the Micron 9550 MAX has most: 10 GB/s at 3.2 TB. SLC and Optane do more (12 GB/s for each TB).
LASTING_MB_S_PER_TB = 4000.0
# The share of a drive that its flash may hold in a fast mode (SLC, a third of the bits of TLC).
CACHED_SHARE = 1 / 3
# Over the fastest fill of an earlier run.
OVER_MEASURED = 1.25
TB = 10**12
OF_USER, OF_LINK = "ssd_assumed_write_mib_s", "by its link and size: ssd_assumed_write_mib_s"


def of_found(asked: t.Any, drive: DriveToPlan) -> WriteRates:
    """Return the rates of a drive that was found."""
    return of_drive(asked, drive.identity or Identity(), drive.link_mb_s, drive.measured)


def of_drive(
    asked: t.Any, identity: Identity, link_mb_s: float | None = None, measured: Measured | None = None
) -> WriteRates:
    """Return the rates of a drive. asked: ssd_assumed_write_mib_s, which stands for all if it is a number; link_mb_s:
    what its link carries, None where the host does not tell.
    """
    given = values.number(asked)
    if given and given > 0:
        return WriteRates(given * MIB, given * MIB, given * MIB, OF_USER)
    kind = KINDS.get(str(identity.transport))
    if kind is None:
        if measured is None:
            return WriteRates(OTHER_WRITE_BYTES_PER_S, OTHER_WRITE_BYTES_PER_S, OTHER_WRITE_BYTES_PER_S, OF_USER)
        most = OVER_MEASURED * measured.highest
        return WriteRates(_rounded(measured.bytes_per_s), most, most, measured.source)
    terabytes, most = (identity.size_bytes or 0) / TB, (link_mb_s or kind.most_mb_s) * MB
    if measured:
        lasting = min(most, OVER_MEASURED * measured.highest)
        return WriteRates(min(_rounded(measured.bytes_per_s), most), most, lasting, measured.source)
    assumed_mb_s = min(kind.share * (link_mb_s or kind.least_mb_s), MB_S_PER_TB * terabytes)
    return WriteRates(assumed_mb_s * MB, most, min(most, LASTING_MB_S_PER_TB * terabytes * MB), OF_LINK)


def _rounded(bytes_per_s: float) -> float:
    """Return a rate in two digits, so that drives of a kind have one line in plan mode."""
    return float(f"{bytes_per_s:.1e}")
