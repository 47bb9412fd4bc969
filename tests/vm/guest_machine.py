# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guest's machine as QEMU's arguments: CPUs on two NUMA nodes, a disk, a network port for ssh, and its drives."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

if t.TYPE_CHECKING:
    from guest_drives import Nvme

QEMU = "qemu-system-x86_64"
# One thread for all CPUs: with one each, QEMU 7.2 crashed at two of some twenty boots, and a quarter more time
# went to CPUs that wait for each other.
TCG = "tcg,thread=single,tb-size=512"
KVM = "kvm"
# Emulated, the instructions of newer models take longer than those that they replace; svm would load KVM in the guest.
# By KVM it is the same: the host's own model has an MSR that some nested machines refuse, and there QEMU aborts.
CPU_MODEL = "qemu64,-svm"
CPUS = 4
NODES = 2
NODE_MIB = 1024


def arguments(folder: Path, port: int, drives: list[Nvme], accelerator: str) -> list[str]:
    """All of QEMU's. folder: of this guest; port: where ssh is forwarded to."""
    return [*_base(folder, port, accelerator), *_nodes(), *_drives(folder, drives)]


def _base(folder: Path, port: int, accelerator: str) -> list[str]:
    return [
        QEMU,
        "-name",
        "ssdlab-fleet-guest",
        "-nodefaults",
        "-display",
        "none",
        "-accel",
        accelerator,
        "-cpu",
        CPU_MODEL,
        "-machine",
        "q35",
        "-m",
        str(NODES * NODE_MIB),
        "-smp",
        f"{CPUS},sockets={NODES},cores={CPUS // NODES},threads=1",
        "-qmp",
        f"unix:{folder}/qmp.sock,server=on,wait=off",
        "-serial",
        f"file:{folder}/serial.log",
        "-blockdev",
        json.dumps(
            {
                "driver": "qcow2",
                "node-name": "root",
                "file": {
                    "driver": "file",
                    "filename": str(folder / "disk.qcow2"),
                    "cache": {"no-flush": True},
                },
            }
        ),
        "-device",
        "virtio-blk-pci,drive=root,bootindex=1",
        "-netdev",
        f"user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:{port}-:22",
        "-device",
        "virtio-net-pci,netdev=net,romfile=",
        "-device",
        "virtio-rng-pci",
    ]


def _nodes() -> list[str]:
    """Memory, CPUs and a PCIe host bridge for each NUMA node."""
    argv = []
    per_node = CPUS // NODES
    for node in range(NODES):
        cpus = f"{node * per_node}-{(node + 1) * per_node - 1}"
        argv += [
            "-object",
            f"memory-backend-ram,id=mem{node},size={NODE_MIB}M",
            "-numa",
            f"node,nodeid={node},cpus={cpus},memdev=mem{node}",
        ]
        argv += ["-device", f"pxb-pcie,id=node{node},bus_nr={64 * (node + 1)},bus=pcie.0,numa_node={node}"]
    return argv


def _drives(folder: Path, drives: list[Nvme]) -> list[str]:
    """Subsystems first: controllers name them."""
    subsystems = {drive.subsystem: drive.subsystem_device() for drive in drives if drive.subsystem}
    argv = [word for device in subsystems.values() for word in ("-device", json.dumps(device))]
    for chassis, drive in enumerate(drives, 1):
        argv += [word for limit in drive.limits() for word in ("-object", json.dumps(limit))]
        argv += [word for node in drive.nodes(folder) for word in ("-blockdev", json.dumps(node))]
        devices = (drive.slot_device(chassis), *drive.devices())
        argv += [word for device in devices for word in ("-device", json.dumps(device))]
    return argv
