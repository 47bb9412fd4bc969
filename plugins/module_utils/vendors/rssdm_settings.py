# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module rssdm: bring the settings of a P320h or P420m to what is requested, or restore them.

They take effect at a power cycle, which no software can tell from a reboot. So what was set is recorded with the boot
id: a value is pending until another boot shows it, and a second run sends nothing again. What a drive had before the
first change is recorded too, until it was restored and a power cycle has made it active.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import replace

from ..core.files import STATE_DIR
from ..core.host import BOOT_ID, Host
from ..records.base import Scalar
from ..records.vendor_tools import RssdmRecord
from . import rssdm
from .rssdm import INTERRUPT_COALESCING, POWER_LIMITING, WRITE_CACHE, RssdmDrive, Settings
from .settings_record import SettingsRecord, read_all
from .vendor_tool import ToolError, locked

SETTINGS = (POWER_LIMITING, INTERRUPT_COALESCING, WRITE_CACHE)
# The commands of rssdm (-L, -M, -S, -T, -X) are capital letters; -n, -p and -i are taken.
_CACHE_FLAG = re.compile(r"-[a-z]|--[a-z][a-z-]+")
_OTHER_FLAGS = ("-n", "-p", "-i")
POWER_CYCLE = (
    "Power-cycle the host (a reboot is not enough), then run this again: it checks the new values by rssdm -L -d."
)

# The fields of a drive that the module returns.
SHOWN = ("drive_id", "serial", "model", "family", "form_factor", "firmware", "device", "pci_address", "status")
OPTIONS: dict[str, t.Any] = {
    "state": {"type": "str", "choices": ["present", "restored"], "default": "present"},
    "serial": {"type": "str"},
    "power_limiting": {"type": "bool"},
    "interrupt_coalescing": {"type": "str"},
    "queue_depth": {"type": "int"},
    "write_cache": {"type": "bool"},
    "write_cache_flag": {"type": "str"},
    "state_dir": {"type": "path", "default": STATE_DIR},
}


class DriveChange(t.NamedTuple):
    """What was done to a drive. current: as `rssdm -L -d` shows; pending: set, and active after a power cycle."""

    drive: RssdmDrive
    changed: bool
    before: Settings
    current: Settings
    pending: Settings
    commands: list[list[str]]
    message: str


class Restored(t.NamedTuple):
    """What came of a recorded drive: either `change`, or the `problem` that kept it from being restored."""

    serial: str
    change: DriveChange | None
    problem: str


def requested(parameters: t.Mapping[str, t.Any]) -> Settings:
    """Return {setting: value} of the module's arguments, without the settings that are left alone. Raises ToolError."""
    found: Settings = {}
    if parameters.get("power_limiting") is not None:
        found[POWER_LIMITING] = bool(parameters["power_limiting"])
    if parameters.get("interrupt_coalescing") is not None:
        found[INTERRUPT_COALESCING] = rssdm.coalescing_value(parameters["interrupt_coalescing"])
    depth = parameters.get("queue_depth")
    if depth is not None:
        if depth < 1:
            raise ToolError(f"queue_depth {depth} is refused: it is the workload's threads times depth, at least 1")
        value = rssdm.coalescing_for_depth(depth)
        if value is not None:
            found[INTERRUPT_COALESCING] = value
    if parameters.get("write_cache") is not None:
        flag = parameters.get("write_cache_flag") or ""
        if not _CACHE_FLAG.fullmatch(flag) or flag in _OTHER_FLAGS:
            raise ToolError(
                f"write_cache needs write_cache_flag, one lower-case option such as -w, and not {flag!r}: TN-FD-15 "
                "says that rssdm sets the P320h's "
                "write cache, but prints no option for it; take it from the help of the rssdm that is installed"
            )
        found[WRITE_CACHE] = bool(parameters["write_cache"])
    return found


