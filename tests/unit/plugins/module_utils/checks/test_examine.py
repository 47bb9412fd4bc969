# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All that preflight asks, in one go: one part that fails does not take the others with it."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.checks import examine, host_checks
from ansible_collections.ssdlab.fleet.plugins.module_utils.machine import facts, links, shared_parts
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge import drive_facts
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.answers import Failures
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.found_drives import SharedPart
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import engines, run_info
from ansible_collections.ssdlab.fleet.plugins.modules.examine import validated

PART = SharedPart("the 8 cores", most_drives=8)
ALL = {part: {} for part in examine.PARTS}
ENGINE = "engine-0.1.0-0f5a3d1c9f11.pyz"
DRIVES = [
    {"drive": "A1", "eligible": True, "identity": {"kernel_name": "nvme0n1", "transport": "nvme"}},
    {"drive": "B2", "eligible": False, "identity": None},
]


@pytest.fixture
def parts(monkeypatch):
    """Parts that answer what the test says, and note what they were given: (answers, given)."""
    answers = {
        "run_info": {"runs": [], "other": 1},
        "host_info": {"host_info": {}},
        "drive_facts": {"drives": DRIVES},
        "host_checks": {"findings": [], "snapshot": {}, "wear": [], "passed": []},
    }
    given = {}

    def says(part):
        def answer(_machine, values, *_more):
            given[part] = values
            if isinstance(answers[part], Exception):
                raise answers[part]
            return answers[part]

        return answer

    monkeypatch.setattr(engines, "names", lambda _state_dir: [ENGINE])
    monkeypatch.setattr(examine, "hypervisor", lambda _host: None)
    monkeypatch.setattr(shared_parts, "of_drive", lambda _host, name, *_more: {"nvme0n1": [PART]}[name])
    monkeypatch.setattr(
        links, "carries_mb_s", lambda _host, name, transport: {("nvme0n1", "nvme"): 7876.8}[name, transport]
    )
    for part, module in zip(examine.PARTS, (run_info, facts, drive_facts, host_checks)):
        monkeypatch.setattr(module, "module_result", says(part))
    return answers, given


def ask(wanted):
    return examine.module_result(None, wanted, validated)


def test_every_part_is_asked_with_its_defaults_and_only_the_wanted_keys_come_back(parts):
    _answers, given = parts
    seen = {"runs": [], "engines": [ENGINE], "host_info": {}, "drives": DRIVES}
    seen.update({"findings": [], "snapshot": {}, "wear": []})
    assert ask(ALL) == {"failures": {}, **seen}
    found = ask(ALL)["drives"]
    assert [drive.get("link_mb_s") for drive in found] == [7876.8, None]
    assert [drive.get("shared") for drive in found] == [[{"name": "the 8 cores", "most_drives": 8}], None]
    assert given["run_info"]["state_dir"] == "/var/lib/ssdlab-fleet" and given["drive_facts"]["look"] == "sample"


def test_only_drives_that_may_be_erased_are_read_under_traffic(parts):
    _answers, given = parts
    ask({**ALL, "host_checks": {"readable": ["X"]}})
    assert given["host_checks"]["readable"] == ["A1"]


@pytest.mark.parametrize(("state", "checked"), [("running", False), ("starting", False), ("dead", True)])
def test_a_host_where_a_run_works_is_not_checked(parts, state, checked):
    answers, given = parts
    answers["run_info"] = {"runs": [{"state": state}]}
    assert ("findings" in ask(ALL)) is checked and ("host_checks" in given) is checked


def test_a_part_that_fails_says_so_and_the_others_stand(parts):
    answers, _given = parts
    answers["drive_facts"], answers["run_info"] = OSError("no /sys"), ValueError("cannot read the runs")
    told = ask(ALL)
    assert told["failures"] == {"run_info": "cannot read the runs", "drive_facts": "OSError: no /sys"}
    assert "drives" not in told and {"host_info", "findings", "snapshot"} <= set(told)


def test_a_wrong_option_fails_its_part_alone(parts):
    told = ask({**ALL, "host_checks": {"min_cpus": "many"}})
    assert set(told["failures"]) == {"host_checks"} and "min_cpus" in told["failures"]["host_checks"]


def test_a_part_that_is_not_asked_for_is_left_out(parts):
    assert ask({"host_info": {}, "run_info": None}) == {"failures": {}, "host_info": {}}


def test_whether_a_drive_is_in_service_is_told_or_its_absence_is(parts):
    """A failure that the controller's gate did not know would pass for no drive in both lists."""
    # What the stand-in of drive_facts tells is no whole drive.
    told = ask({"drive_facts": {}, "service_drives": {"reads": False}})
    assert set(told["failures"]) <= {field.name for field in dataclasses.fields(Failures)}
    assert "service_drives" in told["failures"]
