# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which CPUs and which memory node fio gets for a drive, and which CPUs are kept for the drives' interrupts. Pure.

fio runs on the drive's own NUMA node; interrupts go to other cores of that node where there are enough (Micron
TN-FD-15, System Settings; ioMemory guide, Set the Interrupt Handler Affinity). Drives that run at the same time never
share a CPU while there are enough.
"""

from __future__ import annotations

import threading
import typing as t

from ..machine import cpus as lists
from ..machine.cpus import Place, Topology

# From so many cores of a node on, one of eight is kept for interrupts, unless the inventory says how many.
FEWEST_CORES, CORES_PER_INTERRUPT_CORE = 4, 8
# Of a processor with fast and slow cores, a drive that gets fast ones alone has at least so many of their CPUs.
FEWEST_FAST_CPUS = 4
AUTO = "auto"


class CpuRequest(t.NamedTuple):
    """What is known and asked of a drive. node: its NUMA node, None is unknown; cpus: assigned by hand; most: CPUs at
    most.
    """

    drive: str
    node: int | None = None
    cpus: str | None = None
    most: int | None = None


class CpuPlacement:
    """Places for the drives of a host job, `parallel` at a time; `interrupt_cores`: kept free on each node, a number or
    `auto`.
    """

    def __init__(
        self, topology: Topology, wants: t.Sequence[CpuRequest], parallel: int = 1, interrupt_cores: int | str = AUTO
    ) -> None:
        self._topology = topology
        self._lock = threading.Lock()
        self._wants = {want.drive: want for want in wants}
        self._nodes = {want.drive: self._node_of(want) for want in wants}
        self._by_hand = {cpu for want in wants for cpu in self._asked(want)}
        self._shares: dict[int | None, list[list[int]]] = {}
        nodes: t.Sequence[int | None] = topology.nodes or [None]
        for node in nodes:
            self._shares[node] = self._share_out(node, parallel, interrupt_cores)
        self._make_alike()
        self._taken: dict[str, dict[int | None, int]] = {}
        self._running: dict[str, list[int]] = {}

    def _asked(self, want: CpuRequest) -> list[int]:
        """Return the CPUs given by hand, as far as they are on."""
        return [cpu for cpu in lists.parse(want.cpus or "") if cpu in self._topology.core_of]

    def _node_of(self, want: CpuRequest) -> int | None:
        """Return the node; the only one of a host that has no other, whatever the drive says; the nearest one where
        the drive's own has no CPUs.
        """
        nodes = self._topology.nodes
        if want.node in nodes:
            return want.node
        if len(nodes) == 1:
            return nodes[0]
        return None if want.node is None else self._topology.nearest(want.node)

    def _cpus_of(self, node: int | None) -> list[int]:
        return self._topology.online if node is None else self._topology.of_node(node)

    def _share_out(self, node: int | None, parallel: int, interrupt_cores: int | str) -> list[list[int]]:
        """Equal parts of a node's cores: as many as drives may use it at the same time."""
        users = [
            want for want in self._wants.values() if not self._asked(want) and self._nodes[want.drive] in (node, None)
        ]
        count = max(1, min(parallel, len(users)))
        free = [cpu for cpu in self._cpus_of(node) if cpu not in self._by_hand] or self._cpus_of(node)
        cores = self._topology.cores(free)
        fast = self._topology.cores([cpu for cpu in free if cpu not in self._topology.slow])
        # Drives side by side get like cores, where these are enough; interrupts are left the slow ones.
        only_fast = len(fast) < len(cores) and count * FEWEST_FAST_CPUS <= sum(map(len, fast))
        reserved = 0 if only_fast else _reserved(len(cores), interrupt_cores, count)
        cores = fast if only_fast else cores
        shares = _split(cores[: len(cores) - reserved], count)
        limits = [want.most for want in users]
        most = max(t.cast("list[int]", limits)) if users and all(limits) else None
        return [self._trim(share, most) for share in shares]

    def _make_alike(self) -> None:
        """Drives side by side get like CPUs: where one node has more drives than another, all get as many cores as
        those there.
        """
        used = {node for drive, node in self._nodes.items() if not self._asked(self._wants[drive])}
        shares = [share for node in self._shares if None in used or node in used for share in self._shares[node]]
        fewest = min((len(self._topology.cores(share)) for share in shares), default=0)
        for node, of_node in self._shares.items():
            cores = [self._topology.cores(share)[:fewest] for share in of_node]
            self._shares[node] = [sorted(cpu for core in own for cpu in core) for own in cores] if fewest else of_node

    def _trim(self, share: list[int], most: int | None) -> list[int]:
        """At most so many CPUs: a thread of each core before the second thread of any."""
        if most is None or len(share) <= most:
            return share
        ranked = sorted((rank, cpu) for core in self._topology.cores(share) for rank, cpu in enumerate(core))
        return sorted(cpu for _rank, cpu in ranked[:most])

    def interrupt_cpus(self, drive: str) -> str:
        """Return the CPUs for a drive's interrupts: those of its node that no fio of ours gets, all of the node's where
        none is left.
        """
        node = self._nodes[drive]
        used = self._by_hand.union(*(share for shares in self._shares.values() for share in shares))
        own = self._cpus_of(node)
        return lists.format_cpu_list([cpu for cpu in own if cpu not in used] or own)

    def take(self, drive: str) -> Place:
        """Return a place for a drive that is about to run; it is the drive's until `release`."""
        want, node = self._wants[drive], self._nodes[drive]
        with self._lock:
            self._release(drive)
            share = self._running[drive] = self._asked(want) or self._trim(self._take_shares(drive, node), want.most)
            overlap = self._overlap_note(drive, share)
        notes = (self._node_note(want), _most_note(want, share), self._slow_note(share), overlap)
        note = "; ".join(text for text in notes if text)
        # With one node there is nothing to choose, and containers forbid the choosing.
        return Place(
            lists.format_cpu_list(share),
            node if len(self._topology.nodes) > 1 else None,
            self.interrupt_cpus(drive),
            note,
        )

    def _take_shares(self, drive: str, node: int | None) -> list[int]:
        """Return a share of the drive's node, and of every node where that is unknown."""
        chosen = {}
        for key in [node] if node is not None else list(self._shares):
            used = [taken[key] for taken in self._taken.values() if key in taken]
            free = [index for index in range(len(self._shares[key])) if index not in used]
            chosen[key] = (free or [0])[0]
        self._taken[drive] = chosen
        return sorted({cpu for key, index in chosen.items() for cpu in self._shares[key][index]})

    def release(self, drive: str) -> None:
        """The drive is done."""
        with self._lock:
            self._release(drive)

    def _release(self, drive: str) -> None:
        self._taken.pop(drive, None)
        self._running.pop(drive, None)

    def _node_note(self, want: CpuRequest) -> str:
        absent = lists.missing(lists.parse(want.cpus or ""), self._topology.online)
        if absent:
            return f"CPU {absent} of its `cpus` does not exist, is offline, or is outside the host job's cpuset"
        node, nodes = self._nodes[want.drive], self._topology.nodes
        if not nodes or (node is not None and want.node in (None, node)):
            return ""
        if node is not None:
            where = "far from it" if len(nodes) == 1 else f"on the nearest one with CPUs, node {node}"
            return f"no CPU of its NUMA node {want.node} may be used, so fio runs {where}"
        if want.node is None:
            said = "its NUMA node is unknown"
        elif want.node in self._topology.distances:
            said = f"no CPU of its NUMA node {want.node} may be used, and no other node is the nearest"
        else:
            said = f"there is no NUMA node {want.node} here"
        return said + ": set numa_node in the drive's entry; fio may run far from it"

    def _slow_note(self, share: list[int]) -> str:
        slow = lists.format_cpu_list(cpu for cpu in share if cpu in self._topology.slow)
        return f"its CPUs {slow} are slower than this host's others: set `cpus` to compare drives" if slow else ""

    def _overlap_note(self, drive: str, share: list[int]) -> str:
        others = [other for other, taken in self._running.items() if other != drive and set(taken) & set(share)]
        return "too few CPUs: shares some with {0}".format(", ".join(sorted(others))) if others else ""


def _most_note(want: CpuRequest, share: list[int]) -> str:
    if want.most is None or len(share) <= want.most:
        return ""
    return f"its `cpus` are {len(share)} CPUs, more than the {want.most} that tune_cpu_limits allows for it"


def _reserved(cores: int, asked: int | str, shares: int) -> int:
    """Cores to keep for interrupts, so that each share keeps at least one core."""
    wanted = cores // CORES_PER_INTERRUPT_CORE or 1 if asked == AUTO else int(asked)
    if asked == AUTO and cores < FEWEST_CORES:
        wanted = 0
    return max(0, min(wanted, cores - shares))


def _split(cores: list[list[int]], count: int) -> list[list[int]]:
    """Equal parts, so that drives side by side have equal conditions: whole cores, else threads, else all of them to
    everyone.
    """
    threads = [cpu for core in cores for cpu in core]
    units = cores if len(cores) >= count else [[cpu] for cpu in threads]
    size = len(units) // count
    if not size:
        return [sorted(threads) for _part in range(count)]
    return [sorted(cpu for unit in units[size * part : size * (part + 1)] for cpu in unit) for part in range(count)]
