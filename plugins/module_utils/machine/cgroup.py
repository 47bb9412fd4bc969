# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a control group kept this process from running because its CPU quota was used up (cgroups(7),
`cpu.stat`).
"""

from __future__ import annotations

import posixpath
import typing as t

from ..core.host import Host

# Where the controller `cpu` of each version is mounted, the key of its cpu.stat and how many of its units are a second.
_V2 = (("/sys/fs/cgroup", "/sys/fs/cgroup/unified"), "throttled_usec", 1e6)
_V1 = (("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"), "throttled_time", 1e9)


def throttled_s(host: Host) -> dict[str, float]:
    """Seconds, summed over CPUs, that each group above this process was throttled since it was made: {path of cpu.stat:
    seconds}.

    A group's own file tells nothing of the groups above it, so all are read; {} where no quota can be seen.
    """
    found: dict[str, float] = {}
    for line in (host.get("/proc/self/cgroup") or "").splitlines():
        _number, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        bases, key, unit = _V1 if controllers else _V2
        for folder in _upward(path):
            for base in bases:
                file = "{0}{1}/cpu.stat".format(base, folder.rstrip("/"))
                value = _value(host.get(file) or "", key)
                if value is not None:
                    found[file] = value / unit
    return found


def _upward(path: str) -> t.Iterator[str]:
    """Yield a path and all above it; a container may see none of its own path, but what is mounted is its own group
    then.
    """
    while True:
        yield path
        if path in ("/", ""):
            return
        path = posixpath.dirname(path)


def _value(text: str, key: str) -> int | None:
    values = [line.split() for line in text.splitlines() if line.startswith(key + " ")]
    return int(values[0][1]) if values and len(values[0]) == 2 and values[0][1].isdigit() else None
