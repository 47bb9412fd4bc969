# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import gc
import json
import multiprocessing
from types import SimpleNamespace

import pytest

from ansible_collections.ssdlab.fleet.plugins.callback import fleet
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import results_log


class Screen:
    """Stands in for ansible's Display."""

    verbosity = 0

    def __init__(self):
        self.lines, self.errors = [], []

    def display(self, msg, *_args, **_kwargs):
        self.lines.append(msg)

    banner = display

    def error(self, msg, *_args, **_kwargs):
        self.errors.append(msg)


class Public:
    """A result as ansible-core 2.19 has it."""

    def __init__(self, host, task, result):
        self._values = {"host": host, "task": task, "result": result}

    host = property(lambda self: self._values["host"])
    task = property(lambda self: self._values["task"])
    result = property(lambda self: self._values["result"])

    @property
    def _result(self):
        raise AssertionError("deprecated since ansible-core 2.19")


def older(host, task, result):
    """A result as ansible-core 2.17 and 2.18 have it."""
    return SimpleNamespace(_host=host, _task=task, _result=result)


@pytest.fixture(params=[Public, older], ids=["2.19", "2.17"])
def result(request):
    def make(host, content, action="ssdlab.fleet.collect", run_once=False, check_mode=False, resolved=True):
        task = SimpleNamespace(
            action=action.rpartition(".")[2],
            resolved_action=action if resolved else None,
            run_once=run_once,
            check_mode=check_mode,
        )
        return request.param(SimpleNamespace(get_name=lambda: host), task, content)

    return make


@pytest.fixture
def run_folder(tmp_path):
    (tmp_path / "r1").mkdir()
    return tmp_path / "r1"


@pytest.fixture
def callback():
    return play()


def play():
    return fleet.CallbackModule(display=Screen())


def collected(folder, host, *outcomes, state="ok"):
    common = {"schema_version": 1, "time": "2026-11-21T13:00:00.000Z", "run_id": "r1", "host": host}
    records = [dict(common, kind="host", state=state, message="")]
    records += [
        dict(common, kind="drive", drive=f"D{n}", outcome=outcome, message="", identity=None, path=None, refusals=[])
        for n, outcome in enumerate(outcomes)
    ]
    return {"diff": {"records": json.dumps(records)}, "run_id": "r1", "results_dir": str(folder.parent)}


def told(folder):
    path = folder / "results.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [
        (record["kind"], record["host"], record.get("state") or record.get("outcome"))
        for record in map(json.loads, lines)
    ]


PREFLIGHT = "ssdlab.fleet.preflight"


def known(folder):
    return {"decision": {"run": {"id": "r1", "results_dir": str(folder.parent)}}}


def test_results_are_on_the_disk_host_by_host(callback, result, run_folder):
    callback.v2_runner_on_ok(result("h1", collected(run_folder, "h1", "complete")))
    assert told(run_folder) == [("host", "h1", "ok"), ("drive", "h1", "complete")]
    callback.v2_runner_on_ok(result("h2", collected(run_folder, "h2", "error")))
    assert told(run_folder)[2:] == [("host", "h2", "ok"), ("drive", "h2", "error")]


def test_the_results_of_a_loop_are_taken_too(callback, result, run_folder):
    callback.v2_runner_on_ok(result("h1", {"results": [collected(run_folder, "h1", "complete")]}))
    assert len(told(run_folder)) == 2


def test_another_modules_records_are_not_ours(callback, result, run_folder):
    callback.v2_runner_on_ok(result("h1", collected(run_folder, "h1", "complete"), action="other.place.collect"))
    assert told(run_folder) == []


def test_a_host_that_is_lost_before_the_run_is_known_is_told_later(callback, result, run_folder):
    callback.v2_runner_on_unreachable(result("h1", {"msg": "no route to host"}, action="ansible.builtin.setup"))
    callback.v2_runner_on_failed(result("h2", {"msg": "no fio"}, action="ssdlab.fleet.host_info"))
    callback.v2_runner_on_ok(result("h3", known(run_folder), action=PREFLIGHT, run_once=True))
    assert told(run_folder) == [("host", "h1", "unreachable"), ("host", "h2", "failed")]
    assert results_log.load(str(run_folder / "results.jsonl"))[1]["message"] == "ssdlab.fleet.host_info: no fio"


@pytest.mark.parametrize(
    "more, ignored",
    [({}, True), ({"run_once": True}, False), ({"check_mode": True}, False)],
    ids=["ignore_errors", "a task for the whole fleet", "check mode"],
)
def test_not_every_failure_is_that_of_a_host(callback, result, run_folder, more, ignored):
    callback.v2_runner_on_ok(result("h1", known(run_folder), action=PREFLIGHT))
    callback.v2_runner_on_failed(
        result("h1", {"msg": "x"}, action="ansible.builtin.fail", **more), ignore_errors=ignored
    )
    assert told(run_folder) == []


