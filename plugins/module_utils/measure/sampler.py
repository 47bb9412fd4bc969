# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks at a drive every now and then while it is measured: temperature, throttling, link, error counters. Into the
journal as `sample`.

A look is a few reads of sysfs and, for NVMe, one `nvme smart-log`, which goes by the admin queue. SATA and SAS drives
are asked for their health only before and after: a SMART command has to wait until every queued I/O is done, and would
show in the latencies.
"""

from __future__ import annotations

import os
import threading
import time
import typing as t

from ..core.host import Host
from ..drive import health
from ..drive.health import critical_texts
from ..machine import cpus, links, pcie

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
TOO_HOT = 0x02
# How long the end of a test waits for a look that hangs.
JOIN_S = health.TIMEOUT_S * 3

Sample = t.Dict[str, t.Any]


def take_sample(host: Host, identity: t.Mapping[str, t.Any], path: t.Sequence[str], ask: bool = True) -> Sample:
    """One sample. path: the PCI addresses from the drive's function up; ask: read its health too."""
    began = time.monotonic()
    told = health.read(host, identity, limits=False) if ask else health.glance(host, identity)
    seen = [pcie.live(host, address) for address in path]
    link = seen[0] if seen else pcie.Link("")
    return {
        **{key: getattr(told, key) for key in KEPT},
        "link_speed_gts": link.speed_gts,
        "link_width": link.width,
        "link_rate_gbit_s": links.rate_gbit_s(host, os.path.basename(str(identity["path"]))),
        "aer": {item.address: item.aer for item in seen if item.aer is not None},
        "seconds": round(time.monotonic() - began, 4),
    }


def disturbed(first: Sample, now: Sample) -> dict[str, str]:
    """Return what makes the measurement between two samples invalid: {kind: sentence}. What either does not tell is not
    compared.
    """
    return {**_throttling(first, now), **_warnings(first, now), **_narrower(first, now), **_errors(first, now)}


def unread(first: Sample | None, last: Sample) -> dict[str, str]:
    """Return what the last sample no longer tells though the first did, so that nothing can be said: {kind:
    sentence}.
    """
    if first is None or first["error"]:
        return {}
    lost = [key for key in COUNTERS if first[key] is not None and last[key] is None]
    why = last["error"] or ("it no longer reports its counters" if lost else "")
    return (
        {"unread": f"its health could not be read at the end, so it is unknown whether it was throttled: {why}"}
        if why
        else {}
    )


def too_hot(now: Sample, limit_c: int | None, before: str | None = None) -> dict[str, str]:
    """At the drive's own limit; the first such sample is told."""
    seen = now["temperature_c"]
    if before or seen is None or limit_c is None or seen < limit_c:
        return {}
    return {"temperature": f"it reached {seen} °C, its own limit is {limit_c} °C"}


def _throttling(first: Sample, now: Sample) -> dict[str, str]:
    """Find a drive that slowed down because of heat.

    throttled disturbs: TMT1 and TMT2 transitions and seconds, minutes above WCTEMP and CCTEMP. Limit: any increase
    """
    told = {}
    for level in ("t1", "t2"):
        count, seconds = (_more(first[key], now[key], level) for key in ("throttle_counts", "throttle_s"))
        if count or seconds:
            text = "it was throttled by thermal management {0}: {1} more transitions, {2} s more"
            told["throttled " + level] = text.format(level[1:], count, seconds)
    for key, name in (("warning_temp_min", "warning"), ("critical_temp_min", "critical")):
        if None not in (first[key], now[key]) and now[key] > first[key]:
            told[key] = f"it was above its {name} temperature for {now[key] - first[key]} min more"
    return told


def _more(first: t.Mapping[str, int] | None, now: t.Mapping[str, int] | None, key: str) -> int:
    return max(0, now[key] - first[key]) if first and now else 0


def _warnings(first: Sample, now: Sample) -> dict[str, str]:
    """Find warnings that came up; what was there before, preflight has told, but being too hot is no less true for
    that.

    health disturbs: critical_warning; the kernel's `status` of a P320h or P420m; health data that can no longer be
      read. Limit: any new bit; a temperature warning even if it was there before
    """
    if now["critical_warning"] is None:
        return {}
    known = (first["critical_warning"] or 0) & ~TOO_HOT
    return {text: "it warns: " + text for text in critical_texts(now["critical_warning"] & ~known)}


