# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The drives of the session's guest: enough kinds that most tests need no other hardware, and no boot of their own."""

from __future__ import annotations

from guest_drives import Namespace, Nvme
from image import MIB

# A plain drive, for whatever a test does to it, and its neighbour on the other node.
PLAIN, NEIGHBOUR = "SSDQ0001", "SSDQ0002"
# One controller, two namespaces of its own.
TWO_NAMESPACES = "SSDQ0003"
# A subsystem of two controllers: one namespace that both reach, and one that only the second has.
SHARED = "SSDQ0004"
SHARED_A, SHARED_B = "shared-a", "shared-b"
# Two drives that say the same.
TWIN = "SSDQTWIN"
TWINS = ("twin-1", "twin-2")
# Takes several seconds to write.
SLOW = "SSDQSLOW"
# Host-managed zones, of which it can have few open; a zone holds less than it spans.
ZONED = "SSDQZNS1"
ZONES = {"zone_size": 4 * MIB, "zone_capacity": 3 * MIB, "max_open": 4, "max_active": 6}
# For what is staged on many drives at once.
STAGED = [f"SSDQ01{number:02}" for number in range(1, 13)]


def wwn(serial: str, nsid: int = 1) -> str:
    """As the kernel makes it up where it trusts no identifier of the drive's own, as with QEMU's: vendor, serial,
    model, namespace.
    """
    return f"nvme.1b36-{serial.encode().hex()}-{b'QEMU NVMe Ctrl'.hex()}-{nsid:08x}"


def drives() -> list[Nvme]:
    """New ones, with empty files."""
    return [
        Nvme(PLAIN),
        Nvme(NEIGHBOUR, numa_node=1, slot=("16", 4)),
        Nvme(TWO_NAMESPACES, [Namespace(), Namespace()], numa_node=1),
        Nvme(SHARED, [Namespace(shared=True)], key=SHARED_A, subsystem="shared"),
        Nvme(SHARED, [Namespace()], key=SHARED_B, subsystem="shared", first_nsid=2),
        # Of subsystems of their own: the kernel refuses a second controller of the same NQN and number.
        *(Nvme(TWIN, key=key, subsystem=key) for key in TWINS),
        Nvme(SLOW, [Namespace(write_bytes_per_s=8 * MIB)]),
        Nvme(ZONED, [Namespace(lba_bytes=4096, zones=ZONES)]),
        *(Nvme(serial, numa_node=number % 2) for number, serial in enumerate(STAGED)),
    ]
