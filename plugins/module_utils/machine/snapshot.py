# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host is, as far as it bears on a measurement: a measurement is worth as much as what is known of its host. It
only reads.
"""

from __future__ import annotations

import os
import platform
import re
import typing as t

from ..core.host import Host
from ..core.sysfs import effective, number
from ..drive import identity
from ..records.base import Json, Scalar
from ..records.host_snapshot import Cpu, IdleState, Memory, Numa, NumaNode, Snapshot, Tunables
from ..tools import systemd
from . import cpus, pcie
from .cpus import CPU_DIR, NODE_DIR
from .facts import tool

# Tools whose version may bear on a result, and the option by which each tells it.
TOOLS = {
    "fio": "--version",
    "nvme": "version",
    "smartctl": "--version",
    "hdparm": "-V",
    "sdparm": "--version",
    "sg_sanitize": "--version",
    "rssdm": "-V",
    "fio-status": "--version",
}
DMI = {
    "vendor": "bios_vendor",
    "version": "bios_version",
    "date": "bios_date",
    "release": "bios_release",
    "system_vendor": "sys_vendor",
    "system": "product_name",
    "board_vendor": "board_vendor",
    "board": "board_name",
    "board_version": "board_version",
}
# Kernel modules of drives and of what drives hang on.
DRIVERS = (
    "nvme",
    "nvme_core",
    "ahci",
    "libata",
    "mpt3sas",
    "mpi3mr",
    "megaraid_sas",
    "smartpqi",
    "hpsa",
    "aacraid",
    "mtip32xx",
    "iomemory_vsl",
)
PER_CPU = {
    "governor": "cpufreq/scaling_governor",
    "min_khz": "cpufreq/scaling_min_freq",
    "max_khz": "cpufreq/scaling_max_freq",
    "energy_performance_preference": "cpufreq/energy_performance_preference",
}
SINGLE = {
    "frequency_driver": CPU_DIR + "/cpu0/cpufreq/scaling_driver",
    "pstate_status": CPU_DIR + "/intel_pstate/status",
    "no_turbo": CPU_DIR + "/intel_pstate/no_turbo",
    "max_perf_pct": CPU_DIR + "/intel_pstate/max_perf_pct",
    "boost": CPU_DIR + "/cpufreq/boost",
    "idle_driver": CPU_DIR + "/cpuidle/current_driver",
    "smt": CPU_DIR + "/smt/control",
    "aspm_policy": "/sys/module/pcie_aspm/parameters/policy",
    "clock_source": "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "nvme_poll_queues": "/sys/module/nvme/parameters/poll_queues",
    "numa_balancing": "/proc/sys/kernel/numa_balancing",
    "transparent_hugepages": "/sys/kernel/mm/transparent_hugepage/enabled",
}
VM = (
    "swappiness",
    "dirty_ratio",
    "dirty_bytes",
    "dirty_background_ratio",
    "dirty_background_bytes",
    "dirty_expire_centisecs",
    "dirty_writeback_centisecs",
)
QUEUE = (
    "scheduler",
    "nr_requests",
    "nomerges",
    "rq_affinity",
    "add_random",
    "io_poll",
    "wbt_lat_usec",
    "write_cache",
    "read_ahead_kb",
    "max_sectors_kb",
    "rotational",
)


def gather(
    host: Host, tools: t.Mapping[str, str] | None = None, functions: t.Mapping[str, pcie.Device] | None = None
) -> Snapshot:
    """Return the snapshot. tools: {name: option that prints its version}, by default TOOLS. functions: pcie.functions',
    where the caller has them already.
    """
    names = identity.whole_drives(host)
    devices = pcie.functions(host) if functions is None else functions
    return Snapshot(
        cpu=_cpu(host),
        memory=_memory(host),
        bios={key: host.get("/sys/class/dmi/id/" + file) for key, file in DMI.items()},
        kernel=_kernel(host),
        command_line=host.get("/proc/cmdline"),
        tools={name: tool(host, name, option) for name, option in (TOOLS if tools is None else tools).items()},
        pcie={
            "drives": {name: pcie.address_of(host, name) for name in names},
            "devices": {address: _function(device) for address, device in devices.items()},
        },
        numa=_numa(host, names),
        tunables=_tunables(host, names),
        drivers=_drivers(host, names),
    )


def _cpu(host: Host) -> Cpu:
    info = host.get("/proc/cpuinfo") or ""
    seen = cpus.topology(host)
    cores = set(seen.core_of.values())
    return Cpu(
        model=_field(info, "model name"),
        vendor=_field(info, "vendor_id"),
        microcode=_field(info, "microcode"),
        sockets=len({package for package, _core in cores}) or None,
        cores=len(cores) or None,
        cpus=len(seen.online) or None,
        online=host.get(CPU_DIR + "/online"),
        max_khz=number(host, CPU_DIR + "/cpu0/cpufreq/cpuinfo_max_freq"),
        base_khz=number(host, CPU_DIR + "/cpu0/cpufreq/base_frequency"),
        cache=host.get(CPU_DIR + "/cpu0/cache/index3/size"),
        architecture=platform.machine(),
        mitigations=_mitigations(host),
    )


def _mitigations(host: Host) -> dict[str, str | None]:
    found = {os.path.basename(path): host.get(path) for path in sorted(host.glob(CPU_DIR + "/vulnerabilities/*"))}
    return {name: text for name, text in found.items() if text and text != "Not affected"}


def _field(text: str, name: str) -> str | None:
    match = re.search(rf"^{re.escape(name)}\s*:\s*(\S.*)$", text, re.MULTILINE)
    return match.group(1).strip() if match else None


def _memory(host: Host) -> Memory:
    text = host.get("/proc/meminfo") or ""
    return Memory(
        total_bytes=_kib(text, "MemTotal"),
        available_bytes=_kib(text, "MemAvailable"),
        swap_bytes=_kib(text, "SwapTotal"),
        modules=_modules(host),
    )


def _kib(text: str, name: str) -> int | None:
    match = re.search(rf"^(?:Node [0-9]+ )?{name}:\s+([0-9]+) kB", text, re.MULTILINE)
    return int(match.group(1)) * 1024 if match else None


def _modules(host: Host) -> dict[str, int] | None:
    """Return how many memory modules of each kind there are, by dmidecode: {"32 GB DDR4 3200 MT/s": 8}."""
    result = host.run(["dmidecode", "--type", "17"], timeout_s=20)
    if result.rc:
        return None
    found: dict[str, int] = {}
    for block in result.stdout.split("\n\n"):
        fields = dict(line.strip().partition(": ")[::2] for line in block.splitlines() if ": " in line)
        if re.match(r"[0-9]", fields.get("Size", "")):
            speed = (
                fields.get("Configured Memory Speed") or fields.get("Configured Clock Speed") or fields.get("Speed", "")
            )
            kind = " ".join(text for text in (fields["Size"], fields.get("Type", ""), speed) if text)
            found[kind] = found.get(kind, 0) + 1
    return found


def _kernel(host: Host) -> dict[str, str | None]:
    pairs = (line.partition("=")[::2] for line in (host.get("/etc/os-release") or "").splitlines())
    told = {key: value.strip("\"'") for key, value in pairs}
    return {
        "release": host.get("/proc/sys/kernel/osrelease"),
        "version": host.get("/proc/sys/kernel/version"),
        "os": told.get("PRETTY_NAME"),
        "os_id": told.get("ID"),
        "os_version": told.get("VERSION_ID"),
    }


def _function(device: pcie.Device) -> Json:
    """Return a function as JSON has it."""
    return {
        "address": device.address,
        "vendor": device.vendor,
        "device": device.device,
        "class": device.class_code,
        "driver": device.driver,
        "numa_node": device.numa_node,
        "speed_gts": device.speed_gts,
        "width": device.width,
        "max_speed_gts": device.max_speed_gts,
        "max_width": device.max_width,
        "aer": device.aer,
        "slot_power_w": device.slot_power_w,
        "payload_bytes": device.payload_bytes,
        "read_request_bytes": device.read_request_bytes,
        "iommu": device.iommu,
        "chipset": device.chipset,
        "above": list(device.above),
    }


def _numa(host: Host, names: t.Sequence[str]) -> Numa:
    nodes = {}
    for node in cpus.node_numbers(host):
        folder = f"{NODE_DIR}/node{node}/"
        nodes[str(node)] = NumaNode(
            cpus=host.get(folder + "cpulist"),
            memory_bytes=_kib(host.get(folder + "meminfo") or "", "MemTotal"),
            distances=[int(word) for word in (host.get(folder + "distance") or "").split() if word.isdigit()],
        )
    return Numa(nodes, {name: identity.identity(host, name).numa_node for name in names})


def _tunables(host: Host, names: t.Sequence[str]) -> Tunables:
    found: dict[str, t.Any] = {key: _by_value(host, file) for key, file in PER_CPU.items()}
    found.update({key: _in_force(host, path) for key, path in SINGLE.items()})
    found["governors"] = (host.get(CPU_DIR + "/cpu0/cpufreq/scaling_available_governors") or "").split()
    found["idle_states"] = _idle_states(host)
    found["cpu_dma_latency_us"] = cpus.wake_up_limit_us(host)
    found["vm"] = {key: host.get("/proc/sys/vm/" + key) for key in VM}
    found["queue"] = {name: _queue(host, name) for name in names}
    found["services"] = systemd.states(host, systemd.REWRITERS)
    return Tunables(**found)


def _queue(host: Host, name: str) -> dict[str, Scalar]:
    found: dict[str, Scalar] = {key: _in_force(host, f"/sys/block/{name}/queue/{key}") for key in QUEUE}
    return {**found, "hardware_queues": len(host.listdir(f"/sys/block/{name}/mq")) or None}


def _in_force(host: Host, path: str) -> str | None:
    shown = host.get(path)
    return shown and effective(shown)


def _by_value(host: Host, file: str) -> dict[str, str]:
    found: dict[str, list[int]] = {}
    for cpu in cpus.online(host):
        value = host.get(f"{CPU_DIR}/cpu{cpu}/{file}")
        if value is not None:
            found.setdefault(value, []).append(cpu)
    return {value: cpus.format_cpu_list(held) for value, held in found.items()}


def _idle_states(host: Host) -> list[IdleState]:
    """Return the idle states of the first CPU."""
    folders = host.glob(CPU_DIR + "/cpu0/cpuidle/state[0-9]*")
    return [
        IdleState(
            name=host.get(path + "/name"),
            latency_us=number(host, path + "/latency"),
            disabled=host.get(path + "/disable") == "1",
        )
        for path in sorted(folders, key=lambda path: int(path.rpartition("state")[2]))
    ]


def _drivers(host: Host, names: t.Sequence[str]) -> dict[str, dict[str, Scalar]]:
    """{modules: {name: version; None: it states none}, drives: {kernel name: driver}} of loaded modules."""
    loaded = [name for name in DRIVERS if host.exists("/sys/module/" + name)]
    used: dict[str, Scalar] = {}
    for name in names:
        address = pcie.address_of(host, name)
        link = host.readlink(f"{pcie.DEVICES}/{address}/driver") if address else None
        used[name] = os.path.basename(link) if link else None
    return {"modules": {name: host.get(f"/sys/module/{name}/version") for name in loaded}, "drives": used}
