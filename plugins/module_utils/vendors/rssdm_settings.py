# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring the settings of a P320h or P420m to what is wanted. They take effect at a power cycle, which no software can
tell from a reboot.

So what was set is recorded with the boot id: a value is pending until another boot shows it, and a second run sends
nothing again. What a drive had before the first change is recorded too, until `restore` has put it back and a power
cycle has brought it.
"""

from __future__ import annotations

import re
import typing as t

from ..core.files import STATE_DIR
from ..core.host import BOOT_ID, Host
from . import rssdm
from .rssdm import INTERRUPT_COALESCING, POWER_LIMITING, WRITE_CACHE, RssdmDrive
from .settings_record import Record, records
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
    """What the module returns. current: as `rssdm -L -d` shows; pending: set, not in effect before a power cycle."""

    drive: RssdmDrive
    changed: bool
    before: dict[str, t.Any]
    current: dict[str, t.Any]
    pending: dict[str, t.Any]
    commands: list[list[str]]
    message: str


def wanted(parameters: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """What the module's arguments ask for: {setting: value}; a setting that is left alone is not in it. Raises
    ToolError.
    """
    asked: dict[str, t.Any] = {}
    if parameters.get("power_limiting") is not None:
        asked[POWER_LIMITING] = bool(parameters["power_limiting"])
    if parameters.get("interrupt_coalescing") is not None:
        asked[INTERRUPT_COALESCING] = rssdm.coalescing_value(parameters["interrupt_coalescing"])
    depth = parameters.get("queue_depth")
    if depth is not None:
        if depth < 1:
            raise ToolError(f"queue_depth {depth} is refused: it is the workload's threads times depth, at least 1")
        value = rssdm.coalescing_for_depth(depth)
        if value is not None:
            asked[INTERRUPT_COALESCING] = value
    if parameters.get("write_cache") is not None:
        flag = parameters.get("write_cache_flag") or ""
        if not _CACHE_FLAG.fullmatch(flag) or flag in _OTHER_FLAGS:
            raise ToolError(
                f"write_cache needs write_cache_flag, one lower-case option such as -w, and not {flag!r}: TN-FD-15 "
                "says that rssdm sets the P320h's "
                "write cache, but prints no option for it; take it from the help of the rssdm that is installed"
            )
        asked[WRITE_CACHE] = bool(parameters["write_cache"])
    return asked


class Restored(t.NamedTuple):
    """What came of one recorded drive. outcome: its DriveChange; problem: why it could not be put back, and what to do.
    One of them is empty.
    """

    serial: str
    outcome: DriveChange | None
    problem: str


def apply(
    host: Host,
    serial: str,
    asked: t.Mapping[str, t.Any],
    state_dir: str,
    write_cache_flag: str = "",
    check: bool = False,
) -> DriveChange:
    """Set what differs, read back, and record what is pending and what was there before. `check`: change nothing.
    Raises ToolError.
    """
    drive, seen = rssdm.read(host, serial)
    _refuse(drive, asked)
    record = Record(state_dir, rssdm.TOOL, serial.strip())
    boot = host.get(BOOT_ID) or ""
    recorded = record.read()
    kept = _pending(recorded, seen, boot)
    commands = _commands(drive, asked, seen, kept, write_cache_flag)
    before = dict(seen, **kept)
    new = {setting: asked[setting] for setting in commands}
    current = seen
    if not check:
        sent: list[str] = []
        # Before the first change: a value that is changed a second time was ours already.
        originals = {**{setting: seen[setting] for setting in commands}, **_originals(recorded)}
        flag = write_cache_flag if WRITE_CACHE in commands else recorded.get("write_cache_flag", "")
        about = {"boot_id": boot, "serial": serial.strip(), "write_cache_flag": flag}
        try:
            if new:
                _remember(record, {**about, "pending": kept, "originals": originals})
                drive, current = _send(host, drive, commands, sent)
        finally:  # also what was sent before one of them failed
            waiting = {**kept, **{setting: asked[setting] for setting in sent}}
            changed = {
                setting: value
                for setting, value in originals.items()
                if setting in waiting or current.get(setting) != value
            }
            _remember(record, {**about, "pending": waiting, "originals": changed})
    pending = {**kept, **new}
    message = _message(drive, pending, record.read(), boot)
    return DriveChange(drive, bool(new), before, current, pending, list(commands.values()), message)


def restore(host: Host, state_dir: str, check: bool = False) -> list[Restored]:
    """Put back, on every drive that is recorded, what it had before our first change. A drive that fails does not keep
    the others from it.
    """
    done = []
    for recorded in records(state_dir, rssdm.TOOL):
        originals, serial = _originals(recorded), str(recorded.get("serial") or "")
        if not originals or not serial:
            continue
        try:
            done.append(
                Restored(
                    serial,
                    apply(host, serial, originals, state_dir, str(recorded.get("write_cache_flag") or ""), check),
                    "",
                )
            )
        except ToolError as error:
            kept = ", ".join(f"{setting} = {shown(setting, value)}" for setting, value in sorted(originals.items()))
            advice = (
                "Fix that and restore again; for a drive that is gone for good, remove "
                f"{Record(state_dir, rssdm.TOOL, serial).path}"
            )
            done.append(Restored(serial, None, f"drive {serial} did not get back {kept}: {error}. {advice}"))
    return done


def _refuse(drive: RssdmDrive, asked: t.Mapping[str, t.Any]) -> None:
    problems = [problem for problem in (rssdm.refusal(drive, setting) for setting in asked) if problem]
    if problems:
        raise ToolError(
            "drive {} (rssdm id {}): {}".format(drive.serial, drive.drive_id, "; ".join(dict.fromkeys(problems)))
        )


def _pending(kept: t.Mapping[str, t.Any], seen: t.Mapping[str, t.Any], boot: str) -> dict[str, t.Any]:
    """What an earlier run set and no power cycle can have brought into effect yet, or has not."""
    values = kept.get("pending")
    if not isinstance(values, t.Mapping):
        return {}
    same_boot = bool(boot) and kept.get("boot_id") == boot
    return {
        setting: value
        for setting, value in values.items()
        if setting in SETTINGS and (same_boot or seen.get(setting) != value)
    }


def pending(host: Host, serial: str, seen: t.Mapping[str, t.Any], state_dir: str) -> dict[str, t.Any]:
    """What was set on a drive and is not in force yet. seen: its settings as `rssdm -L -d` shows them."""
    return _pending(Record(state_dir, rssdm.TOOL, serial.strip()).read(), seen, host.get(BOOT_ID) or "")


def _originals(kept: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """What the drive had before the first change of ours."""
    values = kept.get("originals")
    return (
        {setting: value for setting, value in values.items() if setting in SETTINGS}
        if isinstance(values, t.Mapping)
        else {}
    )


def _commands(
    drive: RssdmDrive, asked: t.Mapping[str, t.Any], seen: t.Mapping[str, t.Any], kept: t.Mapping[str, t.Any], flag: str
) -> dict[str, list[str]]:
    commands = {}
    for setting, value in asked.items():
        if seen.get(setting) is None:
            raise ToolError(
                (
                    "drive {}: rssdm -L -d does not show its {}, so it could not be verified; it shows: {}. Install "
                    "the "
                    "latest support pack"
                ).format(drive.serial, setting.replace("_", " "), ", ".join(sorted(drive.fields)) or "nothing")
            )
        if kept.get(setting, seen[setting]) != value:
            commands[setting] = rssdm.set_arguments(setting, value, drive.drive_id, flag)
    return commands


def _send(
    host: Host, drive: RssdmDrive, commands: t.Mapping[str, list[str]], sent: list[str]
) -> tuple[RssdmDrive, dict[str, t.Any]]:
    """Run them under the drive's lock, as a drive that is being measured is not changed; `sent` gets the settings that
    were set.
    """
    with locked(drive.serial, rssdm.TOOL):
        for setting, argv in commands.items():
            _same_id(rssdm.find(rssdm.drives(host), drive.serial), drive)
            problem = rssdm.parse_status(host.run(argv, timeout_s=rssdm.TIMEOUT_S))
            if problem:
                raise ToolError("drive {}: {} was not set: {}".format(drive.serial, setting.replace("_", " "), problem))
            sent.append(setting)
        return rssdm.read(host, drive.serial)


def _same_id(now: RssdmDrive, then: RssdmDrive) -> None:
    if now.drive_id != then.drive_id:
        raise ToolError(
            f"drive {then.serial} had the rssdm id {then.drive_id} and has {now.drive_id} now; run this again"
        )


def _remember(record: Record, fields: t.Mapping[str, t.Any]) -> None:
    """Keep the record while something is pending or has yet to be put back; the boot is that in which the pending
    values were set.
    """
    if not fields["pending"] and not fields["originals"]:
        record.remove()
        return
    kept = record.read()
    if kept.get("pending") == fields["pending"]:
        fields = dict(fields, boot_id=kept.get("boot_id", fields["boot_id"]))
    if any(kept.get(name) != value for name, value in fields.items()):
        record.write(**fields)


def _message(drive: RssdmDrive, pending: t.Mapping[str, t.Any], kept: t.Mapping[str, t.Any], boot: str) -> str:
    if not pending:
        return ""
    names = ", ".join(f"{setting} = {shown(setting, value)}" for setting, value in sorted(pending.items()))
    booted = (
        " The host has booted since without it taking effect: that was a reboot, not a power cycle."
        if kept and kept.get("boot_id") != boot
        else ""
    )
    return f"drive {drive.serial}: {names} is set and waits for a power cycle.{booted} {POWER_CYCLE}"


def shown(setting: str, value: t.Any | None) -> t.Any:
    """A value as people and playbooks write it: coalescing in hexadecimal."""
    return f"0x{value:X}" if setting == INTERRUPT_COALESCING and isinstance(value, int) else value


def show(values: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """All of `shown`."""
    return {setting: shown(setting, value) for setting, value in values.items()}


def answer(host: Host, given: t.Mapping[str, t.Any], check: bool) -> dict[str, t.Any]:
    """The module's result. Raises ToolError, OSError."""
    if given["state"] == "restored":
        return _of_all(restore(host, given["state_dir"], check))
    flag = given["write_cache_flag"] or ""
    return _of_one(apply(host, given["serial"], wanted(given), given["state_dir"], flag, check))


