# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sends a host the plan that preflight of the same play decided on, with the engine where that does not lie there."""

from __future__ import annotations

import functools
import os
import typing as t

from ansible.errors import AnsibleActionFail

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.compression import pack
from ansible_collections.ssdlab.fleet.plugins.module_utils.job.control import SEND_ENGINE
from ansible_collections.ssdlab.fleet.plugins.modules.host_job import ARGUMENTS
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common.version import collection_version
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import zipapp
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import decision_record, results_log, run_record
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.validation import module_answers
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.validation.host_action import (
    HostAction,
    Result,
    refuse_injected_facts,
)

MODULE = "host_job"
# Made when ansible-playbook loads this, once, and not by the worker that it starts for each host.
ENGINE = zipapp.build(collection_version())
KNOWN = {"name": ENGINE.name, "sha256": ENGINE.sha256}
SENT = {**KNOWN, "data": pack(ENGINE.data)}
module_answers.prepare(MODULE)
REQUIRED_IF = [
    ("state", "present", ["run_id"]),
    ("state", "stopped", ["run_id"]),
    ("state", "absent", ["run_id"]),
]


# Asks the module on the host, with these arguments beside those of the task.
Ask = t.Callable[..., Result]


class Order(t.NamedTuple):
    """What to start. folder: the run's on the controller; is_attached: preflight saw its job at work; engines: those
    that the host has, None where it was not asked.
    """

    host: str
    run_id: str
    folder: str
    is_attached: bool
    engines: list[str] | None


class ActionModule(HostAction):
    """See the module of the same name."""

    def run(self, tmp: str | None = None, task_vars: Result | None = None) -> Result:
        result: Result = super(HostAction, self).run(tmp, task_vars)
        refuse_injected_facts()
        variables = task_vars or {}
        self.validate_argument_spec(ARGUMENTS, required_if=REQUIRED_IF)
        # As given: a path's ~ is the host's.
        arguments = dict(self._task.args)
        # Only the controller needs it.
        engines = arguments.pop("engines", None)

        def ask(**more: t.Any) -> Result:
            return self.ask(MODULE, {**arguments, **more}, variables)

        if arguments.get("state", "present") == "present":
            host, run_id = variables["inventory_hostname"], str(arguments["run_id"])
            results = os.path.abspath(os.path.expanduser(str(self._templar.template(variables["ssd_results_dir"]))))
            known = ((variables.get("ssd_decision") or {}).get("attach") or {}).get(host)
            order = Order(host, run_id, os.path.join(results, run_id), bool(known), engines)
            result.update(self.start_job(order, ask))
        else:
            result.update(ask())
        self.remove_temporary_folder()
        return result

    def start_job(self, order: Order, ask: Ask) -> Result:
        """Have the host's job started; the module's answer."""
        plan = self.decided_plan(order.folder, order.host)
        # Before it is asked: the answer may get lost with the host.
        if not self._task.check_mode and not order.is_attached:
            self._begin_anew(order)
        at_once = not self._task.check_mode and not order.is_attached and is_missing(order.engines)
        answer = self._ask_to_start(functools.partial(ask, plan=plan), at_once)
        if answer.get("action") == "start" and not self._task.check_mode:
            self._begin_anew(order)
        return answer

    def _ask_to_start(self, ask: Ask, at_once: bool) -> Result:
        """Return the module's answer; the engine is sent at once, or where the host asks for it."""
        answer: Result = {"action": SEND_ENGINE}
        if not at_once:
            answer = ask(engine=KNOWN)
        if answer.get("action") == SEND_ENGINE:
            answer = ask(engine=SENT)
        if answer.get("action") == SEND_ENGINE:
            return {"failed": True, "changed": False, "msg": "the host asks for the engine again although it was sent"}
        return answer

    def _begin_anew(self, order: Order) -> None:
        """Let nothing count that was collected of this host before it measures anew."""
        try:
            results_log.begin_anew(os.path.join(order.folder, run_record.RESULTS), order.run_id, order.host)
        except OSError as error:
            raise AnsibleActionFail(
                f"{order.host}: cannot record in {order.folder}/results.jsonl that it starts over: {error}"
            ) from error

    def decided_plan(self, folder: str, host: str) -> str:
        """Return what preflight decided for this host. It travels in no variable, as any can be given on the command
        line.
        """
        try:
            return decision_record.plan(folder, host)
        except ValueError as error:
            raise AnsibleActionFail(f"{host}: {error}") from error


def is_missing(engines: list[str] | None) -> bool:
    """Return whether the host said that it lacks the engine. engines: those that it has, None where it was
    not asked.
    """
    return engines is not None and ENGINE.name not in engines
