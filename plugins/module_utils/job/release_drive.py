# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a drive is left at the end of a run: as it is, blank, or as evidence of what it missed."""

from __future__ import annotations

import typing as t

from ..guard import data_scan
from ..guard.block_classifier import Stopped
from ..guard.held import Refused
from ..purge import methods, zoned
from ..purge.method import PurgeError, Work
from ..records.attempt import AttemptResult

AS_IS, BLANK, EVIDENCE = "as_is", "blank", "evidence"
LONGEST_REASON = 500
# How long is looked whether a drive that was deallocated reads as blank.
_LOOK = data_scan.Terms(1.0)
# Of the minute that a stop waits for all drives (stop_process.STOP_TIMEOUT_S); fio's end, a last step of the drive and
# putting the host back take the rest.
STOPPED_S = 20.0


class Leaving(t.NamedTuple):
    """How a drive is left: blank, or as_is with the reason; and how long that took."""

    state: str
    reason: str
    seconds: float


def make_blank(work: Work, finished: t.Sequence[AttemptResult]) -> Leaving:
    """Deallocate a held drive, so that nothing on it needs an excuse on a later night.

    What an error left behind is what there is to find out why. That of a test that is invalid or not steady tells
    nothing that its record does not.
    """
    errors = [f"{result.test} ended with an error" for result in finished if result.outcome == "error"]
    return blank(work, "; ".join(errors))


def make_blank_in_time(work: Work) -> Leaving:
    """As blank, of a drive whose run was stopped: as far as a stop waits for it."""
    ends = work.clock() + STOPPED_S

    def tick(_share: float | None) -> None:
        if work.clock() > ends:
            raise PurgeError(f"deallocating it takes longer than the {STOPPED_S:g} s that a stop leaves for that")

    work.tick = tick
    return blank(work)


def blank(work: Work, unwell: str = "") -> Leaving:
    """As make_blank, of a drive about which nothing else is to be found out. unwell: why it stays as it is instead."""
    if unwell:
        return Leaving(AS_IS, unwell, 0)
    began = work.clock()
    reason = _blank(work)
    return Leaving(AS_IS if reason else BLANK, reason, round(work.clock() - began, 3))


def _blank(work: Work) -> str:
    """ "" once the drive reads as blank, else why not. Raises Refused, and Hangs for a drive that gives no answer."""
    offered = methods.probe(work.host, work.identity)
    method = methods.METHODS[zoned.NAME if zoned.FAMILY in offered else "deallocate"]
    found = offered[method.family]
    lacking = method.supported(found)
    if lacking:
        return lacking
    try:
        work.bounded("guard before it is left blank", work.held.check)
        method.run(work, found)
        seen = work.bounded("look whether it is blank", lambda: data_scan.scan(work.handle, work.size_bytes, _LOOK))
    except (
        PurgeError,
        OSError,
        Refused,
    ) as error:  # nothing is lost by it: what was measured stands, and the drive stays as it is
        return str(error)
    except Stopped:
        return "the run was stopped while another job looked at it"
    if seen.unreadable:
        return f"it cannot be read at byte {seen.unreadable.offset} after deallocation"
    return "" if seen.blank else "it does not read as blank after deallocation"
