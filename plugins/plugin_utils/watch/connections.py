# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A connection to any host of the inventory from within one action, made as ansible-core's TaskExecutor makes that of a
task.
"""

from __future__ import annotations

import copy
import typing as t

from ansible import constants as C
from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.playbook.play_context import PlayContext
from ansible.plugins.loader import connection_loader

# A variable set to `omit`: an exception from ansible-core 2.19 on, a placeholder text before.
try:
    from ansible.errors import AnsibleValueOmittedError as _Omitted
except ImportError:
    _Omitted = ()
_OMIT_PLACEHOLDER = "__omit_place_holder__"
# Who we become plays no part: its password may sit in a vault or behind a slow lookup.
_MAGIC = {field: names for field, names in C.MAGIC_VARIABLE_MAPPING.items() if not field.startswith("become")}
_SSH_FAILED = 255

Vars = dict[str, t.Any]


class HostConnection:
    """Runs commands on a host as the connection's own user, without become. Made in the main thread,
    used in any one.
    """

    def __init__(self, action: t.Any, task_vars: Vars, name: str) -> None:
        """action: the running ActionBase; task_vars: its variables. Raises AnsibleError when the host's do not make a
        connection.
        """
        hostvars = task_vars["hostvars"]
        if name not in hostvars:
            raise AnsibleError(f"host {name} is not in the inventory")
        self._connection = _open(action, task_vars, hostvars[name])

    def run(self, command: str) -> tuple[str, str]:
        """Return a command's output and errors. Raises AnsibleError when the host cannot be reached."""
        rc, stdout, stderr = self._connection.exec_command(command, in_data=None, sudoable=False)
        output, errors = _text(stdout), _text(stderr)
        if rc == _SSH_FAILED and not output:
            raise AnsibleConnectionFailure(errors.strip() or "the connection failed")
        return output, errors


def _open(action: t.Any, task_vars: Vars, host_vars: t.Mapping[str, t.Any]) -> t.Any:
    task = action._task
    magic = _values(host_vars, {name for names in _MAGIC.values() for name in names} | {"inventory_hostname"})
    context = _play_context(action, task_vars, magic)
    context.connection = magic.get("ansible_connection") or task.connection
    connection = connection_loader.get(context.connection, context, new_stdin=None, task_uuid=task._uuid)
    if connection is None:
        raise AnsibleError(f"there is no connection plugin {context.connection!r}")
    connection.set_become_plugin(None)
    _set_options(connection, context, task, host_vars)
    return connection


def _play_context(action: t.Any, task_vars: Vars, magic: Vars) -> PlayContext:
    """Return a fresh one: the action's own carries the address, user and password of the host that the task
    happens to run on.
    """
    own, task = action._play_context, copy.copy(action._task)
    task.delegate_to = None
    from_host = any(name in task_vars for name in _MAGIC["password"])
    passwords = {"conn_pass": own.password} if own.password and not from_host else {}
    fresh = PlayContext(passwords=passwords, connection_lockfd=own.connection_lockfd)
    context = fresh.set_task_and_variable_override(task=task, variables=magic, templar=action._templar)
    context.remote_addr = context.remote_addr or magic["inventory_hostname"]
    return context


def _set_options(connection: t.Any, context: PlayContext, task: t.Any, host_vars: t.Mapping[str, t.Any]) -> None:
    keywords = task.dump_attrs()
    keywords["timeout"] = context.timeout  # the keyword of this name limits the whole task
    if context.password:
        keywords["password"] = context.password
    keywords.pop("retries", None)
    options = _values(host_vars, C.config.get_plugin_vars("connection", connection._load_name))
    prefix = f"ansible_{connection.extras_prefix}_" if getattr(connection, "allow_extras", False) else None
    extras = {name for name in host_vars if prefix and name.startswith(prefix) and name not in options}
    connection.set_options(task_keys=keywords, var_options=dict(options, _extras=_values(host_vars, extras)))
    shell = connection._shell
    shell.set_options(
        task_keys=keywords, var_options=_values(host_vars, C.config.get_plugin_vars("shell", shell._load_name))
    )


def _values(host_vars: t.Mapping[str, t.Any], names: t.Iterable[str]) -> Vars:
    """Return those of the variables that the host has, templated, which hostvars does at each access."""
    found = {}
    for name in names:
        if name not in host_vars:
            continue
        try:
            value = host_vars[name]
        except _Omitted:
            continue
        if not (isinstance(value, str) and value.startswith(_OMIT_PLACEHOLDER)):
            found[name] = value
    return found


def _text(data: bytes | str) -> str:
    return data.decode("utf-8", "replace") if isinstance(data, bytes) else data
