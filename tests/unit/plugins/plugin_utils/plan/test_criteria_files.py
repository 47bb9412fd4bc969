# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Criteria as files, and ssd_criteria on top of them."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import criteria_files
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.testfiles import PlanError
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.verdict import judged_criteria

FILE = """
model: MTFD*
source: datasheet rev. 4, table 3
criteria:
  - {test: iops, metric: write_iops, min: 22000}
  - {metric: write_p99_9_latency_us, max: 2000, source: table 5}
  - {metric: write_iops, min_of_median: 0.9}
"""


@pytest.fixture(name="site")
def fixture_site(tmp_path):
    (tmp_path / "criteria").mkdir()
    (tmp_path / "criteria" / "mtfd.yml").write_text(FILE)
    return tmp_path


def variables(site, own=()):
    return {"ssd_criteria": list(own), "ssd_tests_dirs": [str(site)]}


def test_each_criterion_of_a_file_has_its_model_and_its_source(site):
    found = criteria_files.merged(variables(site))
    assert found[0] == {
        "model": "MTFD*",
        "source": "datasheet rev. 4, table 3",
        "test": "iops",
        "metric": "write_iops",
        "min": 22000,
    }
    assert (
        found[1]["source"] == "table 5"
        and [problem for item in found for problem in judged_criteria.criterion_problems(item)] == []
    )
    assert (
        judged_criteria.describe_given(found[0])
        == "criterion iops write_iops min 22000 (model MTFD*, datasheet rev. 4, table 3)"
    )


def test_an_own_criterion_replaces_the_one_for_the_same_and_adds_to_the_others(site):
    own = [{"test": "iops", "metric": "write_iops", "model": "MTFD*", "min": 20000}, {"metric": "read_iops", "min": 1}]
    assert [item.get("min") for item in criteria_files.merged(variables(site, own))] == [None, None, 20000, 1]
    assert (
        criteria_files.merged(variables(site, [{"test": "iops", "metric": "write_iops", "min": 1}]))[0]["min"] == 22000
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("model: M\ncriteria: [{metric: iops, min: 1}]", "source: is missing"),
        (
            "model: M\nsource: s\ncriteria: [{metric: iops, minn: 1, min: 1}]",
            "mtfd.yml (model M): criteria[0].minn: unknown key; did you mean min?",
        ),
        ("model: [M]\nsource: s\ncriteria: [{metric: iops, min: 1}]", "mtfd.yml: model: "),
        (
            "model: M\nsource: s\ncriteria: [{metric: iops, min_of_median: 0}]",
            "criteria[0].min_of_median: 0 must be more than 0",
        ),
        ("model: M\nsource: s\ncriteria: []", "criteria: [] must be a list of at least 1"),
        ("model: [", "cannot be read"),
    ],
)
def test_a_wrong_file_is_told_with_its_key(site, text, problem):
    (site / "criteria" / "mtfd.yml").write_text(text)
    with pytest.raises(PlanError, match="mtfd.yml") as caught:
        criteria_files.merged(variables(site))
    assert problem in caught.value.problems[0]


def test_without_files_the_own_ones_are_all():
    assert criteria_files.merged({"ssd_criteria": [{"metric": "iops", "min": 1}], "ssd_tests_dirs": []}) == [
        {"metric": "iops", "min": 1}
    ]
