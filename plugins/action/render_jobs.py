# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the jobs of a plan for another platform, on the controller. Documented in plugins/modules/render_jobs.py."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ..module_utils.records.identity import Identity
from ..plugin_utils.plan import platforms
from ..plugin_utils.plan.testfiles import PlanError, load_plan

ARGUMENTS = {
    "plan": {"type": "raw", "required": True},
    "tests_dirs": {"type": "list", "elements": "path", "default": []},
    "platform": {"type": "str", "required": True, "choices": ["windows", "solaris", "iometer"]},
    "device": {"type": "str", "default": ""},
    "size_bytes": {"type": "int", "required": True},
    "logical_block_size_bytes": {"type": "int", "default": 512, "choices": [512, 4096]},
    "minimum_io_size_bytes": {"type": "int"},
    "queue_depth": {"type": "int", "default": 32},
    "dest": {"type": "path", "required": True},
}


class ActionModule(ActionBase):
    """Thin: arguments in, plugin_utils.plan.platforms, files out."""

    _requires_connection = False

    def run(self, tmp: t.Any = None, task_vars: t.Any = None) -> dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        _unused, given = self.validate_argument_spec(argument_spec=ARGUMENTS)
        sizes = Identity(**{key: given[key] for key in given if key.endswith("_bytes")})
        if min(given["size_bytes"], given["queue_depth"]) < 1:
            raise AnsibleActionFail("size_bytes and queue_depth: must be above 0; give those of the drive")
        try:
            tests = load_plan(given["plan"], given["tests_dirs"])
            files = platforms.files(tests, given["platform"], given["device"], sizes, given["queue_depth"])
        except PlanError as error:
            raise AnsibleActionFail(str(error)) from error
        dest = Path(given["dest"]).absolute()
        try:
            written = [name for name, text in files.items() if self._write(dest / name, text)]
        except OSError as error:
            raise AnsibleActionFail(f"dest: {error.filename} cannot be written: {error.strerror}") from error
        return dict(result, changed=bool(written), dest=str(dest), files=list(files))

    def _write(self, path: Path, text: str) -> bool:
        """Return whether the file was another one."""
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            return False
        if not self._task.check_mode:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return True
