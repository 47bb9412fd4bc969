# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How each kind of setting is read and written, and what else a change of it changes.

A new kind is an entry in KINDS.
"""

from __future__ import annotations

import errno
import re
import typing as t
from dataclasses import replace

from ..core.host import Host
from ..core.sysfs import effective, number
from ..records.tuning import Setting
from ..tools import systemd
from . import irq, write_cache

# (outcome, message): the outcome is empty when the write was taken.
Written = t.Tuple[str, str]

# What a machine, a container or a virtual drive lacks is no error: there is nothing to set.
NOT_APPLICABLE_ERRNOS = (errno.ENOENT, errno.EROFS, errno.ENODEV, errno.EOPNOTSUPP)
DEVICE_TIMEOUT_S = 10.0
# A large server takes some seconds to switch all its threads off.
HOST_TIMEOUT_S = 120.0
# `wanted` may stand for the value of another file in the same folder, as it is once all settings before it are made.
REFERENCE = re.compile(r"@([a-z_]+)@")
WRITE_CACHE_PATH = "write cache of /dev/"

SMT = "/sys/devices/system/cpu/smt/control"
# What a file says in other words, None: there is nothing to set. A kernel started with nosmt=force shows forceoff, and
# takes no off.
SAME_AS = {SMT: {"forceoff": "off", "notsupported": None, "notimplemented": None}}
# While turbo is off intel_pstate holds both frequency limits at the highest without it; cpuinfo_max_freq tells the one
# with it up to Linux 6.9.
TURBO_OFF = (("/sys/devices/system/cpu/intel_pstate/no_turbo", "1"), ("/sys/devices/system/cpu/cpufreq/boost", "0"))

# Where the kernel's own words say too little: (path, errno, outcome, what it means).
EXPLAINED = (
    (
        "/pcie_aspm/parameters/policy",
        errno.EPERM,
        "not_applicable",
        "the firmware controls ASPM (or pcie_aspm=off is set): the kernel can't set it",
    ),
    (
        "/intel_pstate/no_turbo",
        errno.EPERM,
        "failed",
        "turbo is switched off in the firmware's set-up; switch it on there, or leave tune_turbo empty",
    ),
    (
        "/energy_performance_preference",
        errno.EBUSY,
        "failed",
        "the governor performance allows only the preference performance",
    ),
    (
        "/queue/io_poll",
        errno.EINVAL,
        "failed",
        "the driver has no queues to poll; boot with nvme.poll_queues=N, or leave it out of tune_queue",
    ),
    ("/queue/nr_requests", errno.EINVAL, "failed", "the drive's queue takes fewer; lower tune_queue.nr_requests"),
    (
        "/device/queue_depth",
        errno.EINVAL,
        "failed",
        "the controller or the drive takes fewer commands at a time; lower tune_queue.queue_depth",
    ),
    (
        "/queue/scheduler",
        errno.EINVAL,
        "failed",
        "this kernel has no such scheduler; set another in tune_queue.scheduler",
    ),
    (
        "/cpufreq/scaling_governor",
        errno.EINVAL,
        "failed",
        "this kernel has no such governor; set another as tune_governor",
    ),
)


class Kind(t.NamedTuple):
    """read: the value in force, None where the host has no such thing. survives_reboot: the drive itself keeps it.
    costly: a process.
    """

    read: t.Callable[[Host, Setting], str | None]
    write: t.Callable[[Host, Setting, str], Written]
    survives_reboot: bool = False
    costly: bool = True


def _read_file(host: Host, setting: Setting) -> str | None:
    try:
        shown = effective(host.read(setting.path))
    except OSError:
        return None
    return SAME_AS.get(setting.path, {}).get(shown, shown)


def _write_file(host: Host, setting: Setting, value: str) -> Written:
    try:
        host.write(setting.path, value)
    except OSError as error:
        return _explain(setting.path, error)
    return "", ""


def _explain(path: str, error: OSError) -> Written:
    for part, code, outcome, message in EXPLAINED:
        if part in path and error.errno == code:
            return outcome, f"{error.strerror}: {message}"
    if error.errno in NOT_APPLICABLE_ERRNOS:
        return "not_applicable", f"not applicable: {error.strerror}"
    return "failed", f"{path}: {error.strerror}"


def _write_service(host: Host, setting: Setting, value: str) -> Written:
    message = systemd.change(host, setting.path, value)
    return ("failed", message) if message else ("", "")


def _write_cache(host: Host, setting: Setting, value: str) -> Written:
    message = write_cache.change(host, t.cast(str, setting.device), value)
    return ("failed", message) if message else ("", "")


KINDS: dict[str, Kind] = {
    "sysfs": Kind(_read_file, _write_file, costly=False),
    "irq": Kind(
        lambda host, setting: irq.allowed(host, irq.number_of(setting.path)),
        lambda host, setting, value: irq.change(host, irq.number_of(setting.path), value),
        costly=False,
    ),
    "service": Kind(lambda host, setting: systemd.state(host, setting.path), _write_service),
    "write_cache": Kind(
        lambda host, setting: write_cache.read(host, t.cast(str, setting.device)), _write_cache, survives_reboot=True
    ),
}
# Those that may be looked at between two rounds: reading them starts no process.
CHEAP = tuple(name for name, kind in KINDS.items() if not kind.costly)

# Governors with settings of their own, of all CPUs or of each.
ADJUSTABLE = ("ondemand", "conservative", "schedutil")
# What a change resets as a side effect: (its path, the files that it touches; \1 … from the path). They are recorded
# with it and put back after it. Switching the scheduler makes a new queue; a governor that goes loses its settings; of
# each dirty_* pair the kernel zeroes the other; a CPU that goes takes interrupts along, and leaves cpusets of cgroup v1
# for good; with SMT all threads come on, also those that were off one by one.
SIDE_EFFECTS = (
    (r"(/sys/block/[^/]+/queue)/scheduler", ("{1}/nr_requests", "{1}/wbt_lat_usec", "{1}/iosched/*"), "sysfs"),
    (r"(/proc/sys/vm/dirty_(?:background_)?)(?:ratio|bytes)", ("{1}ratio", "{1}bytes"), "sysfs"),
    (
        r"((/sys/devices/system/cpu)/cpu[0-9]+/cpufreq)/scaling_governor",
        (
            "{1}/energy_performance_preference",
            "{1}/scaling_setspeed",
            *(base + name + "/*" for name in ADJUSTABLE for base in ("{1}/", "{2}/cpufreq/")),
        ),
        "sysfs",
    ),
    (
        r"(/sys/devices/system/cpu)/(?:intel_pstate/no_turbo|cpufreq/boost)",
        (
            "{1}/cpu[0-9]*/cpufreq/scaling_max_freq",
            "{1}/cpu[0-9]*/cpufreq/scaling_min_freq",
            "{1}/cpu[0-9]*/cpufreq/boost",
        ),
        "sysfs",
    ),
    (SMT, ("/proc/irq/[0-9]*/smp_affinity_list",), "irq"),
    (SMT, ("/sys/fs/cgroup/cpuset/**/cpuset.cpus", "/sys/devices/system/cpu/cpu[0-9]*/online"), "sysfs"),
)


def side_effects(host: Host, setting: Setting) -> list[Setting]:
    """Return the settings that a change of this one may reset, to be put back after it, the last one first; `wanted`
    None: nothing is asked of them.
    """
    if setting.kind == "service":
        return [
            replace(setting, name=unit, path=unit, wanted=None) for unit in systemd.stopped_with(host, setting.path)
        ]
    found = []
    for pattern, touched, kind in SIDE_EFFECTS:
        match = re.fullmatch(pattern, setting.path)
        if match is None:
            continue
        for template in touched:
            # A folder before those in it: a cpuset takes no CPU that its parent does not have.
            paths = sorted(
                host.glob(template.format("", *match.groups())),
                key=lambda path: path.rpartition("/")[::2],
                reverse=True,
            )
            found += [
                replace(setting, kind=kind, name=path.rpartition("/")[2], path=path, wanted=None)
                for path in paths
                if path != setting.path
            ]
    return found


def has_side_effects(setting: Setting) -> bool:
    """Return whether a change of this one resets others."""
    return any(re.fullmatch(pattern, setting.path) for pattern, _touched, _kind in SIDE_EFFECTS)


def resolve(host: Host, setting: Setting) -> Setting:
    """Return the setting with a `wanted` that stands for another file's value replaced by that value."""
    match = REFERENCE.fullmatch(setting.wanted or "")
    if match is None:
        return setting
    value = host.get("{0}/{1}".format(setting.path.rpartition("/")[0], match.group(1)))
    return replace(setting, wanted=setting.wanted if value is None else effective(value))


