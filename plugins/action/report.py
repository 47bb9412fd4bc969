# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge a run and write its report, on the controller. Documented in plugins/modules/report.py."""

from __future__ import annotations

import contextlib
import functools
import os
import typing as t

from ansible import constants as C
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.utils.vars import load_extra_vars

from ..module_utils.core.files import now
from ..module_utils.run.folder import RUN_ID_PATTERN
from ..plugin_utils.common import core_internals
from ..plugin_utils.common.schema import plain
from ..plugin_utils.peers import fleet_verdicts
from ..plugin_utils.preflight import controller
from ..plugin_utils.report import rejudge, write_report
from ..plugin_utils.run_folder import results_log, run_record, unpack
from ..plugin_utils.store import earlier_runs
from ..plugin_utils.validation import printable
from ..plugin_utils.validation.host_action import refuse_injected_facts

ARGUMENTS = {
    "results_dir": {"type": "path", "required": True},
    "run_id": {"type": "str", "required": True},
    "baseline": {"type": "str", "default": ""},
    "nights": {"type": "int", "default": fleet_verdicts.EARLIER_RUNS},
    "drives": {"type": "list", "elements": "str", "default": []},
    "supplier_model": {"type": "str", "default": ""},
    "store_url": {"type": "str", "default": ""},
    "criteria": {"type": "raw"},
    "health_criteria": {"type": "dict", "default": {}},
    "tests_dirs": {"type": "list", "elements": "path", "default": []},
    "rejudge": {"type": "bool", "default": False},
}
# Whoever gives them to report.yml on its command line wants to judge by them.
GIVEN = ("ssd_criteria", "ssd_health_criteria")
MOST_NIGHTS = 1000


class ActionModule(ActionBase):
    """Thin: arguments in, plugin_utils.report.make, judgement out."""

    _requires_connection = False

    def run(self, tmp: t.Any = None, task_vars: t.Any = None) -> dict[str, t.Any]:
        super().run(tmp, task_vars)
        refuse_injected_facts()
        missing = controller.missing_packages()
        if missing:
            raise AnsibleActionFail("; ".join(missing))
        _result, arguments = self.validate_argument_spec(argument_spec=ARGUMENTS)
        # Like collect: relative to where ansible-playbook was started.
        results_dir = os.path.abspath(arguments["results_dir"])
        stored = functools.partial(earlier_runs.of_store, results_dir, arguments["store_url"])
        against = fleet_verdicts.Baseline(arguments["baseline"], arguments["nights"], stored)
        if against.baseline and not RUN_ID_PATTERN.fullmatch(against.baseline):
            raise AnsibleActionFail(f"baseline: {against.baseline!r} is not the id of a run (report_baseline)")
        if not 0 < against.nights <= MOST_NIGHTS:
            raise AnsibleActionFail(f"nights: {against.nights} is not between 1 and {MOST_NIGHTS} (report_nights)")
        try:
            if not self._task.check_mode:
                _sweep(results_dir, arguments["run_id"])
            self._hold_to(results_dir, arguments)
            past = functools.partial(earlier_runs.figures_of_drives, results_dir, arguments["store_url"])
            asked = write_report.ReportOptions(arguments["drives"], arguments["supplier_model"], past)
            made = write_report.make(
                results_dir, arguments["run_id"], write=not self._task.check_mode, against=against, asked=asked
            )
        except (write_report.ReportError, rejudge.RejudgeError) as error:
            raise AnsibleActionFail(str(error)) from error
        except OSError as error:
            raise AnsibleActionFail(
                f"the report of {arguments['run_id']} cannot be written: {error}; check ssd_results_dir and its disk"
            ) from error
        warnings = {"warnings": list(made.warnings)} if made.warnings else {}
        return {**write_report.outcome(made), "changed": made.changed, **warnings}

    def _hold_to(self, results_dir: str, given: dict[str, t.Any]) -> None:
        """Judge by the play's criteria in place of the run's, if that is asked for; else tell where they differ."""
        if given["criteria"] is None:
            return
        run = write_report.load_run(results_dir, given["run_id"])
        if run.get("criteria") is None:  # a single step, which is judged by nothing
            return
        asked = rejudge.wanted(plain(given["criteria"]), plain(given["tests_dirs"]), plain(given["health_criteria"]))
        lines = rejudge.differences(run, asked)
        if not lines:
            return
        is_asked = given["rejudge"] or any(name in load_extra_vars(self._loader) for name in GIVEN)
        if is_asked:
            title = f"{given['run_id']} is judged by other criteria than before; its run.json keeps those (rejudged):"
        else:
            title = (
                f"{given['run_id']} is judged by the criteria that it was started with. The inventory has others now; "
                "to judge by them, add -e ssd_rejudge=true:"
            )
        for line in [title, *lines]:
            core_internals.show(printable.line(line))
        if is_asked and not self._task.check_mode:
            folder = os.path.join(results_dir, given["run_id"])
            run_record.replace_run(folder, rejudge.judged_by(run, asked, now()))
            records = results_log.load(os.path.join(folder, run_record.RESULTS))
            for line in rejudge.kept_as_evidence(given["run_id"], records):
                core_internals.show(printable.line(line))


def _sweep(results_dir: str, run_id: str) -> None:
    """Take away what killed collects left, before what they had brought is read."""
    folder = os.path.join(results_dir, run_id)
    with contextlib.suppress(OSError):  # what can't be swept is in nobody's way
        unpack.sweep_all(
            os.path.join(folder, "raw"),
            write_report.hosts(results_dir, run_id),
            os.path.join(os.path.dirname(C.DEFAULT_LOCAL_TMP), unpack.LOCKS),
        )
