# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drive is taken to write in sequence until its own rate is known: by the user's word, or by its link. Pure."""

from __future__ import annotations

import typing as t

from ...module_utils.records.plan import OTHER_WRITE_BYTES_PER_S
from ..common import values

MIB = 1 << 20
MB = 10**6


class WriteRates(t.NamedTuple):
    """Bytes/s. assumed: what most drives write at least, by which time is estimated; most: what no drive exceeds, by
    which wear is bounded.
    """

    assumed: float
    most: float


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
TB = 10**12


def of_drive(asked: t.Any, identity: t.Mapping[str, t.Any], link_mb_s: float | None = None) -> WriteRates:
    """Return the rates of a drive. asked: ssd_assumed_write_mib_s, which stands for both if it is a number; link_mb_s:
    what its link carries, None where the host does not tell.
    """
    given = values.number(asked)
    if given and given > 0:
        return WriteRates(given * MIB, given * MIB)
    kind = KINDS.get(str(identity.get("transport")))
    if kind is None:
        return WriteRates(OTHER_WRITE_BYTES_PER_S, OTHER_WRITE_BYTES_PER_S)
    assumed_mb_s = min(kind.share * (link_mb_s or kind.least_mb_s), MB_S_PER_TB * identity["size_bytes"] / TB)
    return WriteRates(assumed_mb_s * MB, (link_mb_s or kind.most_mb_s) * MB)
