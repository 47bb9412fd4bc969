# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What preflight decides over the whole fleet: the run, and everything that is wrong. Pure; each check returns all it
finds.
"""

from __future__ import annotations

import collections
import re
import typing as t

from ...module_utils.drive.entry import OPTION_KEYS, SELECTOR_KEYS, Entry
from ...module_utils.guard import rules
from ...module_utils.guard.facts import WRITING
from ...module_utils.records.answers import RunOnHost, UsedLife
from ...module_utils.records.check_finding import CheckFinding
from ...module_utils.records.found_drives import FoundDrive
from ...module_utils.records.guard import Refusal
from ...module_utils.records.host_snapshot import HostIdentity, Snapshot
from ...module_utils.run.folder import RUN_ID_PATTERN
from ...module_utils.run.states import LIVE_STATES, SETTLED_STATES
from ..common.argument_specs import Variables
from ..common.schema import plain, suggestion
from ..plan.write_rates import DriveToPlan, Measured
from ..run_folder import remeasurement
from ..run_folder.run_record import RunWarning
from ..verdict import judged_criteria
from . import service_drives, spelling, variable_rules

# What an interrupted run may itself have left on a drive, and its host job puts right first: a purge that goes on, our
# password of a security erase.
HOST_SETTLES = ("sanitize_running", "ata_security")
# Refusals of entries, not of drives: whoever wrote the inventory is to mend it.
OF_INVENTORY = ("bad_selector", "duplicate")
# Decided once for the fleet, so every host has to have the same value.
FLEET_WIDE = (
    "ssd_mode",
    "ssd_step",
    "ssd_run_name",
    "ssd_run_id",
    "ssd_results_dir",
    "ssd_criteria",
    "ssd_unknown_causes",
    "ssd_retest",
    "ssd_overlap",
    "ssd_quarantine_after",
    "ssd_refused",
    "ssd_approval",
    "ssd_approved_plan",
)
# Stands for a variable that nobody has set, and whose role is not part of the play.
UNSET = "__preflight_unset"
# What its BMC said of a host's BIOS (records/host_snapshot.py, BiosSettings), beside its own answer.
BIOS_SETTINGS = "bios_settings"
RUN_NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")
MOST_NAMED = 5
# A server with two dozen drives that are all refused for several reasons has fewer findings.
MOST_OF_HOST = 200
REACH_IT = "check that it is up and that Ansible reaches it (ansible -m ping)"


class Finding(t.NamedTuple):
    """Something that stops the run: what it is, and where.

    concerns: the drive that the others can be measured without, "" for all of the host; None: it concerns them all.
    """

    message: str
    host: str = ""
    drive: str = ""
    concerns: str | None = None

    def text(self) -> str:
        """One line for people: host: drive X: message."""
        return "".join(
            [f"{self.host}: " if self.host else "", f"drive {self.drive}: " if self.drive else "", self.message]
        )


class HostAnswer(t.NamedTuple):
    """One host as preflight sees it; None: no such answer.

    asked: its variables; runs: run_info's; facts: host_info's; drives: drive_facts'. unreachable: why it did not
      answer.
    failures: modules that failed, {module: message}. similar: variables of the host that look like ssd_drives;
    misplaced: those of variable_rules.MISPLACED that it has. unread: those that nothing reads.
    checks: findings of host_checks; snapshot, wear: its snapshot and wear.
    left_out: {drive: why} of the drives that are left out of all other fields. gone: why the whole host is.
    unseen: such drives may be in use all the same: (entry, what drive_facts has of it, if the host answered).
    entries: of its ssd_drives, without those that are left out; None: that is no list.
    sick: {drive: why} of the drives that are bad by their own account.
    measured: {drive: how fast earlier runs filled it} (earlier_rates.py).
    service_not_found: entries of ssd_service_drives that keep no drive of this host from being erased.
    """

    name: str
    asked: Variables | None
    runs: t.Sequence[RunOnHost] | None = None
    facts: HostIdentity | None = None
    drives: t.Sequence[FoundDrive] | None = None
    unreachable: str = ""
    failures: t.Mapping[str, str] = {}
    similar: t.Sequence[str] = ()
    misplaced: t.Sequence[str] = ()
    unread: t.Sequence[spelling.Unknown] = ()
    checks: t.Sequence[CheckFinding] | None = None
    snapshot: Snapshot | None = None
    wear: t.Sequence[UsedLife] | None = None
    left_out: t.Mapping[str, str] = {}
    gone: str = ""
    unseen: t.Sequence[tuple[Entry, FoundDrive | None]] = ()
    entries: t.Sequence[Entry] | None = None
    sick: t.Mapping[str, str] = {}
    measured: t.Mapping[str, Measured] = {}
    service_not_found: t.Sequence[str] = ()

    def drives_to_plan(self) -> list[DriveToPlan]:
        """Return the drives for plan/hostplan.py, with what earlier runs measured of them."""
        return [DriveToPlan(**vars(one), measured=self.measured.get(str(one.drive))) for one in self.drives or ()]

    @classmethod
    def of(cls, name: str, asked: Variables | None, *answers: t.Any, **fields: t.Any) -> HostAnswer:
        """Return a host's variables and answers, the list of its drives parsed."""
        view = cls(name, asked, *answers, **fields)
        return view._replace(entries=service_drives.entries_of(asked, view.drives))


