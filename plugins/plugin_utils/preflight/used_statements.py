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
from ...module_utils.records.ledger import RetiredUse
from ..run_folder.last_run_of_drive import Key
from .findings import HostAnswer, Run


def drives(views: t.Sequence[HostAnswer], run: Run | None) -> list[str]:
    """Return the drives of which a statement gives something up, on hosts that do not go on with this run."""
    attach = run.attach if run else {}
    return [str(one.drive) for view in views if view.name not in attach for one in view.drives or () if one.gives_up]


def lost(
    views: t.Sequence[HostAnswer], used: t.Mapping[str, t.Sequence[RetiredUse]], run: Run | None, today: datetime.date
) -> dict[Key, str]:
    """{(host, drive): why its statement lifts nothing}. used: of last_run_of_drive."""
    wanted, found = set(drives(views, run)), {}
    for view in views:
        statements = {one.label: one.options.retired for one in view.entries or () if one.problem is None}
        for drive in view.drives or ():
            label = str(drive.drive)
            use = retired.use_of(used.get(label, ()), base.to_json(drive.identity)) if drive.identity else None
            statement = statements.get(label)
            if label in wanted and use and statement and not retired.is_newer(statement, use):
                found[view.name, label] = f"not_given_up: {retired.used_up(use.run_id, use.time, today)}"
    return found
