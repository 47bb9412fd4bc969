# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cuts the power of a host whose run tests that; its documentation is in plugins/modules/power_cut.py."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import typing as t

from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure, AnsibleError

from ansible_collections.ssdlab.fleet.plugins.action import host_job
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.compression import unpack
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.files import STATE_DIR, append_line, now, own_slug
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import BOOT_ID
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.host_snapshot import CutReach
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import Plan, PlannedPowerCut, PowerCutMode
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common.processes import children, signal_all
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.power import (
    access,
    cut_cycles,
    left_off,
    switch_on_again,
    switches,
)
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.validation import module_answers, printable
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.validation.host_action import Result
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.watch import remote_status
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.watch.connections import HostConnection
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.watch.poller import Sweep

ARGUMENTS = {
    "state": {"type": "str", "choices": ["played", "proved", "restored"], "default": "played"},
    "run_id": {"type": "str"},
    "mode": {"type": "str", "choices": list(t.get_args(PowerCutMode))},
    "state_dir": {"type": "path", "default": STATE_DIR},
}
REQUIRED_IF = [("state", "played", ["run_id"]), ("state", "proved", ["mode"])]
# Below the run's folder on the controller: what was cut when, a file for each host.
FOLDER = "power-cuts"
# How long a host that is silent is listened to before it is asked again.
HEAR_S = 2.0
# A module that a host does not answer any more is waited for so long.
ASK_S = 180.0
# What ssh ends with where the connection did.
SSH_FAILED = 255
# Detached, so that whoever asks gets an answer.
RESET = (
    "test -w /proc/sysrq-trigger || { echo 'there is no /proc/sysrq-trigger' >&2; exit 1; }; "
    "nohup sh -c 'sleep 3; echo b > /proc/sysrq-trigger' > /dev/null 2>&1 &"
)

for module in ("host_info", "host_job"):
    module_answers.prepare(module)


