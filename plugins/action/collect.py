# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring a host's part of a run to the controller; its documentation is in plugins/modules/collect.py."""

from __future__ import annotations

import contextlib
import json
import os
import posixpath
import tempfile
import typing as t

from ansible import constants as C
from ansible.errors import AnsibleActionFail

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.files import (
    STATE_DIR,
    aside_prefix,
    now,
)
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.results import HostState
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import states
from ansible_collections.ssdlab.fleet.plugins.module_utils.run.folder import RunDir
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common.task_results import NOT_PRINTED
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import host_brief, host_folder, run_record, unpack
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder.results_log import host_record
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.validation import (
    journal,
    module_answers,
    record_check,
)
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.validation.host_action import (
    HostAction,
    refuse_injected_facts,
)

ARGUMENTS = dict(
    results_dir=dict(type="path", required=True),
    run_id=dict(type="str", required=True),
    state_dir=dict(type="path", default=STATE_DIR),
    limits=dict(type="dict", default={}),
    hypervisor=dict(type="str", default=""),
)
Result = dict[str, t.Any]

# Ansible loads an action before it forks a process for each host: what is made here is made once for all of them.
module_answers.prepare("run_info")
journal.prepare()
record_check.prepare()
host_folder.prepare()


class ActionModule(HostAction):
    """Asks `run_info` on the host, fetches its archive and unpacks it; the callback `fleet` writes the records."""

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> Result:
        super(HostAction, self).run(tmp, task_vars)
        refuse_injected_facts()
        variables = task_vars or {}
        _result, args = self.validate_argument_spec(ARGUMENTS)
        name = variables["inventory_hostname"]
        results_dir = os.path.abspath(args["results_dir"])
        folder = _raw_folder(results_dir, args, name)
        wanted = {"state_dir": args["state_dir"], "run_id": args["run_id"], "archive": True}
        limits = _limits(args["limits"])
        # Two plays may collect one host at a time: the second would take the archive, or the folder, from under the
        # first.
        with unpack.locked(os.path.join(os.path.dirname(C.DEFAULT_LOCAL_TMP), unpack.LOCKS), folder):
            info = self.ask("run_info", wanted, variables)
            if info.get("failed") or info.get("unreachable"):
                return info
            missing = [key for key in ("state", "status", "unfinished") if key not in info]
            if missing:
                raise AnsibleActionFail(f"{name}: its answer about run {args['run_id']} lacks {', '.join(missing)}")
            if self._task.check_mode:
                looked = {"state": info["state"], "left_tuned": _left_tuned(info)}
                return {"changed": False, **looked, "skipped_collection": True}
            with contextlib.suppress(OSError):  # what can't be swept is in nobody's way
                unpack.sweep(folder)
            archive = posixpath.join(args["state_dir"], f"{args['run_id']}.tar.gz")
            changed = self._bring(archive, info["packed"], folder, limits) if "packed" in info else False
            results = host_folder.NOTHING
            if info["state"] != states.ABSENT:
                results = host_folder.read(folder, args["run_id"], info["state"], info["status"])
        snapshot, unknown = host_brief.with_hypervisor(results.snapshot, results_dir, args["hypervisor"])
        results = results._replace(snapshot=snapshot)
        # Of a large fleet run.json is large: it is read only where a host reports more than it may unasked.
        run = _run(results_dir, args["run_id"]) if len(results.records) > record_check.MOST_UNASKED else None
        asked = None if run is None else record_check.asked_of(run, name)
        told = record_check.collected(results.records, args["run_id"], name, now(), asked)
        host = _host_record(args["run_id"], name, info, [*results.problems, *told.problems], results)
        result = {
            "changed": changed,
            "run_id": args["run_id"],
            "results_dir": results_dir,
            "state": info["state"],
            "unfinished": info["unfinished"],
            "left_tuned": _left_tuned(info),
            # The host job knows its host by the name it had at the start; here it has that of the inventory. As a text,
            # since Ansible copies each value of a result several times, in the one process that all hosts share.
            NOT_PRINTED: {"records": json.dumps([host, *told.records])},
        }
        warnings = [host["message"]] if host["state"] != "ok" else []
        warnings += [*info.get("damage", []), *results.damage, *([unknown] if unknown else [])]
        warnings += [f"{told.dropped} unknown keys of its records are ignored"] if told.dropped else []
        if warnings:
            result["warnings"] = [f"{name}: {warning}" for warning in warnings]
        return result

    def _bring(self, archive: str, packed: Result, folder: str, limits: unpack.ArchiveLimits) -> bool:
        """Fetch and unpack the archive unless the folder has its content already; whether it had not."""
        try:
            if unpack.is_current(folder, packed["sha256"]):
                return False
            os.makedirs(os.path.dirname(folder), exist_ok=True)
            # Unpacking counts too: a host that used up the task's time is asked nothing more.
            with (
                self._answered(),
                tempfile.TemporaryDirectory(
                    dir=os.path.dirname(folder), prefix=aside_prefix(unpack.aside_name(folder))
                ) as aside,
            ):
                local = os.path.join(aside, "archive.tar.gz")
                self.fetch(archive, local, limits.archive_bytes)
                unpack.replace(folder, local, packed["sha256"], limits)
        except (OSError, unpack.UnpackError) as error:
            raise AnsibleActionFail(f"cannot collect {archive} into {folder}: {error}") from error
        finally:
            self.remove(archive)
        return True


