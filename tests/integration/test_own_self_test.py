# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Self-tests that a plan asks for, by real host jobs on a loop device that is shown as an NVMe drive; nvme is the
emulator of tests/emulators.
"""

from __future__ import annotations

import json
import os
import signal
import threading

import pytest
from emulated_nvme import SIZE, benched
from waiting import sizes, wait_until

from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import guard_check
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import render_plan as planning
from ansible_collections.ssdlab.fleet.tests.fixtures import documents, run_results

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root for loop devices")

PASSED, ABORTED, SEGMENT_FAILED = 0, 1, 7


@pytest.fixture
def bench(loop_drive, tmp_path, monkeypatch):
    yield from benched(loop_drive(size_bytes=SIZE), tmp_path, monkeypatch)


def run(bench, result, takes_s=2.0):
    """The drive's status and its test's record, of a drive whose last self-test ended long ago."""
    last = {"code": 1, "started": 0, "seconds": 1, "takes_s": takes_s, "result": result}
    bench.set(self_test=last, nodes=[bench.loop.path])
    bench.job(bench.plan("auto", planning.load_plan(["self-test-short"]))).run()
    records = run_results.records(bench.run_dir, bench.server())
    for record in records:
        documents.validate(json.loads(json.dumps(record)), "results")
    return bench.run_dir.read_status()["drives"][0], next(one for one in records if one["kind"] == "test")


def begun(bench):
    with open(bench.run_dir.commands) as file:
        argvs = [json.loads(line)["argv"] for line in file]
    return [argv[3:] for argv in argvs if argv[:2] == ["nvme", "device-self-test"]]


def test_it_is_begun_followed_and_read_and_writes_nothing(bench):
    before = bench.digest()
    status, record = run(bench, PASSED)
    assert (status["outcome"], record["outcome"]) == ("complete", "complete")
    found = record["self_test"]
    assert (found["kind"], found["result"], found["message"]) == ("short", "passed", "completed without an error")
    assert found["seconds"] >= 2
    assert begun(bench) == [["-n", "1", "-s", "1"]] and bench.digest() == before and bench.erasing() == []
    assert [event["step"] for event in bench.journal("guard")] == ["start", "self_test"]
    assert bench.journal("left") == []


def test_a_drive_that_fails_is_kept_as_evidence(bench):
    status, record = run(bench, SEGMENT_FAILED)
    assert (status["outcome"], record["outcome"], record["self_test"]["result"]) == ("complete", "complete", "failed")
    (left,) = bench.journal("left")
    text = "self-test-short: its short self-test failed: a segment failed, segment 3"
    assert (left["state"], left["reason"]) == ("evidence", text)
    (logs,) = bench.journal("logs_kept")
    assert logs["reason"] == text
    state_dir = str(bench.folder / "state")
    seen = guard_check.inspect(bench.server(), [parse(bench.loop.selector)], state_dir=state_dir)
    assert "evidence" in {refusal["code"] for refusal in seen[0]["refusals"]}


def test_one_that_is_aborted_is_an_error_with_the_drive_s_reason(bench):
    status, record = run(bench, ABORTED)
    assert (status["outcome"], record["outcome"]) == ("error", "error")
    assert record["reasons"] == ["its short self-test aborted: aborted by a command"]


def test_a_stop_ends_it(bench):
    def stop():
        wait_until(lambda: bench.state().get("self_test", {}).get("started"), "a self-test", sizes((bench.folder, "*")))
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Timer(1, stop)
    thread.start()
    status, record = run(bench, PASSED, takes_s=3600.0)
    thread.join()
    assert (status["outcome"], record["outcome"]) == ("interrupted", "interrupted")
    assert begun(bench) == [["-n", "1", "-s", "1"], ["-s", "0xf"]] and bench.state()["self_test"]["result"] == ABORTED
