# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guard: may these drives be erased? Probes each drive that the entries name, and lets the rules judge."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import time
import typing as t

from ..core import ownership
from ..core.host import Host
from ..core.locks import Lock, Locked, UntrustedLock, look_lock, run_at_work
from ..drive import identity
from ..drive.entry import Entry
from ..records import base
from ..records.base import Json
from ..records.found_drives import FoundDrive
from ..records.guard import Refusal
from ..records.ledger import LedgerEntry
from . import holdings, ledger_format
from .block_classifier import Stopped
from .data_scan import Terms, never
from .device import out_of_sight
from .facts import Facts, Machine, Names, add
from .open_handles import Programs
from .probe import look_at, machine, may_be_chance, probe
from .retired import CODES
from .retired_group import Retired, RetiredGroup
from .rules import entry_problem, lifted_codes, make_refusals, ours, refusals

# Longer than a look at users and content takes; who reads whole drives is not waited for.
OTHER_LOOK_S = 120.0


def check(
    host: Host,
    entries: t.Sequence[Entry],
    held: t.Mapping[str, int] | None = None,
    state_dir: str | None = None,
    run_id: str | None = None,
    terms: Terms | None = Terms(),
    stop: t.Callable[[], bool] = never,
    beside: t.Sequence[Entry] = (),
    content_is_ours: bool = False,
    apart: t.Collection[str] = (),
) -> list[FoundDrive]:
    """May the drives that these entries of ssd_drives name be erased?

    `held` maps the path of a drive to a descriptor that this process opened with O_EXCL; it is compared with the
    drive instead of another exclusive open. `state_dir`: where our ledger is; what the run `run_id`, or a finished one,
    is proved to have left on a drive does not speak against it. `terms`: how to look at what lies on drives that
    nothing else speaks against, all at once; None: not at all, which is for a drive whose content is known to be ours.
    `stop`: whether to give up waiting for another look. `beside`: entries of other drives of the run, whose retired
    drives may be members of the same array or volume group. `content_is_ours`: we have written to them by now, so that
    what they hold is nothing that `retired` would have to give up. `apart`: codes that keep no member of a group from
    being given up, as what is built on it is to be taken apart. Raises Stopped where that, or `terms.stop`, says so.
    Returns them in the order given.
    """
    located = [locate(host, entry) for entry in entries]
    names = [name for name, _refused in located if name]
    with _no_other_look(host, names, stop) as others:
        programs = {name: entry.options.passing_programs for (name, _none), entry in zip(located, entries) if name}
        shared = _shared(host, programs, state_dir, quick=bool(held))
        seen = []
        for index, (entry, (name, refused)) in enumerate(zip(entries, located)):
            one = _Seen(entry, None, refused)
            if name is not None:
                same = [
                    entries[other].label
                    for other, (twin, _none) in enumerate(located)
                    if twin == name and other != index
                ]
                one = _safe_probe(host, name, entry, dict(held or {}), shared, state_dir)
                one.refused += make_refusals("duplicate", entry.label, same) + _kept_from(others.get(name), entry.label)
            seen.append(one)
        group = RetiredGroup(host, state_dir, run_id, apart)
        group.state(seen, content_is_ours)
        _look_at(host, seen, dict(held or {}), terms, run_id)
        group.join(seen, [entry for entry in beside if entry.options.retired], shared)
        return [one.result(run_id) for one in seen]


def inspect(
    host: Host,
    entries: t.Sequence[Entry],
    held: t.Mapping[str, int] | None = None,
    state_dir: str | None = None,
    run_id: str | None = None,
    terms: Terms | None = Terms(),
) -> list[Json]:
    """Return what `check` finds, as JSON for the answer of a module."""
    return [base.to_json(one) for one in check(host, entries, held, state_dir, run_id, terms)]


def discover(
    host: Host, state_dir: str | None = None, terms: Terms | None = Terms(), programs: Programs | None = None
) -> list[Json]:
    """Return every whole drive of the host, with the best selector proposed (None without one), as `inspect` does.
    programs: that only look at drives.
    """
    names = identity.whole_drives(host)
    with _no_other_look(host, names) as others:
        shared = _shared(host, {name: programs or {} for name in names}, state_dir)
        seen = []
        for name in names:
            entry = identity.best_entry(host, name)
            one = _safe_probe(host, name, entry, {}, shared, state_dir)
            one.refused += _kept_from(others.get(name), identity.node(name))
            if entry is None:
                one.refused += make_refusals("no_identity", identity.node(name), [""])
            _tell_own_job(host, one)
            seen.append(one)
        group = RetiredGroup(host, state_dir, None)
        group.propose(seen)
        _look_at(host, seen, {}, terms, None)
        group.join(seen, [], shared)
        return [base.to_json(one.result()) for one in seen]


def _shared(host: Host, names: t.Mapping[str, Programs], state_dir: str | None, quick: bool = False) -> Machine:
    """Return what all drives share, and whether our own folder is root's alone. names: each with the programs that only
    look at it.
    """
    shared = machine(host, names, quick)
    shared.untrusted = ownership.problems(state_dir) if state_dir else []
    return shared


