# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The drive's world: what has to hold still while it is measured. A baseline from before its first test, against which
every test is held.

Its states (links, power, direct I/O) are compared with the baseline, its counters (media errors, PCI Express errors,
throttling) with the look before the test: one error would otherwise disturb all tests after it. What came and went
while it was measured is placed in time by samples (sampler.py), and only told here. docs/validity.md lists each cause
with how it was staged.
"""

from __future__ import annotations

from dataclasses import replace

from ..core.host import Host
from ..drive import health, power, self_test
from ..drive.attributes import VIRTUAL
from ..drive.health import critical_texts
from ..machine import links, pcie
from ..records.environment import Environment, PowerState
from ..records.identity import Identity
from ..records.measurement import Condition
from . import life_counts, sampler
from .disturbances import DISTURBS, TOLD, UNKNOWN

HEALTH = (
    *sampler.KEPT,
    "highest_temperature_c",
    "warning_temperature_c",
    "critical_temperature_c",
    "interface_crc_errors",
    "unsafe_shutdowns",
    "counts_by_source",
    "spare_pct",
    "used_pct",
)
# A read that failed and was given back as an error, or had to be rebuilt, takes long and may be the first of many: none
# is normal.
MEDIA_ERRORS_MORE = 0
# At its warning temperature a drive may throttle (NVM Express, WCTEMP): "at" counts, as preflight's check does.
BELOW_LIMIT_C = 0
# A drive that throttles gets hot and cools down within minutes.
UNSEEN_S = 600.0
SERIAL = ("sata", "sas")


def read_environment(host: Host, identity: Identity) -> Environment:
    """Return a look at all of it, between tests: it asks the drive itself too (a few commands)."""
    name = identity.name
    address = pcie.address_of(host, name)
    path = pcie.path_to_root(host, address)
    told = health.read(host, identity)
    nvme = identity.transport == "nvme"
    state = power.read(host, str(identity.path)) if nvme else power.State(None, None)
    failed = self_test.read(host, identity).failed
    return Environment(
        **{key: getattr(told, key) for key in HEALTH},
        transport=identity.transport,
        link_speed_gts=path[0].speed_gts if path else None,
        link_width=path[0].width if path else None,
        link_rate_gbit_s=links.rate_gbit_s(host, name),
        aer={device.address: device.aer for device in path if device.aer is not None},
        link_policy=links.policy(host, name),
        pci_power=links.pci_power(host, address),
        power_state=PowerState(state.number, state.works),
        direct_io=direct_io(host, name),
        write_cache=host.get(f"/sys/block/{name}/queue/write_cache"),
        failed_self_tests=None if failed is None else list(failed),
    )


def direct_io(host: Host, name: str) -> bool | None:
    """Return whether a loop device goes past the page cache; None for any other drive, and where the kernel does not
    tell.
    """
    told = host.get(f"/sys/block/{name}/loop/dio") if name.startswith("loop") else None
    return {"1": True, "0": False}.get(told or "")


def changed(first: Environment, before: Environment, now: Environment) -> list[Condition]:
    """Return what a test's result can't stand for. first: the baseline; before: the look before the test; now: the one
    after it.
    """
    found = {
        **_links(first, now),
        **_power(first, now),
        **_write_cache(before, now),
    }
    found.update({key: text for key, text in sampler.lasting(before, now).items() if key not in found})
    return [Condition(cause_of(key), DISTURBS, text) for key, text in found.items()] + _cached(now)


def remarks(
    first: Environment, before: Environment, now: Environment, hottest_c: int | None, measured_s: float
) -> list[Condition]:
    """Return what is told of a test and disturbs at most the rounds in which it happened. hottest_c: of the samples;
    measured_s: between `before` and `now`.
    """
    heat = _heat(first, before, now, hottest_c).get("temperature", "")
    found = sampler.remarks(before, now)
    per_hour = {
        address: f"; {sum(more.values()) * 3600 / measured_s:.3g} an hour"
        for address, more in pcie.aer_increase(before.aer, now.aer).items()
        if measured_s > 0
    }
    causes = _counters(before, now) + [
        Condition(cause_of(key), UNKNOWN if key in HOT else TOLD, text + per_hour.get(key, ""))
        for key, text in found.items()
    ]
    return [Condition("temperature", UNKNOWN, heat + UNCOUNTED), *causes] if heat else causes


# A drive counts how often the host's thermal management slowed it down (NVM Express, HCTM), and not what it did itself.
HOT = ("warning_temp_min",)
UNCOUNTED = "; whether it slowed down by itself then nobody counts"


def cause_of(key: str) -> str:
    """Return the word for one of the sampler's kinds, which tell throttling levels, warnings and PCI
    addresses apart.
    """
    if pcie.ADDRESS.fullmatch(key):
        return "pcie_errors"
    if key.startswith("throttled"):
        return "throttled"
    if key in ("warning_temp_min", "critical_temp_min"):
        return "temperature"
    return "health" if key in ("unread", *critical_texts(0xFF)) else key


def _links(first: Environment, now: Environment) -> dict[str, str]:
    """Find a link that runs slower than it did: slower, narrower or gone.

    link disturbs: of PCI Express: `current_link_speed`, `current_link_width`; of SATA or SAS: `ata_link/*/sata_spd`,
      `sas_phy/*/negotiated_linkrate`; every sample. Limit: any fall below the baseline
    """
    told = sampler.lasting(first, now).get("link")
    return {"link": told} if told else {}


def _power(first: Environment, now: Environment) -> dict[str, str]:
    """Find less power than before, or a link that saves it.

    power_state disturbs: NVMe feature 02h and the state's descriptor, the function's `power_state`,
      `link_power_management_policy`. Limit: a higher-numbered power state that does I/O (in others the drive only
      idles); any change of the other two
    """
    found = []
    before, after = first.power_state, now.power_state
    # In a state without I/O a drive merely idles, and comes back by itself: in which state it works nobody saw then.
    works = before.works and after.works
    if works and before.number is not None and after.number is not None and after.number > before.number:
        found.append(
            f"its power state changed from {before.number} to {after.number}: a higher state allows less power"
        )
    for key, name in (("pci_power", "PCI power state"), ("link_policy", "link power management")):
        one, other = getattr(first, key), getattr(now, key)
        if None not in (one, other) and one != other:
            found.append(f"its {name} changed from {one} to {other}")
    return {"power_state": "; ".join(found)} if found else {}


def limit_c(world: Environment) -> int | None:
    """Return the drive's own limit: where it warns, else where it is critical."""
    return world.warning_temperature_c or world.critical_temperature_c


