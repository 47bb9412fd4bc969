# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The criteria that docs/report.md shows name tests and cells that there are."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import testfiles
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.verdict import judged_criteria

PAGE = (Path(__file__).parents[3] / "docs" / "report.md").read_text(encoding="utf-8")


def test_the_example_can_be_copied():
    criteria = yaml.safe_load(re.search(r"```yaml\n(ssd_criteria:.*?)```", PAGE, re.DOTALL).group(1))["ssd_criteria"]
    assert [problem for criterion in criteria for problem in judged_criteria.criterion_problems(criterion)] == []
    tests = {test.name: test for test in testfiles.load_plan(["wsat", "iops"])}
    named = [(criterion["test"], criterion["cell"]) for criterion in criteria if criterion.get("cell")]
    assert named and [cell for test, cell in named if cell not in [known.id for known in tests[test].cells]] == []
    assert {criterion["test"] for criterion in criteria if criterion.get("test")} <= set(tests)
