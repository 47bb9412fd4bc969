# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a BMC is the one of a host: what it says of its system against what DMI says on the host. Pure."""

from __future__ import annotations

import re
import uuid

from ...module_utils.drive.entry import is_placeholder
from .bmc import BmcIdentity

# What boards are delivered with, and many keep.
_OF_MANY = ("03000200-0400-0500-0006-000700080009", "12345678-1234-5678-90ab-cddeefaabbcc")
# How the reason begins where neither says anything that the other has too.
NOTHING = "nothing to compare"
_NO_SERIALS = re.compile(r"(.*SERIAL\W*(NUMBER|NO)\W*|NONE|NULL|NA|\W*)")


def problem(bmc: BmcIdentity, host_uuid: str | None, host_serials: list[str]) -> str:
    """Return why it is not proved that a BMC is this host's; "" where it is: by the UUID or, where one of them has
    none, by a serial number.
    """
    own = _uuid(host_uuid)
    known = [text for text in map(_uuid, bmc.uuids) if text]
    if own and known:
        if own in known or _swapped(own) in known:
            return ""
        return f"its system has the UUID {known[0]}, this host {own}: it is another machine's"
    ours, theirs = ({_serial(text) for text in texts} - {""} for texts in (host_serials, bmc.serials))
    if ours & theirs:
        return ""
    if ours and theirs:
        return f"its system has the serial number {_few(theirs)}, this host {_few(ours)}, and no UUIDs to compare"
    return (
        f"{NOTHING}: its system has the UUID {known[0] if known else 'none'} and the serial number "
        f"{_few(theirs)}, this host by DMI {own or 'none'} and {_few(ours)}"
    )


def _few(texts: set[str]) -> str:
    return " or ".join(sorted(texts)[:3]) or "none"


def _uuid(text: str | None) -> str:
    """Return a UUID as it is compared; "" of what is none, or what many machines have."""
    try:
        found = uuid.UUID((text or "").strip())
    except ValueError:
        return ""
    is_of_many = len(set(found.hex)) < 3 or {str(found), _swapped(str(found))} & set(_OF_MANY)
    return "" if is_of_many else str(found)


def _swapped(text: str) -> str:
    """Return a UUID with the bytes of its first three parts the other way round: SMBIOS before 2.6 left that open."""
    return str(uuid.UUID(bytes_le=uuid.UUID(text).bytes))


def _serial(text: str) -> str:
    """Return a serial number as it is compared; "" of a placeholder."""
    plain = re.sub(r"[\s_-]", "", text).upper()
    return "" if len(plain) < 4 or is_placeholder(plain) or _NO_SERIALS.fullmatch(plain) else plain
