# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host is: its facts (machine/facts.py) and its snapshot (machine/snapshot.py). Null is unknown."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from .base import SCALARS_BESIDE, Annotated, Count, Json, Limits, OrMissing, Scalar, Word
from .bmc import Attributes as BiosAttributes
from .bmc import BmcRecord

_Id = t.Optional[Annotated[str, Limits(max_length=100, is_name=True)]]


@dataclass(frozen=True)
class Tool:
    """A program of the host."""

    path: str
    # As it states it; null: it states none.
    version: t.Optional[Annotated[str, Limits(max_length=200)]]


# By name; null: the host lacks it.
Tools = t.Dict[str, t.Optional[Tool]]


@dataclass(frozen=True)
class CutFilesystem:
    """A mounted file system. drives: below it, by kernel name; none where no block device is."""

    path: Annotated[str, Limits(max_length=500)]
    source: Annotated[str, Limits(max_length=500)]
    kind: Word
    drives: Annotated[t.List[Annotated[str, Limits(max_length=100)]], Limits(max_items=100)]


@dataclass(frozen=True)
class CutReach:
    """What a cut of the host's power reaches, and by what a BMC proves to be this host's (docs/power-cut.md)."""

    # Of DMI; null where there is none, or it may not be read.
    uuid: t.Optional[Annotated[str, Limits(max_length=100)]]
    # Of DMI: of the product, its board and its chassis.
    serials: Annotated[t.List[Annotated[str, Limits(max_length=200)]], Limits(max_items=3)]
    # The file system of ssd_state_dir, where acknowledgements are recorded.
    state_dir: t.Optional[CutFilesystem]
    # File systems of the system itself.
    system: Annotated[t.List[CutFilesystem], Limits(max_items=20)]
    # The first of those beside it, and how many there are.
    further: Annotated[t.List[CutFilesystem], Limits(max_items=20)]
    further_count: Count
    # Virtual machines and containers that run: the first, and how many.
    guests: Annotated[t.List[Annotated[str, Limits(max_length=200)]], Limits(max_items=20)]
    guests_count: Count


@dataclass(frozen=True)
class HostIdentity:
    """Which host this is, which boot, how big, and which tools it has."""

    # /proc/sys/kernel/random/boot_id.
    boot_id: _Id
    # /etc/machine-id; clones of a virtual machine may share one.
    machine_id: _Id
    # The kernel's.
    hostname: t.Optional[Annotated[str, Limits(max_length=255)]]
    # The kernel's release.
    kernel: Word
    # systemd where it is PID 1.
    service_manager: Word
    # Logical ones.
    cpus: t.Optional[Count]
    memory_bytes: t.Optional[Count]
    # Of the Python that ran the module.
    python_version: Word
    tools: Tools
    # Of those that were tried, what fio said to each; "" where it works.
    fio_engines: OrMissing[
        Annotated[t.Dict[str, Annotated[str, Limits(max_length=500)]], Limits(max_properties=20)]
    ] = None
    # How many I/Os of libaio may be in flight beside those of now: fs.aio-max-nr less fs.aio-nr.
    aio_left: OrMissing[t.Optional[Count]] = None
    # Where it was asked for.
    cut_reach: OrMissing[CutReach] = None
    # Likewise; what its BMC changed and nobody restored yet.
    bmc_record: OrMissing[BmcRecord] = None


@dataclass(frozen=True)
class Cpu:
    """The processors, by /proc/cpuinfo and sysfs."""

    model: Word = None
    vendor: Word = None
    microcode: Word = None
    sockets: t.Optional[Count] = None
    # Of all sockets together.
    cores: t.Optional[Count] = None
    # Logical CPUs that are online.
    cpus: t.Optional[Count] = None
    # The same as a list as the kernel writes it: 0-63.
    online: Word = None
    # Of the first CPU.
    max_khz: t.Optional[Count] = None
    # Of the first CPU.
    base_khz: t.Optional[Count] = None
    # Of the third level, as sysfs writes it: 12288K.
    cache: Word = None
    # As uname writes it: x86_64.
    architecture: Word = None
    # What the kernel does about the processor's faults, by their names; without those that it does not have.
    mitigations: OrMissing[t.Dict[str, Word]] = None

    JSON_SCHEMA: t.ClassVar[Json] = SCALARS_BESIDE


