# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The drives of a check whose entries say `retired`, judged together: an array or a volume group is given up only if
all of its members are.
"""

from __future__ import annotations

import dataclasses
import datetime
import typing as t

from ..core.host import Host
from ..drive import identity
from ..drive.entry import Entry
from ..records import base
from ..records.guard import Refusal
from ..records.ledger import RetiredUse
from . import ledger_format, retired, rules
from .facts import Facts, Machine, add
from .probe import probe
from .retired import CODES
from .self_described import Member

# What a drive is refused for that the job itself works on.
_OF_OWN_JOB = ("busy", "locked", "opened", "unseen_users")


@dataclasses.dataclass
class Retired:
    """What the statement of one entry comes to. statement: true or a date, None without one; why: it lifts nothing;
    codes: that it lifts. is_proposal: nobody said it, discover.yml asks what it would lift.
    """

    statement: str | None = None
    why: list[str] = dataclasses.field(default_factory=list)
    codes: tuple[str, ...] = ()
    lifts_lines: bool = False
    is_proposal: bool = False
    # What was found stands by itself, whether or not the look found any data.
    is_refused: bool = False

    def refuse(self, why: t.Iterable[str]) -> None:
        """Lift nothing."""
        self.why, self.codes, self.lifts_lines, self.is_refused = [*self.why, *why], (), False, True


class Seen(t.Protocol):
    """A drive of the check (guard_check)."""

    entry: Entry | None
    facts: Facts | None
    retired: Retired

    def standing(self, run_id: str | None) -> list[Refusal]:
        """Return the refusals that are left."""

    def unlifted(self, run_id: str | None) -> list[Refusal]:
        """Return those that are left with the statement, also if it is only proposed."""


class RetiredGroup:
    """Judges the statements of a check. state_dir: None: nobody could know whether one is used up, so none counts.
    apart: codes that keep no member from being given up.
    """

    def __init__(self, host: Host, state_dir: str | None, run_id: str | None, apart: t.Collection[str] = ()) -> None:
        self._apart = apart
        self._host, self._state_dir, self._run_id = host, state_dir, run_id
        self._today = datetime.datetime.now(datetime.timezone.utc).date()
        self._uses: list[RetiredUse] = []
        self._untrusted: list[str] = []

    def state(self, seen: t.Sequence[Seen], content_is_ours: bool) -> None:
        """Judge each statement by what is noted of it and what begins on its drive, before the look."""
        stated = [one for one in seen if one.facts and one.entry and one.entry.options.retired]
        if stated:
            self._read_uses()
        for one in stated:
            if one.facts and one.entry:
                one.retired = self._judge(one.facts, str(one.entry.options.retired), content_is_ours)

    def propose(self, seen: t.Sequence[Seen]) -> None:
        """Judge a statement for each drive that was found, as one made today."""
        self._read_uses()
        for one in seen:
            if one.facts and one.facts.kind == "drive":
                use = retired.use_of(self._uses, base.to_json(one.facts.identity))
                one.retired = self._judge(one.facts, self._today.isoformat() if use else "true", False)
                one.retired.is_proposal = True

    def _read_uses(self) -> None:
        try:
            self._uses = retired.uses(self._state_dir)
        except ledger_format.Untrusted as error:
            self._untrusted = error.problems

    def _judge(self, facts: Facts, statement: str, content_is_ours: bool) -> Retired:
        if self._untrusted:
            add(facts.untrusted, *self._untrusted)
            return Retired(statement, ["nobody knows whether the statement was used"])
        if self._state_dir is None:
            return Retired(statement, ["without ssd_state_dir nobody knows whether the statement was used"])
        use = retired.use_of(self._uses, base.to_json(facts.identity), self._run_id)
        if use and self._run_id and (use.run_id, use.statement) == (self._run_id, statement):
            if content_is_ours:
                return Retired(statement, [], CODES, True)
            # What came onto the drive since is nobody's to give up; lines were given up for the whole run.
            return Retired(statement, [retired.used_up(use.run_id, use.time, self._today)], (), True)
        why = [*retired.why_not(statement, use, facts, self._run_id, self._today), *facts.holdings.problems]
        return Retired(statement, why) if why else Retired(statement, [], CODES, True)

    def join(self, seen: t.Sequence[Seen], beside: t.Sequence[Entry], shared: Machine) -> None:
        """Judge them by what the look found, and by the members that belong together. beside: further retired
        drives.
        """
        for one in seen:
            if one.retired.codes and one.facts and one.facts.holdings.problems:
                one.retired.refuse(one.facts.holdings.problems)
        for one in seen:
            if one.retired.codes:
                there = [member for other in seen if other.facts for member in _members(other.facts)]
                out = _out_of_step(one, there)
                if out:
                    one.retired.refuse(out)
        # A preflight does not know yet which run goes on; the host job does.
        noted = {text for use in self._uses if self._run_id in (None, use.run_id) for text in use.members}
        elsewhere: list[Member] | None = None
        changed = True
        while changed:
            changed = False
            for one in [each for each in seen if each.retired.codes]:
                erased = _erased(one, noted)
                others = [member for other in seen if other is not one for member in self._given_up(other)]
                missing = _missing(one, erased | _keys(others))
                if missing and beside:
                    elsewhere = self._beside(beside, shared) if elsewhere is None else elsewhere
                    others += elsewhere
                    missing = _missing(one, erased | _keys(others))
                missing += _out_of_step(one, others)
                if missing:
                    one.retired.refuse(missing)
                    changed = True

    def _given_up(self, one: Seen) -> list[Member]:
        """Return the parts on a drive that nothing else keeps."""
        if not one.retired.codes or not one.facts:
            return []
        if any(refusal.code not in self._apart for refusal in one.unlifted(self._run_id)):
            return []
        return _members(one.facts)

    def _beside(self, entries: t.Sequence[Entry], shared: Machine) -> list[Member]:
        """Return the parts on other retired drives of the run, which the job looks at when their turn comes."""
        found: list[Member] = []
        for entry in entries:
            try:
                names = identity.find(self._host, entry)
                facts = self._probe(names[0], shared) if len(names) == 1 else None
            except Exception:  # whatever it is: a drive that can't be looked at is no member
                continue
            if facts and self._judge(facts, str(entry.options.retired), False).codes and not self._is_kept(facts):
                found += _members(facts)
        return found

    def _probe(self, name: str, shared: Machine) -> Facts:
        names = base.to_json(identity.identity(self._host, name))
        return probe(self._host, name, None, shared, ledger_format.read(self._state_dir, names))

    def _is_kept(self, facts: Facts) -> bool:
        """Return whether anything speaks against another drive that its statement does not lift. This very job may hold
        it by now.
        """
        codes = {one.code for one in rules.refusals(dataclasses.replace(facts, lines=[]))}
        return bool(codes - {*CODES, *_OF_OWN_JOB, *self._apart})


def _keys(members: t.Iterable[Member]) -> set[str]:
    return {member.key for member in members}


def _erased(one: Seen, noted: t.Iterable[str]) -> set[str]:
    """Return the keys of the parts that a run erased of what a drive has a part of, unless that went on since: another
    drive may stand for what was erased.
    """
    return {
        text[: len(text) - len(member.state)]
        for member in (_members(one.facts) if one.facts else ())
        for text in noted
        if text.startswith(member.of_group) and text.endswith(member.state)
    }


def _out_of_step(one: Seen, others: t.Iterable[Member]) -> list[str]:
    """Return which arrays went on without a part on this drive, or without another one."""
    theirs = {(other.kind, other.group, other.events) for other in others}
    return [
        f"{member.kind} {member.name} was changed {member.events} times by what this drive says, and {events} times by "
        "what another of its members says: one of them is out of date"
        for member in (_members(one.facts) if one.facts else ())
        for kind, group, events in sorted(theirs)
        if (kind, group) == (member.kind, member.group) and events != member.events
    ]


def _members(facts: Facts) -> list[Member]:
    return [one.member for one in facts.holdings.contents if one.member]


def _missing(one: Seen, present: t.Collection[str]) -> list[str]:
    """Return which parts of what is on a drive are on none that is retired, and here."""
    own = {member.key for member in _members(one.facts)} if one.facts else set()
    return _uncounted(one, own.union(present)) + [
        f"{member.kind} {member.name} has {len(member.needed)} members, and {part} is on no retired drive of this host"
        for member in (_members(one.facts) if one.facts else ())
        for key, part in member.missing_keys.items()
        if key not in own and key not in present
    ]


def _uncounted(one: Seen, present: t.Collection[str]) -> list[str]:
    """Return the same of what only says how many parts it has: so many different ones have to be there."""
    told = []
    for member in _members(one.facts) if one.facts else ():
        lacking = member.parts - sum(key.startswith(member.of_group) for key in present)
        if lacking > 0:
            has = f"{member.kind} {member.name} has {member.parts} members"
            told.append(f"{has}, and {lacking} of them is on no retired drive of this host")
    return list(dict.fromkeys(told))
