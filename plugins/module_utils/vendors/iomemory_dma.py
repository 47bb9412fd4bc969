# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`iodrive_dma_delay`, a parameter of ioMemory's driver: kept in a modprobe options file that this collection owns, in
effect once the driver is reloaded.

Source: ioMemory VSL Peak Performance Guide, "Decreasing Latency for Writes": 0 to 31, 16 is the default (5 µs), 31 adds
10 µs, 0 none.
"""

from __future__ import annotations

import os
import re
import typing as t

from ..core.files import write_atomic
from ..core.host import Host
from .vendor_tool import ToolError

PARAMETER = "iodrive_dma_delay"
DEFAULT, LARGEST = 16, 31
FOLDER = "/etc/modprobe.d"
FILE = FOLDER + "/ssdlab-fleet-iomemory.conf"
_DRIVERS = ("iomemory_vsl", "iomemory_vsl4")
_HEAD = "# Written by ssdlab.fleet.iomemory; its dma_delay: default removes this file.\n"


class DmaDelay(t.NamedTuple):
    """configured: in the options file, None without it. effective: of the loaded driver, None if none is loaded."""

    changed: bool
    before: int | None
    configured: int | None
    effective: int | None
    driver_reload_required: bool


def parse(text: object) -> int | str | None:
    """Parse the module's argument: 0 to 31 or `default`; None leaves the delay alone. Raises ToolError."""
    if text is None or text == "default":
        return "default" if text else None
    if re.fullmatch(r"[0-9]{1,2}", str(text)) and int(str(text)) <= LARGEST:
        return int(str(text))
    raise ToolError(
        f"dma_delay {text} is refused: iodrive_dma_delay is 0 (none) to {LARGEST} (10 us), the word default gives "
        f"{DEFAULT} (5 us)"
    )


def apply(host: Host, text: object, check: bool = False) -> DmaDelay:
    """Write or remove the options file, and return whether the driver must be reloaded. Raises ToolError, OSError."""
    requested = parse(text)
    driver = next((name for name in _DRIVERS if host.exists("/sys/module/" + name)), None)
    before = _configured(host)
    effective = _effective(host, driver)
    if requested is None:
        return DmaDelay(False, before, before, effective, False)
    others = _other_files(host)
    if others:
        raise ToolError(
            "{} sets {} as well; remove it there first, since it is not certain which file counts".format(
                ", ".join(others), PARAMETER
            )
        )
    configured = None if requested == "default" else int(requested)
    module = (driver or _DRIVERS[0]).replace("_", "-")
    line = None if configured is None else f"options {module} {PARAMETER}={configured}\n"
    changed = _text(host) != (_HEAD + line if line else None)
    if changed and not check:
        _write(host, _HEAD + line if line else None)
    after_reload = DEFAULT if configured is None else configured
    return DmaDelay(changed, before, configured, effective, effective is not None and effective != after_reload)


def _text(host: Host) -> str | None:
    try:
        with open(host.path(FILE), encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return None


def _write(host: Host, text: str | None) -> None:
    if text is None:
        os.unlink(host.path(FILE))
        return
    os.makedirs(host.path(FOLDER), mode=0o755, exist_ok=True)
    write_atomic(host.path(FILE), text)


def _configured(host: Host) -> int | None:
    match = re.search(rf"^options\s.*\b{PARAMETER}=([0-9]{{1,9}})", _text(host) or "", re.MULTILINE)
    return int(match.group(1)) if match else None


def _effective(host: Host, driver: str | None) -> int | None:
    text = host.get(f"/sys/module/{driver}/parameters/{PARAMETER}") if driver else None
    return int(text) if text is not None and re.fullmatch(r"[0-9]{1,9}", text) else None


def _other_files(host: Host) -> list[str]:
    """Return the other options files that set the parameter."""
    places = host.glob(FOLDER + "/*.conf") + host.glob("/etc/modprobe.conf")
    setting = re.compile(rf"^\s*options\s.*\b{PARAMETER}=", re.MULTILINE)
    return [path for path in places if path != FILE and setting.search(host.get(path) or "")]
