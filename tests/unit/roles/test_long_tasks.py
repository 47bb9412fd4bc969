# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What works for the whole fleet takes longer the larger the fleet is: no task_timeout of a site's may end it. What
asks one host ends when that hangs.
"""

from __future__ import annotations

from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[3]
FOR_THE_FLEET = {f"ssdlab.fleet.{name}" for name in ("preflight", "watch", "retest", "report", "store")}
# Marks one drive.
SHORT = {"playbooks/release.yml"}
ASKS_HOST = {
    f"ssdlab.fleet.{path.stem}" for path in ROOT.glob("plugins/action/*.py") if "HostAction" in path.read_text()
}
ASKS_HOST |= {"ansible.builtin.reboot", "ansible.builtin.wait_for_connection"}
# It waits for a host as often and as long as the plan says, and each of its questions has a limit.
ASKS_HOST -= {"ssdlab.fleet.power_cut"}


def tasks_of(found, inherited=None):
    """The tasks of a file, also those of plays and blocks; what has no timeout of its own has that around it."""
    for entry in found or []:
        timeout = entry.get("timeout", inherited)
        yield entry if timeout is None else {**entry, "timeout": timeout}
        for part in ("tasks", "pre_tasks", "block", "rescue", "always"):
            yield from tasks_of(entry.get(part), timeout)


def imported_limits():
    """{file of a role: the timeout of the task that imports it}: only an import hands it on."""
    found = {}
    for path in ROOT.glob("roles/*/tasks/*.yml"):
        for task in tasks_of(yaml.safe_load(path.read_text(encoding="utf-8"))):
            if "ansible.builtin.import_tasks" in task and "timeout" in task:
                found[path.parent / task["ansible.builtin.import_tasks"]] = task["timeout"]
    return found


def test_no_task_timeout_ends_what_works_for_the_whole_fleet():
    seen = {}
    for path in [*ROOT.glob("roles/*/tasks/*.yml"), *ROOT.glob("playbooks/*.yml")]:
        for task in tasks_of(yaml.safe_load(path.read_text(encoding="utf-8"))):
            if FOR_THE_FLEET & set(task):
                seen[f"{path.relative_to(ROOT)}: {task['name']}"] = task.get("timeout")
    limited = [task for task, timeout in seen.items() if timeout != 0 and task.partition(":")[0] not in SHORT]
    assert limited == [] and len(seen) >= len(FOR_THE_FLEET)


def test_what_asks_a_host_has_a_limit():
    limits, seen = {}, set()
    imported = imported_limits()
    for path in [*ROOT.glob("roles/*/tasks/*.yml"), *ROOT.glob("playbooks/*.yml")]:
        for task in tasks_of(yaml.safe_load(path.read_text(encoding="utf-8")), imported.get(path)):
            if ASKS_HOST & set(task):
                seen |= ASKS_HOST & set(task)
                limits[f"{path.relative_to(ROOT)}: {task['name']}"] = task.get("timeout") or ""
    assert {"ssdlab.fleet.drive_facts", "ssdlab.fleet.tunables", "ansible.builtin.reboot"} <= seen
    assert [task for task, limit in limits.items() if "timeout_s" not in limit] == []
