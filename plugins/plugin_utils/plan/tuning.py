# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the variables of the role `tune` to the plan's `tune` (docs/internals.md): one concern, one function, one
switch, one tag. Pure.
"""

from __future__ import annotations

import typing as t

from ..common import argument_specs

CPU = "/sys/devices/system/cpu/"
FREQUENCY = CPU + "cpu[0-9]*/cpufreq/"
QUEUE = "/sys/block/@ssd_name@/queue/"
FUNCTION = "/sys/bus/pci/devices/@ssd_pci@/"
VM = "/proc/sys/vm/"
# Kept by the drive's link itself where a kernel offers it (sysfs-bus-pci, link/).
LINK_STATES = ("l0s_aspm", "l1_aspm", "l1_1_aspm", "l1_2_aspm", "l1_1_pcipm", "l1_2_pcipm", "clkpm")
# Stands for the value of another file in the same folder (setting_kinds.REFERENCE).
HIGHEST = "@cpuinfo_max_freq@"

Variables = t.Mapping[str, t.Any]
Spec = dict[str, t.Any]


def file(name: str, path: str, value: t.Any) -> dict[str, str]:
    """One entry of the plan's `sysfs`."""
    return {"name": name, "path": path, "value": str(value)}


def _cpu(given: Variables) -> Spec:
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
    return {"sysfs": files}


def _cstates(given: Variables) -> Spec:
    """Held open by the host job; for settings that stay nothing can be held, so the idle states themselves are switched
    off.
    """
    held, limit = given["tune_cpu_dma_latency_us"], given["tune_idle_states_above_us"]
    if given["keep"]:
        return {"idle_states_above_us": held if limit is None else limit}
    return {"cpu_dma_latency_us": held, "idle_states_above_us": limit}


def _smt(_given: Variables) -> Spec:
    return {"sysfs": [file("smt", CPU + "smt/control", "off")]}


def _interrupts(given: Variables) -> Spec:
    cores = given["tune_interrupt_cores"]
    return {"interrupts": {"cores": cores if cores == "auto" else int(cores)}}


def _numa(given: Variables) -> Spec:
    return {"numa": {"limits": [dict(limit, cpus=int(limit["cpus"])) for limit in given["tune_cpu_limits"]]}}


def _queue(given: Variables) -> Spec:
    """Return the scheduler first: switching it resets others."""
    names = sorted(given["tune_queue"], key=lambda name: name != "scheduler")
    return {"sysfs": [file(name, QUEUE + name, given["tune_queue"][name]) for name in names]}


def _power(given: Variables) -> Spec:
    files = []
    if given["tune_aspm_policy"]:
        files.append(file("aspm_policy", "/sys/module/pcie_aspm/parameters/policy", given["tune_aspm_policy"]))
    if given["tune_aspm_policy"] == "performance":
        files += [file(name, FUNCTION + "link/" + name, 0) for name in LINK_STATES]
    if given["tune_runtime_power"]:
        files.append(file("runtime_power", FUNCTION + "power/control", given["tune_runtime_power"]))
    return {"sysfs": files}


def _vm(given: Variables) -> Spec:
    return {"sysfs": [file("vm." + name, VM + name, value) for name, value in given["tune_vm"].items()]}


def _services(given: Variables) -> Spec:
    return {"services_stopped": list(given["tune_services_stopped"])}


def _updates(given: Variables) -> Spec:
    return {"services_stopped": list(given["tune_updates_stopped"])}


def _write_cache(given: Variables) -> Spec:
    return {"write_cache": {"state": given["tune_write_cache"], "plp_models": list(given["tune_plp_models"])}}


# In the order in which their settings are made; the name is also the tag, and part of the switch tune_<name>_enabled.
CONCERNS: dict[str, t.Callable[[Variables], Spec]] = {
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
SWITCHES = tuple(f"tune_{name}_enabled" for name in CONCERNS)
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


def build(variables: Variables, concerns: t.Collection[str], keep: bool = False) -> Spec:
    """Return the plan's `tune` for these concerns. `keep`: leave the settings until restore.yml; nothing can be held
    open then.
    """
    spec: Spec = {
        "keep": keep,
        "cpu_dma_latency_us": None,
        "services_stopped": [],
        "sysfs": [],
        "idle_states_above_us": None,
        "interrupts": None,
        "numa": None,
        "write_cache": None,
    }
    given = dict(variables, keep=keep)
    for name, part in CONCERNS.items():
        if name in concerns:
            for key, value in part(given).items():
                spec[key] = spec[key] + value if isinstance(value, list) else value
    return spec
