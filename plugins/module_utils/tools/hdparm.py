# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an ATA drive says of itself through hdparm: IDENTIFY DEVICE, its security state, the state of a sanitize.

IDENTIFY is read as its 256 words (`hdparm --Istdout`), not as the prose of `hdparm -I`: the words are fixed by ACS-3
and ACS-4 (7.12.7), carry a checksum, and are the same in every version. hdparm's exit code says nothing here: it is 0
for a device that did not answer.
"""

from __future__ import annotations

import re
import typing as t

from ..core.host import COMMAND_NOT_FOUND, Host, Result
from ..core.progress import DONE, FAILED, IDLE, RUNNING, Progress
from ..records.purge import AtaSecurity, DeallocatedRead

WORDS = 256
# MEDIUM ROTATION RATE of an SSD. What is lower is not reported, and up to 400h reserved.
NO_ROTATION = 1
_LINE = re.compile(r"[0-9a-f]{4}(?: [0-9a-f]{4}){7}")
_INTEGRITY = 0xA5  # low byte of word 255 where the high one is a checksum
# Word 59 (ACS-3): the sanitize feature set, and which of its operations there are.
_SANITIZE = 12
_OPERATIONS = {"crypto_scramble": 13, "overwrite": 14, "block_erase": 15}
# Word 169: TRIM; word 69: reads after it are alike (DRAT), and of zeros (RZAT).
_READS_ZEROS = ((169, 0), (69, 14), (69, 5))
# Word 128, and for the first two also words 82 and 85, bit 1.
_SECURITY = {"supported": 0, "enabled": 1, "locked": 2, "frozen": 3, "expired": 4, "enhanced": 5}
# The state as `hdparm --sanitize-status` names it; SD4 (succeeded) is told by a line of its own.
_STATE = re.compile(r"^\s*State:\s+(SD[0-4]) ", re.MULTILINE)
_PROGRESS = re.compile(r"^\s*Progress: 0x([0-9a-f]{1,4}) ", re.MULTILINE)
_SUCCEEDED = "Last Sanitize Operation Completed Without Error"
_FAILED = ("Last Sanitize Command completed unsuccessfully", "SD3 Sanitize Operation Failed")
FROZEN = "frozen"
# hdparm goes on with registers that it did not get (sgio.c): it then says that a sanitize was started, or that the
# drive is idle, and ends with 0.
_NO_REGISTERS = re.compile(r"SG_IO: .*sense data")


class Identify(t.NamedTuple):
    """The part of IDENTIFY DEVICE that the guard and preflight need. sanitize: names of the operations that the drive
    has; rotation_rate: as in word 217; deallocated_read: None: it promises nothing; has_self_tests: None: unknown.
    """

    serial: str
    model: str
    firmware: str
    sanitize: tuple[str, ...]
    security: AtaSecurity
    rotation_rate: int = 0
    deallocated_read: DeallocatedRead | None = None
    has_self_tests: bool | None = None


def read(host: Host, path: str, serial: str | None) -> Identify:
    """Ask a drive who it is. Raises ValueError, with what to do, when it can't be known or is not the drive with this
    serial.
    """
    result = host.run(["hdparm", "--Istdout", path])
    if result.rc == COMMAND_NOT_FOUND:
        raise ValueError("hdparm cannot be run: install it on the host")
    try:
        found = identify(result.stdout)
    except ValueError as error:
        raise ValueError(f"hdparm --Istdout {path}: {error}{_said(result)}") from None
    if serial and found.serial != serial.strip():
        raise ValueError(
            f"hdparm --Istdout {path} shows the serial {found.serial!r}, not {serial!r}: it is another drive"
        )
    return found


def _said(result: Result) -> str:
    said = result.stderr.strip().splitlines()
    return f"; it said: {said[0]:.120}" if said else ""


def identify(text: str) -> Identify:
    """Parse the output of `hdparm --Istdout`. Raises ValueError for anything but the words of an ATA drive."""
    words = _words(text)
    return Identify(
        serial=_ascii(words[10:20]),
        model=_ascii(words[27:47]),
        firmware=_ascii(words[23:27]),
        sanitize=tuple(
            name for name, bit in _OPERATIONS.items() if _bit(words[59], bit) and _bit(words[59], _SANITIZE)
        ),
        security=_security(words),
        rotation_rate=words[217],
        deallocated_read="zeros" if all(_bit(words[word], bit) for word, bit in _READS_ZEROS) else None,
        # A word counts that begins with 01b.
        has_self_tests=_bit(words[84], 1) if words[84] >> 14 == 1 else None,
    )


def rotation_rpm(rate: int) -> int | None:
    """Return how fast a drive turns a minute, by its MEDIUM ROTATION RATE (ACS-3, word 217; SBC-3, 6.6.2); None for an
    SSD, and where it does not tell.
    """
    return rate if 0x401 <= rate < 0xFFFF else None


def _words(text: str) -> list[int]:
    lines = [line.strip() for line in text.lower().splitlines()]
    words = [int(word, 16) for line in lines if _LINE.fullmatch(line) for word in line.split()]
    if len(words) != WORDS:
        raise ValueError(f"{len(words)} of the {WORDS} words of IDENTIFY DEVICE")
    if words[255] >> 8 == _INTEGRITY and words[255] & 0xFF != _INTEGRITY and _checksum(words) == 0:
        words = [
            word >> 8 | (word & 0xFF) << 8 for word in words
        ]  # hdparm before 9.56 may swap bytes; only a checksum proves that it did
    if not _is_ata_drive(words):
        raise ValueError("the words are not those of an ATA drive, or damaged")
    return words


def _checksum(words: t.Sequence[int]) -> int:
    return sum((word >> 8) + (word & 0xFF) for word in words) % 256


def _is_ata_drive(words: t.Sequence[int]) -> bool:
    """Return the fixed bits (words 0, 83, 84 or 87), a printable serial, and the checksum where there is one."""
    fixed = not _bit(words[0], 15) and words[83] >> 14 == 1 and 1 in (words[84] >> 14, words[87] >> 14)
    integrity = words[255] & 0xFF != _INTEGRITY or _checksum(words) == 0
    named = all(0x20 <= byte < 0x7F for word in words[10:20] for byte in divmod(word, 256) if byte) and bool(
        _ascii(words[10:20])
    )
    return fixed and integrity and named


def _ascii(words: t.Sequence[int]) -> str:
    """Texts have the first character in the high byte."""
    return "".join(chr(byte) for word in words for byte in divmod(word, 256) if 0x20 <= byte < 0x7F).strip()


def _bit(word: int, bit: int) -> bool:
    return bool(word >> bit & 1)


def _security(words: t.Sequence[int]) -> AtaSecurity:
    """Return where two words contradict each other, the worse one counts."""
    state = {name: _bit(words[128], bit) for name, bit in _SECURITY.items()}
    state["supported"] = state["supported"] and _bit(words[82], 1)
    state["enabled"] = state["enabled"] or state["locked"] or _bit(words[85], 1)
    return AtaSecurity(erase_min=_minutes(words[89]), enhanced_erase_min=_minutes(words[90]), **state)


def _minutes(word: int) -> int | None:
    """Words 89 and 90: units of two minutes, in 8 bits, or in 15 where bit 15 is set; all bits set means more than
    that.
    """
    units, most = (word & 0x7FFF, 0x7FFF) if _bit(word, 15) else (word & 0xFF, 0xFF)
    if units == 0:
        return None
    return (units - 1) * 2 if units == most else units * 2


def lost_registers(result: Result) -> bool:
    """Return whether hdparm did not learn what became of its command, whatever its exit code says."""
    return bool(_NO_REGISTERS.search(result.stderr))


def sanitize_status(result: Result) -> Progress:
    """Return what `hdparm --sanitize-status` says: idle, running (with its share), done, failed, or FROZEN. Raises
    ValueError else.

    ACS-3 4.17: done means idle with the bit "completed without error", which a new sanitize clears and a power cycle
    keeps.
    """
    said = result.stdout + result.stderr
    if lost_registers(result):
        raise ValueError(
            "hdparm --sanitize-status: the adapter or kernel returns no ATA registers, so the state is unknown"
        )
    if any(text in said for text in _FAILED):
        return Progress(FAILED, None, "the last sanitize failed")
    states = _STATE.findall(result.stdout)
    if result.rc != 0 or len(states) != 1:
        lines = [line for line in said.splitlines() if "SANITIZE" in line and "Issuing" not in line] or said.split("\n")
        raise ValueError(
            "hdparm --sanitize-status ended with {0}: {1:.120}".format(result.rc, lines[0].strip() or "no state")
        )
    state = {"SD0": IDLE, "SD1": FROZEN, "SD2": RUNNING, "SD3": FAILED, "SD4": DONE}[states[0]]
    if state == RUNNING:
        shares = _PROGRESS.findall(result.stdout)
        return Progress(RUNNING, int(shares[0], 16) / 65536 if shares else None)
    return Progress(DONE) if state == IDLE and _SUCCEEDED in result.stdout else Progress(state)
