# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The states of a run are listed in run/states.py; playbooks, pages and schemas go by it."""

from __future__ import annotations

import ast
import re
import typing as t
from pathlib import Path

import pytest
import yaml

from ansible_collections.ssdlab.fleet.plugins.module_utils.records import answers, run_files
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import states
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import json_schema
from ansible_collections.ssdlab.fleet.plugins.test.run_states import TestModule as RunStates

REPO = Path(__file__).resolve().parents[3]
TESTS = RunStates().tests()
STATES = {*states.UNFINISHED_STATES, *states.FINAL_STATES}


@pytest.mark.parametrize("name", TESTS)
def test_a_tests_page_names_the_states_that_it_is_true_for(name):
    page = yaml.safe_load((REPO / "plugins" / "test" / f"{name}.yml").read_text(encoding="utf-8"))["DOCUMENTATION"]
    assert page["name"] == name
    documented = set(re.findall(r"V\((\w+)\)", page["description"][0]))
    assert documented == {state for state in STATES if TESTS[name](state)} and not TESTS[name]("")


def test_the_shape_and_the_schema_of_a_status_allow_the_states_that_are_written():
    written = {*states.LIVE_STATES, *states.FINAL_STATES}
    assert set(json_schema.of(run_files.Status)["properties"]["state"]["enum"]) == written


def test_the_schemas_of_answers_and_journals_allow_the_states_that_they_may_hold():
    assert set(t.get_args(answers.RunState)) == {*STATES, states.ABSENT}
    assert set(json_schema.of_event("job_finished")["properties"]["state"]["enum"]) == set(states.FINAL_STATES)


def test_no_code_compares_a_state_with_a_word_of_its_own():
    """`stopped` and `absent` are also states of the module host_job, and `failed` of a host's record."""
    words = STATES - {states.STOPPED, states.FAILED}
    compared = [
        f"{path}:{node.lineno}"
        for path in sorted((REPO / "plugins").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Compare)
        and any(isinstance(side, ast.Constant) and side.value in words for side in ast.walk(node))
    ]
    assert compared == []


def test_no_playbook_lists_states():
    """One state by its name is a question of its own; a list of them is a copy."""
    listed = re.compile(r"\[\s*'(?:{})'\s*,".format("|".join(sorted(STATES))))
    texts = [path for folder in ("playbooks", "roles") for path in (REPO / folder).glob("**/*.yml")]
    assert len(texts) > 50
    assert [str(path) for path in texts if listed.search(path.read_text(encoding="utf-8"))] == []
