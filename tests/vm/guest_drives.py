# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVMe drives as QEMU is told of them: controllers, namespaces and the slots that they sit in."""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from guest_machine import CPUS
from image import MIB

# The kernel's and QEMU's own default for a drive that is as fast as its slot: QEMU's NVMe drives are one lane of 2.5
# GT/s.
HEALTHY_SLOT = ("2_5", 1)


@dataclass
class Namespace:
    """One namespace, a file of zeros at first. `backend`: a block device of QEMU's instead (blockdev's keys), such as a
    simulated SSD.
    """

    size_bytes: int = 64 * MIB
    lba_bytes: int = 512
    shared: bool = False
    write_bytes_per_s: int = 0  # 0: as fast as it goes
    backend: dict | None = None
    # What QEMU calls the keys of a zoned namespace, less "zoned."; None: it has no zones.
    zones: dict | None = None
    file: Path | None = None

    def sha256(self) -> str:
        """Of everything on it."""
        return hashlib.sha256(self.file.read_bytes()).hexdigest()


@dataclass
class Nvme:
    """One controller, in a slot of its own. Controllers of one `subsystem` see that subsystem's `shared` namespaces."""

    serial: str
    namespaces: list[Namespace] = field(default_factory=lambda: [Namespace()])
    subsystem: str = ""
    numa_node: int = 0
    slot: tuple[str, int] = HEALTHY_SLOT  # speed as QEMU writes it ("2_5", "5", "8", "16") and lanes
    key: str = ""  # its name in the bed; the serial unless two have the same
    first_nsid: int = 1

    def __post_init__(self) -> None:
        self.key = self.key or self.serial

    def sha256(self) -> str:
        """Of all its namespaces, one after the other."""
        return hashlib.sha256("".join(space.sha256() for space in self.namespaces).encode()).hexdigest()

    @property
    def id(self) -> str:
        """As QEMU names it: what a key may hold is more than what an id may."""
        return "d" + hashlib.sha256(self.key.encode()).hexdigest()[:8]

    def nodes(self, folder: Path) -> list[dict]:
        """The block devices behind its namespaces, as blockdev-add takes them; files that are not there
        yet are made.
        """
        made = []
        for index, space in enumerate(self.namespaces):
            space.file = space.file or folder / f"{self.id}-{index + self.first_nsid}.raw"
            if not space.backend and not space.file.exists():
                with space.file.open("wb") as out:
                    out.truncate(space.size_bytes)
            behind = space.backend or {
                "driver": "file",
                "filename": str(space.file),
                "cache": {"no-flush": True},
                "discard": "unmap",
            }
            if space.write_bytes_per_s:
                behind = {
                    "driver": "throttle",
                    "throttle-group": f"limit-{self.id}n{index}",
                    "discard": "unmap",
                    "file": behind,
                }
            made.append(
                {
                    "driver": "raw",
                    "node-name": f"{self.id}n{index}",
                    "discard": "unmap",
                    # A drive of a program's own hears each flush.
                    "cache": {"no-flush": not space.backend},
                    "file": behind,
                }
            )
        return made

    def limits(self) -> list[dict]:
        """The objects that slow its namespaces down, as object-add takes them."""
        return [
            {"qom-type": "throttle-group", "id": f"limit-{self.id}n{index}", "x-bps-write": space.write_bytes_per_s}
            for index, space in enumerate(self.namespaces)
            if space.write_bytes_per_s
        ]

    def devices(self) -> list[dict]:
        """The controller and its namespaces, as device_add takes them."""
        subsystem = {"subsys": self.subsystem_device()["id"]} if self.subsystem else {}
        made = [
            {
                "driver": "nvme",
                "id": self.id,
                "bus": f"slot-{self.id}",
                "serial": self.serial,
                "max_ioqpairs": CPUS,
                **subsystem,
            }
        ]
        for index, space in enumerate(self.namespaces):
            nsid = index + self.first_nsid
            # QEMU's default is another random uuid at each start.
            name = uuid.uuid5(uuid.NAMESPACE_OID, f"{self.key}/{nsid}")
            made.append(
                {
                    "driver": "nvme-ns",
                    "bus": self.id,
                    "nsid": nsid,
                    "drive": f"{self.id}n{index}",
                    "uuid": str(name),
                    "shared": space.shared,
                    "logical_block_size": space.lba_bytes,
                    "physical_block_size": space.lba_bytes,
                    **({"zoned": True} if space.zones else {}),
                    **{f"zoned.{key}": value for key, value in (space.zones or {}).items()},
                }
            )
        return made

    def subsystem_device(self) -> dict:
        """The NVMe subsystem that it is a controller of."""
        return {"driver": "nvme-subsys", "id": f"subsys-{self.subsystem}", "nqn": self.subsystem}

    def slot_device(self, chassis: int) -> dict:
        """The root port that it sits in, below its NUMA node's host bridge."""
        speed, width = self.slot
        return {
            "driver": "pcie-root-port",
            "id": f"slot-{self.id}",
            "bus": f"node{self.numa_node}",
            "chassis": chassis,
            "slot": chassis,
            "x-speed": speed,
            "x-width": str(width),
        }
