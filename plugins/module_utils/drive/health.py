# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drive's health, from nvme-cli's or smartctl's JSON or a vendor's tool."""

from __future__ import annotations

import dataclasses
import typing as t

from ..core import tool_json
from ..core.host import COMMAND_NOT_FOUND, Host
from ..records.identity import Identity
from ..tools.nvme import nvme_number
from ..vendors import vendor_health
from ..vendors.vendor_identity import TRANSPORT
from . import ata_health
from .attributes import VIRTUAL

TIMEOUT_S = 20.0
ZERO_CELSIUS_K = 273


# Bits of critical_warning (NVM Express Base Specification 2.0, SMART / Health Information), and what each means for a
# measurement.
TOO_HOT = 0x02
CRITICAL_WARNINGS = (
    (0x01, "the spare is below its threshold"),
    (TOO_HOT, "the temperature is beyond a threshold"),
    (0x04, "its reliability is degraded"),
    (0x08, "it is read-only"),
    (0x10, "the backup of its volatile memory has failed"),
    (0x20, "its persistent memory region is unreliable or read-only"),
)
WITHOUT_HEALTH = (*VIRTUAL, "mmc")

Json = t.Mapping[str, t.Any]


@dataclasses.dataclass(frozen=True)
class Health:
    """A drive's health in one form for all transports. None: the drive does not report it."""

    # The tool that reported it.
    source: str | None = None
    # Why there is none.
    error: str = ""
    temperature_c: int | None = None
    # Since its power came on.
    highest_temperature_c: int | None = None
    warning_temperature_c: int | None = None
    critical_temperature_c: int | None = None
    # The bits of CRITICAL_WARNINGS.
    critical_warning: int | None = None
    # What the drive itself says of its health, in a bit and in its own words.
    passed: bool | None = None
    verdict: str | None = None
    # Names of the attributes below their threshold.
    failing: tuple[str, ...] = ()
    spare_pct: int | None = None
    spare_threshold_pct: int | None = None
    used_pct: int | None = None
    media_errors: int | None = None
    interface_crc_errors: int | None = None
    unsafe_shutdowns: int | None = None
    # Of these three, what each place says in which a drive counts them, where it may have several.
    counts_by_source: dict[str, dict[str, int]] | None = None
    # Minutes above these temperatures.
    warning_temp_min: int | None = None
    critical_temp_min: int | None = None
    # By the level of thermal management, t1 and t2: transitions, and seconds.
    throttle_counts: dict[str, int] | None = None
    throttle_s: dict[str, int] | None = None
    volatile_write_cache: bool | None = None
    # Of a SATA drive's link: now, and at best.
    interface_gbit_s: float | None = None
    interface_max_gbit_s: float | None = None
    # Whether smartctl's database has a SATA drive's model.
    is_in_database: bool | None = None


def power_on_hours(host: Host, identity: Identity) -> int | None:
    """Return for how long a drive was in use; None where it does not tell."""
    transport, path = identity.transport, str(identity.path)
    if transport in WITHOUT_HEALTH or transport == TRANSPORT:
        return None
    if transport == "nvme":
        log, _error = ask(host, ["nvme", "smart-log", path, "--output-format=json"])
        return nvme_number(log.get("power_on_hours"))
    log, _error = ask(host, ["smartctl", "--json=c", "-A", path], any_code=True)
    told = log.get("power_on_time")
    hours = told.get("hours") if isinstance(told, t.Mapping) else None
    return hours if isinstance(hours, int) else None


def merge(one: Health, other: Health) -> Health:
    """Return one health with what the other one has of it."""
    return dataclasses.replace(one, **{key: value for key, value in vars(other).items() if value not in (None, "", ())})


def read(host: Host, identity: Identity, limits: bool = True) -> Health:
    """Return the health of the drive with this identity. `limits` false: only what changes, with one command (NVMe)."""
    transport, path = identity.transport, str(identity.path)
    if transport in WITHOUT_HEALTH:
        return Health(error=f"{transport} drives report no health")
    error = ""
    if transport == "nvme":
        log, error = ask(host, ["nvme", "smart-log", path, "--output-format=json"])
        if not error:
            found = from_nvme(log)
            controller, _error = ask(host, ["nvme", "id-ctrl", path, "--output-format=json"]) if limits else ({}, "")
            return merge(found, nvme_limits(controller))
    elif transport == TRANSPORT:
        told, error = vendor_health.read(host, identity.name, str(identity.serial or ""), limits)
        if not error:
            return Health(**told)
    # smartctl's exit code is a set of bits, most of them about the drive rather than about the command: the JSON says
    # it better.
    log, wrong = ask(host, ["smartctl", "--json=c", "-a", "-l", "devstat", "-l", "scttempsts", path], any_code=True)
    if not wrong:
        return from_smartctl(log)
    return dataclasses.replace(glance(host, identity), error="; ".join(text for text in (error, wrong) if text))


