# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module iomemory: what it takes, and what it does and tells."""

from __future__ import annotations

import typing as t

from ..core.files import STATE_DIR
from ..core.host import Host
from . import iomemory, iomemory_dma, iomemory_pci
from .iomemory_settings import STATES, Format, beacon, bring, shown

OPTIONS: dict[str, t.Any] = {
    "serial": {"type": "str"},
    "state": {"type": "str", "choices": list(STATES)},
    "sector_bytes": {"type": "int", "choices": list(iomemory.SECTOR_BYTES)},
    "size_pct": {"type": "int"},
    "mode": {"type": "str", "choices": ["plan", "destructive"], "default": "plan"},
    "dma_delay": {"type": "str"},
    "beacon": {"type": "bool"},
    "pci_check": {"type": "bool", "default": False},
    "bugreport": {"type": "bool", "default": False},
    "bugreport_dir": {"type": "path"},
    "state_dir": {"type": "path", "default": STATE_DIR},
}


def answer(host: Host, given: dict[str, t.Any], check: bool, format_card: Format) -> dict[str, t.Any]:
    """Its result. format_card: formats a card that may be erased. Raises IomemoryError, OSError."""
    delay = iomemory_dma.apply(host, given["dma_delay"], check)
    done = bring(host, given["serial"], given["state"], given, check, format_card) if given["state"] else None
    lit = given["beacon"] is not None and beacon(host, given["serial"], given["beacon"], given["state_dir"], check)
    report = iomemory.kept_bugreport(host, given["state_dir"]) if given["bugreport"] and not check else None
    cards = iomemory.cards(host) if host.which("fio-status") or given["serial"] or given["pci_check"] else []
    result = {
        "changed": bool(delay.changed or lit or given["bugreport"] or (done and done.changed)),
        "cards": [iomemory.facts(card) for card in cards],
        "commands": done.commands if done else [],
        "message": done.message if done else "",
        "dma_delay": {"configured": delay.configured, "effective": delay.effective},
        "driver_reload_required": delay.driver_reload_required,
        "diff": {
            "before": dict(shown(done and done.before), dma_delay=delay.before),
            "after": dict(shown(done and done.after), dma_delay=delay.configured),
        },
    }
    if given["pci_check"]:
        result["findings"] = iomemory_pci.check(host, cards)
    if report:
        result["bugreport"] = report
    return result
