# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The limit on CPU wake-up latency, which lasts as long as its file is open."""

from __future__ import annotations

import os
import struct
from dataclasses import replace

from ..core.host import Host
from ..machine.cpus import CPU_DMA_LATENCY, wake_up_limit_us
from ..records.tuning import Setting


class CpuDmaLatency:
    """Holds /dev/cpu_dma_latency open, which is how long the kernel keeps to it."""

    def __init__(self, host: Host, latency_us: int | None) -> None:
        self._host = host
        self._latency_us = latency_us
        self._handle: int | None = None

    def hold(self) -> list[Setting]:
        """Open it and ask for the latency. Returns the setting's record, none when it was not asked for."""
        if self._latency_us is None:
            return []
        item = Setting("held", "cpu_dma_latency", CPU_DMA_LATENCY, str(self._latency_us))
        try:
            self._handle = self._host.open(CPU_DMA_LATENCY, os.O_RDWR)
            before = struct.unpack("=i", os.pread(self._handle, 4, 0))[0]
            os.write(self._handle, struct.pack("=i", self._latency_us))
            limit = struct.unpack("=i", os.pread(self._handle, 4, 0))[0]
        except (OSError, struct.error) as error:
            return [replace(item, effective=None, outcome="not_applicable", message=str(error))]
        # Another process may ask for a shorter one, which is as good.
        outcome = "changed" if limit <= self._latency_us else "failed"
        return [replace(item, before=str(before), effective=str(limit), outcome=outcome, message="")]

    def preview(self) -> list[Setting]:
        """Return what `hold` would find, without holding it."""
        if self._latency_us is None:
            return []
        before = wake_up_limit_us(self._host)
        outcome = "not_applicable" if before is None else "unchanged" if before <= self._latency_us else "changed"
        shown = None if before is None else str(before)
        item = Setting("held", "cpu_dma_latency", CPU_DMA_LATENCY, str(self._latency_us))
        return [replace(item, before=shown, outcome=outcome)]

    def release(self) -> None:
        """Let the kernel sleep deeply again."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
