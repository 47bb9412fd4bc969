# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An array for one test: made of all drives of the host, each held as for a test of its own, and stopped afterwards.

The campaign of the last drive carries the test once those of all others are over. docs/internals/arrays.md.
"""

from __future__ import annotations

import contextlib
import os
import time
import typing as t

from ..core.deadline import Hangs
from ..core.host import Running
from ..guard.held_array import HeldArray
from ..measure.fio import FioError, Interrupted
from ..records import base
from ..records.measurement import Cause, Condition
from ..records.plan import PlannedTest
from ..records.storage_layers import AssembledArray, Member, PlannedArray
from ..tools import mdadm
from ..tuning import settings
from . import array_leftover, array_members
from .array_members import COMPLETE
from .drive_context import Attempt, DriveContext, Job

BUILD_S = 120.0
# Until udev has made the node.
NODE_S = 20.0
# What the kernel may count of the members' writes beyond the array's, as others may write
# (measure/validity_limits.py).
SHARE = 0.01


class ArrayError(FioError):
    """It could not be made or stopped; the message says what was tried and what was said."""


def await_others(job: Job, drive: str) -> None:
    """Until the campaigns of all other drives are over. Raises Interrupted."""
    while any(entry.drive not in job.ended for entry in job.drives if entry.drive != drive):
        if job.stop.is_set():
            raise Interrupted()
        time.sleep(0.2)


def unavailable_reason(station: DriveContext, spec: PlannedArray) -> str:
    """Return why there can be no array, before anything is done for it; "" where it may be made."""
    job, others = station.job, [label for label in spec.members if label != station.drive]
    known = {entry.drive for entry in job.drives}
    unwell = [f"{label} ({job.ended.get(label, 'it is not in the plan')})" for label in others]
    unwell = [text for label, text in zip(others, unwell) if label not in known or job.ended.get(label) != COMPLETE]
    if unwell:
        return f"no array was made, as the drives' own tests did not all complete: {', '.join(unwell)}"
    if station.held.evidence:
        return f"no array was made, as {station.drive} is kept as evidence: {station.held.evidence}"
    found = mdadm.missing_tools(job.host, spec.level)
    return f"no array was made: {found}" if found else ""


@contextlib.contextmanager
def assembled(station: DriveContext, test: PlannedTest, attempt: Attempt) -> t.Iterator[Array | None]:
    """The array that a test asks for, as what fio works on, while inside; nothing for a test that asks for none.

    Raises NoArray, ArrayError, Refused, Hangs, Interrupted.
    """
    spec = test.array
    if not spec:
        yield None
        return
    station.guard("array", phase="precondition")
    with contextlib.ExitStack() as stack:
        others = {
            label: stack.enter_context(array_members.taken(station, label))
            for label in spec.members
            if label != station.drive
        }
        members = [others.get(label, station) for label in spec.members]
        watches = [array_members.MemberWatch(station, member, test, attempt) for member in others.values()]
        looks = [stack.enter_context(watch) for watch in watches]
        nodes = [stack.enter_context(member.held.shared()) for member in members]
        array = Array(station, spec, members)
        array.looks = looks
        try:
            station.note("array", **base.to_json(array.make(nodes)), **attempt._asdict())
            yield array
        except Hangs:
            array.abandon()
            raise
        except BaseException:
            array.undo()
            raise
        ended = array.undo()
    members_ended = {drive: {"drive": drive, "bytes_written": count} for drive, count in ended.of_members.items()}
    for label, look in zip(others, looks):
        array.reasons += look.reasons
        array.conditions += look.conditions
        # That of the drive which carries the test is the test's own.
        members_ended[label]["wear"] = base.to_json(look.wear)
    told = {"bytes_written": ended.bytes_written, "seconds": ended.seconds, "members": list(members_ended.values())}
    station.note("array_stopped", **told, **attempt._asdict())


class StoppedArray(t.NamedTuple):
    """What was written, by the kernel's count, to an array and to each of its drives; None: it does not count. seconds:
    how long stopping it took.
    """

    bytes_written: int | None
    of_members: dict[str, int | None]
    seconds: float


class Array:
    """One array, from its making to its end. members: stations of its drives, all held and shared, in order."""

    def __init__(self, station: DriveContext, spec: PlannedArray, members: t.Sequence[DriveContext]) -> None:
        self._station, self._spec, self._members = station, spec, members
        self._job, self._host = station.job, station.job.host
        self._bench = station.bench
        self._held: HeldArray | None = None
        self._began: list[int | None] = []
        # Why the test can't count, once the array is stopped, and what else was found of its members.
        self.reasons: list[str] = []
        self.conditions: list[Condition] = []
        self.looks: t.Sequence[array_members.MemberWatch] = ()

    def causes_since_last(self) -> list[Cause]:
        """Return what disturbed its members since the last call, but for the drive that carries the test."""
        return [cause for look in self.looks for cause in look.causes_since_last()]

    def make(self, nodes: t.Sequence[str]) -> AssembledArray:
        """Make it through nodes of our own, in the members' order, and give it to fio; noted on the host first."""
        began, host, chunk = time.monotonic(), self._host, self._spec.chunk_bytes
        helds = [member.held for member in self._members]
        name = mdadm.free_name(host)
        if not name:
            raise ArrayError("every md device number is in use")
        argv = mdadm.build_argv("/dev/" + name, self._spec.level, chunk, nodes)
        self._began = [held.bytes_written() for held in helds]
        array_leftover.note(host, self._job.run_dir, name, [str(held.identity.major_minor) for held in helds])
        self._bounded("make an array", lambda: self._run(argv, nodes), BUILD_S)
        if self._job.stop.is_set():
            raise Interrupted()
        self._held = held = self._bounded("open the array", lambda: self._open(name))
        station = self._station
        station.target, station.bench = held, self._bench.on(held, [member.name for member in self._members])
        station.members = [member.name for member in self._members]
        station.bench.begin_test()
        station.bench.settle()
        return AssembledArray(
            level=self._spec.level,
            chunk_bytes=chunk,
            device=held.path,
            size_bytes=held.identity.sizes()[0],
            members=[self._about(member) for member in self._members],
            commands=[argv],
            seconds=round(time.monotonic() - began, 3),
        )

    @staticmethod
    def _about(member: DriveContext) -> Member:
        identity = member.held.identity
        return Member(
            drive=member.drive,
            path=member.held.path,
            serial=identity.serial,
            wwn=identity.wwn,
            model=identity.model,
            firmware=identity.firmware,
            size_bytes=identity.sizes()[0],
        )

    def _run(self, argv: list[str], nodes: t.Sequence[str]) -> None:
        self._confirm(nodes)
        done = Running(self._host, argv).run(BUILD_S)
        if done.rc:
            raise ArrayError(done.ended())
        self._confirm(nodes)

    def _confirm(self, nodes: t.Sequence[str]) -> None:
        for member, node in zip(self._members, nodes):
            member.held.confirm_node(node)

    def _open(self, name: str) -> HeldArray:
        """Return the array, once it is proved to be of these drives alone, open so that nobody else can mount or claim
        it.
        """
        helds = [member.held for member in self._members]
        seen = mdadm.read_array(self._host, name)
        asked = frozenset(str(held.identity.major_minor) for held in helds)
        level, chunk = f"raid{self._spec.level}", self._spec.chunk_bytes
        if seen is None or (seen.level, seen.metadata, seen.chunk_bytes, seen.members) != (level, "none", chunk, asked):
            raise ArrayError(f"/dev/{name} is {seen or 'missing'}, not a {level} of {', '.join(sorted(asked))}")
        handle = self._open_node(f"/dev/{name}")
        try:
            size = os.lseek(handle, 0, os.SEEK_END)
            wanted = mdadm.size_bytes((held.identity.sizes()[0] for held in helds), chunk)
            if self._host.device_number(handle) != seen.number or size != wanted:
                raise ArrayError(f"/dev/{name} is not the array that was made: {size} bytes instead of {wanted}")
        except BaseException:
            os.close(handle)
            raise
        return HeldArray(self._host, helds, name, handle, seen, size)

    def _open_node(self, path: str) -> int:
        deadline_s = time.monotonic() + NODE_S
        while True:
            try:
                return self._host.open(path, os.O_RDWR | os.O_EXCL | os.O_DIRECT)
            except OSError as error:
                if time.monotonic() > deadline_s:
                    raise ArrayError(f"{path} cannot be opened exclusively: {error.strerror}") from None
            time.sleep(0.2)

    def _bounded(self, what: str, step: t.Callable[[], t.Any], longer_s: float = 0.0) -> t.Any:
        return self._station.watchdog.call(what, step, longer_s)

    def undo(self) -> StoppedArray:
        """Stop it. Raises ArrayError where it goes on."""
        began, written = time.monotonic(), None
        if self._held is not None:
            written = self._held.bytes_written()
        self._give_back()
        if self._held is not None:
            self._held.close()
        done = self._bounded("stop the array", lambda: array_leftover.stop(self._host, self._job.run_dir), 60.0)
        failed = settings.failures(done)
        if failed:
            raise ArrayError("; ".join(failed))
        of_members = {member.drive: self._written(member, before) for member, before in zip(self._members, self._began)}
        self.reasons += member_write_differences(written, of_members)
        return StoppedArray(written, of_members, round(time.monotonic() - began, 3))

    @staticmethod
    def _written(member: DriveContext, before: int | None) -> int | None:
        now = member.held.bytes_written()
        return None if now is None or before is None else now - before

    def _give_back(self) -> None:
        station = self._station
        station.target, station.bench, station.members = station.held, self._bench, []
        station.bench.begin_test()

    def abandon(self) -> None:
        """Leave it as it is: what waits for a drive that hangs is not waited for. Who comes next stops it."""
        self._give_back()


def member_write_differences(written: int | None, of_members: t.Mapping[str, int | None]) -> list[str]:
    """Return why what was written to the members is not what was written to the array, as reasons: somebody else wrote
    to one of them, or the array did not write to all alike.
    """
    amounts = list(of_members.values())
    names = list(of_members)
    found = [
        f"{amounts[place]} bytes were written to {names[place]}, which is not an equal share of what all drives of the "
        "array got: striping writes to all alike, so look at what else writes to it, or whether it is of another size"
        for place in mdadm.uneven(amounts)
    ]
    known = [amount for amount in amounts if amount is not None]
    if written is None or len(known) < len(amounts):
        return found
    if abs(sum(known) - written) > SHARE * written + (1 << 20):
        text = "{0} bytes were written to the array, but {1} to its members: another process wrote to them"
        found.append(text.format(written, sum(known)))
    return found
