# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the drives to measure again, on the controller. Documented in plugins/modules/retest.py."""

from __future__ import annotations

import os
import typing as t

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ..plugin_utils.common import core_internals
from ..plugin_utils.common.schema import plain
from ..plugin_utils.preflight import examine_result
from ..plugin_utils.report import retest, write_report
from ..plugin_utils.validation import printable
from ..plugin_utils.validation.host_action import refuse_injected_facts

ARGUMENTS = {
    "results_dir": {"type": "path", "required": True},
    "run_id": {"type": "str", "required": True},
    "run_name": {"type": "str", "required": True},
    "seen": {"type": "dict", "required": True},
}


class ActionModule(ActionBase):
    """Thin: arguments in, plugin_utils.report.retest, what to measure again out."""

    _requires_connection = False

    def run(self, tmp: t.Any = None, task_vars: t.Any = None) -> dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        refuse_injected_facts()
        _result, given = self.validate_argument_spec(argument_spec=ARGUMENTS)
        run = {"id": given["run_id"], "name": given["run_name"]}
        answers = plain(given["seen"])
        drives = {host: examine_result.unpacked(answer or {}).get("drives") or [] for host, answer in answers.items()}
        try:
            plan = retest.plan(os.path.abspath(given["results_dir"]), run, drives)
        except (write_report.ReportError, OSError, ValueError) as error:
            raise AnsibleActionFail(
                f"ssd_retest: cannot find out what to measure again in run {run['id']}: {error}"
            ) from error
        for line in plan.lines:
            core_internals.show(printable.line(line))
        return {**result, "changed": False, "hosts": plan.hosts, "lines": plan.lines}
