# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/testing.md: each shipped plan is played by a test that there is, and each test of it is played."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
import yaml

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.render_plan import load_plan
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.test_library import SHIPPED_DIR

REPO = Path(__file__).parents[3]
PAGE = (REPO / "docs" / "testing.md").read_text(encoding="utf-8")
PLAYED = re.findall(r"^\| ((?:`[a-z0-9-]+` ?)+)\|", PAGE.partition("\n## Suites played end to end\n")[2], re.MULTILINE)
PLANS = sorted(path.stem for path in SHIPPED_DIR.glob("plans/*.yml"))
# By the plan's name; in the guest, as an array that takes two drives, and on a drive of zones.
PLAYED_WHOLE = {"demo", "iomemory-raid0", "zoned"}


def test_the_page_has_every_plan_and_no_other():
    assert sorted({plan for plans in PLAYED for plan in re.findall(r"`([^`]+)`", plans)}) == PLANS


@pytest.mark.parametrize("plan", sorted(set(PLANS) - PLAYED_WHOLE))
def test_an_integration_test_names_each_test_of_a_plan(plan):
    text = "".join(path.read_text(encoding="utf-8") for path in REPO.glob("tests/integration/test_*.py"))
    entries = yaml.safe_load((SHIPPED_DIR / "plans" / f"{plan}.yml").read_text(encoding="utf-8"))
    names = [entry if isinstance(entry, str) else entry.get("name", entry.get("base")) for entry in entries]
    played = set(re.findall(r'["/]([a-z0-9-]+)"', text))
    assert {re.sub("-client$", "", name) for name in names} - played == set()


def test_who_plays_the_enterprise_profile_plays_full():
    """But for the order, shared states, shorter limits, and the write cache, which a simulated drive has none of."""
    without = dict.fromkeys(("origin", "write_cache", "purge", "precondition", "departs", "rounds", "steady_state"))
    without["open_limits"] = None
    full, enterprise = (
        {test.name: dataclasses.replace(test, **without) for test in load_plan(plan)}
        for plan in ("full", "pts-enterprise")
    )
    enterprise.pop("wsat")
    assert full == enterprise