def glance(host: Host, identity: Identity) -> Health:
    """Return the little of it that costs the drive nothing, so that it may be looked at during I/O."""
    return Health(**vendor_health.glance(host, identity.name))


def ask(host: Host, argv: list[str], any_code: bool = False) -> tuple[dict[str, t.Any], str]:
    """(a tool's JSON, why there is none)."""
    result = host.run(argv, timeout_s=TIMEOUT_S)
    if result.rc == COMMAND_NOT_FOUND:
        return {}, f"{argv[0]} is not installed"
    try:
        data, wrong = tool_json.read(result.stdout), ""
    except tool_json.NotOneObject as broken:
        data, wrong = {}, f"{broken}"
    if not wrong and (any_code or result.rc == 0):
        return data, ""
    if wrong and result.rc == 0:
        return {}, "{} printed {}".format(" ".join(argv[:2]), wrong)
    error = data.get("error")  # nvme-cli 2 puts it into the JSON
    said = [error] if isinstance(error, str) else (result.stderr or result.stdout).strip().splitlines()
    return {}, "{0} failed with exit code {1}{2}".format(" ".join(argv[:2]), result.rc, ": " + said[0] if said else "")


def _celsius(value: t.Any) -> int | None:
    """NVMe counts in kelvin; 0 means that it is not reported."""
    kelvin = nvme_number(value)
    return kelvin - ZERO_CELSIUS_K if kelvin else None


def from_nvme(log: Json) -> Health:
    """From `nvme smart-log`. With --verbose, and always since nvme-cli 2.11, critical_warning is a mapping with its
    value.
    """
    warning = log.get("critical_warning")
    counts = [nvme_number(log.get(f"thm_temp{level}_trans_count")) for level in (1, 2)]
    seconds = [nvme_number(log.get(f"thm_temp{level}_total_time")) for level in (1, 2)]
    spare, threshold = nvme_number(log.get("avail_spare")), nvme_number(log.get("spare_thresh"))
    bits = nvme_number(warning.get("value") if isinstance(warning, dict) else warning)
    return Health(
        source="nvme smart-log",
        temperature_c=_celsius(log.get("temperature")),
        critical_warning=bits,
        # A drive that is hot, or cold, is well.
        passed=None if bits is None else bits & ~TOO_HOT == 0,
        spare_pct=spare,
        spare_threshold_pct=threshold,
        used_pct=nvme_number(log.get("percent_used")),
        media_errors=nvme_number(log.get("media_errors")),
        unsafe_shutdowns=nvme_number(log.get("unsafe_shutdowns")),
        warning_temp_min=nvme_number(log.get("warning_temp_time")),
        critical_temp_min=nvme_number(log.get("critical_comp_time")),
        throttle_counts=_levels(counts),
        throttle_s=_levels(seconds),
    )


def _levels(found: t.Sequence[int | None]) -> dict[str, int] | None:
    known = [value for value in found if value is not None]
    return {"t1": known[0], "t2": known[1]} if len(known) == 2 else None


def nvme_limits(controller: Json) -> Health:
    """Return what `nvme id-ctrl` adds: the two temperatures, and whether the write cache is volatile (VWC, bit 0)."""
    cache = nvme_number(controller.get("vwc"))
    return Health(
        warning_temperature_c=_celsius(controller.get("wctemp")),
        critical_temperature_c=_celsius(controller.get("cctemp")),
        volatile_write_cache=None if cache is None else bool(cache & 1),
    )


def from_smartctl(data: Json) -> Health:
    """From `smartctl --json`, of an NVMe, ATA or SCSI drive."""
    kind = next((part for key, part in _SMARTCTL_PARTS if key in data), None)
    temperature = _part(data, "temperature")
    found = Health(
        source="smartctl",
        temperature_c=nvme_number(temperature.get("current")),
        highest_temperature_c=nvme_number(temperature.get("power_cycle_max")),
        warning_temperature_c=nvme_number(temperature.get("op_limit_max")),
        critical_temperature_c=_first(temperature, "critical_limit_max", "limit_max", "drive_trip"),
        passed=_flag(_part(data, "smart_status").get("passed")),
    )
    if kind is None and found.passed is None:
        return dataclasses.replace(found, error=f"smartctl reports no health of this drive{_messages(data)}")
    return merge(found, kind(data)) if kind else found


