# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the decision takes from a host's answer, and what of the question stays if there is none."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleConnectionFailure, AnsibleError

from ansible_collections.ssdlab.fleet.plugins.action import examine, preflight
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import task_results
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import decision, findings
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.validation.host_action import HostAction

ASKED = {"ssd_state_dir": "/s", "ssd_drives": None, "ssd_run_id": "", "preflight_tools": [], "x": findings.UNSET}


def texts(view):
    found = [*findings.settings([view]), *findings.answers(view, unreachable_counts=True)]
    return [finding.text() for finding in found if "checked" in finding.message or "failed" in finding.message]


def test_a_failed_part_is_told_and_the_others_count():
    view = preflight._view("h1", {"asked": ASKED, "failures": {"drive_facts": "no sysfs"}, "runs": []})
    assert (view.runs, view.drives, "x" in view.asked) == ([], None, False)
    assert "h1: drive_facts failed: no sysfs" in texts(view)


def test_an_answer_that_cannot_be_trusted_is_told_as_a_whole():
    view = preflight._view("h1", {"asked": ASKED, "failed": True, "msg": "cannot be trusted"})
    assert "h1: examine failed: cannot be trusted" in texts(view)


def test_an_answer_of_another_shape_is_its_hosts_own_fault():
    view = preflight._view("h1", {"asked": ASKED, "runs": [{"run_id": "r"}], "failures": {}})
    told = "h1: examine failed: its answer cannot be read: runs[0].run_name is missing"
    assert view.runs is None and told in texts(view)[0]


def test_a_host_whose_variables_cannot_be_read_is_told_with_the_reason():
    view = preflight._view("h1", {"failed": True, "msg": "'serial' is undefined"})
    assert texts(view) == ["h1: could not be checked: 'serial' is undefined"]


@pytest.mark.parametrize(
    ("error", "state"), [(AnsibleConnectionFailure("no route"), "unreachable"), (AnsibleError("no sudo"), "failed")]
)
def test_what_was_asked_stays_known_where_the_host_does_not_answer(monkeypatch, error, state):
    class Task:
        args = {"variables": True}
        timeout = 60

    class Templar:
        template = staticmethod(lambda value: value)

    def ask(_module, arguments, _variables):
        assert arguments["limit_s"] > 60
        raise error

    action = examine.ActionModule(Task(), None, None, None, Templar(), None)
    monkeypatch.setattr(HostAction.__bases__[0], "run", lambda *_arguments: {})
    monkeypatch.setattr(examine, "refuse_injected_facts", lambda: None)
    monkeypatch.setattr(action, "ask", ask)
    told = action.run(task_vars={"ssd_mode": "plan", "ssd_own": 1, "other": 2})
    assert told[state] is True and str(error) in told["msg"]
    assert set(told) == {state, "msg", task_results.NOT_PRINTED}
    view = preflight._view("h1", told)
    assert view.asked["ssd_mode"] == "plan" and told[task_results.NOT_PRINTED]["names"] == ["ssd_mode", "ssd_own"]


@pytest.mark.parametrize("codes", [["signature"], ["signature", "unsigned_data"]])
def test_where_the_remedy_of_each_code_stands_is_told_once(codes):
    leaves = [f"h{n}: drive S{n}: mounted: it is mounted (also: {', '.join(codes)})" for n in range(3)]
    decided = decision.Decision([], None, True, False, [], "", "", None, [], left_out={"h1": leaves}, leaves=leaves)
    title, *lines = preflight._left_out(decided)
    assert lines == [f"- {line}" for line in leaves] and title.endswith("each code, and what to do: docs/invalid.md")
