# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Take results from elsewhere into a run, on the controller. Documented in plugins/modules/ingest.py."""

from __future__ import annotations

import os
import typing as t

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ..module_utils.records import base
from ..module_utils.records.identity import Identity
from ..module_utils.run.folder import RUN_ID_PATTERN
from ..plugin_utils.common.schema import plain
from ..plugin_utils.ingest import run_writer
from ..plugin_utils.ingest.drive_journal import StatedDrive
from ..plugin_utils.ingest.measured_run import IngestError
from ..plugin_utils.plan import criteria_files
from ..plugin_utils.plan.testfiles import PlanError
from ..plugin_utils.preflight import controller
from ..plugin_utils.validation import sanitizer

DRIVE = {
    "serial": {"type": "str", "required": True},
    "model": {"type": "str", "required": True},
    "firmware": {"type": "str"},
    "wwn": {"type": "str"},
    "transport": {"type": "str"},
    "size_bytes": {"type": "int", "required": True},
    "logical_block_size_bytes": {"type": "int", "default": 512, "choices": [512, 4096]},
    "minimum_io_size_bytes": {"type": "int"},
}
ARGUMENTS = {
    "results_dir": {"type": "path", "required": True},
    "run_id": {"type": "str", "required": True},
    "run_name": {"type": "str", "default": "elsewhere"},
    "host": {"type": "str", "required": True},
    "system": {"type": "str", "required": True},
    "drive": {"type": "dict", "required": True, "options": DRIVE},
    "files": {"type": "list", "elements": "path", "required": True},
    "plan": {"type": "raw"},
    "platform": {"type": "str", "choices": ["windows", "solaris", "iometer"]},
    "queue_depth": {"type": "int", "default": 32},
    "test": {"type": "str", "default": "elsewhere"},
    "tests_dirs": {"type": "list", "elements": "path", "default": []},
    "criteria": {"type": "list", "elements": "dict", "default": []},
}


class ActionModule(ActionBase):
    """Thin: arguments in, plugin_utils.ingest.run_writer, what was taken out."""

    _requires_connection = False

    def run(self, tmp: t.Any = None, task_vars: t.Any = None) -> dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        missing = controller.missing_packages()
        if missing:
            raise AnsibleActionFail("; ".join(missing))
        _unused, given = self.validate_argument_spec(argument_spec=ARGUMENTS)
        given = plain(given)
        _check(given)
        try:
            criteria = {"ssd_criteria": given["criteria"], "ssd_tests_dirs": given["tests_dirs"]}
            asked = _request(given, criteria_files.merged(criteria))
            done = run_writer.ingest(asked, write=not self._task.check_mode)
        except (IngestError, PlanError, ValueError) as error:
            raise AnsibleActionFail(str(error)) from error
        except OSError as error:
            raise AnsibleActionFail(f"results_dir: {error.filename} cannot be written: {error.strerror}") from error
        told = {"run_dir": done.folder, "drive": asked.drive.label, "tests": dict(done.tests), "began": done.began}
        warnings = {"warnings": list(done.warnings)} if done.warnings else {}
        return {**result, "changed": done.changed, **told, **warnings}


def _check(given: t.Mapping[str, t.Any]) -> None:
    """Raises AnsibleActionFail for what no record can hold."""
    if not RUN_ID_PATTERN.fullmatch(given["run_id"]):
        raise AnsibleActionFail(f"run_id: {given['run_id']!r} is not a run id; use letters, digits, . _ and -")
    if given["host"] in ("", ".", "..") or "/" in given["host"]:
        raise AnsibleActionFail(f"host: {given['host']!r} is not the name of a machine")
    if given["plan"] and not given["platform"]:
        raise AnsibleActionFail("platform: say what the plan was rendered for (ingest_platform), as for render.yml")
    kinds = {"host": base.HostName, "run_name": base.Text, "system": base.Text, "test": base.TestName}
    for name, kind in kinds.items():
        _fits(name, kind, given[name])
    _fits("drive", Identity, given["drive"])
    _fits("drive.serial", base.Label, given["drive"]["serial"])
    if min(given["drive"]["size_bytes"], given["queue_depth"]) < 1:
        raise AnsibleActionFail("drive.size_bytes and queue_depth: must be above 0; give those of the drive")


def _fits(name: str, kind: t.Any, value: t.Any) -> None:
    try:
        sanitizer.shape_of_record(kind).passed(value)
    except sanitizer.Unfit as refused:
        raise AnsibleActionFail(f"{name}: {refused}") from refused


def _request(given: t.Mapping[str, t.Any], criteria: t.Any) -> run_writer.Request:
    identity = {key: value for key, value in given["drive"].items() if value is not None}
    rendered = (
        run_writer.Rendered(given["plan"], given["tests_dirs"], given["platform"], given["queue_depth"])
        if given["plan"]
        else None
    )
    return run_writer.Request(
        # Like report: relative to where ansible-playbook was started.
        results_dir=os.path.abspath(given["results_dir"]),
        run_id=given["run_id"],
        run_name=given["run_name"],
        drive=StatedDrive(given["host"], identity["serial"], given["system"], identity),
        files=given["files"],
        rendered=rendered,
        test=given["test"],
        criteria=criteria,
    )
