# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module run_info: the runs on a host, and all about one."""

from __future__ import annotations

import typing as t

from ..core.files import STATE_DIR
from ..core.host import Host
from . import summary
from .folder import RunDir
from .states import ABSENT

OPTIONS: dict[str, t.Any] = {
    "state_dir": {"type": "path", "default": STATE_DIR},
    "run_id": {"type": "str"},
    "run_name": {"type": "str"},
    "definitions_of": {"type": "str"},
    "archive": {"type": "bool", "default": False},
}


# What packs a run for a collect; None: nothing does. It is handed in, as those who only look are sent none of it.
Pack = t.Optional[t.Callable[[RunDir], t.Any]]


def module_result(host: Host, options: t.Mapping[str, t.Any], pack: Pack = None) -> dict[str, t.Any]:
    """Return the module's result. pack: archive.pack. Raises ValueError with the folder that can't be read."""
    state_dir, run_id = options["state_dir"], options["run_id"]
    try:
        result = {"runs": summary.runs(host, state_dir, options["run_name"], options["definitions_of"])}
        if run_id:
            result.update(_run_result(host, RunDir(state_dir, run_id), pack if options["archive"] else None))
        return result
    except (ValueError, OSError) as error:
        raise ValueError(f"cannot read the runs in {state_dir}: {error}") from error


def _run_result(host: Host, run_dir: RunDir, pack: Pack) -> dict[str, t.Any]:
    run = summary.read(host, run_dir)
    # Packed after the state was read: a run that is reported as ended is packed whole.
    made = pack(run_dir) if pack and run.state != ABSENT else None
    # Not its path: the controller knows where it lies, and believes no host that (validation/module_answers.py).
    packed = {"packed": {"size_bytes": made.size_bytes, "sha256": made.sha256}} if made else {}
    return {
        **packed,
        "state": run.state,
        "status": run.status,
        "unfinished": run.unfinished,
        "damage": run.damage,
    }