def _of_one(done: DriveChange) -> dict[str, t.Any]:
    """The result for one drive."""
    return {
        "changed": done.changed,
        "drive": {key: getattr(done.drive, key) for key in SHOWN},
        "current": show(done.current),
        "pending": show(done.pending),
        "power_cycle_required": bool(done.pending),
        "message": done.message,
        "commands": done.commands,
        "diff": {"before": show(done.before), "after": show({**done.before, **done.pending})},
    }


def _of_all(done: t.Sequence[Restored]) -> dict[str, t.Any]:
    """The result for every drive that is recorded. Raises ToolError with the drives that did not get their settings
    back.
    """
    problems = [entry.problem for entry in done if entry.problem]
    if problems:
        raise ToolError(" ".join(problems))
    results = [(entry.serial, _of_one(entry.outcome)) for entry in done if entry.outcome]
    return {
        "changed": any(result["changed"] for _serial, result in results),
        "restored": [
            {"serial": serial, "current": result["current"], "pending": result["pending"]} for serial, result in results
        ],
        "power_cycle_required": any(result["power_cycle_required"] for _serial, result in results),
        "message": " ".join(result["message"] for _serial, result in results if result["message"]),
        "commands": [argv for _serial, result in results for argv in result["commands"]],
        "diff": {key: {serial: result["diff"][key] for serial, result in results} for key in ("before", "after")},
    }
