# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A purge in a campaign: choose, plant sentinels, do it, verify it; and what a job does that finds a purge of its run
begun.

A purge counts as verified when random sentinels, written and read back before it at sampled LBAs, can no longer be read
after it (purge/sentinels.py).
"""

from __future__ import annotations

import datetime
import typing as t

from ..core.files import now
from ..core.progress import DONE, IDLE, RUNNING, Progress, Unreadable
from . import methods
from .method import PurgeError, Work, stuck_s
from .sentinels import Sentinels, check_alive
from .wait import Stuck, watch


def perform(work: Work) -> dict[str, t.Any]:
    """Purge a held drive by the method that its options ask for; the fields of the journal's purge record.

    Raises PurgeError when it could not be done, fio.Interrupted on a stop, Refused when the drive is no longer the one
    held.
    `verified` is False in the record where sentinels can still be read: for the caller to act on.
    """
    found = methods.probe(work.host, work.identity)
    offer = methods.choose(work.options["method"], methods.offers_for(found, work.identity, work.options))
    method = methods.METHODS[offer["method"]]
    work.capabilities = found[method.family]
    sentinels = Sentinels(work.identity["size_bytes"], work.identity["logical_block_size_bytes"])
    work.held.note_sentinels(sentinels.blocks())
    work.bounded("write sentinels", lambda: sentinels.plant(work.handle))
    kept = {key: offer[key] for key in ("method", "why", "commands", "timeout_s", "purge_class")}
    kept["capabilities"] = work.capabilities
    work.note("purge_started", sentinels=sentinels.record(), **kept)
    began = work.clock()
    work.held.unsettled = method.progress is not None
    fields = method.run(work)
    work.held.unsettled = False
    seconds = work.clock() - began
    work.bounded("guard after purge", work.held.check)
    return dict(fields, seconds=round(seconds, 3), **kept, **verify(work, sentinels))


def verify(work: Work, sentinels: Sentinels) -> dict[str, t.Any]:
    """{verified, verification} after a purge. Raises PurgeError for a drive that answers nothing any more."""
    block_bytes = work.identity["logical_block_size_bytes"]
    count = work.bounded("look for sentinels", lambda: sentinels.count(work.handle, block_bytes))
    if count.unreadable == len(sentinels):
        work.bounded("write a block", lambda: check_alive(work.handle, block_bytes))
    return {
        "verified": count.survived == 0,
        "verification": {"sentinels": len(sentinels), "survived": count.survived, "unreadable": count.unreadable},
    }


def unfinished(history: t.Iterable[t.Mapping[str, t.Any]]) -> t.Mapping[str, t.Any] | None:
    """Return the `purge_started` of one drive whose end nobody saw: its job was stopped or died. It may go on in the
    drive.
    """
    started: t.Mapping[str, t.Any] | None = None
    for record in history:
        if record["event"] == "purge_started":
            started = record
        elif record["event"] == "purge" or (record["event"] == "test_finished" and record["ended"] != "interrupted"):
            started = None
    return started


def may_be_running(history: t.Sequence[t.Mapping[str, t.Any]]) -> bool:
    """Return whether a purge may go on in a drive by itself, or left something to be put right, from the records of its
    run: what the drive holds is not known.
    """
    started = unfinished(history)
    method = methods.METHODS.get(started["method"]) if started else None
    return methods.left_behind(history) or (method is not None and method.progress is not None)


def wait_for_unfinished(work: Work, started: t.Mapping[str, t.Any]) -> bool:
    """Wait for a purge that goes on in the drive, started by a job that is gone; whether there was one to wait for, or
    one that ended meanwhile. Reads only. Only of one that we saw end is known that nobody wrote after it
    (`HeldDrive.purge_is_ours`).

    Raises PurgeError for one that is stuck, that failed, or a drive that can't be asked.
    """
    method = methods.METHODS.get(started["method"])
    if method is None or method.progress is None:
        return False
    found = methods.probe(work.host, work.identity).get(method.family, {})
    if "error" in found:
        raise PurgeError("a purge was started, and the drive does not report its progress: {0}".format(found["error"]))
    work.capabilities, progress = found, method.progress
    try:
        state = progress(work).state
        if state != RUNNING:
            # It may have ended while nobody looked: the sentinels tell whether that was ours.
            return state == DONE
        size = work.identity["size_bytes"]
        watch(
            lambda: _ended_is_done(progress(work)),
            started["timeout_s"],
            stuck_s(size, work.options),
            work.tick,
            work.clock,
            work.sleep,
        )
        work.held.purge_is_ours = True
    except (Stuck, Unreadable) as error:
        raise PurgeError(f"a purge that was started before: {error}") from None
    return True


def _ended_is_done(progress: Progress) -> Progress:
    """A format has no record of its end: it is over when it runs no more. The sentinels tell whether it
    did its work.
    """
    return progress._replace(state=DONE) if progress.state == IDLE else progress


def resumed(work: Work, started: t.Mapping[str, t.Any]) -> dict[str, t.Any] | None:
    """Return the purge record of a purge that was waited for, by the sentinels of the job that started it; None: purge
    again.

    Raises PurgeError for a drive that is no longer what it was.
    """
    checked = verify(work, Sentinels(**started["sentinels"]))
    if not checked["verified"] or work.options.get("lba_size_bytes") not in (
        None,
        work.identity["logical_block_size_bytes"],
    ):
        return None
    kept = {key: started[key] for key in ("method", "why", "commands", "timeout_s", "purge_class", "capabilities")}
    took = _time(now()) - _time(started["time"])
    work.capabilities = started["capabilities"]
    fields = methods.METHODS[started["method"]].read_again(work)
    return dict(fields, seconds=max(0.0, round(took.total_seconds(), 3)), resumed=True, **kept, **checked)


def _time(text: str) -> datetime.datetime:
    return datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ")
