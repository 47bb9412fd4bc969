# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CPUs of a host: lists as the kernel writes them (`0-3,8`), which core and which NUMA node each belongs to."""

from __future__ import annotations

import os
import re
import struct
import typing as t

from ..core.host import Host
from ..core.sysfs import number

CPU_DIR = "/sys/devices/system/cpu"
ONLINE = CPU_DIR + "/online"
# Whoever holds it open limits how long a CPU may take to wake up, and so how deep it sleeps.
CPU_DMA_LATENCY = "/dev/cpu_dma_latency"
NODE_DIR = "/sys/devices/system/node"
# The kernel's counters of the fast cores (Alder Lake and later); without kinds there is no such folder.
INTEL_FAST = "/sys/devices/cpu_core/cpus"
# Cores of one kind differ by less.
SLOW_SHARE = 0.8
# More than any kernel is built for (CONFIG_NR_CPUS goes to 8192), so that a slip of the pen doesn't fill the memory.
HIGHEST_CPU = 65535
_PART = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?")


def wake_up_limit_us(host: Host) -> int | None:
    """Return the limit in force on how long a CPU may take to wake up, in µs; None where the kernel has none to ask
    for.
    """
    try:
        return int(struct.unpack("=i", host.read_bytes(CPU_DMA_LATENCY)[:4])[0])
    except (OSError, struct.error):
        return None


class Place(t.NamedTuple):
    """Where fio runs. cpus: a list as the kernel writes it, node: where its memory is; None: not bound. note: what to
    know of it.
    """

    cpus: str | None
    node: int | None
    interrupt_cpus: str | None
    note: str


NOWHERE = Place(None, None, None, "")


class Topology(t.NamedTuple):
    """The CPUs that are on, each with its core `(package, first CPU of the core)` and its NUMA node; None: the kernel
    does not say. slow: those of a processor with cores of several kinds that are not of its fastest one. distances: how
    far each node is from each, those without CPUs too: {node: {node: distance}}.
    """

    core_of: dict[int, tuple[int, int]]
    node_of: dict[int, int | None]
    slow: frozenset[int] = frozenset()
    distances: t.Mapping[int, t.Mapping[int, int]] = {}

    @property
    def online(self) -> list[int]:
        """All CPUs that are on, in order."""
        return sorted(self.core_of)

    @property
    def nodes(self) -> list[int]:
        """The NUMA nodes that have a CPU, in order."""
        return sorted({node for node in self.node_of.values() if node is not None})

    def nearest(self, node: int) -> int | None:
        """Return the node with CPUs that is nearest to a node, such as one of memory alone; None where several are, or
        nobody knows.
        """
        known = self.distances.get(node, {})
        far = sorted((known[other], other) for other in self.nodes if other in known)
        return far[0][1] if len(far[:2]) == 1 or (far and far[0][0] < far[1][0]) else None

    def of_node(self, node: int) -> list[int]:
        """Return the CPUs of a node, in order."""
        return [cpu for cpu in self.online if self.node_of[cpu] == node]

    def cores(self, cpus: t.Collection[int]) -> list[list[int]]:
        """Return the CPUs by physical core, in order of each core's first CPU; threads of one core stay together."""
        found: dict[tuple[int, int], list[int]] = {}
        for cpu in sorted(cpus):
            found.setdefault(self.core_of[cpu], []).append(cpu)
        return sorted(found.values())


def parse(text: str) -> list[int]:
    """Return the CPUs of a list such as `0-3,8`, in order, each once; an empty text is an empty list. Raises
    ValueError.
    """
    found: set[int] = set()
    for part in text.strip().split(",") if text.strip() else []:
        match = _PART.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"{text!r} is not a list of CPUs as the kernel writes it, such as 0-3,8")
        first, last = int(match.group(1)), int(match.group(2) or match.group(1))
        if last < first:
            raise ValueError(f"{text!r}: the range {part.strip()} runs backwards")
        if last > HIGHEST_CPU:
            raise ValueError(f"{text!r}: there is no CPU {last}")
        found.update(range(first, last + 1))
    return sorted(found)


def without(text: str | None) -> list[int]:
    """Return the CPUs that this process may use beside those of a list; beside none where it is no list."""
    allowed = os.sched_getaffinity(0)
    try:
        return sorted(allowed.difference(parse(text or "")))
    except ValueError:
        return sorted(allowed)


def format_cpu_list(cpus: t.Iterable[int]) -> str:
    """CPUs as the kernel writes them: `0-3,8`."""
    ranges: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if ranges and ranges[-1][1] == cpu - 1:
            ranges[-1][1] = cpu
        else:
            ranges.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def canonical(given: str) -> str:
    """Return a CPU list in the kernel's own spelling. Raises ValueError."""
    return format_cpu_list(parse(given))


