# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = """
    name: task_count
    type: aggregate
    short_description: Count what each task costs hosts
    description:
        - Writes how many hosts each task was executed for, skipped ones included, to the file that the environment
          variable SSDLAB_FLEET_TASK_COUNT names.
        - Each is a process of its own for each host, which is what a play of many hosts spends its time with.
          C(cpu_s) is what went by, of all of them and of ansible-playbook itself, until the next task began.
    author: The ssdlab.fleet authors
"""

import json
import os
import resource
import typing as t

from ansible.plugins.callback import CallbackBase


class CallbackModule(CallbackBase):
    """Counts in the order of the tasks."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "task_count"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self, *args: t.Any, **kwargs: t.Any) -> None:
        super().__init__(*args, **kwargs)
        self._tasks: dict[str, dict[str, t.Any]] = {}
        self._current: dict[str, t.Any] = {"cpu_s": 0.0}
        self._used_s = _used_s()

    def v2_runner_on_start(self, host: t.Any, task: t.Any) -> None:
        about = {"task": task.get_name(), "action": task.action, "run_once": bool(task.run_once)}
        entry = self._tasks.setdefault(task._uuid, {**about, "hosts": [], "cpu_s": 0.0})
        entry["hosts"].append(host.get_name())
        if entry is not self._current:
            self._book()
            self._current = entry

    def _book(self) -> None:
        used_s = _used_s()
        self._current["cpu_s"] += used_s - self._used_s
        self._used_s = used_s

    def v2_playbook_on_stats(self, stats: t.Any) -> None:
        self._book()
        with open(os.environ["SSDLAB_FLEET_TASK_COUNT"], "w", encoding="utf-8") as out:
            json.dump(list(self._tasks.values()), out, indent=1)


def _used_s() -> float:
    """CPU seconds of this process and of its workers that have ended."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
