# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides over the whole fleet before anything is spent: gathers what the hosts answered, and leaves the rules to
`findings`.
"""

from __future__ import annotations

import dataclasses
import datetime
import os
import typing as t

from ansible import constants as C
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase
from ansible.utils.vars import load_extra_vars

from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.answers import ExamineAnswer, Failures
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.base import Json
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.host_snapshot import BiosSettings
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import core_internals
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common.argument_specs import Variables
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common.schema import plain
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common.task_results import NOT_PRINTED
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import (
    approval,
    controller,
    decision,
    duplicates,
    examine_result,
    refused_drives,
    remeasurement_checks,
    spelling,
)
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight.findings import (
    BIOS_SETTINGS,
    UNSET,
    HostAnswer,
    shared_value,
)
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight.variable_rules import MISPLACED
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import chat_message
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import decision_record, last_word, run_record
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store import database, quarantine
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.validation import host_action, printable

ARGUMENTS = {
    "seen": {"type": "dict", "required": True},
    "store": {"type": "dict"},
    "hosts_left_out": {"type": "dict", "default": {}},
    "drives_left_out": {"type": "dict", "default": {}},
    "approved_plan": {"type": "raw"},
}


# What roles hand on. An extra variable of the same name would stand for it in every task, whatever was decided.
RESULTS = (
    "ssd_decision",
    "ssd_seen",
    "ssd_job",
    "ssd_watched",
    "ssd_collected",
    "ssd_put_back",
    "ssd_again",
)

# What decides whether, and where, the word of a play is kept.
_OF_WORD = ("ssd_run_name", "ssd_mode", "ssd_step", "ssd_results_dir")

# The results of the module examine, by host, as tasks registered them.
Seen = t.Mapping[str, Json]
# The option store: {url, results_dir}; None: the run has none.
StoreGiven = Json | None


class ActionModule(ActionBase):
    """See the module of the same name."""

    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        _unused, heard = self.validate_argument_spec(ARGUMENTS)
        now = datetime.datetime.now(datetime.timezone.utc)
        findings = controller.missing_packages()
        findings += controller.callback_findings(
            C.config.get_config_value("CALLBACKS_ENABLED"), core_internals.config_file()
        )
        findings += _given_results(load_extra_vars(self._loader))
        injected = host_action.injected_facts_problem(
            C.config.get_config_value("INJECT_FACTS_AS_VARS"), core_internals.config_file()
        )
        findings += [injected] if injected else []
        in_awx = "awx_job_id" in load_extra_vars(self._loader)
        approved, unusable = _approved(heard["approved_plan"])
        findings += unusable
        if not findings:
            unread = _unread(task_vars or {}, heard["seen"])
            views = [
                _view(name, answer or {})._replace(unread=unread.get(name, ()))
                for name, answer in heard["seen"].items()
            ]
            marks = _marks(heard["store"], views)
            others = _others(task_vars or {}, heard["seen"], load_extra_vars(self._loader))
            decided = decision.decide(
                decision.Request(
                    views,
                    self._task.check_mode,
                    now,
                    marks,
                    others,
                    heard["hosts_left_out"],
                    approved,
                    refused_drives.Without(_places(heard["drives_left_out"])),
                    boolean(self._templar.template((task_vars or {}).get("ssd_slice") or False), strict=False),
                )
            )
            findings = decided.findings + _fleet_drives(task_vars or {}) + _store(heard["store"])
            if decided.shows_plan:
                self._show(decided.plan_text)
            self._show(_left_out(decided))
            self._show(_warned(decided.warnings))
        if not findings and decided.destructive:
            try:
                run_record.write_run(decided.run_folder, base.to_json(decided.record), is_decision=True)
                decision_record.write(decided.run_folder, decided.plans, decided.mode)
            except OSError as error:
                findings = [
                    (
                        f"ssd_results_dir: {decided.run_folder}/run.json or decision.json cannot be written: "
                        f"{error.strerror}"
                    )
                ]
        if not findings and decided.destructive:
            self._show(decided.takes)
            findings = list(decided.nobody_left)
        if not findings and decided.to_approve and not self._task.check_mode:
            try:
                path = "" if in_awx else approval.write(decided.to_approve, decided.results_dir)
                self._show(approval.command_text(decided.to_approve, path))
            except OSError as error:
                findings = [f"ssd_results_dir: {error.filename} cannot be written: {error.strerror}"]
        if findings:
            head = _head(findings)
            self._show([head, *(f"- {line}" for line in findings)])
            # Of a host's answer only its own variables count here: what else it says may be nonsense.
            views = [_view(name, answer or {}) for name, answer in heard["seen"].items()]
            short = chat_message.of_findings(str(shared_value(views, "ssd_run_name") or ""), findings)
            self._keep_word(views, last_word.Word(now.timestamp(), "", short.rstrip("\n")))
            return {**result, "failed": True, "msg": head, "message": short, "findings": findings}
        run_id, text = ("", f"Skipped: {decided.skipped}") if decided.skipped else (decided.run.id, decided.attached)
        self._keep_word(views, last_word.Word(now.timestamp(), run_id, text))
        return {**result, "changed": False, "decision": decided.fact(), NOT_PRINTED: {"plan_text": decided.plan_text}}

    def _keep_word(self, views: t.Sequence[HostAnswer], word: last_word.Word) -> None:
        """Keep what became of a qualification for the message that another play sends (notify.yml)."""
        name, mode, step, results_dir = (str(shared_value(views, key) or "") for key in _OF_WORD)
        # Drives that are measured again belong to the run that was kept already.
        is_night = mode not in ("", "plan") and step == "qualify" and not remeasurement_checks.remeasured_run(views)
        if self._task.check_mode or not is_night:
            return
        try:
            last_word.write(os.path.abspath(os.path.expanduser(results_dir)), name, word)
        except OSError as error:
            self._display.warning(f"notify.yml will not know what became of this play: {error}")

    def _show(self, lines: t.Sequence[str]) -> None:
        for line in lines:
            core_internals.show(printable.line(line))


def _places(left_out: t.Mapping[str, t.Mapping[str, str]]) -> dict[tuple[str, str], str]:
    return {(host, drive): why for host, drives in left_out.items() for drive, why in drives.items()}


def _store(given: StoreGiven) -> list[str]:
    """Return why the results could not be put into the store; better told before hours are spent."""
    url, results_dir = (str((given or {}).get(name, "")) for name in ("url", "results_dir"))
    problem = database.store_problem(url, os.path.abspath(os.path.expanduser(results_dir))) if given else ""
    return [problem] if problem else []


def _marks(given: StoreGiven, views: t.Sequence[HostAnswer]) -> list[quarantine.Quarantined]:
    """Return the drives in quarantine; none with ssd_quarantine_after: 0."""
    if not given or not shared_value(views, "ssd_quarantine_after"):
        return []
    results_dir = os.path.abspath(os.path.expanduser(str(given.get("results_dir", ""))))
    return quarantine.standing(str(given.get("url", "")), results_dir)


def _others(variables: Variables, seen: t.Collection[str], extra: Variables) -> duplicates.Entries:
    """ssd_drives of the inventory's hosts that are not in this play (--limit), as they stand there: nothing of it is
    evaluated. What -e gives is no host's own.
    """
    hosts = [] if "ssd_drives" in extra else variables.get("groups", {}).get("all", ())
    hostvars = variables.get("hostvars")
    return {host: hostvars.raw_get(host).get("ssd_drives") for host in hosts if hostvars and host not in seen}


def _unread(variables: Variables, seen: t.Collection[str]) -> dict[str, list[spelling.Unknown]]:
    """Variables of the play's hosts that nothing reads. Nothing of them is evaluated."""
    hostvars = variables.get("hostvars")
    hosts = {host: hostvars.raw_get(host) for host in seen} if hostvars else {}
    return spelling.unknown(hosts, variables, _plugin_settings(hostvars))


