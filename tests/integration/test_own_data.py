# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our own data on real loop devices: a drive can be qualified night after night, an interrupted run goes on, foreign
data is refused.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from command_log import destructive

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import deadline, files, locks
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import filler, inspection, ledger_file, own_data
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import control, engine
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge.sentinels import Sentinels
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import decision
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import folder as rundir
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import settings
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import render as planning

COLLECTIONS = Path(__file__).resolve().parents[2] / "playbooks" / "collections"
# A host job of a process of its own, with locks of the test's.
JOB = (
    "import os, sys; from ansible_collections.ssdlab.fleet.plugins.module_utils.core import locks; "
    "from ansible_collections.ssdlab.fleet.plugins.module_utils.job import campaign, engine; "
    "locks.LOCK_DIR = sys.argv[1]; exec(sys.argv[3]); sys.exit(engine.main(['run', sys.argv[2]]))"
)
QUICK = dict(
    name="quick",
    purge={"method": "none"},
    precondition={"passes": 1},
    cells=[
        {
            "access": "random",
            "block_size": "4KiB",
            "read_pct": 0,
            "threads": 1,
            "queue_depth": 4,
            "runtime_s": 1,
            "rate_iops": 200,
        }
    ],
    steady_state=False,
    rounds={"max": 1},
)
# It fills the drive with random data, and then writes slowly until somebody ends it.
LONG = {
    "name": "long",
    "purge": {"method": "none"},
    "precondition": {"passes": 1},
    "cells": [
        {
            "access": "random",
            "block_size": "4KiB",
            "read_pct": 0,
            "threads": 1,
            "queue_depth": 1,
            "runtime_s": 60,
            "rate_iops": 50,
        }
    ],
    "steady_state": False,
    "rounds": {"max": 1},
}


