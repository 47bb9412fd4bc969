# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the collection needs to know about a host: which boot, which service manager, how big, which tools."""

from __future__ import annotations

import dataclasses
import os
import platform
import re
import typing as t

from ..core.host import BOOT_ID, Host
from ..core.sysfs import number
from ..records import base
from ..records.host_snapshot import HostIdentity, Tool
from . import bmc_record, cut_reach, fio_trial

# A build of a git clone tells its commits after the last tag that the clone has ("3.3-3118-ga1ce").
_VERSION = re.compile(r"[0-9]+(\.[0-9]+)+(-[0-9]+-g[0-9a-f]+)?")

TOOLS = ("fio", "wipefs", "blkid", "blkdiscard", "setpriv", "systemd-run")
OPTIONS: dict[str, t.Any] = {
    "tools": {"type": "list", "elements": "str", "default": list(TOOLS)},
    "fio_engines": {"type": "list", "elements": "str", "default": []},
    "cut_reach_of": {"type": "path"},
}


def module_result(host: Host, options: dict[str, t.Any]) -> dict[str, t.Any]:
    """Return the result of the module host_info."""
    found = gather(host, options["tools"], options["fio_engines"])
    if options["cut_reach_of"]:
        state_dir = options["cut_reach_of"]
        found = dataclasses.replace(
            found, cut_reach=cut_reach.read(host, state_dir), bmc_record=bmc_record.leftover(state_dir)
        )
    return {"host_info": base.to_json(found)}


def gather(host: Host, tools: t.Iterable[str] = TOOLS, fio_engines: t.Sequence[str] = ()) -> HostIdentity:
    """Return the facts. fio_engines: those that are tried. service_manager: systemd only where systemd is PID 1
    (sd_booted(3)).
    """
    found = {name: tool(host, name) for name in tools}
    fio = found.get("fio") if fio_engines else None
    return HostIdentity(
        boot_id=host.get(BOOT_ID),
        machine_id=host.get("/etc/machine-id"),
        hostname=host.get("/proc/sys/kernel/hostname"),
        kernel=host.get("/proc/sys/kernel/osrelease"),
        service_manager="systemd" if host.exists("/run/systemd/system") else None,
        cpus=os.cpu_count(),
        memory_bytes=_memory_bytes(host),
        python_version=platform.python_version(),
        tools=found,
        fio_engines={engine: fio_trial.problem(host, fio.path, engine) for engine in fio_engines} if fio else None,
        aio_left=_aio_left(host),
    )


def tool(host: Host, name: str, option: str = "--version") -> Tool | None:
    """Return where a tool is and the version that it states when called with `option`; None if it is missing."""
    path = host.which(name)
    if path is None:
        return None
    result = host.run([path, option], timeout_s=20)
    # sg3_utils print theirs on stderr.
    match = _VERSION.search(result.stdout or result.stderr) if result.rc == 0 else None
    return Tool(path, match.group(0) if match else None)


def _aio_left(host: Host) -> int | None:
    most, now = (number(host, f"/proc/sys/fs/aio-{name}") for name in ("max-nr", "nr"))
    return None if most is None or now is None else max(0, most - now)


def _memory_bytes(host: Host) -> int | None:
    match = re.search(r"^MemTotal:\s+([0-9]+) kB", host.get("/proc/meminfo") or "", re.MULTILINE)
    return int(match.group(1)) * 1024 if match else None
