# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module run_info: the runs on a host, and all about one."""

from __future__ import annotations

import typing as t

from ..core.files import STATE_DIR
from ..core.host import Host
from . import archive, drive_records, summary
from .folder import RunDir
from .states import ABSENT

OPTIONS: dict[str, t.Any] = {
    "state_dir": {"type": "path", "default": STATE_DIR},
    "run_id": {"type": "str"},
    "run_name": {"type": "str"},
    "definitions_of": {"type": "str"},
    "archive": {"type": "bool", "default": False},
}


def answer(host: Host, given: dict[str, t.Any], check_mode: bool) -> dict[str, t.Any]:
    """Its result. Raises ValueError that says which folder cannot be read."""
    try:
        result: dict[str, t.Any] = {
            "runs": summary.runs(host, given["state_dir"], given["run_name"], given["definitions_of"])
        }
        if given["run_id"]:
            result.update(
                _of_run(host, RunDir(given["state_dir"], given["run_id"]), given["archive"] and not check_mode)
            )
        return result
    except (ValueError, OSError) as error:
        raise ValueError(f"cannot read the runs in {given['state_dir']}: {error}") from error


def _of_run(host: Host, run_dir: RunDir, packs: bool) -> dict[str, t.Any]:
    run = summary.read(host, run_dir)
    # Packed after the state was read: a run told as ended is packed whole.
    made = archive.pack(run_dir) if packs and run.state != ABSENT else {}
    # Not its path: the controller knows where it lies, and believes no host that (gate/answers.py).
    packed = {key: made[key] for key in ("size_bytes", "sha256") if made}
    return {
        **({"packed": packed} if packed else {}),
        "state": run.state,
        "status": run.status,
        "unfinished": drive_records.unfinished(run),
        "records": drive_records.records(run),
        "snapshot": summary.host_snapshot(run),
        "calibration": summary.calibration(run),
        "damage": run.damage,
    }