def missing(cpus: t.Iterable[int], online: t.Collection[int]) -> str:
    """Return those CPUs that are not on, as a list; empty when all are."""
    return format_cpu_list(cpu for cpu in cpus if cpu not in online)


def read_list(host: Host, path: str) -> list[int]:
    """Return a CPU list in a file; empty where there is none."""
    try:
        return parse(host.get(path) or "")
    except ValueError:
        return []


def online(host: Host) -> list[int]:
    """Return the CPUs that are on, in order."""
    return read_list(host, ONLINE)


def in_cpuset(host: Host) -> list[int]:
    """Return the CPUs that the cpuset of this process has (cgroups(7), cgroup v2 and v1); empty where there is none."""
    for line in (host.get("/proc/self/cgroup") or "").splitlines():
        _number, controllers, path = line.split(":", 2)
        if controllers and "cpuset" not in controllers.split(","):
            continue
        base, name = (
            ("/sys/fs/cgroup/cpuset", "cpuset.effective_cpus")
            if controllers
            else ("/sys/fs/cgroup", "cpuset.cpus.effective")
        )
        # A group without the controller has what the nearest one above it has; a container may see none of its own
        # path.
        while path != "/" and not host.exists(f"{base}{path}/{name}"):
            path = os.path.dirname(path)
        found = read_list(host, "{0}{1}/{2}".format(base, path.rstrip("/"), name))
        if found:
            return found
    return []


def usable(host: Host) -> Topology:
    """`topology` of the CPUs that fio may be bound to: the kernel refuses one that the cpuset of this process does not
    have.
    """
    seen, allowed = topology(host), set(in_cpuset(host))
    if not allowed.intersection(seen.core_of):
        return seen
    return Topology(
        core_of={cpu: core for cpu, core in seen.core_of.items() if cpu in allowed},
        node_of={cpu: node for cpu, node in seen.node_of.items() if cpu in allowed},
        slow=seen.slow & allowed,
        distances=seen.distances,
    )


def count(host: Host, place: Place) -> int:
    """Return how many CPUs fio may use there: those of the place, else all that it may be bound to."""
    return len(parse(place.cpus) if place.cpus else usable(host).core_of)


def topology(host: Host) -> Topology:
    """Return what sysfs says of the CPUs that are on. A CPU whose core it does not tell counts as a core of its own.

    The list of siblings tells the core: a core_id may be there twice in a package, on each of its dies
    (Documentation/admin-guide/cputopology.rst).
    """
    numbers = node_numbers(host)
    nodes = {cpu: node for node in numbers for cpu in read_list(host, f"{NODE_DIR}/node{node}/cpulist")}
    cores, node_of = {}, {}
    for cpu in online(host):
        base = f"{CPU_DIR}/cpu{cpu}/topology/"
        package, siblings = number(host, base + "physical_package_id"), read_list(host, base + "thread_siblings_list")
        cores[cpu] = (package or 0, min([cpu, *siblings]))
        node_of[cpu] = nodes.get(cpu)
    return Topology(cores, node_of, _slow(host, cores), {node: _distances(host, node, numbers) for node in numbers})


def _distances(host: Host, node: int, numbers: t.Sequence[int]) -> dict[int, int]:
    """Return how far each node is from this one (sysfs-devices-node): a number for each, in order."""
    told = (host.get(f"{NODE_DIR}/node{node}/distance") or "").split()
    return dict(zip(numbers, map(int, told))) if len(told) == len(numbers) and all(map(str.isdigit, told)) else {}


def _slow(host: Host, cpus: t.Collection[int]) -> frozenset[int]:
    """Return the slow CPUs of a hybrid processor: by its kinds of cores (Intel), else by their capacity (ARM). Not by
    their highest frequency, in which alike cores differ.
    """
    fast = set(read_list(host, INTEL_FAST))
    if fast:
        return frozenset(cpu for cpu in cpus if cpu not in fast)
    capacity = {cpu: number(host, f"{CPU_DIR}/cpu{cpu}/cpu_capacity") for cpu in cpus}
    least = SLOW_SHARE * max((told for told in capacity.values() if told), default=0)
    return frozenset(cpu for cpu, told in capacity.items() if told and told < least)


def node_numbers(host: Host) -> list[int]:
    """Return the host's NUMA nodes, in order."""
    names = [re.fullmatch(r"node([0-9]+)", name) for name in host.listdir(NODE_DIR)]
    return sorted(int(match.group(1)) for match in names if match)
