# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Purge SAS drives through sg3_utils: SANITIZE (cryptographic, block erase, overwrite) and FORMAT UNIT.

Every command is started with IMMED (`--early`) and then watched by REQUEST SENSE: a drive may take hours, and a command
that waits so long is aborted by a time-out on its way. The tools open the node without O_EXCL (sg_pt_linux.c,
scsi_pt_open_device), so they work under our hold; nothing is lent, except to read a block size anew that a format
changed.
"""

from __future__ import annotations

import typing as t

from ..core.host import Host
from ..core.progress import RUNNING, Progress, Unreadable
from ..drive.attributes import command_set, reads_unmapped_as_zeros
from ..records.identity import Identity
from ..records.plan import PlannedPurge
from ..records.purge import ScsiDrive as Capabilities
from ..tools import sg3
from .method import PTS, Command, Done, Method, PurgeError, Work, timeout_s

FAMILY = "scsi"
# --quick: no 15 s for second thoughts; the guard has done the thinking.
_START = ("--quick", "--early")
_START_S = 300
_MOST_PASSES = 31


class _Kind(t.NamedTuple):
    """One command. action: the service action, None without; argv: between the tool and the device; full: it writes all
    of the medium.
    """

    strength: int
    opcode: int
    action: int | None
    title: str
    argv: t.Callable[[Capabilities, PlannedPurge], list[str]]
    full: bool = False


def _sanitize(option: str) -> t.Callable[[Capabilities, PlannedPurge], list[str]]:
    return lambda _found, _options: ["sg_sanitize", option, *_START, f"--timeout={_START_S}"]


def _passes(options: PlannedPurge) -> int:
    return max(1, min(_MOST_PASSES, options.passes or 1))


def _overwrite(_found: Capabilities, options: PlannedPurge) -> list[str]:
    return ["sg_sanitize", "--overwrite", "--zero", f"--count={_passes(options)}", *_START, f"--timeout={_START_S}"]


# Protection type (SBC-3, 4.22.2) -> FMTPINFO and PROTECTION FIELD USAGE that ask for it again.
_PROTECTION: dict[int | None, list[str]] = {
    0: [],
    1: ["--fmtpinfo=2"],
    2: ["--fmtpinfo=3"],
    3: ["--fmtpinfo=3", "--pfu=1"],
}


def _format(found: Capabilities, options: PlannedPurge) -> list[str]:
    """Block size and protection type are always said: a bare format may fall back to the drive's default. Never --ffmt:
    it erases nothing.
    """
    size = options.lba_size_bytes or found.lba_size_bytes
    return [
        "sg_format",
        "--format",
        f"--size={size}",
        *_PROTECTION[found.protection_type],
        *_START,
        f"--timeout={_START_S}",
    ]


# SANITIZE and its service actions: SBC-3, 5.30; FORMAT UNIT: 5.3.
_KINDS = {
    "scsi_sanitize_crypto": _Kind(90, 0x48, 3, "SANITIZE, cryptographic erase", _sanitize("--crypto")),
    "scsi_sanitize_block": _Kind(80, 0x48, 2, "SANITIZE, block erase", _sanitize("--block")),
    "scsi_sanitize_overwrite": _Kind(70, 0x48, 1, "SANITIZE, overwrite", _overwrite, True),
    "scsi_format_unit": _Kind(60, 0x04, None, "FORMAT UNIT", _format, True),
}

# SBC-3, table 33: of these four, every disk has this one.
_MANDATORY = "scsi_format_unit"
# sg3_utils(8): illegal request, invalid opcode.
_NO_REPORT = (5, 9)


def capabilities(host: Host, identity: Identity) -> Capabilities | None:
    """Return what a SAS drive offers; None for another. Raises PurgeError when it can't be asked."""
    if command_set(host, str(identity.kernel_name), identity.transport) != "scsi":
        return None
    path = str(identity.path)
    unknown: dict[str, str] = {}
    commands = [name for name, kind in _KINDS.items() if _has(host, path, name, unknown)]
    return Capabilities(
        path=path,
        size_bytes=identity.size_bytes,
        lba_size_bytes=identity.logical_block_size_bytes,
        protection_type=_protection_type(host, str(identity.kernel_name)),
        commands=commands,
        unknown=unknown or None,
        deallocated_read="zeros" if reads_unmapped_as_zeros(host, str(identity.kernel_name)) else None,
    )


