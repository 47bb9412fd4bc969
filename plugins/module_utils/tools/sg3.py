# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a SCSI drive says through sg3_utils: which commands it has, its sense data, who reserved it.

The tools are asked for the drive's own bytes (`--hex`): SPC-4 and SBC-3 fix those, while the tools' prose differs by
version.
"""

from __future__ import annotations

import re
import typing as t

from ..core.host import COMMAND_NOT_FOUND, TIMED_OUT, Host, Result
from ..core.progress import DONE, FAILED, RUNNING, Progress, Unreadable

# A line of sg3_utils' hex dump: offset, then up to 16 bytes; text may follow after three blanks.
_HEX_LINE = re.compile(r" ?([0-9a-f]{2,8}) {3,}((?:[0-9a-f]{2} {1,2}){0,15}[0-9a-f]{2})(?:$| {3})")
_PR_LENGTH = re.compile(r"PR generation=0x[0-9a-f]+, Additional length=([0-9]+)")
# Exit codes of sg3_utils (sg3_utils(8)) and what they mean here.
EXIT = {
    2: "the drive is not ready",
    3: "the drive reports a medium or hardware error",
    5: "the drive does not take these options",
    6: "the drive reports a unit attention",
    7: "the drive is write-protected or locked",
    9: "the drive does not have this command",
    15: "the device could not be opened",
    24: "another host holds a reservation on the drive; see sg_persist --in --read-full-status",
    26: "the drive is busy",
    33: "the drive gave no answer in time",
    TIMED_OUT: "no answer in time",
    COMMAND_NOT_FOUND: "it is not installed; install sg3-utils (Debian) or sg3_utils (RHEL)",
}
UNIT_ATTENTION = 6
_ATTEMPTS = 3  # a unit attention is reported once, and the command was not done

# Sense keys and additional sense codes (SPC-4, 4.5 and annex F).
NO_SENSE, RECOVERED, NOT_READY = 0, 1, 2
FORMATTING, SANITIZING, OPERATION_IN_PROGRESS = (0x04, 0x04), (0x04, 0x1B), (0x00, 0x16)
_IN_PROGRESS = (FORMATTING, SANITIZING, OPERATION_IN_PROGRESS)
_BROKEN = {0x00: "the medium format is corrupted", 0x01: "the last format failed", 0x03: "the last sanitize failed"}
_ASC_FORMAT = 0x31
# With these the drive says something of itself, not that it is busy: warnings, failure predictions, power conditions.
_REMARKS = (0x0B, 0x5D, 0x5E)
# A self-test in the background: the drive takes commands. TEST UNIT READY tells of one that does not let it.
_SELF_TEST = (0x04, 0x09)


class Sense(t.NamedTuple):
    """Sense data. share: the progress indication, 0 to 1, or None."""

    key: int
    asc: int
    ascq: int
    share: float | None


class LbaStatus(t.NamedTuple):
    """Logical blocks of one provisioning status. mapped: they may hold data; a drive that does not know
    says so of all.
    """

    block: int
    blocks: int
    mapped: bool


class NotTold(ValueError):
    """The drive says that it does not tell (SPC-4, 6.35.3: SUPPORT 000b, not available)."""


def run(host: Host, argv: t.Sequence[str], timeout_s: float = 60) -> Result:
    """Run a tool of sg3_utils, again after a unit attention."""
    result = host.run(argv, timeout_s=timeout_s)
    for _attempt in range(_ATTEMPTS - 1):
        if result.rc != UNIT_ATTENTION:
            break
        result = host.run(argv, timeout_s=timeout_s)
    return result


def explain(result: Result) -> str:
    """Return what an exit code means, and the tool's own last line."""
    said = (result.stderr.strip() or result.stdout.strip()).splitlines()
    meaning = EXIT.get(result.rc, "")
    return "{0} ended with {1}{2}{3}".format(
        " ".join(result.argv),
        result.rc,
        ": " + meaning if meaning else "",
        f" ({said[-1].strip():.120})" if said else "",
    )


def hex_bytes(text: str) -> bytes:
    """Return the bytes of a hex dump. Raises ValueError where there is none, or one with a gap."""
    data = b""
    for line in text.lower().splitlines():
        match = _HEX_LINE.match(line)
        if match is None:
            continue
        if int(match.group(1), 16) != len(data) or len(data) % 16:
            raise ValueError(f"the hex dump has a gap at byte {len(data)}")
        data += bytes.fromhex(match.group(2).replace(" ", ""))
    if not data:
        raise ValueError("no hex dump")
    return data


