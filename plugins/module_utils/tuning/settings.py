# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run-time tuning of a host: record, apply, verify the effective value, put back. One path for every kind of setting
(tuning/setting_kinds.py); tuned_host.py looks whether it holds.

The record (tuning.json) is on the disk before the first change, and goes once everything is back.
"""

from __future__ import annotations

import contextlib
import json
import os
import typing as t
from dataclasses import replace

from ..core.blocking_io import InTime, in_time
from ..core.deadline import Hangs
from ..core.files import Damaged, now, read_json, write_atomic
from ..core.host import BOOT_ID, Host
from ..drive import identity
from ..drive.entry import parse
from ..records import base
from ..records.tuning import Setting, Tuning
from . import setting_kinds
from .setting_kinds import KINDS, current

HANGS = "{0} hangs"


def restore_order(settings: t.Sequence[Setting]) -> list[Setting]:
    """Return the host before its drives, as one that hangs must not keep the rest from being put back; services last,
    as they set things anew.

    In each of these first what resets other settings, then those, the last that was made first.
    """

    def rank(numbered: tuple[int, Setting]) -> tuple[t.Any, ...]:
        index, item = numbered
        resets = setting_kinds.has_side_effects(item) and item.wanted is not None
        return (
            item.kind == "service",
            item.device is not None,
            item.wanted is None,
            not resets,
            index if resets else -index,
        )

    return [item for _index, item in sorted(enumerate(settings), key=rank)]


def restored(host: Host, item: Setting, same_boot: bool, let_go: bool) -> Setting:
    """One setting as it was before the run, in this boot or after another; `let_go`: as in settings.restore."""
    if KINDS[item.kind].survives_reboot:
        entry = parse(item.selector)
        names = identity.find(host, entry)
        if len(names) == 1:
            return _restore_one(host, replace(item, device=names[0]))
        message = f"the drive {entry.label} is not there"
        if not (same_boot or let_go):
            return replace(item, effective=None, outcome="failed", message=message)
        name = item.name.replace("_", " ")
        message = f"{message}; its {name} was {item.before} before, and stays {item.wanted}"
        return replace(item, effective=None, outcome="not_applicable", message=message)
    return (
        _restore_one(host, item)
        if same_boot
        else replace(item, effective=None, outcome="restored", message="by a reboot")
    )


def _restore_one(host: Host, item: Setting) -> Setting:
    """Put one back."""
    value = current(host, item)
    if value is None:
        return replace(item, effective=None, outcome="not_applicable", message=item.path + " is gone")
    message = ""
    if value != item.before:
        outcome, message = KINDS[item.kind].write(host, item, t.cast(str, item.before))
        # A container may read what it can't write, and what others change meanwhile was never made here.
        if outcome == "not_applicable" and value != item.wanted:
            return replace(item, effective=value, outcome=outcome, message=message)
        value = current(host, item)
    return replace(item, effective=value, outcome="restored" if value == item.before else "failed", message=message)


def may_be_back(item: Setting, hung: t.Collection[str]) -> bool:
    """Return whether it is worth another look: it failed, and what it waits for answers."""
    return item.outcome == "failed" and setting_kinds.waits_for(item) not in hung


def look_again(host: Host, item: Setting) -> Setting:
    """One that would not go back may have come back with another: the kernel refuses a 0 for dirty_bytes, and sets it
    with dirty_ratio.
    """
    if KINDS[item.kind].survives_reboot:
        return item
    value = current(host, item)
    return replace(item, effective=value, outcome="restored", message="") if value == item.before else item


def boot_id(host: Host) -> str:
    """Return the kernel's id of this boot."""
    return host.read(BOOT_ID)


def apply(
    host: Host,
    settings: t.Sequence[Setting],
    record_path: str,
    keep: bool = False,
    order: int = 1,
    hung: set[str] | None = None,
) -> list[Setting]:
    """Record, change and verify. Returns the settings with before, effective, outcome and message.

    What a record of this boot already holds is not yet back: its values stay the ones to go back to.
    `keep`: the record is for an explicit restore only. order: among the records of a host that are not yet put back,
      the newest has the highest.
    hung: what gave no answer (setting_kinds.waits_for), which this adds to.
    """
    with in_time(host, setting_kinds.HOST_TIMEOUT_S) as patient:
        return _apply(patient, settings, record_path, keep, order, set() if hung is None else hung)


def _apply(
    host: InTime, settings: t.Sequence[Setting], record_path: str, keep: bool, order: int, hung: set[str]
) -> list[Setting]:
    recorded = [_in_time(host, setting, hung, None, _seen) for setting in settings]
    todo = [item for item in recorded if item.before not in (None, item.wanted)]
    touched = [effect for item in todo for effect in setting_kinds.side_effects(host, item)]
    todo += [_in_time(host, effect, hung, None, _seen) for effect in touched]
    old = read_record(record_path)
    if old and old.boot_id == boot_id(host):
        todo = old.settings + todo
    todo = _first_of_each([item for item in todo if item.before is not None])
    if todo:
        record = {
            "boot_id": boot_id(host),
            "keep": keep,
            "made": (old and old.made) or now(),
            "order": (old and old.order) or order,
            "settings": [item.to_json() for item in todo],
        }
        write_atomic(record_path, json.dumps(record, indent=1) + "\n")
    return [
        _in_time(host, item, hung, item.before, apply_one) if item.before is not None else _absent(item)
        for item in recorded
    ]


def _seen(host: InTime, setting: Setting) -> Setting:
    return replace(setting, before=current(host, setting))


def _absent(item: Setting) -> Setting:
    """One that has no value, or that gave no answer when it was asked for it."""
    hangs = item.outcome == "failed"
    return (
        item
        if hangs
        else replace(item, effective=None, outcome="not_applicable", message="this host has no " + item.path)
    )


