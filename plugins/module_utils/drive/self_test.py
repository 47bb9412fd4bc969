# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drive's own self-test: whether one is under way, of which kind and how far, and which ended; and the commands that
begin and end one.

Fields: NVM Express Base Specification 2.0, Device Self-test log page (06h), OACS bit 4 and EDSTT; ATA/ATAPI Command
Set 4, self-test execution status and log; SCSI Primary Commands 5, Self-Test Results log page. nvme-cli's JSON has the
same keys from 1.16 to 2.16. smartctl's tells of NVMe drives since 7.4. Of SAS drives its text is read, which has the
same form from 7.0 to 7.5 (scsiPrintSelfTest of scsiprint.cpp): its JSON has their log since 7.3 only, of no version an
empty one, and how far a self-test is only after 7.5.
"""

from __future__ import annotations

import dataclasses
import json
import re
import typing as t

from ..core.host import Host
from ..records.identity import Identity
from ..tools.nvme import nvme_number
from .health import ask

SHORT, EXTENDED = "short", "extended"
# How long a short one takes at most, by NVMe and SCSI; ATA sets no limit, and its drives take about as long.
SHORT_S = 120
_NVME_KINDS = {0x1: SHORT, 0x2: EXTENDED, 0xE: "vendor specific"}
_ATA_KINDS = {0x1: SHORT, 0x2: EXTENDED, 0x3: "conveyance", 0x4: "selective"}
# Background and foreground.
_SCSI_KINDS = {1: SHORT, 2: EXTENDED, 5: SHORT, 6: EXTENDED}
_OACS_SELF_TEST = 0x10
# What a log has for a self-test that is under way (ATA, SCSI), or for no entry (NVMe).
_NOT_ENDED = 0xF
# Results of a drive that failed: the rest passed, or was aborted by a host, a reset, a format or a sanitize.
_NVME_FAILED, _ATA_FAILED, _SCSI_FAILED = range(5, 8), range(3, 9), range(3, 8)
# What smartctl calls the codes and results of a SAS drive's log, by their numbers.
_SCSI_CODES = (
    "Default",
    "Background short",
    "Background long",
    "Reserved(3)",
    "Abort background",
    "Foreground short",
    "Foreground long",
)
_SCSI_RESULTS = (
    "Completed",
    "Aborted (by user command)",
    "Aborted (device reset ?)",
    "Unknown error, incomplete",
    "Completed, segment failed",
    "Failed in first segment",
    "Failed in second segment",
    "Failed in segment -->",
)
_SCSI_NOW = "Self test in progress ..."
_SCSI_ENTRY = re.compile(
    r"# *[0-9]{1,5}  (?P<code>.{16})  (?P<result>.{25}) +(?P<segment>-|[0-9]{1,3}) +(?P<hours>NOW|[0-9]{1,5})"
    r" +(?P<lba>-|[0-9]{1,20}) +\["
)
_SCSI_EMPTY = "No Self-tests have been logged"
_SCSI_LEFT = re.compile(r"Self-test execution status:\s+([0-9]{1,3})% of test remaining")
_SCSI_EXTENDED = re.compile(r"Long \(extended\) Self-test duration: ([0-9]{1,9}) seconds")

Json = t.Mapping[str, t.Any]
Kinds = t.Mapping[int, str]


@dataclasses.dataclass(frozen=True)
class SelfTest:
    """What a drive tells of its self-tests. None: it, or this host's tools, do not tell."""

    is_offered: bool | None = None
    is_running: bool | None = None
    # Of the one that is under way.
    kind: str | None = None
    left_pct: int | None = None
    # How long an extended one takes, by the drive's own word.
    extended_s: int | None = None
    # Those in its log that ended, newest first, each as its tool tells it.
    ended: tuple[str, ...] = ()
    # Those of them in which the drive failed, alike by whatever tool.
    failed: tuple[str, ...] | None = None
    # By which it was read.
    tool: str = dataclasses.field(default="smartctl", compare=False)


UNKNOWN = SelfTest()


def read(host: Host, identity: Identity, before: SelfTest = UNKNOWN) -> SelfTest:
    """Return what the drive with this identity tells now. before: of an earlier look, for what does not change."""
    transport, path = identity.transport, str(identity.path)
    if before.is_offered is False or transport not in ("nvme", "sata", "sas"):
        return before
    if transport == "nvme":
        known = before if before.is_offered else _nvme_offer(host, path)
        # A drive notes an error of its own where it is asked for a log page that it does not have.
        if known.is_offered is False:
            return known
        if known.is_offered:
            log, error = ask(host, ["nvme", "self-test-log", path, "--output-format=json"])
            if not error:
                return dataclasses.replace(from_nvme(log), extended_s=known.extended_s, tool="nvme")
    log, error = ask(host, ["smartctl", "--json=co", "-c", "-l", "selftest", path], any_code=True)
    return UNKNOWN if error else from_smartctl(log)


