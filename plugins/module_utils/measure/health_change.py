# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a test did to a drive's health, by looks at the drive before and after it (drive_environment.py) and samples in
between (sampler.py).
"""

from __future__ import annotations

import collections
import typing as t
from dataclasses import replace

from ..core.host import Host
from ..core.sysfs import number
from ..drive.health import TOO_HOT
from ..machine import pcie
from ..records.environment import Environment
from ..records.health import HealthChange
from . import life_counts, sampler

# Of a block device whose driver has given it up: an NVMe controller's, and a SCSI device's.
GONE = ("dead", "deleting", "deleting (no IO)", "deleted", "offline", "transport-offline")
# What a drive tells of all its life.
KNOWN_ON = (*life_counts.NAMES, "critical_warning", "failed_self_tests")


class Looks(t.NamedTuple):
    """Looks at a drive. first: before its first test; last: at the end of the test before; before: when this one began
    to measure; now: at its end.
    """

    first: Environment
    last: Environment
    before: Environment
    now: Environment


def between(looks: Looks, warned: int, hottest_c: int | None, own_function: str, measured_s: float) -> HealthChange:
    """Return what changed.

    warned, hottest_c: by samples, warnings that came up, as bits, and the highest temperature.
    own_function: the PCI address of a drive that is a function itself; "": it has none, as on SATA; measured_s: from
      `before` to `now`.
    """
    first, last, before, now = looks
    since, lately = (_pcie_errors(look, now, own_function) for look in (last, before))
    return HealthChange(
        media_errors=life_counts.more(last, now, "media_errors"),
        critical_warning=_warnings(last, now, warned),
        failed_self_tests=_failed_self_tests(last, now),
        interface_crc_errors=life_counts.more(last, now, "interface_crc_errors"),
        unsafe_shutdowns=life_counts.more(last, now, "unsafe_shutdowns"),
        counts_by_source=life_counts.merged(life_counts.of(last), life_counts.of(now)),
        uncorrected_pcie_errors=None if since is None else sum(since.get(kind, 0) for kind in pcie.UNCORRECTED),
        corrected_pcie_errors_per_h=None if lately is None else _per_hour(lately.get("correctable", 0), measured_s),
        throttled_s=_throttled_s(before, now),
        highest_temperature_c=_highest_c(before, now, hottest_c),
        available_spare_pct=now.spare_pct,
        percentage_used=now.used_pct,
        link_degraded=_link_degraded(first, now, own_function),
    )


def with_last_known(now: Environment, last: Environment) -> Environment:
    """Return a look to compare the next one with: what it does not tell, as the one before it told."""
    known = {name: getattr(last, name) for name in KNOWN_ON if getattr(now, name) is None}
    counts = life_counts.merged(life_counts.of(last), life_counts.of(now))
    return replace(now, aer={**last.aer, **now.aer}, counts_by_source=counts, **known)


def seen_before(baseline: Environment, changes: t.Iterable[HealthChange], now: Environment) -> Environment:
    """Return the last look of a run's jobs before this one: the counts at the end of its last test, and the warnings
    of its baseline and its tests.

    What is unknown of them, and what a boot resets, is that of `now`.
    """
    warnings, counts = baseline.critical_warning, life_counts.of(baseline)
    for change in changes:
        warnings = None if warnings is None else warnings | (change.critical_warning or 0)
        counts = change.counts_by_source or counts
    return replace(
        now,
        critical_warning=now.critical_warning if warnings is None else warnings,
        # Those of the tests before are told again: their drive fails anyway.
        failed_self_tests=baseline.failed_self_tests,
        counts_by_source=life_counts.merged(life_counts.of(now), counts),
    )


def _more(before: int | None, now: int | None) -> int | None:
    """Return by how much a count grew; None where it is unknown, or was reset."""
    return None if before is None or now is None or now < before else now - before


def _pcie_errors(before: Environment, now: Environment, own_function: str) -> pcie.Errors | None:
    """Return how many errors of the drive's own function are new, by kind; None where nobody counts, or the counters
    were reset.
    """
    one, other = before.aer.get(own_function), now.aer.get(own_function)
    if one is None or other is None or pcie.aer_fell({own_function: one}, {own_function: other}):
        return None
    return pcie.aer_increase({own_function: one}, {own_function: other}).get(own_function, {})


def _per_hour(count: int, measured_s: float) -> float | None:
    return round(count * 3600 / measured_s, 3) if measured_s > 0 else None


def _warnings(last: Environment, now: Environment, warned: int) -> int | None:
    if last.critical_warning is None or now.critical_warning is None:
        return warned or None
    return (now.critical_warning & ~last.critical_warning & ~TOO_HOT) | warned


def _failed_self_tests(last: Environment, now: Environment) -> int | None:
    """Return how many are new. A log keeps only the newest, so their number alone tells nothing."""
    if last.failed_self_tests is None or now.failed_self_tests is None:
        return None
    new = collections.Counter(now.failed_self_tests) - collections.Counter(last.failed_self_tests)
    return sum(new.values())


def _throttled_s(before: Environment, now: Environment) -> int | None:
    levels = [_more((before.throttle_s or {}).get(level), (now.throttle_s or {}).get(level)) for level in ("t1", "t2")]
    known = [seconds for seconds in levels if seconds is not None]
    return sum(known) if len(known) == len(levels) else None


def _highest_c(before: Environment, now: Environment, hottest_c: int | None) -> int | None:
    one, other = before.highest_temperature_c, now.highest_temperature_c
    rose = other if one is not None and other is not None and other > one else None
    return max((value for value in (now.temperature_c, hottest_c, rose) if value is not None), default=None)


def _link_degraded(first: Environment, now: Environment, own_function: str) -> bool | None:
    """Return whether the drive's own link is slower than at first. That of its HBA is none of it."""
    one = first if own_function else replace(first, link_speed_gts=None)
    if one.link_rate_gbit_s is None and None in (one.link_speed_gts, one.link_width):
        return None
    return "link" in sampler.lasting(one, now)


def io_timeout_s(host: Host, name: str) -> float | None:
    """Return after how long the kernel gives up an I/O of the drive with this kernel name. Kernels before 5.0 tell it
    of SCSI drives alone.
    """
    found_ms = number(host, f"/sys/block/{name}/queue/io_timeout")
    found_s = number(host, f"/sys/block/{name}/device/timeout")
    return found_s if found_ms is None else found_ms / 1000


def is_gone(host: Host, name: str) -> bool:
    """Return whether the kernel no longer has the drive of this name, or has given it up."""
    return not host.exists(f"/sys/block/{name}") or host.get(f"/sys/block/{name}/device/state") in GONE
