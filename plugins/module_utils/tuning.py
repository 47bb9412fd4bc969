# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run-time tuning of a host: record, apply, verify the effective value, put back.

A setting is `{kind: sysfs | service, name, path, wanted, device}`; path is a file below /sys or /proc, or a service's name;
device is the kernel name of the drive that it belongs to, None for one of the whole host.
The record (tuning.json) is on the disk before the first change, and goes once everything is back.
"""

from __future__ import annotations

import errno
import json
import os
import struct
import typing as t

from .host import Host
from .liveness import BOOT_ID
from .rundir import read_json, write_atomic
from .sysfs import effective

CPU_DMA_LATENCY = "/dev/cpu_dma_latency"
# What a machine, a container or a virtual drive lacks is no error: there is nothing to set.
NOT_APPLICABLE_ERRNOS = (errno.ENOENT, errno.EROFS, errno.ENODEV, errno.EOPNOTSUPP)

RESTORE_TIMEOUT_S = 10.0

Setting = t.Dict[str, t.Any]


def boot_id(host: Host) -> str:
    """The kernel's id of this boot."""
    return host.read(BOOT_ID)


def expand(host: Host, tune: t.Mapping[str, t.Any], drive_names: t.Sequence[str]) -> list[Setting]:
    """The settings that a plan's `tune` means on this host: globs resolved, one for each drive.

    A path that matches nothing stays as it is written and becomes not_applicable.
    """
    settings = []
    for item in tune.get("sysfs", []):
        for device in drive_names if "@ssd_name@" in item["path"] else [None]:
            pattern = item["path"].replace("@ssd_name@", device or "")
            for path in host.glob(pattern) or [pattern]:
                settings.append({"kind": "sysfs", "name": item["name"], "path": path, "wanted": str(item["value"]), "device": device})
    for service in tune.get("services_stopped", []):
        settings.append({"kind": "service", "name": service, "path": service, "wanted": "inactive", "device": None})
    return settings


def current(host: Host, setting: Setting) -> str | None:
    """The value in force, or None where the host has no such thing."""
    if setting["kind"] == "service":
        return _service_state(host, setting["path"])
    try:
        return effective(host.read(setting["path"]))
    except OSError:
        return None


def _service_state(host: Host, service: str) -> str | None:
    if not host.exists("/run/systemd/system"):
        return None
    shown = host.run(["systemctl", "show", "--property=LoadState,ActiveState", "--value", service]).stdout.split()
    if len(shown) != 2 or shown[0] != "loaded":
        return None
    return "active" if shown[1] in ("active", "activating", "reloading") else "inactive"


def _set(host: Host, setting: Setting, value: str) -> str:
    """Change one setting; returns an error text, empty when it worked."""
    if setting["kind"] == "service":
        result = host.run(["systemctl", "start" if value == "active" else "stop", setting["path"]], timeout_s=120)
        return result.stderr.strip() if result.rc else ""
    try:
        host.write(setting["path"], value)
    except OSError as error:
        if error.errno in NOT_APPLICABLE_ERRNOS:
            return "not applicable: {0}".format(error.strerror)
        return "{0}: {1}".format(setting["path"], error.strerror)
    return ""


def apply(host: Host, settings: t.Sequence[Setting], record_path: str, keep: bool = False) -> list[Setting]:
    """Record, change and verify. Returns the settings with before, effective, outcome and message.

    What a record of this boot already holds is not yet back: its values stay the ones to go back to.
    `keep`: the record is for an explicit restore only.
    """
    recorded = [dict(setting, before=current(host, setting)) for setting in settings]
    todo = [item for item in recorded if item["before"] not in (None, item["wanted"])]
    old = read_json(record_path) or {}
    if old.get("boot_id") == boot_id(host):
        left = {item["path"] for item in old["settings"]}
        todo = old["settings"] + [item for item in todo if item["path"] not in left]
    if todo:
        write_atomic(record_path, json.dumps({"boot_id": boot_id(host), "keep": keep, "settings": todo}, indent=1) + "\n")
    return [_apply_one(host, item) for item in recorded]