class Lab:
    """One drive, one state folder, any number of runs."""

    def __init__(self, folder, drive):
        self.folder, self.drive, self.state = folder, drive, str(folder / "state")
        self.options = {}

    def inspect(self, state=True):
        (seen,) = inspection.inspect(
            Host(), [dict(self.drive.selector, **self.options)], state_dir=self.state if state else None
        )
        return seen

    def codes(self, **options):
        return [refusal["code"] for refusal in self.inspect(**options)["refusals"]]

    def prepare(self, run_id, tests=None, **changes):
        plan = planning.render(
            tests or planning.step_plan("precondition", {"precondition_passes": 1}),
            run={"id": run_id, "name": "n"},
            host="h",
            boot_id=settings.boot_id(Host()),
            drives=[self.inspect()],
            engine_version="1",
            variables={},
            tune={"cpu_dma_latency_us": None, "services_stopped": [], "sysfs": [], "keep": False},
        )
        run = rundir.RunDir(self.state, run_id)
        os.makedirs(run.path, exist_ok=True)
        files.write_atomic(run.plan, json.dumps(dict(plan, **changes, decision=decision.made(dict(plan, **changes)))))
        return run

    def attach(self):
        """Attach the drive's file; it may get another number."""
        self.drive.path = subprocess.run(
            ["losetup", "--find", "--show", "--direct-io=on", str(self.drive.file)],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()

    def reattach(self):
        """Detach and attach: another diskseq, counters from zero."""
        self.drive.detach()
        self.attach()

    def put(self, offset, data):
        """Write through the device; what was there before."""
        with open(self.drive.path, "r+b", buffering=0) as device:
            was = os.pread(device.fileno(), len(data), offset)
            os.pwrite(device.fileno(), data, offset)
            os.fsync(device.fileno())
        return was

    def write_past(self, offset, data):
        """Write through the file behind the drive, which no counter sees."""
        with open(self.drive.file, "r+b") as file:
            file.seek(offset)
            file.write(data)

    def rewrite(self, **fields):
        (path,) = Path(self.state, "drives").glob("*.json")
        path.write_text(json.dumps(dict(json.loads(path.read_text()), **fields)))

    def refused(self, run_id, *codes):
        """Preflight refuses it with these codes, and so does the host job of a run; its data is what it was, and
        nothing was run that could change it.
        """
        digest, before = self.drive.digest(), len(self.commands(run_id))
        named = {refusal["code"] for refusal in self.inspect()["refusals"]}
        assert named == set(codes), self.inspect()["refusals"]
        outcome, journal = self.run(run_id)
        last = [record for record in journal if record["event"] == "guard"][-1]
        assert outcome == "refused" and {refusal["code"] for refusal in last["refusals"]} == set(codes)
        assert self.drive.digest() == digest
        ran = self.commands(run_id)[before:]
        assert ran and not [argv for argv in ran if destructive(argv)], ran

    def commands(self, run_id):
        path = Path(rundir.RunDir(self.state, run_id).path, "commands.jsonl")
        return [json.loads(line)["argv"] for line in path.read_text().splitlines()] if path.exists() else []

    def run(self, run_id, **changes):
        """Run a host job to its end; the drive's outcome and the run's journal."""
        run = self.prepare(run_id, **changes)
        engine.HostJob(run, Host()).run()
        (drive,) = run.read_status()["drives"]
        return drive["outcome"], rundir.read_journal(run.journal)

    def kill_one(self, run_id, *tests, dies="", **changes):
        """Start a run and kill its job with SIGKILL while it measures the test LONG, its last; or `dies`: what makes it
        end by itself.
        """
        run = self.prepare(run_id, planning.load_plan([*tests, *([] if dies else [LONG])]), **changes)
        argv = [sys.executable, "-c", JOB, str(self.folder / "locks"), run.path, dies]
        with subprocess.Popen(argv, env=dict(os.environ, PYTHONPATH=str(COLLECTIONS))) as job:
            try:
                deadline = time.monotonic() + 120
                while not any(
                    (record["event"], record.get("test")) == ("precondition", "long")
                    for record in rundir.read_journal(run.journal)
                ):
                    assert time.monotonic() < deadline
                    if job.poll() is not None:
                        assert dies and job.returncode == 9, Path(run.log).read_text()
                        break
                    time.sleep(0.1)
            finally:
                job.send_signal(signal.SIGKILL)
        self.await_free()
        return run

    def await_free(self):
        """fio dies with its job, but not at once."""
        deadline = time.monotonic() + 30
        while {"opened", "busy"} & set(self.codes()):
            assert time.monotonic() < deadline
            time.sleep(0.2)

    def entry(self):
        (path,) = Path(self.state, "drives").glob("*.json")
        return json.loads(path.read_text())

    def has_entry(self):
        return any(Path(self.state, "drives").glob("*.json"))


@pytest.fixture
def lab(tmp_path, monkeypatch, loop_drive):
    monkeypatch.setattr(locks, "LOCK_DIR", str(tmp_path / "locks"))
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    yield Lab(tmp_path, loop_drive(size_bytes=32 << 20))
    for number, handler in before.items():
        signal.signal(number, handler)


NIGHTS = ("one", "two", "three")


def fill_that_begins(head):
    """A sector that keeps the law of fio's fill (guard/filler.py) and begins with these bytes, as a fill
    may by chance.
    """
    law = filler.LAWS[0]
    words = list(struct.unpack(f"<{law.distance}Q", head + os.urandom(law.distance * 8 - len(head))))
    while len(words) < 64:
        words.append(words[-law.distance] * law.factor % 2**64)
    return struct.pack("<64Q", *words)


LUKS = b"LUKS\xba\xbe\0\1"


def test_a_superblock_that_is_in_our_fill_by_chance(lab):
    assert lab.run("one")[0] == "complete"
    lab.write_past(0, fill_that_begins(LUKS))
    assert lab.codes() == [] and "signature" in lab.codes(state=False)
    # The same bytes in a block that no fill explains, or with foreign data where a partition would begin.
    lab.write_past(0, LUKS + os.urandom(504))
    assert lab.codes() == ["signature"]
    lab.write_past(0, fill_that_begins(LUKS))
    lab.write_past((1 << 20) + 65536, b"data")
    assert lab.codes() == ["signature"]


def test_a_drive_can_be_qualified_night_after_night(lab):
    for night in NIGHTS:
        assert lab.run(night)[0] == "complete"
        assert lab.codes() == [] and lab.codes(state=False) == ["unsigned_data"]
        assert (lab.inspect()["own_data"]["run_id"], lab.entry()["state"]) == (night, "released")


def test_nights_over_a_reattach_and_a_reboot_need_no_excuse(lab):
    """What fio filled proves itself: another diskseq, or another boot id in the ledger, as a reboot leaves it."""
    for night in NIGHTS:
        assert lab.run(night)[0] == "complete"
        lab.reattach()
        lab.rewrite(written=dict(lab.entry()["written"], boot_id="the boot before"))
        assert lab.inspect()["own_data"]["proved"] == "content" and lab.codes() == []


def test_every_byte_of_the_fill_counts(lab):
    """One byte that fio did not write, in the middle of a drive that is full of its data."""
    lab.run("one")
    lab.reattach()  # else the kernel's counters alone would tell
    for place in (0, 4096 * 777 + 7, (32 << 20) - 1):
        was = lab.put(place, b"\x5a")
        lab.refused(f"two-{place}", "unsigned_data")
        lab.put(place, was)
        assert lab.codes() == []


def test_the_entry_gives_foreign_data_up(lab):
    lab.run("one")
    lab.put(20 << 20, b"foreign")
    lab.options = {"ssd_overwrite_data": True}
    assert lab.codes() == []
    outcome, journal = lab.run("two")
    found = [record["overridden"] for record in journal if record["event"] == "guard"]
    assert outcome == "complete" and [item["code"] for item in found[0]] == ["unsigned_data"]
    lab.options = {}
    assert lab.codes() == []


# --- what is not ours ---------------------------------------------------------


def raw(lab):
    lab.put(17 << 20, os.urandom(8 << 20))


def file_system(lab):
    subprocess.run(["mkfs.ext4", "-q", lab.drive.path], check=True)


def wiped_file_system(lab):
    """As somebody leaves it who took the drive into use and gave it back."""
    file_system(lab)
    lab.put(20 << 20, b"somebody's letter " * 5000)
    subprocess.run(["wipefs", "-aq", lab.drive.path], check=True)


def another_file(lab):
    lab.drive.detach()
    other = lab.drive.file.with_suffix(".other")
    other.write_bytes(os.urandom(32 << 20))
    os.replace(other, lab.drive.file)
    lab.attach()


def reattached(lab):
    raw(lab)
    lab.reattach()


FOREIGN = [
    (raw, "unsigned_data"),
    (file_system, "signature"),
    (wiped_file_system, "signature"),
    (another_file, "unsigned_data"),
    (reattached, "unsigned_data"),
]


@pytest.mark.case(51)
@pytest.mark.parametrize("stage, code", FOREIGN, ids=lambda value: getattr(value, "__name__", value))
def test_case_51_a_dead_run_is_not_resumed_over_foreign_data(lab, stage, code):
    """The codes: unsigned_data, or signature."""
    lab.kill_one("one")
    stage(lab)
    lab.refused("one", code)


@pytest.mark.case(52)
@pytest.mark.parametrize("end", ["stop", "cleanup"])
def test_case_52_nor_after_stop_or_cleanup(lab, end):
    run = lab.kill_one("one")
    assert lab.entry()["state"] == "writing"
    control.stop(Host(), run)
    if end == "cleanup":
        control.remove(Host(), run)
    assert lab.entry()["state"] == "released" and lab.entry()["written"] is None
    raw(lab)
    lab.refused("one", "unsigned_data")
    lab.refused("two", "unsigned_data")


@pytest.mark.case(53)
def test_case_53_raw_data_written_while_it_was_attached_anew(lab):
    lab.run("one")
    lab.reattach()
    raw(lab)
    lab.refused("two", "unsigned_data")


@pytest.mark.case(54)
def test_case_54_written_while_the_kernel_did_not_count(lab):
    lab.run("one")
    switch = Path("/sys/block", lab.drive.name, "queue/iostats")
    switch.write_text("0")
    with open(lab.drive.path, "r+b", buffering=0) as device:
        device.seek(9 << 20)
        device.write(os.urandom(4096))
    switch.write_text("1")
    lab.refused("two", "unsigned_data")


@pytest.mark.case(55)
def test_case_55_written_through_the_file_behind_it(lab):
    lab.run("one")
    with open(lab.drive.file, "r+b") as file:
        file.seek(21 << 20)
        file.write(os.urandom(4096))
    lab.refused("two", "unsigned_data")


@pytest.mark.case(56)
def test_case_56_a_late_restore_declares_nothing_ours(lab):
    """`engine restore FOLDER`, by hand, hours later; with the codes signature and unsigned_data."""
    run = lab.kill_one("one")
    file_system(lab)
    restore(run)
    lab.refused("one", "signature")
    lab.refused("two", "signature")
    subprocess.run(["wipefs", "-aq", lab.drive.path], check=True)
    restore(run)
    lab.refused("one", "signature")  # the copies of its superblock
    lab.options = {"allow": ["signature"]}
    lab.refused("one", "unsigned_data")


@pytest.mark.case(57)
def test_case_57_kept_as_evidence_until_it_is_released(lab):
    """A missed criterion: neither a later run nor another night erases it (evidence), until its entry names the run."""
    outcome, journal = lab.run(
        "one", tests=planning.load_plan([QUICK]), criteria=[{"metric": "write_iops", "min": 1e9}], leave="blank"
    )
    assert outcome == "complete" and [record["state"] for record in journal if record["event"] == "left"] == [
        "evidence"
    ]
    lab.refused("two", "evidence")
    assert (
        "write_iops" in lab.inspect()["refusals"][0]["message"] and "run one" in lab.inspect()["refusals"][0]["message"]
    )
    lab.reattach()
    lab.refused("three", "evidence")
    lab.options = {"release_evidence": "another-run"}
    lab.refused("four", "evidence")
    lab.options = {"release_evidence": "one"}
    assert lab.codes() == [] and lab.run("five")[0] == "complete"
    lab.options = {}
    assert lab.codes() == []


MISSED = [{"test": "quick", "metric": "write_iops", "min": 1e9}]


@pytest.mark.case(57)
@pytest.mark.parametrize("end", ["stop", "nothing"])
def test_case_57_evidence_of_a_run_that_was_killed(lab, end):
    """One test missed a criterion, then the job died in the next: evidence, also once the run is stopped. The run
    itself may go on.
    """
    run = lab.kill_one("one", QUICK, criteria=MISSED)
    assert "evidence" in lab.codes() and "write_iops" in lab.entry()["reason"]
    (seen,) = inspection.inspect(Host(), [lab.drive.selector], state_dir=lab.state, run_id="one")
    assert seen["eligible"], seen["refusals"]
    if end == "stop":
        control.stop(Host(), run)
        assert lab.entry()["state"] == "evidence"
        lab.refused("two", "evidence")
        lab.options = {"release_evidence": "one"}
        assert lab.codes() == []
    else:
        lab.refused("two", "evidence")


@pytest.mark.case(57)
def test_case_57_evidence_of_a_run_that_died_at_its_end(lab):
    """Between its last result and how it leaves the drive: the same run, played again, has nothing left to do, and the
    drive stays evidence.
    """
    run = lab.kill_one("one", QUICK, criteria=MISSED, dies="campaign.Campaign._leave = lambda self: os._exit(9)")
    assert lab.entry()["state"] == "writing"
    engine.HostJob(run, Host()).run()
    assert run.read_status()["drives"][0]["outcome"] == "complete" and lab.entry()["state"] == "evidence"
    lab.refused("two", "evidence")


def test_a_run_that_died_at_its_end_keeps_nobody_out(lab):
    run = lab.kill_one("one", QUICK, dies="campaign.Campaign._leave = lambda self: os._exit(9)")
    assert lab.codes() == ["unsigned_data"]
    engine.HostJob(run, Host()).run()
    assert lab.codes() == [] and lab.run("two")[0] == "complete"


@pytest.mark.case(58)
def test_case_58_a_fill_that_no_run_of_this_host_left(lab):
    """Random data of fio on a drive that the ledger does not know: somebody's test may be under way."""
    fio = [
        "fio",
        "--name=x",
        "--filename=" + lab.drive.path,
        "--rw=write",
        "--bs=128k",
        "--refill_buffers=1",
        "--direct=1",
    ]
    subprocess.run(fio, check=True, stdout=subprocess.DEVNULL)
    lab.refused("one", "unsigned_data")


@pytest.mark.case(59)
def test_case_59_noise_proves_nothing(lab):
    """A crypto erase may leave noise; in another boot, or behind a file, nobody can tell it from somebody's encrypted
    data.
    """
    lab.run("one")
    lab.put(0, os.urandom(32 << 20))
    lab.refused("two", "unsigned_data")


@pytest.mark.case(53)
def test_case_53_a_drive_that_is_larger_now(lab):
    """A resized namespace, a clipped capacity that was opened: what no run of ours wrote came to light."""
    lab.run("one")
    with open(lab.drive.file, "ab") as file:
        file.write(b"the rest of somebody's data".ljust(1 << 20, b"."))
    subprocess.run(["losetup", "--set-capacity", lab.drive.path], check=True)
    lab.refused("two", "unsigned_data")


@pytest.mark.parametrize("waits", [False, True], ids=["looking", "waiting for another look"])
def test_a_stop_ends_a_long_look(lab, loop_drive, monkeypatch, waits):
    """It is told as stopped, not as a drive that hangs."""
    lab.drive = loop_drive("large", size_bytes=512 << 30)
    run = lab.prepare("one", look={"seconds": None})
    monkeypatch.setattr(deadline, "STOP_GRACE_S", 3.0)
    with contextlib.ExitStack() as other:
        if waits:
            other.enter_context(locks.look_lock(lab.drive.name))
        threading.Timer(8.0, os.kill, (os.getpid(), signal.SIGTERM)).start()
        began = time.monotonic()
        engine.HostJob(run, Host()).run()
    status = run.read_status()
    assert (status["state"], status["drives"][0]["outcome"], status["drives"][0]["message"]) == (
        "stopped",
        "interrupted",
        "the run was stopped",
    )
    assert 8 <= time.monotonic() - began < 14 and not lab.has_entry()


# --- how a run leaves a drive -------------------------------------------------


@pytest.mark.parametrize("leave, state", [("blank", "blank"), ("as_is", None)])
def test_a_drive_that_did_well_is_left_as_asked(lab, leave, state):
    outcome, journal = lab.run("one", tests=planning.load_plan([QUICK]), leave=leave)
    left = [record for record in journal if record["event"] == "left"]
    assert outcome == "complete" and [record["state"] for record in left] == ([state] if state else [])
    assert lab.codes(state=False) == ([] if state else ["unsigned_data"]) and lab.codes() == []


def test_what_is_not_valid_is_left_as_it_is(lab):
    tracked = [{"block_size": "4KiB", "read_pct": 0, "metric": "write_mean_latency_us"}]
    test = dict(QUICK, steady_state={"tracked": tracked, "range_limit": 1e-9}, rounds={"max": 5})
    _outcome, journal = lab.run("one", tests=planning.load_plan([test]), leave="blank")
    (left,) = [record for record in journal if record["event"] == "left"]
    assert (left["state"], left["reason"]) == ("as_is", "quick ended not_steady") and lab.codes(state=False) == [
        "unsigned_data"
    ]


def test_sentinels_of_a_purge_that_was_cut_are_ours(lab):
    """A job that dies between planting them and the purge leaves random blocks, both ends of the drive among them."""
    lab.run("one")
    identity = lab.inspect()["identity"]
    before = own_data.begin(Host(), lab.state, identity, "two")
    sentinels = Sentinels(identity["size_bytes"], identity["logical_block_size_bytes"])
    own_data.note(before, identity, "", sentinels.blocks())
    handle = os.open(lab.drive.path, os.O_RDWR | os.O_DIRECT)
    sentinels.plant(handle)
    os.close(handle)
    (seen,) = inspection.inspect(Host(), [lab.drive.selector], state_dir=lab.state, run_id="two")
    assert seen["eligible"] and seen["own_data"]["proved"] == "content"
    lab.put(0, b"x")
    (seen,) = inspection.inspect(Host(), [lab.drive.selector], state_dir=lab.state, run_id="two")
    assert not seen["eligible"]


def test_a_ledger_that_somebody_else_may_write_does_not_count(lab):
    lab.run("one")
    os.chmod(lab.state, 0o777)
    assert lab.codes() == ["untrusted_state"]


def test_a_killed_run_goes_on_and_no_other_run_may(lab):
    lab.kill_one("one")
    assert lab.entry()["state"] == "writing" and lab.codes() == ["unsigned_data"]
    assert lab.inspect()["own_data"]["run_id"] == "one"
    lab.refused("two", "unsigned_data")
    # As after a reboot: another boot id, and names may be others.
    lab.reattach()
    assert lab.run("one", boot_id="another-boot")[0] == "complete"
    assert lab.codes() == []


def restore(run):
    """What systemd's ExecStopPost does after the job."""
    assert engine.main(["restore", run.path]) == 0


def test_a_killed_run_that_was_stopped_leaves_its_drive_to_others(lab):
    run = lab.kill_one("one")
    restore(run)
    assert lab.codes() == ["unsigned_data"]
    control.stop(Host(), run)
    assert lab.codes() == [] and lab.run("two")[0] == "complete"


def test_a_refused_drive_is_never_claimed(lab):
    subprocess.run(["mkfs.ext4", "-q", lab.drive.path], check=True)
    assert lab.run("one")[0] == "refused"
    assert ledger_file.read(lab.state, lab.inspect()["identity"]) is None
