# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Statements that a drive is retired which a run of this controller used up, though its host no longer says so: the
state folder was lost, or the drive was moved. Pure, but for what last_run_of_drive reads.
"""

from __future__ import annotations

import datetime
import typing as t

from ...module_utils.guard import retired
from ...module_utils.records import base
from ...module_utils.records.found_drives import FoundDrive
from ...module_utils.records.ledger import RetiredUse
from ..run_folder.last_run_of_drive import Key
from .findings import HostAnswer, Run


def drives(views: t.Sequence[HostAnswer], run: Run | None) -> dict[Key, tuple[FoundDrive, str]]:
    """Return the drives whose entry has a statement, with that, on hosts that do not go on with this run. Whether it
    gives up anything by name does not matter: raw data have none.
    """
    attach = run.attach if run else {}
    found = {}
    for view in views:
        statements = {one.label: one.options.retired for one in view.entries or () if one.problem is None}
        for drive in view.drives or () if view.name not in attach else ():
            statement = statements.get(str(drive.drive))
            if statement and drive.identity:
                found[view.name, str(drive.drive)] = (drive, statement)
    return found


def lost(
    stated: t.Mapping[Key, tuple[FoundDrive, str]], used: t.Sequence[RetiredUse], today: datetime.date
) -> dict[Key, str]:
    """{(host, drive): why its statement lifts nothing}. stated: of `drives`; used: of last_run_of_drive."""
    found = {}
    for key, (drive, statement) in stated.items():
        use = retired.use_of(used, base.to_json(drive.identity))
        # A blank drive needs no statement.
        if use and drive.gives_up and not retired.is_newer(statement, use):
            found[key] = f"not_given_up: {retired.used_up(use.run_id, use.time, today)}"
    return found