def _raw_folder(results_dir: str, args: Result, name: str) -> str:
    try:
        RunDir(args["state_dir"], args["run_id"])
    except ValueError as error:
        raise AnsibleActionFail(str(error)) from error
    if os.sep in name or name in (os.curdir, os.pardir):
        raise AnsibleActionFail(f"host {name!r}: this inventory name cannot name a folder of results")
    return os.path.join(results_dir, args["run_id"], "raw", name)


def _run(results_dir: str, run_id: str) -> Result | None:
    try:
        return run_record.read_run(os.path.join(results_dir, run_id))
    except ValueError:  # told by the report, which can't judge the run then
        return None


def _left_tuned(info: Result) -> bool:
    """Return whether a job that is gone may have left settings of its host changed. info: of run_info."""
    ended = info["state"] in states.FINAL_STATES
    return info["state"] in states.LOST_STATES or (ended and info["status"].get("restored") is False)


def _limits(given: Result) -> unpack.ArchiveLimits:
    try:
        return unpack.limits(given)
    except ValueError as error:
        raise AnsibleActionFail(f"ssd_collect_limits: {error}") from error


def _host_record(
    run_id: str,
    name: str,
    info: Result,
    problems: t.Sequence[str] = (),
    results: host_folder.HostResults = host_folder.NOTHING,
) -> Result:
    """Return the record of kind `host`: what this host's part of the run came to. problems: of its records."""
    state: HostState = "ok"
    message = ""
    if info["state"] == states.ABSENT:
        state, message = (
            "failed",
            f"there is no run {run_id} on this host: it was never started there, or was cleaned up",
        )
    elif not info["status"]:
        state, message = "failed", f"run {run_id} has no status on this host: its host job never started"
    elif info["unfinished"]:
        state, message = "unfinished", f"run {run_id} still works on {', '.join(info['unfinished'])}"
    elif info["state"] in states.LIVE_STATES:
        state, message = "unfinished", f"run {run_id} has finished its drives but has not restored the host yet"
    elif info["state"] == states.DEAD:
        state, message = (
            "failed",
            f"the host job of run {run_id} is gone: run the playbook again to restore the host and continue",
        )
    elif info["state"] == states.DAMAGED:
        state, message = (
            "failed",
            (
                f"the status of run {run_id} is damaged and its host job is gone; these results come from its "
                f"journal; continue with -e ssd_run_id={run_id}"
            ),
        )
    elif info["state"] == states.FAILED:
        state, message = (
            "failed",
            (
                f"the host job of run {run_id} failed: {info['status'].get('message') or 'see job.log'}; continue "
                f"with -e ssd_run_id={run_id}"
            ),
        )
    if problems and state == "ok":
        state, message = (
            "failed",
            f"its report about run {run_id} cannot be trusted: {'; '.join(problems[:3])} (docs/trust.md)",
        )
    return host_record(name, state, message, run_id, results.snapshot, results.calibration)
