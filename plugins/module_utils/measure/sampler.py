# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks at a drive every now and then while it is measured: temperature, throttling, link, error counters. Into the
journal as `sample`. What one sample shows beside the one before it disturbs the rounds between them.

A look is a few reads of sysfs and, for NVMe, one `nvme smart-log`, which goes by the admin queue. SATA and SAS drives
are asked for their health only before and after: a SMART command has to wait until every queued I/O is done, and would
show in the latencies.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import typing as t
from dataclasses import replace

from ..core.host import Host
from ..drive import health
from ..drive.health import TOO_HOT, critical_texts
from ..machine import cpus, hwmon, links, pcie
from ..records.base import to_json
from ..records.environment import Environment
from ..records.identity import Identity
from ..records.measurement import SampleDetails

# Of health.py's, what changes while a drive works.
KEPT = (
    "temperature_c",
    "critical_warning",
    "warning_temp_min",
    "critical_temp_min",
    "throttle_counts",
    "throttle_s",
    "media_errors",
    "error",
)
COUNTERS = ("critical_warning", "warning_temp_min", "critical_temp_min", "throttle_counts")
# Of a look that fails, as the look before it had them.
KNOWN_ON = (*COUNTERS, "throttle_s", "media_errors")
# How long the end of a test waits for a look that hangs.
JOIN_S = health.TIMEOUT_S * 3

# What two looks are compared by: one at a drive under load, or one between tests.
Look = t.Union[SampleDetails, Environment]


def take_sample(host: Host, identity: Identity, path: t.Sequence[str], ask: bool = True) -> SampleDetails:
    """One sample. path: the PCI addresses from the drive's function up; ask: read its health too."""
    began = time.monotonic()
    told = health.read(host, identity, limits=False) if ask else health.glance(host, identity)
    seen = [pcie.live(host, address) for address in path]
    link, cooling = seen[0] if seen else pcie.Link(""), hwmon.read(host)
    return SampleDetails(
        **{key: getattr(told, key) for key in KEPT},
        link_speed_gts=link.speed_gts,
        link_width=link.width,
        link_rate_gbit_s=links.rate_gbit_s(host, identity.name),
        aer={item.address: item.aer for item in seen if item.aer is not None},
        fans_rpm=cooling.fans_rpm or None,
        inlet_c=cooling.inlet_c,
        seconds=round(time.monotonic() - began, 4),
    )


def disturbed(first: Look, before: Look, now: Look) -> dict[str, str]:
    """Return what disturbs the rounds between two samples: {kind: sentence}. first: of the measurement; what a sample
    does not tell is not compared. A link that is slower than at first disturbs until it is back.
    """
    return {
        **_throttling(before, now),
        **_uncorrected(before, now),
        **(_slower_link(first, before) or _slower_link(first, now)),
    }


def lasting(first: Look, now: Look) -> dict[str, str]:
    """Return what still disturbs at the end of a test, and all that it measured with it: {kind: sentence}."""
    return {**_minutes_above(first, now, "critical"), **_slower_link(first, now)}


def remarks(first: Look, now: Look) -> dict[str, str]:
    """Return what counts and is only told, from the start of a measurement to its end: {kind: sentence}."""
    return {**_throttling(first, now), **_warnings(first, now), **_hot(first, now), **_pcie_errors(first, now)}


def unread(first: SampleDetails | None, last: SampleDetails) -> dict[str, str]:
    """Return what the last sample no longer tells though the first did, so that nothing can be said: {kind:
    sentence}.

    health disturbs: health data that can no longer be read. Limit: any
    """
    if first is None or first.error:
        return {}
    lost = [key for key in COUNTERS if getattr(first, key) is not None and getattr(last, key) is None]
    why = last.error or ("it no longer reports its counters" if lost else "")
    return (
        {"unread": f"its health could not be read at the end, so it is unknown whether it was throttled: {why}"}
        if why
        else {}
    )


def _throttling(first: Look, now: Look) -> dict[str, str]:
    """Find a drive that slowed down because of heat.

    throttled disturbs: TMT1 and TMT2 transitions and seconds, between two samples. Limit: any increase
    """
    told = {}
    for level in ("t1", "t2"):
        count = _more(first.throttle_counts, now.throttle_counts, level)
        seconds = _more(first.throttle_s, now.throttle_s, level)
        if count or seconds:
            text = "it was throttled by thermal management {0}: {1} more transitions, {2} s more"
            told["throttled " + level] = text.format(level[1:], count, seconds)
    return told


