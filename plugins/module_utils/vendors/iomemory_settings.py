# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module iomemory: bring a card to a state (attached, detached, formatted), light its LEDs, set the driver's delay.

A format is the caller's, since it goes through the guard, like every other purge.

The delay is `iodrive_dma_delay`, a parameter of ioMemory's driver: kept in a modprobe options file that this collection
owns, in effect once the driver is reloaded. Source: ioMemory VSL Peak Performance Guide, "Decreasing Latency for
Writes": 0 to 31, 16 is the default (5 µs), 31 adds 10 µs, 0 none.
"""

from __future__ import annotations

import os
import re
import typing as t
from dataclasses import asdict, replace

from ..core.files import STATE_DIR, write_atomic
from ..core.host import BOOT_ID, Host
from ..records.vendor_tools import BeaconRecord, Card
from . import iomemory, iomemory_pci
from .iomemory import ATTACHED, DETACHED, UNKNOWN
from .settings_record import SettingsRecord
from .vendor_tool import ToolError, locked

DMA_PARAMETER = "iodrive_dma_delay"
DMA_DEFAULT, DMA_LARGEST = 16, 31
MODPROBE_FOLDER = "/etc/modprobe.d"
MODPROBE_FILE = MODPROBE_FOLDER + "/ssdlab-fleet-iomemory.conf"
_DRIVER_MODULES = ("iomemory_vsl", "iomemory_vsl4")
_OPTIONS_HEAD = "# Written by ssdlab.fleet.iomemory; its dma_delay: default removes this file.\n"

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


class FormatOptions(t.NamedTuple):
    """How a card is to be formatted; None: as it is. state_dir: of the ledger."""

    sector_bytes: int | None = None
    size_pct: int | None = None
    mode: str = "plan"
    state_dir: str | None = None


class DmaDelay(t.NamedTuple):
    """configured: in the options file, None without it. effective: of the loaded driver, None if none is loaded."""

    changed: bool
    before: int | None
    configured: int | None
    effective: int | None
    driver_reload_required: bool


def parse_dma_delay(text: object) -> int | str | None:
    """Parse the module's argument: 0 to 31 or `default`; None leaves the delay alone. Raises ToolError."""
    if text is None or text == "default":
        return "default" if text else None
    if re.fullmatch(r"[0-9]{1,2}", str(text)) and int(str(text)) <= DMA_LARGEST:
        return int(str(text))
    raise ToolError(
        f"dma_delay {text} is refused: iodrive_dma_delay is 0 (none) to {DMA_LARGEST} (10 us), the word default gives "
        f"{DMA_DEFAULT} (5 us)"
    )


def apply_dma_delay(host: Host, text: object, check: bool = False) -> DmaDelay:
    """Write or remove the options file, and return whether the driver must be reloaded. Raises ToolError, OSError."""
    requested = parse_dma_delay(text)
    driver = next((name for name in _DRIVER_MODULES if host.exists("/sys/module/" + name)), None)
    before = _configured_delay(host)
    effective = _effective_delay(host, driver)
    if requested is None:
        return DmaDelay(False, before, before, effective, False)
    others = _other_files(host)
    if others:
        raise ToolError(
            "{} sets {} as well; remove it there first, since it is not certain which file counts".format(
                ", ".join(others), DMA_PARAMETER
            )
        )
    configured = None if requested == "default" else int(requested)
    module = (driver or _DRIVER_MODULES[0]).replace("_", "-")
    line = None if configured is None else f"options {module} {DMA_PARAMETER}={configured}\n"
    changed = _options_text(host) != (_OPTIONS_HEAD + line if line else None)
    if changed and not check:
        _write_options(host, _OPTIONS_HEAD + line if line else None)
    after_reload = DMA_DEFAULT if configured is None else configured
    return DmaDelay(changed, before, configured, effective, effective is not None and effective != after_reload)


