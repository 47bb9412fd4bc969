# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of the machine as a whole. Pure.

Sources: Micron TN-FD-15, table 1; ioMemory VSL Peak Performance Guide, "General Performance Optimization Settings" and
  "System
Configuration"; Micron's brief on best practices (the same versions on every host).
"""

from __future__ import annotations

from ..machine.cpus import parse as parse_cpu_list
from .base import BLOCKS, WARNING, Check, CheckedDrive, HostFacts, Unknown, matches, rule_text

MIB = 1 << 20
# Each reading goes to a device, by a system call; those that a virtual machine has instead of tsc don't.
SLOW_CLOCKS = ("hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit")


def tool_versions(facts: HostFacts) -> list[str]:
    """Find fio, nvme-cli, another tool or a kernel that `preflight_versions` does not allow.

    Reads: the tools. Source: guide, "Software".
    """
    found: list[str] = []
    for name, wanted in facts.required.versions.items():
        actual = facts.machine.kernel if name == "kernel" else facts.machine.tools.get(name)
        if not actual:
            found.append(Unknown(f"the version of {name} is unknown; preflight_versions requires {rule_text(wanted)}"))
        elif not matches(wanted, actual):
            found.append(f"{name} has version {actual}; preflight_versions requires {rule_text(wanted)}")
    return found


def free_memory(facts: HostFacts) -> list[str]:
    """Find less free memory than `preflight_min_free_memory_mib` (1024), so that the run would swap or be killed.

    Reads: `/proc/meminfo`.
    """
    free, least = facts.machine.available_bytes, facts.required.min_free_memory_mib
    if free is None:
        return [Unknown("the amount of free memory is unknown")]
    text = "{0} MiB of memory are free; preflight_min_free_memory_mib is {1}"
    return [text.format(free // MIB, least)] if free < least * MIB else []


def cpu_count(facts: HostFacts) -> list[str]:
    """Find fewer CPUs than `preflight_min_cpus` (2), too few to keep I/O and interrupts apart.

    Reads: `/sys/devices/system/cpu`. Source: TN-FD-15, table 1.
    """
    count, least = facts.machine.cpus, facts.required.min_cpus
    if count is None:
        return [Unknown("the number of CPUs is unknown")]
    return [f"it has {count} CPUs; preflight_min_cpus is {least}"] if count < least else []


def architecture(facts: HostFacts) -> list[str]:
    """Find a processor or kernel of less than 64 bit.

    Reads: `uname`. Source: TN-FD-15.
    """
    machine = facts.machine.architecture
    if machine is None:
        return [Unknown("the processor's architecture is unknown")]
    return [] if "64" in machine or machine == "s390x" else [f"its kernel's architecture, {machine}, is not 64-bit"]


def cpufreq(facts: HostFacts) -> list[str]:
    """Find a host without a cpufreq driver, whose firmware controls the frequency.

    Reads: `scaling_driver`. Source: guide, "Disable CPU Frequency Scaling".
    """
    missing = "no cpufreq driver: governor, frequency and turbo can neither be set nor read, the firmware controls them"
    return [] if facts.machine.cpufreq_driver else [missing]


def clock_source(facts: HostFacts) -> list[str]:
    """Find a clock that is slow to read, as the kernel takes once it trusts the processor's no more: fio reads the time
    twice for each I/O.

    Reads: `current_clocksource`.
    """
    clock = facts.machine.clock_source
    slow = "its clock source is {0}, not tsc: reading the time may cost a fast drive a quarter of its IOPS and more"
    return [slow.format(clock)] if clock in SLOW_CLOCKS else []


def virtual_machine(facts: HostFacts) -> list[str]:
    """Find a host that is a virtual machine: it shares processor, link and interrupts with others.

    Reads: `systemd-detect-virt`, CPU flags, DMI.
    """
    kind = facts.machine.hypervisor
    return [f"it is a virtual machine ({kind}): other load on its host affects the figures"] if kind else []


def container(facts: HostFacts) -> list[str]:
    """Find a host that is a container: parts of /sys and /proc are another machine's, or can't be written.

    Reads: `systemd-detect-virt`, marker files.
    """
    kind = facts.machine.container
    return [f"it is a container ({kind}): tuning and checks reach only what the container can see"] if kind else []


def numa_node(facts: HostFacts, drive: CheckedDrive) -> list[str]:
    """Find a drive whose node is unknown, on a host of several NUMA nodes.

    Reads: `numa_node`. Source: guide, "Setting NUMA Affinity".
    """
    nodes = facts.machine.nodes
    if drive.identity.numa_node is not None or drive.options.numa_node is not None or drive.options.cpus:
        return []
    if nodes is None:
        return [Unknown("its NUMA node and the number of nodes are unknown")]
    text = "its NUMA node is unknown (-1) on a machine of {0} nodes, so fio may run on CPUs and memory far from it"
    return [text.format(nodes)] if nodes > 1 else []


def numa_contradiction(facts: HostFacts, drive: CheckedDrive) -> list[str]:
    """Find a drive whose node is contradicted by its root port's, or by the CPUs that the firmware's tables put beside
    it.

    Reads: `numa_node` of the drive and its root port, `local_cpulist`, the node's `cpulist`. Source: guide, "Setting
    NUMA Affinity".
    """
    node, own = drive.endpoint.numa_node, facts.machine.node_cpus
    if node is None or node < 0 or len(own) < 2 or drive.options.numa_node is not None or drive.options.cpus:
        return []
    port, beside = drive.path[-1].numa_node, drive.endpoint.local_cpus
    found = []
    if port is not None and port >= 0 and port != node:
        found.append(f"its node is {node}, but that of its root port {drive.path[-1].address} is {port}")
    # Some CPUs of a node may be offline, and a node within a socket (sub-NUMA clustering) has a part of its CPUs.
    if beside and node in own and not set(parse_cpu_list(beside)) & set(parse_cpu_list(own[node])):
        found.append(f"its node is {node} (CPUs {own[node]}), but the firmware puts the CPUs {beside} beside it")
    return [f"{each}: one of the two is wrong, and fio may run far from the drive" for each in found]


CHECKS: tuple[Check, ...] = (
    Check("versions", BLOCKS, "install the wanted version, or change preflight_versions", look_host=tool_versions),
    Check("free_memory", WARNING, "stop what uses the memory, or add more", look_host=free_memory),
    Check(
        "cpu_count", WARNING, "use a machine with more CPUs: fio and the interrupts need one each", look_host=cpu_count
    ),
    Check("architecture", WARNING, "use a 64-bit system", look_host=architecture),
    Check(
        "cpufreq",
        WARNING,
        "set the performance profile in the BIOS, or let the operating system control it (OS DBPM, _PSS)",
        look_host=cpufreq,
    ),
    Check(
        "clock_source",
        WARNING,
        "the kernel's log says why it left tsc (journalctl -k --grep=tsc): update the firmware, or set tsc again in "
        "/sys/devices/system/clocksource/clocksource0/current_clocksource where it is offered",
        look_host=clock_source,
    ),
    Check(
        "virtual_machine",
        WARNING,
        "measure on bare metal, or compare only with the same guest; where its hypervisor holds I/Os up, set "
        "ssd_health_criteria to none, or to a list without longest_io_s and controller_resets",
        look_host=virtual_machine,
    ),
    Check("container", WARNING, "measure on bare metal", look_host=container),
    Check(
        "numa_unknown",
        WARNING,
        "set numa_node: N (or cpus:) in the drive's entry of ssd_drives; the board's manual lists the slot's node",
        numa_node,
    ),
    Check(
        "numa_contradiction",
        WARNING,
        "set numa_node: N (or cpus:) in the drive's entry of ssd_drives by the board's manual, and update its BIOS",
        numa_contradiction,
    ),
)
