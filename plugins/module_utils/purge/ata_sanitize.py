# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ATA's SANITIZE through hdparm: crypto scramble and block erase."""

from __future__ import annotations

import typing as t

from ..core.progress import RUNNING, Progress, Unreadable
from ..tools import hdparm
from .ata_drive import ASK_S, FAMILY, UNFREEZE, identify, must, sanitize_status
from .method import PTS, Capabilities, Command, Method, Options, PurgeError, Work, timeout_s

_SURE = "--yes-i-know-what-i-am-doing"
# method -> (operation as hdparm.Identify names it, hdparm's option)
_SANITIZE = {
    "ata_sanitize_crypto": ("crypto_scramble", "--sanitize-crypto-scramble"),
    "ata_sanitize_block": ("block_erase", "--sanitize-block-erase"),
}


def _can_sanitize(method: str) -> t.Callable[[Capabilities], str]:
    operation = _SANITIZE[method][0]

    def supported(found: Capabilities) -> str:
        if operation not in found["sanitize"]:
            return "IDENTIFY word 59 lists no {0} (it lists: {1})".format(
                operation, ", ".join(found["sanitize"]) or "no sanitize at all"
            )
        if found["sanitize_problem"]:
            return str(found["sanitize_problem"])
        if found["sanitize_state"] == hdparm.FROZEN:
            return "sanitize is frozen until the next power cycle; " + UNFREEZE
        return "the drive is locked by a password, and refuses a sanitize" if found["security"]["locked"] else ""

    return supported


def _sanitize_commands(method: str) -> t.Callable[[Capabilities, Options], list[Command]]:
    return lambda found, _options: [["hdparm", _SURE, _SANITIZE[method][1], str(found["path"])]]


def sanitize_progress(work: Work) -> Progress:
    """Return how far a sanitize is that goes on in the drive; ACS-3: it goes on by itself after a power loss. Raises
    Unreadable.
    """
    try:
        return sanitize_status(work.host, work.identity["path"])
    except PurgeError as error:
        raise Unreadable(str(error)) from None


def _run(method: str) -> t.Callable[[Work], dict[str, t.Any]]:
    def run(work: Work) -> dict[str, t.Any]:
        (argv,) = _sanitize_commands(method)(work.capabilities, work.options)
        before = sanitize_status(work.host, work.identity["path"])
        if before.state == RUNNING:  # not ours: let it end, a drive takes no second one meanwhile
            work.watch(sanitize_progress, timeout_s(work.identity["size_bytes"], work.options))
        must(work.command(argv, ASK_S), "the drive did not start the sanitize")
        work.watch(sanitize_progress, timeout_s(work.identity["size_bytes"], work.options))
        identify(work.host, work.identity)
        return {"waited_for_another": before.state == RUNNING}

    return run


METHODS = tuple(
    Method(
        name,
        FAMILY,
        PTS,
        strength,
        _can_sanitize(name),
        _sanitize_commands(name),
        _run(name),
        progress=sanitize_progress,
        what=f"SANITIZE DEVICE, {_SANITIZE[name][0].replace('_', ' ')}",
    )
    for name, strength in (("ata_sanitize_crypto", 90), ("ata_sanitize_block", 80))
)
