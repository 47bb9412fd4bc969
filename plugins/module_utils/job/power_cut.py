# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a drive keeps what it acknowledged once its power goes: each cycle writes until the cut, and is read back and
compared after it, mostly by the job that is started after the boot (docs/power-cut.md).

The journal tells where the test is: `power_cut_armed` before the first write of a cycle, `power_cut_cycle` once what
was left is compared. An attempt at such a test is one, however many jobs work on it.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import os
import time
import typing as t
from dataclasses import replace

from ..core.files import now
from ..core.host import BOOT_ID
from ..guard import ledger, write_counters
from ..guard.held import Refused
from ..machine import cpus, power_loss
from ..measure import fio, power_cut_process
from ..measure.block_pattern import numbered
from ..measure.power_cut_check import Atomicity
from ..measure.power_cut_pattern import Layout
from ..measure.power_cut_process import Checked, Cycle
from ..records import base
from ..records.plan import PlannedPowerCut, PlannedTest
from ..records.power_cut import CutCounters, PowerCutArmed, PowerCutCycle, PowerCutDetails
from ..records.run_files import PowerCutStatus
from ..run.criteria import power_cut_faults, power_cut_text
from ..run.folder import Event
from ..tuning import write_cache
from .before_read_back import NotPossible
from .drive_context import Attempt, DriveContext
from .integrity import drive_number
from .release_drive import LONGEST_REASON
from .resume_state import under_way

# Nobody cuts the power any more, so the drive is not worn out; and what waits for it ends.
IDLE_AFTER_S, GIVEN_UP_AFTER_S = 300.0, 3600.0
# A drive may appear late after a boot.
APPEARS_S = 120.0
# What a dead job left of its writers is gone by then.
ENDS_S = 60.0
_POLL_S = 1.0
# What keeps a drive from being read after a cut, but for one that is there.
_LOST = ("not_found", "identity_changed")


def verify_pending(station: DriveContext) -> None:
    """Compare what a cut left, before anything else is done to the drive: the guard may refuse one that a cut spoilt.

    Raises Refused where the drive did not come back, fio.FioError, fio.Interrupted, Hangs.
    """
    for test in station.plan.tests:
        number = under_way(station.history, test.name)
        if test.power_cut and number:
            cuts = PowerCuts(station, test, test.power_cut, Attempt(test.name, number))
            if cuts.pending:
                cuts.verify(cuts.pending)


def cut_cycles(station: DriveContext, test: PlannedTest, attempt: Attempt) -> None:
    """Do the cycles that are left, if the test asks for any. Where the host's power is cut this never returns.

    Raises fio.FioError where writing or reading was not possible, TooSmall, NotPossible, fio.Interrupted, Refused,
    Hangs.
    """
    if not test.power_cut:
        return
    cuts = PowerCuts(station, test, test.power_cut, attempt)
    Layout(station.active_bytes(test))
    while cuts.is_due():
        cuts.one_cycle()


