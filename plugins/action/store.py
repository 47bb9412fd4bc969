# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fill the store and export from it, on the controller. Documented in plugins/modules/store.py."""

from __future__ import annotations

import os
import typing as t

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ..module_utils.run.folder import RUN_ID_PATTERN
from ..plugin_utils.store import database, exports, importer, quarantine, restore_folders, store_requirements
from ..plugin_utils.validation.host_action import refuse_injected_facts

ARGUMENTS = {
    "results_dir": {"type": "path", "required": True},
    "run_id": {"type": "str", "default": ""},
    "url": {"type": "str", "default": ""},
    "raw": {"type": "bool", "default": False},
    "fetch": {"type": "bool", "default": False},
    "run_name": {"type": "str", "default": ""},
    "quarantine_after": {"type": "int", "default": 0},
    "release": {"type": "str"},
    "exports": {"type": "list", "elements": "str", "choices": list(exports.FORMATS), "default": []},
    "export_dir": {"type": "str", "default": ""},
}
KEPT = "nothing is lost: the results are in {0}. Once the store is back, run playbooks/import.yml"
# A job of AWX loses its disk, and with it the folder.
KEPT_ON_HOSTS = KEPT + ". If that folder is gone with its job, collect again: the hosts still have them"
NOT_LOADED = "nothing was loaded or started; run it again once the store is back"


class ActionModule(ActionBase):
    """Thin: arguments in, plugin_utils.store.importer and exports, what changed out."""

    _requires_connection = False

    def run(self, tmp: t.Any = None, task_vars: t.Any = None) -> dict[str, t.Any]:
        super().run(tmp, task_vars)
        refuse_injected_facts()
        _result, given = self.validate_argument_spec(argument_spec=ARGUMENTS)
        # Like report: relative to where ansible-playbook was started.
        results_dir, run_id = os.path.abspath(given["results_dir"]), given["run_id"]
        if run_id and not RUN_ID_PATTERN.fullmatch(run_id):
            raise AnsibleActionFail(f"run_id {run_id!r} is not a run id")
        if given["fetch"] and (given["exports"] or not (run_id or given["run_name"])):
            raise AnsibleActionFail("fetch: needs run_id or run_name, and cannot be combined with exports")
        if given["exports"] and not run_id:
            raise AnsibleActionFail("exports: also needs run_id")
        if given["quarantine_after"] and not run_id:
            raise AnsibleActionFail("quarantine_after: also needs run_id")
        try:
            url = database.resolve(given["url"], results_dir)
            lacks = store_requirements.missing(url, tables=bool(given["exports"])) if url else []
            if lacks:
                raise store_requirements.StoreError(lacks[0])
            if not url or self._task.check_mode:
                return {"changed": False, "store": database.name(url) if url else "", "runs": [], "exported": []}
            if given["release"] is not None:
                return _released(url, given["release"])
            return _fetched(url, results_dir, given) if given["fetch"] else self._filled(url, results_dir, given)
        except (store_requirements.StoreError, OSError) as error:
            advice = NOT_LOADED if given["fetch"] else KEPT_ON_HOSTS if given["raw"] else KEPT
            raise AnsibleActionFail(f"{error}; {advice.format(results_dir)}") from error

    def _filled(self, url: str, results_dir: str, given: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
        run_id, marked = given["run_id"], []
        with database.opened(url, make=True) as store:
            if run_id:
                done = [importer.import_run(store, os.path.join(results_dir, run_id), given["raw"])]
                marked = quarantine.mark_drives(store, run_id, given["quarantine_after"])
            else:
                done = importer.import_all(store, results_dir, given["raw"])
        folder = (
            os.path.abspath(given["export_dir"]) if given["export_dir"] else os.path.join(results_dir, run_id, "export")
        )
        written = exports.write(url, run_id, folder, given["exports"]) if given["exports"] else []
        result = {
            "changed": any(one.changed for one in done) or bool(written or marked),
            "store": database.name(url),
            "exported": written,
            "runs": [{"run_id": one.run_id, "changed": one.changed, "hosts": one.hosts} for one in done],
            "quarantined": [one._asdict() for one in marked],
        }
        problems = [problem for one in done for problem in one.problems]
        return {**result, "warnings": problems} if problems else result


def _fetched(url: str, results_dir: str, given: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Folders of runs from the store. Making a store that is not there yet spares its first run an error."""
    with database.opened(url, make=True) as store:
        done = restore_folders.fetch(store, results_dir, given["run_id"], given["run_name"], given["raw"])
    return {
        "changed": any(one.changed for one in done),
        "store": database.name(url),
        "exported": [],
        "runs": [one._asdict() for one in done],
    }


def _released(url: str, drive: str) -> dict[str, t.Any]:
    """Let a drive be measured again; without one, say which are in quarantine."""
    with database.opened(url, make=True) as store:
        found = quarantine.release(store, drive) if drive else []
    left = [one._asdict() for one in quarantine.standing(url, "")]
    if drive and not found:
        known = ", ".join(sorted({one["drive"] for one in left})) or "none"
        raise AnsibleActionFail(
            f"release: {drive!r} is not in quarantine in {database.name(url)}; in quarantine: {known}"
        )
    return {
        "changed": bool(found),
        "store": database.name(url),
        "exported": [],
        "runs": [],
        "released": [one._asdict() for one in found],
        "quarantined": left,
    }
