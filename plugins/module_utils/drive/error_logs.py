# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drive that failed says of itself, kept beside the results: its error log and telemetry (NVMe), or all that
smartctl tells (SATA, SAS). Its maker asks for them, and the next power cycle may take them away.

A log that a drive, or this host's tools, do not offer is one line; nothing here is an error of the run.
Options: nvme-error-log(1), nvme-telemetry-log(1) of nvme-cli 1.9 to 2.16 (only the long ones mean the same in all).
"""

from __future__ import annotations

import contextlib
import gzip
import os
import resource
import shutil
import typing as t

from ..core.host import COMMAND_NOT_FOUND, TIMED_OUT, Host, Result
from ..records.identity import Identity
from ..tools import nvme
from . import identity as identities
from .health import WITHOUT_HEALTH

ERROR_LOG, TELEMETRY, SMARTCTL = "drive-error-log.json.gz", "drive-telemetry.bin.gz", "drive-smartctl.txt.gz"
ERROR_ENTRIES = 64
ASK_S, TELEMETRY_S = 30.0, 180.0
# Its data areas come one after the other, the short ones first: of a longer log the beginning is of use.
TELEMETRY_BYTES = 64 << 20
TEXT_BYTES = 4 << 20
# More than one drive may fail at a time, and the journal comes first.
ROOM = 4
# Bits 0 and 1 of smartctl's exit code: it was called wrongly, or could not open the drive.
_NOT_ASKED = 0b11
_WHO = ("serial", "wwn")


class SavedLog(t.NamedTuple):
    """One log. file: its name in the drive's raw folder, "" where none was kept, and `message` says why, or what is
    wrong with it.
    """

    log: str
    file: str
    size_bytes: int | None
    message: str


def keep(host: Host, identity: Identity, folder: str) -> list[SavedLog]:
    """Ask the drive with this identity, and keep what it answers in a folder. Never raises OSError."""
    transport, name = identity.transport, os.path.basename(str(identity.path))
    if transport in WITHOUT_HEALTH:
        return [SavedLog("logs", "", None, f"{transport} drives keep no logs")]
    now = identities.identity(host, name)
    if any(getattr(now, key) != getattr(identity, key) for key in _WHO):
        return [SavedLog("logs", "", None, f"/dev/{name} is no longer this drive")]
    if transport == "nvme":
        node = (nvme.controllers(host, name) or [str(identity.path)])[0]
        return [_error_log(host, node, folder), _telemetry(host, node, folder)]
    return [_smartctl(host, str(identity.path), folder)]


def _error_log(host: Host, node: str, folder: str) -> SavedLog:
    words = ["nvme", "error-log", node, f"--log-entries={ERROR_ENTRIES}", "--output-format=json"]
    result = host.run(words, timeout_s=ASK_S)
    if result.rc == 0 and result.stdout.strip():
        return _text("error log", folder, ERROR_LOG, result.stdout)
    return SavedLog("error log", "", None, _why(result))


def _smartctl(host: Host, path: str, folder: str) -> SavedLog:
    result = host.run(["smartctl", "-x", path], timeout_s=ASK_S)
    if 0 <= result.rc < COMMAND_NOT_FOUND and not result.rc & _NOT_ASKED and result.stdout.strip():
        return _text("smartctl", folder, SMARTCTL, result.stdout)
    return SavedLog("smartctl", "", None, _why(result))


def _telemetry(host: Host, node: str, folder: str) -> SavedLog:
    """Captured by the drive now (host-initiated); the file is no longer than TELEMETRY_BYTES, whatever the drive
    sends.
    """
    aside = os.path.join(folder, ".drive-telemetry")
    try:
        if shutil.disk_usage(folder).free < ROOM * TELEMETRY_BYTES:
            return SavedLog("telemetry", "", None, f"less than {ROOM * TELEMETRY_BYTES} bytes are free in {folder}")
        words = ["nvme", "telemetry-log", node, f"--output-file={aside}", "--host-generate=1"]
        result = host.run(words, timeout_s=TELEMETRY_S, started=_bounded)
        size = os.path.getsize(aside) if os.path.exists(aside) else 0
        cut = size >= TELEMETRY_BYTES
        if size > TELEMETRY_BYTES:  # written before the limit was set
            os.truncate(aside, TELEMETRY_BYTES)
            size = TELEMETRY_BYTES
        if not size or (result.rc != 0 and not cut):
            return SavedLog("telemetry", "", None, _why(result))
        with open(aside, "rb") as source, gzip.open(os.path.join(folder, TELEMETRY), "wb", 6) as out:
            shutil.copyfileobj(source, out, 1 << 20)
        return SavedLog("telemetry", TELEMETRY, size, f"cut off after {TELEMETRY_BYTES} bytes" if cut else "")
    except OSError as error:
        return SavedLog("telemetry", "", None, f"{error}")
    finally:
        with contextlib.suppress(OSError):
            os.unlink(aside)


def _bounded(process: t.Any) -> None:
    """The kernel lets the command write no longer files: a broken drive may announce any length."""
    with contextlib.suppress(ProcessLookupError):  # it ended already
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (TELEMETRY_BYTES, TELEMETRY_BYTES))


def _text(log: str, folder: str, file: str, text: str) -> SavedLog:
    data = text.encode()
    try:
        with gzip.open(os.path.join(folder, file), "wb", 6) as out:
            out.write(data[:TEXT_BYTES])
    except OSError as error:
        return SavedLog(log, "", None, f"{error}")
    return SavedLog(log, file, len(data), f"cut off after {TEXT_BYTES} bytes" if len(data) > TEXT_BYTES else "")


def _why(result: Result) -> str:
    name = " ".join(result.argv[:2])
    if result.rc == COMMAND_NOT_FOUND:
        return f"{result.argv[0]} is not installed"
    if result.rc == TIMED_OUT:
        return nvme.said(result)
    return f"{name} ended with {result.rc}: {nvme.said(result)}"