@dataclass(frozen=True)
class Memory:
    """The memory, by /proc/meminfo and dmidecode."""

    total_bytes: t.Optional[Count] = None
    # Free, or can be freed without swapping.
    available_bytes: t.Optional[Count] = None
    swap_bytes: t.Optional[Count] = None
    # How many there are of each kind: {"32 GB DDR4 3200 MT/s": 8}.
    modules: t.Optional[t.Dict[str, Count]] = None

    JSON_SCHEMA: t.ClassVar[Json] = {"additionalProperties": {"type": ["object", "number", "null"]}}


@dataclass(frozen=True)
class NumaNode:
    """The CPUs and memory of a NUMA node."""

    # A list as the kernel writes it.
    cpus: Word = None
    memory_bytes: t.Optional[Count] = None
    # To each node in order, the node itself included; 10 is local.
    distances: OrMissing[t.List[int]] = None


@dataclass(frozen=True)
class Numa:
    """The NUMA nodes, and which of them the drives hang on."""

    # By number.
    nodes: OrMissing[Annotated[t.Dict[str, NumaNode], Limits(max_properties=4096)]] = None
    # By kernel name.
    drives: OrMissing[t.Dict[str, t.Optional[int]]] = None


@dataclass(frozen=True)
class IdleState:
    """An idle state of the first CPU."""

    name: Word = None
    # How long it takes to leave it.
    latency_us: t.Optional[int] = None
    disabled: t.Optional[bool] = None


_ByValue = t.Optional[Annotated[t.Dict[str, str], Limits(max_properties=100)]]


@dataclass(frozen=True)
class Tunables:
    """The values in force of all that the role `tune` can set."""

    # {governor: the CPUs that have it, as a list as the kernel writes it}.
    governor: _ByValue = None
    # The same of the lowest frequency allowed.
    min_khz: _ByValue = None
    # The same of the highest frequency allowed.
    max_khz: _ByValue = None
    # The same of intel_pstate's hint.
    energy_performance_preference: _ByValue = None
    # Those that the first CPU offers.
    governors: OrMissing[Annotated[t.List[Annotated[str, Limits(max_length=100)]], Limits(max_items=100)]] = None
    idle_states: OrMissing[t.List[IdleState]] = None
    # The limit in force on how long a CPU may take to wake up.
    cpu_dma_latency_us: t.Optional[int] = None
    frequency_driver: Word = None
    pstate_status: Word = None
    no_turbo: Word = None
    max_perf_pct: Word = None
    boost: Word = None
    idle_driver: Word = None
    smt: Word = None
    aspm_policy: Word = None
    clock_source: Word = None
    nvme_poll_queues: Word = None
    numa_balancing: Word = None
    transparent_hugepages: Word = None
    # Those of /proc/sys/vm, by name.
    vm: OrMissing[t.Dict[str, Scalar]] = None
    # Those of /sys/block/NAME/queue, by the drive's kernel name; hardware_queues: how many it has.
    queue: OrMissing[t.Dict[str, t.Dict[str, Scalar]]] = None
    # Units that change settings by themselves: active, inactive, or null where there is none.
    services: OrMissing[Json] = None

    JSON_SCHEMA: t.ClassVar[Json] = {"additionalProperties": {}}


@dataclass(frozen=True)
class BiosSettings:
    """What the host's BMC said of its BIOS when preflight asked it (Redfish, the resource Bios)."""

    # In force.
    attributes: BiosAttributes
    # Why they could not be read; empty: they were.
    unknown: Annotated[str, Limits(max_length=500)] = ""
    # What they will be from the next boot on, as far as that is something else.
    pending: BiosAttributes = field(default_factory=dict)


@dataclass(frozen=True)
class Snapshot:
    """What the host is (machine/snapshot.py)."""

    cpu: Cpu
    memory: Memory
    # What DMI holds of the firmware, the system and the board.
    bios: t.Dict[str, Word]
    # Release and version, and the distribution.
    kernel: t.Dict[str, Word]
    # /proc/cmdline.
    command_line: t.Optional[Annotated[str, Limits(max_length=8192)]]
    tools: Tools
    # drives: {kernel name: address}; in the journal also devices: {address: its link, and the bridges above it}.
    pcie: Json
    numa: Numa
    tunables: Tunables
    # modules: {name: version}, of those that are loaded; drives: {kernel name: driver}.
    drivers: t.Dict[str, t.Dict[str, Scalar]]
    # Missing where no BMC is given. The controller read it; the host job keeps it here.
    bios_settings: OrMissing[BiosSettings] = None
