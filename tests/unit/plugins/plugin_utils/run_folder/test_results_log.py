# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""results.jsonl: nothing appended is lost, whatever a killed writer left."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import results_log

TIME = "2026-11-21T13:00:00.000Z"


def record(**fields):
    """A test's record as collect appends it."""
    measured = {
        "attempt": 1,
        "title": "",
        "outcome": "steady",
        "reasons": [],
        "rounds": 5,
        "steady_state": [],
        "metrics": {},
        "not_applicable": [],
    }
    when = {"time": TIME, "started": TIME, "finished": TIME, "purge": None, "precondition": None}
    return {
        "schema_version": 1,
        "kind": "test",
        "run_id": "r1",
        "host": "a",
        "drive": "d",
        "test": "wsat",
        **when,
        **measured,
        **fields,
    }


def test_the_newest_record_of_a_key_wins(tmp_path):
    path = str(tmp_path / "results.jsonl")
    results_log.append(path, [record(outcome="interrupted"), record(test="iops", outcome="steady")])
    results_log.append(
        path,
        [
            record(outcome="steady"),
            {
                "schema_version": 1,
                "kind": "host",
                "run_id": "r1",
                "time": TIME,
                "host": "a",
                "state": "ok",
                "message": "",
            },
        ],
    )
    assert [(r["kind"], r.get("test"), r.get("outcome")) for r in results_log.load(path)] == [
        ("test", "wsat", "steady"),
        ("test", "iops", "steady"),
        ("host", None, None),
    ]


def test_no_file_is_no_records(tmp_path):
    assert results_log.load(str(tmp_path / "none")) == []


def test_nothing_to_append_makes_no_file(tmp_path):
    results_log.append(str(tmp_path / "results.jsonl"), [])
    assert not list(tmp_path.iterdir())


@given(cut=st.integers(min_value=1, max_value=200))
def test_a_torn_line_costs_only_itself(tmp_path_factory, cut):
    path = tmp_path_factory.mktemp("torn") / "results.jsonl"
    results_log.append(str(path), [record(), record(test="iops")])
    whole = path.read_bytes()
    path.write_bytes(whole[: max(0, len(whole) - cut)])
    results_log.append(str(path), [record(test="latency")])
    loaded = results_log.load_all(str(path))
    assert loaded.records[-1]["test"] == "latency"
    survivors = whole[: max(0, len(whole) - cut)].split(b"\n")
    complete = sum(1 for line in survivors if _is_json(line))
    assert len(loaded.records) == complete + 1
    assert len(loaded.damaged_lines) == sum(1 for line in survivors if line and not _is_json(line))


def _is_json(line):
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("version", [2, None, "1"])
def test_a_record_of_another_schema_is_an_error_of_its_test_alone(tmp_path, version):
    path = tmp_path / "results.jsonl"
    results_log.append(str(path), [record(), record(test="iops"), dict(record(), schema_version=version)])
    newest = {found["test"]: found for found in results_log.load(str(path))}
    assert newest["iops"]["outcome"] == "steady" and newest["wsat"]["outcome"] == "error"
    assert "schema_version" in newest["wsat"]["reasons"][0]


@pytest.mark.parametrize(
    "changes",
    [{"drive": ["X"]}, {"test": "../x"}, {"host": "a\x1b"}, {"run_id": "../r"}, {"kind": "fleet"}, {"kind": None}],
    ids=lambda changes: next(iter(changes)),
)
def test_a_record_of_nobody_is_left_out_and_its_line_given(tmp_path, changes):
    path = tmp_path / "results.jsonl"
    results_log.append(str(path), [record(), record(**changes)])
    loaded = results_log.load_all(str(path))
    assert [found["test"] for found in loaded.records] == ["wsat"] and loaded.damaged_lines == [2]


def test_appending_is_one_write_synced_to_the_disk(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(results_log.os, "fsync", synced.append)
    path = tmp_path / "results.jsonl"
    results_log.append(str(path), [record(test=str(n)) for n in range(500)])
    assert len(synced) == 1
    assert len(path.read_text().splitlines()) == 500


def host(name, state):
    return {
        "schema_version": 1,
        "kind": "host",
        "run_id": "r1",
        "time": TIME,
        "host": name,
        "state": state,
        "message": "",
    }


def test_what_was_collected_before_a_host_began_anew_no_longer_counts(tmp_path):
    path = str(tmp_path / "results.jsonl")
    results_log.append(path, [host("a", "ok"), record(), record(host="b"), host("b", "ok")])
    results_log.begin_anew(path, "r1", "a")
    seen = [(found["kind"], found["host"], found.get("state")) for found in results_log.load(path)]
    assert sorted(seen, key=str) == [("host", "a", "started"), ("host", "b", "ok"), ("test", "b", None)]
    # What comes afterwards counts, also once the host is lost.
    results_log.append(path, [record(outcome="not_steady"), host("a", "unreachable")])
    assert {found.get("state") or found.get("outcome") for found in results_log.load(path) if found["host"] == "a"} == {
        "unreachable",
        "not_steady",
    }
    assert len(open(path).read().splitlines()) == 7  # nothing is taken away


@pytest.mark.parametrize(
    "known", [[], [host("a", "unreachable")], [record(host="b")]], ids=["none", "no drive", "another host"]
)
def test_without_a_record_of_the_hosts_drives_nothing_is_noted(tmp_path, known):
    path = tmp_path / "results.jsonl"
    results_log.append(str(path), known)
    results_log.begin_anew(str(path), "r1", "a")
    assert len(path.read_text().splitlines() if path.exists() else []) == len(known)
