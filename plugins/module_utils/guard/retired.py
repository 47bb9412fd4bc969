# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The statement `retired` of a drive's entry: what it lifts, and that it is used up.

`retired: true` says that nobody needs what is on the drive now. An inventory goes on saying so, also once the drive is
back in production. So the first run that erases a drive with the statement notes that (`<state_dir>/retired/`, as
trusted as the ledger), and from then on it lifts nothing, until a statement with a newer date takes its place.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import typing as t

from ..core import files, ownership
from ..core.files import SCHEMA_VERSION, now
from ..drive.entry import is_placeholder, wwn_key
from ..drive.identity import NAMES, OWN_NAMES
from ..records import base
from ..records.ledger import RetiredUse
from . import ledger_format
from .facts import WRITING, Facts, Holdings, Names
from .rules import CONTENT_CODES

# What it lifts, beside lines of fstab, crypttab and mdadm.conf.
CODES = CONTENT_CODES
_DAY = datetime.timedelta(days=1)
# For so many days a date counts for what does not tell when it was used.
_TIMELESS = 7


def path_of(state_dir: str, identity: Names) -> str:
    """Return the file that says that a drive's statement is used up."""
    return os.path.join(state_dir, "retired", os.path.basename(ledger_format.path_of(state_dir, identity)))


def uses(state_dir: str | None) -> list[RetiredUse]:
    """Return all uses that the host knows. Raises Untrusted where somebody else could have changed one, or one is
    damaged.
    """
    folder = os.path.join(state_dir or "", "retired")
    if not state_dir or not os.path.lexists(folder):
        return []
    wrong = [*ownership.problems(state_dir), *ownership.alone_problems(folder, folder=True)]
    found = []
    try:
        names = [] if wrong else sorted(os.listdir(folder))
    except OSError as error:
        wrong.append(f"{folder} cannot be read: {error.strerror}")
        names = []
    for path in (os.path.join(folder, name) for name in names if name.endswith(".json")):
        wrong += ownership.alone_problems(path)
        use = _load(path)
        if use is None:
            wrong.append(f"{path} is not a note of this version that a drive's statement was used up")
        else:
            found.append(use)
    if wrong:
        raise ledger_format.Untrusted(wrong)
    return found


def _load(path: str) -> RetiredUse | None:
    try:
        return base.parse(RetiredUse, files.read_json(path))
    except (OSError, ValueError, base.WrongShape):
        return None


def use_of(known: t.Iterable[RetiredUse], identity: Names, run_id: str | None = None) -> RetiredUse | None:
    """Return the last use of a drive's statement; also one that was noted when the drive told other names of itself.
    run_id: the run that asks, which knows drives with one serial apart (namespaces).
    """
    own = [
        use
        for use in known
        if _names_one(use.identity, identity) and not (use.run_id == run_id and _differ(use.identity, identity))
    ]
    return max(own, key=lambda use: use.time, default=None)


def _names_one(noted: Names, identity: Names) -> bool:
    """Return whether any name of its own is the same: a new namespace has another EUI, another firmware or controller
    tells another model or form of the serial. Mistaking two drives for one asks for a new statement, no more.
    """
    return any(key in _keys(identity) for key in _keys(noted))


def _keys(identity: Names) -> set[str]:
    """Return all own names of an identity, in one form."""
    names = {key: str(identity.get(key) or "") for key in OWN_NAMES}
    serial = re.sub(r"[ _-]", "", names.pop("serial")).upper()
    names["wwn"] = wwn_key(names["wwn"]) or ""
    names["serial"] = "" if is_placeholder(serial) else serial
    return {f"{kind} {name}" for kind, name in names.items() if name}


def _differ(noted: Names, identity: Names) -> bool:
    wwns = [wwn_key(str(one.get("wwn") or "")) for one in (noted, identity)]
    return None not in wwns and wwns[0] != wwns[1]


def note(state_dir: str, identity: Names, run_id: str, statement: str, members: t.Sequence[str]) -> None:
    """Note, before the first write, that a drive's statement is used up. members: keys of what goes with it. Raises
    OSError, and Untrusted.
    """
    before = use_of(uses(state_dir), identity, run_id)
    if before is not None and (before.run_id, before.statement) == (run_id, statement):
        return
    names = {key: t.cast("str | None", identity.get(key)) for key in NAMES}
    use = RetiredUse(run_id, now(), names, statement, list(members), SCHEMA_VERSION)
    path = path_of(state_dir, identity)
    files.make_folders(os.path.dirname(path))
    files.write_atomic(path, json.dumps(base.to_json(use), indent=1) + "\n")


def why_not(
    statement: str, use: RetiredUse | None, facts: Facts, run_id: str | None, today: datetime.date
) -> list[str]:
    """Return why a statement lifts nothing of what the drive holds, from what is noted and from its date."""
    found = []
    date = None if statement == "true" else datetime.date.fromisoformat(statement)
    if date is not None and date > today + _DAY:
        found.append(f"retired: {statement} is in the future")
    if use is not None and not is_newer(statement, use):
        found.append(used_up(use.run_id, use.time, today))
    known = facts.own_data
    if known is not None and known.state == WRITING and known.run_id != run_id:
        found.append(f"run {known.run_id} is not finished with it; end that first (stop.yml, or qualify.yml to resume)")
    if date is not None and date < today - _TIMELESS * _DAY and not tells_use(facts.holdings):
        found.append(
            f"retired: {statement} is older than {_TIMELESS} days, and not all that is on it tells when it was used "
            f"last; if nobody needs it now, write retired: {today.isoformat()}"
        )
    end = datetime.datetime.combine(date, datetime.time(), datetime.timezone.utc) + _DAY if date else None
    for one in facts.holdings.contents if end else ():
        if end and one.used_s >= end.timestamp():
            found.append(f"{one.kind} {one.uuid} on it was used after {statement}")
    return found


def tells_use(held: Holdings) -> bool:
    """Return whether all that is on a drive tells when it was used last. Raw data do not."""
    return bool(held.contents) and not held.has_raw and all(one.used_s for one in held.contents)


def used_up(run_id: str, time: str, today: datetime.date) -> str:
    """Return the words for a statement that a run has used."""
    return (
        f"run {run_id} used the statement up on {time[:10]}, and this is what came onto the drive since; if nobody "
        f"needs that either, write retired: {today.isoformat()}"
    )


def is_newer(statement: str, use: RetiredUse) -> bool:
    """Return whether a statement was made after a use: of that very day it is another one than was used."""
    return statement not in ("true", use.statement) and statement >= use.time[:10]
