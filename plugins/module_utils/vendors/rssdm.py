# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Micron's `rssdm` for the P320h and P420m: its output parsed, its argument lists, and what may be set to what.

Source: Micron TN-FD-15, "Drive Settings" and figure 9, with the blanks that the print lost. The list's layout is that
of rssdm 2.20. The note does not print what `rssdm -L -d` shows, so its lines are found by what they name (SHOWN_AS),
and one that is missing is an error, never a guess.
"""

from __future__ import annotations

import re
import time
import typing as t

from ..core.host import Host, Result
from ..records.vendor_tools import RssdmValue
from .vendor_tool import ToolError, find_by_serial

TOOL = "rssdm"
TIMEOUT_S = 120
# A public test program for servers, which runs rssdm, takes this exit code for one that may be gone in three seconds.
BUSY_CODE, BUSY_S, TRIES = 8, 3.0, 3
# Names of `rssdm -S` in the same program; a line is a number, the name, the value. Its layout is in no document.
LIFETIME_USED, RESERVED_SPACE, UNCORRECTABLE = (
    "Percentage Lifetime Used",
    "Available Reserved Space",
    "Reported Uncorrectable Errors",
)
GOOD_HEALTH = "Drive is in good health"
# TN-FD-15, table 2. There is no fourth: "do not use any other value; unexpected results may occur".
COALESCING = {
    0xD200F: "balanced: trades high IOPS for lower latency, for the widest range of queue depths; the drive's default",
    0xD801F: "optimised for IOPS: queue depths above 128; highest latency",
    0xD020F: "optimised for throughput: queue depths below 32; lowest latency",
}
IOPS_VALUE, LATENCY_VALUE = 0xD801F, 0xD020F
IOPS_ABOVE_DEPTH, LATENCY_BELOW_DEPTH = 128, 32
POWER_LIMITING, INTERRUPT_COALESCING, WRITE_CACHE = "power_limiting", "interrupt_coalescing", "write_cache"
SHOWN_AS: dict[str, str] = {
    POWER_LIMITING: r"power.*limit",
    INTERRUPT_COALESCING: r"(interrupt|intrp|int).*coal",
    WRITE_CACHE: r"write.*cache",
}
# A name may hold a colon: "PCI Path (B:D.F)     : 04:00.0".
_LINE = re.compile(r"\s*(\S.*?)\s*:(?=\s|$)(.*)")
_ON_OFF = {
    "1": True,
    "on": True,
    "yes": True,
    "true": True,
    "enable": True,
    "enabled": True,
    "0": False,
    "off": False,
    "no": False,
    "false": False,
    "disable": False,
    "disabled": False,
}
# Micron's part numbers: data sheets "P420m HHHL" (MTFDGAR…) and "P320h 2.5-inch" (MTFDGAL…).
_FORM_FACTORS = (("MTFDGAR", "hhhl"), ("MTFDGAL", "2.5-inch"))
_FAMILIES = (("P320H", "P320h"), ("P420M", "P420m"))

# By the setting's name; one that is missing is left alone.
Settings = t.Dict[str, RssdmValue]


class RssdmDrive(t.NamedTuple):
    """A drive of the list. fields: every line of it, the name in lower case with single blanks."""

    drive_id: str
    serial: str
    model: str
    firmware: str
    device: str
    pci_address: str
    status: str
    fields: t.Mapping[str, str]

    @property
    def label(self) -> str:
        """Name the drive in a message."""
        return f"{self.serial or 'no serial'} (id {self.drive_id})"

    @property
    def family(self) -> str | None:
        """Return P320h or P420m; None for anything else."""
        return next((name for mark, name in _FAMILIES if mark in self.model.upper()), None)

    @property
    def form_factor(self) -> str | None:
        """Return hhhl or 2.5-inch, from the part number; None when it says neither."""
        return next((name for mark, name in _FORM_FACTORS if mark in self.model.upper()), None)


def parse_list(text: str) -> list[RssdmDrive]:
    """Parse `rssdm -L` or `rssdm -L -d`. A block without an id that is a number is not a drive."""
    blocks: list[dict[str, str]] = []
    for line in text.splitlines():
        match = _LINE.match(line)
        if not match:
            continue
        key, value = " ".join(match.group(1).split()).lower(), match.group(2)
        if key == "drive id":
            blocks.append({})
        elif key == "cmd_status":  # the trailer belongs to no drive
            blocks.append({})
        if blocks:
            blocks[-1].setdefault(key, value.strip())
    return [_drive(fields) for fields in blocks if re.fullmatch(r"[0-9]{1,6}", fields.get("drive id", ""))]


def _drive(fields: dict[str, str]) -> RssdmDrive:
    pci = next((value for name, value in fields.items() if name.startswith("pci path")), "")
    return RssdmDrive(
        drive_id=fields["drive id"],
        serial=fields.get("serial no", ""),
        model=fields.get("model no", ""),
        firmware=fields.get("fw-rev", ""),
        device=fields.get("device name", ""),
        pci_address=pci.lower(),
        status=fields.get("drive status", ""),
        fields=fields,
    )


def parse_settings(drive: RssdmDrive) -> Settings:
    """Return what a drive of `rssdm -L -d` is set to: True, False, a number, or None if it is missing or ambiguous."""
    found: Settings = {}
    for setting, pattern in SHOWN_AS.items():
        texts = [value for name, value in drive.fields.items() if re.search(pattern, name)]
        values = {_number(text) if setting == INTERRUPT_COALESCING else _switch(text) for text in texts}
        found[setting] = values.pop() if len(values) == 1 else None
    return found


def _switch(text: str) -> bool | None:
    words = text.lower().split()
    return _ON_OFF.get(words[0].strip(".,;()")) if words else None


def _number(text: str) -> int | None:
    match = re.match(r"(0[xX][0-9a-fA-F]{1,8})\b", text) or re.match(r"([0-9]{1,10})\s*$", text)
    return int(match.group(1), 0 if match.group(1)[:2].lower() == "0x" else 10) if match else None


def failure_text(result: Result) -> str | None:
    """Return why a command failed; None if its exit code and its CMD_STATUS line both report success."""
    text = result.stdout
    status = re.search(r"^\s*CMD_STATUS\s*:\s*(.*?)\s*$", text, re.MULTILINE)
    code = re.search(r"^\s*STATUS_CODE\s*:\s*(.*?)\s*$", text, re.MULTILINE)
    if result.rc == 0 and status and status.group(1).lower() == "success" and code and code.group(1) in ("0", "0x0"):
        return None
    lines = [
        line.strip()
        for line in (result.stderr + "\n" + text).splitlines()
        if line.strip() and not line.startswith("Copyright")
    ]
    return result.ended(" | ".join(lines[-6:]) or "nothing")


def parse_smart(text: str) -> dict[str, int]:
    """Parse `rssdm -S` to {name: value}. A line with several values is left out: which of them counts is unknown."""
    found: dict[str, list[int]] = {}
    for line in text.splitlines():
        parts = re.split(r"([0-9]{1,18})", line)
        if len(parts) in (3, 5) and not re.search(r"[0-9A-Za-z]", parts[-1] + (parts[0] if len(parts) == 5 else "")):
            found.setdefault(parts[-3].strip(" \t:=|[]().-"), []).append(int(parts[-2]))
    return {name: values[0] for name, values in found.items() if name and len(set(values)) == 1}


def coalescing_value(text: object) -> int:
    """Parse one of the three values of table 2, a number or text such as 0xD801F. Raises ToolError for any other."""
    try:
        value = text if isinstance(text, int) and not isinstance(text, bool) else int(str(text), 0)
    except ValueError:
        value = -1
    if value not in COALESCING:
        choice = "; ".join("0x{:X} ({})".format(*item) for item in COALESCING.items())
        raise ToolError(
            f"interrupt coalescing {text} is refused: Micron TN-FD-15 allows three values and says that any other "
            "may give unexpected results. "
            f"Use {choice}"
        )
    return value


def coalescing_for_depth(queue_depth: int) -> int | None:
    """Return the value for a workload's whole queue depth (threads x depth); None leaves the drive's default alone."""
    if queue_depth > IOPS_ABOVE_DEPTH:
        return IOPS_VALUE
    return LATENCY_VALUE if queue_depth < LATENCY_BELOW_DEPTH else None


def refusal(drive: RssdmDrive, setting: str) -> str | None:
    """Return why a setting of this drive can't be changed; None if it can.

    Source: TN-FD-15, "Power Limiting" and "Write Cache Setting".
    """
    if drive.family is None:
        return "%s is neither a P320h nor a P420m" % (drive.model or "its model (not stated)")
    if setting == POWER_LIMITING and drive.form_factor == "2.5-inch":
        return "power limiting of the 2.5-inch drive is disabled and cannot be changed (TN-FD-15)"
    if setting == POWER_LIMITING and drive.form_factor is None:
        return (
            f"power limiting exists on the HHHL drive only (TN-FD-15), and the part number in {drive.model!r} "
            "does not say which this is"
        )
    if setting == WRITE_CACHE and drive.family == "P420m":
        return (
            "the P420m's write cache is enabled, backed by power holdup, and cannot be changed (TN-FD-15); only "
            "the P320h's can"
        )
    return None


def set_arguments(setting: str, value: object, drive_id: str, write_cache_flag: str = "") -> list[str]:
    """Return the command for a setting. write_cache_flag: the note names that setting, but prints no option for it."""
    if setting == INTERRUPT_COALESCING:
        option = ["-i", f"0x{coalescing_value(value):X}"]
    elif setting == POWER_LIMITING:
        option = ["-p", "1" if value else "0"]
    else:
        option = [write_cache_flag, "1" if value else "0"]
    return [TOOL, "-M", *option, "-n", drive_id]


def erase_arguments(drive_id: str) -> list[str]:
    """Return the command of a secure erase (figure 9); ffff is the password. It asks Y/N on its standard input."""
    return [TOOL, "-X", "-p", "ffff", "-n", drive_id]


def drives(host: Host, details: bool = False) -> list[RssdmDrive]:
    """List the drives of the host. Raises ToolError."""
    return parse_list(_query(host, [TOOL, "-L", *(["-d"] if details else [])]))


def smart(host: Host, drive_id: str) -> dict[str, int]:
    """Read the SMART values of a drive, as far as parse_smart understands them. Raises ToolError."""
    return parse_smart(_query(host, [TOOL, "-S", "-n", drive_id]))


def _query(host: Host, argv: list[str]) -> str:
    """Return what a command that changes nothing prints."""
    result = host.run(argv, timeout_s=TIMEOUT_S)
    for _retry in range(TRIES - 1):
        if result.rc != BUSY_CODE:
            break
        time.sleep(BUSY_S)
        result = host.run(argv, timeout_s=TIMEOUT_S)
    if result.rc == 127:
        raise ToolError(f"{TOOL} is not installed or not in PATH: install Micron's support pack (TN-FD-15, table 1)")
    problem = failure_text(result)
    if problem:
        raise ToolError(problem)
    return result.stdout


def find(host: Host, serial: str, details: bool = False) -> RssdmDrive:
    """Return the one drive with this serial number. Raises ToolError."""
    return find_by_serial(drives(host, details), serial, "rssdm -L", "lists", "drive")


def read_settings(host: Host, serial: str) -> tuple[RssdmDrive, Settings]:
    """Return a drive and what it is set to, by `rssdm -L -d`. Raises ToolError."""
    drive = find(host, serial, details=True)
    return drive, parse_settings(drive)