def _plugin_settings(hostvars: t.Any) -> list[t.Any]:
    """Return the settings of the inventory's plugins, such as ansible.builtin.constructed."""
    found = core_internals.inventory_files(hostvars)
    return [each for each in found if isinstance(each, dict) and "plugin" in each]


def _approved(given: t.Any) -> tuple[approval.ApprovedPlan | None, list[str]]:
    """Return the plan of ssd_approved_plan, and why it can't be used."""
    try:
        return approval.load(plain(given)), []
    except ValueError as error:
        return None, [f"ssd_approved_plan: {error}"]


def _fleet_drives(variables: Variables) -> list[str]:
    """ssd_drives of the group all. AWX keeps inventory variables that a source no longer has (docs/awx.md), and drives
    that all hosts would share are no host's own.
    """
    given = core_internals.variables_of_all(variables.get("hostvars")).get("ssd_drives")
    advice = (
        "name each drive at its host, or as a template at a group of servers, such as ssd_servers; in AWX, delete it "
        "from the inventory's variables, which no sync does"
    )
    return [f"ssd_drives: is set for all hosts (group all), not for the host that has them; {advice}"] if given else []


def _given_results(extra: Variables) -> list[str]:
    """Results of the roles among the extra variables."""
    advice = "remove it from -e, and use ssd_mode, ssd_run_id and ssd_run_name"
    return [
        f"{name}: is set by preflight and the roles and cannot be passed in; {advice}"
        for name in RESULTS
        if name in extra
    ]