class Run(t.NamedTuple):
    """The run to start or to go on with. attach: the state of the run on the hosts that know it."""

    id: str
    name: str
    attach: t.Mapping[str, str]


def shared_value(views: t.Sequence[HostAnswer], name: str) -> t.Any:
    """Return a variable's value where every host has to have the same; None when no host has one."""
    return next((plain(view.asked[name]) for view in views if view.asked and view.asked.get(name) is not None), None)


def settings(views: t.Sequence[HostAnswer]) -> list[Finding]:
    """Wrong values of variables, and different ones where the fleet needs the same."""
    found = [finding for name in FLEET_WIDE for finding in _differing(views, name)]
    name, run_id = (shared_value(views, key) for key in ("ssd_run_name", "ssd_run_id"))
    if not isinstance(name, str) or not RUN_NAME_PATTERN.fullmatch(name):
        found.append(
            Finding(
                f"ssd_run_name: {name!r} is not a valid name: use up to 60 of A-Z a-z 0-9 . _ - and begin with a "
                f"letter or a digit{_no_text(name)}"
            )
        )
    # A survey's "no" and "0" become False and 0, which are not the empty answer.
    if run_id not in (None, "") and (not isinstance(run_id, str) or not RUN_ID_PATTERN.fullmatch(run_id)):
        found.append(
            Finding(
                f"ssd_run_id: {run_id!r} is not a valid id: use up to 100 of A-Z a-z 0-9 . _ - and begin with a "
                f"letter or a digit{_no_text(run_id)}"
            )
        )
    criteria = shared_value(views, "ssd_criteria")
    found += [
        Finding(f"ssd_criteria: {problem}")
        for criterion in (criteria if isinstance(criteria, list) else ())
        for problem in judged_criteria.criterion_problems(criterion)
    ]
    found += [Finding(problem, view.name) for view in views for problem in variable_rules.name_problems(view.name)]
    return found + [finding for view in views for finding in _host_settings(view)]


def _no_text(value: t.Any) -> str:
    read = " (it was read as a number or as true or false: choose a name that is neither)"
    return read if isinstance(value, (bool, int, float)) else ""


def _differing(views: t.Sequence[HostAnswer], name: str) -> list[Finding]:
    by_value: dict[str, list[str]] = {}
    for view in views:
        if view.asked:
            by_value.setdefault(repr(plain(view.asked.get(name))), []).append(view.name)
    if len(by_value) < 2:
        return []
    shown = "; ".join(f"{value} on {host_list(hosts)}" for value, hosts in by_value.items())
    return [Finding(f"{name}: must be the same on all hosts of a run, but is {shown}")]


