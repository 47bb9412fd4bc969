# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host job's tuning from its plan: made once, looked at again by each campaign whether it is still in force, made
again after a purge; and the drives' places.
"""

from __future__ import annotations

import copy
import typing as t
from dataclasses import replace

from ..core.blocking_io import InTime
from ..core.deadline import Hangs
from ..core.host import Host
from ..machine import cpus
from ..machine.cpus import NOWHERE, Place
from ..records.plan import Tune
from ..records.tuning import Setting, Tuning
from . import cpu_dma_latency, irq, setting_kinds
from . import plan as tuning_plan
from . import settings as tuning
from .setting_kinds import CHEAP, HOST_TIMEOUT_S, KINDS, current
from .settings import apply_one, more

# Where the wanted value is not in force, and need not be.
EXCUSED = ("not_applicable", "managed")
MADE = ("changed", "unchanged")
NO_ANSWER = "hanging"  # the value of what is not told in time


class Drifted(t.NamedTuple):
    """A setting with the value in force."""

    setting: Setting
    now: str | None


class Drift(t.NamedTuple):
    """What is not as it was asked for, as a sentence. bears: on figures; else it is a remark. of_host: not of a single
    drive; was_made: it was as asked for before; answers: its value could be read.
    """

    text: str
    bears: bool
    of_host: bool
    was_made: bool = True
    answers: bool = True


def bears_on_figures(host: Host, setting: Setting) -> bool:
    """Return whether a figure may depend on a setting. I/O past the page cache waits for nothing of /proc/sys/vm, and
    what a service changes is looked at by itself.

    settings disturbs: governor and frequency, idle states, power, interrupts, queue attributes are not as tuned, after
      each round, and made again at once; these and the write cache before and after each test. Limit: any
    settings told: the same of `/proc/sys/vm`, services, and the interrupt of an NVMe admin queue. Limit: any
    """
    if setting.kind == "irq":
        return irq.carries_io(host, irq.number_of(setting.path))
    return setting.kind != "service" and not setting.path.startswith("/proc/sys/vm/")


def drifted_settings(
    host: Host,
    applied: t.Sequence[Setting],
    device: str,
    kinds: t.Collection[str] = tuple(KINDS),
    silent: set[str] | None = None,
) -> list[Drift]:
    """Return what is not as it was asked for, on the host or on this drive, for each setting and value.

    device: the drive's kernel name. kinds: of settings to look at; some cost a process. silent: what gave no answer
      (setting_kinds.waits_for) and is not asked again; this adds to it where the host's files have deadlines.
    """
    return _told(host, _off(host, applied, device, kinds, set() if silent is None else silent))


def _told(host: Host, off: t.Iterable[Drifted]) -> list[Drift]:
    """Return one for each setting and value."""
    grouped: dict[tuple[str, str | None, str | None], list[Drifted]] = {}
    for item in off:
        grouped.setdefault((item.setting.name, item.now, item.setting.wanted), []).append(item)
    return [
        Drift(
            _sentence(items[0], len(items)),
            any(bears_on_figures(host, item.setting) for item in items),
            any(item.setting.device is None for item in items),
            any(item.setting.outcome in MADE for item in items),
            items[0].now != NO_ANSWER,
        )
        for items in grouped.values()
    ]


def _off(
    host: Host, applied: t.Sequence[Setting], device: str, kinds: t.Collection[str], silent: set[str]
) -> list[Drifted]:
    looked_at = (
        item for item in applied if item.outcome not in EXCUSED and item.device in (None, device) and item.kind in kinds
    )
    # A generator: what is found silent on the way is not asked for its other settings.
    asked = (item for item in looked_at if setting_kinds.waits_for(item) not in silent)
    seen = [Drifted(item, _now(host, item, silent)) for item in asked]
    return [item for item in seen if item.now != item.setting.wanted]


def _now(host: Host, item: Setting, silent: set[str]) -> str | None:
    """Return the value in force; NO_ANSWER where the host's files have deadlines and it kept none."""
    if isinstance(host, InTime):
        host.patience_s = setting_kinds.patience_s(item)
    try:
        return current(host, item)
    except Hangs:
        silent.add(setting_kinds.waits_for(item))
        return NO_ANSWER


def _sentence(item: Drifted, count: int) -> str:
    """With the kernel's reason where it never took the value."""
    setting, said = item.setting, item.setting.message or ""
    reason = f" ({said})" if setting.outcome == "failed" and not said.startswith(setting.path) else ""
    return f"{setting.path}{more(count)} is {item.now}, tuned to {setting.wanted}{reason}"


def reapply_settings(
    host: Host, applied: t.Sequence[Setting], device: str, kinds: t.Collection[str] = tuple(KINDS)
) -> list[Setting]:
    """Make again what no longer is as it was made, on the host or on this drive: a purge may give the drive a new
    queue.

    Returns those settings, as they are now; what never worked is not tried again.
    """
    made = [item for item in applied if item.outcome in MADE]
    lost = [item for item in _off(host, made, device, kinds, set()) if item.now is not None]
    return [apply_one(host, replace(item.setting, before=item.now)) for item in lost]


