# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drives that failed night after night: marked in the store, and kept out of runs of that name until somebody releases
them. docs/awx.md says what counts.
"""

from __future__ import annotations

import collections
import itertools
import json
import shlex
import typing as t

from ...module_utils.core.files import now
from ..verdict.verdicts import COUNTING
from . import database, import_records
from .schema import tables
from .store_requirements import StoreError, sa

# A streak is looked for in so many runs of a name, the newest ones.
MOST_RUNS = 100
# The verdicts that may say something about the drive (`_against`). Of the others (invalid, not_tested), of an error
# that is not the drive's own, and of a fail that is its host's fault, a night is as if it had not been.
TELLING = (*COUNTING, "error")
# How campaigns end where a host or its controller died: the first drive may tell it as an error of its own.
BROKEN_OFF = ("error", "refused", "interrupted")


class Quarantined(t.NamedTuple):
    """A drive in quarantine. identity: as of import_records.known_as, "" where the drive has none; then host and
    drive (its label) say which it is. nights: how many it had failed. reason: of last_run.
    """

    run_name: str
    identity: str
    serial: str
    host: str
    drive: str
    nights: int
    last_run: str
    reason: str

    def text(self) -> str:
        """Return why the drive is left out, and what to do."""
        said = f": {self.reason}" if self.reason else ""
        variables = shlex.quote(json.dumps({"ssd_release_drive": self.drive}, ensure_ascii=False))
        return (
            f"quarantined: failed {self.nights} nights in a row, last in {self.last_run}{said}. Once it is repaired, "
            f"release it: release.yml -e {variables}"
        )


class Who(t.NamedTuple):
    """Which drive it is. identity: by its own names, as its host told them ("": it told none). drive: its label, the
    inventory's word for it.
    """

    identity: str
    host: str
    drive: str

    def key(self) -> tuple[str, ...]:
        """Return the same for all that may be `same`."""
        return (self.identity,) if self.identity else (self.host, self.drive)


def same(one: Who, other: Who) -> bool:
    """Return whether both are one drive: by its own names wherever it is, else by its place. On another host the
    inventory has to call it the same, too: a host may claim the names of another's drive.
    """
    if not one.identity or not other.identity:
        return (one.identity, one.host, one.drive) == (other.identity, other.host, other.drive)
    return one.identity == other.identity and (one.drive == other.drive or one.host == other.host)


def standing(store_url: str, results_dir: str) -> list[Quarantined]:
    """Return the drives that nobody has released yet; none where there is no store (preflight tells of one that is
    down, or of another version). Reads only.
    """
    try:
        url = database.resolve(store_url, results_dir)
        if not url:
            return []
        with database.opened(url) as store, store.reading() as connection:
            return _marks(connection, tables().quarantine.c.released.is_(None))
    except StoreError:
        return []


def mark_drives(store: database.Store, run_id: str, after: int) -> list[Quarantined]:
    """Mark the drives whose verdicts, up to this run, are so many fails in a row, or errors of their own (0: none);
    those that were not marked before. A mark that this run led to is taken back where its drive is at fault no longer:
    slices that came since are peers too.
    """
    if after <= 0:
        return []
    with store.writing() as connection:
        store.alone(connection)
        failed = _failed(connection, run_id)
        found = _in_a_row(connection, run_id, failed, after)
        table = tables().quarantine
        open_ones = _marks(connection, table.c.released.is_(None))
        for one in open_ones:
            who = Who(one.identity, one.host, one.drive)
            if one.last_run == run_id and not any(same(_who(row), who) for row in failed):
                mine = [table.c[name] == value for name, value in one._asdict().items()]
                connection.execute(sa.delete(table).where(table.c.released.is_(None), *mine))
        fresh = [one for one in found if not any(_same_mark(one, other) for other in open_ones)]
        if fresh:
            connection.execute(sa.insert(table), [{**one._asdict(), "marked": now()} for one in fresh])
        return fresh


def release(store: database.Store, drive: str) -> list[Quarantined]:
    """Let the runs after this take a drive again, named by its label or its serial number; what was released. The
    nights before no longer count.
    """
    table = tables().quarantine
    with store.writing() as connection:
        store.alone(connection)
        named = sa.or_(table.c.drive == drive, table.c.serial == drive)
        mine = sa.and_(table.c.released.is_(None), named)
        found = _marks(connection, mine)
        if found:
            connection.execute(sa.update(table).where(mine).values(released=now()))
        return found


def _marks(connection: t.Any, which: t.Any) -> list[Quarantined]:
    table = tables().quarantine
    query = sa.select(*(table.c[name] for name in Quarantined._fields)).where(which).order_by(table.c.id)
    return [Quarantined(*row) for row in connection.execute(query)]


def _failed(connection: t.Any, run_id: str) -> list[t.Any]:
    """Return the campaigns of this run that tell against their drive."""
    asked, mine = _Asked(connection), tables().run.c.run_id == run_id
    return _against(filter(asked, _campaigns(connection, mine)))


def _in_a_row(connection: t.Any, run_id: str, failed: t.Sequence[t.Any], after: int) -> list[Quarantined]:
    """Of the drives that failed in this run those that did, without a pass between, in so many of its name."""
    run, table = tables().run, tables().quarantine
    name, started = connection.execute(sa.select(run.c.name, run.c.started).where(run.c.run_id == run_id)).one()
    if not failed or not started:
        return []
    asked = _Asked(connection)
    freed: dict[tuple[str, ...], list[tuple[Who, str]]] = {}
    for one in connection.execute(sa.select(table).where(table.c.run_name == name, table.c.released.is_not(None))):
        who = Who(one.identity, one.host, one.drive)
        freed.setdefault(who.key(), []).append((who, one.released.rstrip("Z")))
    nights = sa.select(run.c.id).where(run.c.name == name, run.c.started <= started)
    nights = nights.order_by(run.c.started.desc(), run.c.run_id.desc()).limit(MOST_RUNS)
    told = list(filter(asked, _campaigns(connection, run.c.id.in_(nights))))
    against = set(_against(told))
    history: dict[tuple[str, ...], list[t.Any]] = {}
    for row in told:
        history.setdefault(_who(row).key(), []).append(row)
    found = []
    for row in failed:
        who = _who(row)
        free = max((at for other, at in freed.get(who.key(), ()) if same(other, who)), default="")
        own = [each for each in history[who.key()] if same(_who(each), who) and each.started.rstrip("Z") > free]
        since = itertools.takewhile(lambda each: each.verdict != "pass", own)
        streak = sum(each in against for each in since)
        if streak >= after:
            reason = next(iter(import_records.unpacked(row.content)["reasons"]), "") if row.content else ""
            found.append(
                Quarantined(name, row.identity or "", row.serial or "", row.name, row.label, streak, run_id, reason)
            )
    return found


def _against(rows: t.Iterable[t.Any]) -> list[t.Any]:
    """Of campaigns those that tell against their drive: it failed, and not because of its host (peers/host_fault.py),
    or an error was its own. Where other drives of the host broke off in that night too, it is the host's.
    """
    rows = list(rows)
    told = [(row, import_records.unpacked(row.content) if row.content else {}) for row in rows if row.verdict != "pass"]
    errors = [row for row, judged in told if row.verdict == "error" and judged.get("drive_fault")]
    of_host = collections.Counter((row.run_id, row.name) for row in rows if row.outcome in BROKEN_OFF)
    failed = [row for row, judged in told if row.verdict == "fail" and not judged.get("host_fault")]
    return failed + [row for row in errors if of_host[row.run_id, row.name] == 1]


class _Asked:
    """Whether the inventory asked for a campaign: of what a host adds by itself it may choose the label too."""

    def __init__(self, connection: t.Any) -> None:
        self._connection = connection
        self._of_run: dict[str, set[tuple[str, str]]] = {}

    def __call__(self, row: t.Any) -> bool:
        if row.run_id not in self._of_run:
            query = sa.select(tables().run.c.content).where(tables().run.c.run_id == row.run_id)
            record = import_records.unpacked(self._connection.execute(query).scalar_one()) or {}
            self._of_run[row.run_id] = {(entry["host"], entry["drive"]) for entry in record.get("asked") or []}
        return (row.name, row.label) in self._of_run[row.run_id]


def _campaigns(connection: t.Any, which: t.Any) -> list[t.Any]:
    """Campaigns that tell something, with what says which drive it was, those of the newest runs first."""
    run, part, host, campaign = (getattr(tables(), name) for name in ("run", "part", "host", "campaign"))
    drive, judgement = tables().drive, tables().judgement
    joined = campaign.join(part, campaign.c.part_id == part.c.id).join(run, part.c.run_id == run.c.id)
    joined = joined.join(host, part.c.host_id == host.c.id).outerjoin(drive, campaign.c.drive_id == drive.c.id)
    joined = joined.outerjoin(judgement, judgement.c.campaign_id == campaign.c.id)
    columns = (
        run.c.started,
        run.c.run_id,
        host.c.name,
        campaign.c.label,
        campaign.c.verdict,
        campaign.c.outcome,
        drive.c.identity,
        drive.c.serial,
    )
    telling = sa.or_(campaign.c.verdict.in_(TELLING), campaign.c.outcome.in_(BROKEN_OFF))
    query = sa.select(*columns, judgement.c.content).select_from(joined).where(telling, which)
    return list(connection.execute(query.order_by(run.c.started.desc(), run.c.run_id.desc())).all())


def _who(row: t.Any) -> Who:
    return Who(row.identity or "", row.name, row.label)


def _same_mark(one: Quarantined, other: Quarantined) -> bool:
    return one.run_name == other.run_name and same(
        Who(one.identity, one.host, one.drive), Who(other.identity, other.host, other.drive)
    )
