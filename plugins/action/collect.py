# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring a host's part of a run to the controller; its documentation is in plugins/modules/collect.py."""
from __future__ import annotations

import contextlib
import os
import shlex
import tempfile
import typing as t

from ansible.errors import AnsibleActionFail, AnsibleError
from ansible.plugins.action import ActionBase

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.files import SCHEMA_VERSION, now
from ansible_collections.ssdlab.fleet.plugins.module_utils.run.folder import LIVE_STATES, RunDir
from ansible_collections.ssdlab.fleet.plugins.module_utils.run.summary import ABSENT
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.results import unpack

ARGUMENTS = dict(
    results_dir=dict(type="path", required=True),
    run_id=dict(type="str", required=True),
    state_dir=dict(type="path", default="/var/lib/ssdlab-fleet"),
)
Result = t.Dict[str, t.Any]


class ActionModule(ActionBase):
    """Asks `run_info` on the host, fetches its archive and unpacks it; the callback `fleet` writes the records."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> Result:
        super().run(tmp, task_vars)
        variables = task_vars or {}
        _result, args = self.validate_argument_spec(ARGUMENTS)
        name = variables["inventory_hostname"]
        results_dir = os.path.abspath(args["results_dir"])
        folder = _raw_folder(results_dir, args, name)
        wanted = {"state_dir": args["state_dir"], "run_id": args["run_id"], "archive": True}
        info = self._execute_module(module_name="ssdlab.fleet.run_info", module_args=wanted, task_vars=variables)
        if info.get("failed") or info.get("unreachable"):
            return info
        if self._task.check_mode:
            return {"changed": False, "state": info["state"], "skipped_collection": True}
        changed = self._bring(info["packed"], folder) if "packed" in info else False
        host = _host_record(args["run_id"], name, info)
        result = {
            "changed": changed,
            "run_id": args["run_id"],
            "results_dir": results_dir,
            "ssd_run": {"id": args["run_id"], "results_dir": results_dir},
            "state": info["state"],
            "unfinished": info["unfinished"],
            # The host job knows its host by the name it had at the start.
            "records": [host] + [dict(record, host=name) for record in info["records"]],
        }
        if host["state"] != "ok":
            result["warnings"] = [f"{name}: {host['message']}"]
        return result

    def _bring(self, packed: Result, folder: str) -> bool:
        """Fetch and unpack the archive unless the folder has its content already; whether it had not."""
        try:
            if unpack.is_current(folder, packed["sha256"]):
                return False
            os.makedirs(os.path.dirname(folder), exist_ok=True)
            with tempfile.TemporaryDirectory(dir=os.path.dirname(folder), prefix=".collect-") as aside:
                local = os.path.join(aside, "archive.tar.gz")
                self._connection.fetch_file(packed["path"], local)
                unpack.replace(folder, local, packed["sha256"])
        except (OSError, unpack.UnpackError) as error:
            raise AnsibleActionFail(f"cannot collect {packed['path']} into {folder}: {error}") from error
        finally:
            self._remove(packed["path"])
        return True

    def _remove(self, path: str) -> None:
        # A host that went away meanwhile has been told already; a file left there is replaced the next time.
        with contextlib.suppress(AnsibleError):
            self._low_level_execute_command(f"rm -f -- {shlex.quote(path)}")


def _raw_folder(results_dir: str, args: Result, name: str) -> str:
    try:
        RunDir(args["state_dir"], args["run_id"])
    except ValueError as error:
        raise AnsibleActionFail(str(error)) from error
    if os.sep in name or name in (os.curdir, os.pardir):
        raise AnsibleActionFail(f"host {name!r}: this inventory name cannot name a folder of results")
    return os.path.join(results_dir, args["run_id"], "raw", name)


def _host_record(run_id: str, name: str, info: Result) -> Result:
    """The record of kind `host`: what this host's part of the run came to."""
    state, message = "ok", ""
    if info["state"] == ABSENT:
        state, message = "failed", f"there is no run {run_id} on this host: it was not started there, or cleaned up"
    elif not info["status"]:
        state, message = "failed", f"run {run_id} has no status on this host: its host job never began"
    elif info["unfinished"]:
        state, message = "unfinished", f"run {run_id} still works on {', '.join(info['unfinished'])}"
    elif info["state"] in LIVE_STATES:
        state, message = "unfinished", f"run {run_id} is done with its drives, but has yet to restore the host"
    elif info["state"] == "dead":
        state, message = "failed", f"the host job of run {run_id} is gone: start the playbook again, it restores the host and goes on"
    elif info["state"] == "failed":
        state, message = "failed", f"the host job of run {run_id} failed: {info['status'].get('message') or 'see job.log'}"
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "host",
        "time": now(),
        "run_id": run_id,
        "host": name,
        "state": state,
        "message": message,
        "snapshot": info.get("snapshot"),
    }
