# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drive that failed: whether an error is its own, when its own logs are kept, and the journal record of them."""

from __future__ import annotations

import typing as t
from dataclasses import replace

from ..core.deadline import Hangs
from ..drive import error_logs
from ..measure import fio
from ..measure.disturbances import DISTURBS
from ..records.attempt import AttemptResult
from .drive_context import DriveContext
from .release_drive import LONGEST_REASON
from .resume_state import crash_text


def why(outcome: str, message: str, missed: str, finished: t.Iterable[AttemptResult]) -> str:
    """Return why the drive's own logs are worth keeping; "" where it did well, or was not ours to ask. Pure.

    outcome, message: of the campaign; missed: the criteria that it missed; finished: the results of its tests.
    """
    if outcome == "refused":
        return ""
    unread = [
        f"{result.test}: {found.message}"
        for result in finished
        for found in result.conditions
        if found.cause == "health" and found.level == DISTURBS
    ]
    reasons = ([message] if outcome == "error" else []) + ([missed] if missed else []) + unread
    return "; ".join(reasons)[:LONGEST_REASON]


def is_of_drive(error: Exception) -> bool:
    """Return whether the drive itself led to this error: it did not do its I/O, or gives no answer. Where nobody can
    tell, it is not blamed.
    """
    return isinstance(error, (fio.DriveError, Hangs))


def keep_logs(station: DriveContext, reason: str) -> None:
    """Ask the drive, while it is still held, and note what it gave. A drive that gives nothing more changes no
    outcome.
    """
    identity = station.held.identity
    if not reason or not identity.path:
        return
    who = replace(identity, path=station.held.path)
    folder = station.job.run_dir.raw(station.drive)
    try:
        kept = station.watchdog.call("keep its logs", lambda: error_logs.keep(station.job.host, who, folder))
    except Hangs as error:
        kept = [error_logs.SavedLog("logs", "", None, str(error))]
    except Exception as error:  # What the drive's tools print is nothing that its results should be lost for.
        kept = [error_logs.SavedLog("logs", "", None, crash_text(error))]
    station.note("logs_kept", reason=reason, logs=[item._asdict() for item in kept])