def _minutes_above(first: Look, now: Look, name: str) -> dict[str, str]:
    key = f"{name}_temp_min"
    before_min, now_min = getattr(first, key), getattr(now, key)
    if None in (before_min, now_min) or now_min <= before_min:
        return {}
    return {key: f"it was above its {name} temperature for {now_min - before_min} min more"}


def _with_last_known(sample: SampleDetails, before: SampleDetails) -> SampleDetails:
    """Return a sample to compare the next one with: what it does not tell, as the one before it told."""
    known = {key: getattr(before, key) for key in KNOWN_ON if getattr(sample, key) is None}
    return replace(sample, aer={**before.aer, **sample.aer}, **known)


def _hot(first: Look, now: Look) -> dict[str, str]:
    """Find a drive that warned of its temperature. It may have slowed down only where it was throttled too."""
    warns = (now.critical_warning or 0) & TOO_HOT
    told = {text: "it warns: " + text for text in critical_texts(warns)}
    return {**told, **_minutes_above(first, now, "warning")}


def _more(first: t.Mapping[str, int] | None, now: t.Mapping[str, int] | None, key: str) -> int:
    return max(0, now[key] - first[key]) if first and now else 0


def _warnings(first: Look, now: Look) -> dict[str, str]:
    """Find warnings that came up, but for that of heat; what was there before, preflight has told.

    health told: critical_warning; the kernel's `status` of a P320h or P420m. Limit: any new bit
    """
    return {text: "it warns: " + text for text in critical_texts(_new_warnings(first, now))}


def _new_warnings(first: Look, now: Look) -> int:
    """Return the bits of critical_warning that came up, but for that of heat."""
    return (now.critical_warning or 0) & ~((first.critical_warning or 0) | TOO_HOT)


def _slower_link(first: Look, now: Look) -> dict[str, str]:
    before, after = (_link(look) for look in (first, now))
    if before is None or before == after:
        return _slower(first.link_rate_gbit_s, now.link_rate_gbit_s)
    if after is None:
        return {"link": f"its link of {pcie.link_text(*before)} can no longer be seen"}
    fell = after[0] < before[0] or after[1] < before[1]
    return {"link": f"its link fell from {pcie.link_text(*before)} to {pcie.link_text(*after)}"} if fell else {}


def _link(look: Look) -> tuple[float, int] | None:
    """Return the speed and width of a PCI Express link; None where one of them is unknown."""
    speed_gts, width = look.link_speed_gts, look.link_width
    return None if speed_gts is None or width is None else (speed_gts, width)


def _slower(before: float | None, after: float | None) -> dict[str, str]:
    """Of a SATA or SAS link."""
    if before is None or before == after:
        return {}
    if after is None:
        return {"link": f"its link of {before:g} Gb/s can no longer be seen"}
    return {"link": f"its link fell from {before:g} to {after:g} Gb/s"} if after < before else {}


def _uncorrected(first: Look, now: Look) -> dict[str, str]:
    """Find new errors on the way to the drive that its link did not correct itself.

    pcie_errors disturbs: `aer_dev_nonfatal` and `aer_dev_fatal` of the drive and every port above it, between two
      samples. Limit: any increase, or a reset of the counters
    """
    rose = {
        address: _pcie_text(address, more)
        for address, more in _pcie_increase(first, now).items()
        if set(more) - {"correctable"}
    }
    return {**rose, **{address: pcie_reset_text(address) for address in pcie.aer_fell(first.aer, now.aer)}}


def _pcie_errors(first: Look, now: Look) -> dict[str, str]:
    """Return all new errors on the way to the drive. A fast link may repeat a packet every few seconds and be as good
    as its standard asks (a bit error rate of 1e-12).

    pcie_errors told: `aer_dev_*` of the drive and every port above it. Limit: any increase
    """
    return {address: _pcie_text(address, more) for address, more in _pcie_increase(first, now).items()}


def _pcie_increase(first: Look, now: Look) -> dict[str, pcie.Errors]:
    before = first.aer
    return pcie.aer_increase(before, {address: now.aer.get(address) for address in before})


def pcie_reset_text(address: str) -> str:
    """Return that the counters of a function fell."""
    return f"the counters of PCI Express errors at {address} fell, so they were reset: how many are new is unknown"


def _pcie_text(address: str, more: pcie.Errors) -> str:
    return f"PCI Express errors rose by {pcie.aer_text(more)} at {address}"