def _nvme_offer(host: Host, path: str) -> SelfTest:
    controller, _error = ask(host, ["nvme", "id-ctrl", path, "--output-format=json"])
    oacs, minutes = nvme_number(controller.get("oacs")), nvme_number(controller.get("edstt"))
    if oacs is None:
        return UNKNOWN
    is_offered = bool(oacs & _OACS_SELF_TEST)
    return SelfTest(is_offered, None if is_offered else False, extended_s=60 * minutes if minutes else None)


def from_nvme(log: Json) -> SelfTest:
    """From `nvme self-test-log`."""
    listed = _list(log.get("List of Valid Reports"))
    ended = [item for item in listed if nvme_number(item.get("Self test result")) not in (None, _NOT_ENDED)]
    entries = [
        _Entry(item.get("Self test code"), item.get("Power on hours"), item["Self test result"]) for item in ended
    ]
    operation, completion = (log.get(f"Current Device Self-Test {what}") for what in ("Operation", "Completion"))
    return _nvme(operation, completion, ended, entries)


class _Entry(t.NamedTuple):
    """An entry of a log. hours: since the drive was made."""

    code: t.Any
    hours: t.Any
    result: t.Any

    def text(self, kinds: Kinds) -> str:
        """For people, and to tell entries apart."""
        code, hours, result = (nvme_number(value) for value in self)
        return f"{kinds.get(code or 0, 'self-test')} at {hours} h: result {result}"


def _failed(entries: t.Iterable[_Entry], results: range, kinds: Kinds) -> tuple[str, ...]:
    return tuple(entry.text(kinds) for entry in entries if nvme_number(entry.result) in results)


def _nvme(operation: t.Any, completion: t.Any, ended: t.Iterable[Json], entries: t.Iterable[_Entry]) -> SelfTest:
    code, done_pct = nvme_number(operation), nvme_number(completion)
    if code is None:
        return UNKNOWN
    code &= 0xF
    left_pct = _left_pct(None if done_pct is None else done_pct & 0x7F) if code else None
    failed = _failed(entries, _NVME_FAILED, _NVME_KINDS)
    return SelfTest(True, bool(code), _NVME_KINDS.get(code), left_pct, ended=_told(ended), failed=failed)


def _left_pct(done_pct: int | None) -> int | None:
    return None if done_pct is None else min(100, max(0, 100 - done_pct))


def from_smartctl(data: Json) -> SelfTest:
    """From `smartctl --json=o -c -l selftest`, of an NVMe, ATA or SCSI drive."""
    log = _part(data, "nvme_self_test_log")
    if log:
        operation = _part(log, "current_self_test_operation").get("value")
        ended = _list(log.get("table"))
        entries = [_Entry(*_values(item, "self_test_code", "power_on_hours", "self_test_result")) for item in ended]
        return _nvme(operation, log.get("current_self_test_completion_percent"), ended, entries)
    return _from_ata(data) if "ata_smart_data" in data else _from_scsi(data)


def _from_ata(data: Json) -> SelfTest:
    told, log = _part(data, "ata_smart_data", "self_test"), _part(data, "ata_smart_self_test_log", "standard")
    status = nvme_number(_part(told, "status").get("value"))
    if status is None:
        return UNKNOWN
    is_running = status >> 4 == _NOT_ENDED
    minutes = nvme_number(_part(told, "polling_minutes").get("extended"))
    entries = [(nvme_number(_part(item, "status").get("value")), item) for item in _list(log.get("table"))]
    ended = [item for code, item in entries if code is not None and code >> 4 != _NOT_ENDED]
    told_of = [_Entry(*_values(item, "type", "lifetime_hours", "status")) for item in ended]
    results = [entry._replace(code=(entry.code or 0) & 0x7F, result=entry.result >> 4) for entry in told_of]
    # Many drives have an entry for the one that is under way.
    under_way = [item for code, item in entries if code is not None and code >> 4 == _NOT_ENDED]
    code = nvme_number(_part(under_way[0], "type").get("value")) if is_running and under_way else None
    return SelfTest(
        is_offered=_part(data, "ata_smart_data", "capabilities").get("self_tests_supported") is not False,
        is_running=is_running,
        kind=None if code is None else _ATA_KINDS.get(code & 0x7F),
        left_pct=min(100, (status & 0xF) * 10) if is_running else None,
        extended_s=60 * minutes if minutes else None,
        ended=_told(ended),
        failed=_failed(results, _ATA_FAILED, _ATA_KINDS) if log else None,
    )


