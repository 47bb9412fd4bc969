# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of a drive's health and temperature. Pure.

Sources: NVM Express Base Specification 2.0 (SMART / Health Information; WCTEMP and CCTEMP of Identify Controller);
  Micron TN-FD-15,
"Temperature/Airflow"; ioMemory VSL Peak Performance Guide, "Set Fan Speeds to High".
"""

from __future__ import annotations

from ..drive import self_test
from ..drive.health import TOO_HOT, Health, critical_texts
from .base import BLOCKS, WARNING, Check, CheckedDrive, HostFacts, OfVirtual, Unknown

COOL = (
    "cool it: run the fans at full speed, use a slot with more airflow, close the cover; TN-FD-15 warms the system "
    "up for 20 minutes before it checks (preflight_warm_up_s)"
)

TOLD = {
    "passed": "self-assessment",
    "media_errors": "media errors",
    "spare_pct": "spare",
    "spare_threshold_pct": "spare's threshold",
    "used_pct": "wear",
    "temperature_c": "temperature",
}


def _limit_c(health: Health) -> int | None:
    """Return the temperature at which a drive warns, else that which is critical."""
    return health.warning_temperature_c or health.critical_temperature_c


def _without(drive: CheckedDrive, *keys: str) -> list[str]:
    """Return why a part of the health is unknown; empty where all of it is there."""
    if drive.health.error:
        kind = OfVirtual if drive.is_virtual else Unknown
        return [kind(f"its health cannot be read: {drive.health.error}")]
    missing = [TOLD[key] for key in keys if getattr(drive.health, key) is None]
    text = "{0} does not report its {1}".format(drive.health.source or "the drive", ", ".join(missing))
    if drive.health.is_in_database is False:
        text += "; smartctl's database does not have this model: update-smart-drivedb may help"
    return [Unknown(text)] if missing else []


def failing(_facts: HostFacts, drive: CheckedDrive) -> list[str]:
    """Find a warning of the drive itself: critical_warning but for its temperature, a failing attribute, a failed
    self-assessment.

    Reads: `nvme smart-log`, `smartctl`, `rssdm`, `fio-status`. Source: NVM Express base specification.
    """
    told = critical_texts((drive.health.critical_warning or 0) & ~TOO_HOT)
    told += [f"attribute {name} is below its threshold" for name in drive.health.failing]
    # Heat is for the check `temperature`; smartctl takes it for a failure.
    if not told and drive.health.passed is False and drive.health.critical_warning != TOO_HOT:
        told = ["its self-assessment is: {0}".format(drive.health.verdict or "failed")]
    return ["it warns: " + "; ".join(told)] if told else _without(drive, "passed")


def media_errors(_facts: HostFacts, drive: CheckedDrive) -> list[str]:
    """Find data that the drive could not read back.

    Reads: `nvme smart-log`, `smartctl`, `rssdm`, `fio-status`. Source: NVM Express base specification.
    """
    count = drive.health.media_errors
    return _without(drive, "media_errors") or ([f"it counted {count} media errors"] if count else [])


def spare(_facts: HostFacts, drive: CheckedDrive) -> list[str]:
    """Find spare at or below its threshold; QEMU's 0 of 0 counts as unknown.

    Reads: `nvme smart-log`, `smartctl`, `rssdm`, `fio-status`. Source: NVM Express base specification.
    """
    if drive.health.source == "smartctl" and drive.health.spare_pct is None:
        return []  # ATA and SCSI have no such figure
    left, threshold = drive.health.spare_pct, drive.health.spare_threshold_pct
    if drive.health.error or left is None or threshold is None:
        return _without(drive, "spare_pct", "spare_threshold_pct")
    if left == threshold == 0:
        return [Unknown("it reports 0 % spare and a threshold of 0 %, which says nothing")]
    return [f"its spare is {left} %, at or below its threshold of {threshold} %"] if left <= threshold else []


def wear(facts: HostFacts, drive: CheckedDrive) -> list[str]:
    """Find `preflight_max_used_pct` (90) of a drive's endurance used, or more, by its own count.

    Reads: `nvme smart-log`, `smartctl`, `rssdm`, `fio-status`. Source: TN-FD-15, "SSD vs. HDD".
    """
    used, most = drive.health.used_pct, facts.required.max_used_pct
    if drive.health.error or used is None:
        return _without(drive, "used_pct")
    return [f"{used} % of its endurance is used (preflight_max_used_pct: {most})"] if used >= most else []


def too_hot(_facts: HostFacts, drive: CheckedDrive) -> list[str]:
    """Find a drive at or above the temperature at which it warns (WCTEMP, else CCTEMP), or that warns of another one.

    Reads: `nvme smart-log`, `smartctl`, `rssdm`, `fio-status`, `nvme id-ctrl`. Source: TN-FD-15,
    "Temperature/Airflow".
    """
    now, limit = drive.health.temperature_c, _limit_c(drive.health)
    if now is not None and limit is not None and now >= limit:
        return [f"it is at {now} °C, its limit is {limit} °C"]
    warned = critical_texts((drive.health.critical_warning or 0) & TOO_HOT)
    if warned:
        return ["it warns: " + warned[0]]
    return _without(drive, "temperature_c")


def headroom(facts: HostFacts, drive: CheckedDrive) -> list[str]:
    """Find a drive less than `preflight_temperature_headroom_c` (10) °C below the temperature at which it warns.

    Reads: `nvme smart-log`, `smartctl`, `rssdm`, `fio-status`. Source: TN-FD-15; guide, "Set Fan Speeds to High".
    """
    now, limit = drive.health.temperature_c, _limit_c(drive.health)
    if drive.health.error or now is None:
        return []
    if limit is None:
        return [Unknown(f"it is at {now} °C, but does not report the temperatures at which it warns or throttles")]
    wanted = facts.required.temperature_headroom_c
    near = 0 < limit - now < wanted
    if not near:
        return []
    return [
        f"it is at {now} °C, {limit - now} °C below its limit of {limit} °C "
        f"(preflight_temperature_headroom_c: {wanted})"
    ]


def throttled_before(_facts: HostFacts, drive: CheckedDrive) -> list[str]:
    """Find a drive that was throttled, or too hot, at some point in its life.

    Reads: `nvme smart-log`, `smartctl`, `rssdm`, `fio-status`. Source: TN-FD-15.
    """
    counts = drive.health.throttle_counts or {}
    if drive.identity.transport == "nvme" and not counts and not drive.health.error:
        return [
            Unknown(
                "{0} does not report whether it was ever throttled (nvme-cli does)".format(
                    drive.health.source or "the drive"
                )
            )
        ]
    told = [f"{count} transitions to thermal throttling {level[1:]}" for level, count in counts.items() if count]
    for key, name in (("warning_temp_min", "warning"), ("critical_temp_min", "critical")):
        if getattr(drive.health, key):
            told.append(f"{getattr(drive.health, key)} min above its {name} temperature")
    return ["in its life it had " + ", ".join(told)] if told else []


def self_test_running(_facts: HostFacts, drive: CheckedDrive) -> list[str]:
    """Find a self-test of the drive that is under way; the host job waits for it.

    Reads: `nvme self-test-log`, `smartctl -c -l selftest`. Source: NVM Express base specification.
    """
    seen = drive.self_test
    if not seen.is_running:
        return []
    command = self_test.abort_command(drive.identity)
    return [f"its {self_test.text(seen)}, is under way; the host job waits for it ({command} would end it)"]


def write_cache(facts: HostFacts, drive: CheckedDrive) -> list[str]:
    """Find a volatile write cache that is on without being asked for.

    Reads: `queue/write_cache`, VWC of `nvme id-ctrl`. Source: brief; TN-FD-15, "Write Cache Setting".
    """
    if drive.is_virtual or drive.options.write_cache or facts.required.write_cache_chosen:
        return []
    volatile, state = drive.health.volatile_write_cache, drive.write_cache
    if state is None and volatile is None:
        return [Unknown("it is unknown whether it has a volatile write cache that is on")]
    on = state == "write back" if state is not None else volatile
    return (
        [
            (
                "its volatile write cache is on: acknowledged writes may be lost at a power failure, and the figures "
                "include the cache"
            )
        ]
        if on
        else []
    )


CHECKS: tuple[Check, ...] = (
    Check("health", BLOCKS, "replace the drive, or check its log before you measure it", failing),
    Check("media_errors", WARNING, "check its error log; a drive that loses data is not worth measuring", media_errors),
    Check("spare", BLOCKS, "replace the drive", spare),
    Check("wear", WARNING, "use a drive with less wear, or judge it as a worn one", wear),
    Check("temperature", BLOCKS, COOL, too_hot),
    Check("temperature_headroom", WARNING, COOL, headroom),
    Check(
        "throttled_before",
        WARNING,
        "make sure that its slot has enough airflow; throttling during the run makes a test invalid",
        throttled_before,
    ),
    Check(
        "self_test",
        WARNING,
        "allow for the time (after 12 h or ssd_time_budget the drive ends with an error), or end the self-test with "
        "the command that the finding names",
        self_test_running,
    ),
    Check(
        "write_cache",
        WARNING,
        "set write_cache: on or off in the drive's entry, or tune_write_cache; use off without power-loss protection",
        write_cache,
    ),
)
