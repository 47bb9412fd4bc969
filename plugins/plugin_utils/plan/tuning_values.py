# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the variables of the role `tune` may be, and their plain form; and what a host's snapshot says against them.
Pure.
"""

from __future__ import annotations

import re
import typing as t

from ...module_utils.drive.entry import Entry
from ...module_utils.machine import cpus
from ...module_utils.machine.snapshot import VM as VM_NAMES
from ...module_utils.records.host_snapshot import Snapshot
from ...module_utils.tuning.boot import ARGUMENT
from ..common import argument_specs, bmc_values, values
from ..common.argument_specs import Rule, Variables, shown
from ..common.schema import plain, suggestion
from ..common.values import drives_at_once, is_unset, switch, whole, word
from . import tuning

ATTRIBUTE = re.compile(r"[a-z_]+")
VALUE = re.compile(r"[!-~]{1,64}")
WORD = re.compile(r"[a-z0-9_-]*")
UNIT = re.compile(r"[A-Za-z0-9][A-Za-z0-9:_.\\@-]*")
# Of each pair the kernel takes one, and zeroes the other (Documentation/admin-guide/sysctl/vm.rst).
VM_PAIRS = (("dirty_ratio", "dirty_bytes"), ("dirty_background_ratio", "dirty_background_bytes"))
LEAST_REBOOT_S = 900
# /dev/cpu_dma_latency takes a signed word of 32 bits.
MOST_LATENCY_US = 2**31 - 1


def normal(variables: Variables) -> dict[str, t.Any]:
    """Return the variables in the form that tuning.py takes; `problems` has found nothing wrong with them."""
    found = dict(variables)
    found.update(argument_specs.in_type("tune", {name: plain(found[name]) for name in tuning.VARIABLES}))
    latency = found["tune_cpu_dma_latency_us"]
    return {**found, "tune_cpu_dma_latency_us": None if is_unset(latency) else whole(latency)}


def _are(texts: t.Sequence[str], pattern: t.Pattern[str]) -> bool:
    return all(pattern.fullmatch(text) for text in texts)


def _is_latency(value: t.Any) -> bool:
    us = whole(value)
    return us is not None and us <= MOST_LATENCY_US


UNITS = Rule("a list of names of systemd units, such as irqbalance or apt-daily.timer", lambda units: _are(units, UNIT))
GOVERNING = Rule("a word of a-z, 0-9, _ and -, or '' to leave it", lambda text: WORD.fullmatch(text) is not None)
# Beyond type and choices, which the role's spec has.
RULES = {
    "tune_governor": GOVERNING,
    "tune_energy_performance_preference": GOVERNING,
    "tune_cpu_dma_latency_us": Rule(
        f"a whole number of microseconds up to {MOST_LATENCY_US}, or null to leave it",
        lambda value: is_unset(value) or _is_latency(value),
    ),
    "tune_idle_states_above_us": Rule("a whole number of microseconds, or null to leave them", lambda us: us >= 0),
    "tune_services_stopped": UNITS,
    "tune_updates_stopped": UNITS,
    "tune_interrupt_cores": Rule(
        "auto, or a whole number of cores", lambda value: value == values.AUTO or whole(value) is not None
    ),
    "tune_cpu_limits": Rule(
        "a list of mappings with cpus (at least 1) and model or driver (shell patterns)",
        lambda limits: all(limit["cpus"] >= 1 for limit in limits),
    ),
    "tune_plp_models": Rule("a list of shell patterns for models"),
    "tune_boot_arguments": Rule(
        "a list of kernel arguments, each without spaces and quotes, such as idle=poll",
        lambda arguments: _are(arguments, ARGUMENT),
    ),
    "tune_reboot_timeout_s": Rule(
        f"a whole number of at least {LEAST_REBOOT_S}: servers take long to boot",
        lambda seconds: seconds >= LEAST_REBOOT_S,
    ),
    "tune_queue": Rule("a mapping of attributes below /sys/block/<name>/queue to their values"),
    "tune_vm": Rule("a mapping of names below /proc/sys/vm to their values"),
    "tune_bios_read_back_s": Rule("a whole number of seconds, at least 0", lambda seconds: seconds >= 0),
}
BY_BMC = {"tune_bios": bmc_values.bios_problem, "tune_fans_ipmi": bmc_values.fans_problem}


def problems(asked: Variables) -> list[str]:
    """Return what is wrong with the variables of tuning, as "variable: message"."""
    given = {name: plain(asked[name]) for name in asked if name.startswith("tune_")}
    found = argument_specs.problems("tune", given, RULES)
    names = ("tune_governor", "tune_energy_performance_preference")
    governor, preference = (
        word(given[name] if given.get(name) is not None else argument_specs.default(name)) for name in names
    )
    if governor == "performance" and preference not in ("", "performance", "0"):
        advice = "leave it at performance, or take the governor powersave"
        found.append(
            f"tune_energy_performance_preference: {shown(preference)} cannot be used with the governor performance; "
            f"{advice}"
        )
    of_bmc = {name: check(given[name]) for name, check in BY_BMC.items() if given.get(name)}
    found += [f"{name}: {why}" for name, why in of_bmc.items() if why]
    return found + _queue_problems(given.get("tune_queue")) + _vm_problems(given.get("tune_vm"))


def _queue_problems(given: t.Any) -> list[str]:
    if not isinstance(given, dict):
        return []
    found = []
    for key, value in given.items():
        if not isinstance(key, str) or not ATTRIBUTE.fullmatch(key):
            found.append(
                f"tune_queue: {shown(key)} is not the name of an attribute below /sys/block/<name>/queue: only a-z "
                "and _"
            )
        elif isinstance(value, bool) or not isinstance(value, (str, int)) or not VALUE.fullmatch(str(value)):
            found.append(
                f"tune_queue.{key}: {shown(value)} must be a word or a whole number (quote a word that YAML reads as "
                "something else)"
            )
    return found


def _vm_problems(given: t.Any) -> list[str]:
    if not isinstance(given, dict):
        return []
    found = [
        f"tune_vm: {shown(name)} is not one of: {', '.join(VM_NAMES)}{suggestion(name, VM_NAMES)}"
        for name in given
        if name not in VM_NAMES
    ]
    found += [
        f"tune_vm.{name}: {shown(value)} must be a whole number"
        for name, value in given.items()
        if name in VM_NAMES and whole(value) is None
    ]
    both = [pair for pair in VM_PAIRS if all(name in given for name in pair)]
    return found + [f"tune_vm: {' and '.join(pair)} exclude each other; give one" for pair in both]


def host_problems(asked: Variables, snapshot: Snapshot | None, entries: t.Sequence[Entry]) -> list[tuple[str, str]]:
    """Return what a host cannot do of what is asked of it: [(drive or "", message)]. snapshot: host_checks'; entries:
    of its ssd_drives.
    """
    if not snapshot:
        return []
    entries = [entry for entry in entries if entry.problem is None]
    return (
        [("", text) for text in _governor_problem(asked, snapshot)]
        + [found for entry in entries for found in _place_problems(entry, snapshot)]
        + _overlaps(asked, entries)
    )


def _governor_problem(asked: Variables, snapshot: Snapshot) -> list[str]:
    governor, known = plain(asked.get("tune_governor")), snapshot.tunables.governors or []
    enabled = switch(asked.get("tune_cpu_enabled", argument_specs.default("tune_cpu_enabled")))
    if not governor or not known or governor in known or not enabled:
        return []
    return [
        (
            f"tune_governor: this host has no governor {shown(governor)} (it has: "
            f"{', '.join(known)}){suggestion(str(governor), known)}"
        )
    ]


def _place_problems(entry: Entry, snapshot: Snapshot) -> list[tuple[str, str]]:
    given, found = entry.options, []
    online, nodes = snapshot.cpu.online or "", snapshot.numa.nodes or {}
    try:
        absent = cpus.missing(cpus.parse(given.cpus or ""), cpus.parse(online)) if online else ""
    except ValueError as error:
        return [(entry.label, f"cpus: {error}")]
    if absent:
        found.append((entry.label, f"cpus: CPU {absent} does not exist or is offline; this host has the CPUs {online}"))
    if given.numa_node is not None and nodes and str(given.numa_node) not in nodes:
        found.append(
            (
                entry.label,
                f"numa_node: there is no node {given.numa_node}; this host has {', '.join(sorted(nodes))}",
            )
        )
    return found


def _overlaps(asked: Variables, entries: t.Sequence[Entry]) -> list[tuple[str, str]]:
    """CPUs given by hand to two drives that may run at the same time; with auto they do not (shared_limits.py)."""
    number = asked.get("ssd_parallel_drives")
    if number == values.AUTO or drives_at_once(number, len(entries)) < 2:
        return []
    found: list[tuple[str, str]] = []
    seen: dict[int, str] = {}
    for entry in entries:
        try:
            own = cpus.parse(entry.options.cpus or "")
        except ValueError:
            continue
        shared = sorted({(seen[cpu], cpu) for cpu in own if cpu in seen})
        if shared:
            listed, other = cpus.format_cpu_list(cpu for _other, cpu in shared), shared[0][0]
            message = (
                f"cpus: CPU {listed} is also given to drive {other}, and both may run at the same time "
                "(ssd_parallel_drives)"
            )
            found.append((entry.label, message))
        seen.update({cpu: entry.label for cpu in own})
    return found
