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
from ...module_utils.tuning.boot import ARGUMENT
from ..common.schema import plain, role_choices, role_default, suggestion
from ..common.values import drives_at_once, whole
from . import tuning

ATTRIBUTE = re.compile(r"[a-z_]+")
VALUE = re.compile(r"[!-~]{1,64}")
WORD = re.compile(r"[a-z0-9_-]*")
UNIT = re.compile(r"[A-Za-z0-9][A-Za-z0-9:_.\\@-]*")
# Of each pair the kernel takes one, and zeroes the other (Documentation/admin-guide/sysctl/vm.rst).
VM_PAIRS = (("dirty_ratio", "dirty_bytes"), ("dirty_background_ratio", "dirty_background_bytes"))
CHOICES = role_choices("tune")
WORDS = (*CHOICES, "tune_governor", "tune_energy_performance_preference")
TRUE, FALSE = ("true", "yes", "on", "1", "y", "t"), ("false", "no", "off", "0", "n", "f", "")
LEAST_REBOOT_S = 900
LONGEST_SHOWN = 200
# /dev/cpu_dma_latency takes a signed word of 32 bits.
MOST_LATENCY_US = 2**31 - 1


def switch(value: t.Any) -> bool | None:
    """A switch, also from a text as AWX and -e give it; None: it is none."""
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower() if isinstance(value, (str, int)) else "?"
    return True if text in TRUE else False if text in FALSE else None


def word(value: t.Any) -> t.Any:
    """YAML reads a bare on and off as true and false."""
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else "" if value is None else value


def _is_unset(value: t.Any) -> bool:
    return value is None or (isinstance(value, str) and value.strip().lower() in ("", "null", "none"))


def normal(variables: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """The variables in the form that tuning.py takes; `problems` has found nothing wrong with them."""
    found = dict(variables)
    for name in WORDS:
        found[name] = str(word(found[name]))
    for name in ("tune_cpu_dma_latency_us", "tune_idle_states_above_us"):
        found[name] = None if _is_unset(found[name]) else whole(found[name])
    for name in tuning.SWITCHES:
        found[name] = bool(switch(found[name]))
    for name in ("tune_queue", "tune_vm"):
        # YAML reads a key without a value as null.
        found[name] = found[name] or {}
    return found


def shown(value: t.Any) -> str:
    """A value as a message shows it; a huge one only begins there."""
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "…"


def _one_of(words: t.Collection[str]) -> tuple[t.Callable[[t.Any], bool], str]:
    shown = ", ".join(repr(each) if not each else each for each in words)
    return lambda value: word(value) in words, f"one of: {shown}"


def _word() -> tuple[t.Callable[[t.Any], bool], str]:
    return (
        lambda value: isinstance(word(value), (str, int)) and WORD.fullmatch(str(word(value))) is not None,
        "a word of a-z, 0-9, _ and -, or '' to leave it",
    )


def _units() -> tuple[t.Callable[[t.Any], bool], str]:
    return lambda value: _texts(value, UNIT), "a list of names of systemd units, such as irqbalance or apt-daily.timer"


def _texts(value: t.Any, pattern: t.Pattern[str]) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) and pattern.fullmatch(item) for item in value)


def _is_latency(value: t.Any) -> bool:
    us = whole(value)
    return us is not None and us <= MOST_LATENCY_US


def _limit(value: t.Any) -> bool:
    """Whether this is one entry of tune_cpu_limits."""
    keys = set(value) - {"cpus"} if isinstance(value, dict) else set()
    return (
        bool(keys)
        and keys <= {"model", "driver"}
        and all(isinstance(value[key], str) for key in keys)
        and bool(whole(value.get("cpus")))
    )


# {variable: (whether a value is right, what it has to be)}
RULES: dict[str, tuple[t.Callable[[t.Any], bool], str]] = {
    **{name: _one_of(words) for name, words in CHOICES.items()},
    "tune_governor": _word(),
    "tune_energy_performance_preference": _word(),
    "tune_cpu_dma_latency_us": (
        lambda value: _is_unset(value) or _is_latency(value),
        f"a whole number of microseconds up to {MOST_LATENCY_US}, or null to leave it",
    ),
    "tune_idle_states_above_us": (
        lambda value: _is_unset(value) or whole(value) is not None,
        "a whole number of microseconds, or null to leave them",
    ),
    "tune_services_stopped": _units(),
    "tune_updates_stopped": _units(),
    "tune_interrupt_cores": (
        lambda value: value == "auto" or whole(value) is not None,
        "auto, or a whole number of cores",
    ),
    "tune_cpu_limits": (
        lambda value: isinstance(value, list) and all(_limit(item) for item in value),
        "a list of mappings with cpus (at least 1) and model or driver (shell patterns)",
    ),
    "tune_plp_models": (
        lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
        "a list of shell patterns for models",
    ),
    "tune_boot_arguments": (
        lambda value: _texts(value, ARGUMENT),
        "a list of kernel arguments, each without spaces and quotes, such as idle=poll",
    ),
    "tune_reboot_timeout_s": (
        lambda value: (whole(value) or 0) >= LEAST_REBOOT_S,
        f"a whole number of at least {LEAST_REBOOT_S}: servers take long to boot",
    ),
}
RULES.update(
    {
        name: (lambda value: switch(value) is not None, "true or false")
        for name in (*tuning.SWITCHES, "tune_boot_enabled")
    }
)


