# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A BMC that speaks IPMI 2.0 over RMCP+, by pyghmi (ipmi_session.py), as community.general.ipmi_power does."""

from __future__ import annotations

import json
import subprocess
import sys
import typing as t
import uuid
from pathlib import Path
from urllib.parse import urlsplit

from ..validation import printable
from .bmc import BmcAccess, BmcError, BmcIdentity

_SESSION = Path(__file__).with_name("ipmi_session.py")
_GUID_BYTES = 16
# pyghmi waits a minute for a switch.
TIMEOUT_S = 90.0


class IpmiBmc:
    """A BMC; each method raises BmcError."""

    def __init__(self, access: BmcAccess, timeout_s: float = TIMEOUT_S) -> None:
        self._access, self._timeout_s = access, timeout_s

    def identity(self) -> BmcIdentity:
        """Return the GUID of its system, read in each order of bytes that BMCs send it in."""
        told = self._asked("guid")
        data = bytes.fromhex(str(told.get("guid") or ""))
        if told.get("code") or len(data) != _GUID_BYTES:
            raise BmcError(f"IPMI: it gives no system GUID (completion code {told.get('code')})")
        guesses = (uuid.UUID(bytes=data), uuid.UUID(bytes_le=data), uuid.UUID(bytes=data[::-1]))
        return BmcIdentity(tuple(str(guess) for guess in guesses), ())

    def power(self) -> str:
        """Return ON or OFF."""
        return str(self._asked("power").get("powerstate"))

    def force_off(self) -> None:
        """Have the power cut: Chassis Control, power down."""
        self._asked("off")

    def switch_on(self) -> None:
        """Have the power switched on."""
        self._asked("on")

    def last_line(self) -> str:
        """Return "": serial-over-LAN shows what comes while somebody listens, and keeps nothing."""
        return ""

    def raw(self, command: list[int]) -> None:
        """Send the bytes of a command: the network function, the command, its data."""
        try:
            self._asked("raw", command)
        except BmcError as error:
            sent = " ".join(f"0x{byte:02x}" for byte in command)
            raise BmcError(f"{error} (of the command {sent})") from None

    def _asked(self, question: str, command: list[int] | None = None) -> dict[str, t.Any]:
        try:
            place = urlsplit(f"//{self._access.address}")
            asked = {"host": place.hostname, "port": place.port or 623, "question": question, "raw": command}
        except ValueError as error:
            raise BmcError(f"vendor_bmc_address: {self._access.address!r} is no address: {error}") from None
        # On its standard input, as all may read the arguments of a process.
        secret = json.dumps({**asked, "user": self._access.user, "password": self._access.password})
        try:
            done = subprocess.run(
                [sys.executable, str(_SESSION)],
                input=secret,
                capture_output=True,
                text=True,
                timeout=self._timeout_s,
                check=False,
            )
            found = json.loads(done.stdout)
        except subprocess.TimeoutExpired:
            raise BmcError(f"IPMI: no answer within {self._timeout_s:g} s") from None
        except (OSError, ValueError):
            raise BmcError("IPMI: pyghmi gave no answer") from None
        if not isinstance(found, dict) or found.get("error"):
            why = found.get("error") if isinstance(found, dict) else "no answer"
            raise BmcError(f"IPMI: {printable.line(why, 300)}")
        return t.cast("dict[str, t.Any]", found)
