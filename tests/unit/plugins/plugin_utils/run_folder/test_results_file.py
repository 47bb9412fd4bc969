# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import json
import os
import resource

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import results_log as module
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder.results_log import ResultsFile, host_record


def record(drive="A1", **fields):
    common = {
        "schema_version": 1,
        "kind": "drive",
        "time": "2026-11-21T13:00:00.000Z",
        "run_id": "r1",
        "host": "h1",
        "drive": drive,
    }
    return dict(common, **{"path": None, "identity": None, "outcome": "error", "message": "", "refusals": [], **fields})


def written(folder, run_id="r1"):
    path = folder / run_id / "results.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def results(tmp_path):
    (tmp_path / "r1").mkdir()
    return tmp_path


def test_what_comes_before_the_run_is_known_waits_in_order(results):
    found = ResultsFile()
    found.add([host_record("h1", "unreachable", "no route")])
    found.add([host_record("h2", "failed", "no fio")])
    assert written(results) == []
    found.open(str(results), "r1")
    found.add([record()])
    assert [(item["host"], item["run_id"]) for item in written(results)] == [("h1", "r1"), ("h2", "r1"), ("h1", "r1")]


def test_a_run_without_a_folder_was_only_planned(tmp_path):
    found = ResultsFile()
    found.open(str(tmp_path), "r1")
    found.add([host_record("h1", "unreachable", "")])
    assert os.listdir(tmp_path) == []
    (tmp_path / "r1").mkdir()
    found.flush()
    assert len(written(tmp_path)) == 1


@pytest.mark.parametrize(
    "second, lines",
    [(record(), 1), (record(time="2026-11-22T00:00:00.000Z"), 1), (record(outcome="complete"), 2), (record("B2"), 2)],
)
def test_only_what_says_something_new_is_added_by_the_next_playbook_too(results, second, lines):
    for item in (record(), second):
        found = ResultsFile()
        found.open(str(results), "r1")
        found.add([item])
    assert len(written(results)) == lines


def test_a_state_that_returns_is_new(results):
    found = ResultsFile()
    found.open(str(results), "r1")
    for state in ("unreachable", "ok", "unreachable"):
        found.add([host_record("h1", state, "")])
    assert [item["state"] for item in written(results)] == ["unreachable", "ok", "unreachable"]


def test_a_failed_write_keeps_the_records_for_the_next_time(results, monkeypatch):
    found = ResultsFile()
    found.open(str(results), "r1")
    real = module.append

    def full(*_args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "append", full)
    with pytest.raises(OSError):
        found.add([record()])
    monkeypatch.setattr(module, "append", real)
    found.add([record("B2")])
    assert [item["drive"] for item in written(results)] == ["A1", "B2"]


def test_the_same_result_is_new_after_somebody_else_noted_that_the_host_began_anew(results):
    found = ResultsFile()
    found.open(str(results), "r1")
    found.add([record()])
    module.begin_anew(str(results / "r1" / "results.jsonl"), "r1", "h1")
    found.add([record()])
    assert [item["kind"] for item in written(results)] == ["drive", "host", "drive"]


def test_a_message_of_any_length_is_kept_short():
    assert len(host_record("h1", "failed", "x" * 5000)["message"]) == 1000


@contextlib.contextmanager
def room_for(size_bytes):
    """No file of this process grows beyond this, as on a disk that is full; Python leaves the signal alone."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("again", [False, True], ids=["the same play goes on", "the next collect"])
def test_a_disk_that_is_full_at_any_byte_loses_nothing(tmp_path, again):
    told = [record(drive) for drive in ("A1", "B2", "C3")]
    line = len(json.dumps(told[0])) + 1
    for place in range(0, 3 * line, 7):
        (tmp_path / str(place) / "r1").mkdir(parents=True)
        found = ResultsFile()
        found.open(str(tmp_path / str(place)), "r1")
        found.add([record("Z9")])
        with room_for(line + place), pytest.raises(OSError):
            found.add(told)
        if again:
            found = ResultsFile()
            found.open(str(tmp_path / str(place)), "r1")
            found.add(told)
        else:
            found.flush()
        assert [item["drive"] for item in module.load(found.path)] == ["Z9", "A1", "B2", "C3"], place
        assert module.load_all(found.path).damaged_lines in ([], [2], [3], [4]), place