class PowerCuts:
    """One attempt at a test, over all jobs that work on it. pending: what was armed, and not compared yet."""

    def __init__(self, station: DriveContext, test: PlannedTest, asked: PlannedPowerCut, attempt: Attempt) -> None:
        self._station, self._test, self._asked, self._attempt = station, test, asked, attempt
        mine = [event for event in station.history if (event.get("test"), event.get("attempt")) == attempt]
        armed = [base.parse(PowerCutArmed, event) for event in mine if event["event"] == "power_cut_armed"]
        self._cycles = [base.parse(PowerCutCycle, event) for event in mine if event["event"] == "power_cut_cycle"]
        compared = {cycle.cycle for cycle in self._cycles}
        self._armed_at = {event["cycle"]: event["time"] for event in mine if event["event"] == "power_cut_armed"}
        self._count = len(armed)
        self.pending = next((one for one in armed if one.cycle not in compared), None)

    @property
    def _done(self) -> int:
        return sum(cycle.cut for cycle in self._cycles)

    def is_due(self) -> bool:
        """Return whether another cycle is to be done: none after one at which something was lost."""
        return self._done < self._asked.cycles and not power_cut_faults(self._details())

    def _details(self) -> PowerCutDetails:
        return PowerCutDetails(self._asked.mode, self._asked.cycles, self._cycles)

    def _note(self, event: str, record: t.Any) -> None:
        fields = {**base.to_json(record), **self._attempt._asdict()}
        self._station.note(event, **fields)
        # As a job that goes on reads it.
        line: Event = {"event": event, "time": now(), "drive": self._station.drive, **fields}
        self._station.history.append(line)

    def _show(self, step: t.Literal["preparing", "writing", "cut", "verifying"]) -> None:
        counted = min(self._asked.cycles, self._done + 1)
        shown = base.to_json(PowerCutStatus(counted, self._asked.cycles, step, now()))
        self._station.show(phase="power_cut", power_cut=shown, round=0, cell=None, last=None, news_within_s=None)
        self._station.beside.flush()

    def _tick(self, _share: float | None = None) -> None:
        self._station.kernel_log.note_new()
        if self._station.job.stop.is_set():
            raise fio.Interrupted()

    def _cycle(self, armed: PowerCutArmed) -> Cycle:
        """Return what its writing and its reading back have in common."""
        station, names = self._station, (self._station.job.run_dir.run_id, self._station.drive, *self._attempt)
        return Cycle(
            active_bytes=armed.active_bytes,
            seed=armed.seed,
            cycle=armed.cycle,
            key="/".join(map(str, names)),
            drive=drive_number(station.held.identity, station.drive),
            writing=numbered(30, *names),
            log=self._file(armed.cycle, "acks"),
            map=self._file(armed.cycle, "map"),
            cpus=cpus.parse(station.bench.place.cpus or ""),
        )

    def _file(self, cycle: int, kind: str) -> str:
        name = self._station.file(self._attempt, f"cut-{cycle:04d}.{kind}")
        return os.path.join(self._station.job.run_dir.raw(self._station.drive), name)

    def one_cycle(self) -> None:
        """Arm a cycle, and write until the power goes: this never returns."""
        station = self._station
        station.guard("power_cut", phase="power_cut")
        station.held.content_is_ours()
        self._show("preparing")
        armed = self._arm()
        cycle = self._cycle(armed)
        if self._count == 1:
            power_cut_process.fill(station.held.descriptor(), cycle, station.job.stop, self._tick)
        station.look()
        station.job.host.note_ioctl("BLKDISCARD", station.held.path, 0, armed.active_bytes)
        self._note("power_cut_armed", armed)
        self._write(cycle)

    def _arm(self) -> PowerCutArmed:
        station, host, identity = self._station, self._station.job.host, self._station.held.identity
        name = station.name
        self._count += 1
        states: power_loss.Statements = station.watchdog.call(
            "read its statements", lambda: power_loss.statements(host, identity)
        )
        cache = station.watchdog.call("look at the write cache", lambda: write_cache.state(host, name))
        flushes = power_loss.gets_flushes(host, name)
        if flushes is False and (states.vwc or cache == "on"):
            text = "the kernel sends no flush to the drive, though it has a volatile cache: echo 'write back' > {0}"
            raise NotPossible(text.format(f"/sys/block/{name}/queue/write_cache"))
        before = station.watchdog.call("read its counters", lambda: power_loss.counters(host, identity, name))
        return PowerCutArmed(
            **states._asdict(),
            write_cache="on" if cache == "on" else "off" if cache == "off" else None,
            plp_claimed=states.vwc is False or bool(self._asked.plp),
            fua=power_loss.fua(host, name),
            gets_flushes=flushes,
            cycle=self._count,
            mode=self._asked.mode,
            seed=station.seed(self._attempt, self._count, "power cut"),
            boot_id=host.get(BOOT_ID),
            active_bytes=station.active_bytes(self._test),
            before=before,
        )

    def _write(self, cycle: Cycle) -> None:
        """Write until the power goes. Raises Interrupted where nobody cuts it."""
        began_s, most_s = time.monotonic(), float(self._asked.max_write_s)
        is_shown = False

        def recorded(count: int) -> None:
            nonlocal is_shown
            self._tick()
            if count and not is_shown:
                is_shown = True
                self._show("writing")
            if time.monotonic() - began_s > most_s + GIVEN_UP_AFTER_S:
                raise fio.Interrupted()

        handle, stop = self._station.held.descriptor(), self._station.job.stop
        power_cut_process.write_until_cut(handle, cycle, most_s + IDLE_AFTER_S, stop, recorded)

    def verify(self, armed: PowerCutArmed) -> None:
        """Compare what the drive holds with what it had acknowledged, and note it. The drive is not held, so that the
        guard has yet to look at it. Raises Refused where it is not there.
        """
        station, back = self._station, now()
        self._show("verifying")
        try:
            self._await_identity()
        except Refused as refused:
            if refused.refusals[0].code in _LOST:
                self._end(armed, back, None, CutCounters(None, None, None, None))
            raise
        host, name, identity = station.job.host, station.name, station.held.identity
        after = station.watchdog.call("read its counters", lambda: power_loss.counters(host, identity, name))
        handle = self._open(armed)
        try:
            # What was identified by name and what was opened are one and the same.
            station.watchdog.call("identify", station.held.identify)
            if host.device_number(handle) != host.get(f"/sys/class/block/{station.name}/dev"):
                raise fio.FioError(f"{station.held.path} became another device while it was opened")
            self._end(armed, back, self._check(handle, armed), after)
        finally:
            os.close(handle)

    def _open(self, armed: PowerCutArmed) -> int:
        """Open the drive for reading. In the boot in which it was written to, what wrote may have yet to end: it has
        the drive open exclusively until then.
        """
        station, ends_s = self._station, time.monotonic() + ENDS_S
        host, flags = station.job.host, os.O_RDONLY | os.O_DIRECT
        flags |= os.O_EXCL if host.get(BOOT_ID) == armed.boot_id else 0
        while True:
            try:
                return station.watchdog.call("open", lambda: host.open(station.held.path, flags))
            except OSError as error:
                if error.errno != errno.EBUSY or time.monotonic() >= ends_s:
                    raise fio.FioError(
                        f"{station.held.path} can't be opened to be read back: {error.strerror}"
                    ) from None
            self._tick()
            station.job.stop.wait(_POLL_S)

    def _await_identity(self) -> None:
        """Wait until the drive is there, and lock it. Raises Refused."""
        station, ends_s = self._station, time.monotonic() + APPEARS_S
        while True:
            try:
                station.watchdog.call("identify", station.held.identify)
                return
            except Refused as refused:
                if refused.refusals[0].code != "not_found" or time.monotonic() >= ends_s:
                    raise
            self._tick()
            station.job.stop.wait(_POLL_S)

    def _check(self, handle: int, armed: PowerCutArmed) -> Checked:
        identity = self._station.held.identity
        atomicity = Atomicity(armed.atomic_write_bytes, armed.atomic_boundary_bytes, identity.sizes()[1])
        promises = (atomicity, power_loss.reads_are_stable(identity), armed.plp_claimed or armed.write_cache == "off")
        next_map = self._file(armed.cycle + 1, "map")
        return power_cut_process.check(
            handle, self._cycle(armed), next_map, promises, self._station.job.stop, self._tick
        )

    def _end(self, armed: PowerCutArmed, back: str, checked: Checked | None, after: CutCounters) -> None:
        """Note what a cycle came to; checked: None: the drive is not there."""
        host, name = self._station.job.host, self._station.name
        went = host.get(BOOT_ID) != armed.boot_id
        ready_s = power_loss.ready_after_s(host, name) if went and checked else None
        cycle = cycle_record(armed, self._armed_at.get(armed.cycle) or back, back, checked, after)
        cycle = replace(cycle, cut=went, time_to_ready_s=ready_s)
        self._cycles.append(cycle)
        self.pending = None
        faults = power_cut_faults(self._details())
        if faults:
            # The ledger first, as at the end of a test.
            self._keep_as_evidence(power_cut_text(self._details()))
        self._note("power_cut_cycle", cycle)
        if checked is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._file(armed.cycle, "map"))

    def _keep_as_evidence(self, text: str) -> None:
        station = self._station
        reason = f"{self._test.name}: {text}"[:LONGEST_REASON]
        station.held.keep_as_evidence(reason)
        identity, run_dir = base.to_json(station.held.identity), station.job.run_dir
        if any(identity.values()):
            # Held by no job yet: what is noted says that this run wrote last.
            before = ledger.LedgerBefore(
                run_dir.state_dir, run_dir.run_id, None, write_counters.written(station.job.host, identity)
            )
            with contextlib.suppress(OSError):
                ledger.give_up(before, identity, reason)