class Sampler:
    """Takes samples of one drive from `with` to its end, in a thread of its own and when it is asked.

    identity: asked at the start, as a purge may have changed the kernel name; note: writes a record's fields;
      interval_s 0: samples only where it is asked;
    io_cpus: the CPUs that fio works on, as a list, which the samples of the thread keep off; baseline: with which its
      link is compared, where there is one.
    """

    def __init__(
        self,
        host: Host,
        identity: t.Callable[[], Identity],
        note: t.Callable[..., None],
        interval_s: float,
        io_cpus: t.Callable[[], str | None],
        baseline: t.Callable[[], Environment | None] = lambda: None,
        clock: t.Callable[[], float] = time.monotonic,
    ) -> None:
        self._host = host
        self._identity = identity
        self._note = note
        self._interval_s = interval_s
        self._io_cpus = io_cpus
        self._baseline = baseline
        self._clock = clock
        self._looked_s = 0.0
        # The longest that nobody looked at the drive, and the highest temperature that was seen.
        self.unseen_s = 0.0
        self.hottest_c: int | None = None
        # Bits of critical_warning that came up, but for that of heat.
        self.warned = 0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        # One look at a time, and what it finds.
        self._lock = threading.Lock()
        self._first: SampleDetails | None = None
        self._last: SampleDetails | None = None
        self._known = Identity()
        self._path: list[str] = []
        # Since it was asked last.
        self._disturbed: dict[str, str] = {}
        # What is of all the time: the drive warned, or was too hot, or what the samples would show is unknown.
        self.of_all: dict[str, str] = {}

    def since_last(self) -> dict[str, str]:
        """Look now; what disturbed the drive since the last call, {kind: sentence} with the kinds of `disturbed`."""
        with self._whatever_fails():
            self._look()
        with self._lock:
            found, self._disturbed = self._disturbed, {}
        return found

    def __enter__(self) -> Sampler:
        self._looked_s = self._clock()
        self._known = self._identity()
        name = self._known.name
        path = pcie.path_to_root(self._host, pcie.address_of(self._host, name))
        self._path = [device.address for device in path]
        self._look(ask=True)
        if self._interval_s > 0:
            others = cpus.without(self._io_cpus())
            self._thread = threading.Thread(target=self._run, args=(others,), daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._thread is not None:
            self._stop.set()
            self._thread.join(JOIN_S)
            if self._thread.is_alive():
                text = "a sample of the drive did not end: whether it was throttled is unknown"
                self.of_all["samples"] = text
                return
        with self._whatever_fails():
            self.of_all.update(unread(self._first, self._look(ask=True)))

    def _run(self, others: list[int]) -> None:
        if others:
            # Of this thread alone, and of the commands that it starts.
            os.sched_setaffinity(0, others)
        with self._whatever_fails():
            while not self._stop.wait(self._interval_s):
                self._look()

    @contextlib.contextmanager
    def _whatever_fails(self) -> t.Iterator[None]:
        """Keep that a look failed: one that ends unseen would let a throttled drive pass."""
        try:
            yield
        except Exception as error:
            text = f"samples ended early ({type(error).__name__}: {error}): whether it was throttled is unknown"
            self.of_all["samples"] = text

    def _look(self, ask: bool = False) -> SampleDetails:
        """Take a sample. ask: of a drive on SATA or SAS too, whose queue is empty now. Raises TimeoutError where
        another look hangs.
        """
        if not self._lock.acquire(timeout=JOIN_S):
            raise TimeoutError("another look does not end")
        try:
            sample = take_sample(self._host, self._known, self._path, ask or self._known.transport == "nvme")
            self._take(sample)
            return sample
        finally:
            self._lock.release()

    def _take(self, sample: SampleDetails) -> None:
        now_s = self._clock()
        self.unseen_s, self._looked_s = max(self.unseen_s, now_s - self._looked_s), now_s
        self._note("sample", **to_json(sample))
        seen = [one for one in (self.hottest_c, sample.temperature_c) if one is not None]
        self.hottest_c = max(seen, default=None)
        first = self._first = self._first or sample
        last = self._last or sample
        self.warned |= _new_warnings(first, sample)
        self._disturbed.update(disturbed(self._baseline() or first, last, sample))
        self.of_all.update({**_warnings(first, sample), **_minutes_above(first, sample, "critical")})
        self._last = _with_last_known(sample, last)
