# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import copy

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import hostplan
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import host_tests
from ansible_collections.ssdlab.fleet.tests.fixtures import host_answers
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.preflight.fleets import QUICK, decide


@pytest.fixture
def loaded(monkeypatch):
    """What was loaded: for each time the tests, and the same as they were then."""
    calls, load = [], hostplan.planning.load_plan

    def load_plan(*arguments):
        tests = load(*arguments)
        calls.append((tests, copy.deepcopy(tests)))
        return tests

    monkeypatch.setattr(hostplan.planning, "load_plan", load_plan)
    return calls


def test_a_plan_is_loaded_once_however_many_hosts_have_it(fleet, loaded):
    hosts = [fleet(f"h{number}", [f"S{number}"], ssd_time_budget="100h") for number in range(5)]
    decided = decide(*hosts, fleet("other", ["S9"], ssd_plan=[QUICK]))
    assert decided.findings == [] and len(decided.plans) == 6
    assert len(loaded) == 2


@pytest.mark.parametrize("plan", ["full", "pts-enterprise", "micron-p420m", "iomemory-raid0"])
@pytest.mark.parametrize("budget", ["", "5h"])
def test_nobody_changes_tests_that_hosts_share(fleet, loaded, plan, budget):
    hosts = [fleet(name, [f"{name}-1", f"{name}-2"], ssd_plan=plan, ssd_time_budget=budget) for name in ("h1", "h2")]
    decided = decide(*hosts)
    assert list(decided.plans) == ["h1", "h2"], decided.findings
    for tests, before in loaded:
        assert tests == before


def test_hosts_with_other_files_of_the_same_name_have_other_tests(fleet, tmp_path):
    hosts = []
    for name, rounds in (("h1", 3), ("h2", 4)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "mine.yml").write_text(f"base: wsat\nname: mine\nsteady_state: false\nrounds: {{max: {rounds}}}\n")
        hosts.append(fleet(name, [name], ssd_plan=["mine"], ssd_tests_dirs=[str(folder)]))
    found = host_tests.of_hosts(hosts)
    assert [found[name].tests[0].rounds.max for name in ("h1", "h2")] == [3, 4]


def test_a_wrong_plan_is_that_of_its_host(fleet):
    found = host_tests.of_hosts([fleet(), fleet("h2", ["S2"], ssd_plan="nothing"), host_answers.of("h3", None)])
    assert found["h1"].tests and not found["h1"].problems
    assert not found["h2"].tests and "no plan file named 'nothing'" in found["h2"].problems[0]
    assert "h3" not in found
