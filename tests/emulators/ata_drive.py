# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A SATA drive for the emulator of hdparm. It talks to no drive; its media is a file, such as the one behind a loop
device.

Follows ACS-3 (T13/2161-D): IDENTIFY DEVICE (7.12.7), words 69, 84 and 169 among it, the security feature set and which
commands each of its states aborts (4.18, table 18), the SANITIZE DEVICE state machine SD0 to SD4 (4.17). ASSUMED: how
long a sanitize takes (`step` of its way at each question), and that reads and writes go on meanwhile, which a drive
would abort: the media is a plain file.

`faults` make it fail: {"set_pass": "abort" | "ignore", "erase": "abort" | "ignore" | "hang", "disable": "abort",
"sanitize": "abort" | "fail" | "stuck" | "ignore", "silent": true, "erases_nothing": true, "serial_after": "..."}.
"""

from __future__ import annotations

import os

ATTEMPTS = 5
OPERATIONS = {"crypto_scramble": 13, "overwrite": 14, "block_erase": 15}


class Abort(Exception):
    """The drive ended a command with ABRT; the text is the reason that SANITIZE STATUS EXT gives."""


def new(media, **more):
    """A drive that has everything, unlocked. `security` and `sanitize` may be given in part."""
    security = {
        "supported": True,
        "enhanced": True,
        "password": None,
        "locked": False,
        "frozen": False,
        "attempts": ATTEMPTS,
        "units": 1,
        "enhanced_units": 1,
        **more.pop("security", {}),
    }
    sanitize = {
        "operations": ["crypto_scramble", "block_erase"],
        "state": "SD0",
        "succeeded": False,
        "share": 0.0,
        "step": 0.25,
        "running": None,
        **more.pop("sanitize", {}),
    }
    return {
        "serial": "22123A4F5B6C",
        "model": "EXAMPLE 5400 PRO",
        "firmware": "D4PA001",
        "sectors": os.path.getsize(media) // 512,
        "media": str(media),
        "faults": {},
        # Words 169 and 69: it has TRIM, and reads after it are alike, and zeros.
        "trim": [],
        "self_tests": True,
        **more,
        "security": security,
        "sanitize": sanitize,
    }


def words(drive):
    """IDENTIFY DEVICE, with its checksum."""
    security, sanitize = drive["security"], drive["sanitize"]
    enabled = security["password"] is not None
    data = [0] * 256
    data[0] = 0x0040
    data[10:20], data[23:27], data[27:47] = (
        _text(drive["serial"], 20),
        _text(drive["firmware"], 8),
        _text(drive["model"], 40),
    )
    data[49], data[53], data[80], data[83], data[84], data[86], data[87] = (
        0x2F00,
        7,
        0x07F0,
        0x7400,
        0x6161 | drive["self_tests"] << 1,
        0x3400,
        0x6161 | drive["self_tests"] << 1,
    )
    data[69] = ("DRAT" in drive["trim"]) << 14 | ("RZAT" in drive["trim"]) << 5
    data[169] = "TRIM" in drive["trim"]
    data[59] = sum(1 << OPERATIONS[name] for name in sanitize["operations"]) | (bool(sanitize["operations"]) << 12)
    data[60], data[61] = drive["sectors"] & 0xFFFF, drive["sectors"] >> 16 & 0xFFFF
    data[82] = 0x7469 | security["supported"] << 1
    data[85] = 0x7469 | enabled << 1
    data[89], data[90] = security["units"], security["enhanced_units"]
    data[100:104] = [drive["sectors"] >> shift & 0xFFFF for shift in (0, 16, 32, 48)]
    bits = (
        security["supported"],
        enabled,
        security["locked"],
        security["frozen"],
        not security["attempts"],
        security["enhanced"],
    )
    data[128] = sum(bit << place for place, bit in enumerate(bits)) if security["supported"] else 0
    data[217] = 1
    data[255] = 0xA5 | (-sum((word >> 8) + (word & 0xFF) for word in data) - 0xA5) % 256 << 8
    return data


def _text(text, length):
    padded = text.encode("ascii").ljust(length)
    return [padded[index] << 8 | padded[index + 1] for index in range(0, length, 2)]


def set_password(drive, password):
    """SECURITY SET PASSWORD, user, high."""
    security = drive["security"]
    fault = drive["faults"].get("set_pass")
    if not security["supported"] or security["locked"] or security["frozen"] or fault == "abort":
        raise Abort()
    if fault != "ignore":
        security["password"] = password


def unlock(drive, password):
    """SECURITY UNLOCK: five wrong guesses, then no more until the next power cycle."""
    security = drive["security"]
    if security["frozen"] or not security["attempts"]:
        raise Abort()
    if password != security["password"]:
        security["attempts"] -= 1
        raise Abort()
    security["locked"] = False


def disable(drive, password):
    """SECURITY DISABLE PASSWORD."""
    security = drive["security"]
    if (
        security["locked"]
        or security["frozen"]
        or password != security["password"]
        or drive["faults"].get("disable") == "abort"
    ):
        raise Abort()
    security["password"] = None


def erase_unit(drive, password, enhanced):
    """SECURITY ERASE PREPARE and SECURITY ERASE UNIT: also on a locked drive, and the password is off afterwards."""
    security = drive["security"]
    fault = drive["faults"].get("erase")
    allowed = (
        security["supported"]
        and not security["frozen"]
        and password == security["password"]
        and (security["enhanced"] or not enhanced)
    )
    if not allowed or fault == "abort":
        raise Abort()
    if fault != "ignore":
        _erase(drive, b"\x5a" if enhanced else b"\0")
        security.update(password=None, locked=False)


def start_sanitize(drive, operation):
    """CRYPTO SCRAMBLE EXT or BLOCK ERASE EXT: accepted in SD0, SD3 and SD4 on a drive that is not locked."""
    sanitize = drive["sanitize"]
    fault = drive["faults"].get("sanitize")
    if sanitize["state"] == "SD1":
        raise Abort("Device in FROZEN state")
    if operation not in sanitize["operations"]:
        raise Abort("Unsupported command")
    if sanitize["state"] == "SD2" or drive["security"]["locked"] or fault == "abort":
        raise Abort("Reason not reported")
    if fault != "ignore":
        sanitize.update(state="SD2", share=0.0, running=operation, succeeded=False)


def sanitize_status(drive):
    """SANITIZE STATUS EXT; the sanitize gets on by one step."""
    sanitize = drive["sanitize"]
    fault = drive["faults"].get("sanitize")
    if sanitize["state"] == "SD2":
        sanitize["share"] += 0.0 if fault == "stuck" and sanitize["share"] >= 0.5 else sanitize["step"]
        if sanitize["share"] >= 1 or (fault == "fail" and sanitize["share"] >= 0.5):
            _end_sanitize(drive, fault)
    if sanitize["state"] == "SD3":
        raise Abort("Last Sanitize Command completed unsuccessfully")
    return sanitize


def _end_sanitize(drive, fault):
    sanitize = drive["sanitize"]
    if fault == "fail":
        sanitize.update(state="SD3", running=None)
        return
    _erase(drive, None if sanitize["running"] == "crypto_scramble" else b"\xff")
    sanitize.update(state="SD0", running=None, succeeded=True)


def _erase(drive, pattern):
    """The pattern everywhere; None: what decrypts to noise."""
    faults = drive["faults"]
    if "serial_after" in faults:
        drive["serial"] = faults["serial_after"]
    if faults.get("erases_nothing"):
        return
    with open(drive["media"], "r+b") as file:
        left = file.seek(0, os.SEEK_END)
        file.seek(0)
        while left > 0:
            size = min(left, 1 << 20)
            left -= file.write(os.urandom(size) if pattern is None else pattern * size)
        os.fsync(file.fileno())


def power_cycle(drive, bios_freezes=False):
    """Power off and on: a password locks, freezes end (unless the BIOS sets one again), attempts are new; a sanitize
    goes on (SD2 stays).
    """
    security, sanitize = drive["security"], drive["sanitize"]
    security.update(locked=security["password"] is not None, frozen=bios_freezes, attempts=ATTEMPTS)
    if sanitize["state"] == "SD1":
        sanitize["state"] = "SD0"
