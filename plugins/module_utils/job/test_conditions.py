# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the drive's world and its settings say of each test of a campaign: causes that disturb it, that are unknown, or
that are only told.
"""

from __future__ import annotations

import time
import typing as t
from dataclasses import replace

from ..core.host import BOOT_ID, Host
from ..drive import hidden_capacity, wear
from ..drive.health import critical_texts
from ..machine import pcie
from ..measure import data_pattern, drive_environment, health_change, life_counts
from ..measure.disturbances import DISTURBS, TOLD, UNKNOWN
from ..measure.sampler import Sampler, lasting
from ..records import base
from ..records.base import Json
from ..records.environment import Environment
from ..records.health import HealthChange, Wear
from ..records.identity import Identity
from ..records.measurement import Cause, CauseName, Condition, Ended, Level, TestEnd
from ..records.plan import PlannedTest
from ..records.vendor_tools import VendorSettings
from ..run.folder import Event
from ..tuning import write_cache
from ..vendors import active_settings
from ..vendors.vendor_identity import TRANSPORT

# Test after test the same text is kept: it may not grow without end.
LONGEST = 1000
# Of drives that are a PCI Express function themselves; others hang on an HBA, whose errors and link are not theirs.
OWN_FUNCTION = ("nvme", TRANSPORT)


class Conditions:
    """The conditions of one drive's campaign.

    identity: asked at each look, as a purge may have changed the kernel name. wanted: of the vendor's settings, the
      drive's part of the plan.
    note: writes a record of the drive into the journal. state_dir: where the modules keep what waits for a power cycle.
    """

    def __init__(
        self,
        host: Host,
        identity: t.Callable[[], Identity],
        wanted: Json,
        note: t.Callable[..., None],
        state_dir: str,
    ) -> None:
        self._host = host
        self._identity = identity
        self._wanted = wanted
        self._note = note
        self._state_dir = state_dir
        # The baseline, the look after the last test, and the one before what is measured now.
        self._first: Environment | None = None
        self._last: Environment | None = None
        self._before: Environment | None = None
        self._hidden: list[Condition] = []
        self._cache = ""
        self._began_s = 0.0
        self.found: list[Condition] = []
        self.settings: VendorSettings | None = None
        self._written = wear.Lifetime()
        self.spent: Wear | None = None
        self.health: HealthChange | None = None
        # Media errors that are not held against the drive.
        self._excused: list[Condition] = []

    def begin(self, history: t.Iterable[Event]) -> None:
        """Take the baseline, before the drive's first test; of a run that is gone on with, take up that of its first
        job.
        """
        now, boot_id = drive_environment.read_environment(self._host, self._identity()), self._host.get(BOOT_ID)
        history = list(history)
        kept = next((record for record in history if record["event"] == "baseline"), None)
        self._first = self._last = now
        if kept:
            baseline = base.parse(Environment, kept["world"])
            self._first = drive_environment.carried(baseline, now, kept["boot_id"] == boot_id)
            told = [base.parse(HealthChange, record["health"]) for record in history if record.get("health")]
            self._last = health_change.seen_before(baseline, told, now)
        self._before = now
        self._hidden = hidden(hidden_capacity.read(self._host, self._identity()))
        if not kept:
            self._note(
                "baseline",
                boot_id=boot_id,
                world=base.to_json(now),
                vendor_settings=base.to_json(self._vendor_settings()),
            )

    @property
    def baseline(self) -> Environment | None:
        """What the drive was like before its first test."""
        return self._first

    def begin_like(self, baseline: Environment) -> None:
        """Begin with the baseline that the drive's own tests had, in place of a look."""
        self._first = baseline
        self._last = self._before = drive_environment.read_environment(self._host, self._identity())

    def begin_test(self) -> None:
        """Before anything of a test: nothing is known of it yet."""
        self.found, self.settings, self.spent, self.health = [], None, None, None
        self._excused = []
        self._before, self._began_s = self._last, time.monotonic()
        self._written = wear.read(self._host, self._identity())

    def begin_measurement(self) -> None:
        """After its purge: what that heated up is not the measurement's. Errors that it brought still
        are the test's.
        """
        if self._last is None:
            return
        now = drive_environment.read_environment(self._host, self._identity())
        kept = {name: getattr(self._last, name) for name in ("media_errors", "critical_warning", "aer")}
        self._before = replace(now, counts_by_source=life_counts.of(self._last), **kept)
        self._cache = self._own_cache()
        self._began_s = time.monotonic()

    def after_refused_reads(self) -> None:
        """Hold no media error until now against a drive that refused to read erased blocks: it may count those."""
        if self._last is None:
            return
        now = drive_environment.read_environment(self._host, self._identity())
        rose = life_counts.rose(self._last, now, "media_errors")
        text = f"it counted media errors ({life_counts.text(rose)}) until it refused erased blocks: not held against it"
        self._excused = [Condition("media_errors", TOLD, text)] if rose else []
        self._last = life_counts.with_count_of(self._last, now, "media_errors")

    def slower_link(self) -> str:
        """Return that its link is slower than before its first test, as a sentence; "": it is not."""
        if self._first is None:
            return ""
        now = drive_environment.read_environment(self._host, self._identity())
        return lasting(self._first, now).get("link", "")

    def end_test(self, test: PlannedTest, sampler: Sampler) -> list[str]:
        """Look again and compare; why the test is invalid. All that was found is in `found`, the vendor's settings in
        `settings`.
        """
        if self._first is None or self._before is None:
            return []
        now = self._look_at_health(sampler)
        if not (test.cells or test.integrity or test.scrub):
            return []
        # What its users wrote is none of the test.
        self.spent = None if test.in_service else wear.spent(self._written, wear.read(self._host, self._identity()))
        changed = drive_environment.changed(self._first, self._before, now)
        changed += [] if any(item.cause == "write_cache" for item in changed) else self._switched()
        measured_s = time.monotonic() - self._began_s
        data = [Condition("data", TOLD, text) for text in data_pattern.remarks(test)]
        sampled = _of_all_samples(sampler)
        remarks = drive_environment.remarks(self._first, self._before, now, sampler.hottest_c, measured_s)
        self.found = (
            sampled
            + [item for item in changed + remarks if item not in sampled]
            + drive_environment.unknown(self._first, now, sampler.unseen_s)
            + self._vendor()
            + self._hidden
            + self._excused
            + data
        )
        return [item.message for item in self.found if item.level == DISTURBS]

    def end_failed_test(self, sampler: Sampler) -> None:
        """Look again after a test that gives no figures: what its drive did still counts against the drive."""
        if self._first is not None:
            self._look_at_health(sampler)

    def _look_at_health(self, sampler: Sampler) -> Environment:
        """Look at the drive at the end of a test, and note in `health` what became of it."""
        now, identity = drive_environment.read_environment(self._host, self._identity()), self._identity()
        first, last, before = (t.cast(Environment, look) for look in (self._first, self._last, self._before))
        name = identity.name
        own = pcie.address_of(self._host, name) if identity.transport in OWN_FUNCTION else None
        looks = health_change.Looks(first, last, before, now)
        measured_s = time.monotonic() - self._began_s
        found = health_change.between(looks, sampler.warned, sampler.hottest_c, own or "", measured_s)
        gone, timeout_s = health_change.is_gone(self._host, name), health_change.io_timeout_s(self._host, name)
        self.health = replace(
            found, drive_gone=gone, link_degraded=None if gone else found.link_degraded, io_timeout_s=timeout_s
        )
        self._last = health_change.with_last_known(now, last)
        return now

    def _own_cache(self) -> str:
        """Return what the drive itself says of its write cache: the kernel's word of it is as old as its queue."""
        identity = self._identity()
        return write_cache.state(self._host, identity.name)

    def _switched(self) -> list[Condition]:
        """Return its own write cache, in another state than when it began to be measured."""
        before, now = self._cache, self._own_cache()
        if before == now or not {before, now} <= set(write_cache.STATES):
            return []
        text = (
            "the drive reports that its write cache was {0} when the test began, and is {1} now; the kernel missed it"
        )
        return [Condition("write_cache", DISTURBS, text.format(before, now))]

    def end(self, ended: Ended, reasons: list[str], disturbed: t.Iterable[str]) -> TestEnd:
        """Return how a test ended, with what was found of it."""
        found = [replace(item, message=item.message[:LONGEST]) for item in self.found]
        causes = list(dict.fromkeys(disturbed))
        return TestEnd(ended, reasons, causes, found, self.settings, self.spent, self.health)

    def _vendor_settings(self) -> VendorSettings | None:
        now = self._identity()
        return active_settings.read(self._host, now.kernel_name or "", now.serial or "", self._state_dir)

    def _vendor(self) -> list[Condition]:
        """Return the vendor's settings, read with every result of such a drive."""
        self.settings = self._vendor_settings()
        if self.settings is None:
            return []
        told: list[tuple[Level, list[str]]] = [
            (DISTURBS, active_settings.differences(self.settings, self._wanted)),
            (UNKNOWN, active_settings.unknown(self.settings, self._wanted)),
            (TOLD, active_settings.pending(self.settings)),
        ]
        return [Condition("vendor_settings", level, text) for level, texts in told for text in texts]


