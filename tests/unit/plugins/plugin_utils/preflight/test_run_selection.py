# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a later play of a run takes from how its drives are judged (preflight: test_decision_definitions.py)."""

from __future__ import annotations

import datetime

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import begun_run, run_selection
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight.findings import Run
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import runs
from ansible_collections.ssdlab.fleet.tests.fixtures import host_answers

NOW = datetime.datetime(2026, 11, 21, 13, 0, 0, tzinfo=datetime.timezone.utc)


def view(name="h1", runs=(), **variables):
    return host_answers.of(name, {"ssd_run_name": "qualify", "ssd_run_id": "", **variables}, runs)


def run_of(run_id, state, name="qualify"):
    return {"run_id": run_id, "run_name": name, "state": state}


def texts(found):
    return [finding.text() for finding in found]


def chosen(*views, **variables):
    """As if the controller had asked every host for every run."""
    hosts = frozenset(v.name for v in views)
    own = [runs.KnownRun(entry.run_id, entry.run_name, "2026", hosts) for v in views for entry in v.runs or ()]
    return run_selection.choose([v._replace(asked={**v.asked, **variables}) for v in views], NOW, own)


def test_without_an_unfinished_run_a_new_one_begins():
    run, wrong = chosen(
        view(
            runs=[
                run_of("old", "finished"),
                run_of("x", "running", "other"),
                run_of("s", "stopped"),
                run_of("f", "failed"),
            ]
        )
    )
    assert (run, wrong) == (Run("20261121T130000Z-qualify", "qualify", {}), [])


@pytest.mark.parametrize("state", ["starting", "running", "dead"])
def test_the_one_unfinished_run_is_gone_on_with(state):
    run, wrong = chosen(
        view("h1", runs=[run_of("r1", state), run_of("r0", "finished")]),
        view("h2", runs=[run_of("r1", "stopped")]),
        view("h3"),
    )
    assert (run, wrong) == (Run("r1", "qualify", {"h1": state, "h2": "stopped"}), [])


@pytest.mark.parametrize("state", ["starting", "running", "dead"])
def test_a_run_that_a_host_has_finished_is_to_be_named(state):
    """Its old verdicts would else be reported for the word of one host."""
    views = view("h1", runs=[run_of("r1", state)]), view("h2", runs=[run_of("r1", "finished")])
    run, wrong = chosen(*views)
    assert (
        run.id != "r1"
        and "h1: ssd_run_id: this host reports run r1 as unfinished" in texts(wrong)[0]
        and "-e ssd_run_id=r1" in texts(wrong)[0]
    )
    assert chosen(*views, ssd_run_id="r1") == (Run("r1", "qualify", {"h1": state, "h2": "finished"}), [])


def test_several_unfinished_runs_are_listed_and_refused():
    run, wrong = chosen(view("h1", runs=[run_of("r1", "running")]), view("h2", runs=[run_of("r2", "dead")]))
    assert run is None and "r1 (h1), r2 (h2); choose one with -e ssd_run_id=" in texts(wrong)[0]
    run, wrong = chosen(
        view("h1", runs=[run_of("r1", "running")]), view("h2", runs=[run_of("r2", "dead")]), ssd_run_id="r2"
    )
    assert run == Run("r2", "qualify", {"h2": "dead"}) and wrong == []


def test_a_given_id_is_used_with_the_name_it_was_started_with():
    assert chosen(view(runs=[run_of("r1", "finished", "burn-in")]), ssd_run_id="r1")[0] == Run(
        "r1", "burn-in", {"h1": "finished"}
    )
    assert chosen(view(), ssd_run_id="new")[0] == Run("new", "qualify", {})


@pytest.mark.parametrize(
    ("given", "state", "says"),
    [
        ({}, "running", ("attach", "run r is still at work on h1: this play attaches to it (ssd_overlap: attach)")),
        (
            {"ssd_overlap": "skip"},
            "starting",
            ("skip", "run r is still at work on h1: nothing is started (ssd_overlap: skip)"),
        ),
        (
            {"ssd_overlap": "fail"},
            "running",
            (
                "fail",
                "run r is still at work on h1: wait for it (watch.yml), or stop it (stop.yml) (ssd_overlap: fail)",
            ),
        ),
        ({"ssd_overlap": "fail", "ssd_run_id": "r"}, "running", ("", "")),
        ({"ssd_overlap": "fail"}, "dead", ("", "")),
        ({"ssd_overlap": "fail"}, "finished", ("", "")),
    ],
)
def test_what_becomes_of_a_run_that_hosts_are_still_at_work_on(given, state, says):
    assert run_selection.overlap([view(**given)], Run("r", "n", {"h1": state})) == says
    assert run_selection.overlap([view(**given)], None) == ("", "")


ONE, OTHER = {"metric": "iops", "min": 1}, {"metric": "iops", "min": 2}


@pytest.mark.parametrize(
    ("before", "criteria", "strict", "lost"),
    [
        ({}, None, None, []),
        ({"criteria": [ONE]}, [OTHER, ONE], "warn", []),
        ({"criteria": [ONE]}, [OTHER], "warn", ["criterion iops min 1"]),
        ({"criteria": [ONE, OTHER]}, None, "warn", ["criterion iops min 1", "criterion iops min 2"]),
        ({"criteria": ["no mapping"]}, "not a list", None, []),
        ({"unknown_causes": "disturb"}, [], None, ["ssd_unknown_causes disturb"]),
        ({"unknown_causes": "warn"}, [], "disturb", []),
    ],
)
def test_what_is_given_up(before, criteria, strict, lost):
    assert run_selection.dropped_criteria(begun_run.parse(before), criteria, strict) == lost
