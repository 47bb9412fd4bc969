# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How fast a host's fans turn and how warm its inlet is, by the kernel's hwmon (Documentation/hwmon/sysfs-interface).
Many servers show them to their BMC alone; then nothing is known here.
"""

from __future__ import annotations

import re
import typing as t

from ..core.host import Host
from ..core.sysfs import number

HWMON = "/sys/class/hwmon"
# How drivers label the sensor where the air comes in.
_INLET = re.compile(r"inlet|intake|ambient|front panel", re.IGNORECASE)
MOST_FANS = 64


class Cooling(t.NamedTuple):
    """fans_rpm: by the sensor's name, such as "nct6779 fan1"; inlet_c: None where no sensor is the inlet's."""

    fans_rpm: dict[str, int]
    inlet_c: float | None


def read(host: Host) -> Cooling:
    """Return what the sensors show now. Fans that never turn, as none is connected, are left out."""
    fans: dict[str, int] = {}
    for path in sorted(host.glob(HWMON + "/hwmon*/fan*_input"))[:MOST_FANS]:
        rpm = number(host, path)
        if rpm:
            fans[_name(host, path)] = rpm
    labels = sorted(host.glob(HWMON + "/hwmon*/temp*_label"))
    inlets = [path for path in labels if _INLET.search(host.get(path) or "")]
    degrees = [number(host, path[: -len("label")] + "input") for path in inlets[:1]]
    known = [value for value in degrees if value is not None]
    return Cooling(fans, known[0] / 1000 if known else None)


def _name(host: Host, path: str) -> str:
    folder, _slash, file = path.rpartition("/")
    sensor = file[: -len("_input")]
    label = host.get(f"{folder}/{sensor}_label") or f"{host.get(folder + '/name') or 'hwmon'} {sensor}"
    return label[:100]
