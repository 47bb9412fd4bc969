# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Devices of a host that runs ESXi, by its own esxcli (Broadcom's "ESXCLI Reference", namespaces storage core, nmp,
hpp, system): what they are, and their queue depths, set, recorded and restored.

It runs on ESXi's own Python and imports its standard library alone.
"""

from __future__ import annotations

import json
import os
import re
import typing as t
from dataclasses import dataclass

# Runs a program: (exit code, stdout, stderr).
Run = t.Callable[[t.Sequence[str]], t.Tuple[int, str, str]]
Json = t.Dict[str, t.Any]
# What stays with a device; mpx and vml names do not, or tell none from another.
STABLE = re.compile(r"(naa|eui|t10)\..+")
# Of a device: (option of the module, esxcli's option, the key of its list).
QUEUE_DEPTH = ("queue_depth", "--max-queue-depth", "devicemaxqueuedepth")
OUTSTANDING = ("outstanding", "--sched-num-req-outstanding", "noofoutstandingioswithcompetingworlds")
SETTINGS = (QUEUE_DEPTH, OUTSTANDING)
RECORD, SCHEMA_VERSION = "esxi_devices.json", 1


class EsxiError(Exception):
    """esxcli did not do what was asked, or there is none; the message says what to do."""


@dataclass(frozen=True)
class Device:
    """A device. None: this release does not tell it."""

    name: str
    model: str | None
    firmware: str | None
    is_ssd: bool | None
    adapter: str | None
    driver: str | None
    driver_version: str | None
    # Path selection: of NMP its policy (PSP), of HPP its scheme.
    path_selection: str | None
    queue_depth: int | None
    outstanding: int | None


class Esxcli:
    """esxcli, asked for JSON. path: of the program."""

    def __init__(self, run: Run, path: str = "esxcli") -> None:
        self._run, self._path = run, path

    def rows(self, *words: str) -> list[Json]:
        """Return what a command lists, its keys without blanks and in small letters. Raises EsxiError."""
        text = self._checked([self._path, "--formatter=json", *words])
        try:
            found = json.loads(text)
        except ValueError as error:
            raise EsxiError("esxcli {0}: its answer is no JSON ({1})".format(" ".join(words), error)) from None
        found = found if isinstance(found, list) else [found]
        return [{_key(name): value for name, value in row.items()} for row in found if isinstance(row, dict)]

    def rows_if_known(self, *words: str) -> list[Json]:
        """Return the same; nothing where this release has no such command or no such thing."""
        try:
            return self.rows(*words)
        except EsxiError:
            return []

    def set_device(self, name: str, values: t.Mapping[str, int]) -> list[str]:
        """Set a device's depths. Return the command. Raises EsxiError."""
        command = [self._path, "storage", "core", "device", "set", "--device", name]
        for option, flag, _key_of in SETTINGS:
            command += [flag, str(values[option])] if option in values else []
        self._checked(command)
        return command

    def _checked(self, command: t.Sequence[str]) -> str:
        try:
            rc, out, err = self._run(command)
        except OSError as error:
            raise EsxiError(_no_esxcli(self._path, error.strerror)) from None
        if rc == 127 or (rc == 2 and "No such file" in err):
            raise EsxiError(_no_esxcli(self._path, "not found"))
        if rc:
            said = " ".join((err or out).split())[:500]
            raise EsxiError("{0}: {1}".format(" ".join(command), said or f"exit code {rc}"))
        return out


def _no_esxcli(path: str, why: str | None) -> str:
    return f"{path}: {why}; this module is for hosts that run ESXi (group esxi_servers)"


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", str(name).lower())


def version(esxcli: Esxcli) -> str:
    """Return the product, release and build. Raises EsxiError."""
    (found,) = esxcli.rows("system", "version", "get")[:1] or [{}]
    return " ".join(str(found[key]) for key in ("product", "version", "build") if found.get(key))