def _has(host: Host, path: str, method: str, unknown: dict[str, str]) -> bool:
    """Return whether it has the command. What it does not tell goes to `unknown`: that is no no."""
    kind = _KINDS[method]
    asked = f"{kind.opcode:#04x}" + ("" if kind.action is None else f",{kind.action:#x}")
    result = sg3.run(host, ["sg_opcodes", "--opcode=" + asked, "--hex", path])
    if result.rc in _NO_REPORT:
        unknown[method] = "the drive does not report which commands it supports"
        return False
    if result.rc != 0:
        raise PurgeError(f"the drive could not be asked for {kind.title}; {sg3.explain(result)}")
    try:
        return sg3.has_command(sg3.hex_bytes(result.stdout), kind.opcode, kind.action)
    except sg3.NotTold as error:
        unknown[method] = f"the drive does not tell whether it has {kind.title}: {error}"
        return False
    except ValueError as error:
        raise PurgeError("{0}: {1}".format(" ".join(result.argv), error)) from None


def _protection_type(host: Host, name: str) -> int | None:
    """Return the kernel's reading of READ CAPACITY (16); None when it is unknown."""
    found = {host.get(path) for path in host.glob(f"/sys/block/{name}/device/scsi_disk/*/protection_type")}
    text = found.pop() if len(found) == 1 else None
    return int(text) if text in ("0", "1", "2", "3") else None


def _supported(method: str) -> t.Callable[[Capabilities], str]:
    def supported(found: Capabilities) -> str:
        if method not in found.commands and method not in (found.unknown or {}):
            has = ", ".join(_KINDS[name].title for name in found.commands) or "none of those that purge"
            return f"the drive does not have {_KINDS[method].title}; it has: {has}"
        if method == "scsi_format_unit" and found.protection_type is None:
            return "its protection type is unknown (scsi_disk/*/protection_type in sysfs), and a format would change it"
        return ""

    return supported


def _unknown(method: str) -> t.Callable[[Capabilities], str]:
    return lambda found: "" if method == _MANDATORY else (found.unknown or {}).get(method, "")


def _commands(method: str) -> t.Callable[[Capabilities, PlannedPurge], list[Command]]:
    return lambda found, options: [[*_KINDS[method].argv(found, options), found.path]]


def _timeout_s(method: str) -> t.Callable[[Capabilities, PlannedPurge], float]:
    return lambda found, options: timeout_s(
        (found.size_bytes or 0) * (_passes(options) if _KINDS[method].full else 1), options
    )


def progress(work: Work, _found: Capabilities) -> Progress:
    """Return how far a sanitize or format is that goes on in the drive. A sanitize goes on after a power loss (SBC-3,
    4.11); a format does not, and then the drive reports a corrupted format. Raises Unreadable.
    """
    return sg3.progress(work.host, work.path)


def _run(method: str) -> t.Callable[[Work, Capabilities], Done]:
    def run(work: Work, found: Capabilities) -> Done:
        wanted = work.options.lba_size_bytes
        changes = bool(wanted) and wanted != found.lba_size_bytes
        waited = _wait_for_another(work, found, method)
        (argv,) = _commands(method)(found, work.options)
        result = work.command(argv, _START_S + 60)
        if result.rc != 0:
            raise PurgeError(f"the drive did not start {_KINDS[method].title}: {sg3.explain(result)}")
        work.watch(lambda: progress(work, found), _timeout_s(method)(found, work.options))
        if changes:
            with work.lend(("logical_block_size_bytes", "physical_block_size_bytes", "size_bytes")):
                work.host.write(f"/sys/block/{work.kernel_name}/device/rescan", "1")
        return Done(waited_for_another=waited)

    return run


def _wait_for_another(work: Work, found: Capabilities, method: str) -> bool:
    """Let a sanitize or format end that runs already: the drive takes no other command meanwhile."""
    try:
        running = progress(work, found).state == RUNNING
    except Unreadable:
        return False  # the command itself will say what is wrong
    if running:
        work.watch(lambda: progress(work, found), _timeout_s(method)(found, work.options))
    return running


METHODS = tuple(
    Method(
        name,
        FAMILY,
        PTS,
        kind.strength,
        _supported(name),
        _commands(name),
        _run(name),
        unknown=_unknown(name),
        timeout_s=_timeout_s(name),
        progress=progress,
        sets_lba_size=name == "scsi_format_unit",
        slow=name in ("scsi_sanitize_overwrite", "scsi_format_unit"),
        what=kind.title,
    )
    for name, kind in _KINDS.items()
)
