# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sanitize an NVM subsystem through nvme-cli: crypto erase, block erase or overwrite, with its progress."""

from __future__ import annotations

import typing as t

from ..core.progress import RUNNING, Progress, Unreadable
from ..tools import nvme
from ..tools.nvme import NvmeError
from .method import PTS, Capabilities, Command, Method, Options, PurgeError, Work, timeout_s
from .nvme_namespace import FAMILY, lba_formats, look_again, named, others, read_formats

# Commands that only start something: the drive answers them at once.
START_S = 300.0


class _Sanitize(t.NamedTuple):
    """action: SANACT; bit: in SANICAP; more: more options; an OWPASS of 0 would mean 16 passes. slow: as Method's."""

    strength: int
    title: str
    action: int
    bit: int
    more: tuple[str, ...] = ()
    slow: bool = False


# No --no-dealloc: a sanitized drive may be deallocated. No --ause: after a failure the drive stays closed until one
# succeeds.
_SANITIZES = {
    "nvme_sanitize_crypto": _Sanitize(95, "crypto erase", 4, 0x1),
    "nvme_sanitize_block": _Sanitize(90, "block erase", 2, 0x2),
    "nvme_sanitize_overwrite": _Sanitize(75, "overwrite", 3, 0x4, ("--owpass=1",), slow=True),
}


def _sanitize_hits(found: Capabilities) -> str:
    if others(found):
        return f"a sanitize erases the whole NVM subsystem, with its {named(others(found))}"
    return (
        "its NVM subsystem has {0} controllers, and another host may use one".format(found["controllers"])
        if found["controllers"] > 1
        else ""
    )


def _can_sanitize(kind: _Sanitize) -> t.Callable[[Capabilities], str]:
    return lambda found: (
        ""
        if found["sanicap"] & kind.bit
        else "it has no sanitize by {0} (SANICAP {1:#x})".format(kind.title, found["sanicap"])
    )


def _sanitize_commands(kind: _Sanitize) -> t.Callable[[Capabilities, Options], list[Command]]:
    return lambda found, _options: [["nvme", "sanitize", found["controller"], f"--sanact={kind.action}", *kind.more]]


def sanitize_progress(work: Work) -> Progress:
    """Return how far the drive's sanitize is. Raises Unreadable."""
    try:
        return nvme.sanitize_log(work.host, work.capabilities["controller"])
    except NvmeError as error:
        raise Unreadable(str(error)) from None


def _run_sanitize(commands: t.Callable[[Capabilities, Options], list[Command]]) -> t.Callable[[Work], dict[str, t.Any]]:
    def run(work: Work) -> dict[str, t.Any]:
        before = look_again(work)
        try:
            running = sanitize_progress(work).state == RUNNING
        except Unreadable as error:
            raise PurgeError(f"the drive does not report its sanitize status: {error}") from None
        if running:
            raise PurgeError(
                "a sanitize is already running that this run did not start; wait for it to end", "sanitize_running"
            )
        (argv,) = commands(before, work.options)
        result = work.command(argv, START_S)
        if result.rc != 0:
            raise PurgeError(f"nvme sanitize ended with {result.rc}: {nvme.said(result)}")
        work.watch(sanitize_progress, timeout_s(before["size_bytes"], work.options))
        return lba_formats(before, look_again(work))

    return run


def _sanitize_method(name: str, kind: _Sanitize) -> Method:
    commands = _sanitize_commands(kind)
    return Method(
        name,
        FAMILY,
        PTS,
        kind.strength,
        _can_sanitize(kind),
        commands,
        _run_sanitize(commands),
        _sanitize_hits,
        progress=sanitize_progress,
        read_again=read_formats,
        slow=kind.slow,
        what=f"Sanitize, {kind.title} (SANACT {kind.action})",
    )


METHODS = tuple(_sanitize_method(name, kind) for name, kind in _SANITIZES.items())
