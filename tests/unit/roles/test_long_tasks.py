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
ONE_HOST = {f"ssdlab.fleet.{name}" for name in ("examine", "run_info", "host_job", "collect")}
NIGHTLY = ("preflight/tasks/", "workload/tasks/", "ssd/tasks/find_run")


def tasks_of(found):
    """The tasks of a file, also those of plays and blocks."""
    for entry in found or []:
        yield entry
        for part in ("tasks", "pre_tasks", "block", "rescue", "always"):
            yield from tasks_of(entry.get(part))


def test_no_task_timeout_ends_what_works_for_the_whole_fleet():
    seen = {}
    for path in [*ROOT.glob("roles/*/tasks/*.yml"), *ROOT.glob("playbooks/*.yml")]:
        for task in tasks_of(yaml.safe_load(path.read_text(encoding="utf-8"))):
            if FOR_THE_FLEET & set(task):
                seen[f"{path.relative_to(ROOT)}: {task['name']}"] = task.get("timeout")
    limited = [task for task, timeout in seen.items() if timeout != 0 and task.partition(":")[0] not in SHORT]
    assert limited == [] and len(seen) >= len(FOR_THE_FLEET)


def test_what_asks_one_host_in_a_nightly_has_a_limit():
    limits = {}
    for path in ROOT.glob("roles/*/tasks/*.yml"):
        for task in tasks_of(yaml.safe_load(path.read_text(encoding="utf-8"))):
            if ONE_HOST & set(task) and any(part in str(path) for part in NIGHTLY):
                limits[f"{path.stem}: {task['name']}"] = task.get("timeout") or ""
    assert len(limits) >= len(ONE_HOST) and [task for task, limit in limits.items() if "timeout_s" not in limit] == []
