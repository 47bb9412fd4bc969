# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module iomemory: bring a card to a state (attached, detached, formatted), light its LEDs, set the driver's delay.

A format is the caller's, since it goes through the guard, like every other purge.
"""

from __future__ import annotations

import typing as t

from ..core.files import STATE_DIR
from ..core.host import BOOT_ID, Host
from . import iomemory, iomemory_dma, iomemory_pci
from .iomemory import ATTACHED, DETACHED, UNKNOWN, Card
from .settings_record import SettingsRecord
from .vendor_tool import ToolError, locked

FORMATTED = "formatted"
STATES = (ATTACHED, DETACHED, FORMATTED)
_TOOL = "iomemory"
# Two roundings lie between the requested per cent and the sectors that the card shows.
_PCT_APART = 1
# purge.guarded_format.format_guarded.
Format = t.Callable[[Host, Card, int, int, t.Optional[str], bool], Card]
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


class CardChange(t.NamedTuple):
    """What was done to a card, or would be: in check mode, and for a format in plan mode."""

    changed: bool
    before: Card
    after: Card
    commands: list[list[str]]
    message: str


def ensure_state(
    host: Host, serial: str, state: str, options: t.Mapping[str, t.Any], check: bool, format_card: Format
) -> CardChange:
    """Bring the card with this serial number to a state. Raises ToolError.

    options: sector_bytes, size_pct, mode, state_dir (of the ledger). format_card: formats a card that may be erased.
    """
    card = iomemory.find(host, serial)
    if card.state == UNKNOWN:
        raise ToolError(f"{card.label} is neither attached nor detached; fio-status says: {card.trouble}")
    if state == FORMATTED:
        return _format(host, card, options, check, format_card)
    if card.state == state:
        return CardChange(False, card, card, [], "")
    argv = iomemory.attach_arguments(card.control) if state == ATTACHED else iomemory.detach_arguments(card.control)
    after = card._replace(state=state, block=None) if check else _switch(host, card, argv, state)
    return CardChange(True, card, after, [argv], "")


def _switch(host: Host, card: Card, argv: list[str], state: str) -> Card:
    with locked(card.serial, _TOOL):
        iomemory.run(host, argv, iomemory.TIMEOUT_S * 10)  # an attach after a power loss scans the card
        after = iomemory.find(host, card.serial)
    if after.state != state:
        raise ToolError(f"{card.label} is {after.state} after {' '.join(argv)}")
    return after


def _format(host: Host, card: Card, options: t.Mapping[str, t.Any], check: bool, format_card: Format) -> CardChange:
    sector_bytes = options.get("sector_bytes") or card.sector_bytes
    size_pct = options.get("size_pct") or card.size_pct
    if not sector_bytes or not size_pct:
        raise ToolError(f"{card.serial}: fio-status does not show how it is formatted; give sector_bytes and size_pct")
    commands = iomemory.format_commands(card.control, sector_bytes, size_pct)
    if card.state != ATTACHED:
        raise ToolError(
            f"{card.label} is not attached, so the guard can't examine its data. Attach it first (state: attached)"
        )
    if card.size_pct is None and options.get("size_pct"):
        raise ToolError(
            f"{card.serial}: its advertised capacity can't be read from its name, so whether it is at {size_pct} % "
            "is not known; purge it by playbooks/purge.yml"
        )
    if card.sector_bytes == sector_bytes and abs((card.size_pct or size_pct) - size_pct) <= _PCT_APART:
        return CardChange(False, card, card, [], "")
    destructive = options.get("mode") == "destructive"
    erase = destructive and not check
    after = format_card(host, card, sector_bytes, size_pct, options.get("state_dir"), erase)
    message = (
        ""
        if check or destructive
        else f"{card.serial} would be ERASED and reformatted; nothing was done, since mode is not destructive"
    )
    return CardChange(check or destructive, card, after, commands, message)


def set_beacon(host: Host, serial: str, lit: bool, state_dir: str, check: bool) -> bool:
    """Switch the card's LEDs; return whether that is a change by the record, as the card does not show it.

    Raises ToolError.
    """
    card = iomemory.find(host, serial)
    record = SettingsRecord(state_dir, _TOOL, serial.strip())
    boot = host.get(BOOT_ID) or ""
    saved = record.read()
    changed = (saved.get("beacon") is True and saved.get("boot_id") == boot) != lit
    if check:
        return changed
    # Sent in any case: somebody may have pressed it out.
    iomemory.run(host, iomemory.beacon_arguments(card.control, lit))
    if changed:
        record.write(beacon=lit, boot_id=boot)
    return changed


def _diff(card: Card | None) -> dict[str, t.Any]:
    """Return what the module's diff shows of a card."""
    return dict(iomemory.format_facts(card), state=card.state) if card else {}


def module_result(host: Host, given: dict[str, t.Any], check: bool, format_card: Format) -> dict[str, t.Any]:
    """Return the module's result. format_card: formats a card that may be erased. Raises ToolError, OSError."""
    delay = iomemory_dma.apply(host, given["dma_delay"], check)
    done = ensure_state(host, given["serial"], given["state"], given, check, format_card) if given["state"] else None
    lit = given["beacon"] is not None and set_beacon(host, given["serial"], given["beacon"], given["state_dir"], check)
    report = iomemory.keep_bugreport(host, given["state_dir"]) if given["bugreport"] and not check else None
    cards = iomemory.cards(host) if host.which("fio-status") or given["serial"] or given["pci_check"] else []
    result = {
        "changed": bool(delay.changed or lit or given["bugreport"] or (done and done.changed)),
        "cards": [iomemory.facts(card) for card in cards],
        "commands": done.commands if done else [],
        "message": done.message if done else "",
        "dma_delay": {"configured": delay.configured, "effective": delay.effective},
        "driver_reload_required": delay.driver_reload_required,
        "diff": {
            "before": dict(_diff(done and done.before), dma_delay=delay.before),
            "after": dict(_diff(done and done.after), dma_delay=delay.configured),
        },
    }
    if given["pci_check"]:
        result["findings"] = iomemory_pci.check(host, cards)
    if report:
        result["bugreport"] = report
    return result
