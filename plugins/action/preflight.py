# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides over the whole fleet before anything is spent: gathers what the hosts answered, and leaves the rules to `findings`."""

from __future__ import annotations

import datetime
import typing as t

from ansible import constants as C
from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase
from ansible.release import __version__ as ansible_version

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common.schema import plain
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import controller, decision
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight.findings import View
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight.values import MISPLACED
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.results import run_record

# The registered results of the role preflight: (variable, module, key of its answer, field of View).
ANSWERS = (
    ("__preflight_info", "run_info", "runs", "runs"),
    ("__preflight_host", "host_info", "host_info", "facts"),
    ("__preflight_drives", "drive_facts", "drives", "drives"),
    ("__preflight_checks", "host_checks", "findings", "checks"),
    ("__preflight_checks", "host_checks", "snapshot", "snapshot"),
)


# What the role notes for a variable that nobody has set; the same as its __preflight_unset.
UNSET = "__preflight_unset"
# Before 2.19 a failure's message is only shown as JSON, on one line.
OLD_ERRORS = tuple(int(part) for part in ansible_version.split(".")[:2]) < (2, 19)


class ActionModule(ActionBase):
    """See the module of the same name."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        variables = task_vars or {}
        self.validate_argument_spec({})
        findings = controller.missing_packages()
        findings += controller.callback_findings(C.config.get_config_value("CALLBACKS_ENABLED"), C.config._config_file)
        if not findings:
            hostvars = variables["hostvars"]
            views = [_view(name, hostvars[name]) for name in variables["ansible_play_hosts_all"]]
            decided = decision.decide(views, self._task.check_mode, datetime.datetime.now(datetime.timezone.utc))
            findings = decided.findings
            if decided.shows_plan:
                self._show(decided.plan_text)
            self._show(_warned(decided.warnings))
        if not findings and decided.destructive:
            try:
                run_record.write_run(decided.run_folder, decided.record)
            except OSError as error:
                findings = [f"ssd_results_dir: {decided.run_folder}/run.json cannot be written: {error.strerror}"]
        if findings:
            self._show(_message(findings).splitlines() if OLD_ERRORS else [])
            return {**result, "failed": True, "msg": _message(findings)}
        return {**result, **decided.result()}

    def _show(self, lines: t.Sequence[str]) -> None:
        for line in lines:
            self._display.display(line)


def _message(findings: t.Sequence[str]) -> str:
    count = f"{len(findings)} thing{'s' * (len(findings) != 1)}"
    return "\n".join([f"Preflight found {count} to put right. Nothing was erased or changed.", *(f"- {line}" for line in findings)])


def _warned(warnings: t.Sequence[str]) -> list[str]:
    """The warnings for people; they are shown in every mode."""
    count = f"{len(warnings)} warning{'s' * (len(warnings) != 1)}"
    title = f"{count}, which the report will show (docs/checks.md; preflight_levels chooses what stops a run):"
    return [title, *(f"- {line}" for line in warnings)] if warnings else []


def _view(name: str, values: t.Mapping[str, t.Any]) -> View:
    """One host's variables and answers. `values`: its hostvars."""
    fields: dict[str, t.Any] = {"failures": {}}
    for variable, module, key, field in ANSWERS:
        answer = plain(_get(values, variable) or {})
        if answer.get("unreachable"):
            fields["unreachable"] = str(answer.get("msg") or "no connection")
        elif answer.get("failed"):
            fields["failures"][module] = str(answer.get("msg") or answer.get("module_stderr") or "no message")
        elif key in answer:
            fields[field] = answer[key]
    asked = plain(_get(values, "__preflight_asked"))
    if asked is not None:
        asked = {key: value for key, value in asked.items() if value != UNSET}
    similar = [key for key in values if key.startswith("ssd_d") and key != "ssd_drives"]
    misplaced = [key for key in values if key in MISPLACED]
    return View(name, asked=asked, similar=similar, misplaced=misplaced, **fields)


def _get(values: t.Mapping[str, t.Any], key: str) -> t.Any:
    """A variable, or None where it is missing or leads to one that is."""
    try:
        return values[key] if key in values else None
    except AnsibleError:
        return None