def causes_since_last(sampler: Sampler) -> list[Cause]:
    """Return what disturbed the drive since the last call."""
    found = sampler.since_last()
    return [Cause(t.cast(CauseName, drive_environment.cause_of(kind)), DISTURBS, text) for kind, text in found.items()]


def _of_all_samples(sampler: Sampler) -> list[Condition]:
    """Return what samples say of the whole test: warnings of the drive, and that what they would show is unknown."""
    levels: dict[str, Level] = {"samples": UNKNOWN, **dict.fromkeys(critical_texts(0xFF), TOLD)}
    return [
        Condition(drive_environment.cause_of(kind), levels.get(kind, DISTURBS), text)
        for kind, text in sampler.of_all.items()
    ]


def hidden(found: hidden_capacity.Hidden) -> list[Condition]:
    """Hidden over-provisioning, as a remark: it is the drive's owner's choice, but whoever compares figures has to
    know.

    hidden_capacity told: over-provisioning that the label does not show: `tnvmcap` against the namespace, `hdparm -N`.
      Limit: HIDDEN_SHARE
    """
    if found.share is None or found.share <= hidden_capacity.HIDDEN_SHARE:
        return []
    text = (
        "{0:.1%} of its {1} bytes are hidden outside {2}: it has more spare area than its model, and so writes faster"
    )
    return [Condition("hidden_capacity", TOLD, text.format(found.share, found.total_bytes, found.where))]