def _kept_from(why: tuple[str, str] | None, who: str) -> list[Refusal]:
    return make_refusals(why[0], who, [why[1]]) if why else []


@contextlib.contextmanager
def _no_other_look(
    host: Host, names: t.Iterable[str], stop: t.Callable[[], bool] = never
) -> t.Iterator[dict[str, tuple[str, str]]]:
    """No other process of ours looks at these drives meanwhile: two looks would take each other for users.

    Yields {kernel name: (code, why it could not be kept to ourselves)}, such as who looks at it for too long to be
    waited for. Raises Stopped.
    """
    others: dict[str, tuple[str, str]] = {}
    began = time.monotonic()
    with contextlib.ExitStack() as held:
        for name in (
            sorted(set(names)) if host.root == "/" else []
        ):  # in one order, so that two never wait for each other
            lock = look_lock(name)
            try:
                _wait_for(lock, began + OTHER_LOOK_S, stop)
                held.callback(lock.release)
            except UntrustedLock as error:
                others[name] = ("untrusted_state", str(error))
            except Locked as error:
                others[name] = ("locked", f"another check is reading it: {error}")
            except PermissionError:
                pass  # who may not write here can't open a drive either, and is told so by the probe
            except OSError as error:
                others[name] = ("locked", f"{lock.path} cannot be locked: {error.strerror}")
        yield others


def _wait_for(lock: Lock, deadline_s: float, stop: t.Callable[[], bool]) -> None:
    """Take a lock until then. Raises Locked, and Stopped."""
    while True:
        try:
            lock.acquire(min(1.0, max(0.0, deadline_s - time.monotonic())))
            return
        except UntrustedLock:
            raise
        except Locked:
            if stop():
                raise Stopped() from None
            if time.monotonic() >= deadline_s:
                raise


@dataclasses.dataclass
class _Seen:
    """What is known of one drive. entry: that names it; refused: what was found outside the rules; ledger: own_data's
    entry.
    """

    entry: Entry | None
    facts: Facts | None
    refused: list[Refusal]
    ledger: LedgerEntry | None = None
    retired: Retired = dataclasses.field(default_factory=Retired)

    @property
    def lifted(self) -> tuple[str, ...]:
        """Return the codes that the entry lifts."""
        retired = self.retired.codes if not self.retired.is_proposal else ()
        return (*lifted_codes(self.entry, self.facts.own_data if self.facts else None), *retired)

    def standing(self, run_id: str | None) -> list[Refusal]:
        """Return the refusals that neither a proof nor the entry itself lifts yet."""
        lines = [] if self.retired.is_proposal else self._of_lines()
        left = [one for one in self._all(run_id, not lines) if one.code not in self.lifted]
        wants = self.retired.statement and not self.retired.is_proposal
        found = self.retired.is_refused or any(one.code in (*CODES, "configured") for one in left)
        if wants and self.facts and found:
            why = self.retired.why or (["it does not lift what else is found"] if self.retired.codes else [])
            left += make_refusals("not_given_up", self._who, why)
        return left

    def _of_lines(self) -> list[Refusal]:
        """Return the refusal for lines that `retired` lifts, in the words of all others."""
        lines = self.facts.lines if self.facts and self.retired.lifts_lines else []
        return make_refusals("configured", self._who, lines)

    @property
    def _who(self) -> str:
        path = self.facts.path if self.facts else None
        return f"{self.entry.label} ({path})" if self.entry else str(path)

    def may_be_ours(self, run_id: str | None) -> bool:
        """Return whether nothing stands against it, or nothing but what a look can prove to be in data of ours."""
        by_chance = may_be_chance(self.facts) if self.facts and self.ledger is not None else set()
        return {refusal.code for refusal in self.unlifted(run_id)} <= by_chance

    def unlifted(self, run_id: str | None) -> list[Refusal]:
        """Return what is left with the statement that it is retired, also where that is only proposed."""
        if not self.retired.is_proposal:
            return self.standing(run_id)
        return dataclasses.replace(self, retired=dataclasses.replace(self.retired, is_proposal=False)).standing(run_id)

    @property
    def _is_malformed(self) -> bool:
        return any(refusal.code == "bad_selector" for refusal in self.refused)

    def _all(self, run_id: str | None, with_lines: bool = True) -> list[Refusal]:
        """Return all refusals. with_lines: those too for lines that `retired` may lift."""
        label = self.entry.label if self.entry else None
        facts = self.facts if with_lines or not self.facts else dataclasses.replace(self.facts, lines=[])
        found = [*self.refused, *(refusals(facts, label) if facts else [])]
        settled = ours(self.facts.own_data if self.facts else None, run_id)
        return [refusal for refusal in found if refusal.code not in settled]

    def result(self, run_id: str | None = None) -> FoundDrive:
        """Return the drive as it is answered."""
        facts, left, lines = self.facts, self.standing(run_id), self._of_lines()
        # An entry that is null names nothing either.
        entry = self.entry if self.entry and self.entry.given is not None else None
        return FoundDrive(
            selector=None if self._is_malformed or entry is None else entry.given,
            drive=entry.label if entry else None,
            path=facts.path if facts else None,
            identity=facts.identity if facts else None,
            eligible=facts is not None and not left,
            refusals=left,
            overridden=[refusal for refusal in [*self._all(run_id, not lines), *lines] if refusal not in left],
            passing=facts.passing if facts else [],
            own_data=facts.own_data if facts else None,
            look=facts.look if facts else None,
            holds=holdings.lines(facts.holdings) if facts else [],
            gives_up=self._gives_up(left, run_id),
            members=[one.member.key + one.member.state for one in facts.holdings.contents if one.member]
            if facts
            else [],
            may_retire=self._may_retire(left, run_id),
        )

    def _gives_up(self, left: t.Sequence[Refusal], run_id: str | None) -> list[str]:
        """Return what `retired` gives up of a drive that may be erased, for the plan."""
        facts = self.facts
        if self.retired.is_proposal or not self.retired.lifts_lines or left or not facts:
            return []
        held = holdings.lines(facts.holdings) if self.retired.codes else []
        apart = {*lifted_codes(self.entry, facts.own_data), *ours(facts.own_data, run_id)}
        if self.retired.codes and facts.unsigned and not facts.holdings.contents and "unsigned_data" not in apart:
            held.append("data of an unknown kind")
        return [*held, *facts.lines]

    def _may_retire(self, left: t.Sequence[Refusal], run_id: str | None) -> str | None:
        """Return the statement that would let a drive be erased that is found; None: none would, or none is needed."""
        stands = self.retired.is_proposal and left and not self.unlifted(run_id)
        return self.retired.statement if stands else None


