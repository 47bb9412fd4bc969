# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many memory errors a host could not correct: by then its data may be wrong, whatever a drive did with them.
Corrected ones (ce_count) change no data.

Sources: ABI/testing/sysfs-devices-edac (ue_count); arch/x86/kernel/irq.c, arch_show_interrupts: MCE, machine check
exceptions; DFR, errors that AMD's processors defer until somebody uses the data.
"""

from __future__ import annotations

import typing as t

from ..core.host import Host

_UNCORRECTED = "/sys/devices/system/edac/mc/mc*/ue_count"
_MACHINE_CHECKS = ("MCE", "DFR")

# By its source.
Counts = t.Dict[str, int]


def read(host: Host) -> Counts:
    """Return what each source that the host has counted since its boot."""
    counts = {path: host.get(path) or "" for path in host.glob(_UNCORRECTED)}
    found = {path: int(text) for path, text in counts.items() if text.isdecimal()}
    for line in (host.get("/proc/interrupts") or "").splitlines():
        name, _colon, told = line.strip().partition(":")
        if name in _MACHINE_CHECKS:
            found[name] = sum(int(word) for word in told.split() if word.isdecimal())
    return found


def new(before: Counts, after: Counts) -> int | None:
    """Return how many came between two looks, at least: an error may be in several sources. None: nobody counts."""
    rises = [after[source] - count for source, count in before.items() if source in after]
    return max([0, *rises]) if rises else None
