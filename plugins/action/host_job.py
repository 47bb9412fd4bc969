# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Renders a host's whole plan in one task and sends it to the host, with the engine where that does not lie there."""

from __future__ import annotations

import json
import os
import typing as t

from ansible.errors import AnsibleActionFail

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.packed import pack
from ansible_collections.ssdlab.fleet.plugins.module_utils.job.control import SEND_ENGINE
from ansible_collections.ssdlab.fleet.plugins.modules.host_job import ARGUMENTS
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common.schema import role_default
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common.version import collection_version
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.gate.host_action import HostAction, refuse_injected_facts
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import hostplan, zipapp
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.render import PlanError
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.results import decision_record, run_record, store

MODULE = "host_job"
# Arguments that only the controller needs, for the plan.
NEEDED_ARGUMENTS = ("run_name", "boot_id", "drives")
OWN_ARGUMENTS = (*NEEDED_ARGUMENTS, "engines")
# Made when ansible-playbook loads this, once, and not by the worker that it starts for each host.
ENGINE = zipapp.build(collection_version())
KNOWN = {"name": ENGINE.name, "sha256": ENGINE.sha256}
SENT = {**KNOWN, "data": pack(ENGINE.data)}
DEFAULTS = {name: role_default(name) for name in hostplan.VARIABLES}
REQUIRED_IF = [
    ("state", "present", ["run_id", *NEEDED_ARGUMENTS]),
    ("state", "stopped", ["run_id"]),
    ("state", "absent", ["run_id"]),
]


class ActionModule(HostAction):
    """See the module of the same name."""

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result = super(HostAction, self).run(tmp, task_vars)
        refuse_injected_facts()
        variables = task_vars or {}
        self.validate_argument_spec(ARGUMENTS, required_if=REQUIRED_IF)
        # As given: a path's ~ is the host's.
        arguments = dict(self._task.args)
        own = {name: arguments.pop(name, None) for name in OWN_ARGUMENTS}
        if arguments.get("state", "present") == "present":
            result.update(self._start(own, arguments, variables))
        else:
            result.update(self.ask(MODULE, arguments, variables))
        self._remove_tmp_path(self._connection._shell.tmpdir)
        return result

    def _start(
        self, own: dict[str, t.Any], arguments: dict[str, t.Any], variables: dict[str, t.Any]
    ) -> dict[str, t.Any]:
        """Have the host's job started; the module's answer."""
        if not own["drives"]:
            raise AnsibleActionFail("drives: no drive is listed; pass what ssdlab.fleet.drive_facts returned")
        plan = self._plan(own, str(arguments.get("run_id", "")), variables)
        folder = self._run_folder(plan["run"]["id"], variables)
        plan["decision"] = self._decided(plan, folder)
        arguments["plan"] = pack(json.dumps(plan).encode())
        known = (variables.get("ssd_attach") or {}).get(plan["host"])
        # Before it is asked: the answer may get lost with the host.
        if not self._task.check_mode and not known:
            self._begin_anew(folder, plan)
        at_once = not self._task.check_mode and not known and is_missing(own["engines"])
        answer = self._ask_to_start(arguments, variables, at_once)
        if answer.get("action") == "start" and not self._task.check_mode:
            self._begin_anew(folder, plan)
        return answer

    def _ask_to_start(
        self, arguments: dict[str, t.Any], variables: dict[str, t.Any], at_once: bool
    ) -> dict[str, t.Any]:
        """The module's answer; the engine is sent at once, or where the host asks for it."""
        answer: dict[str, t.Any] = {"action": SEND_ENGINE}
        if not at_once:
            answer = self.ask(MODULE, {**arguments, "engine": KNOWN}, variables)
        if answer.get("action") == SEND_ENGINE:
            answer = self.ask(MODULE, {**arguments, "engine": SENT}, variables)
        if answer.get("action") == SEND_ENGINE:
            return {"failed": True, "changed": False, "msg": "the host asks for the engine again although it was sent"}
        return answer

    def _plan(self, own: dict[str, t.Any], run_id: str, variables: dict[str, t.Any]) -> dict[str, t.Any]:
        host = variables["inventory_hostname"]
        given = [name for name in (*hostplan.VARIABLES, *hostplan.GIVEN) if name in variables]
        values = {name: default for name, default in DEFAULTS.items() if name not in given}
        values.update({name: self._templar.template(variables[name]) for name in given})
        try:
            return hostplan.build(
                values,
                run={"id": run_id, "name": str(own["run_name"])},
                host=host,
                boot_id=str(own["boot_id"]),
                drives=own["drives"],
                engine_version=collection_version(),
            )
        except PlanError as error:
            raise AnsibleActionFail(f"{host}: {error}") from error

    def _run_folder(self, run_id: str, variables: dict[str, t.Any]) -> str:
        """The run's folder on the controller."""
        results = os.path.abspath(os.path.expanduser(str(self._templar.template(variables["ssd_results_dir"]))))
        return os.path.join(results, run_id)

    def _begin_anew(self, folder: str, plan: dict[str, t.Any]) -> None:
        """Let nothing count that was collected of this host before it measures anew."""
        try:
            store.begin_anew(os.path.join(folder, run_record.RESULTS), plan["run"]["id"], plan["host"])
        except OSError as error:
            raise AnsibleActionFail(
                "{0}: cannot record in {1}/results.jsonl that it starts over: {2}".format(plan["host"], folder, error)
            ) from error

    def _decided(self, plan: dict[str, t.Any], folder: str) -> dict[str, str]:
        """What preflight decided for this host. It travels in no variable, as any can be given on the command line."""
        try:
            return decision_record.decided(folder, plan)
        except ValueError as error:
            raise AnsibleActionFail("{0}: {1}".format(plan["host"], error)) from error


def is_missing(engines: list[str] | None) -> bool:
    """Whether the host said that it lacks the engine. engines: those that it has, None where it was not asked."""
    return engines is not None and ENGINE.name not in engines
