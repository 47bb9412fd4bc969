# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Print the drives of the fleet; an action, since the standard callback prints a debug message as escaped JSON."""

from __future__ import annotations

import typing as t

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ..plugin_utils.preflight import drive_list


class ActionModule(ActionBase):
    """Documented in plugins/modules/drive_list.py."""

    def run(self, tmp: t.Any = None, task_vars: t.Any = None) -> dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        _unused, args = self.validate_argument_spec(
            argument_spec={
                "answers": {"type": "dict", "required": True},
                "group": {"type": "str", "default": "ssd_servers"},
            },
        )
        text = drive_list.render(args["answers"], args["group"])
        Display().display("\n" + text)
        failures = drive_list.failures(args["answers"])
        return dict(result, changed=False, text=text, unanswered=failures)
