# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The base of every action that asks a host: runs a module of ours and lets its answer through the gate."""

from __future__ import annotations

import contextlib
import os
import resource
import shlex
import signal
import typing as t

from ansible import constants as C
from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure, AnsibleError

from ..common import core_internals
from ..common.processes import children, signal_all
from . import module_answers, printable

INJECT_FACTS_VARIABLE = "ANSIBLE_INJECT_FACT_VARS"

COLLECTION = "ssdlab.fleet."
MOST_SAID = 20_000
DELEGATED = (
    "delegate_to: {delegate} would do on {delegate} what is meant for {host}, whose drives and settings these are; "
    "nothing was done. Remove delegate_to from the task, its apply, block or role; the play's hosts say where to act"
)
LOCAL = (
    "connection: local would do on the controller what is meant for {host}; nothing was done. Remove connection: local "
    "from the task, its apply, block, role or play; where {host} is the controller, its inventory says so "
    "(ansible_connection: local)"
)
# Where a task's own variables lead is another place than its host's, as far as anybody knows.
PLACES = ("ansible_host", "ansible_port", "ansible_ssh_host", "ansible_ssh_port")
ELSEWHERE = (
    "{names} among the vars of a task, its block or its include may lead to another host than {host}, whose drives and "
    "settings these are; nothing was done. Set it in the inventory of {host}, or in the vars of the play"
)
LATE = "it did not answer within {} s (ssd_task_timeout_s; collecting: ssd_collect_timeout_s)"
Result = dict[str, t.Any]


def injected_facts_problem(injected: bool, config_file: str | None) -> str:
    """Return what to set where facts outrank the inventory; "" where they do not. injected: ansible-core's
    INJECT_FACTS_AS_VARS.
    """
    if not injected:
        return ""
    place = config_file or os.path.join(os.getcwd(), "ansible.cfg")
    overruled = (
        f" (the environment variable {INJECT_FACTS_VARIABLE} overrules that file)"
        if INJECT_FACTS_VARIABLE in os.environ
        else ""
    )
    return (
        "facts of a host would outrank the inventory: any module's answer could name other drives, folders or "
        "addresses."
        f" In {place}{overruled} set:\n    [defaults]\n    inject_facts_as_vars = False"
    )