def _from_scsi(data: Json) -> SelfTest:
    printed = _part(data, "smartctl").get("output")
    lines = [line for line in printed if isinstance(line, str)] if isinstance(printed, list) else []
    found = [match for match in map(_SCSI_ENTRY.match, lines) if match]
    left = [int(match[1]) for match in map(_SCSI_LEFT.match, lines) if match]
    if not (found or left or _SCSI_EMPTY in lines):
        # The log can't be read, or the drive has none.
        return UNKNOWN
    # The newest comes first.
    under_way = [entry for entry in found[:1] if entry["hours"] == "NOW"]
    ended = [_scsi_entry(entry) for entry in found if entry not in under_way and entry["result"] != _SCSI_NOW]
    entries = [_Entry(item["code"], item["power_on_hours"], item["result"]) for item in ended]
    extended_s = [int(match[1]) for match in map(_SCSI_EXTENDED.match, lines) if match]
    return SelfTest(
        is_offered=True,
        is_running=bool(under_way or left),
        kind=_SCSI_KINDS.get(_number_of(_SCSI_CODES, under_way[0]["code"])) if under_way else None,
        left_pct=min(100, left[0]) if left else None,
        extended_s=extended_s[0] if extended_s else None,
        ended=_told(ended),
        failed=_failed(entries, _SCSI_FAILED, _SCSI_KINDS),
    )


def _scsi_entry(entry: re.Match[str]) -> dict[str, int]:
    """Return an entry of the log in numbers, as the standard has them."""
    told = {"segment": entry["segment"], "power_on_hours": entry["hours"], "lba_first_failure": entry["lba"]}
    numbers = {key: int(value) for key, value in told.items() if value.isdecimal()}
    code, result = _number_of(_SCSI_CODES, entry["code"]), _number_of(_SCSI_RESULTS, entry["result"])
    return {"power_on_hours": 0, **numbers, "code": code, "result": result}


def _number_of(names: t.Sequence[str], told: str) -> int:
    """Return the number of a code or result; -1: it is reserved."""
    return names.index(told.rstrip()) if told.rstrip() in names else -1


def name(seen: SelfTest) -> str:
    """Return which self-test is under way: "self-test (extended)"."""
    return f"self-test ({seen.kind})" if seen.kind else "self-test"


def text(seen: SelfTest) -> str:
    """Return which one, and how far it is: "self-test (extended), 40 % left"."""
    return name(seen) + ("" if seen.left_pct is None else f", {seen.left_pct} % left")


def left_s(seen: SelfTest, kind: str) -> float | None:
    """Return how much longer one of this kind takes, by the drive's own word; None where it does not tell."""
    whole_s = SHORT_S if kind == SHORT else seen.extended_s
    return None if whole_s is None or seen.left_pct is None else whole_s * seen.left_pct / 100


def begin_command(host: Host, identity: Identity, kind: str) -> list[str]:
    """Return the command that begins one in the background: of an NVMe controller with this namespace alone (0: with
    none).
    """
    path = str(identity.path)
    if identity.transport != "nvme":
        return ["smartctl", "-t", "long" if kind == EXTENDED else SHORT, path]
    namespace = host.get(f"/sys/block/{path.rpartition('/')[2]}/nsid") or "0"
    code = next(code for code, name in _NVME_KINDS.items() if name == kind)
    return ["nvme", "device-self-test", path, "-n", namespace, "-s", str(code)]


def has_begun(argv: t.Sequence[str], code: int) -> bool:
    """Return whether a tool's exit code says so: smartctl's other bits tell of the drive (smartctl(8))."""
    return code & 0x7 == 0 if argv[0] == "smartctl" else code == 0


def abort_command(identity: Identity) -> str:
    """Return the command that ends a self-test."""
    path = identity.path
    return f"nvme device-self-test {path} -s 0xf" if identity.transport == "nvme" else f"smartctl -X {path}"


def _told(entries: t.Iterable[Json]) -> tuple[str, ...]:
    return tuple(json.dumps(item, sort_keys=True) for item in entries)


def _part(data: Json, *keys: str) -> dict[str, t.Any]:
    value: t.Any = data
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _values(entry: Json, *keys: str) -> list[int | None]:
    """Return numbers of an entry, of which smartctl gives some with their meaning."""
    found = (entry.get(key) for key in keys)
    return [nvme_number(value.get("value") if isinstance(value, dict) else value) for value in found]


def _list(value: t.Any) -> list[dict[str, t.Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
