# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the BIOS attributes of a host by its BMC while the host itself is examined. Whatever the BMC does, this ends in
its time, and what could not be read is unknown.
"""

from __future__ import annotations

import threading
import time

from ...module_utils.records.base import Json
from ...module_utils.records.host_snapshot import BiosSettings
from ..validation import printable
from . import bmc_proof
from .bios import BiosState
from .bmc import BmcAccess, BmcError, problem
from .redfish import RedfishBmc

# For all of it; and for one question.
READ_S, ASK_S = 20.0, 8.0


class BiosReading(threading.Thread):
    """One reading; it begins at once."""

    def __init__(self, access: BmcAccess, read_s: float = READ_S) -> None:
        super().__init__(daemon=True)
        self._access, self._until_s = access, time.monotonic() + read_s
        self._read_s = read_s
        self._state: BiosState | None = None
        self._why = ""
        self.start()

    def run(self) -> None:
        """Ask the BMC."""
        try:
            self._state = RedfishBmc(self._access, min(ASK_S, self._read_s)).bios()
        except BmcError as error:
            self._why = str(error)
        except Exception as error:  # of an answer that nobody foresaw
            self._why = f"its answer can't be read ({type(error).__name__})"

    def result(self, host_info: Json) -> BiosSettings:
        """Return what was read, if it is of this host. host_info: as the host gave it."""
        self.join(max(0.0, self._until_s - time.monotonic()))
        state, why = self._state, self._why or f"it did not answer within {self._read_s:g} s"
        if state is None:
            return _unknown(self._access, why)
        reach = host_info.get("cut_reach") or {}
        other = bmc_proof.problem(state.identity, reach.get("uuid"), list(reach.get("serials") or ()))
        if other and not other.startswith(bmc_proof.NOTHING):
            return _unknown(self._access, other)
        return BiosSettings(dict(state.attributes), pending=dict(state.pending))


def begin(access: BmcAccess) -> BiosReading | None:
    """Begin to read; None where no BMC is given that has BIOS attributes: IPMI knows none."""
    return None if problem(access) or access.protocol != "redfish" else BiosReading(access)


def _unknown(access: BmcAccess, why: str) -> BiosSettings:
    return BiosSettings({}, unknown=printable.line(f"the BMC {access.address}: {why}", 500))