class HostAction(core_internals.ScreenedAction):
    """By itself it runs the module of its own name. No module of ours is asked but through `ask`."""

    # Whether the task may be delegated to another host: only what reads, and reads nothing that a run acts upon.
    MAY_BE_DELEGATED: t.ClassVar[bool] = False

    _asked = ""
    # {host: why it is asked nothing more}. What ended the task once, would not end it again. Of the class, as the items
    # of a loop are actions of one process.
    _lost: t.ClassVar[dict[str, str]] = {}

    def run(self, tmp: t.Any = None, task_vars: Result | None = None) -> Result:
        """Return the module's answer, as far as it passed."""
        result: Result = super().run(tmp, task_vars)
        refuse_injected_facts()
        result.update(self.ask(type(self).__module__.rpartition(".")[2], dict(self._task.args), task_vars or {}))
        self.remove_temporary_folder()
        return result

    def ask(self, module: str, arguments: Result, task_vars: Result) -> Result:
        """Run a module (named without ssdlab.fleet) on the host; what passed of its answer, `failed`
        where it does not. Raises AnsibleActionFail for a task that is led to another host and may not be.
        """
        if not self.MAY_BE_DELEGATED:
            self._refuse_other_hosts(task_vars)
        self._asked = module
        with self._answered(), _told_in_words():
            answer = self._execute_module(module_name=COLLECTION + module, module_args=arguments, task_vars=task_vars)
        result = module_answers.passed(module, answer)
        # The key is ours only where ansible-core looked for Python in this very task.
        if not self.has_looked_for_python():
            result.pop("ansible_facts", None)
        return result

    def before_command(self) -> None:
        if self._peer in self._lost:
            raise AnsibleConnectionFailure(self._lost[self._peer])

    def screened_answer(self, stdout: str) -> str:
        return module_answers.screened(self._asked, stdout)

    def screened_errors(self, stderr: str) -> str:
        return printable.line(stderr, MOST_SAID)

    def fetch(self, remote: str, local: str, most_bytes: int) -> None:
        """Bring a file of the host. `remote`: a path made on the controller. Raises AnsibleError, OSError: also for a
        larger file.
        """
        with self._answered(), _told_in_words(), files_up_to(most_bytes):
            self._connection.fetch_file(remote, local)

    def remove(self, path: str) -> None:
        """Take a file away on the host. `path`: made on the controller."""
        # A host that went away meanwhile has been told already; a file left there is replaced the next time.
        with contextlib.suppress(AnsibleError):
            self.run_command(f"rm -f -- {shlex.quote(path)}")

    @contextlib.contextmanager
    def _answered(self) -> t.Iterator[None]:
        """A host that does not answer before the task's timeout is unreachable. Raises AnsibleConnectionFailure."""
        try:
            yield
        except BaseException as error:
            if not core_internals.is_task_timeout(error):
                raise
            late = self._lost[self._peer] = LATE.format(self._task.timeout)
            # Its folder stays, as nobody answers who could take it away; ssh would wait for the host longer than we do.
            self.forget_temporary_folder()
            signal_all(children(os.getpid()), signal.SIGTERM)
            raise AnsibleConnectionFailure(late) from None

    def _refuse_other_hosts(self, task_vars: Result) -> None:
        """Fail where the task leads to another host than its own. Raises AnsibleActionFail."""
        host, delegate = task_vars.get("inventory_hostname", ""), self._task.delegate_to
        if is_delegated(host, delegate):
            raise AnsibleActionFail(DELEGATED.format(host=host, delegate=delegate))
        if self._is_diverted(host, task_vars):
            raise AnsibleActionFail(LOCAL.format(host=host))
        places = [name for name in PLACES if name in self._task.get_vars()]
        if places:
            raise AnsibleActionFail(ELSEWHERE.format(host=host, names=", ".join(places)))

    def _is_diverted(self, host: str, task_vars: Result) -> bool:
        """Return whether a keyword of the task or play, and not the host's inventory, has it done on the controller."""
        hostvars = task_vars.get("hostvars")
        if self._connection.transport != "local" or host in C.LOCALHOST or hostvars is None:
            return False
        return hostvars.raw_get(host).get("ansible_connection") is None

    @property
    def _peer(self) -> str:
        """The host that this task talks to."""
        return str(self._task.delegate_to or self._play_context.remote_addr)


def is_delegated(host: str, delegate: str | None) -> bool:
    """Return whether a task of this host works on another one. delegate: its delegate_to as a text without
    templates.
    """
    return bool(delegate) and delegate != host and not {host, delegate} <= set(C.LOCALHOST)


def refuse_injected_facts() -> None:
    """Fail where facts of any module would outrank the inventory. Raises AnsibleActionFail."""
    problem = injected_facts_problem(C.config.get_config_value("INJECT_FACTS_AS_VARS"), core_internals.config_file())
    if problem:
        raise AnsibleActionFail(problem)


@contextlib.contextmanager
def _told_in_words() -> t.Iterator[None]:
    """What ansible-core raises holds what the host printed: the same in printable words. Raises AnsibleError."""
    try:
        yield
    except AnsibleConnectionFailure as error:
        raise AnsibleConnectionFailure(printable.line(error)) from None
    except AnsibleError as error:
        raise AnsibleError(printable.line(error)) from None


@contextlib.contextmanager
def files_up_to(most_bytes: int) -> t.Iterator[None]:
    """No file of this process or of one that it starts (sftp) grows beyond a size: a host may send without end."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    most = most_bytes if hard == resource.RLIM_INFINITY else min(most_bytes, hard)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