def is_held_down(host: Host, setting: Setting, value: str | None) -> bool:
    """Return whether this value, just written, is the highest that the driver takes now, of a `wanted` that stands for
    the highest with turbo.

    Where the driver tells the frequency without turbo, nothing below it will do: something else holds the CPU down
    then.
    """
    base = _base_khz(host, setting)
    return (
        _without_turbo(host, setting)
        and value is not None
        and (base is None or (value.isdigit() and int(value) >= base))
    )


def is_highest(host: Host, setting: Setting, value: str) -> bool:
    """Return the same of a value that nobody has written yet: only where the driver tells the frequency
    without turbo.
    """
    return _base_khz(host, setting) is not None and is_held_down(host, setting, value)


def _without_turbo(host: Host, setting: Setting) -> bool:
    return (
        any(host.get(path) == state for path, state in TURBO_OFF)
        and REFERENCE.fullmatch(setting.wanted or "") is not None
    )


def _base_khz(host: Host, setting: Setting) -> int | None:
    return number(host, setting.path.rpartition("/")[0] + "/base_frequency")


def waits_for(setting: Setting) -> str:
    """Return what keeps this and others from being read and written, should it give no answer: its drive, or what is
    set on the host.
    """
    return setting.device or setting.name


def patience_s(setting: Setting) -> float:
    """Return how long its file may take to answer."""
    return DEVICE_TIMEOUT_S if setting.device else HOST_TIMEOUT_S


def current(host: Host, setting: Setting) -> str | None:
    """Return the value in force, or None where the host has no such thing."""
    return KINDS[setting.kind].read(host, setting)
