# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Format an ioMemory card outside of a run, if the guard lets it be erased. Apart from the purge methods, which the
start and the stop of a host job carry to each host: the guard is half as large again.
"""

from __future__ import annotations

from dataclasses import replace

from ..core.host import Host
from ..drive.entry import parse
from ..guard import guard_check
from ..guard.held import HeldDrive, Refused
from ..records.plan import PlannedPurge
from ..records.vendor_tools import Card
from ..vendors.vendor_tool import ToolError
from .iomemory_format import FAMILY, MAY_CHANGE, reformat
from .method import PurgeError, timeout_s


def format_guarded(
    host: Host, card: Card, sector_bytes: int, size_pct: int, state_dir: str | None, erase: bool
) -> Card:
    """Format a card outside of a run, if the guard lets it be erased; return the card as it is then.

    erase: whether to ERASE it, or only to check that the guard would let it. state_dir: where the ledger is. Raises
    ToolError with every reason against it.
    """
    entry = parse({"serial": card.serial})
    found = guard_check.inspect(host, [entry], None, state_dir)[0]
    if not found["eligible"] or found["identity"]["kernel_name"] != card.block:
        reasons = ["{}: {}".format(refusal["code"], refusal["message"]) for refusal in found["refusals"]]
        raise ToolError(
            "{} may not be formatted. {}".format(
                card.serial, " ".join(reasons) or "fio-status and the kernel do not agree on its block device."
            )
        )
    if not erase:
        return replace(card, sector_bytes=sector_bytes, size_bytes=None, size_pct=None)
    identity = found["identity"]
    limit_s = timeout_s(identity["size_bytes"] or 0, PlannedPurge("iomemory_format"))
    plan = {"entry": entry, "expected": identity}
    held = HeldDrive(host, plan, {"tool": FAMILY}, same_boot=True, state_dir=state_dir)
    try:
        held.take()
        with held.lend(MAY_CHANGE):
            return reformat(host, card, sector_bytes, size_pct, limit_s)
    except (Refused, PurgeError, ToolError) as error:
        raise ToolError(f"{card.serial}: {error}") from None
    finally:
        held.release()
