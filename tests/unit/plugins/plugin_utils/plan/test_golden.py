# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every job of every shipped plan is pinned (golden/<plan>.txt) and accepted by fio. What the sources print:
test_printed.py.

After a change that is meant: SSDLAB_FLEET_WRITE_GOLDEN=1 python -m pytest <this file>, and read the difference.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import fio, fio_sanity
from ansible_collections.ssdlab.fleet.tests.fixtures.suites import (
    PLACEHOLDERS,
    PLANS,
    jobs_of,
    rendered_tests,
    trials_of,
)

GOLDEN = Path(__file__).parent / "golden"


def text_of(plan):
    """All jobs of a plan, one a line; what they share once."""
    lines, shared = [], set()
    for test in rendered_tests(plan):
        limits = ", ".join(f"{key} {value}" for key, value in test["rounds"].items() if value)
        limits += f", cell_order {test['cell_order']}" if test.get("cell_order") else ""
        steady = test["steady_state"] and {
            key: value for key, value in test["steady_state"].items() if key != "tracked"
        }
        tracked = ", ".join(
            f"{item['cell']} {item['metric']}" for item in (test["steady_state"] or {}).get("tracked", [])
        )
        most = f", at most {test['active_range_max_bytes']} B" if test.get("active_range_max_bytes") else ""
        lines += ["", f"{test['name']}: purge {test['purge']['method']}; {test['active_range_pct']} %{most}; {limits}"]
        lines += (
            [f"  steady: {tracked}; {', '.join(f'{key} {value}' for key, value in steady.items())}"] if steady else []
        )
        for name, job in [*jobs_of(test).items(), *((name, job) for job, name in trials_of(test).items())]:
            sections = fio_sanity.sections(job)
            shared.add(words(sections.pop("global")))
            lines += [f"  [{name}] {words(options)}" for options in sections.values()]
    assert len(shared) == 1
    return "\n".join([*shared, *lines]) + "\n"


def words(options):
    return " ".join(f"{key}={value}" for key, value in options.items())


@pytest.mark.parametrize("plan", PLANS)
def test_no_job_of_a_plan_changes_unseen(plan):
    file = GOLDEN / f"{plan}.txt"
    if os.environ.get("SSDLAB_FLEET_WRITE_GOLDEN"):
        file.write_text(text_of(plan), encoding="utf-8")
    assert text_of(plan) == file.read_text(encoding="utf-8")


def test_no_golden_file_is_left_of_a_plan_that_is_gone():
    assert sorted(path.stem for path in GOLDEN.glob("*.txt")) == PLANS


@pytest.mark.skipif(not shutil.which("fio"), reason="needs fio")
@pytest.mark.parametrize("plan", PLANS)
def test_fio_accepts_every_job(plan, tmp_path):
    tests = rendered_tests(plan)
    jobs = list(dict.fromkeys(job for test in tests for job in [*jobs_of(test).values(), *trials_of(test)]))
    files = []
    for number, job in enumerate(jobs):
        files.append(tmp_path / f"{number}.fio")
        # As the host fills it, on a host without NUMA: a container may not be allowed to set a policy.
        files[-1].write_text(fio.fill(job, {**PLACEHOLDERS, "numa_node": None, "cpus_allowed": None}), encoding="utf-8")
    done = subprocess.run(
        ["fio", "--parse-only", *map(str, files)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