class ActionModule(host_job.ActionModule):
    """It asks the host by modules of its own, and goes on with its job as host_job does."""

    def run(self, tmp: str | None = None, task_vars: Result | None = None) -> Result:
        result: Result = super(host_job.HostAction, self).run(tmp, task_vars)
        host_job.refuse_injected_facts()
        variables = task_vars or {}
        _checked, args = self.validate_argument_spec(ARGUMENTS, required_if=REQUIRED_IF)
        if args["state"] == "restored":
            return {**result, **self._restored(variables)}
        if args["state"] == "proved":
            return {**result, **self._proved(Host(self, variables, args["state_dir"]), args["mode"], variables)}
        name, run_id = variables["inventory_hostname"], args["run_id"]
        results_dir = self._results_dir(variables)
        folder = os.path.join(results_dir, run_id)
        asked = _asked(self.decided_plan(folder, name))
        if asked is None or self._task.check_mode:
            return {**result, "changed": False, "state": "played", "cuts": 0, "problem": ""}
        host = Host(self, variables, args["state_dir"], run_id, folder)
        try:
            played = self._play(host, asked, variables)
        finally:
            host.close()
        if played.problem and played.is_back:
            # Nobody cuts any more, so nothing is to be written any more either.
            host.stop()
        self.remove_temporary_folder()
        problem = printable.line(f"power cut: {played.problem}", 1000) if played.problem else ""
        found = {**result, "changed": played.cuts > 0, "state": "played", "cuts": played.cuts, "problem": problem}
        return {**found, "failed": True, "msg": f"{name}: {problem}"} if problem else found

    def _play(self, host: Host, asked: PlannedPowerCut, variables: Result) -> cut_cycles.Played:
        try:
            switch = self._switch(host, asked.mode, variables, asked)
            switch.prove()
        except switches.NotCut as error:
            return cut_cycles.Played(0, f"no power was cut: {error}")
        uniform = random.SystemRandom().uniform
        return cut_cycles.Cycles(host, switch, asked, host.tell, host.note, uniform).play()

    def _proved(self, host: Host, mode: str, variables: Result) -> Result:
        """Return that the power could be cut, or fail: nothing is erased for a test that can't be done."""
        try:
            self._switch(host, mode, variables).prove()
        except switches.NotCut as error:
            problem = printable.line(f"power cut: {error}; nothing was started on this host", 1000)
            told = {"cuts": 0, "problem": problem, "msg": f"{host.name}: {problem}"}
            return {"changed": False, "failed": True, "state": "proved", **told}
        finally:
            host.close()
            self.remove_temporary_folder()
        return {"changed": False, "state": "proved", "cuts": 0, "problem": ""}

    def _restored(self, variables: Result) -> Result:
        """Switch on what a play that was killed left off; in check mode, only tell it."""
        results_dir = self._results_dir(variables)
        marks = {name: left_off.Mark(results_dir, name) for name in variables["ansible_play_hosts_all"]}
        found = {name: left for name, mark in marks.items() for left in [mark.find()] if left}
        try:
            done = switch_on_again.all_of(
                {name: self._left_host(variables, name, left) for name, left in found.items()},
                float(self._value(variables, "ssd_host_timeout_s")),
                self._task.check_mode,
                lambda line: self._display.display(printable.line(line)),
            )
            for name in done.is_on:
                marks[name].clear()
        finally:
            for name in found:
                marks[name].release()
        problem = printable.line("; ".join(done.problems), 1000)
        return {"changed": bool(done.switched), "state": "restored", "cuts": 0, "problem": problem}

    def _left_host(self, variables: Result, name: str, left: left_off.LeftOff) -> switch_on_again.Host:
        own = variables["hostvars"][name]
        state_dir = str(self._value(own, "ssd_state_dir"))
        reach = CutReach(left.uuid, left.serials, None, [], [], 0, [], 0)
        connection = HostConnection(self, variables, name)
        command = remote_status.command(state_dir, left.run_id)
        return switch_on_again.Host(
            left,
            switches.BmcSwitch(access.of(own, self._templar.template), reach, 0.0),
            lambda: remote_status.parse(*connection.run(command)),
        )

    def _results_dir(self, variables: Result) -> str:
        return os.path.abspath(os.path.expanduser(str(self._value(variables, "ssd_results_dir"))))

    def _switch(
        self, host: Host, mode: str, variables: Result, asked: PlannedPowerCut | None = None
    ) -> switches.PowerSwitch:
        """Return what cuts the power in a mode; asked: None: it is only proved. Raises NotCut."""
        reach = host.reach()
        if mode == "warm":
            return switches.ResetSwitch(host.reset)
        if mode != "hard":
            raise switches.NotCut(f"power_cut.mode: {mode} is not available in this version")
        off_s = float(self._value(variables, "vendor_power_cycle_off_s"))
        mark = CutMark(host, left_off.Mark(self._results_dir(variables), host.name), asked, reach) if asked else None
        return switches.BmcSwitch(access.of(variables, self._templar.template), reach, off_s, mark)

    def _value(self, variables: Result, name: str) -> t.Any:
        return access.value(variables, self._templar.template, name)


class CutMark:
    """The mark of this task's host, which has to hold what it takes to switch it on again."""

    def __init__(self, host: Host, mark: left_off.Mark, asked: PlannedPowerCut, reach: CutReach) -> None:
        self._host, self._mark, self._back_s, self._reach = host, mark, asked.back_s, reach

    def set(self) -> None:
        """Make it. Raises OSError."""
        host, reach = self._host, self._reach
        self._mark.set(left_off.LeftOff(host.run_id, now(), self._back_s, reach.uuid, list(reach.serials)))

    def clear(self) -> None:
        """Take it back."""
        self._mark.clear()


