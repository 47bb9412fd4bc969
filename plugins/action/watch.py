# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Watch the host jobs of a run until all have ended; its documentation is in plugins/modules/watch.py."""

from __future__ import annotations

import datetime
import os
import time
import typing as t

from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.ssdlab.fleet.plugins.module_utils.run.folder import RunDir
from ansible_collections.ssdlab.fleet.plugins.module_utils.run.states import DEAD
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import argument_specs, core_internals
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.power import left_off
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.validation import printable
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.watch import progress, remote_status
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.watch.connections import HostConnection
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.watch.poller import Sweep, Watched

display = Display()

ARGUMENTS = dict(
    run_id=dict(type="str", required=True),
    state_dir=dict(type="path"),
    hosts=dict(type="list", elements="str"),
    interval_s=dict(type="float"),
    host_timeout_s=dict(type="float", default=20),
    give_up_s=dict(type="float", default=600),
    for_s=dict(type="float", default=0),
)
SHORTEST_INTERVAL_S = 30.0
INTERVAL_PER_HOST_S = 0.2
LEAST_INTERVAL_S = 0.2
SILENT = "silent"
STATE_DIR = "ssd_state_dir"
UNKNOWN = ""


class ActionModule(ActionBase):
    """Asks every host through its own connection; the host that the task happens to run on plays no part."""

    _requires_connection = False

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        super().run(tmp, task_vars)
        variables = task_vars or {}
        _result, args = self.validate_argument_spec(ARGUMENTS)
        names = args["hosts"] if args["hosts"] is not None else variables.get("ansible_play_hosts_all", [])
        try:
            RunDir("/", args["run_id"])
        except ValueError as error:
            raise AnsibleError(str(error)) from error
        asks = {name: self._asker(variables, name, args) for name in dict.fromkeys(names)}
        given = variables.get("ssd_results_dir") or argument_specs.default("ssd_results_dir")
        results_dir = os.path.expanduser(str(self._templar.template(given)))
        sweep = Sweep(asks, lambda seen: seen.state in progress.ENDED_STATES, args["host_timeout_s"])
        interval_s = args["interval_s"]
        if interval_s is None:
            interval_s = max(SHORTEST_INTERVAL_S, INTERVAL_PER_HOST_S * len(asks))
        # A look costs every host a command; without a pause it would load what is measured.
        interval_s = max(LEAST_INTERVAL_S, interval_s)
        what = f"run {args['run_id']} on {len(asks)} host{'' if len(asks) == 1 else 's'}, every {interval_s:g} s"
        core_internals.show(f"Watching {what}; the measurement does not depend on it")
        try:
            _watch(sweep, interval_s, args["give_up_s"], args["for_s"], lambda name: left_off.said(results_dir, name))
        finally:
            sweep.close()
        return dict(_result_of(sweep), changed=False)

    def _asker(
        self, variables: dict[str, t.Any], name: str, args: dict[str, t.Any]
    ) -> t.Callable[[], remote_status.HostStatus]:
        try:
            command = remote_status.command(args["state_dir"] or _state_dir(variables, name), args["run_id"])
            connection = HostConnection(self, variables, name)
        except Exception as error:  # One host's variables must not keep the others from being watched.
            return _raiser(AnsibleError(f"cannot connect: {error}"))
        return lambda: remote_status.parse(*connection.run(command))


def _state_dir(variables: dict[str, t.Any], name: str) -> str:
    """Return a host's own ssd_state_dir. What only this task's play or role sets is for all; it is not among
    hostvars.
    """
    hostvars, here = variables["hostvars"], variables.get("inventory_hostname")
    mine = variables.get(STATE_DIR)
    own = hostvars[here].get(STATE_DIR) if here in hostvars else None
    if mine is not None and mine != own:
        return str(mine)
    found = hostvars[name].get(STATE_DIR) if name in hostvars else None
    return str(argument_specs.default(STATE_DIR) if found is None else found)


def _raiser(error: Exception) -> t.Callable[[], remote_status.HostStatus]:
    def ask() -> remote_status.HostStatus:
        raise error

    return ask


def _watch(sweep: Sweep, interval_s: float, give_up_s: float, for_s: float, is_off: t.Callable[[str], str]) -> None:
    """Look and print until every host has ended, all that are left have been silent for too long, or for_s are over (0:
    never). is_off: what is known of the power of a host that is silent; "": nothing.
    """
    parent, until = os.getppid(), time.monotonic() + for_s
    while True:
        began = time.monotonic()
        sweep.round()
        if os.getppid() != parent:
            raise AnsibleError("ansible-playbook was killed: nobody sees what is printed here")
        for line in progress.lines(_views(sweep, is_off), datetime.datetime.now()):
            core_internals.show(printable.line(line))
        if sweep.all_ended():
            return
        left = [host for host in sweep.hosts.values() if not host.ended]
        if give_up_s and all((sweep.silent_s(host) or 0) >= give_up_s for host in left):
            display.warning(f"no answer from {', '.join(host.name for host in left)}: no longer waiting")
            return
        if for_s and time.monotonic() + interval_s > until:
            core_internals.show(
                f"Watched for {for_s:g} s: {len(left)} of {len(sweep.hosts)} hosts are still at work. They go on; "
                "watch again, or collect"
            )
            return
        sweep.pause(max(0.0, began + interval_s - time.monotonic()))


def _views(sweep: Sweep, is_off: t.Callable[[str], str]) -> list[progress.HostView]:
    return [_view(sweep, host, is_off) for host in sweep.hosts.values()]


def _view(sweep: Sweep, host: Watched, is_off: t.Callable[[str], str]) -> progress.HostView:
    seen, silent_s = host.answer or remote_status.HostStatus(UNKNOWN, None), sweep.silent_s(host)
    problem = (is_off(host.name) if silent_s is not None else "") or host.problem
    return progress.HostView(host.name, seen.state, seen.status, silent_s, problem)


def _result_of(sweep: Sweep) -> dict[str, t.Any]:
    heard = {
        name: host.ended or (host.answer is not None and host.silent_since is None)
        for name, host in sweep.hosts.items()
    }
    states = {name: host.answer.state if heard[name] else SILENT for name, host in sweep.hosts.items()}
    return {
        "hosts": states,
        "ended": sweep.all_ended(),
        "silent": [name for name, state in states.items() if state == SILENT],
        "dead": [name for name, state in states.items() if state == DEAD],
    }