def _host_settings(view: HostAnswer) -> list[Finding]:
    if view.asked is None:
        if view.unreachable:
            return []
        why = "; ".join(view.failures.values()) or (
            "it was not examined. All hosts of a play are checked together: remove serial, strategy: free, and "
            "conditions (when) that leave out hosts; limit the play's hosts instead"
        )
        return [Finding(f"could not be checked: {why}", view.name)]
    misspelt = [spelling.finding(name) for name in view.unread if name.meant]
    misplaced = [variable_rules.MISPLACED[name] for name in view.misplaced]
    return [Finding(problem, view.name) for problem in [*misspelt, *misplaced, *variable_rules.problems(view.asked)]]


def unread(views: t.Sequence[HostAnswer]) -> list[RunWarning]:
    """Variables of other unknown names, as warnings."""
    return [
        RunWarning(view.name, "unknown_variable", None, "warning", spelling.remark(name), spelling.REMEDY)
        for view in views
        for name in view.unread
        if not name.meant
    ]


def answered_drives(view: HostAnswer) -> list[Finding]:
    """Return whether the host looked at the drives that are asked for, and no others."""
    asked = view.entries
    if view.drives is None or asked is None:
        return []
    told = [(plain(found.selector), found.drive) for found in view.drives]
    # A host gives malformed entries back as null; named_drives tells what is wrong with them.
    if len(told) == len(asked) and all(map(_is_about, told, asked)):
        return []
    return [
        Finding(
            f"{service_drives.name_of(view.asked)}: the host answered about other drives than those, so its answer is "
            "ignored; check who else is root on this host (docs/trust.md)",
            view.name,
            concerns="",
        )
    ]


def _is_about(told: tuple[t.Any, t.Any], asked: Entry) -> bool:
    """Return whether the host's (selector, label) is of that entry. A malformed one has no label."""
    return told[0] is None if rules.entry_problem(asked) else told == (asked.given, asked.label)


def named_drives(view: HostAnswer) -> list[Finding]:
    """Return whether the host's ssd_drives is a list of selectors."""
    if view.asked is None:
        return []
    given, names_none = plain(view.asked.get("ssd_drives")), view.entries is not None and not view.entries
    if names_none and view.left_out:
        return []
    named = service_drives.name_of(view.asked)
    if service_drives.is_service(view.asked) and (given is None or names_none):
        told_by_host = given == service_drives.ALL and (view.drives is None or view.unreachable)
        return [] if told_by_host else [Finding(service_drives.lacking(view.asked), view.name)]
    if given is None or names_none:
        hint = f" ({view.similar[0]} is set; did you mean ssd_drives?)" if view.similar else ""
        return [
            Finding(
                (
                    f"ssd_drives: no drive is named{hint}; run discover.yml for a list to copy, or remove the host "
                    "from the group"
                ),
                view.name,
            )
        ]
    if view.entries is None:
        or_all = f", or {service_drives.ALL}" * service_drives.is_service(view.asked)
        return [Finding(f'{named}: {given!r} is not a list; write - serial: "…" for each drive{or_all}', view.name)]
    problems = [(index, rules.entry_problem(entry)) for index, entry in enumerate(view.entries)]
    return [
        Finding(
            f"{named}[{index}]: bad_selector: {problem}; discover.yml prints entries to copy"
            f"{_meant(view.entries[index])}",
            view.name,
        )
        for index, problem in problems
        if problem
    ]


def _meant(entry: Entry) -> str:
    """Return the question about a key of an entry that is misspelt; "": none is."""
    known = (*SELECTOR_KEYS, *OPTION_KEYS)
    keys = entry.given if isinstance(entry.given, t.Mapping) else ()
    return next((asked for key in keys if key not in known if (asked := suggestion(key, known))), "")


