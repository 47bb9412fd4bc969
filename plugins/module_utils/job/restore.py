# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Put back what an ended host job left changed on its host."""
from __future__ import annotations

import os
import typing as t

from ..core.host import Host
from ..run.folder import Journal, RunDir, Status, run_ids
from ..run.liveness import is_live
from ..tuning import settings


class NotRestored(Exception):
    """The host still has settings of an earlier run; the message names them."""


def restore_leftovers(host: Host, state_dir: str, kept: bool = False) -> list[settings.Setting]:
    """Put back what dead jobs left behind, the newest record first, as each holds what the one before had set.

    `kept`: also what tune.yml set, to stay until it is restored, and without drives that are not there any more.
    """
    done = []
    runs = [RunDir(state_dir, run_id) for run_id in run_ids(state_dir)]
    for run_dir in sorted(runs, key=lambda run_dir: (settings.made_at(run_dir.tuning), run_dir.run_id), reverse=True):
        left = os.path.exists(run_dir.tuning) and not is_live(host, run_dir.read_status())
        if left and (kept or not settings.is_kept(run_dir.tuning)):
            done += restore_run(host, run_dir, let_go=kept)
            if os.path.exists(run_dir.tuning):
                # What could not be put back waits; an older record put back before it would be undone by it.
                break
    return done


def refuse_unrestored(done: t.Iterable[settings.Setting]) -> None:
    """Raise NotRestored when a setting could not be put back: another run on top would measure an odd host."""
    failed = settings.failures(done)
    if failed:
        advice = "mend that and run restore.yml, which lets go of drives that are gone: "
        raise NotRestored("settings of an earlier run could not be put back; " + advice + "; ".join(failed))


def restore_run(host: Host, run_dir: RunDir, let_go: bool = False) -> list[settings.Setting]:
    """Put back what one run's dead job left, and say so in its journal and status."""
    done = settings.restore(host, run_dir.tuning, let_go)
    status = run_dir.read_status()
    if done and status:
        journal = Journal(run_dir.journal, run_id=run_dir.run_id, host=status["host"])
        journal.add("restored", settings=done)
        journal.close()
    if status and not status.get("restored") and not os.path.exists(run_dir.tuning):
        Status(run_dir.status, status).set(restored=True)
    return done