def apply(
    host: Host,
    serial: str,
    requested: Settings,
    state_dir: str,
    write_cache_flag: str = "",
    check: bool = False,
) -> DriveChange:
    """Set what differs, read it back, and record what is pending and what was there before. Raises ToolError.

    check: change nothing.
    """
    drive, shown = rssdm.read_settings(host, serial)
    _refuse(drive, requested)
    record = SettingsRecord(RssdmRecord, state_dir, rssdm.TOOL, serial.strip())
    boot = host.get(BOOT_ID) or ""
    saved = record.read()
    waiting = _pending(saved, shown, boot)
    commands = _commands(drive, requested, shown, waiting, write_cache_flag)
    new = {setting: requested[setting] for setting in commands}
    current = shown
    if not check:
        sent: list[str] = []
        # A value that is changed a second time was set by this module already.
        originals = {**{setting: shown[setting] for setting in commands}, **(_known(saved.originals) if saved else {})}
        known_flag = saved.write_cache_flag if saved else ""
        flag = write_cache_flag if WRITE_CACHE in commands else known_flag
        saving = RssdmRecord(boot, serial.strip(), flag, waiting, originals)
        try:
            if new:
                _save(record, saving)
                drive, current = _send(host, drive, commands, sent)
        finally:  # also what was sent before one of them failed
            unsettled = {**waiting, **{setting: requested[setting] for setting in sent}}
            changed = {
                setting: value
                for setting, value in originals.items()
                if setting in unsettled or current.get(setting) != value
            }
            _save(record, replace(saving, pending=unsettled, originals=changed))
    pending = {**waiting, **new}
    message = _message(drive, pending, record.read(), boot)
    return DriveChange(drive, bool(new), dict(shown, **waiting), current, pending, list(commands.values()), message)


def restore(host: Host, state_dir: str, check: bool = False) -> list[Restored]:
    """Restore what each recorded drive had before the first change; one that fails does not stop the others."""
    done = []
    for saved in read_all(RssdmRecord, state_dir, rssdm.TOOL):
        originals, serial = _known(saved.originals), saved.serial
        if not originals or not serial:
            continue
        try:
            change = apply(host, serial, originals, state_dir, saved.write_cache_flag, check)
            done.append(Restored(serial, change, ""))
        except ToolError as error:
            values = _listed(originals)
            advice = (
                "Fix that and restore again; for a drive that is gone for good, remove "
                f"{SettingsRecord(RssdmRecord, state_dir, rssdm.TOOL, serial).path}"
            )
            done.append(Restored(serial, None, f"drive {serial} did not get back {values}: {error}. {advice}"))
    return done


def _refuse(drive: RssdmDrive, requested: Settings) -> None:
    problems = [problem for problem in (rssdm.refusal(drive, setting) for setting in requested) if problem]
    if problems:
        raise ToolError(
            "drive {} (rssdm id {}): {}".format(drive.serial, drive.drive_id, "; ".join(dict.fromkeys(problems)))
        )


def _pending(saved: RssdmRecord | None, shown: Settings, boot: str) -> Settings:
    """Return what an earlier run set and no power cycle can have made active yet, or has not."""
    if saved is None:
        return {}
    same_boot = bool(boot) and saved.boot_id == boot
    return {
        setting: value for setting, value in _known(saved.pending).items() if same_boot or shown.get(setting) != value
    }


def read_pending(host: Host, serial: str, shown: Settings, state_dir: str) -> Settings:
    """Return what was set on a drive and is not active yet. shown: its settings as `rssdm -L -d` shows them."""
    record = SettingsRecord(RssdmRecord, state_dir, rssdm.TOOL, serial.strip())
    return _pending(record.read(), shown, host.get(BOOT_ID) or "")


def _known(values: Settings) -> Settings:
    """Return those of a record that this version knows."""
    return {setting: value for setting, value in values.items() if setting in SETTINGS}


def _commands(
    drive: RssdmDrive, requested: Settings, shown: Settings, waiting: Settings, flag: str
) -> dict[str, list[str]]:
    commands = {}
    for setting, value in requested.items():
        if shown.get(setting) is None:
            fields = ", ".join(sorted(drive.fields)) or "nothing"
            raise ToolError(
                f"drive {drive.serial}: rssdm -L -d does not show its {setting.replace('_', ' ')}, so it could not be "
                f"verified; it shows: {fields}. Install the latest support pack"
            )
        if waiting.get(setting, shown[setting]) != value:
            commands[setting] = rssdm.set_arguments(setting, value, drive.drive_id, flag)
    return commands


