# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Capacity that a drive has and does not show: more spare than its model has, so its figures are better than those of
an untouched one.

Sources: NVM Express Base Specification 2.0, Identify Controller (TNVMCAP, UNVMCAP); hdparm(8), -N (ACS-3, HPA feature
  set).
"""

from __future__ import annotations

import re
import typing as t

from ..core import tool_json
from ..core.host import Host
from ..records.identity import Identity
from ..tools.nvme import nvme_number

TIMEOUT_S = 20.0
# Formats round a namespace down to whole GB and keep metadata beside it: a hundredth is not worth a word, and spare of
# 7 % already shows in writes.
HIDDEN_SHARE = 0.01
# The slowest that a drive which still counts as alive is read or purged as a whole.
SLOWEST_BYTES_PER_S = 50e6
_MAX_SECTORS = re.compile(r"max sectors\s*=\s*([0-9]+)/([0-9]+)(?:\([0-9]+\?\))?,?\s*(.*)")


class Hidden(t.NamedTuple):
    """total_bytes: all that the drive has; shown_bytes: what can be used; where: what hides the rest. None: the drive
    does not tell.
    """

    total_bytes: int | None
    shown_bytes: int | None
    where: str

    @property
    def share(self) -> float | None:
        """The hidden part of all; None where it is unknown."""
        return (
            None
            if not self.total_bytes or self.shown_bytes is None
            else max(0.0, 1 - self.shown_bytes / self.total_bytes)
        )


UNTOLD = Hidden(None, None, "")


def read(host: Host, identity: Identity) -> Hidden:
    """Return what of a drive's capacity is hidden."""
    path = str(identity.path)
    if identity.transport == "nvme":
        return of_nvme(
            host.run(["nvme", "id-ctrl", path, "--output-format=json"], timeout_s=TIMEOUT_S).stdout,
            identity.size_bytes,
        )
    if identity.transport == "sata":
        told = host.run(["hdparm", "-N", path], timeout_s=TIMEOUT_S).stdout
        return of_ata(told, identity.logical_block_size_bytes or 512)
    return UNTOLD


def of_nvme(text: str, size_bytes: t.Any) -> Hidden:
    """From `nvme id-ctrl` in JSON. A controller without namespace management may report 0, which tells nothing."""
    try:
        total = nvme_number(tool_json.read(text).get("tnvmcap"))
    except tool_json.NotOneObject:
        return UNTOLD
    if not total or not isinstance(size_bytes, int) or size_bytes > total:
        return UNTOLD
    return Hidden(total, size_bytes, "this namespace (tnvmcap)")


def of_ata(text: str, block_bytes: int = 512) -> Hidden:
    """From `hdparm -N`, which counts logical blocks: "max sectors   = 1000/2000, HPA is enabled". One whose setting it
    calls invalid tells nothing.
    """
    match = _MAX_SECTORS.search(text)
    if match is None or "invalid" in match.group(3) or int(match.group(1)) > int(match.group(2)):
        return UNTOLD
    total, shown = (int(match.group(place)) * block_bytes for place in (2, 1))
    return Hidden(total, shown, "the host protected area (HPA)")