def _options_text(host: Host) -> str | None:
    try:
        with open(host.path(MODPROBE_FILE), encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return None


def _write_options(host: Host, text: str | None) -> None:
    if text is None:
        os.unlink(host.path(MODPROBE_FILE))
        return
    os.makedirs(host.path(MODPROBE_FOLDER), mode=0o755, exist_ok=True)
    write_atomic(host.path(MODPROBE_FILE), text)


def _configured_delay(host: Host) -> int | None:
    match = re.search(rf"^options\s.*\b{DMA_PARAMETER}=([0-9]{{1,9}})", _options_text(host) or "", re.MULTILINE)
    return int(match.group(1)) if match else None


def _effective_delay(host: Host, driver: str | None) -> int | None:
    text = host.get(f"/sys/module/{driver}/parameters/{DMA_PARAMETER}") if driver else None
    return int(text) if text is not None and re.fullmatch(r"[0-9]{1,9}", text) else None


def _other_files(host: Host) -> list[str]:
    """Return the other options files that set the parameter."""
    places = host.glob(MODPROBE_FOLDER + "/*.conf") + host.glob("/etc/modprobe.conf")
    setting = re.compile(rf"^\s*options\s.*\b{DMA_PARAMETER}=", re.MULTILINE)
    return [path for path in places if path != MODPROBE_FILE and setting.search(host.get(path) or "")]


class CardChange(t.NamedTuple):
    """What was done to a card, or would be: in check mode, and for a format in plan mode."""

    changed: bool
    before: Card
    after: Card
    commands: list[list[str]]
    message: str


def ensure_state(
    host: Host, serial: str, state: str, options: FormatOptions, check: bool, format_card: Format
) -> CardChange:
    """Bring the card with this serial number to a state. Raises ToolError.

    format_card: formats a card that may be erased.
    """
    card = iomemory.find(host, serial)
    if card.state == UNKNOWN:
        raise ToolError(f"{card.label} is neither attached nor detached; fio-status says: {card.trouble}")
    if state == FORMATTED:
        return _format(host, card, options, check, format_card)
    if card.state == state:
        return CardChange(False, card, card, [], "")
    argv = iomemory.attach_arguments(card.control) if state == ATTACHED else iomemory.detach_arguments(card.control)
    after = replace(card, state=state, block=None) if check else _switch(host, card, argv, state)
    return CardChange(True, card, after, [argv], "")


def _switch(host: Host, card: Card, argv: list[str], state: str) -> Card:
    with locked(card.serial, _TOOL):
        iomemory.run(host, argv, iomemory.TIMEOUT_S * 10)  # an attach after a power loss scans the card
        after = iomemory.find(host, card.serial)
    if after.state != state:
        raise ToolError(f"{card.label} is {after.state} after {' '.join(argv)}")
    return after


def _format(host: Host, card: Card, options: FormatOptions, check: bool, format_card: Format) -> CardChange:
    sector_bytes = options.sector_bytes or card.sector_bytes
    size_pct = options.size_pct or card.size_pct
    if not sector_bytes or not size_pct:
        raise ToolError(f"{card.serial}: fio-status does not show how it is formatted; give sector_bytes and size_pct")
    commands = iomemory.format_commands(card.control, sector_bytes, size_pct)
    if card.state != ATTACHED:
        raise ToolError(
            f"{card.label} is not attached, so the guard can't examine its data. Attach it first (state: attached)"
        )
    if card.size_pct is None and options.size_pct:
        raise ToolError(
            f"{card.serial}: its advertised capacity can't be read from its name, so whether it is at {size_pct} % "
            "is not known; purge it by playbooks/purge.yml"
        )
    if card.sector_bytes == sector_bytes and abs((card.size_pct or size_pct) - size_pct) <= _PCT_APART:
        return CardChange(False, card, card, [], "")
    destructive = options.mode == "destructive"
    erase = destructive and not check
    after = format_card(host, card, sector_bytes, size_pct, options.state_dir, erase)
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
    record = SettingsRecord(BeaconRecord, state_dir, _TOOL, serial.strip())
    boot = host.get(BOOT_ID) or ""
    changed = (record.read() == BeaconRecord(True, boot)) != lit
    if check:
        return changed
    # Sent in any case: somebody may have pressed it out.
    iomemory.run(host, iomemory.beacon_arguments(card.control, lit))
    if changed:
        record.write(BeaconRecord(lit, boot))
    return changed


def _diff(card: Card | None, delay: int | None) -> dict[str, int | str | None]:
    """Return what the module's diff shows of a card and of the driver's delay."""
    return {**(dict(asdict(card.format), state=card.state) if card else {}), "dma_delay": delay}


def module_result(host: Host, given: dict[str, t.Any], check: bool, format_card: Format) -> dict[str, t.Any]:
    """Return the module's result. format_card: formats a card that may be erased. Raises ToolError, OSError."""
    delay = apply_dma_delay(host, given["dma_delay"], check)
    options = FormatOptions(*(given[name] for name in FormatOptions._fields))
    done = ensure_state(host, given["serial"], given["state"], options, check, format_card) if given["state"] else None
    lit = given["beacon"] is not None and set_beacon(host, given["serial"], given["beacon"], given["state_dir"], check)
    report = iomemory.keep_bugreport(host, given["state_dir"]) if given["bugreport"] and not check else None
    cards = iomemory.cards(host) if host.which("fio-status") or given["serial"] or given["pci_check"] else []
    result = {
        "changed": bool(delay.changed or lit or given["bugreport"] or (done and done.changed)),
        "cards": [asdict(card) for card in cards],
        "commands": done.commands if done else [],
        "message": done.message if done else "",
        "dma_delay": {"configured": delay.configured, "effective": delay.effective},
        "driver_reload_required": delay.driver_reload_required,
        "diff": {
            "before": _diff(done and done.before, delay.before),
            "after": _diff(done and done.after, delay.configured),
        },
    }
    if given["pci_check"]:
        result["findings"] = [asdict(finding) for finding in iomemory_pci.check(host, cards)]
    if report:
        result["bugreport"] = report
    return result