def problems(asked: t.Mapping[str, t.Any]) -> list[str]:
    """What is wrong with the variables of tuning, as "variable: message"."""
    given = {name: plain(asked[name]) for name in asked if name.startswith("tune_")}
    found = [
        f"{name}: {shown(given[name])} must be {RULES[name][1]}"
        for name in RULES
        if name in given and not RULES[name][0](given[name])
    ]
    names = ("tune_governor", "tune_energy_performance_preference")
    governor, preference = (word(given[name] if given.get(name) is not None else role_default(name)) for name in names)
    if governor == "performance" and preference not in ("", "performance", "0"):
        advice = "leave it at performance, or take the governor powersave"
        found.append(
            f"tune_energy_performance_preference: {shown(preference)} cannot be used with the governor performance; "
            f"{advice}"
        )
    return found + _queue_problems(given.get("tune_queue")) + _vm_problems(given.get("tune_vm"))


def _queue_problems(given: t.Any) -> list[str]:
    if given is None:
        return []
    if not isinstance(given, dict):
        return [
            f"tune_queue: {shown(given)} is not a mapping of attributes below /sys/block/<name>/queue to their values"
        ]
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
    if given is None:
        return []
    if not isinstance(given, dict):
        return [f"tune_vm: {shown(given)} is not a mapping of names below /proc/sys/vm to their values"]
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


def host_problems(
    asked: t.Mapping[str, t.Any], snapshot: t.Mapping[str, t.Any] | None, entries: t.Sequence[Entry]
) -> list[tuple[str, str]]:
    """What a host cannot do of what is asked of it: [(drive or "", message)]. snapshot: host_checks'; entries: of
    its ssd_drives.
    """
    if not snapshot:
        return []
    entries = [entry for entry in entries if entry.problem is None]
    return (
        [("", text) for text in _governor_problem(asked, snapshot)]
        + [found for entry in entries for found in _place_problems(entry, snapshot)]
        + _overlaps(asked, entries)
    )


def _governor_problem(asked: t.Mapping[str, t.Any], snapshot: t.Mapping[str, t.Any]) -> list[str]:
    governor, known = plain(asked.get("tune_governor")), snapshot["tunables"].get("governors") or []
    if not governor or not known or governor in known or not switch(asked.get("tune_cpu_enabled", True)):
        return []
    return [
        (
            f"tune_governor: this host has no governor {shown(governor)} (it has: "
            f"{', '.join(known)}){suggestion(str(governor), known)}"
        )
    ]


def _place_problems(entry: Entry, snapshot: t.Mapping[str, t.Any]) -> list[tuple[str, str]]:
    given, found = entry.options, []
    online, nodes = snapshot["cpu"].get("online") or "", snapshot["numa"].get("nodes") or {}
    try:
        absent = cpus.missing(cpus.parse(given["cpus"] or ""), cpus.parse(online)) if online else ""
    except ValueError as error:
        return [(entry.label, f"cpus: {error}")]
    if absent:
        found.append((entry.label, f"cpus: CPU {absent} does not exist or is offline; this host has the CPUs {online}"))
    if given["numa_node"] is not None and nodes and str(given["numa_node"]) not in nodes:
        found.append(
            (
                entry.label,
                f"numa_node: there is no node {given['numa_node']}; this host has {', '.join(sorted(nodes))}",
            )
        )
    return found


def _overlaps(asked: t.Mapping[str, t.Any], entries: t.Sequence[Entry]) -> list[tuple[str, str]]:
    """CPUs given by hand to two drives that may run at the same time."""
    if drives_at_once(asked.get("ssd_parallel_drives", 1), len(entries)) < 2:
        return []
    found: list[tuple[str, str]] = []
    seen: dict[int, str] = {}
    for entry in entries:
        try:
            own = cpus.parse(entry.options["cpus"] or "")
        except ValueError:
            continue
        shared = sorted({(seen[cpu], cpu) for cpu in own if cpu in seen})
        if shared:
            listed, other = cpus.text(cpu for _other, cpu in shared), shared[0][0]
            message = (
                f"cpus: CPU {listed} is also given to drive {other}, and both may run at the same time "
                "(ssd_parallel_drives)"
            )
            found.append((entry.label, message))
        seen.update({cpu: entry.label for cpu in own})
    return found