def has_command(data: bytes, opcode: int, action: int | None = None) -> bool:
    """REPORT SUPPORTED OPERATION CODES for one command (SPC-4, 6.35.3): as its standard says? Raises NotTold where
    the drive has no data on it, ValueError for another answer.
    """
    if len(data) < 4 or len(data) < 4 + int.from_bytes(data[2:4], "big"):
        raise ValueError(f"a short answer of {len(data)} bytes")
    support = data[1] & 7
    if support == 0:
        raise NotTold(f"no answer on command {opcode:#04x}")
    if support in (1, 5):  # 5: in a way of the vendor's own, which nobody can rely on
        return False
    usage = data[4:]
    if support != 3 or len(usage) < 6 or usage[0] != opcode:
        raise ValueError(f"no answer on command {opcode:#04x}")
    if action is not None and usage[1] & 0x1F not in (action, 0x1F):
        raise ValueError(f"an answer on service action {usage[1] & 0x1F:#x}, not {action:#x}")
    return True


def lba_status(data: bytes) -> list[LbaStatus]:
    """GET LBA STATUS (SBC-3, 5.5.2; SBC-4 adds status 3 and 4). Raises ValueError for no answer of its form."""
    end = 4 + int.from_bytes(data[:4], "big")
    if len(data) < 8 or end < 8:
        raise ValueError(f"a short answer of {len(data)} bytes")
    # A drive may have more to tell than there was room for.
    descriptors = [data[start : start + 16] for start in range(8, min(end, len(data)) - 15, 16)]
    return [
        LbaStatus(int.from_bytes(one[:8], "big"), int.from_bytes(one[8:12], "big"), one[12] & 0xF not in (1, 2))
        for one in descriptors
    ]


def sense(data: bytes) -> Sense:
    """Sense data in fixed or descriptor format (SPC-4, 4.5.2 and 4.5.3). Raises ValueError for anything else."""
    kind = data[0] & 0x7F if data else 0
    if kind == 0x70 and len(data) >= 14 and data[7] >= 6:
        key, code, specific = data[2] & 0xF, data[12:14], data[15:18] if data[7] >= 10 else b""
    elif kind == 0x72 and len(data) >= 8:
        key, code, specific = data[1] & 0xF, data[2:4], _specific(data[8 : 8 + data[7]])
    else:
        raise ValueError("no current sense data: {0}".format(data[:8].hex(" ") if data else "nothing"))
    # With other keys the same field holds something else, such as a count of retries.
    return Sense(key, code[0], code[1], _share(specific) if key in (NO_SENSE, NOT_READY) else None)


def _specific(descriptors: bytes) -> bytes:
    """Return the sense key specific field (descriptor 02h), or that of another progress indication (0Ah) in the same
    form.
    """
    while len(descriptors) >= 2:
        body = descriptors[2 : 2 + descriptors[1]]
        if descriptors[0] == 0x02 and len(body) >= 5:
            return body[2:5]
        if descriptors[0] == 0x0A and len(body) >= 6:
            return b"\x80" + body[4:6]
        descriptors = descriptors[2 + descriptors[1] :]
    return b""


def _share(specific: bytes) -> float | None:
    """Return the progress indication: SKSV, then a numerator over 65536."""
    return int.from_bytes(specific[1:3], "big") / 65536 if len(specific) == 3 and specific[0] & 0x80 else None


def progress(host: Host, path: str) -> Progress:
    """Return how far a sanitize or format is: running (with its share), done (the drive is ready), failed. Raises
    Unreadable.

    Done takes two answers: REQUEST SENSE has nothing to tell, and TEST UNIT READY says ready.
    """
    for _attempt in range(_ATTEMPTS):
        found = _requested(host, path)
        if found.key != UNIT_ATTENTION:
            break
    code = (found.asc, found.ascq)
    if found.asc == _ASC_FORMAT:
        return Progress(FAILED, None, _BROKEN.get(found.ascq, f"additional sense 31h/{found.ascq:02X}h"))
    if found.key in (NO_SENSE, NOT_READY) and code in _IN_PROGRESS:
        return Progress(RUNNING, found.share)
    if code != _SELF_TEST and (found.key not in (NO_SENSE, RECOVERED) or found.asc not in (0, *_REMARKS)):
        raise Unreadable(
            "the drive reports sense key {0:X}h, additional sense {1:02X}h/{2:02X}h".format(found.key, *code)
        )
    ready = run(host, ["sg_turs", path])
    if ready.rc != 0:
        raise Unreadable(explain(ready))
    return Progress(DONE)


def _requested(host: Host, path: str) -> Sense:
    """Return what REQUEST SENSE tells. Raises Unreadable."""
    result = host.run(["sg_requests", "--hex", path])
    if result.rc != 0:
        raise Unreadable(explain(result))
    try:
        return sense(hex_bytes(result.stdout))
    except ValueError as error:
        raise Unreadable(f"sg_requests --hex {path}: {error}") from None


def reservation_keys(text: str) -> list[str]:
    """Keys that hosts have registered, from `sg_persist --in --read-keys --hex`: 16 hex digits each. Raises ValueError
    for another answer.
    """
    match = _PR_LENGTH.search(text)
    if match is None:
        raise ValueError("no answer on persistent reservations")
    length = int(match.group(1))
    data = hex_bytes(text) if length else b""
    if len(data) != length or length % 8:
        raise ValueError(f"{len(data)} of {length} bytes of reservation keys")
    return [data[start : start + 8].hex() for start in range(0, length, 8)]
