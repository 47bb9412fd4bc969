# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints what breaks of plugin_utils/common/core_internals.py with the ansible-core of the Python that runs this."""

from __future__ import annotations

import os
import sys
import types

from ansible import constants as C
from ansible.executor import task_executor
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.playbook.play_context import PlayContext
from ansible.playbook.task import Task
from ansible.plugins import loader as plugin_loaders
from ansible.plugins.action import ActionBase
from ansible.template import Templar
from ansible.utils.display import Display
from ansible.vars.hostvars import HostVars
from ansible.vars.manager import VariableManager

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import core_internals as internals

# Whoever runs a module, and whoever removes a folder, has to come by our methods.
CALLERS = {
    "_parse_returned_data": ("_execute_module",),
    "_low_level_execute_command": ("_execute_module", "_remove_tmp_path"),
}
ANSWER, ERRORS = "screened answer", "screened errors"
PING = '{"ping": "screened answer"}'


class Probe(internals.ScreenedAction):
    """Hears nothing of what the host prints."""

    def run(self, tmp=None, task_vars=None):
        """Never called: no task has this action."""

    def screened_answer(self, stdout):
        return PING

    def screened_errors(self, stderr):
        return ERRORS


def owners():
    """{owner in PARTS: what has its parts}."""
    loader = DataLoader()
    inventory = InventoryManager(loader=loader, sources=["localhost,"])
    manager = VariableManager(loader=loader, inventory=inventory)
    connection = plugin_loaders.connection_loader.get("local", PlayContext(), new_stdin=None)
    task = Task.load({"name": "probe", "action": "ansible.builtin.ping"}, loader=loader, variable_manager=manager)
    return {
        "ActionBase": Probe(task, connection, PlayContext(), loader, Templar(loader=loader), plugin_loaders),
        "Config": C.config,
        "Connection": connection,
        "Display": Display(),
        "HostVars": HostVars(inventory, manager, loader),
        "Inventory": inventory,
        "PlayContext": PlayContext(),
        "Task": task,
        # In a module of its own from ansible-core 2.19 on.
        "TaskExecutor": getattr(task_executor, "_task_timeout", task_executor),
    }


def problems():
    """Return the lines, none where everything is as we need it."""
    plugin_loaders.init_plugin_loader([])
    found = owners()
    lines = [
        f"{owner}.{name} is gone: {breaks}"
        for (owner, name), breaks in internals.PARTS.items()
        if not hasattr(found[owner], name)
    ]
    lines += [
        f"ActionBase.{caller} no longer calls {name}: {internals.PARTS['ActionBase', name]}"
        for name, callers in CALLERS.items()
        for caller in callers
        if name
        not in getattr(getattr(ActionBase, caller, None), "__code__", types.SimpleNamespace(co_names=())).co_names
    ]
    return lines or tried(found)


def tried(found):
    """Return what of it does not do what we need it for."""
    action, lines = found["ActionBase"], []
    action._connection.set_options(task_keys={}, var_options={})
    action._connection._shell.set_options(task_keys={}, var_options={"ansible_remote_tmp": os.path.abspath("tmp")})
    said = action.run_command("echo heard >&2")
    if (said["stderr"], said["stderr_lines"]) != (ERRORS, [ERRORS]):
        lines.append(f"ScreenedAction hears what a host prints as errors: {said}")
    variables = {"ansible_python_interpreter": sys.executable, "inventory_hostname": "localhost"}
    answer = action._execute_module(module_name="ansible.builtin.ping", module_args={}, task_vars=variables)
    if answer.get("ping") != ANSWER:
        lines.append(f"ScreenedAction hears what a module answers: {answer}")
    of_all = internals.variables_of_all(found["HostVars"])
    if not isinstance(of_all, dict) or internals.variables_of_all(None) != {}:
        lines.append(f"variables_of_all: {of_all}")
    host = {"inventory_hostname": "h", "ansible_connection": "local"}
    returned = internals.open_connection(action, {}, host).exec_command("echo seen", in_data=None, sudoable=False)
    if returned[:2] != (0, b"seen\n"):
        lines.append(f"open_connection: {returned}")
    return lines


if __name__ == "__main__":
    for line in problems():
        print(line)
