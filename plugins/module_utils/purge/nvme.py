# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Purge NVMe namespaces through nvme-cli: format, or sanitize of the whole subsystem; and what a namespace offers.

Every command goes through the controller's node, which the kernel's links lead to from the held device. nvme-cli opens
only block devices exclusively (nvme.c, open_exclusive; a character device has no exclusive open), so it works while we
hold the namespace: --force is never given, and the hold never let go of while the drive is erased.
"""

from __future__ import annotations

import os
import typing as t

from ..core.host import Host
from ..core.progress import IDLE, RUNNING, Progress, Unreadable
from ..records.identity import Identity
from ..records.plan import PlannedPurge
from ..records.purge import LbaFormat
from ..records.purge import NvmeDrive as Capabilities
from ..tools import nvme, nvme_capabilities
from ..tools.nvme import NvmeError
from .method import PTS, Command, Done, Method, PurgeError, Work, timeout_s

FAMILY = "nvme"
# What has to be the same right before a command as when the method was chosen.
_SAME = ("serial", "namespace_id", "eui64", "nguid", "uuid", "size_bytes", "namespaces", "controllers")

# Commands that only start something: the drive answers them at once.
START_S = 300.0

# nvme-cli counts ten seconds down before a format; the kernel reads the drive again after it.
_FORMAT_MARGIN_S = 120.0
RESCAN_S = 60.0
_MOST_TIMEOUT_MS = 0xFFFFFFFF
# Format NVM Attributes (FNA): a format, and a secure erase, of one namespace hits all; ses 2 is there.
_FORMATS_ALL, _ERASES_ALL, _HAS_CRYPTO = 0x1, 0x2, 0x4


def others(found: Capabilities) -> list[int]:
    """Return the other namespaces of its subsystem."""
    return [number for number in found.namespaces if number != found.namespace_id]


def named(numbers: t.Sequence[int]) -> str:
    """Namespaces in words: "namespaces 2, 3"."""
    shown = ", ".join(str(number) for number in numbers[:8])
    return "namespace{0} {1}{2}".format("s" * (len(numbers) != 1), shown, " …" * (len(numbers) > 8))


def look_again(work: Work, before: Capabilities) -> Capabilities:
    """Return what the namespace behind the held descriptor tells now. Raises PurgeError when it is not what it was."""
    number = os.fstat(work.handle).st_rdev
    name = os.path.basename(work.host.realpath(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}"))
    try:
        found = nvme_capabilities.gather(work.host, work.identity, name)
    except NvmeError as error:
        raise PurgeError(f"the drive cannot be identified: {error}") from None
    changed = [key for key in _SAME if getattr(found, key) != getattr(before, key)]
    if changed:
        raise PurgeError(
            "{0} changed since the drive was checked; nothing more was done to it".format(", ".join(changed))
        )
    return found


def read_formats(work: Work, before: Capabilities) -> Done:
    """Return the LBA formats of a purge that ended while nobody watched: before it, and now. Raises PurgeError."""
    return lba_formats(before, look_again(work, before))


def lba_formats(before: Capabilities, after: Capabilities) -> Done:
    """Return the LBA format in use before and after."""
    return Done(lba_format_before=_format_in_use(before), lba_format_after=_format_in_use(after))


def _format_in_use(found: Capabilities) -> LbaFormat | None:
    return next((item for item in found.lba_formats if item.index == found.lba_format), None)


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
        f"its NVM subsystem has {found.controllers} controllers, and another host may use one"
        if found.controllers > 1
        else ""
    )


def _can_sanitize(kind: _Sanitize) -> t.Callable[[Capabilities], str]:
    return lambda found: (
        "" if found.sanicap & kind.bit else f"it has no sanitize by {kind.title} (SANICAP {found.sanicap:#x})"
    )


def _sanitize_commands(kind: _Sanitize) -> t.Callable[[Capabilities, PlannedPurge], list[Command]]:
    return lambda found, _options: [["nvme", "sanitize", found.controller, f"--sanact={kind.action}", *kind.more]]


def sanitize_progress(work: Work, found: Capabilities) -> Progress:
    """Return how far the drive's sanitize is. Raises Unreadable."""
    try:
        return nvme.sanitize_log(work.host, found.controller)
    except NvmeError as error:
        raise Unreadable(str(error)) from None


def _run_sanitize(
    commands: t.Callable[[Capabilities, PlannedPurge], list[Command]],
) -> t.Callable[[Work, Capabilities], Done]:
    def run(work: Work, found: Capabilities) -> Done:
        before = look_again(work, found)
        try:
            running = sanitize_progress(work, before).state == RUNNING
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
        work.watch(lambda: sanitize_progress(work, before), timeout_s(before.size_bytes, work.options))
        return lba_formats(before, look_again(work, found))

    return run


def _sanitize_method(name: str, kind: _Sanitize) -> Method[Capabilities]:
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


SANITIZE_METHODS = tuple(_sanitize_method(name, kind) for name, kind in _SANITIZES.items())


class _Format(t.NamedTuple):
    """ses: Secure Erase Settings. Never 0, which erases nothing."""

    strength: int
    title: str
    ses: int


_FORMATS = {
    "nvme_format_crypto": _Format(85, "cryptographic erase", 2),
    "nvme_format_user_data": _Format(80, "user data erase", 1),
}


def _format_hits(found: Capabilities) -> str:
    if not found.fna & (_FORMATS_ALL | _ERASES_ALL):
        return ""
    text = f"a format erases all namespaces of this drive (FNA {found.fna:#x}), with "
    if others(found):
        return text + f"its {named(others(found))}"
    hidden = found.controllers > 1 and not found.shows_all
    return text + f"those that only another of its {found.controllers} controllers shows" if hidden else ""


