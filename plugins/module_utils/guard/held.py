# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drive that this job may write: locked, checked by the guard, and held open exclusively from then on."""

from __future__ import annotations

import contextlib
import os
import time
import typing as t

from ..core.deadline import Hangs
from ..core.host import Host
from ..core.locks import Lock, Locked, drive_lock
from ..drive import identity
from ..drive.entry import Entry
from ..records import base
from ..records.guard import Look, Refusal
from ..records.identity import Identity
from ..records.ledger import NotedFilesystem
from . import guard_check, ledger, ledger_format, own_node, retired, rules, write_counters
from .data_scan import Terms

OPEN_ATTEMPTS = 3


class Refused(Exception):
    """The guard refused the drive, for these reasons."""

    def __init__(self, refusals: list[Refusal]) -> None:
        super().__init__("; ".join(f"{refusal.code}: {refusal.message}" for refusal in refusals))
        self.refusals = refusals


class HeldDrive:
    """One drive of a plan: its `entry`, and `expected`, its identity as preflight saw it; `same_boot`: whether that
    was in this boot.

    `state_dir`: where our ledger is (own_data); without it nothing is known of what earlier runs left. `terms`: how to
      look at what lies
    on it before the first write.
    """

    _access = os.O_RDWR

    def __init__(
        self,
        host: Host,
        plan: t.Mapping[str, t.Any],
        owner: dict[str, str],
        same_boot: bool,
        state_dir: str | None = None,
        terms: Terms = Terms(),
    ) -> None:
        self._host = host
        self._entry: Entry = plan["entry"]
        self._expected = plan["expected"]
        # Entries of other drives of the run: a retired one may be a member of the same array.
        self._beside: t.Sequence[Entry] = plan.get("beside", ())
        self._owner = owner
        self._same_boot = same_boot
        self._lock: Lock | None = None
        self._state_dir = state_dir
        self._terms = terms
        self._content_is_ours = False
        # A purge of ours ended while this job waited for it: what it left may read as noise.
        self.purge_is_ours = False
        # Why what lies on it is to be kept as evidence; "": it is not.
        self.evidence = ""
        # It was seen to hold nothing after our last write.
        self.blank = False
        # A purge goes on in the drive: what it holds is not known, and the ledger goes on saying that we write.
        self.unsettled = False
        # Of a test, which is yet to be wiped (ledger_format.filesystem_note).
        self.filesystem: NotedFilesystem | None = None
        self._before: ledger.LedgerBefore | None = None
        self.handle: int | None = None
        self.path = ""
        self.identity = Identity()
        # What the last check found and the drive's entry overrides.
        self.overridden: list[Refusal] = []
        # The statement of its entry that it is retired.
        self.retired: str | None = self._entry.options.retired
        # What that gives up, and which parts of arrays and volume groups that is.
        self.gives_up: list[str] = []
        self._members: list[str] = []
        # What the last look at its content covered; None before the first.
        self.look: Look | None = None

    def take(self) -> None:
        """Lock, check and open. Raises Refused, and then holds nothing."""
        try:
            self._take()
        except BaseException:
            self.release()
            raise

    def _take(self) -> None:
        self.check()
        self._acquire()
        self._open(self.path)
        # What we looked at by name and what we opened and locked must be one and the same.
        self.check()

    def identify(self) -> None:
        """Lock the drive and see that it is the planned one, without reading from it: it may be closed while a purge
        goes on in it.

        Raises Refused, and then holds nothing. The guard's checks are still to come (`take`).
        """
        names = identity.find(self._host, self._entry)
        seen = identity.identity(self._host, names[0]) if len(names) == 1 else None
        if seen is None:
            raise self._refused("ambiguous" if names else "not_found", ", ".join(names))
        refusals = rules.compare(self._expected, base.to_json(seen), self._same_boot, who=self._entry.label)
        if refusals:
            raise Refused(refusals)
        self.path, self.identity = str(seen.path), seen
        self._acquire()

    def check(self) -> None:
        """The guard, as before every destructive step. Raises Refused."""
        held = {self.path: self.handle} if self.handle is not None else None
        # We look at what it holds once it is held and before we write: nobody else can write from then on.
        terms = self._terms if held and not self._content_is_ours else None
        seen = guard_check.check(
            self._host,
            [self._entry],
            held,
            self._state_dir,
            self._owner.get("run"),
            terms,
            self._terms.stop,
            self._beside,
            self._content_is_ours,
        )[0]
        self.gives_up = list(seen.gives_up or ()) or self.gives_up
        self._members = list(seen.members or ()) or self._members
        self.look = seen.look or self.look
        # What a drive holds says nothing once we have written random data to it: a signature may turn up by chance.
        ours = {*rules.CONTENT_CODES} if self._content_is_ours else {"unsigned_data"} if self.purge_is_ours else set()
        if not held and seen.own_data is not None:
            ours.update(rules.BY_CHANCE)  # until the look at what it holds
        refusals = rules.without(seen.refusals, ours)
        self.overridden = [refusal for refusal in seen.overridden or () if refusal.code not in ours]
        if not refusals:
            refusals = rules.compare(self._expected, base.to_json(seen.identity), self._same_boot, who=str(seen.drive))
        if not refusals and not seen.eligible and not seen.refusals:
            raise self._refused("probe_failed", "the guard gave no reason")
        if refusals:
            raise Refused(refusals)
        if self.handle is not None and seen.path != self.path:
            raise self._refused("identity_changed", f"it became {seen.path}")
        self.path, self.identity = str(seen.path), seen.identity or Identity()

    def _acquire(self) -> None:
        """Take the drive's lock, once."""
        if self._lock is not None:
            return
        try:
            self._lock = drive_lock(self.identity.serial or self.identity.wwn or self.path, self._owner).acquire()
        except Locked as error:
            raise self._refused("locked", str(error)) from None

    def _open(self, path: str) -> None:
        for attempt in range(OPEN_ATTEMPTS):
            try:
                self.handle = self._host.open(path, self._access | os.O_EXCL | os.O_DIRECT)
                return
            except OSError as error:
                problem = error
            # A preflight that looks at the drive in this very moment holds it for a few milliseconds.
            time.sleep(0.2 * (attempt + 1))
        raise self._refused("busy", f" (it cannot be opened exclusively: {problem.strerror})")

    def _refused(self, code: str, detail: str) -> Refused:
        return Refused(rules.refuse(code, self._entry.label, self.path or None, detail))

    def content_is_ours(self) -> None:
        """To be called before the first write: while we go on holding the drive, what it holds is what we wrote.

        The ledger gets to know it first, so that this run can go on after a power loss. Raises OSError when it can't,
        and Refused.
        """
        self.descriptor()
        if self._state_dir and not self._content_is_ours:
            try:
                self._use_up_retired(self._state_dir)
                self._before = ledger.begin(
                    self._host, self._state_dir, base.to_json(self.identity), self._owner["run"], self.evidence
                )
            except ledger_format.Untrusted as error:
                raise self._refused("untrusted_state", str(error)) from None
            self.filesystem = self._before.entry.filesystem if self._before.entry else None
        self._content_is_ours = True

    def _use_up_retired(self, state_dir: str) -> None:
        """Note that the statement of a retired drive was used, whatever lies on it: an inventory goes on saying it.
        Raises OSError, and Untrusted.
        """
        if self.retired:
            retired.note(state_dir, base.to_json(self.identity), self._owner["run"], self.retired, self._members)

    def doubt(self) -> None:
        """What lies on the drive may be somebody else's after all: from now on the guard looks at it again."""
        self._content_is_ours = False

    def note_sentinels(self, sentinels: t.Mapping[int, bytes]) -> None:
        """Let the ledger know of blocks that are about to be written to prove a purge with: {offset: data}. Raises
        OSError.
        """
        if self._before is not None:
            ledger.note(self._before, base.to_json(self.identity), self.evidence, sentinels, self.filesystem)

    def note_filesystem(self, filesystem: NotedFilesystem | None) -> None:
        """Let the ledger know of a file system before it is made, and (None) once it is wiped. Raises OSError."""
        self.filesystem = filesystem
        if self._before is not None:
            ledger.note(self._before, base.to_json(self.identity), self.evidence, filesystem=filesystem)

    def keep_as_evidence(self, reason: str) -> None:
        """Let the ledger know why what lies on it is to be kept, should this job die; "": it is not. What can't be
        written now is once it is let go of.
        """
        before, self.evidence = self.evidence, reason
        if self._before is not None and reason != before:
            with contextlib.suppress(OSError):
                ledger.note(self._before, base.to_json(self.identity), reason, filesystem=self.filesystem)

    def descriptor(self) -> int:
        """Return the open descriptor. Raises Refused when the drive is not held: nothing may be written then."""
        if self.handle is None:
            raise self._refused("not_held", "")
        return self.handle

    @contextlib.contextmanager
    def lend(self, may_change: t.Collection[str] = ()) -> t.Iterator[None]:
        """Close the drive, and keep its lock, for a tool that needs the device itself; then open it and identify it
        again.

        may_change: keys of the identity that the tool changes on purpose, such as logical_block_size_bytes. Raises
          Refused
        when what is there afterwards is not this drive; nothing is held then.
        """
        os.close(self.descriptor())
        self.handle = None
        try:
            yield
        finally:
            self._open_again(may_change)

    @contextlib.contextmanager
    def shared(self, at_end: t.Callable[[str], object] = lambda _node: None) -> t.Iterator[str]:
        """Open plainly, the lock kept, for tools that open it exclusively themselves, such as mkfs and mount: they get
        the node of our own that this yields. Open, the device keeps its number. At the end the drive is opened
        exclusively through that node, `at_end` is called with it, and the guard checks the drive.

        Raises Refused when what is there afterwards is not this drive, or still in use.
        """
        exclusive = self.descriptor()
        with own_node.made(self._host, exclusive, lambda why: self._refused("probe_failed", why)) as node:
            self.confirm_node(node)
            self.handle = self._host.open(node, os.O_RDONLY)
            os.close(exclusive)
            try:
                yield node
            except Hangs:
                raise  # it stays as it is: whoever touches it may hang too
            except BaseException:
                self._take_back(node, at_end)
                raise
            self._take_back(node, at_end)

    def confirm_node(self, node: str) -> None:
        """See that a node leads to this drive. To be called before and after a tool writes through it. Raises
        Refused.
        """
        self.confirm()
        self._compare(node)

    def _compare(self, node: str) -> None:
        wrong = own_node.differences(self._host, node, base.to_json(self.identity))
        if wrong:
            raise self._refused("identity_changed", "; ".join(wrong))

    def _take_back(self, node: str, at_end: t.Callable[[str], object]) -> None:
        plain, self.handle = self.descriptor(), None
        try:
            self._open(node)
        finally:
            os.close(plain)  # until now the device kept its number
        try:
            self._compare(node)  # whatever its name leads to by now
        except Refused:
            os.close(self.descriptor())
            self.handle = None
            raise
        at_end(node)
        self.check()

    def _open_again(self, may_change: t.Collection[str]) -> None:
        names = identity.find(self._host, self._entry)
        seen = identity.identity(self._host, names[0]) if len(names) == 1 else None
        self._expected = dict(self._expected, **{key: getattr(seen, key) for key in may_change if seen})
        self.check()
        self._open(self.path)
        self.check()

    def release(self) -> None:
        """Note what we leave on the drive, close it and free its lock; harmless when it is not held."""
        if self._before is not None and self.handle is not None and not self.unsettled:
            with contextlib.suppress(
                OSError
            ):  # a drive that can't be read any more: the ledger goes on saying that we write
                filesystem = None if self.blank else self.filesystem
                ledger.end(self._host, self._before, base.to_json(self.identity), self.evidence, self.blank, filesystem)
        self._content_is_ours, self.purge_is_ours, self.blank, self._before = False, False, False, None
        if self.handle is not None:
            os.close(self.handle)
            self.handle = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def confirm(self) -> None:
        """See that the drive is still the planned one, as large as it was, without reading from it. Raises Refused.

        fio clamps what it is asked to the size that it finds, and tells nobody: a drive that shrinks would pass.
        """
        name = os.path.basename(self.path)
        seen = identity.identity(self._host, name) if self._host.exists("/sys/class/block/" + name) else None
        refusals = rules.compare(self._expected, base.to_json(seen), self._same_boot, who=self._entry.label)
        size = os.lseek(self.descriptor(), 0, os.SEEK_END)
        if not refusals and size != self.identity.size_bytes:
            raise self._refused(
                "identity_changed",
                f"size_bytes was {self.identity.size_bytes}, is {size} on the opened device",
            )
        if refusals:
            raise Refused(refusals)

    def abandon(self, reason: str) -> None:
        """Let go of a drive that hangs without touching it again, which could hang as well: it stays open and locked
        until this process ends.
        """
        if self._before is not None:
            with contextlib.suppress(OSError):
                ledger.give_up(self._before, base.to_json(self.identity), reason)
        self._content_is_ours, self._before = False, None

    def bytes_written(self) -> int | None:
        """Bytes that the kernel has written to the drive since it was attached; None: it does not count (iostats)."""
        return write_counters.bytes_written(self._host, os.path.basename(self.path))


class DriveToRead(HeldDrive):
    """As HeldDrive, for reads before the first write. When a drive that was open for writing is closed, udev looks at
    it anew, and starts the arrays and volume groups on it that retire.yml took apart.
    """

    _access = os.O_RDONLY