def answers(view: HostAnswer, unreachable_counts: bool) -> list[Finding]:
    """Modules that failed on the host; and with `unreachable_counts` (plan mode), that nothing is known
    of its drives.
    """
    if view.unreachable:
        message = f"is unreachable, so its drives could not be checked: {view.unreachable}; {REACH_IT}"
        return [Finding(message, view.name, concerns="")] if unreachable_counts else []
    # Without its variables it was not asked at all: _host_settings says why.
    failures = view.failures if view.asked is not None else {}
    return [Finding(f"{module} failed: {message}", view.name, concerns="") for module, message in failures.items()]


def refused(view: HostAnswer, run: Run | None) -> list[Finding]:
    """Return the drives that may not be erased. Those that the run itself holds, or has finished, are not
    asked again.
    """
    if view.drives is None or (run and run.attach.get(view.name) in SETTLED_STATES):
        return []
    malformed = {finding.message for finding in named_drives(view)}
    return [
        of_refusal(refusal, view.name, str(found.drive))
        for found in view.drives
        for refusal in standing(found, run)
        if not (malformed and refusal.code == "bad_selector")
    ]


def standing(found: FoundDrive, run: Run | None) -> list[Refusal]:
    """Return a drive's refusals. When a run goes on that was interrupted, its own data does not count: only here it is
    known which run it is.
    """
    known = found.own_data
    ours = rules.ours(known, run.id if run else None)
    codes = {refusal.code for refusal in found.refusals}
    if run and known and (known.run_id, known.state) == (run.id, WRITING) and codes & set(HOST_SETTLES):
        # The drive can't be read until then. The host job, which has the journal, settles what is the run's own; then
        # the guard looks there.
        ours += (*HOST_SETTLES, "probe_failed")
    return rules.without(found.refusals, ours)


def other_live_runs(view: HostAnswer, run: Run | None) -> list[Finding]:
    """Another run that works on the host now. The second measurement of a run that is done there is its own."""
    own = {run.id} if run else set()
    if run and run.attach.get(view.name) in SETTLED_STATES:
        own.add(remeasurement.id_of(run.id))
    others = [one.run_id for one in view.runs or () if one.state in LIVE_STATES and one.run_id not in own]
    advice = "wait for it (watch.yml) or stop it (stop.yml), both with -e ssd_run_id="
    return [
        Finding(f"locked: run {run_id} is under way on this host; {advice}{run_id}", view.name, concerns="")
        for run_id in others
    ]


def named_once(refusal: Refusal, drive: str) -> tuple[str, str]:
    """Return a refusal of the guard as (the drive, with its path where it is known; the message without them): what is
    printed says the drive's name before it.
    """
    message = refusal.message
    who = re.match(re.escape(drive) + r"(?: \([^)]*\))?: ", message)
    return (who[0][:-2], message[who.end() :]) if who else (drive, message)


def of_refusal(refusal: Refusal, host: str, drive: str) -> Finding:
    """Return a refusal of the guard as a finding."""
    who, said = named_once(refusal, drive)
    return Finding(f"{refusal.code}: {said}", host, who, None if refusal.code in OF_INVENTORY else drive)


def host_list(names: t.Sequence[str]) -> str:
    """Hosts for a message: all of a few, the first of many."""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def lines(found: t.Sequence[Finding]) -> list[str]:
    """Return the findings in their order; one that several hosts share is told once, with the hosts. One host's push
    nobody else's away.
    """
    hosts: dict[tuple[str, str], list[str]] = {}
    for finding in found:
        hosts.setdefault((finding.drive, finding.message), []).append(finding.host)
    told: list[str] = []
    counts: collections.Counter[str] = collections.Counter()
    for (drive, message), named in hosts.items():
        names = list(dict.fromkeys(named))
        where = host_list(names) if any(names) else ""
        counts[where] += 1
        if counts[where] <= MOST_OF_HOST or not where:
            told.append(Finding(message, where, drive).text())
    more = {host: count - MOST_OF_HOST for host, count in counts.items() if host and count > MOST_OF_HOST}
    return told + [Finding(f"and {count} more findings like these", host).text() for host, count in more.items()]