def _heat(first: Environment, before: Environment, now: Environment, hottest_c: int | None) -> dict[str, str]:
    """Find a drive at its own limit now, in a sample, or in between: its own memory of the highest rose to it. It may
    be as fast as ever, or have slowed down by itself.

    temperature unknown: WCTEMP, else CCTEMP; `op_limit_max`, else `limit_max` and `drive_trip` of smartctl; the
      temperature at which a card throttles (`fio-status`); the highest since power-on, if the drive records it. Limit:
      BELOW_LIMIT_C below the limit
    temperature disturbs: minutes above CCTEMP. Limit: any increase
    """
    limit = limit_c(now) or limit_c(first)
    if limit is None:
        return {}
    highest_c, before_c = now.highest_temperature_c, before.highest_temperature_c
    rose = highest_c is not None and before_c is not None and highest_c > before_c
    told = (now.temperature_c, hottest_c, highest_c if rose else None)
    seen = max((value for value in told if value is not None), default=None)
    hot = seen is not None and seen >= limit - BELOW_LIMIT_C
    return {"temperature": f"it reached {seen} °C, its own limit is {limit} °C"} if hot else {}


def _counters(before: Environment, now: Environment) -> list[Condition]:
    """Find new media errors, which say nothing against the figures, but against the drive (health_metrics.py), and
    counters that were reset.

    media_errors told: `nvme smart-log`, SATA attributes by their names (`drive/ata_health.py`) and the standard's
      statistic, the SCSI error counter log, `rssdm -S`. Limit: more than MEDIA_ERRORS_MORE
    media_errors unknown: the same; they were reset. Limit: any fall
    pcie_errors unknown: `aer_dev_*` of the drive and every port above it; they were reset. Limit: any fall
    """
    more = life_counts.more(before, now, "media_errors") or 0
    rose, fell = (look(before, now, "media_errors") for look in (life_counts.rose, life_counts.fell))
    text = f"it counted {more} more media errors ({life_counts.text(rose)}): reads that failed or were repeated"
    found = [Condition("media_errors", TOLD, text)] if more > MEDIA_ERRORS_MORE else []
    text = f"its count of media errors fell ({life_counts.text(fell)}), so it was reset: how many are new is unknown"
    found += [Condition("media_errors", UNKNOWN, text)] if fell else []
    reset = pcie.aer_fell(before.aer, now.aer)
    return found + [Condition("pcie_errors", UNKNOWN, sampler.pcie_reset_text(address)) for address in reset]


