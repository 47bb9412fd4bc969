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
import functools
from dataclasses import dataclass

from ..core.files import now
from ..core.progress import DONE, IDLE, RUNNING, Progress, Unreadable
from ..records import base
from ..records.base import Time
from ..records.events import PurgeStarted
from ..records.purge import DeallocatedRead, NotQueried, PurgeEnd, PurgeStart, Verification
from . import methods, zoned
from .begun import History, last_started
from .method import PTS, Done, PurgeError, Work, stuck_s
from .sentinels import SENTINELS, SENTINELS_OF_PROMISE, Sentinels, check_alive
from .wait import Stuck, watch


@dataclass(frozen=True)
class Begun(PurgeStarted):
    """A purge that was started, and when."""

    time: Time


def perform(work: Work) -> PurgeEnd:
    """Purge a held drive by the method that its options ask for.

    Raises PurgeError when it could not be done, fio.Interrupted on a stop, Refused when the drive is no longer the one
    held.
    `verified` is False in the record where sentinels can still be read: for the caller to act on.
    """
    found = methods.probe(work.host, work.identity)
    offer = methods.choose(work.options.method, methods.offers_for(found, work.lba_size_bytes, work.options))
    method = methods.METHODS[offer.method]
    capabilities = found[method.family]
    sentinels = (
        work.bounded("look at its zones", lambda: zoned.ZoneSentinels(work))
        if offer.method == zoned.NAME
        else Sentinels(work.size_bytes, work.lba_size_bytes, count=_sampled(offer.method))
    )
    work.held.note_sentinels(sentinels.blocks())
    work.bounded("write sentinels", lambda: sentinels.plant(work.handle))
    start = PurgeStart(
        method=offer.method,
        why=offer.why or "",
        commands=offer.commands,
        timeout_s=offer.timeout_s or 0,
        purge_class=offer.purge_class,
        capabilities=base.to_json(capabilities),
        sentinels=sentinels.record(),
    )
    work.note("purge_started", **base.to_json(start))
    began = work.clock()
    work.held.unsettled = method.progress is not None
    done = method.run(work, capabilities)
    work.held.unsettled = False
    seconds = work.clock() - began
    work.bounded("guard after purge", work.held.check)
    return _end(start, done, seconds, verify(work, sentinels, methods.promise(offer.method, found)))


def _sampled(method: str) -> int:
    """Return how many sentinels a purge by this method is held to."""
    return SENTINELS_OF_PROMISE if methods.METHODS[method].purge_class == PTS else SENTINELS


def _end(start: PurgeStart, done: Done, seconds: float, checked: Verification, resumed: bool | None = None) -> PurgeEnd:
    return PurgeEnd(
        method=start.method,
        seconds=round(seconds, 3),
        verified=checked.survived == 0,
        verification=checked,
        purge_class=start.purge_class,
        why=start.why,
        commands=start.commands,
        timeout_s=start.timeout_s,
        capabilities=start.capabilities,
        resumed=resumed,
        **base.to_json(done),
    )


def verify(work: Work, sentinels: Sentinels, promise: DeallocatedRead | None = None) -> Verification:
    """Look for the sentinels after a purge. promise: what they are to read as. Raises PurgeError for a drive that
    answers nothing any more.
    """
    block_bytes = work.lba_size_bytes
    count = work.bounded("look for sentinels", lambda: sentinels.count(work.handle, block_bytes, promise))
    if count.unreadable == len(sentinels):
        work.bounded("write a block", lambda: check_alive(work.handle, block_bytes))
    return Verification(
        len(sentinels), count.survived, count.unreadable, promise, None if promise is None else count.unlike
    )


def broken_promise(checked: Verification) -> str:
    """Return what a drive said of deallocated blocks and did not keep; "": nothing."""
    if checked.promise is None or not checked.unlike:
        return ""
    counts = {"old data": checked.survived, "something else": checked.unlike - checked.survived}
    found = " and ".join(f"{what} in {count} of {checked.sentinels}" for what, count in counts.items() if count)
    return f"it promises {checked.promise} for deallocated blocks, and returned {found}"


def unfinished(history: History) -> Begun | None:
    """Return the purge of one drive whose end nobody saw: its job was stopped or died. It may go on in the drive."""
    started = last_started(history)
    return base.parse(Begun, started) if started else None


def wait_for_unfinished(work: Work, started: PurgeStarted) -> bool:
    """Wait for a purge that goes on in the drive, started by a job that is gone; whether there was one to wait for, or
    one that ended meanwhile. Reads only. Only of one that we saw end is known that nobody wrote after it
    (`HeldDrive.purge_is_ours`).

    Raises PurgeError for one that is stuck, that failed, or a drive that can't be asked.
    """
    method = methods.METHODS.get(started.method)
    if method is None or method.progress is None:
        return False
    found = methods.probe(work.host, work.identity).get(method.family, NotQueried(f"it has no {method.name} any more"))
    if isinstance(found, NotQueried):
        raise PurgeError(f"a purge was started, and the drive does not report its progress: {found.error}")
    progress = functools.partial(method.progress, work, found)
    try:
        state = progress().state
        if state != RUNNING:
            # It may have ended while nobody looked: the sentinels tell whether that was ours.
            return state == DONE
        watch(
            lambda: _ended_is_done(progress()),
            started.timeout_s,
            stuck_s(work.size_bytes, work.options),
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


def resumed(work: Work, started: Begun) -> PurgeEnd | None:
    """Return the purge record of a purge that was waited for, by the sentinels of the job that started it; None: purge
    again.

    Raises PurgeError for a drive that is no longer what it was.
    """
    planted = started.sentinels
    if planted.count is None:
        return None
    checked = verify(work, Sentinels(planted.size_bytes, planted.block_bytes, planted.seed, planted.count))
    if checked.survived or work.options.lba_size_bytes not in (None, work.lba_size_bytes):
        return None
    took = _time(now()) - _time(started.time)
    before = methods.capabilities_of(started.method, started.capabilities)
    done = methods.METHODS[started.method].read_again(work, before)
    return _end(started, done, max(0.0, took.total_seconds()), checked, resumed=True)


def _time(text: str) -> datetime.datetime:
    return datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ")