def devices(esxcli: Esxcli) -> list[Device]:
    """Return the disks of the host that have a stable name. Raises EsxiError."""
    adapters = {
        row.get("device"): row.get("adapter") for row in esxcli.rows_if_known("storage", "core", "path", "list")
    }
    drivers = {
        row.get("hbaname"): row.get("driver") for row in esxcli.rows_if_known("storage", "core", "adapter", "list")
    }
    policies = {
        row.get("device"): row.get("pathselectionpolicy")
        for row in esxcli.rows_if_known("storage", "nmp", "device", "list")
    }
    for row in esxcli.rows_if_known("storage", "hpp", "device", "list"):
        policies.setdefault(row.get("device"), row.get("pathselectionscheme"))
    versions: dict[str, str | None] = {}
    found = []
    for row in esxcli.rows("storage", "core", "device", "list"):
        name = str(row.get("device") or "")
        if not STABLE.fullmatch(name):
            continue
        adapter = adapters.get(name)
        driver = drivers.get(adapter)
        if driver and driver not in versions:
            told = esxcli.rows_if_known("system", "module", "get", "-m", driver)
            versions[driver] = _text(told[0].get("version")) if told else None
        found.append(
            Device(
                name=name,
                model=_text(row.get("model")),
                firmware=_text(row.get("revision")),
                is_ssd=row.get("isssd") if isinstance(row.get("isssd"), bool) else None,
                adapter=_text(adapter),
                driver=_text(driver),
                driver_version=versions.get(str(driver)),
                path_selection=_text(policies.get(name)),
                queue_depth=_number(row.get(QUEUE_DEPTH[2])),
                outstanding=_number(row.get(OUTSTANDING[2])),
            )
        )
    return found


def _text(value: t.Any) -> str | None:
    text = "" if value is None else " ".join(str(value).split())
    return text[:200] or None


def _number(value: t.Any) -> int | None:
    return int(value) if str(value).isdigit() else None


def summary(release: str, told: t.Sequence[Device]) -> dict[str, str]:
    """Return what the guests of a host have in common with it, for their snapshots: unlike values joined by "/"."""
    parts: dict[str, list[t.Any]] = {
        "driver": [" ".join(filter(None, (one.driver, one.driver_version))) for one in told],
        "firmware": [one.firmware for one in told],
        "path_selection": [one.path_selection for one in told],
        "queue_depth": [one.queue_depth for one in told],
        "outstanding": [one.outstanding for one in told],
    }
    joined = {name: "/".join(sorted({str(value) for value in values if value})) for name, values in parts.items()}
    return {name: text[:500] for name, text in {"release": release, **joined}.items() if text}


# (device, option) -> (value before, value asked for)
Changes = t.Dict[t.Tuple[str, str], t.Tuple[int, int]]


def changes(wanted: t.Sequence[Json], told: t.Sequence[Device]) -> Changes:
    """Return what is to be set. wanted: {device, queue_depth, outstanding}. Raises EsxiError."""
    known = {one.name: one for one in told}
    found: Changes = {}
    for entry in wanted:
        name = str(entry["device"])
        if not STABLE.fullmatch(name):
            raise EsxiError(f"device {name}: name it by what stays with it: naa., eui. or t10.")
        if name not in known:
            names = ", ".join(sorted(known)) or "none"
            raise EsxiError(f"device {name}: this host has no such device (it has: {names})")
        device = known[name]
        for option, _flag, _listed in SETTINGS:
            value, before = entry.get(option), getattr(device, option)
            if value is None:
                continue
            if value < 1:
                raise EsxiError(f"device {name}: {option} {value} must be above 0")
            if before is None:
                raise EsxiError(f"device {name}: this release of ESXi does not list its {option}")
            if value != before:
                found[name, option] = (before, value)
        depth = entry.get("queue_depth") or device.queue_depth
        if entry.get("outstanding") and depth and entry["outstanding"] > depth:
            raise EsxiError(
                "device {0}: outstanding {1} is more than its queue_depth of {2}; raise that too".format(
                    name, entry["outstanding"], depth
                )
            )
    return found


def apply(esxcli: Esxcli, found: Changes, record_dir: str) -> list[list[str]]:
    """Record, set, and read back. Return the commands. Raises EsxiError, OSError."""
    record = read_record(record_dir)
    for (name, option), (before, value) in found.items():
        # What it was before the first change, however often it is set.
        first = record.setdefault(name, {}).get(option, {}).get("before", before)
        record[name][option] = {"before": first, "wanted": value}
    _write_record(record_dir, record)
    commands = _set(esxcli, {key: value for key, (_before, value) in found.items()})
    now = {one.name: one for one in devices(esxcli)}
    became = {(name, option): getattr(now[name], option) if name in now else None for name, option in found}
    for (name, option), effective in became.items():
        # What a driver made of it is ours too, and is restored.
        record[name][option]["wanted"] = found[name, option][1] if effective is None else effective
    _write_record(record_dir, record)
    for (name, option), (_before, value) in found.items():
        effective = became[name, option]
        if effective != value:
            raise EsxiError(
                "device {0}: {1} is {2} after it was set to {3}; its driver may allow no more: raise its module "
                "parameter (esxcli system module parameters list -m {4}) and reboot".format(
                    name, option, effective, value, now[name].driver if name in now else "DRIVER"
                )
            )
    return commands


