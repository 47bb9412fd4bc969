# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the variables of the role `tune` to the plan's `tune` (docs/internals.md): one concern, one function, one
switch, one tag. Pure.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ...module_utils.records.plan import CpuLimit, InterruptCores, NumaBinding, SysfsFile, Tune, WriteCacheRule
from ..common import argument_specs
from ..common.argument_specs import Variables

CPU = "/sys/devices/system/cpu/"
FREQUENCY = CPU + "cpu[0-9]*/cpufreq/"
QUEUE = "/sys/block/@ssd_name@/queue/"
# The commands that a SCSI device, also one behind libata, takes at a time; the block queue has its own nr_requests.
DEVICE_DEPTH, DEVICE = "queue_depth", "/sys/block/@ssd_name@/device/"
FUNCTION = "/sys/bus/pci/devices/@ssd_pci@/"
VM = "/proc/sys/vm/"
# Kept by the drive's link itself where a kernel offers it (sysfs-bus-pci, link/).
LINK_STATES = ("l0s_aspm", "l1_aspm", "l1_1_aspm", "l1_2_aspm", "l1_1_pcipm", "l1_2_pcipm", "clkpm")
# Stands for the value of another file in the same folder (setting_kinds.REFERENCE).
HIGHEST = "@cpuinfo_max_freq@"


def file(name: str, path: str, value: t.Any) -> SysfsFile:
    """One entry of the plan's `sysfs`."""
    return SysfsFile(name, path, str(value))


def _cpu(given: Variables) -> Tune:
    """Turbo first, as it decides what the highest frequency is; the governor before the preference, as each brings its
    own.
    """
    files = []
    if given["tune_turbo"] in ("on", "off"):
        on = given["tune_turbo"] == "on"
        files += [
            file("turbo", CPU + "intel_pstate/no_turbo", int(not on)),
            file("turbo", CPU + "cpufreq/boost", int(on)),
        ]
    if given["tune_governor"]:
        files.append(file("governor", FREQUENCY + "scaling_governor", given["tune_governor"]))
    if given["tune_energy_performance_preference"]:
        preference = given["tune_energy_performance_preference"]
        files.append(file("energy_performance_preference", FREQUENCY + "energy_performance_preference", preference))
    if given["tune_frequency"] == "highest":
        # intel_pstate's own limit of all CPUs, beside those of each.
        files.append(file("max_perf_pct", CPU + "intel_pstate/max_perf_pct", 100))
        files += [file("frequency", FREQUENCY + name, HIGHEST) for name in ("scaling_max_freq", "scaling_min_freq")]
    return Tune(sysfs=files)


def _cstates(given: Variables) -> Tune:
    """Held open by the host job; for settings that stay nothing can be held, so the idle states themselves are switched
    off.
    """
    held, limit = given["tune_cpu_dma_latency_us"], given["tune_idle_states_above_us"]
    if given["keep"]:
        return Tune(idle_states_above_us=held if limit is None else limit)
    return Tune(cpu_dma_latency_us=held, idle_states_above_us=limit)


def _smt(_given: Variables) -> Tune:
    return Tune(sysfs=[file("smt", CPU + "smt/control", "off")])


def _interrupts(given: Variables) -> Tune:
    cores = given["tune_interrupt_cores"]
    return Tune(interrupts=InterruptCores(cores if cores == "auto" else int(cores)))


def _numa(given: Variables) -> Tune:
    limits = [
        CpuLimit(int(limit["cpus"]), limit.get("model"), limit.get("driver")) for limit in given["tune_cpu_limits"]
    ]
    return Tune(numa=NumaBinding(limits))


def _queue(given: Variables) -> Tune:
    """Return the scheduler first: switching it resets others."""
    names = sorted(given["tune_queue"], key=lambda name: name != "scheduler")
    paths = {name: (DEVICE if name == DEVICE_DEPTH else QUEUE) + name for name in names}
    return Tune(sysfs=[file(name, path, given["tune_queue"][name]) for name, path in paths.items()])


def _power(given: Variables) -> Tune:
    files = []
    if given["tune_aspm_policy"]:
        files.append(file("aspm_policy", "/sys/module/pcie_aspm/parameters/policy", given["tune_aspm_policy"]))
    if given["tune_aspm_policy"] == "performance":
        files += [file(name, FUNCTION + "link/" + name, 0) for name in LINK_STATES]
    if given["tune_runtime_power"]:
        files.append(file("runtime_power", FUNCTION + "power/control", given["tune_runtime_power"]))
    return Tune(sysfs=files)


def _vm(given: Variables) -> Tune:
    return Tune(sysfs=[file("vm." + name, VM + name, value) for name, value in given["tune_vm"].items()])


def _services(given: Variables) -> Tune:
    return Tune(services_stopped=list(given["tune_services_stopped"]))


def _updates(given: Variables) -> Tune:
    return Tune(services_stopped=list(given["tune_updates_stopped"]))


def _write_cache(given: Variables) -> Tune:
    return Tune(write_cache=WriteCacheRule(given["tune_write_cache"], list(given["tune_plp_models"])))


# In the order in which their settings are made; the name is also the tag, and part of the switch tune_<name>_enabled.
CONCERNS: dict[str, t.Callable[[Variables], Tune]] = {
    "services": _services,
    "updates": _updates,
    "smt": _smt,
    "cpu": _cpu,
    "cstates": _cstates,
    "power": _power,
    "vm": _vm,
    "queue": _queue,
    "numa": _numa,
    "interrupts": _interrupts,
    "write_cache": _write_cache,
}
# Changes the kernel's command line before the host job; no part of the plan.
BOOT = "boot"
BOOT_VARIABLES = (f"tune_{BOOT}_enabled", "tune_boot_arguments", "tune_reboot_timeout_s")
# What the plan's `tune` depends on, switches included.
VARIABLES = tuple(name for name in argument_specs.options("tune") if name not in BOOT_VARIABLES)


def requested_concerns(
    variables: Variables, run_tags: t.Collection[str] = (), skip_tags: t.Collection[str] = ()
) -> list[str]:
    """Return the concerns to work on: those whose switch is on, and that --tags and --skip-tags leave. Tags of no
    concern leave all.
    """
    named = [name for name in (*CONCERNS, BOOT) if name in run_tags]
    return [
        name
        for name in CONCERNS
        if variables[f"tune_{name}_enabled"] and name not in skip_tags and (name in named or not named)
    ]


def build(variables: Variables, concerns: t.Collection[str], keep: bool = False) -> Tune:
    """Return the plan's `tune` for these concerns. `keep`: leave the settings until restore.yml; nothing can be held
    open then.
    """
    tune = Tune(keep=keep)
    given = dict(variables, keep=keep)
    for name, part in CONCERNS.items():
        if name in concerns:
            tune = _merge(tune, part(given))
    return tune


def _merge(tune: Tune, part: Tune) -> Tune:
    """Return both: lists one after the other, of all else what the part asks for. keep is the first one's."""
    asked = {field.name: getattr(part, field.name) for field in dataclasses.fields(part) if field.name != "keep"}
    lists = {name: getattr(tune, name) + value for name, value in asked.items() if isinstance(value, list)}
    given = {name: value for name, value in asked.items() if value is not None}
    return dataclasses.replace(tune, **{**given, **lists})