def _narrower(first: Sample, now: Sample) -> dict[str, str]:
    before, after = ((sample["link_speed_gts"], sample["link_width"]) for sample in (first, now))
    if None in before or before == after:
        return _slower(first.get("link_rate_gbit_s"), now.get("link_rate_gbit_s"))
    if None in after:
        return {"link": f"its link of {pcie.link_text(*before)} can no longer be seen"}
    fell = after[0] < before[0] or after[1] < before[1]
    return {"link": f"its link fell from {pcie.link_text(*before)} to {pcie.link_text(*after)}"} if fell else {}


def _slower(before: float | None, after: float | None) -> dict[str, str]:
    """Of a SATA or SAS link."""
    if before is None or before == after:
        return {}
    if after is None:
        return {"link": f"its link of {before:g} Gb/s can no longer be seen"}
    return {"link": f"its link fell from {before:g} to {after:g} Gb/s"} if after < before else {}


def _errors(first: Sample, now: Sample) -> dict[str, str]:
    """Find new errors on the link.

    pcie_errors disturbs: `aer_dev_*` of the drive and every port above it. Limit: any increase
    """
    before = first["aer"]
    rose = pcie.aer_increase(before, {address: now["aer"].get(address) for address in before})
    return {address: f"PCI Express errors rose by {pcie.aer_text(more)} at {address}" for address, more in rose.items()}


class Sampler:
    """Takes samples of one drive from `with` to its end, in a thread of its own; `reasons` then tells why the test is
    invalid.

    identity: asked at the start, as a purge may have changed the kernel name; note: writes a record's fields;
      interval_s 0: no samples;
    io_cpus: the CPUs that fio works on, as a list, which the samples keep off; limit_c: the drive's own limit, which a
      sample may tell that it reached.
    """

    def __init__(
        self,
        host: Host,
        identity: t.Callable[[], t.Mapping[str, t.Any]],
        note: t.Callable[..., None],
        interval_s: float,
        io_cpus: t.Callable[[], str | None],
        limit_c: t.Callable[[], int | None] = lambda: None,
        clock: t.Callable[[], float] = time.monotonic,
    ) -> None:
        self._host = host
        self._identity = identity
        self._note = note
        self._interval_s = interval_s
        self._io_cpus = io_cpus
        self._limit_c = limit_c
        self._clock = clock
        self._looked_s = 0.0
        # The longest that nobody looked at the drive.
        self.unseen_s = 0.0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._first: Sample | None = None
        self._known: t.Mapping[str, t.Any] = {}
        self._path: list[str] = []
        self._disturbed: dict[str, str] = {}

    @property
    def causes(self) -> dict[str, str]:
        """What makes the test invalid, {kind: sentence}; kinds are those of `disturbed`."""
        return dict(self._disturbed)

    @property
    def reasons(self) -> list[str]:
        """Why the test is invalid; empty where nothing was seen. Of a count that went on rising, its last figure."""
        return list(self._disturbed.values())

    def __enter__(self) -> Sampler:
        self._looked_s = self._clock()
        if self._interval_s > 0:
            self._known = self._identity()
            name = os.path.basename(str(self._known["path"]))
            path = pcie.path_to_root(self._host, pcie.address_of(self._host, name))
            self._path = [device.address for device in path]
            self._look()
            others = sorted(set(os.sched_getaffinity(0)) - set(_listed(self._io_cpus())))
            self._thread = threading.Thread(target=self._run, args=(others,), daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._thread is None:
            self._looked()
            return
        self._stop.set()
        self._thread.join(JOIN_S)
        if self._thread.is_alive():
            self._disturbed["samples"] = "a sample of the drive did not end: whether it was throttled is unknown"
            return
        self._disturbed.update(unread(self._first, self._look()))

    def _run(self, others: list[int]) -> None:
        if others:
            # Of this thread alone, and of the commands that it starts.
            os.sched_setaffinity(0, others)
        try:
            while not self._stop.wait(self._interval_s):
                self._look(ask=self._known.get("transport") == "nvme")
        except Exception as error:  # A thread that dies unseen would let a throttled drive pass.
            self._disturbed["samples"] = (
                f"samples ended early ({type(error).__name__}: {error}): whether it was throttled is unknown"
            )

    def _look(self, ask: bool = True) -> Sample:
        sample = take_sample(self._host, self._known, self._path, ask)
        self._looked()
        self._note("sample", **sample)
        if self._first is None:
            self._first = sample
        self._disturbed.update(disturbed(self._first, sample))
        self._disturbed.update(too_hot(sample, self._limit_c(), self._disturbed.get("temperature")))
        return sample

    def _looked(self) -> None:
        now_s = self._clock()
        self.unseen_s, self._looked_s = max(self.unseen_s, now_s - self._looked_s), now_s


def _listed(text: str | None) -> list[int]:
    try:
        return cpus.parse(text or "")
    except ValueError:
        return []