def _apply_one(host: Host, item: Setting) -> Setting:
    if item["before"] is None:
        return dict(item, effective=None, outcome="not_applicable", message="this host has no " + item["path"])
    if item["before"] == item["wanted"]:
        return dict(item, effective=item["before"], outcome="unchanged", message="")
    message = _set(host, item, item["wanted"])
    value = current(host, item)
    if message.startswith("not applicable"):
        return dict(item, effective=value, outcome="not_applicable", message=message)
    if value != item["wanted"]:
        message = message or "{0} is {1} after writing {2}".format(item["path"], value, item["wanted"])
        return dict(item, effective=value, outcome="failed", message=message)
    return dict(item, effective=value, outcome="changed", message="")


def drifted(host: Host, applied: t.Sequence[Setting], device: str, kinds: t.Collection[str] = ("sysfs", "service")) -> list[str]:
    """What is not as it was asked for, on the host or on this drive: a sentence each.

    device: the drive's kernel name. kinds: of settings to look at; a service's state costs a process.
    """
    return [
        "{0} is {1}, tuned to {2}".format(item["path"], value, item["wanted"])
        for item in applied
        if item["outcome"] != "not_applicable" and item["device"] in (None, device) and item["kind"] in kinds
        for value in [current(host, item)]
        if value != item["wanted"]
    ]


def is_kept(record_path: str) -> bool:
    """Whether a record waits for an explicit restore (tune.yml)."""
    return bool((read_json(record_path) or {}).get("keep"))


def restore(host: Host, record_path: str) -> list[Setting]:
    """Put back what the record holds, then remove it. Nothing to do, and an empty list, without a record.

    After a reboot run-time settings are gone, and a kernel name may mean another drive: only the record goes.
    """
    record = read_json(record_path)
    if record is None:
        return []
    if record["boot_id"] != boot_id(host):
        done = [dict(item, effective=None, outcome="restored", message="by a reboot") for item in record["settings"]]
    else:
        # A drive that hangs must not keep the rest of the host from being put back.
        ordered = sorted(reversed(record["settings"]), key=lambda item: item.get("device") is not None)
        done = [_restore_one(host, item) for item in ordered]
    if all(item["outcome"] != "failed" for item in done):
        os.unlink(record_path)
    return done


def _put_back(host: Host, item: Setting) -> str:
    """Set the value from before; an error text. A queue attribute of a drive that hangs blocks its writer: a child, with a deadline."""
    if not item.get("device"):
        return _set(host, item, item["before"])
    result = host.run(["tee", host.path(item["path"])], timeout_s=RESTORE_TIMEOUT_S, stdin=item["before"])
    return result.stderr.strip() if result.rc else ""


def _restore_one(host: Host, item: Setting) -> Setting:
    if current(host, item) is None:
        return dict(item, effective=None, outcome="not_applicable", message=item["path"] + " is gone")
    message = "" if current(host, item) == item["before"] else _put_back(host, item)
    value = current(host, item)
    outcome = "restored" if value == item["before"] else "failed"
    return dict(item, effective=value, outcome=outcome, message=message)


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
        item = {
            "kind": "held",
            "name": "cpu_dma_latency",
            "path": CPU_DMA_LATENCY,
            "before": None,
            "wanted": str(self._latency_us),
        }
        try:
            self._handle = os.open(self._host.path(CPU_DMA_LATENCY), os.O_RDWR)
            os.write(self._handle, struct.pack("=i", self._latency_us))
        except OSError as error:
            return [dict(item, effective=None, outcome="not_applicable", message=str(error.strerror))]
        return [dict(item, effective=str(self._latency_us), outcome="changed", message="")]

    def release(self) -> None:
        """Let the kernel sleep deeply again."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