def _in_time(
    host: InTime, item: Setting, hung: set[str], value: str | None, step: t.Callable[[InTime, Setting], Setting]
) -> Setting:
    """Return the setting as `step` returns it; one that gives no answer, or belongs to what gave none before, failed,
    and its last known value is `value`.

    hung: see apply; waiting for each setting of a drive would take too long.
    """
    owner, message = setting_kinds.waits_for(item), ""
    host.patience_s = setting_kinds.patience_s(item)
    try:
        if owner not in hung:
            return step(host, item)
    except Hangs as error:
        hung.add(owner)
        message = str(error)
    return replace(item, effective=value, outcome="failed", message=message or HANGS.format(owner))


def _first_of_each(settings: t.Sequence[Setting]) -> list[Setting]:
    """Return each path once: the first record of it has the value to go back to."""
    found: dict[str, Setting] = {}
    for item in settings:
        found.setdefault(item.path, item)
    return list(found.values())


def apply_one(host: Host, item: Setting) -> Setting:
    """Change and verify one. Raises Hangs where the host's files have deadlines; else the caller sees to it that nobody
    waits for ever.
    """
    asked, item = item, setting_kinds.resolve(host, item)
    value = current(host, item)
    if value == item.wanted:
        return _made(item, value)
    outcome, message = KINDS[item.kind].write(host, item, t.cast(str, item.wanted))
    value = current(host, item)
    if not outcome and value != item.wanted:
        if setting_kinds.is_held_down(host, asked, value):
            return _made(replace(item, wanted=value), value, "the highest while turbo is off")
        outcome, message = "failed", f"{item.path} is {value} after writing {item.wanted}"
    return replace(item, effective=value, outcome=outcome or "changed", message=message)


def _made(item: Setting, value: str | None, message: str = "") -> Setting:
    """One that is as it was asked for; a setting before it may have made it too."""
    return replace(item, effective=value, outcome="unchanged" if item.before == value else "changed", message=message)


def preview(host: Host, settings: t.Sequence[Setting]) -> list[Setting]:
    """Return what `apply` would find: the settings with before and outcome (changed, unchanged or not_applicable).
    Changes nothing.
    """
    found = []
    for setting in settings:
        before = current(host, setting)
        item = setting if before is None else setting_kinds.resolve(host, setting)
        same = before is not None and (before == item.wanted or setting_kinds.is_highest(host, setting, before))
        outcome = "not_applicable" if before is None else "unchanged" if same else "changed"
        found.append(replace(item, before=before, outcome=outcome))
    return found


def more(count: int) -> str:
    """Return what follows the path of the first of several settings that are alike."""
    return f" (and {count - 1} more like it)" if count > 1 else ""


def alike(settings: t.Iterable[Setting]) -> list[Setting]:
    """Of settings that became the same in the same way, on each CPU or queue, the first with their `count`: a server
    may have thousands.
    """
    found: dict[str, Setting] = {}
    for item in settings:
        values = (item.name, item.before, item.wanted, item.effective, item.outcome, item.device, item.selector)
        key = json.dumps(values)
        found[key] = replace(found.get(key, item), count=found[key].count + 1 if key in found else 1)
    return list(found.values())


def reported(settings: t.Iterable[Setting]) -> list[base.Json]:
    """Return what an answer has of these settings: those that are alike once."""
    return [item.to_json() for item in alike(settings)]


def failures(settings: t.Iterable[Setting]) -> list[str]:
    """Return a sentence for each kind of setting that could not be put back."""
    failed = alike(item for item in settings if item.outcome == "failed")
    return [f"{paths_of(item)}: {item.message or item.effective}" for item in failed]


def paths_of(item: Setting) -> str:
    """Return the path of one of `alike`, and how many more there are."""
    return item.path + more(item.count)


def read_record(record_path: str) -> Tuning | None:
    """tuning.json, or None without one. Raises Damaged."""
    record = read_json(record_path)
    if record is None:
        return None
    try:
        found = base.parse(Tuning, record)
    except base.WrongShape as error:
        raise Damaged(record_path, str(error)) from None
    wrong = [f"no such kind of setting: {item.kind}" for item in found.settings if item.kind not in KINDS]
    wrong += [f"{item.path} has no value before" for item in found.settings if item.before is None]
    if wrong or found.boot_id is None:
        raise Damaged(record_path, wrong[0] if wrong else "boot_id is missing")
    return found


def restore(
    host: Host, record_path: str, let_go: bool = False, record: Tuning | None = None, hanging: t.Collection[str] = ()
) -> list[Setting]:
    """Put back what the record holds, then remove it. Nothing to do, and an empty list, without one. Raises Damaged.

    record: goes before the file, which may be lost or damaged by now. hanging: what gave no answer to a write
      (setting_kinds.waits_for), which may be done any
    time; what belongs to it keeps the record.

    After a reboot run-time settings are gone, and only leave the record. A kernel name may mean another drive by now:
    what a drive itself keeps is put back by the drive's stable name. One that left within this boot is let go of; one
    that a reboot did not find keeps the record, unless `let_go`.
    """
    record = record or read_record(record_path)
    if record is None:
        return []
    same_boot = record.boot_id == boot_id(host)
    hung: set[str] = set(hanging)
    with in_time(host, setting_kinds.HOST_TIMEOUT_S) as patient:
        done = [
            _in_time(patient, item, hung, None, lambda each, setting: restored(each, setting, same_boot, let_go))
            for item in restore_order(record.settings)
        ]
        done = [_in_time(patient, item, hung, None, look_again) if may_be_back(item, hung) else item for item in done]
    if all(item.outcome != "failed" for item in done):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(record_path)
    return done
