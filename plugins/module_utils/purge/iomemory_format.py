# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Format a Fusion-io ioMemory card: detach, fio-format, attach.

Source: ioMemory VSL Peak Performance Guide, "Testing" and appendix C. Detaching removes the block device, so the drive
is closed for that while its lock is held (Work.lend), and identified again afterwards. A stop waits until the card is
attached again: a card that was abandoned half-way needs another format.
"""

from __future__ import annotations

import contextlib
import time
import typing as t

from ..core.host import Host
from ..records.identity import Identity
from ..records.plan import PlannedPurge
from ..records.vendor_tools import Card
from ..vendors import iomemory
from ..vendors.iomemory import ATTACHED, DETACHED
from ..vendors.vendor_identity import is_iomemory
from ..vendors.vendor_tool import ToolError
from .method import PTS, Command, Done, Method, PurgeError, Work, timeout_s

FAMILY = "iomemory"
Capabilities = Card
# What a format may change of the identity; the serial number and the model stay.
MAY_CHANGE = ("size_bytes", "logical_block_size_bytes", "physical_block_size_bytes", "diskseq")
APPEAR_S = 60.0
FULL_PCT = 100


@contextlib.contextmanager
def _purge_errors() -> t.Iterator[None]:
    """Raise a PurgeError for a ToolError."""
    try:
        yield
    except ToolError as error:
        raise PurgeError(str(error)) from None


def capabilities(host: Host, identity: Identity) -> Card | None:
    """Return the card behind the block device, as fio-status shows it. Raises PurgeError if that is not certain."""
    if not is_iomemory(str(identity.kernel_name)):
        return None
    with _purge_errors():
        card = iomemory.find(host, identity.serial or "")
    if card.block != identity.kernel_name:
        raise PurgeError(
            f"fio-status reports {card.serial} as {card.block}, the kernel has it as {identity.kernel_name}: "
            "nothing was formatted"
        )
    return card


def _supported(found: Card) -> str:
    if found.trouble:
        return f"fio-status says: {found.trouble}"
    if found.sector_bytes not in iomemory.SECTOR_BYTES:
        return "fio-status does not show how it is formatted; format it once with fio-format -b"
    return ""


def _shape(found: Card, options: PlannedPurge) -> tuple[int, int]:
    """Return (sector bytes, per cent of the advertised capacity): as the test requests, else as they are."""
    sector_bytes = options.iomemory_sector_bytes or options.lba_size_bytes or found.sector_bytes or 0
    return sector_bytes, options.iomemory_size_pct or min(found.size_pct or FULL_PCT, FULL_PCT)


def commands(found: Card, options: PlannedPurge) -> list[Command]:
    """Return exactly what a format runs. Raises PurgeError for options that it refuses."""
    with _purge_errors():
        return iomemory.format_commands(found.control, *_shape(found, options))


def reformat(
    host: Host,
    card: Card,
    sector_bytes: int,
    size_pct: int,
    limit_s: float,
    sleep: t.Callable[[float], None] = time.sleep,
) -> Card:
    """ERASE the card: detach, format, attach, and read it again.

    The caller holds the drive's lock and has closed the block device. Raises PurgeError or ToolError; the card is then
    attached again if that is still possible.
    """
    detach, formatting, attach = iomemory.format_commands(card.control, sector_bytes, size_pct)
    _same(host, card)
    iomemory.run(host, detach, limit_s)
    try:
        if _same(host, card).state != DETACHED:
            raise PurgeError(f"{card.control} did not detach; nothing was formatted")
        iomemory.run(host, formatting, limit_s)
    except BaseException:
        host.run(attach, timeout_s=limit_s)
        raise
    iomemory.run(host, attach, limit_s)
    after = _appeared(host, card, sleep)
    if after.sector_bytes != sector_bytes:
        raise PurgeError(f"{card.control} has sectors of {after.sector_bytes} bytes after a format to {sector_bytes}")
    return after


def _same(host: Host, card: Card) -> Card:
    """Return the card by its serial number now, at the control device where it was."""
    now = iomemory.find(host, card.serial)
    if now.control != card.control:
        text = (
            f"{card.serial} was {card.control} and is {now.control} now: nothing was formatted; start over with "
            "preflight"
        )
        raise PurgeError(text, "identity_changed")
    return now


def _appeared(host: Host, card: Card, sleep: t.Callable[[float], None]) -> Card:
    deadline = time.monotonic() + APPEAR_S
    while True:
        now = _same(host, card)
        if now.state == ATTACHED and now.block and host.exists("/sys/block/" + now.block):
            return now
        if time.monotonic() > deadline:
            raise PurgeError(
                f"{card.control} is not back {APPEAR_S:g} s after it was attached; look at fio-status -a and the "
                "kernel log"
            )
        sleep(0.5)


def _format(work: Work, found: Card) -> Done:
    sector_bytes, size_pct = _shape(found, work.options)
    with _purge_errors():
        card = iomemory.find(work.host, work.identity.serial or "")
    if card.control != found.control or card.block != work.kernel_name:
        raise PurgeError(
            f"fio-status no longer shows {card.serial} as it was; nothing was formatted", "identity_changed"
        )
    work.tick(None)
    limit_s = timeout_s(work.size_bytes, work.options)
    with _purge_errors(), work.lend(MAY_CHANGE):
        after = reformat(work.host, card, sector_bytes, size_pct, limit_s, work.sleep)
    return Done(lba_format_before=card.format, lba_format_after=after.format)


METHODS = (
    Method(
        "iomemory_format", FAMILY, PTS, 100, _supported, commands, _format, sets_lba_size=True, what="fio-format -y"
    ),
)
