# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a plan's `tune` (docs/internals.md) to the settings that it means on this host, and to the places
of its drives.
"""

from __future__ import annotations

import fnmatch
import os
import re
import typing as t

from ..core.host import Host
from ..core.sysfs import number
from ..drive import identity as drive
from ..drive.entry import Entry
from ..machine import cpus, pcie
from ..machine.cpus import NOWHERE, Place
from . import irq
from .placement import CpuPlacement, CpuRequest
from .setting_kinds import SMT, WRITE_CACHE_PATH, Setting

NAME, FUNCTION = "@ssd_name@", "@ssd_pci@"
_OF_CPU = re.compile(re.escape(cpus.CPU_DIR) + r"/cpu([0-9]+)/.*")
_NAMESPACE = re.compile(r"(nvme[0-9]+)(n[0-9]+)")
# A drive that reports a volatile cache and is not known to protect it.
OFF_WITHOUT_PLP = "off_without_plp"


class Target(t.NamedTuple):
    """A drive of the plan that is there: the plan's label and entry, its kernel name, PCI function and identity."""

    drive: str
    entry: Entry
    name: str
    address: str | None
    identity: t.Mapping[str, t.Any]
    # The state of the write cache that its tests need; preflight has seen that it is one.
    cache: str | None = None


def targets(host: Host, plan: t.Mapping[str, t.Any]) -> list[Target]:
    """Return the drives of a plan (entry.of_plan) that this host has now; one that cannot be told apart is left to the
    guard.
    """
    found = []
    for planned in plan["drives"]:
        entry = planned["entry"]
        names = drive.find(host, entry)
        if len(names) == 1:
            seen, address = drive.identity(host, names[0]), pcie.address_of(host, names[0])
            cache = next((test["write_cache"] for test in planned.get("tests") or [] if test.get("write_cache")), None)
            found.append(Target(planned["drive"], entry, names[0], address, seen, cache))
    return found


def early(host: Host, tune: t.Mapping[str, t.Any]) -> list[Setting]:
    """Return the settings that decide which CPUs there are; to be made before anything else is worked out."""
    return [setting for setting in _files(host, tune, []) if setting["path"] == SMT]


def expand(host: Host, tune: t.Mapping[str, t.Any], found: t.Sequence[Target], places: Places) -> list[Setting]:
    """Return all other settings, in the order to make them: services first, as they set things themselves. Globs are
    resolved, one for each drive.

    A path that matches nothing stays as it is written and becomes not_applicable, but for those of a drive's PCI
    function.
    """
    services = [_setting("service", name, name, "inactive") for name in tune.get("services_stopped", [])]
    files = [setting for setting in _files(host, tune, found) if setting["path"] != SMT]
    return (
        services
        + files
        + _idle_states(host, tune)
        + _interrupts(host, tune, found, places)
        + _write_caches(tune, found)
    )


def _setting(kind: str, name: str, path: str, wanted: str, device: str | None = None, **more: t.Any) -> Setting:
    return dict({"kind": kind, "name": name, "path": path, "wanted": wanted, "device": device}, **more)


def _files(host: Host, tune: t.Mapping[str, t.Any], found: t.Sequence[Target]) -> list[Setting]:
    settings = []
    for item in tune.get("sysfs", []):
        of_drive = NAME in item["path"] or FUNCTION in item["path"]
        for target in found if of_drive else [None]:
            for pattern in [item["path"]] if target is None else _of_drive(host, item["path"], target):
                # Of a drive's PCI function only what is there: not every link can save power, not every drive has one.
                for path in _of_online(host, host.glob(pattern)) or ([] if FUNCTION in item["path"] else [pattern]):
                    settings.append(_setting("sysfs", item["name"], path, str(item["value"]), target and target.name))
    return settings


def _of_drive(host: Host, pattern: str, target: Target) -> list[str]:
    """Return the pattern with the drive filled in. With native multipath the requests are queued at its paths, hidden
    disks; the drive itself has no queue.
    """
    parts = _NAMESPACE.fullmatch(target.name)
    paths = host.glob("/sys/block/{0}c[0-9]*{1}".format(*parts.groups())) if parts and NAME in pattern else []
    return [
        pattern.replace(NAME, os.path.basename(path)).replace(FUNCTION, target.address or FUNCTION)
        for path in paths or [target.name]
    ]


def _of_online(host: Host, paths: t.Sequence[str]) -> list[str]:
    """Without those of CPUs that are off: older kernels show stale values there, and take none."""
    online = set(cpus.online(host))
    numbers = [_OF_CPU.fullmatch(path) for path in paths]
    return [path for path, match in zip(paths, numbers) if match is None or not online or int(match.group(1)) in online]


