# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds the run that a play is about; its documentation is in plugins/modules/find_run.py."""

from __future__ import annotations

import os
import typing as t

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.answers import RunOnHost
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common.schema import plain
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import runs
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.validation.host_action import refuse_injected_facts

ARGUMENTS = dict(
    run_id=dict(type="str", default=""),
    run_name=dict(type="str", required=True),
    results_dir=dict(type="path", required=True),
    answers=dict(type="dict", default={}),
)


class ActionModule(ActionBase):
    """Thin: arguments in, plugin_utils.runs.choose, the run out."""

    _requires_connection = False

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        super().run(tmp, task_vars)
        refuse_injected_facts()
        _result, args = self.validate_argument_spec(ARGUMENTS)
        results_dir = os.path.abspath(args["results_dir"])
        answered = {
            host: [base.parse(RunOnHost, run) for run in plain(answer["runs"])]
            for host, answer in args["answers"].items()
            if answer and answer.get("runs")
        }
        # A run that can't be read has a folder, and a host that is silent or was not asked may have runs.
        has_folder = os.path.isdir(os.path.join(results_dir, args["run_id"]))
        is_complete = not has_folder and all(answer and "runs" in answer for answer in args["answers"].values())
        own = runs.on_controller(results_dir)
        try:
            run_id, name = runs.choose(args["run_id"], args["run_name"], answered, own, is_complete)
        except runs.RunError as error:
            raise AnsibleActionFail(str(error)) from error
        without = runs.hosts_without(os.path.join(results_dir, run_id), run_id, answered)
        # Whoever asks for an existing run wants to see it; nothing here erases.
        return {
            "changed": False,
            "decision": {
                "run": {"id": run_id, "name": name, "results_dir": results_dir, "destructive": True},
                "hosts_without_run": without,
            },
        }
