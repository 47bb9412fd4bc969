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
from ..drive.entry import parse as parse_entry
from ..machine import cpus, pcie
from ..machine.cpus import NOWHERE, Place
from ..records.plan import CpuLimit, Plan, Tune, WriteCacheRule
from ..records.tuning import Setting
from . import irq
from .placement import CpuPlacement, CpuRequest
from .setting_kinds import SMT, WRITE_CACHE_PATH

NAME, FUNCTION = "@ssd_name@", "@ssd_pci@"
_OF_CPU = re.compile(re.escape(cpus.CPU_DIR) + r"/cpu([0-9]+)/.*")
_NAMESPACE = re.compile(r"(nvme[0-9]+)(n[0-9]+)")
# A drive that reports a volatile cache and is not known to protect it.
OFF_WITHOUT_PLP = "off_without_plp"


class DriveToTune(t.NamedTuple):
    """A drive of the plan: its label and entry, and the state of the write cache that its tests need; preflight has
    seen that it is one.
    """

    drive: str
    entry: Entry
    cache: str | None = None


class TuningPlan(t.NamedTuple):
    """What a plan says about tuning."""

    tune: Tune
    drives: t.Sequence[DriveToTune]
    parallel_drives: int


def parse(plan: Plan) -> TuningPlan:
    """Return what a plan says about tuning."""
    drives = [
        DriveToTune(
            drive.drive,
            parse_entry(drive.selector),
            next((test.write_cache for test in drive.tests if test.write_cache), None),
        )
        for drive in plan.drives
    ]
    return TuningPlan(plan.tune, drives, plan.parallel_drives)


class Target(t.NamedTuple):
    """A drive of the plan that is there: its kernel name, PCI function, model and NUMA node."""

    planned: DriveToTune
    name: str
    address: str | None
    model: str
    numa_node: int | None

    @property
    def drive(self) -> str:
        """Its label."""
        return self.planned.drive


def targets(host: Host, planned: t.Iterable[DriveToTune]) -> list[Target]:
    """Return the drives that this host has now; one that cannot be told apart is left to the guard."""
    found = []
    for one in planned:
        names = drive.find(host, one.entry)
        if len(names) == 1:
            seen, address = drive.identity(host, names[0]), pcie.address_of(host, names[0])
            found.append(Target(one, names[0], address, seen.model or "", seen.numa_node))
    return found


def early(host: Host, tune: Tune) -> list[Setting]:
    """Return the settings that decide which CPUs there are; to be made before anything else is worked out."""
    return [setting for setting in _files(host, tune, []) if setting.path == SMT]


def expand(host: Host, tune: Tune, found: t.Sequence[Target], places: Places) -> list[Setting]:
    """Return all other settings, in the order to make them: services first, as they set things themselves. Globs are
    resolved, one for each drive.

    A path that matches nothing stays as it is written and becomes not_applicable, but for those of a drive's PCI
    function.
    """
    services = [Setting("service", name, name, "inactive") for name in tune.services_stopped]
    files = [setting for setting in _files(host, tune, found) if setting.path != SMT]
    return (
        services
        + files
        + _idle_states(host, tune)
        + _interrupts(host, tune, found, places)
        + _write_caches(tune, found)
    )


def _files(host: Host, tune: Tune, found: t.Sequence[Target]) -> list[Setting]:
    settings = []
    for item in tune.sysfs:
        of_drive = NAME in item.path or FUNCTION in item.path
        for target in found if of_drive else [None]:
            for pattern in [item.path] if target is None else _of_drive(host, item.path, target):
                # Of a drive's PCI function only what is there: not every link can save power, not every drive has one.
                for path in _of_online(host, host.glob(pattern)) or ([] if FUNCTION in item.path else [pattern]):
                    settings.append(Setting("sysfs", item.name, path, str(item.value), target and target.name))
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


