# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the checks look at, gathered from a host. It only reads, also the drives: error counters mean something only
under traffic.
"""

from __future__ import annotations

import concurrent.futures
import os
import re
import typing as t
from dataclasses import replace

from ..core.host import COMMAND_NOT_FOUND, Host
from ..drive import health, self_test
from ..drive import identity as drives_util
from ..drive.entry import Entry
from ..machine import links, pcie
from ..records.check_finding import CheckFinding
from ..records.host_snapshot import Snapshot
from ..records.identity import Identity
from ..vendors import iomemory, iomemory_pci
from ..vendors.vendor_tool import ToolError
from .base import WARNING, CheckedDrive, Driver, HostFacts, Machine, Required, is_virtual

# Reads from anywhere on the drive with direct I/O; --readonly makes fio refuse everything else.
TRAFFIC = (
    "fio",
    "--name=traffic",
    "--readonly",
    "--rw=randread",
    "--bs=128k",
    "--direct=1",
    "--ioengine=psync",
    "--thread",
    "--numjobs=4",
    "--norandommap",
    "--randrepeat=0",
    "--allow_file_create=0",
    "--time_based",
)
TRAFFIC_GRACE_S = 60.0
# Hypervisors by what they put into the DMI table.
HYPERVISORS = (
    "QEMU",
    "VMware",
    "Xen",
    "VirtualBox",
    "innotek",
    "Microsoft Corporation Virtual",
    "Bochs",
    "Amazon EC2",
    "Google Compute",
    "OpenStack",
    "KVM",
)
FUSION_IO = "0x1aed"  # pci.ids
CONTAINER_FILES = (("/run/.containerenv", "podman"), ("/.dockerenv", "docker"))


def gather(
    host: Host,
    entries: t.Sequence[Entry],
    snapshot: Snapshot,
    functions: t.Mapping[str, pcie.Device],
    required: Required,
    traffic_s: float = 0,
    readable: t.Collection[str] = (),
) -> HostFacts:
    """Return the facts of a host and of those drives that can be found; the guard tells about the others.

    functions: pcie.functions'. traffic_s: how long each of the drives named in `readable` is read, all of them at
    once, before its temperature and error counters count.
    """
    found = [(entry, name) for entry in entries for name in _find(host, entry)]
    labels = [entry.label for entry, _name in found]
    identities = [drives_util.identity(host, name) for _entry, name in found]
    before = [pcie.path_to_root(host, pcie.address_of(host, name)) for _entry, name in found]
    # Traffic shows nothing on a device of software.
    asked = [
        traffic_s if known in readable and not is_virtual(identity) else 0
        for known, identity in zip(labels, identities)
    ]
    traffic = _traffic(host, [drives_util.node(name) for _entry, name in found], asked)
    return HostFacts(
        machine=machine(snapshot, hypervisor(host), container(host)),
        required=required,
        drives=[
            _drive(host, entry, identity, snapshot, first, why)
            for (entry, _name), identity, first, why in zip(found, identities, before, traffic)
        ],
        devices=functions,
    )


def _find(host: Host, entry: Entry) -> list[str]:
    """Return the kernel name of a drive, where there is exactly one."""
    try:
        names = drives_util.find(host, entry)
    except ValueError:
        return []
    return names if len(names) == 1 else []


def _traffic(host: Host, paths: t.Sequence[str], seconds: t.Sequence[float]) -> list[str | None]:
    """Read the drives side by side; for each why it was not read, None where it was."""
    with concurrent.futures.ThreadPoolExecutor(max(1, len(paths))) as pool:
        return list(pool.map(lambda item: _read(host, *item), zip(paths, seconds)))


def _read(host: Host, path: str, seconds: float) -> str | None:
    if not seconds:
        return "it was not read"
    result = host.run([*TRAFFIC, "--filename=" + path, f"--runtime={seconds:g}"], timeout_s=seconds + TRAFFIC_GRACE_S)
    if result.rc == COMMAND_NOT_FOUND:
        return "fio is not installed"
    if result.rc:
        said = (result.stderr or result.stdout).strip().splitlines()
        return "fio could not read it ({0}): {1}".format(result.rc, said[0] if said else "no message")
    return None


def _drive(
    host: Host,
    entry: Entry,
    identity: Identity,
    snapshot: Snapshot,
    before: t.Sequence[pcie.Device],
    untouched: str | None,
) -> CheckedDrive:
    name = identity.name
    after = pcie.path_to_root(host, pcie.address_of(host, name))
    reset = pcie.aer_fell(_errors(before), _errors(after))
    untouched = untouched or (f"the counters at {', '.join(reset)} were reset meanwhile" if reset else None)
    write_cache = (snapshot.tunables.queue or {}).get(name, {}).get("write_cache")
    return CheckedDrive(
        drive=entry.label,
        identity=identity,
        path=after,
        health=health.read(host, identity),
        options=entry.options,
        driver=_driver(host, after[0]) if after else Driver(),
        aer_rose=None if untouched else pcie.aer_increase(_errors(before), _errors(after)),
        traffic=untouched or "",
        write_cache=None if write_cache is None else str(write_cache),
        self_test=self_test.read(host, identity),
        sata_port_gbit_s=links.port_gbit_s(host, name),
    )


def _errors(devices: t.Sequence[pcie.Device]) -> dict[str, pcie.Errors | None]:
    return {device.address: device.aer for device in devices}


def _driver(host: Host, device: pcie.Device) -> Driver:
    """Return a function's driver: ioMemory's iodrive is in the module iomemory_vsl."""
    name = device.driver
    if not name:
        return Driver()
    link = host.readlink(f"{pcie.DEVICES}/{device.address}/driver/module")
    module = os.path.basename(link) if link else name.replace("-", "_")
    return Driver(name, module, host.get(f"/sys/module/{module}/version"))


def machine(snapshot: Snapshot, kind: str | None, inside: str | None) -> Machine:
    """Return what the checks look at. kind: the hypervisor; inside: the container."""
    cpu, memory = snapshot.cpu, snapshot.memory
    return Machine(
        kernel=snapshot.kernel.get("release"),
        architecture=cpu.architecture,
        cpus=cpu.cpus,
        cpu_max_mhz=None if cpu.max_khz is None else cpu.max_khz // 1000,
        cache_bytes=_size(cpu.cache),
        memory_bytes=memory.total_bytes,
        available_bytes=memory.available_bytes,
        cpufreq_driver=snapshot.tunables.frequency_driver,
        clock_source=snapshot.tunables.clock_source,
        nodes=_nodes(snapshot),
        node_cpus={int(name): node.cpus for name, node in (snapshot.numa.nodes or {}).items() if node.cpus},
        tools={name: told.version if told else None for name, told in snapshot.tools.items()},
        hypervisor=kind,
        container=inside,
    )


def _nodes(snapshot: Snapshot) -> int | None:
    """Return how many NUMA nodes have CPUs: others are memory alone (CXL, a GPU's). A kernel without NUMA tells of no
    node, and has its CPUs in one.
    """
    with_cpus = sum(1 for node in (snapshot.numa.nodes or {}).values() if node.cpus)
    return with_cpus or (1 if snapshot.cpu.cpus else None)


def _size(text: str | None) -> int | None:
    """Return a cache's size as sysfs writes it: 12288K."""
    match = re.fullmatch(r"([0-9]+)([KMG]?)", text or "")
    return int(match.group(1)) << {"": 0, "K": 10, "M": 20, "G": 30}[match.group(2)] if match else None


def hypervisor(host: Host) -> str | None:
    """Return what this machine is a guest of: by systemd, else by the processor's flag and the DMI table; None
    on bare metal.
    """
    told = host.run(["systemd-detect-virt", "--vm"], timeout_s=20)
    if told.rc == 0 and told.stdout.strip():
        return told.stdout.strip()
    # It answers "none" with exit code 1.
    if told.stdout.strip() == "none":
        return None
    dmi = " ".join(host.get("/sys/class/dmi/id/" + name) or "" for name in ("sys_vendor", "product_name"))
    named = next((name for name in HYPERVISORS if name.lower() in dmi.lower()), None)
    flags = re.search(r"^flags\s*:.*\bhypervisor\b", host.get("/proc/cpuinfo") or "", re.MULTILINE)
    return named or ("unknown hypervisor" if flags else None)


def container(host: Host) -> str | None:
    """Return what kind of container this is; None where it is none."""
    told = host.run(["systemd-detect-virt", "--container"], timeout_s=20)
    if told.rc == 0 and told.stdout.strip():
        return told.stdout.strip()
    return host.get("/run/systemd/container") or next(
        (kind for path, kind in CONTAINER_FILES if host.exists(path)), None
    )


def vendor(host: Host, facts: HostFacts) -> list[CheckFinding]:
    """Return what Fusion-io's own tools find, where there are such cards or tools. What is wrong with a card that is
    not measured only warns.
    """
    if not host.which("fio-pci-check") and not any(device.vendor == FUSION_IO for device in facts.devices.values()):
        return []
    try:
        found = iomemory_pci.check(host, iomemory.cards(host), facts.required.parallel_drives)
    except ToolError as error:
        message, remedy = (
            f"its ioMemory cards cannot be examined: {error}",
            "install Fusion-io's fio-util and check fio-status -a",
        )
        return [CheckFinding("iomemory_unknown", None, WARNING, message, remedy)]
    labels = {drive.identity.serial: drive.drive for drive in facts.drives if drive.identity.serial}
    others = [item.drive is not None and item.drive not in labels for item in found]
    return [
        replace(item, drive=labels.get(item.drive or ""), level=WARNING if other else item.level)
        for item, other in zip(found, others)
    ]