def cycle_record(
    armed: PowerCutArmed, armed_at: str, back: str, checked: Checked | None, after: CutCounters
) -> PowerCutCycle:
    """Return the record of a cycle, but for whether the power went and how long the drive took. Pure."""
    counts = checked.counts if checked else {}
    clean = None
    if armed.before.unsafe_shutdowns is not None and after.unsafe_shutdowns is not None:
        clean = after.unsafe_shutdowns <= armed.before.unsafe_shutdowns
    return PowerCutCycle(
        cycle=armed.cycle,
        mode=armed.mode,
        seed=armed.seed,
        cut=False,
        found=checked is not None,
        armed=armed_at,
        cut_at=_time(checked.last_ns) if checked and checked.last_ns is not None else None,
        back=back,
        time_to_ready_s=None,
        unsafe_shutdowns_before=armed.before.unsafe_shutdowns,
        unsafe_shutdowns_after=after.unsafe_shutdowns,
        power_cycles_before=armed.before.power_cycles,
        power_cycles_after=after.power_cycles,
        media_errors_before=armed.before.media_errors,
        media_errors_after=after.media_errors,
        link_before=armed.before.link,
        link_after=after.link,
        clean=clean,
        write_cache=armed.write_cache,
        vwc=armed.vwc,
        plp_claimed=armed.plp_claimed,
        atomic_write_bytes=armed.atomic_write_bytes,
        fua=armed.fua,
        gets_flushes=armed.gets_flushes,
        writes_acknowledged=checked.acknowledged if checked else 0,
        writes_flushed=checked.durable if checked else 0,
        blocks_checked=checked.checked if checked else 0,
        lost_flushed=counts.get("lost_flushed", 0),
        lost_acknowledged=counts.get("lost_acknowledged", 0),
        stale=counts.get("stale", 0),
        resurrected=counts.get("resurrected", 0),
        misplaced=counts.get("misplaced", 0),
        foreign=counts.get("foreign", 0),
        torn=counts.get("torn", 0),
        corrupt=counts.get("corrupt", 0),
        unreadable=counts.get("unreadable", 0),
        lost_fua=checked.lost_fua if checked else 0,
        unjudged=checked.unjudged if checked else 0,
        records_lost=checked.records_lost if checked else False,
        wrong_by_part=checked.by_part if checked and any(checked.by_part) else None,
        first=checked.first if checked and checked.first else None,
    )


def _time(since_epoch_ns: int) -> str:
    """Return a time as records have it."""
    moment = datetime.datetime.fromtimestamp(since_epoch_ns / 1e9, datetime.timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