def _idle_states(host: Host, tune: t.Mapping[str, t.Any]) -> list[Setting]:
    """Switch off, on every CPU, the idle states that take longer to leave than the plan allows."""
    limit_us = tune.get("idle_states_above_us")
    if limit_us is None:
        return []
    states = _of_online(host, host.glob(cpus.CPU_DIR + "/cpu[0-9]*/cpuidle/state[0-9]*"))
    deep = [path for path in states if (number(host, path + "/latency") or 0) > limit_us]
    return [_setting("sysfs", "idle_state", path + "/disable", "1") for path in deep]


def _interrupts(host: Host, tune: t.Mapping[str, t.Any], found: t.Sequence[Target], places: Places) -> list[Setting]:
    """Return each interrupt once: drives behind one adapter share its interrupts, and these then belong to no single
    drive.
    """
    if tune.get("interrupts") is None:
        return []
    wanted: dict[int, tuple[set[int], set[str]]] = {}
    for target in found:
        for line in irq.of_function(host, target.address):
            allowed, names = wanted.setdefault(line, (set(), set()))
            allowed.update(cpus.parse(places.interrupt_cpus(target.drive)))
            names.add(target.name)
    return [
        _setting(
            "irq", "interrupt", irq.path(line), cpus.format_cpu_list(allowed), names.pop() if len(names) == 1 else None
        )
        for line, (allowed, names) in sorted(wanted.items())
    ]


def _write_caches(tune: t.Mapping[str, t.Any], found: t.Sequence[Target]) -> list[Setting]:
    rule = tune.get("write_cache") or {}
    settings = []
    for target in found:
        wanted = (target.cache or target.entry.options.write_cache) if rule else None
        wanted = wanted or _by_rule(rule, target.identity)
        if wanted:
            settings.append(
                _setting(
                    "write_cache",
                    "write_cache",
                    WRITE_CACHE_PATH + target.name,
                    wanted,
                    target.name,
                    selector=target.entry.given,
                )
            )
    return settings


def _by_rule(rule: t.Mapping[str, t.Any], identity: t.Mapping[str, t.Any]) -> str | None:
    """on or off; None leaves it. No drive says in a standard way that it protects its cache: the inventory lists such
    models.
    """
    state = rule.get("state")
    if state == OFF_WITHOUT_PLP:
        model = str(identity.get("model") or "")
        return None if any(fnmatch.fnmatchcase(model, pattern) for pattern in rule.get("plp_models", [])) else "off"
    return state if state in ("on", "off") else None


def most_cpus(host: Host, target: Target, limits: t.Sequence[t.Mapping[str, t.Any]]) -> int | None:
    """Return how many CPUs a drive is measured with at most: the first limit whose `model` or `driver` fits it; None:
    no limit.
    """
    link = host.readlink(f"{pcie.DEVICES}/{target.address}/driver") if target.address else None
    names = {"model": str(target.identity.get("model") or ""), "driver": os.path.basename(link or "")}
    for limit in limits:
        if all(fnmatch.fnmatchcase(names[key], str(limit[key])) for key in names if key in limit):
            return int(limit["cpus"])
    return None


class Places:
    """The places of a host job's drives; without NUMA binding in the plan fio runs anywhere, and interrupts may still
    be placed.
    """

    def __init__(self, host: Host, plan: t.Mapping[str, t.Any], found: t.Sequence[Target]) -> None:
        tune = plan["tune"]
        numa, interrupts = tune.get("numa"), tune.get("interrupts") or {}
        self._binds = numa is not None
        wants = [_want(host, target, (numa or {}).get("limits", [])) for target in found]
        self._known = {want.drive for want in wants}
        self._placements = CpuPlacement(cpus.usable(host), wants, plan["parallel_drives"], interrupts.get("cores", 0))

    def take(self, name: str) -> Place:
        """Return where fio runs for this drive of the plan, until `release`."""
        return self._placements.take(name) if self._binds and name in self._known else NOWHERE

    def release(self, name: str) -> None:
        """The drive is done."""
        self._placements.release(name)

    def interrupt_cpus(self, name: str) -> str:
        """Return the CPUs for the drive's interrupts."""
        return self._placements.interrupt_cpus(name)


def _want(host: Host, target: Target, limits: t.Sequence[t.Mapping[str, t.Any]]) -> CpuRequest:
    by_hand = target.entry.options.numa_node
    node = target.identity.get("numa_node") if by_hand is None else by_hand
    return CpuRequest(target.drive, node, target.entry.options.cpus, most_cpus(host, target, limits))