def _send(
    host: Host, drive: RssdmDrive, commands: t.Mapping[str, list[str]], sent: list[str]
) -> tuple[RssdmDrive, Settings]:
    """Run the commands under the drive's lock; `sent` gets the settings that were made."""
    with locked(drive.serial, rssdm.TOOL):
        for setting, argv in commands.items():
            now = rssdm.find(host, drive.serial).drive_id
            if now != drive.drive_id:
                raise ToolError(
                    f"drive {drive.serial} had the rssdm id {drive.drive_id} and has {now} now; run this again"
                )
            problem = rssdm.failure_text(host.run(argv, timeout_s=rssdm.TIMEOUT_S))
            if problem:
                raise ToolError("drive {}: {} was not set: {}".format(drive.serial, setting.replace("_", " "), problem))
            sent.append(setting)
        return rssdm.read_settings(host, drive.serial)


def _save(record: SettingsRecord[RssdmRecord], new: RssdmRecord) -> None:
    """Keep the record while something is pending or to be restored; its boot is that in which the pending values were
    set.
    """
    if not new.pending and not new.originals:
        record.remove()
        return
    saved = record.read()
    if saved and saved.pending == new.pending:
        new = replace(new, boot_id=saved.boot_id)
    if saved != new:
        record.write(new)


def _message(drive: RssdmDrive, pending: Settings, saved: RssdmRecord | None, boot: str) -> str:
    if not pending:
        return ""
    rebooted = (
        " The host has booted since without it taking effect: that was a reboot, not a power cycle."
        if saved and saved.boot_id != boot
        else ""
    )
    return f"drive {drive.serial}: {_listed(pending)} is set and waits for a power cycle.{rebooted} {POWER_CYCLE}"


def _listed(values: Settings) -> str:
    return ", ".join(f"{setting} = {value}" for setting, value in sorted(format_values(values).items()))


def format_values(values: Settings) -> dict[str, Scalar]:
    """Return values as people and playbooks write them: coalescing in hexadecimal."""
    return {
        setting: f"0x{value:X}" if setting == INTERRUPT_COALESCING and isinstance(value, int) else value
        for setting, value in values.items()
    }


def module_result(host: Host, given: t.Mapping[str, t.Any], check: bool) -> dict[str, t.Any]:
    """Return the module's result. Raises ToolError, OSError."""
    if given["state"] == "restored":
        return _restored_result(restore(host, given["state_dir"], check))
    flag = given["write_cache_flag"] or ""
    return _drive_result(apply(host, given["serial"], requested(given), given["state_dir"], flag, check))


def _drive_result(done: DriveChange) -> dict[str, t.Any]:
    """Return the result for one drive."""
    return {
        "changed": done.changed,
        "drive": {key: getattr(done.drive, key) for key in SHOWN},
        "current": format_values(done.current),
        "pending": format_values(done.pending),
        "power_cycle_required": bool(done.pending),
        "message": done.message,
        "commands": done.commands,
        "diff": {"before": format_values(done.before), "after": format_values({**done.before, **done.pending})},
    }


def _restored_result(done: t.Sequence[Restored]) -> dict[str, t.Any]:
    """Return the result for all recorded drives. Raises ToolError with those whose settings were not restored."""
    problems = [entry.problem for entry in done if entry.problem]
    if problems:
        raise ToolError(" ".join(problems))
    changes = [(entry.serial, entry.change) for entry in done if entry.change]
    return {
        "changed": any(change.changed for _serial, change in changes),
        "restored": [
            {"serial": serial, "current": format_values(change.current), "pending": format_values(change.pending)}
            for serial, change in changes
        ],
        "power_cycle_required": any(bool(change.pending) for _serial, change in changes),
        "message": " ".join(change.message for _serial, change in changes if change.message),
        "commands": [argv for _serial, change in changes for argv in change.commands],
        "diff": {
            "before": {serial: format_values(change.before) for serial, change in changes},
            "after": {serial: format_values({**change.before, **change.pending}) for serial, change in changes},
        },
    }
