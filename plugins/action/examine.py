# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks a host everything that preflight needs. Documented in plugins/modules/examine.py."""

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleConnectionFailure, AnsibleError

from ..module_utils.records import base
from ..plugin_utils.common.task_results import NOT_PRINTED
from ..plugin_utils.power import access, bios_reading
from ..plugin_utils.preflight import examine_result, host_variables, service_drives
from ..plugin_utils.preflight.findings import BIOS_SETTINGS, UNSET
from ..plugin_utils.validation import module_answers
from ..plugin_utils.validation.host_action import HostAction, refuse_injected_facts

Result = dict[str, t.Any]
# Later than the task's own limit, which has the better message.
LATER_S = 10

# Ansible loads an action before it forks a process for each host: what is made here is made once for all of them.
module_answers.prepare("examine")
host_variables.names()


class ActionModule(HostAction):
    """The host's variables come back with its answer, so that they are evaluated once."""

    def run(self, tmp: t.Any = None, task_vars: Result | None = None) -> Result:
        result: Result = super(HostAction, self).run(tmp, task_vars)
        refuse_injected_facts()
        variables = task_vars or {}
        arguments = dict(self._task.args)
        own: Result = {}
        try:
            if arguments.pop("variables", False):
                asked = host_variables.evaluated(variables, self._templar.template)
                own = {"asked": asked, "names": sorted(name for name in variables if name.startswith("ssd_"))}
                arguments.update(service_drives.parts(asked, UNSET))
            if self._task.timeout:
                arguments.setdefault("limit_s", self._task.timeout + LATER_S)
            reading = bios_reading.begin(access.of(variables, self._templar.template)) if own else None
            result.update(self.ask("examine", arguments, variables))
            if reading and "host_info" in result:
                own[BIOS_SETTINGS] = base.to_json(reading.result(result["host_info"]))
            self.remove_temporary_folder()
        except AnsibleConnectionFailure as error:
            result.update(unreachable=True, msg=str(error))
        except AnsibleError as error:
            result.update(failed=True, msg=str(error))
        if result.get("unreachable") or result.get("failed"):
            # Of such a result Ansible prints all but this key, and a host's variables fill a screen.
            told = {key: value for key, value in result.items() if key not in ("asked", "names")}
            return {**told, NOT_PRINTED: own}
        return examine_result.packed({**result, **own}) if own else result