class TunedHost:
    """The tuning of one host job. `record_path`: tuning.json; order: see settings.apply."""

    def __init__(self, host: Host, plan: tuning_plan.TuningPlan, record_path: str, order: int = 1) -> None:
        self._host = host
        self._plan = plan
        self._record_path = record_path
        self._order = order
        # What there is to put back, should the file be lost while the job works.
        self.record: Tuning | None = None
        # What gave no answer (setting_kinds.waits_for).
        self.hung: set[str] = set()
        # By drive, as campaigns look at the same time: the host with deadlines, and what gave no answer since the
        # last thorough look.
        self._patient: dict[str, InTime] = {}
        self._silent: dict[str, set[str]] = {}
        # What looks for a drive found of the host's own settings, or made again, with that drive; and how much of it
        # each drive was told.
        self._seen: list[tuple[str, Drift]] = []
        self._told: dict[str, int] = {}
        self._applied: list[Setting] = []
        self._places: tuning_plan.Places | None = None
        self._latency = cpu_dma_latency.CpuDmaLatency(host, plan.tune.cpu_dma_latency_us)

    def apply(self) -> list[Setting]:
        """Make all settings; returns them as the journal's `tuned` record has them. Which CPUs there are is settled
        first.
        """
        tune = self._plan.tune
        found = tuning_plan.targets(self._host, self._plan.drives)
        self._applied = self._make(tuning_plan.early(self._host, tune))
        self._places = tuning_plan.Places(self._host, self._plan, found)
        self._applied += self._make(tuning_plan.expand(self._host, tune, found, self._places))
        return self._applied + self._latency.hold()

    def _make(self, settings: t.Sequence[Setting]) -> list[Setting]:
        keep = self._plan.tune.keep
        try:
            return tuning.apply(self._host, settings, self._record_path, keep=keep, order=self._order, hung=self.hung)
        finally:
            # Also of settings that were only half made.
            self.record = tuning.read_record(self._record_path)

    def side_effects(self) -> list[Setting]:
        """Return what else is to be put back: what the settings reset."""
        made = {item.path for item in self._applied}
        return [item for item in (self.record.settings if self.record else []) if item.path not in made]

    def drifted_since_last(self, device: str) -> list[Drift]:
        """Return what no longer is as it was made, and what others have found, and made again, since the last call for
        this drive. Starts no process.
        """
        found = [item for item in self.drifted(device, cheap=True) if item.was_made]
        told = self._told.get(device, 0)
        self._told[device] = len(self._seen)
        others = [item for whose, item in self._seen[told : self._told[device]] if whose != device]
        return list(dict.fromkeys(found + others))

    def drifted(self, device: str, cheap: bool = False) -> list[Drift]:
        """Return what is not as it was asked for, on the host or on this drive (its kernel name). `cheap`: only what
        starts no process. What gives no answer is waited for once, until the next look that is not cheap.
        """
        if device not in self._patient:
            self._patient[device] = InTime(self._host, HOST_TIMEOUT_S)
        if not cheap:
            self._silent[device] = set()
        kinds, silent = CHEAP if cheap else tuple(KINDS), self._silent.setdefault(device, set())
        found = drifted_settings(self._patient[device], self._applied, device, kinds, silent)
        self._seen += [(device, item) for item in found if item.of_host and item.was_made]
        return found

    def reapply(self, device: str, cheap: bool = False) -> list[Setting]:
        """Make again what no longer is as it was made; those settings. cheap: only what is looked at between two
        rounds, so that what is looked at less often is still found at the test's end.
        """
        again = reapply_settings(self._host, self._applied, device, CHEAP if cheap else tuple(KINDS))
        lost = [Drifted(replace(item, outcome=MADE[0]), item.before) for item in again if item.device is None]
        self._seen += [(device, item) for item in _told(self._host, lost)]
        return again

    def take_place(self, name: str) -> Place:
        """Return where fio runs for this drive of the plan, until `leave_place`."""
        return self._places.take(name) if self._places else NOWHERE

    def leave_place(self, name: str) -> None:
        """The drive is done."""
        if self._places:
            self._places.release(name)

    def release(self) -> None:
        """Let go of what only holds while the job lives. The rest is restored from the record."""
        self._latency.release()
        while self._patient:
            self._patient.popitem()[1].close()


def _as_it_will_be(host: Host, early: t.Sequence[Setting]) -> Host:
    """Return the host as it is seen once SMT is off, where that is asked for: one CPU of each core."""
    if all(item.outcome != "changed" for item in tuning.preview(host, early)):
        return host
    seen = cpus.topology(host)
    online = cpus.format_cpu_list(threads[0] for threads in seen.cores(seen.online))
    later = copy.copy(host)
    setattr(later, "get", lambda path: online if path == cpus.ONLINE else host.get(path))
    return later


def preview(
    host: Host, plan: tuning_plan.TuningPlan, placement: Tune | None = None
) -> tuple[list[Setting], dict[str, Place]]:
    """(what `TunedHost.apply` would find, where fio would run for each drive). Changes nothing.

    placement: what is asked for with `numa`, `interrupts` and `sysfs` (SMT) of the whole plan, where its `tune` is only
      a part: they share out the CPUs together.
    """
    tune = plan.tune
    whole = placement or tune
    now, host = host, _as_it_will_be(host, tuning_plan.early(host, whole))
    found = tuning_plan.targets(host, plan.drives)
    places = tuning_plan.Places(host, plan._replace(tune=whole), found)
    settings = [*tuning_plan.early(now, tune), *tuning_plan.expand(host, tune, found, places)]
    held = cpu_dma_latency.CpuDmaLatency(host, tune.cpu_dma_latency_us).preview()
    shown = {}
    for target in found:
        shown[target.drive] = places.take(target.drive)
        if len(shown) >= plan.parallel_drives:
            # Another drive may only begin once one is done.
            places.release(list(shown)[len(shown) - plan.parallel_drives])
    return tuning.preview(host, settings) + held, {name: place for name, place in shown.items() if place != NOWHERE}
