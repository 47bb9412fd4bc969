# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Self-tests that a plan asks for, by real host jobs on a loop device that is shown as an NVMe, SATA or SAS drive;
nvme, smartctl, hdparm and sg3_utils are the emulators of tests/emulators.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading

import ata_drive
import emulator
import own_machine
import pytest
import scsi_drive
from emulated_nvme import EMULATORS, SIZE, Bench, benched
from waiting import sizes, wait_until

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import locks
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import attributes
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


# --- SATA and SAS ---

MODELS = {"sata": ("ata", ata_drive), "sas": ("scsi", scsi_drive)}


class ScsiServer(Host):
    """This machine, whose loop device hangs on an AHCI port, or has a protection type."""

    def realpath(self, path):
        real = super().realpath(path)
        is_ours = path.startswith("/sys/block/loop")
        return real.replace("/devices/virtual/", "/devices/pci0000:00/ata3/") if is_ours else real


class ScsiBench(Bench):
    """A loop device as a SATA or SAS drive whose log of self-tests is empty."""

    def __init__(self, loop, folder, transport):
        super().__init__(loop, folder)
        self.smart = folder / "smartctl.json"
        self.begins(result=0)
        kind, model = MODELS[transport]
        (folder / "drives.json").write_text(json.dumps({kind: {loop.path: model.new(str(loop.file))}}))
        self.transport = transport

    def begins(self, log=(), **told):
        drive = {"transport": "sata", "takes_s": 2.0, "log": list(log), **told}
        self.smart.write_text(json.dumps({self.loop.path: drive}))

    def server(self):
        return ScsiServer()


@pytest.fixture
def scsi_bench(loop_drive, tmp_path, monkeypatch):
    def make(transport, **told):
        made = ScsiBench(loop_drive(size_bytes=SIZE), tmp_path, transport)
        made.begins(transport=transport, **told)
        monkeypatch.setattr(attributes, "transport", lambda host, name: transport)
        monkeypatch.setattr(locks, "LOCK_DIR", own_machine.lock_folder(tmp_path / "locks"))
        monkeypatch.setenv(emulator.VARIABLE, str(tmp_path / "drives.json"))
        monkeypatch.setenv("SSDLAB_EMULATED_SMARTCTL", str(made.smart))
        path = [os.path.join(EMULATORS, "smartmontools"), EMULATORS, os.path.dirname(sys.executable)]
        monkeypatch.setenv("PATH", os.pathsep.join([*path, os.environ["PATH"]]))
        return made

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    yield make
    for number, handler in before.items():
        signal.signal(number, handler)


def run_scsi(bench, test):
    """The test's record, and what smartctl was told beside what only reads."""
    bench.job(bench.plan("auto", planning.load_plan([test]))).run()
    records = run_results.records(bench.run_dir, bench.server())
    with open(bench.run_dir.commands) as file:
        argvs = [json.loads(line)["argv"] for line in file]
    told = [argv[1:] for argv in argvs if argv[0] == "smartctl" and not argv[1].startswith("--json")]
    return next(one for one in records if one["kind"] == "test"), told


@pytest.mark.parametrize("log", [[], [[1, 0, 30, None]]], ids=["new", "used"])
@pytest.mark.parametrize("transport", ["sata", "sas"])
@pytest.mark.parametrize(("kind", "word"), [("short", "short"), ("extended", "long")])
def test_a_sata_or_sas_drive_tests_itself(scsi_bench, transport, log, kind, word):
    """A SAS drive that never did has no log in smartctl's JSON, only in its text."""
    bench = scsi_bench(transport, log=log, result=0)
    before = bench.digest()
    record, told = run_scsi(bench, f"self-test-{kind}")
    assert (record["outcome"], record["reasons"]) == ("complete", [])
    found = record["self_test"]
    assert (found["kind"], found["result"], found["message"]) == (kind, "passed", "completed without an error")
    assert told == [["-t", word, bench.loop.path]] and bench.digest() == before


@pytest.mark.parametrize(
    ("transport", "text"),
    [
        ("sata", "the read part failed, at LBA 764900874"),
        ("sas", "a segment after the second failed, segment 3, at LBA 764900874"),
    ],
)
def test_a_sata_or_sas_drive_that_fails_is_kept_as_evidence(scsi_bench, transport, text):
    bench = scsi_bench(transport, result=SEGMENT_FAILED)
    record, _told = run_scsi(bench, "self-test-short")
    assert (record["outcome"], record["self_test"]["message"]) == ("complete", text)
    (left,) = bench.journal("left")
    assert (left["state"], left["reason"]) == ("evidence", f"self-test-short: its short self-test failed: {text}")


@pytest.mark.parametrize("transport", ["sata", "sas"])
def test_a_sata_or_sas_drive_that_begins_none_is_an_error(scsi_bench, transport):
    bench = scsi_bench(transport, refuses=True, result=0)
    record, _told = run_scsi(bench, "self-test-short")
    assert record["outcome"] == "error" and "did not begin a self-test" in record["reasons"][0]