def _set(esxcli: Esxcli, values: t.Mapping[tuple[str, str], int]) -> list[list[str]]:
    by_device: dict[str, dict[str, int]] = {}
    for (name, option), value in values.items():
        by_device.setdefault(name, {})[option] = value
    return [esxcli.set_device(name, given) for name, given in by_device.items()]


class Restoring(t.NamedTuple):
    """values: to set. kept: what is left as it is, and why, as sentences. lost: devices that are not there now, whose
    record stays.
    """

    values: dict[tuple[str, str], int]
    kept: list[str]
    lost: list[str]


def restoring(record: Json, told: t.Sequence[Device]) -> Restoring:
    """Return what restoring means now: what somebody else changed since is not ours to put back."""
    known = {one.name: one for one in told}
    found = Restoring({}, [], [])
    for name, settings in record.items():
        if name not in known:
            found.lost.append(name)
            continue
        for option, noted in settings.items():
            now = getattr(known[name], option)
            if now == noted["wanted"] and now != noted["before"]:
                found.values[name, option] = noted["before"]
            elif now != noted["before"]:
                found.kept.append(
                    "device {0}: {1} is {2} and not {3} as it was set, so it stays".format(
                        name, option, now, noted["wanted"]
                    )
                )
    return found


def restore(esxcli: Esxcli, record_dir: str, plan: Restoring) -> list[list[str]]:
    """Set values back, and forget them. Return the commands. Raises EsxiError, OSError."""
    commands = _set(esxcli, plan.values)
    record = read_record(record_dir)
    left = {name: record[name] for name in plan.lost}
    if left:
        _write_record(record_dir, left)
    elif record:
        os.unlink(os.path.join(record_dir, RECORD))
    return commands


def read_record(record_dir: str) -> Json:
    """Return {device: {option: {before, wanted}}}; {} without a record. Raises EsxiError for a damaged one."""
    path = os.path.join(record_dir, RECORD)
    try:
        with open(path, encoding="utf-8") as file:
            found: Json = json.load(file)["devices"]
        for settings in found.values():
            for noted in settings.values():
                int(noted["before"]), int(noted["wanted"])
        return found
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise EsxiError(f"{path} is damaged ({error}): set the devices back by hand and remove it") from None


def _write_record(record_dir: str, record: Json) -> None:
    os.makedirs(record_dir, exist_ok=True)
    path = os.path.join(record_dir, RECORD)
    aside = path + ".new"
    with open(aside, "w", encoding="utf-8") as file:
        json.dump({"schema_version": SCHEMA_VERSION, "devices": record}, file, indent=1, sort_keys=True)
        file.flush()
        os.fsync(file.fileno())
    os.replace(aside, path)


def module_result(run: Run, asked: Json, check: bool) -> Json:
    """Return the answer of the module. asked: its options. Raises EsxiError, OSError."""
    esxcli, record_dir = Esxcli(run, asked["esxcli"]), asked["record_dir"]
    told, release = devices(esxcli), version(esxcli)
    kept: list[str] = []
    commands: list[list[str]] = []
    pairs: Changes = {}
    if asked["state"] == "restored":
        plan = restoring(read_record(record_dir), told)
        now = {one.name: one for one in told}
        pairs = {(name, option): (getattr(now[name], option), value) for (name, option), value in plan.values.items()}
        kept = plan.kept + [f"device {name} is not there now; its record stays" for name in plan.lost]
        commands = [] if check else restore(esxcli, record_dir, plan)
    elif asked["state"] == "present":
        pairs = changes(asked["devices"], told)
        commands = apply(esxcli, pairs, record_dir) if pairs and not check else []
    after = told if check or not pairs else devices(esxcli)
    named = {str(entry["device"]) for entry in asked["devices"]}
    mine = [one for one in after if one.name in named or (not named and one.is_ssd is not False)]
    return {
        "changed": bool(pairs),
        "release": release,
        "devices": [vars(one) for one in mine],
        "summary": summary(release, mine),
        "commands": commands,
        "message": "; ".join(kept),
        "diff": {
            "before": {"{0} {1}".format(*key): before for key, (before, _value) in pairs.items()},
            "after": {"{0} {1}".format(*key): value for key, (_before, value) in pairs.items()},
        },
    }
