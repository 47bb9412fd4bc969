# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A SAS drive for the emulators of sg3_utils. They talk to no drive; its media is a file, such as the one behind a loop
device.

Follows SBC-3 (T10/BSR INCITS 514: SANITIZE 5.30 and its operations 4.11, FORMAT UNIT 5.3) and SPC-4 (INCITS 513: sense
data 4.5, REPORT SUPPORTED OPERATION CODES 6.35, PERSISTENT RESERVE IN 6.15); texts and exit codes: sg3_utils(8) and
what sg3_utils 1.46 prints. ASSUMED: how long an operation takes (`step` of its way at each question), and that reads
and writes go on meanwhile.

`faults` make it fail: {"start": exit code, "fail": true, "stuck": true, "ignore": true, "erases_nothing": true,
"no_rsoc": true, "unknown": [commands that REPORT SUPPORTED OPERATION CODES has no data on], "silent": true}.
"""

from __future__ import annotations

import os
import sys

from emulator import fail, state

NAMES = {"overwrite": (0x48, 1, 10), "block": (0x48, 2, 10), "crypto": (0x48, 3, 10), "format": (0x04, None, 6)}
# What the exit codes of sg3_utils(8) are called by the tools.
WORDS = {
    2: "Not ready",
    5: "Illegal request",
    6: "Unit attention",
    7: "Data protect",
    9: "Illegal request, Invalid opcode",
    24: "Reservation conflict",
}
IN_PROGRESS = {"sanitize": (2, 0x04, 0x1B), "format": (2, 0x04, 0x04)}
BROKEN = {"sanitize": (3, 0x31, 0x03), "format": (3, 0x31, 0x01)}
CORRUPTED = (3, 0x31, 0x00)


def new(media, **more):
    """A drive that has everything and does nothing. sense: what REQUEST SENSE tells while nothing runs."""
    return {
        "serial": "S6BNNE0T123456",
        "commands": list(NAMES),
        "block_bytes": 512,
        "format": None,
        "operation": None,
        "share": 0.0,
        "step": 0.25,
        "sense": [0, 0, 0],
        "descriptor": False,
        "attentions": 0,
        "keys": [],
        "faults": {},
        "media": str(media),
        **more,
    }


class Tool:
    """One call of a tool: its options, its drive. `texts` of the tool's own are written by it."""

    def __init__(self, name, flags=(), values=()):
        self.name, self.given, devices = name, {}, []
        if sys.argv[1:] == ["--version"]:
            fail(f"{name}: version: 1.46 of this emulator", 0)
        for word in sys.argv[1:]:
            option, _equal, value = word.partition("=")
            if not word.startswith("-"):
                devices.append(word)
            elif option in flags or (option in values and value):
                self.given[option] = value or True
            else:
                fail(f"{name}: unrecognized option '{word}'", 1)
        if len(devices) != 1:
            fail("Missing device name!\n", 1)
        self.device = devices[0]

    def run(self, action):
        """Let `action(drive) -> exit code` work on the drive, and end."""
        with state() as machine:
            drive = machine["scsi"].get(os.path.realpath(self.device))
            if drive is None:
                fail(f"{self.name} failed: No such file or directory", 52)
            if drive["faults"].get("silent"):
                fail(f"{self.name} failed: pass-through os error", 72)
            code = action(drive)
        raise SystemExit(code)


def attention(drive):
    """A pending unit attention comes first, once, instead of the command."""
    pending = drive["attentions"] > 0
    drive["attentions"] -= pending
    return pending


def dump(data):
    """The hex dump of sg3_utils: an offset, then 16 bytes a line with a wider gap in the middle."""
    for start in range(0, len(data), 16):
        part = [f"{byte:02x}" for byte in data[start : start + 16]]
        print((" {:02x}     {}  {}".format(start, " ".join(part[:8]), " ".join(part[8:]))).rstrip())


def start(drive, kind, operation, **changes):
    """Begin a sanitize or a format with IMMED; the exit code."""
    fault = drive["faults"].get("start")
    if drive["keys"]:
        fault = 24
    elif drive["operation"] is not None:
        fault = 2
    elif operation not in drive["commands"]:
        fault = 9 if kind == "format" else 5
    if fault:
        return fault
    if not drive["faults"].get("ignore"):
        drive.update(operation=kind, running=operation, share=0.0, pending=changes)
    return 0


def progress(drive):
    """What REQUEST SENSE tells; the operation gets on by one step."""
    kind, faults = drive["operation"], drive["faults"]
    if kind is None:
        return tuple(drive["sense"]), None
    drive["share"] += 0.0 if faults.get("stuck") and drive["share"] >= 0.5 else drive["step"]
    if faults.get("fail") and drive["share"] >= 0.5:
        drive.update(operation=None, sense=list(BROKEN[kind]))
        return tuple(drive["sense"]), None
    if drive["share"] < 1:
        return IN_PROGRESS[kind], int(drive["share"] * 65536)
    if not faults.get("erases_nothing"):
        _erase(drive)
    drive.update(operation=None, sense=[0, 0, 0], **drive.pop("pending", {}))
    return (0, 0, 0), None


def _erase(drive):
    with open(drive["media"], "r+b") as file:
        left = file.seek(0, os.SEEK_END)
        file.seek(0)
        while left > 0:
            size = min(left, 1 << 20)
            left -= file.write(os.urandom(size) if drive.get("running") == "crypto" else bytes(size))
        os.fsync(file.fileno())


def sense_bytes(code, share, descriptor):
    """Sense data, current, in fixed or descriptor format, with a progress indication where there is one."""
    key, asc, ascq = code
    specific = b"" if share is None else b"\x80" + share.to_bytes(2, "big")
    if descriptor:
        more = bytes([2, 6, 0, 0]) + specific + b"\0" if specific else b""
        return bytes([0x72, key, asc, ascq, 0, 0, 0, len(more)]) + more
    return bytes([0x70, 0, key, 0, 0, 0, 0, 10, 0, 0, 0, 0, asc, ascq, 0]) + (specific or bytes(3))


def power_cycle(drive):
    """Power off and on: a sanitize goes on, a format leaves a corrupted medium; a unit attention tells of it."""
    if drive["operation"] == "format":
        drive.update(operation=None, sense=list(CORRUPTED))
    drive["attentions"] = 1
