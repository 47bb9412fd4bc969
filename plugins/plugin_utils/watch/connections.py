# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A connection to any host of the inventory from within one action."""

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleConnectionFailure, AnsibleError

from ..common import core_internals

_SSH_FAILED = 255


class HostConnection:
    """Runs commands on a host as the connection's own user, without become. Made in the main thread,
    used in any one.
    """

    def __init__(self, action: t.Any, task_vars: dict[str, t.Any], name: str) -> None:
        """action: the running ActionBase; task_vars: its variables. Raises AnsibleError when the host's do not make a
        connection.
        """
        hostvars = task_vars["hostvars"]
        if name not in hostvars:
            raise AnsibleError(f"host {name} is not in the inventory")
        self._connection = core_internals.open_connection(action, task_vars, hostvars[name])

    def run(self, command: str) -> tuple[str, str]:
        """Return a command's output and errors. Raises AnsibleError when the host cannot be reached."""
        rc, stdout, stderr = self._connection.exec_command(command, in_data=None, sudoable=False)
        output, errors = _text(stdout), _text(stderr)
        if rc == _SSH_FAILED and not output:
            raise AnsibleConnectionFailure(errors.strip() or "the connection failed")
        return output, errors

    def reset(self) -> None:
        """Give up what is kept open to the host, as it was booted anew."""
        self._connection.reset()


def _text(data: bytes | str) -> str:
    return data.decode("utf-8", "replace") if isinstance(data, bytes) else data
