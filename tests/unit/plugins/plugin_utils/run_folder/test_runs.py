# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.records.answers import RunOnHost
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import runs
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder.runs import KnownRun, RunError


def own(run_id, *hosts, name="qualify", started="2026-11-21T13:00:00Z"):
    return KnownRun(run_id, name, started, frozenset(hosts))


def says(host, *runs_of, name="qualify"):
    """What a host tells: (id, state) of each run."""
    return {host: [RunOnHost(run_id, name, state, updated="2099") for run_id, state in runs_of]}


@pytest.mark.parametrize(
    "run_id, answers, known, expected",
    [
        ("given", {}, [], "given"),
        ("b", says("h", ("a", "dead"), ("b", "finished")), [own("a", "h")], "b"),
        ("", says("h", ("a", "running")), [own("a", "h"), own("b", "h", started="2027")], "a"),
        ("", {**says("h", ("a", "running")), **says("i", ("a", "dead"))}, [own("a", "h", "i")], "a"),
        (
            "",
            {},
            [own("a", started="2026-01"), own("b", started="2026-02"), own("c", name="other", started="2027")],
            "b",
        ),
        (
            "",
            says("h", ("old", "finished")),
            [own("old", "h", started="2026-01"), own("new", "h", started="2026-02")],
            "new",
        ),
    ],
)
def test_the_run_is_the_given_else_the_unfinished_else_the_newest(run_id, answers, known, expected):
    assert runs.choose(run_id, "qualify", answers, known)[0] == expected


@pytest.mark.parametrize(
    "answers, known, message",
    [
        (
            {**says("h", ("a", "running")), **says("i", ("b", "dead"))},
            [own("a", "h"), own("b", "i")],
            "several unfinished runs are named qualify: a, b",
        ),
        ({}, [own("a", name="other")], "no run of this controller is named qualify"),
        (says("h", ("a", "dead")), [], "h has a, which this controller has no record"),
    ],
)
def test_no_run_is_guessed(answers, known, message):
    with pytest.raises(RunError, match=message):
        runs.choose("", "qualify", answers, known)


def test_a_run_that_nobody_has_is_an_error_where_all_were_asked():
    assert runs.choose("a", "qualify", {}, [])[0] == "a"
    assert runs.choose("a", "qualify", says("h", ("a", "dead")), [], is_complete=True)[0] == "a"
    with pytest.raises(RunError, match="neither these hosts nor ssd_results_dir have a run b; correct the id"):
        runs.choose("b", "qualify", says("h", ("a", "dead")), [own("a")], is_complete=True)


@pytest.mark.parametrize("run_id", ["../x", "a/b", "a\n", ".", "-a", "a" * 101])
def test_a_run_id_is_no_path(run_id):
    with pytest.raises(RunError, match="is not a valid id"):
        runs.choose(run_id, "qualify", {}, [])


@pytest.mark.parametrize(
    "answers, known, why",
    [
        (says("h", ("a", "dead")), [], "has no record"),
        (says("h", ("a", "dead")), [own("a", "i")], "has no record"),
        ({**says("h", ("a", "running")), **says("i", ("a", "finished"))}, [own("a", "h", "i")], "have finished"),
    ],
    ids=["unknown", "not asked of it", "finished by another"],
)
def test_no_run_is_taken_up_for_a_hosts_word(answers, known, why):
    open_ids, claims = runs.unfinished("qualify", answers, known)
    assert open_ids == [] and [(claim.host, claim.run_id) for claim in claims] == [("h", "a")] and why in claims[0].why


def test_a_broken_run_json_hides_no_other_run(tmp_path):
    asked = [{"host": "h"}, {"host": "i", "left_out": "the host is unreachable"}]
    good = {"run": {"id": "good", "name": "qualify"}, "started": "2026", "asked": asked, "tests": {}}
    for name, text in (("good", json.dumps(good)), ("bad", "{"), ("odd", "[]"), ("another", json.dumps(good))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text(text)
    assert runs.on_controller(str(tmp_path)) == [
        KnownRun("good", "qualify", "2026", frozenset(["h"]), str(tmp_path / "good"))
    ]


@pytest.mark.parametrize(
    "states, taken_up",
    [([], True), (["unreachable"], True), (["ok", "failed"], True), (["ok"], False), (["unfinished", "ok"], False)],
)
def test_a_run_that_a_host_was_done_with_is_not_taken_up_again_once_honest_hosts_are_cleaned_up(
    tmp_path, states, taken_up
):
    lines = [json.dumps({"kind": "host", "host": "i", "state": state}) for state in states]
    (tmp_path / "results.jsonl").write_text("\n".join([*lines, "{", '["state"]', '{"state": []}', ""]))
    known = [own("a", "h", "i")._replace(folder=str(tmp_path))]
    open_ids, claims = runs.unfinished("qualify", {**says("h", ("a", "dead")), "i": []}, known)
    assert (open_ids == ["a"]) == taken_up and bool(claims) != taken_up


def test_hosts_that_a_run_began_without_are_told_unless_they_have_begun_it_since(tmp_path):
    asked = [
        {"host": "whole", "drive": "S1"},
        {"host": "part", "drive": "S2", "left_out": "gone"},
        {"host": "part", "drive": "S3"},
        *({"host": host, "drive": "S4", "left_out": "the host is unreachable"} for host in ("lost", "back")),
    ]
    (tmp_path / "run.json").write_text(json.dumps({"asked": asked, "tests": {}}))
    answers = {**says("back", ("r1", "running")), **says("lost", ("r0", "finished"))}
    assert runs.hosts_without(str(tmp_path), "r1", answers) == ["lost"]
    (tmp_path / "run.json").write_text("{")
    assert runs.hosts_without(str(tmp_path), "r1", answers) == []
