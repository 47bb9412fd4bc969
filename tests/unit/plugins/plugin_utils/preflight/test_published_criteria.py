# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of published criteria to copy: each is read as a site's would be, and can be met or missed."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common.schema import COLLECTION
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import criteria_files
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.render_plan import load_plan
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import criteria_checks
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.verdict import judged_criteria
from ansible_collections.ssdlab.fleet.tests.fixtures.plans import identity_of, plan_of

FILES = sorted((COLLECTION / "docs" / "criteria").glob("*.yml"))
SIZE = 3_840_000_000_000


def read(folder, text):
    """The criteria of a site that copied this file."""
    (folder / "criteria").mkdir()
    (folder / "criteria" / "copied.yml").write_text(text, encoding="utf-8")
    return criteria_files.merged({"ssd_tests_dirs": [str(folder)]})


def told(wanted):
    """What preflight finds wrong with criteria, in a plan of the shipped tests that they name."""
    shipped = {path.stem for path in (COLLECTION / "roles" / "workload" / "files" / "tests").glob("*.yml")}
    tests = load_plan(sorted({item["test"] for item in wanted} & shipped) or ["iops"])
    plan = plan_of(tests, identity_of(SIZE, model="M"))
    names = [test.name for test in tests]
    found = [problem for item in wanted for problem in judged_criteria.criterion_problems(item)]
    found += [finding.text() for finding in criteria_checks.findings(wanted, [], {"h1": names}, {"h1": plan})]
    (drive,) = plan.drives
    return found, criteria_checks.applying(wanted, drive)


def test_there_are_files():
    assert {file.stem for file in FILES} >= {"autoval", "fiosynth", "hyperscale"}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_criterion_names_a_shipped_test_and_a_figure_that_it_reports(file, tmp_path):
    wanted = read(tmp_path, file.read_text(encoding="utf-8"))
    found, applied = told(wanted)
    assert found == [] and len(applied) == len(wanted) > 0
    assert len({(item["model"], item["test"], item["metric"]) for item in wanted}) == len(wanted)


@pytest.mark.parametrize(
    ("right", "wrong", "why"),
    [
        ("test: hyperscale-l2r6", "test: hyperscale-l2r7", "no plan has a test named 'hyperscale-l2r7'"),
        ("metric: read_p99_latency_us", "metric: read_p98_latency_us", "'read_p98_latency_us' is not a metric"),
        ("metric: read_p99_latency_us", "metric: sync_p99_latency_us", "does not report sync_p99_latency_us"),
        ("max: 2000}", "max: 2000000000}", "beyond what the histogram resolves"),
    ],
)
def test_a_slip_in_a_file_is_seen(right, wrong, why, tmp_path):
    text = (COLLECTION / "docs" / "criteria" / "hyperscale.yml").read_text(encoding="utf-8")
    found, _applied = told(read(tmp_path, text.replace(right, wrong)))
    assert right in text and any(why in line for line in found)
