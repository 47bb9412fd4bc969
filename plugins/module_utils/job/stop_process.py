# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a host job is ended from outside: its process, or its systemd unit."""

from __future__ import annotations

import contextlib
import os
import signal
import time

from ..core.host import Host
from ..purge.begun import has_our_password
from ..run.folder import RunDir, read_journal
from ..run.liveness import Process, pid_start

STOP_TIMEOUT_S = 60.0
# A stop waits for the job, then for what restores the host after it; each may take STOP_TIMEOUT_S.
_UNIT_STOP_S = 2 * STOP_TIMEOUT_S + 10
_ENDED_UNIT = ("inactive", "failed", "unknown")


class JobError(Exception):
    """The host job could not be started or stopped; the message says what to do."""


def end_process(host: Host, run_dir: RunDir, process: Process | None) -> None:
    """SIGTERM, which restores the host; SIGKILL for a job that does not listen, fio dies with it: but not while a
    password of ours is on a drive. Raises JobError where it lives on.
    """
    if process is None:
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        erased = _security_erased(run_dir) if number == signal.SIGKILL else []
        if erased:
            text = (
                "the security erase of {0} cannot be interrupted, and the job must remove its password "
                "afterwards. The job then ends by itself; run stop.yml again after that"
            )
            raise JobError(text.format(", ".join(erased)))
        if pid_start(host, process.pid) == process.start:
            with contextlib.suppress(ProcessLookupError):  # It may end meanwhile.
                os.kill(process.pid, number)
        deadline = time.monotonic() + STOP_TIMEOUT_S
        while time.monotonic() < deadline:
            if pid_start(host, process.pid) != process.start:
                return
            time.sleep(0.1)
    raise JobError(
        f"the host job (pid {process.pid}) of run {run_dir.run_id} does not end, even when killed: a drive may hang; "
        "reboot the host, then run restore.yml"
    )


def end_unit(host: Host, unit: str) -> None:
    """Stop a unit, also one that systemd has yet to start. Raises JobError where it lives on."""
    stopped = host.run(["systemctl", "stop", unit], _UNIT_STOP_S)
    state = host.run(["systemctl", "is-active", unit]).stdout.strip()
    if state not in _ENDED_UNIT:
        raise JobError(
            f"{unit} does not end ({state or 'systemd gives no answer'}): {stopped.stderr.strip()}; it may still write "
            f"to its drives: end it with systemctl stop {unit}, or reboot the host, then run restore.yml"
        )


def _security_erased(run_dir: RunDir) -> list[str]:
    """Return the drives that are being purged now and have a password of ours."""
    history, status = read_journal(run_dir.journal), run_dir.read_status() or {}
    purged = [entry["drive"] for entry in status.get("drives", []) if entry["phase"] == "purge"]
    return [name for name in purged if has_our_password([record for record in history if record.get("drive") == name])]
