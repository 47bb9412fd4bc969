# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Format an NVMe namespace through nvme-cli: with a cryptographic erase or an erase of the user data."""

from __future__ import annotations

import typing as t

from ..core.progress import IDLE, RUNNING, Progress
from ..tools import nvme
from ..tools.nvme import LbaFormat, NvmeError
from .method import PTS, Capabilities, Command, Method, Options, PurgeError, Work, timeout_s
from .nvme_namespace import FAMILY, lba_formats, look_again, named, others, read_formats

# nvme-cli counts ten seconds down before a format; the kernel reads the drive again after it.
_FORMAT_MARGIN_S = 120.0
RESCAN_S = 60.0
_MOST_TIMEOUT_MS = 0xFFFFFFFF
# Format NVM Attributes (FNA): a format, and a secure erase, of one namespace hits all; ses 2 is there.
_FORMATS_ALL, _ERASES_ALL, _HAS_CRYPTO = 0x1, 0x2, 0x4


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
    if not found["fna"] & (_FORMATS_ALL | _ERASES_ALL):
        return ""
    text = "a format erases all namespaces of this drive (FNA {0:#x}), with ".format(found["fna"])
    if others(found):
        return text + f"its {named(others(found))}"
    hidden = found["controllers"] > 1 and not found["shows_all"]
    return text + "those that only another of its {0} controllers shows".format(found["controllers"]) if hidden else ""


def _can_format(kind: _Format) -> t.Callable[[Capabilities], str]:
    def supported(found: Capabilities) -> str:
        if not found["can_format"]:
            return "it has no Format NVM command (OACS)"
        return (
            "it has no cryptographic erase (FNA {0:#x})".format(found["fna"])
            if kind.ses == 2 and not found["fna"] & _HAS_CRYPTO
            else ""
        )

    return supported


def wanted_format(found: Capabilities, options: Options) -> LbaFormat:
    """Return the LBA format to have afterwards: the current one, or the fastest of the wanted size without metadata.
    Raises PurgeError.
    """
    formats = [LbaFormat(**item) for item in found["lba_formats"]]
    now = next((item for item in formats if item.index == found["lba_format"]), None)
    size = options.get("lba_size_bytes")
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


def _format_commands(kind: _Format) -> t.Callable[[Capabilities, Options], list[Command]]:
    def commands(found: Capabilities, options: Options) -> list[Command]:
        wanted = wanted_format(found, options)
        limit_ms = min(_MOST_TIMEOUT_MS, int(timeout_s(found["size_bytes"], options) * 1000))
        argv = [
            "nvme",
            "format",
            found["controller"],
            "--namespace-id={0}".format(found["namespace_id"]),
            f"--lbaf={wanted.index}",
        ]
        argv += [f"--ses={kind.ses}", f"--timeout={limit_ms}"]
        return [argv + (_protection(found) if wanted.index == found["lba_format"] else [])]

    return commands


def _protection(found: Capabilities) -> list[str]:
    """Metadata and protection information as they are: nvme-cli would turn them off (FLBAS bit 4; DPS
    bits 3 and 2:0).
    """
    values = (("ms", found["flbas"] >> 4 & 1), ("pi", found["dps"] & 7), ("pil", found["dps"] >> 3 & 1))
    return [f"--{key}={value}" for key, value in values if value]


def _run_format(commands: t.Callable[[Capabilities, Options], list[Command]]) -> t.Callable[[Work], dict[str, t.Any]]:
    def run(work: Work) -> dict[str, t.Any]:
        before = look_again(work)
        wanted = wanted_format(before, work.options)
        (argv,) = commands(before, work.options)
        result = work.command(argv, timeout_s(before["size_bytes"], work.options) + _FORMAT_MARGIN_S)
        if result.rc != 0:
            raise PurgeError(f"nvme format ended with {result.rc}: {nvme.said(result)}")
        if wanted.index != before["lba_format"]:
            _read_again(work, wanted)
        after = look_again(work)
        if after["lba_format"] != wanted.index:
            raise PurgeError(
                "the drive came back with LBA format {0}, not {1}".format(after["lba_format"], wanted.index)
            )
        return lba_formats(before, after)

    return run


def _read_again(work: Work, wanted: LbaFormat) -> None:
    """Let the kernel see the new block size, and open the drive anew: sizes and alignment are those of the open. Raises
    PurgeError.
    """
    path = "/sys/block/{0}/queue/logical_block_size".format(work.identity["kernel_name"])
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


def format_progress(work: Work) -> Progress:
    """Return how far a format is, by FPI of Identify Namespace; a drive that has none, or answers nothing meanwhile,
    tells nothing.
    """
    try:
        left = nvme.namespace(
            work.host, work.capabilities["controller"], work.capabilities["namespace_id"]
        ).format_left_pct
    except NvmeError:
        return Progress(RUNNING)
    return Progress(IDLE) if left is None else Progress(RUNNING, (100 - left) / 100.0)


def _format_method(name: str, kind: _Format) -> Method:
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


METHODS = tuple(_format_method(name, kind) for name, kind in _FORMATS.items())