class Host:
    """The host of this task, over its own connection."""

    def __init__(
        self, action: ActionModule, variables: Result, state_dir: str, run_id: str = "", folder: str = ""
    ) -> None:
        self._action, self._variables, self._parent = action, variables, os.getppid()
        self.name, self.run_id = variables["inventory_hostname"], run_id
        self._arguments = {"state_dir": state_dir, "run_id": run_id}
        self._order = host_job.Order(self.name, run_id, folder, True, None)
        self._records = os.path.join(folder, FOLDER, f"{own_slug(self.name)}.jsonl")
        self._command = remote_status.command(state_dir, run_id)
        self._connection = HostConnection(action, variables, self.name)
        limit_s = float(action._value(variables, "ssd_host_timeout_s"))
        self._sweep = Sweep({self.name: self._ask_status}, lambda _seen: False, limit_s)

    def _ask_status(self) -> remote_status.HostStatus:
        return remote_status.parse(*self._connection.run(self._command))

    def look(self) -> remote_status.HostStatus | None:
        """Return how the run stands on it; None: it gave no answer in its time. Raises AnsibleError once nobody is left
        who asked for this: another play may have taken the run up.
        """
        if os.getppid() != self._parent:
            raise AnsibleError("ansible-playbook was killed: its power cuts end here")
        self._sweep.round()
        seen = self._sweep.hosts[self.name]
        if seen.silent_since is not None:
            # A round does not wait for a host that was silent before; this hears it.
            self._sweep.pause(HEAR_S)
        if seen.silent_since is not None or seen.answer is None:
            return None
        return t.cast(remote_status.HostStatus, seen.answer)

    def forget(self) -> None:
        """Give up connections to the boot before: a master of ssh would wait for it."""
        self._connection.reset()
        self._action._connection.reset()

    def reach(self) -> CutReach:
        """Return what a cut reaches, as the host tells it now. Raises NotCut, also where that is this very machine."""
        asked = {"tools": [], "fio_engines": [], "cut_reach_of": self._arguments["state_dir"]}
        answer = self._ask("host_info", asked)
        told = answer.get("host_info") or {}
        reach = told.get("cut_reach")
        if answer.get("failed") or answer.get("unreachable") or not reach:
            raise switches.NotCut(f"the host does not tell which machine it is: {answer.get('msg', 'no answer')}")
        with open(BOOT_ID, encoding="ascii") as source:
            if told.get("boot_id") in (None, source.read().strip()):
                raise switches.NotCut("it is the machine that this play runs on, or shares its kernel")
        return base.parse(CutReach, reach)

    def go_on(self) -> str:
        """Have the run's job started again; return "", or why that did not work."""

        def ask(**more: t.Any) -> Result:
            return self._ask("host_job", {**self._arguments, **more})

        answer = self._action.start_job(self._order, ask)
        if answer.get("failed") or answer.get("unreachable"):
            return printable.line(answer.get("msg", "no answer"), 500)
        return ""

    def stop(self) -> None:
        """End the run's job, as nobody cuts the power that it waits for."""
        answer = self._ask("host_job", {**self._arguments, "state": "stopped"})
        if answer.get("failed") or answer.get("unreachable"):
            self.tell(f"the host job could not be stopped: {answer.get('msg')}")

    def reset(self) -> None:
        """Have the kernel reset the machine, without a shutdown. Raises NotCut. No answer is no refusal: on a slow host
        the connection ends first, and whether it was reset shows by its next boot.
        """
        done = self._bounded(lambda: self._action.run_command(RESET))
        if done.get("failed") or done.get("rc") not in (None, 0, SSH_FAILED):
            said = done.get("stderr") or done.get("msg") or "no answer"
            raise switches.NotCut(f"sysrq-b was refused: {printable.line(said, 300)}")

    def tell(self, line: str) -> None:
        """Print a line about the host."""
        self._action._display.display(printable.line(f"{self.name}: {line}"))

    def note(self, record: Result) -> None:
        """Keep the record of a cut. What can't be kept is told, and stops nothing."""
        try:
            os.makedirs(os.path.dirname(self._records), exist_ok=True)
            append_line(self._records, json.dumps({"time": now(), "host": self.name, **record}))
        except OSError as error:
            self.tell(f"{self._records} cannot be written: {error.strerror}")

    def close(self) -> None:
        """End what is still asked."""
        self._sweep.close()

    def _ask(self, module: str, arguments: Result) -> Result:
        return self._bounded(lambda: self._action.ask(module, arguments, self._variables))

    def _bounded(self, ask: t.Callable[[], Result]) -> Result:
        """Return an answer; a host that dies meanwhile is unreachable: ssh would wait for it far longer."""
        late = threading.Timer(ASK_S, lambda: signal_all(children(os.getpid()), signal.SIGTERM))
        late.daemon = True
        late.start()
        try:
            return ask()
        except AnsibleConnectionFailure as error:
            return {"unreachable": True, "msg": str(error)}
        except AnsibleError as error:
            return {"failed": True, "msg": str(error)}
        finally:
            late.cancel()


def _asked(packed: str) -> PlannedPowerCut | None:
    """Return what the plan's drives ask for; None: no power is cut. All of them ask for the same, but for their
    claims.
    """
    try:
        plan = base.parse(Plan, json.loads(unpack(packed)))
    except ValueError as error:
        raise AnsibleActionFail(str(error)) from error
    return next((test.power_cut for drive in plan.drives for test in drive.tests if test.power_cut), None)