def _can_format(kind: _Format) -> t.Callable[[Capabilities], str]:
    def supported(found: Capabilities) -> str:
        if not found.can_format:
            return "it has no Format NVM command (OACS)"
        return (
            f"it has no cryptographic erase (FNA {found.fna:#x})"
            if kind.ses == 2 and not found.fna & _HAS_CRYPTO
            else ""
        )

    return supported


def wanted_format(found: Capabilities, options: PlannedPurge) -> LbaFormat:
    """Return the LBA format to have afterwards: the current one, or the fastest of the wanted size without metadata.
    Raises PurgeError.
    """
    formats, now = found.lba_formats, _format_in_use(found)
    size = options.lba_size_bytes
    if now is not None and size in (None, now.data_bytes):
        return now
    fitting = [item for item in formats if item.data_bytes == size and not item.metadata_bytes]
    if not fitting:
        sizes = (
            ", ".join(
                str(number) for number in sorted({item.data_bytes for item in formats if not item.metadata_bytes})
            )
            or "none"
        )
        raise PurgeError(f"it has no LBA format of {size} bytes without metadata; it has: {sizes}")
    return min(fitting, key=lambda item: (item.performance, item.index))


def _format_commands(kind: _Format) -> t.Callable[[Capabilities, PlannedPurge], list[Command]]:
    def commands(found: Capabilities, options: PlannedPurge) -> list[Command]:
        wanted = wanted_format(found, options)
        limit_ms = min(_MOST_TIMEOUT_MS, int(timeout_s(found.size_bytes, options) * 1000))
        argv = [
            "nvme",
            "format",
            found.controller,
            f"--namespace-id={found.namespace_id}",
            f"--lbaf={wanted.index}",
        ]
        argv += [f"--ses={kind.ses}", f"--timeout={limit_ms}"]
        return [argv + (_protection(found) if wanted.index == found.lba_format else [])]

    return commands


def _protection(found: Capabilities) -> list[str]:
    """Metadata and protection information as they are: nvme-cli would turn them off (FLBAS bit 4; DPS
    bits 3 and 2:0).
    """
    values = (("ms", found.flbas >> 4 & 1), ("pi", found.dps & 7), ("pil", found.dps >> 3 & 1))
    return [f"--{key}={value}" for key, value in values if value]


def _run_format(
    commands: t.Callable[[Capabilities, PlannedPurge], list[Command]],
) -> t.Callable[[Work, Capabilities], Done]:
    def run(work: Work, found: Capabilities) -> Done:
        before = look_again(work, found)
        wanted = wanted_format(before, work.options)
        (argv,) = commands(before, work.options)
        result = work.command(argv, timeout_s(before.size_bytes, work.options) + _FORMAT_MARGIN_S)
        if result.rc != 0:
            raise PurgeError(f"nvme format ended with {result.rc}: {nvme.said(result)}")
        if wanted.index != before.lba_format:
            _read_again(work, wanted)
        after = look_again(work, found)
        if after.lba_format != wanted.index:
            raise PurgeError(f"the drive came back with LBA format {after.lba_format}, not {wanted.index}")
        return lba_formats(before, after)

    return run


def _read_again(work: Work, wanted: LbaFormat) -> None:
    """Let the kernel see the new block size, and open the drive anew: sizes and alignment are those of the open. Raises
    PurgeError.
    """
    path = f"/sys/block/{work.kernel_name}/queue/logical_block_size"
    deadline = work.clock() + RESCAN_S
    while work.host.get(path) != str(wanted.data_bytes):
        if work.clock() > deadline:
            raise PurgeError(
                f"the kernel does not take the new LBA size of {wanted.data_bytes} bytes: {path} is "
                f"{work.host.get(path)}"
            )
        work.sleep(0.5)
    with work.lend(("logical_block_size_bytes", "physical_block_size_bytes")):
        pass


def format_progress(work: Work, found: Capabilities) -> Progress:
    """Return how far a format is, by FPI of Identify Namespace; a drive that has none, or answers nothing meanwhile,
    tells nothing.
    """
    try:
        left = nvme.namespace(work.host, found.controller, found.namespace_id).format_left_pct
    except NvmeError:
        return Progress(RUNNING)
    return Progress(IDLE) if left is None else Progress(RUNNING, (100 - left) / 100.0)


def _format_method(name: str, kind: _Format) -> Method[Capabilities]:
    commands = _format_commands(kind)
    return Method(
        name,
        FAMILY,
        PTS,
        kind.strength,
        _can_format(kind),
        commands,
        _run_format(commands),
        _format_hits,
        progress=format_progress,
        read_again=read_formats,
        sets_lba_size=True,
        what=f"Format NVM, secure erase setting {kind.ses}: {kind.title}",
    )


FORMAT_METHODS = tuple(_format_method(name, kind) for name, kind in _FORMATS.items())


def capabilities(host: Host, identity: Identity) -> Capabilities | None:
    """Return what a local NVMe namespace offers; None for another drive. Raises PurgeError when it can't be asked or is
    not understood.
    """
    if identity.transport != "nvme":
        return None
    try:
        return nvme_capabilities.gather(host, identity, str(identity.kernel_name))
    except NvmeError as error:
        raise PurgeError(str(error)) from None


METHODS = tuple(sorted(SANITIZE_METHODS + FORMAT_METHODS, key=lambda method: -method.strength))
