# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the message of a run, on the controller. Documented in plugins/modules/message.py."""

from __future__ import annotations

import os
import typing as t

from ansible.plugins.action import ActionBase

from ..plugin_utils.run_folder import last_word
from ..plugin_utils.validation.host_action import refuse_injected_facts

ARGUMENTS = {
    "results_dir": {"type": "path", "required": True},
    "run_id": {"type": "str", "default": ""},
    "run_name": {"type": "str", "required": True},
    "since_s": {"type": "float", "default": 0},
    "plans_only": {"type": "bool", "default": False},
}


class ActionModule(ActionBase):
    """Thin: arguments in, plugin_utils.run_folder.last_word, the message out."""

    _requires_connection = False

    def run(self, tmp: t.Any = None, task_vars: t.Any = None) -> dict[str, t.Any]:
        super().run(tmp, task_vars)
        refuse_injected_facts()
        _result, given = self.validate_argument_spec(argument_spec=ARGUMENTS)
        # Like collect: relative to where ansible-playbook was started.
        results_dir = os.path.abspath(given["results_dir"])
        run = given["run_id"], given["run_name"]
        found = last_word.message(results_dir, *run, given["since_s"], given["plans_only"])
        return {"changed": False, "message": found.text, "page": found.page}