def _idle_states(host: Host, tune: Tune) -> list[Setting]:
    """Switch off, on every CPU, the idle states that take longer to leave than the plan allows."""
    limit_us = tune.idle_states_above_us
    if limit_us is None:
        return []
    states = _of_online(host, host.glob(cpus.CPU_DIR + "/cpu[0-9]*/cpuidle/state[0-9]*"))
    deep = [path for path in states if (number(host, path + "/latency") or 0) > limit_us]
    return [Setting("sysfs", "idle_state", path + "/disable", "1") for path in deep]


def _interrupts(host: Host, tune: Tune, found: t.Sequence[Target], places: Places) -> list[Setting]:
    """Return each interrupt once: drives behind one adapter share its interrupts, and these then belong to no single
    drive.
    """
    if tune.interrupts is None:
        return []
    wanted: dict[int, tuple[set[int], set[str]]] = {}
    for target in found:
        for line in irq.of_function(host, target.address):
            allowed, names = wanted.setdefault(line, (set(), set()))
            allowed.update(cpus.parse(places.interrupt_cpus(target.drive)))
            names.add(target.name)
    return [
        Setting(
            "irq", "interrupt", irq.path(line), cpus.format_cpu_list(allowed), names.pop() if len(names) == 1 else None
        )
        for line, (allowed, names) in sorted(wanted.items())
    ]


def _write_caches(tune: Tune, found: t.Sequence[Target]) -> list[Setting]:
    rule, settings = tune.write_cache, []
    for target in found:
        planned = target.planned
        wanted = (planned.cache or planned.entry.options.write_cache or _by_rule(rule, target.model)) if rule else None
        if wanted:
            path = WRITE_CACHE_PATH + target.name
            settings.append(Setting("write_cache", "write_cache", path, wanted, target.name, planned.entry.given))
    return settings


def _by_rule(rule: WriteCacheRule, model: str) -> str | None:
    """on or off; None leaves it. No drive says in a standard way that it protects its cache: the inventory lists such
    models.
    """
    if rule.state == OFF_WITHOUT_PLP:
        return None if any(fnmatch.fnmatchcase(model, pattern) for pattern in rule.plp_models) else "off"
    return rule.state if rule.state in ("on", "off") else None


def most_cpus(host: Host, target: Target, limits: t.Sequence[CpuLimit]) -> int | None:
    """Return how many CPUs a drive is measured with at most: the first limit whose `model` or `driver` fits it; None:
    no limit.
    """
    link = host.readlink(f"{pcie.DEVICES}/{target.address}/driver") if target.address else None
    for limit in limits:
        pairs = ((target.model, limit.model), (os.path.basename(link or ""), limit.driver))
        if all(pattern is None or fnmatch.fnmatchcase(name, pattern) for name, pattern in pairs):
            return limit.cpus
    return None


class Places:
    """The places of a host job's drives; without NUMA binding in the plan fio runs anywhere, and interrupts may still
    be placed.
    """

    def __init__(self, host: Host, plan: TuningPlan, found: t.Sequence[Target]) -> None:
        numa, interrupts = plan.tune.numa, plan.tune.interrupts
        self._binds = numa is not None
        wants = [_want(host, target, numa.limits if numa else []) for target in found]
        self._known = {want.drive for want in wants}
        self._placements = CpuPlacement(
            cpus.usable(host), wants, plan.parallel_drives, interrupts.cores if interrupts else 0
        )

    def take(self, name: str) -> Place:
        """Return where fio runs for this drive of the plan, until `release`."""
        return self._placements.take(name) if self._binds and name in self._known else NOWHERE

    def release(self, name: str) -> None:
        """The drive is done."""
        self._placements.release(name)

    def interrupt_cpus(self, name: str) -> str:
        """Return the CPUs for the drive's interrupts."""
        return self._placements.interrupt_cpus(name)


def _want(host: Host, target: Target, limits: t.Sequence[CpuLimit]) -> CpuRequest:
    given = target.planned.entry.options
    node = target.numa_node if given.numa_node is None else given.numa_node
    return CpuRequest(target.drive, node, given.cpus, most_cpus(host, target, limits))