def _messages(data: Json) -> str:
    listed = _part(data, "smartctl").get("messages")
    texts = [str(item.get("string")) for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    return ": " + texts[0] if texts else ""


def _smartctl_nvme(data: Json) -> Health:
    log = _part(data, "nvme_smart_health_information_log")
    limits = _part(data, "nvme_composite_temperature_threshold")
    return Health(
        temperature_c=nvme_number(log.get("temperature")),
        warning_temperature_c=nvme_number(limits.get("warning")),
        critical_temperature_c=nvme_number(limits.get("critical")),
        critical_warning=nvme_number(log.get("critical_warning")),
        spare_pct=nvme_number(log.get("available_spare")),
        spare_threshold_pct=nvme_number(log.get("available_spare_threshold")),
        used_pct=nvme_number(log.get("percentage_used")),
        media_errors=nvme_number(log.get("media_errors")),
        unsafe_shutdowns=nvme_number(log.get("unsafe_shutdowns")),
        warning_temp_min=nvme_number(log.get("warning_temp_time")),
        critical_temp_min=nvme_number(log.get("critical_comp_time")),
    )


def _smartctl_ata(data: Json) -> Health:
    # Not spare_available and endurance_used: some versions guess them from the values of attributes.
    rows, counts = ata_health.attributes(data), ata_health.counters(data)
    # The sources of a count tell of the same events.
    totals: dict[str, t.Any] = {counter: max(by_source.values()) for counter, by_source in counts.items()}
    return Health(
        interface_gbit_s=_gbit_s(_part(data, "interface_speed"), "current"),
        interface_max_gbit_s=_gbit_s(_part(data, "interface_speed"), "max"),
        is_in_database=_flag(data.get("in_smartctl_database")),
        failing=tuple(str(row.get("name")) for row in rows if row.get("when_failed") == "now"),
        used_pct=ata_health.used_pct(data),
        counts_by_source=counts or None,
        **totals,
    )


def _gbit_s(speeds: Json, key: str) -> float | None:
    speed = _part(speeds, key)
    units, bits = nvme_number(speed.get("units_per_second")), nvme_number(speed.get("bits_per_unit"))
    return units * bits / 1e9 if units and bits else None


def _smartctl_scsi(data: Json) -> Health:
    counters = _part(data, "scsi_error_counter_log")
    errors = {page: nvme_number(_part(counters, page).get("total_uncorrected_errors")) for page in counters}
    known = {page: count for page, count in errors.items() if count is not None and count >= 0}
    sensor = _part(_part(data, "scsi_environmental_reports"), "temperature_1")
    return Health(
        # Drives that only fill in the environmental page show 0 in the other one.
        temperature_c=nvme_number(_part(data, "temperature").get("current")) or nvme_number(sensor.get("current")),
        media_errors=sum(known.values()) if known else None,
        counts_by_source={"media_errors": known} if known else None,
        used_pct=nvme_number(data.get("scsi_percentage_used_endurance_indicator")),
    )


# The key of smartctl's JSON by which a kind of drive is known, and what reads the rest.
_SMARTCTL_PARTS = (
    ("nvme_smart_health_information_log", _smartctl_nvme),
    ("ata_smart_attributes", _smartctl_ata),
    ("scsi_error_counter_log", _smartctl_scsi),
)


def _part(data: Json, key: str) -> dict[str, t.Any]:
    value = data.get(key)
    return value if isinstance(value, dict) else {}


def _first(data: Json, *keys: str) -> int | None:
    return next((value for value in (nvme_number(data.get(key)) for key in keys) if value), None)


def _flag(value: t.Any) -> bool | None:
    return value if isinstance(value, bool) else None


def critical_texts(bits: int | None) -> list[str]:
    """Return what the bits of critical_warning say, one text each."""
    return [text for bit, text in CRITICAL_WARNINGS if (bits or 0) & bit]


def power_cycles(host: Host, identity: Identity) -> int | None:
    """None where the drive, or this host's tools, do not tell."""
    path, transport = str(identity.path), identity.transport
    if transport == "nvme":
        log, error = ask(host, ["nvme", "smart-log", path, "--output-format=json"])
        told = None if error else log.get("power_cycles")
    elif transport in ("sata", "sas"):
        log, _error = ask(host, ["smartctl", "--json=c", "-a", path], any_code=True)
        told = log.get("power_cycle_count")
    else:
        return None
    count = nvme_number(told)
    return count if count is not None and count >= 0 else None