def _look_at(
    host: Host, seen: t.Sequence[_Seen], held: dict[str, int], terms: Terms | None, run_id: str | None
) -> None:
    """Look at all drives at once that nothing else speaks against; a signature on a drive that we wrote to may be there
    by chance.
    """
    waiting = [one for one in seen if one.facts is not None and one.may_be_ours(run_id)] if terms is not None else []
    with concurrent.futures.ThreadPoolExecutor(max(1, len(waiting))) as pool:
        list(pool.map(lambda one: _safe_look(host, one, held, terms or Terms()), waiting))


def _safe_look(host: Host, one: _Seen, held: dict[str, int], terms: Terms) -> None:
    facts = one.facts
    if facts is None:
        return
    try:
        codes, accounts = (*one.lifted, *one.retired.codes), bool(one.retired.codes)
        look_at(host, facts, held.get(facts.path), terms, one.ledger, codes, accounts)
    except Stopped:
        raise
    except Exception as error:  # whatever it is: an unknown is a refusal
        one.refused += make_refusals("probe_failed", facts.path, [f"{type(error).__name__}: {error}"])


def _tell_own_job(host: Host, one: _Seen) -> None:
    """Refuse a drive that a run works on for that, and not for what the run's own job does: it is no stranger."""
    facts = one.facts
    if facts is None or host.root != "/":
        return
    run = run_at_work(facts.identity.serial or facts.identity.wwn or facts.path)
    if run:
        facts.opened, facts.busy = [], False
        one.refused += make_refusals("locked", one.entry.label if one.entry else facts.path, [f"run {run}"])


def locate(host: Host, entry: Entry) -> tuple[str | None, list[Refusal]]:
    """Return the one kernel name behind an entry, or why there is none."""
    who = entry.label
    problem = entry_problem(entry)
    if problem:
        return None, make_refusals("bad_selector", who, [problem])
    try:
        names = identity.find(host, entry)
    except (OSError, ValueError) as error:
        return None, make_refusals("probe_failed", who, [str(error)])
    if len(names) > 1:
        return None, make_refusals("ambiguous", who, [identity.node(name) for name in names])
    return (
        (names[0], [])
        if names
        else (None, make_refusals("not_found", who, [" by its " + entry.kind + out_of_sight(host)]))
    )


def _safe_probe(
    host: Host, name: str, entry: Entry | None, held: dict[str, int], shared: Machine, state_dir: str | None
) -> _Seen:
    path = identity.node(name)
    try:
        ledger, untrusted = _ledger(state_dir, base.to_json(identity.identity(host, name)))
        facts = probe(host, name, held.get(path), shared, ledger)
        add(facts.untrusted, *untrusted)
        return _Seen(entry, facts, [], ledger)
    except Exception as error:  # whatever it is: an unknown is a refusal
        return _Seen(entry, None, make_refusals("probe_failed", path, [f"{type(error).__name__}: {error}"]))


def _ledger(state_dir: str | None, who: Names) -> tuple[LedgerEntry | None, list[str]]:
    """Return what our ledger says of a drive, and why that can't be known."""
    try:
        return ledger_format.read(state_dir, who), []
    except ledger_format.Untrusted as error:
        return None, error.problems
