# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every private part of ansible-core that we touch, beyond what ActionBase gives to each action: screening what a host
prints, and a connection made as TaskExecutor makes that of a task. tests/compat tries them on the oldest and the newest
ansible-core.
"""

from __future__ import annotations

import contextlib
import copy
import typing as t
from pathlib import Path

from ansible import constants as C
from ansible.errors import AnsibleError
from ansible.playbook.play_context import PlayContext
from ansible.plugins.action import ActionBase
from ansible.plugins.loader import connection_loader
from ansible.utils.display import Display
from ansible.vars.plugins import get_vars_from_inventory_sources, get_vars_from_path

# A variable set to `omit`: an exception from ansible-core 2.19 on, a placeholder text before.
try:
    from ansible.errors import AnsibleValueOmittedError as _Omitted
except ImportError:
    _Omitted = ()
_OMIT_PLACEHOLDER = "__omit_place_holder__"

# What breaks where ansible-core no longer has a part, by owner and name.
PARTS = {
    ("ActionBase", "_parse_returned_data"): "answers of hosts reach ansible-core before the gate",
    ("ActionBase", "_low_level_execute_command"): "ansible-core prints errors of hosts before the gate",
    ("ActionBase", "_remove_tmp_path"): "temporary folders stay on the hosts",
    ("ActionBase", "_discovered_interpreter_key"): "a host's own ansible_facts can't be told from the path of Python",
    ("Config", "_config_file"): "messages can't name the ansible.cfg in force",
    ("Connection", "_load_name"): "watch can't find the options of connection plugins",
    ("Connection", "_shell"): "watch can't set the options of shell plugins; temporary folders stay on the hosts",
    ("Display", "_final_q"): "AWX's jobs warn that a worker sent data directly to stdout, with an older ansible-runner",
    ("HostVars", "_inventory"): "ssd_drives of the group all is not refused",
    ("HostVars", "_loader"): "ssd_drives of the group all is not refused",
    (
        "Inventory",
        "_sources",
    ): "ssd_drives in group_vars/all is not refused; names of inventory plugins are unknown",
    ("PlayContext", "set_task_and_variable_override"): "watch can't make a connection of its own",
    ("Task", "_uuid"): "watch can't make a connection of its own",
    ("Task", "dump_attrs"): "watch ignores the keywords of its task",
    ("TaskExecutor", "TaskTimeoutError"): "a host that does not answer in time fails instead of being unreachable",
}
# What ends a task after its `timeout`. Its place is another one in each version of ansible-core.
TASK_TIMEOUT = "TaskTimeoutError"
# Who we become plays no part: its password may sit in a vault or behind a slow lookup.
_MAGIC = {field: names for field, names in C.MAGIC_VARIABLE_MAPPING.items() if not field.startswith("become")}

Vars = dict[str, t.Any]


class ScreenedAction(ActionBase):
    """An action that hears a host through these three methods, before ansible-core prints or keeps what it says."""

    def before_command(self) -> None:
        """Raise AnsibleConnectionFailure where the host is to be asked nothing more."""

    def screened_answer(self, stdout: str) -> str:
        """Return what may be parsed of a module's standard output."""
        raise NotImplementedError

    def screened_errors(self, stderr: str) -> str:
        """Return what may be printed of a command's standard error."""
        raise NotImplementedError

    def run_command(self, command: str) -> Vars:
        """Run a command line on the host."""
        return self._low_level_execute_command(command)

    def remove_temporary_folder(self) -> None:
        """Take away the folder that ansible-core made for this task on the host."""
        self._remove_tmp_path(self._connection._shell.tmpdir)

    def forget_temporary_folder(self) -> None:
        """Leave that folder where it is."""
        self._connection._shell.tmpdir = None

    def has_looked_for_python(self) -> bool:
        """Return whether ansible-core itself put the path of Python into the answer, in this very task."""
        return bool(self._discovered_interpreter_key)

    def _parse_returned_data(self, res: t.Any, *rest: t.Any) -> t.Any:
        return super()._parse_returned_data({**res, "stdout": self.screened_answer(res.get("stdout") or "")}, *rest)

    def _low_level_execute_command(self, *args: t.Any, **kwargs: t.Any) -> Vars:
        self.before_command()
        done: Vars = super()._low_level_execute_command(*args, **kwargs)
        said = self.screened_errors(done.get("stderr") or "")
        return {**done, "stderr": said, "stderr_lines": [said]}


def show(text: str, display: t.Any = None) -> None:
    """Print a line from an action. Older versions of ansible-runner, which AWX may have, wrap Display.display so that
    it writes to a worker's own stdout, which ansible-core 2.19 warns of: the worker's queue is the way round that.
    """
    display = display or Display()
    queue = getattr(display, "_final_q", None)
    if queue is None:  # not in a worker
        display.display(text)
    else:
        queue.send_display("display", text)


def is_task_timeout(error: BaseException) -> bool:
    """Return whether a task is ended because its `timeout` is over."""
    return type(error).__name__ == TASK_TIMEOUT


def config_file() -> str | None:
    """Return the path of the ansible.cfg in force."""
    path: str | None = C.config._config_file
    return path


def variables_of_all(hostvars: t.Any) -> Vars:
    """Return what the inventory and its files set for the group `all`, as it stands there; {} without an inventory."""
    inventory, loader = getattr(hostvars, "_inventory", None), getattr(hostvars, "_loader", None)
    if inventory is None or loader is None:
        return {}
    every = inventory.groups["all"]
    return {
        **every.vars,
        **get_vars_from_inventory_sources(loader, inventory._sources, [every], "task"),
        **get_vars_from_path(loader, loader.get_basedir(), [every], "task"),
    }


def inventory_files(hostvars: t.Any) -> list[t.Any]:
    """Return what is in the inventory's YAML files, as far as it can be read."""
    inventory, loader = getattr(hostvars, "_inventory", None), getattr(hostvars, "_loader", None)
    found: list[t.Any] = []
    if inventory is None or loader is None:
        return found
    for path in map(Path, inventory._sources):
        for file in path.iterdir() if path.is_dir() else [path]:
            if file.suffix in (".yml", ".yaml") and file.is_file():
                with contextlib.suppress(AnsibleError):  # no YAML, or vaulted without its password
                    found.append(loader.load_from_file(str(file)))
    return found


def open_connection(action: ActionBase, task_vars: Vars, host_vars: t.Mapping[str, t.Any]) -> t.Any:
    """Return a connection to any host of the inventory, without become. task_vars: the action's. Raises AnsibleError
    when the host's variables do not make one.
    """
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


def _play_context(action: ActionBase, task_vars: Vars, magic: Vars) -> PlayContext:
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
