# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lets the answer of the module of the same name through the gate, and brings its bug report; documented in
plugins/modules/iomemory.py.
"""

from __future__ import annotations

import os
import posixpath
import typing as t

from ansible.errors import AnsibleActionFail, AnsibleError

from ..module_utils.core.files import STATE_DIR
from ..module_utils.vendors.iomemory import BUGREPORT
from ..plugin_utils.validation.host_action import HostAction, refuse_injected_facts

MOST_BYTES = 1 << 30


class ActionModule(HostAction):
    """See the module of the same name."""

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result = super(HostAction, self).run(tmp, task_vars)
        refuse_injected_facts()
        arguments = dict(self._task.args)
        folder = arguments.pop("bugreport_dir", None)
        result.update(self.ask("iomemory", arguments, task_vars or {}))
        if folder and result.get("bugreport"):
            self._bring(
                str(arguments.get("state_dir") or STATE_DIR),
                os.path.abspath(os.path.expanduser(str(folder))),
                result["bugreport"],
            )
        return result

    def _bring(self, state_dir: str, folder: str, name: str) -> None:
        """Fetch the report, whose path on the host is ours, and remove it there."""
        remote, local = posixpath.join(state_dir, BUGREPORT), os.path.join(folder, name)
        try:
            os.makedirs(folder, exist_ok=True)
            self.fetch(remote, local, MOST_BYTES)
        except (OSError, AnsibleError) as error:
            raise AnsibleActionFail(f"cannot bring {remote} to {local}: {error}") from error
        finally:
            self.remove(remote)
