# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks a host everything that preflight needs. Documented in plugins/modules/examine.py."""

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleConnectionFailure, AnsibleError

from ..plugin_utils.preflight import examine_arguments
from ..plugin_utils.preflight.findings import UNSET
from ..plugin_utils.validation.host_action import HostAction, refuse_injected_facts

Result = dict[str, t.Any]
# Of the controller: what is asked of the host, which counts though the host does not answer.
OWN_ARGUMENTS = ("asked", "names")


class ActionModule(HostAction):
    """What is asked comes back with the answer, so that it is evaluated once."""

    def run(self, tmp: t.Any = None, task_vars: Result | None = None) -> Result:
        result: Result = super(HostAction, self).run(tmp, task_vars)
        refuse_injected_facts()
        arguments = dict(self._task.args)
        own = {name: arguments.pop(name) for name in OWN_ARGUMENTS if name in arguments}
        if "asked" in own:
            arguments = {**examine_arguments.parts(own["asked"], UNSET), **arguments}
        try:
            result.update(self.ask("examine", arguments, task_vars or {}))
            self.remove_temporary_folder()
        except AnsibleConnectionFailure as error:
            result.update(unreachable=True, msg=str(error))
        except AnsibleError as error:
            result.update(failed=True, msg=str(error))
        return {**result, **own}
