# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every BMC offers here, whatever it speaks; and which one a host's variables name."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

ON, OFF = "on", "off"


class BmcError(Exception):
    """The BMC did not do or answer what it was asked; the message has neither its user nor its password."""


class NotThere(BmcError):
    """The BMC has no such resource."""


class BmcIdentity(t.NamedTuple):
    """Which system a BMC says that it is of. uuids: every reading of the one that it has, as IPMI leaves the order of
    the bytes open.
    """

    uuids: tuple[str, ...]
    serials: tuple[str, ...]
    name: str = ""


@dataclass(frozen=True)
class BmcAccess:
    """Where a host's BMC is, and as whom it is asked: the variables vendor_bmc_*."""

    protocol: str
    address: str
    user: str = field(repr=False)
    password: str = field(repr=False)
    # Redfish: which of its systems, whose certificate, and by whom that is signed.
    system: str = ""
    validate_certs: bool = True
    ca_path: str = ""


class Bmc(t.Protocol):
    """A BMC. Each method raises BmcError."""

    def identity(self) -> BmcIdentity:
        """Return whose it says that it is."""

    def power(self) -> str:
        """Return ON, OFF, or another state in its own word."""

    def force_off(self) -> None:
        """Have the power cut at once, without a shutdown."""

    def switch_on(self) -> None:
        """Have the power switched on."""

    def last_line(self) -> str:
        """Return what it has last on record of the host; "": it keeps nothing."""


def problem(access: BmcAccess) -> str:
    """Return which of a BMC's variables are missing; "": none."""
    given = {"vendor_bmc_address": access.address, "vendor_bmc_user": access.user}
    missing = [name for name, value in {**given, "vendor_bmc_password": access.password}.items() if not value]
    return f"no {', '.join(missing)}" if missing else ""
