# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One command that shows how a run stands on a host, for a plain user and without Python there; and what its output
says. Pure.
"""

from __future__ import annotations

import posixpath
import shlex
import typing as t

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import BOOT_ID
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.run_files import Status
from ansible_collections.ssdlab.fleet.plugins.module_utils.run.folder import STATUS
from ansible_collections.ssdlab.fleet.plugins.module_utils.run.liveness import state_of
from ansible_collections.ssdlab.fleet.plugins.module_utils.run.states import ABSENT
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.validation import printable, sanitizer

_MARK = "--- ssdlab.fleet "
# What a login shell prints before is left out by the marks. `sed` finds the first "pid": of the file, whether it is
# indented or not. The status comes after the process that it names: a job that ends in between has then written its
# last state. The shell reads the short files itself, as each look starts its processes on a host that measures.
_SCRIPT = f"""
export LC_ALL=C
show() {{ while IFS= read -r line; do printf '%s\\n' "$line"; done < "$1"; }}
echo
echo '{_MARK}pid'
pid=$(sed -n '/"pid": *[0-9]/{{s/.*"pid": *\\([0-9][0-9]*\\).*/\\1/p;q;}}' "$1" 2>/dev/null)
echo "$pid"
echo '{_MARK}stat'
show "/proc/${{pid:-0}}/stat" 2>/dev/null
echo '{_MARK}init'
show /proc/1/stat 2>/dev/null
echo '{_MARK}boot'
show {BOOT_ID}
echo '{_MARK}status'
cat "$1" || exit 0
echo
echo '{_MARK}end'
"""
_SECTIONS = {"pid", "stat", "init", "boot", "status", "end"}


class HostStatus(t.NamedTuple):
    """`state`: of status.json, `dead` when its job is gone, `absent` without such a run. `status`: None where there is
    none. boot_id: of the host's present boot.
    """

    state: str
    status: Status | None
    boot_id: str = ""


class NoStatus(Exception):
    """The host answered, but not with a status; the message says with what."""


def command(state_dir: str, run_id: str) -> str:
    """Return the shell command for a connection's exec_command; the path travels as an argument of its own."""
    path = posixpath.join(state_dir, "runs", run_id, STATUS)
    return " ".join(["/bin/sh", "-c", shlex.quote(_SCRIPT), "ssdlab-fleet-watch", shlex.quote(path)])


def parse(stdout: str, stderr: str) -> HostStatus:
    """Return what the command's output says. Raises Unreadable."""
    parts = _sections(stdout)
    text = parts.get("status", "").strip()
    if "status" in parts and not text and "No such file" in stderr:
        return HostStatus(ABSENT, None, parts.get("boot", "").strip())
    if not text or not _SECTIONS <= parts.keys():
        raise NoStatus(_last_line(stderr) or ("the answer is cut off" if text else _last_line(stdout)) or "no output")
    try:
        status = sanitizer.shape_of_record(Status).passed(sanitizer.decoded(text)).value
    except sanitizer.Unfit as refused:
        raise NoStatus(f"its status.json cannot be trusted: {refused}") from refused
    return HostStatus(_state(status, parts), base.parse(Status, status), parts["boot"].strip())


class _SeenFiles:
    """The files that the command showed, as `liveness` asks a host for them."""

    def __init__(self, files: dict[str, str]) -> None:
        self._files = files

    def get(self, path: str) -> str | None:
        return self._files.get(path, "").strip() or None


def _state(status: dict[str, t.Any], parts: dict[str, str]) -> str:
    pid, stat, boot_id = str(status.get("pid")), parts["stat"].strip(), parts["boot"].strip()
    another_job = parts["pid"].strip() != pid  # started just now
    hidden = not parts["init"].strip() and not stat  # /proc mounted with hidepid: no process of others shows
    if (another_job or hidden) and boot_id == status.get("boot_id"):
        state: str = status["state"]
        return state
    return state_of(_SeenFiles({BOOT_ID: boot_id, f"/proc/{pid}/stat": stat}), status)


def _sections(stdout: str) -> dict[str, str]:
    parts: dict[str, str] = {}
    for part in ("\n" + stdout.replace("\r\n", "\n")).split("\n" + _MARK)[1:]:
        name, _newline, text = part.partition("\n")
        parts[name.strip()] = text
    return parts


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith(_MARK)]
    return printable.line(lines[-1], 300) if lines else ""