def _write_cache(before: Environment, now: Environment) -> dict[str, str]:
    """Find another write cache at the end of a test than when it began to measure; a purge and our own settings come
    before that.

    write_cache disturbs: `queue/write_cache`, and what the drive itself reports (NVMe feature 06h, the caching mode
      page), which the kernel may not know. Limit: any change since the measurement began; tuning repeats its settings
      before that
    """
    one, other = before.write_cache, now.write_cache
    if one is None or other is None or one == other:
        return {}
    return {"write_cache": f"its write cache changed from {one!r} to {other!r} while it was measured"}


def _cached(now: Environment) -> list[Condition]:
    """Find a loop device that uses the page cache.

    direct_io disturbs: `loop/dio`. Limit: 0
    """
    text = "the loop device uses the page cache (loop/dio is 0), so memory was measured: attach it with --direct-io=on"
    return [Condition("direct_io", DISTURBS, text)] if now.direct_io is False else []


def unknown(first: Environment, now: Environment, unseen_s: float = 0.0) -> list[Condition]:
    """Return what can't be told of this drive, or no longer: never "fine". A drive of software has none of it, which is
    one sentence. unseen_s: the longest that no sample was taken.

    world unknown: a drive of software has no link, power state, temperature or counters. Limit: none
    health unknown: its health cannot be read, or no longer. Limit: none
    """
    if now.transport in VIRTUAL:
        text = "{0} drives have no link, power state, temperature or counters: whether the conditions held is unknown"
        found = [("world", text.format(now.transport))]
        return [Condition(cause, UNKNOWN, text) for cause, text in found + _uncached(now)]
    found = []
    if now.error and not first.error:
        found.append(("health", f"its health could be read before and no longer can: {now.error}"))
    elif now.error:
        found.append(("health", f"its health cannot be read: {now.error}"))
    missing = [name for name, there in [*_told(now), ("samples", unseen_s <= UNSEEN_S)] if not there]
    return [Condition(cause, UNKNOWN, text) for cause, text in found + [(name, MISSING[name]) for name in missing]]


MISSING = {
    "link": "the speed of its link is unknown, so nothing shows whether it fell",
    "pcie_errors": (
        "neither the drive nor a port above it counts PCI Express errors (AER): whether they rose is unknown"
    ),
    "throttled": "nothing counts how often it was throttled: only its temperature indicates it",
    "temperature": "its temperature, or its own limit for it, is unknown",
    "media_errors": "its media errors are unknown",
    "power_state": "its power state is unknown",
    "samples": (
        "it was not sampled for more than 10 min (ssd_sample_interval_s): heat or a slower link that came and went "
        "would not show"
    ),
}


def _told(now: Environment) -> list[tuple[str, bool]]:
    """(cause, whether what it takes to see it can be read) of those that such a drive can have."""
    serial = now.transport in SERIAL
    shown_link = now.link_rate_gbit_s if serial else now.link_width
    # SATA and SAS drives do not count throttling; where the drive keeps its highest temperature, that stands for it.
    counted = now.throttle_counts is not None or (now.highest_temperature_c is not None and limit_c(now) is not None)
    told = [
        ("link", shown_link is not None),
        ("pcie_errors", bool(now.aer)),
        ("throttled", counted),
        ("temperature", now.temperature_c is not None and limit_c(now) is not None),
        ("media_errors", now.media_errors is not None),
    ]
    state = now.power_state
    return told + (
        [("power_state", state.number is not None and state.works is not None)] if now.transport == "nvme" else []
    )


def _uncached(now: Environment) -> list[tuple[str, str]]:
    """Find a loop device of which the kernel does not tell.

    direct_io unknown: `loop/dio` cannot be read. Limit: none
    """
    loop = now.transport == "loop" and now.direct_io is None
    return [("direct_io", "whether the loop device bypasses the page cache is unknown")] if loop else []


def carried(kept: Environment, now: Environment, same_boot: bool) -> Environment:
    """Return the baseline that a resumed run goes by: that of its first job; of another boot, with the counters of now,
    which a boot resets.
    """
    if same_boot:
        return kept
    return replace(
        kept,
        aer=now.aer,
        throttle_counts=now.throttle_counts,
        throttle_s=now.throttle_s,
        highest_temperature_c=now.highest_temperature_c,
    )