def test_a_failed_collection_counts_though_it_is_ignored(callback, result, run_folder):
    callback.v2_runner_on_ok(result("h1", known(run_folder), action=PREFLIGHT))
    callback.v2_runner_on_failed(result("h1", {"msg": "disk full"}), ignore_errors=True)
    assert told(run_folder) == [("host", "h1", "failed")]


def test_a_run_once_task_still_tells_that_its_host_was_unreachable(callback, result, run_folder):
    callback.v2_runner_on_ok(result("h1", known(run_folder), action=PREFLIGHT))
    callback.v2_runner_on_unreachable(result("h1", {"msg": "x"}, run_once=True))
    assert told(run_folder) == [("host", "h1", "unreachable")]


def test_what_was_collected_stands_when_a_later_task_fails(callback, result, run_folder):
    callback.v2_runner_on_ok(result("h1", collected(run_folder, "h1", "error")))
    callback.v2_runner_on_failed(result("h1", {"msg": "1 of 1 drives did not pass"}, action="ansible.builtin.fail"))
    assert told(run_folder)[-1] == ("drive", "h1", "error")


def test_a_host_that_came_back_and_was_collected_is_ok(callback, result, run_folder):
    callback.v2_runner_on_ok(result("h1", known(run_folder), action=PREFLIGHT))
    callback.v2_runner_on_unreachable(result("h1", {"msg": "x"}))
    callback.v2_runner_on_ok(result("h1", collected(run_folder, "h1", "complete")))
    newest = results_log.load(str(run_folder / "results.jsonl"))
    assert [record["state"] for record in newest if record["kind"] == "host"] == ["ok"]


def test_a_second_playbook_repeats_nothing(result, run_folder):
    for _playbook in range(2):
        play().v2_runner_on_ok(result("h1", collected(run_folder, "h1", "complete")))
    assert len(told(run_folder)) == 2


def test_a_write_error_names_the_file_and_the_next_playbook_mends_it(callback, result, run_folder, monkeypatch):
    def full(*_args):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(results_log, "append", full)
        callback.v2_runner_on_ok(result("h1", collected(run_folder, "h1", "complete")))
        assert "results.jsonl" in callback._display.errors[0] and "No space left" in callback._display.errors[0]
    callback.v2_playbook_on_stats(None)
    assert len(told(run_folder)) == 2


def test_the_table_at_the_end_has_every_drive_and_says_how_to_get_a_report(callback, result, run_folder):
    (run_folder / "run.json").write_text(
        json.dumps({"asked": [{"host": "h1", "drive": "D0"}, {"host": "h2", "drive": "X"}]})
    )
    callback.v2_runner_on_ok(result("h1", collected(run_folder, "h1", "complete")))
    callback.v2_playbook_on_stats(None)
    lines = callback._display.lines
    assert lines[0] == "SSD QUALIFICATION r1" and [line.split()[:2] for line in lines[2:4]] == [
        ["h1", "D0"],
        ["h2", "X"],
    ]
    assert lines[-1] == "no report was written: ansible-playbook playbooks/report.yml -i <inventory> -e ssd_run_id=r1"


@pytest.mark.parametrize("failed", [False, True])
def test_a_report_of_this_playbook_gives_the_verdicts(callback, result, run_folder, failed):
    report = run_folder / "report"
    report.mkdir()
    drives = [{"host": "h1", "drive": "D0", "model": "Sim", "verdict": "fail", "reasons": ["too slow"]}]
    (report / "summary.json").write_text(json.dumps({"drives": drives}))
    made = result("h1", {"report": str(report / "index.html")}, action="ssdlab.fleet.report", run_once=True)
    (callback.v2_runner_on_failed if failed else callback.v2_runner_on_ok)(made)
    callback.v2_playbook_on_stats(None)
    assert "fail" in callback._display.lines[2] and callback._display.lines[-1] == f"report: {report / 'index.html'}"


def test_a_playbook_without_a_run_shows_nothing(callback, result):
    callback.v2_runner_on_ok(result("h1", {"msg": "hello", "results": []}, action="ansible.builtin.debug"))
    callback.v2_runner_on_failed(result("h1", {"msg": "x"}, action="ansible.builtin.command"))
    callback.v2_playbook_on_stats(None)
    assert callback._display.lines == [] and callback._display.errors == []


def test_check_mode_writes_nothing(callback, result, run_folder):
    callback.v2_runner_on_ok(result("h1", collected(run_folder, "h1", "complete"), check_mode=True))
    assert told(run_folder) == []


def test_a_worker_looks_for_no_garbage_in_what_it_shares_with_the_main_process():
    context = multiprocessing.get_context("fork")
    told, tells = context.Pipe(duplex=False)
    worker = context.Process(target=lambda: tells.send((gc.get_freeze_count(), len(gc.get_objects()))))
    worker.start()
    frozen, watched = told.recv()
    worker.join()
    assert frozen > 10 * watched and gc.get_freeze_count() == 0
