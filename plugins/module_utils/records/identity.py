# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who a drive is."""

from __future__ import annotations

import os
import typing as t
from dataclasses import dataclass

from .base import SCALARS_BESIDE, Annotated, Count, Json, Limits, Positive, Size, Word

_Name = t.Optional[Annotated[str, Limits(max_length=255)]]


@dataclass(frozen=True)
class Identity:
    """Who a drive is (drive/identity.py): what stays with it, and where the kernel has it now. Null is unknown."""

    serial: _Name = None
    # World wide name, as the kernel writes it.
    wwn: _Name = None
    model: _Name = None
    firmware: _Name = None
    size_bytes: t.Optional[Size] = None
    logical_block_size_bytes: t.Optional[Positive] = None
    # Of each block, such as 8 in the LBA format 512+8.
    metadata_bytes: t.Optional[Annotated[int, Limits(minimum=0, maximum=65535)]] = None
    physical_block_size_bytes: t.Optional[Positive] = None
    # The smallest efficient I/O; of an NVMe drive its preferred write granularity (NPWG).
    minimum_io_size_bytes: t.Optional[Count] = None
    # nvme, nvme-tcp, sata, sas, usb, virtio, loop …; pcie for a P320h, P420m or ioMemory.
    transport: Word = None
    # That it is attached to.
    numa_node: t.Optional[int] = None
    # The kernel's number of this attachment: another one means that the drive was swapped or attached again.
    diskseq: t.Optional[int] = None
    kernel_name: Word = None
    # The device node.
    path: Word = None
    # The device number, as 259:0.
    major_minor: Word = None
    # The file behind a loop device.
    backing_file: Word = None
    # That file by device and inode, and which part of it.
    backing: Word = None
    # Of one discard; 0: it supports none.
    max_discard_bytes: t.Optional[Count] = None
    # Commands that one queue accepts at a time.
    queue_depth: t.Optional[Count] = None
    # As the kernel reports it.
    rotational: t.Optional[bool] = None
    # Whether its queue supports polled I/O.
    io_poll: t.Optional[bool] = None
    # host-managed: it takes writes in sequence by zone alone (NVMe ZNS, SMR); host-aware: it takes all.
    zone_model: Word = None
    # Of a host-managed drive: the size of a zone, and how many may be open, and open or written in part; 0: any number.
    zone_bytes: t.Optional[Count] = None
    max_open_zones: t.Optional[Count] = None
    max_active_zones: t.Optional[Count] = None

    JSON_SCHEMA: t.ClassVar[Json] = SCALARS_BESIDE
    # A plan names what is unknown too.
    IS_WHOLE: t.ClassVar[bool] = True

    @property
    def name(self) -> str:
        """The kernel's name of it."""
        return self.kernel_name or os.path.basename(self.path or "")

    def sizes(self) -> t.Tuple[int, int]:
        """Return capacity and logical block in bytes, which are known of a drive that is held. Raises ValueError."""
        if self.size_bytes is None or self.logical_block_size_bytes is None:
            raise ValueError(f"the sizes of {self.path} are unknown")
        return self.size_bytes, self.logical_block_size_bytes
