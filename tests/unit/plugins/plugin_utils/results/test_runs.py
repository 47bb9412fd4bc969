# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.results import runs
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.results.runs import Known, RunError


def known(run_id, state="finished", name="qualify", time="2026-11-21T13:00:00Z"):
    return Known(run_id, name, state, time)


@pytest.mark.parametrize(
    "run_id, candidates, expected",
    [
        ("given", [], "given"),
        ("b", [known("a"), known("b")], "b"),
        ("", [known("a", "running"), known("b", time="2027")], "a"),
        ("", [known("a", "running"), known("a", "dead")], "a"),
        ("", [known("a", time="2026-01"), known("b", time="2026-02"), known("c", name="other", time="2027")], "b"),
    ],
)
def test_the_run_is_the_given_else_the_unfinished_else_the_newest(run_id, candidates, expected):
    assert runs.choose(run_id, "qualify", candidates).id == expected


@pytest.mark.parametrize(
    "candidates, message",
    [
        ([known("a", "running"), known("b", "dead")], "several unfinished runs are named qualify: a, b"),
        ([known("a", name="other")], "no run is named qualify"),
    ],
)
def test_no_run_is_guessed(candidates, message):
    with pytest.raises(RunError, match=message):
        runs.choose("", "qualify", candidates)


def test_a_broken_run_json_hides_no_other_run(tmp_path):
    for name, text in (("good", json.dumps({"run": {"id": "good", "name": "qualify"}, "started": "2026"})), ("bad", "{"), ("odd", "[]")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text(text)
    assert [run.id for run in runs.on_controller(str(tmp_path))] == ["good"]


def test_hosts_answers_become_runs():
    answer = [{"run_id": "a", "run_name": None, "state": "dead", "drives": 0, "updated": None}]
    assert runs.on_hosts({"h": answer}) == [Known("a", "", "dead", "")]
