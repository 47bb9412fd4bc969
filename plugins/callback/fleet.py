# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: fleet
type: aggregate
short_description: Collect the results of a qualification run across hosts
version_added: 0.1.0
description:
  - Appends the records that M(ssdlab.fleet.collect) returns to the run's C(results.jsonl) on the controller, host by
    host as they arrive.
  - Records hosts that failed or were unreachable, so that the report counts their drives as not tested.
  - At the end, prints the fleet by model and firmware, outliers, low hosts and what changed since the last run, then
    the run's drives (if there are more than 20, only those that need attention), the run in one line, and the path of
    the report.
  - It prints nothing in a play that has no part in a qualification run.
author:
  - The ssdlab.fleet authors (@ssdlab)
requirements:
  - enable it in C(ansible.cfg), C([defaults] callbacks_enabled = ssdlab.fleet.fleet)
"""

import atexit
import functools
import gc
import json
import os
import typing as t

from ansible.plugins.callback import CallbackBase

from ansible_collections.ssdlab.fleet.plugins.module_utils.records.results import HostState
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common.task_results import NOT_PRINTED
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import remeasurement, results_log, run_record
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder.results_log import ResultsFile, host_record
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.validation import printable
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.watch import final_tables

COLLECT = "ssdlab.fleet.collect"
POWER_CUT = "ssdlab.fleet.power_cut"
# Whose results tell which run this is: actions that make them on the controller. Any other task's result may be a
# host's own words.
DECIDING = ("ssdlab.fleet.preflight", "ssdlab.fleet.find_run")
REPORT = "ssdlab.fleet.report"
WATCH = "ssdlab.fleet.watch"
# A worker that looked for garbage in what it shares with the main process, the whole fleet's variables, would write to
# all of it, and so copy it (docs/fleet-size.md).
os.register_at_fork(after_in_child=gc.freeze)
# Each search after 700 new objects, as is usual, took an eighth of all CPU time; here it is after so many.
gc.set_threshold(50_000, 20, 100)
MEANING = "what each reason means, and what to do: docs/invalid.md"
GOES_ON = (
    "The run {0} goes on on its hosts. To come back, start the same command again, or: "
    "ansible-playbook playbooks/watch.yml -i <inventory> -e ssd_run_id={0}"
)
HINT = "no report was written: ansible-playbook playbooks/report.yml -i <inventory> -e ssd_run_id={0}"


class TaskResult(t.NamedTuple):
    """One result of a task on a host, whatever version of ansible-core it comes from. `results`: the whole one, then
    those of a loop.
    """

    host: str
    action: str
    for_all: bool
    check: bool
    results: list[dict[str, t.Any]]


def _task_result(result: t.Any) -> TaskResult:
    # Public names since ansible-core 2.19, which deprecates the others.
    public = hasattr(type(result), "result")
    host, task, content = (getattr(result, name if public else "_" + name) for name in ("host", "task", "result"))
    looped = content.get("results")
    items = [content] + [item for item in (looped if isinstance(looped, list) else []) if isinstance(item, dict)]
    # ansible-core warns where an action that has a variable in its name is asked for what it resolves to.
    action = task.action if "." in task.action else task.resolved_action or task.action
    return TaskResult(host.get_name(), action, bool(task.run_once), bool(task.check_mode), items)


def _never_raises(method: t.Callable[..., None]) -> t.Callable[..., None]:
    """Ansible shows a callback's exception as a warning and may lose what else was to be done; ours is an error that
    says where.
    """

    @functools.wraps(method)
    def guarded(self: CallbackModule, *args: t.Any, **kwargs: t.Any) -> None:
        try:
            method(self, *args, **kwargs)
        except Exception as error:
            where = self._results_file.path or run_record.RESULTS
            self._display.error(
                f"ssdlab.fleet: results are not in {where}: {type(error).__name__}: {error}."
                " The hosts still have them: fix this, then run collect.yml"
            )

    return guarded


class CallbackModule(CallbackBase):
    """Right under any strategy: every result is taken for itself, in the main process."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "ssdlab.fleet.fleet"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self, *args: t.Any, **kwargs: t.Any) -> None:
        super().__init__(*args, **kwargs)
        self._results_file = ResultsFile()
        self._collected: set[str] = set()
        self._report = ""
        self._watches = False
        # Ctrl-C ends a play without a word to its callbacks.
        atexit.register(self._say_that_it_goes_on)

    def v2_playbook_on_task_start(self, task: t.Any, is_conditional: bool) -> None:
        self._watches = task.action == WATCH

    def _say_that_it_goes_on(self) -> None:
        if self._watches and self._results_file.folder:
            self._display.display(GOES_ON.format(os.path.basename(self._results_file.folder)))

    @_never_raises
    def v2_runner_on_ok(self, result: t.Any) -> None:
        outcome = _task_result(result)
        self._learn(outcome)
        if outcome.action == COLLECT and not outcome.check:
            self._collected.add(outcome.host)
            lists = [json.loads((item.get(NOT_PRINTED) or {}).get("records", "[]")) for item in outcome.results]
            self._results_file.add(record for records in lists for record in records)

    @_never_raises
    def v2_runner_on_failed(self, result: t.Any, ignore_errors: bool = False) -> None:
        outcome = _task_result(result)
        self._learn(outcome)
        # Whoever ignores that a host could not be collected still wants to know in the report.
        if not ignore_errors or outcome.action == COLLECT:
            self._lost(outcome, "failed")

    @_never_raises
    def v2_runner_on_unreachable(self, result: t.Any) -> None:
        # Also where it is ignored: a host that comes back is collected, which replaces this record.
        self._lost(_task_result(result), "unreachable")

    @_never_raises
    def v2_playbook_on_stats(self, stats: t.Any) -> None:
        self._watches = False
        try:
            self._results_file.flush()
        finally:
            if self._results_file.folder and (self._collected or self._report):
                self._show_table()

    def _learn(self, outcome: TaskResult) -> None:
        """Which run this is about, and whether its report was written."""
        for item in outcome.results:
            run = _run(outcome.action, item)
            if run.get("id") and run.get("results_dir"):
                self._results_file.open(run["results_dir"], run["id"])
                self._results_file.flush()
            if outcome.action == REPORT and item.get("report"):
                self._report = os.path.abspath(item["report"])
                run_folder = os.path.dirname(os.path.dirname(self._report))
                self._results_file.open(*os.path.split(run_folder))

    def _lost(self, outcome: TaskResult, state: HostState) -> None:
        """A host that fails before it was collected. Afterwards, or in a task for the whole fleet, it says nothing of
        its drives.
        """
        if outcome.check or outcome.host in self._collected or (outcome.for_all and state == "failed"):
            return
        # What its drives were doing then is known: it is no host of which nothing is.
        if outcome.action == POWER_CUT and any(item.get("state") == "played" for item in outcome.results):
            state = "lost_power"
        messages = [printable.line(item["msg"]) for item in outcome.results if item.get("msg")]
        self._results_file.add([host_record(outcome.host, state, f"{outcome.action}: {'; '.join(messages) or state}")])

    def _show_table(self) -> None:
        run = _read_json(os.path.join(self._results_file.folder, run_record.RUN)) or {}
        summary = _read_json(os.path.join(os.path.dirname(self._report), "summary.json")) if self._report else None
        run_id = os.path.basename(self._results_file.folder)
        self._display.banner(f"SSD QUALIFICATION {run_id}")
        records = remeasurement.merged(self._results_file.folder, results_log.load(self._results_file.path))
        for line in final_tables.lines(run, records, summary):
            self._display.display(printable.line(line))
        if summary and any(drive["verdict"] != "pass" for drive in summary["drives"]):
            self._display.display(MEANING)
        self._display.display(f"report: {self._report}" if self._report else HINT.format(run_id))


def _run(action: str, item: t.Mapping[str, t.Any]) -> t.Mapping[str, t.Any]:
    """Return the id and results_dir of the run that a result names; {} where it names none."""
    if action == COLLECT:
        return {"id": item.get("run_id"), "results_dir": item.get("results_dir")}
    run = (item.get("decision") or {}).get("run") if action in DECIDING else None
    return run or {}


def _read_json(path: str) -> dict[str, t.Any] | None:
    try:
        with open(path, encoding="utf-8") as source:
            return printable.writable(json.load(source))
    except (FileNotFoundError, ValueError):
        return None