def _head(findings: t.Sequence[str]) -> str:
    count = f"{len(findings)} thing{'s' * (len(findings) != 1)}"
    return f"Preflight found {count} to fix. Nothing was erased or changed."


def _left_out(decided: decision.Decision) -> list[str]:
    """Return what the run does without; it is shown in every mode."""
    count = sum(len(drives) for drives in decided.left_out.values())
    are = f"1 drive {'would be' if decided.shows_plan else 'is'}" if count == 1 else None
    are = are or f"{count} drives {'would be' if decided.shows_plan else 'are'}"
    how = "ssd_refused=stop for all or nothing (docs/awx.md); each code, and what to do: docs/invalid.md"
    title = f"{are} left out, and not measured; {how}"
    return [title, *(f"- {line}" for line in decided.leaves)] if decided.leaves else []


def _warned(warnings: t.Sequence[str]) -> list[str]:
    """Return the warnings for people; they are shown in every mode."""
    count = f"{len(warnings)} warning{'s' * (len(warnings) != 1)}"
    title = f"{count}, also shown in the report (docs/checks.md; preflight_levels says which leave drives out):"
    return [title, *(f"- {line}" for line in warnings)] if warnings else []


def _view(name: str, heard: Json) -> HostAnswer:
    """One host's variables and answer. `heard`: the result of the module examine."""
    answer = examine_result.unpacked(plain(heard))
    failures = dict(answer.get("failures") or {})
    nothing = ExamineAnswer(changed=False, failures=Failures())
    try:
        examined = base.parse(ExamineAnswer, {**base.to_json(nothing), **answer})
    except base.WrongShape as error:  # that host's own fault, and nobody else's
        examined, failures["examine"] = nothing, f"its answer cannot be read: {error}"
    snapshot = examined.snapshot
    if snapshot:
        # The controller read them; a host's own claim does not count.
        told = answer.get(BIOS_SETTINGS)
        snapshot = dataclasses.replace(snapshot, bios_settings=base.parse(BiosSettings, told) if told else None)
    unreachable = str(answer.get("msg") or "no connection") if answer.get("unreachable") else ""
    if not unreachable and answer.get("failed"):
        failures["examine"] = str(answer.get("msg") or answer.get("module_stderr") or "no message")
    own = answer if "asked" in answer else {**(answer.get(NOT_PRINTED) or {}), **answer}
    asked, names = own.get("asked"), own.get("names") or []
    if asked is not None:
        asked = {key: value for key, value in asked.items() if value != UNSET}
    similar = [key for key in names if key.startswith("ssd_d") and key != "ssd_drives"]
    misplaced = [key for key in names if key in MISPLACED]
    return HostAnswer.of(
        name,
        asked,
        runs=examined.runs,
        facts=examined.host_info,
        drives=examined.drives,
        unreachable=unreachable,
        failures=failures,
        similar=similar,
        misplaced=misplaced,
        checks=examined.findings,
        snapshot=snapshot,
        wear=examined.wear,
        service_not_found=examined.service_not_found or (),
    )
