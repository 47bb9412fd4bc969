# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What becomes of a test's file system on a real loop device: wiped when the test ends, and else nobody's to erase."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from host_jobs import TUNE, events
from test_filesystems import SIZE, TYPES, mounts_of, on

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import guard_check
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import engine, filesystem
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import folder as rundir
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import tuned_host
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import render_plan as planning

NODES = "/dev/ssdlab-fleet"
LONG_S = 240
JOB = """
import sys
from ansible_collections.ssdlab.fleet.plugins.module_utils.core import locks
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import engine
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import folder
locks.LOCK_DIR = sys.argv[2]
engine.HostJob(folder.RunDir.at(sys.argv[1]), Host()).run()
"""


def scanned(drive, place, run_id="other", **options):
    """What the guard says of a drive to a run."""
    entry = parse(dict(drive.selector, **options))
    (seen,) = guard_check.inspect(Host(), [entry], None, str(place.folder / "state"), run_id)
    return seen


def codes(seen):
    return {refusal["code"] for refusal in seen["refusals"]}


@contextlib.contextmanager
def mounted(drive, kind, place):
    """The drive's file system, as a user mounts it."""
    place.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", kind, drive.path, str(place)], check=True, capture_output=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def use(drive, kind, place):
    """A user mounts it and writes a file."""
    with mounted(drive, kind, place):
        (place / "report.txt").write_text("a year's work")


def is_gone(pid):
    try:
        return "State:\tZ" in Path("/proc", pid, "status").read_text()
    except FileNotFoundError:
        return True


def is_there(drive, kind, place):
    with mounted(drive, kind, place):
        return (place / "report.txt").read_text() == "a year's work"


def in_front(folder, monkeypatch, name, script):
    """A program that is found before the real one, which it gets as $REAL."""
    folder.mkdir(exist_ok=True)
    real = shutil.which(name)
    (folder / name).write_text(f"#!/bin/sh\nREAL={real}\n{script}\n")
    (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def meanwhile(jobs, plan, once, act=lambda: os.kill(os.getpid(), signal.SIGTERM)):
    """Run a job and, as soon as `once` says so, stop it or do something else: (journal, status)."""
    run = jobs.prepare(plan)
    job = engine.HostJob(run, Host())
    over = threading.Event()

    def wait():
        while not over.is_set() and not once(run):
            time.sleep(0.05)
        if not over.is_set():
            act()

    thread = threading.Thread(target=wait)
    thread.start()
    try:
        job.run()
    finally:
        over.set()
        thread.join()
    return rundir.read_journal(run.journal), run.read_status()


def killed(jobs, plan, once):
    """Run a job in a process of its own and kill it as soon as `once` says so."""
    run = jobs.prepare(plan)
    argv = [sys.executable, "-c", JOB, run.path, str(jobs.folder / "locks")]
    job = subprocess.Popen(argv, env=dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path))))
    try:
        deadline = time.monotonic() + LONG_S
        while time.monotonic() < deadline and not once(run):
            assert job.poll() is None
            time.sleep(0.05)
    finally:
        job.kill()
        job.wait()
    assert once(run)


def has_measured(run):
    return events(rundir.read_journal(run.journal), "round")


def until(true, within_s=LONG_S):
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline and not true():
        time.sleep(0.05)
    assert true()


def plan_of(jobs, drive, kind, **keys):
    return jobs.plan([drive], planning.load_plan([on(kind, **keys)]))


@pytest.mark.variants(2)
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("end", ["complete", "invalid", "error", "interrupted"])
def test_it_is_wiped_however_its_test_ends(jobs, loop_drive, kind, end, tmp_path, monkeypatch):
    """Nothing of it is left to mount, or to be taken for ours after somebody has."""
    drive = loop_drive(size_bytes=SIZE)
    long = planning.load_plan([on(kind, rounds={"max": 3 if end == "invalid" else 100})])
    if end == "interrupted":
        journal, _status = meanwhile(jobs, jobs.plan([drive], long), has_measured)
    elif end == "invalid":
        # A setting that drifts is made again at once, and the test then counts: one that stays drifted does not.
        monkeypatch.setattr(tuned_host.TunedHost, "reapply", lambda *_given: [])
        undone = Path("/sys/block", drive.name, "queue/nomerges")
        plan = jobs.plan([drive], long, tune=TUNE)
        journal, _status = meanwhile(jobs, plan, has_measured, lambda: undone.write_text("0"))
    else:
        if end == "error":
            in_front(tmp_path / "bin", monkeypatch, "nsenter", "echo no room >&2; exit 1")
        journal, _status = jobs.run(plan_of(jobs, drive, kind))
    assert jobs.ended()[-1]["outcome"] == end, jobs.ended()[-1]["reasons"]
    monkeypatch.undo()
    with pytest.raises(subprocess.CalledProcessError):
        use(drive, kind, tmp_path / "theirs")
    assert mounts_of(drive.path) == [] and not os.listdir(NODES)
    drive.detach()
    subprocess.run(["losetup", "--direct-io=on", drive.path, str(drive.file)], check=True)
    seen = scanned(drive, jobs)
    assert seen["eligible"] and seen["look"], seen["refusals"]
    (ended,) = events(journal, "filesystem_unmounted")
    assert (ended["wiped"], ended["reason"]) == (True, "")


@pytest.mark.case(102)
@pytest.mark.variants(1)
@pytest.mark.parametrize("kind", TYPES)
def test_case_102_what_a_killed_job_leaves_is_refused_until_its_entry_releases_it(jobs, loop_drive, kind, tmp_path):
    """Also for its own run, and whether or not somebody has used it since: nothing on it tells."""
    drive = loop_drive(size_bytes=SIZE)
    killed(jobs, plan_of(jobs, drive, kind, rounds={"max": 100}), has_measured)
    until(lambda: not mounts_of(drive.path))
    for use_it in (False, True):
        if use_it:
            use(drive, kind, tmp_path / "theirs")
        for run_id in ("r", "other"):
            seen = scanned(drive, jobs, run_id)
            assert codes(seen) == {"signature"}
            (message,) = (refusal["message"] for refusal in seen["refusals"])
            assert f"file system ({kind}, " in message and "of a test of run r" in message
            assert "signature] and ssd_overwrite_data: true" in message, message
    _journal, status = jobs.run(plan_of(jobs, drive, kind))
    assert status["drives"][0]["outcome"] == "refused" and is_there(drive, kind, tmp_path / "theirs")
    assert scanned(drive, jobs, allow=["signature"], ssd_overwrite_data=True)["eligible"]


@pytest.mark.case(103)
@pytest.mark.variants(1)
@pytest.mark.parametrize("kind", TYPES)
def test_case_103_who_uses_it_in_the_instant_of_the_unmount_keeps_it(jobs, loop_drive, kind, tmp_path, monkeypatch):
    """Its superblock has our UUID still, so only the kernel's count tells."""
    drive = loop_drive(size_bytes=SIZE)
    theirs = tmp_path / "theirs"
    undo = filesystem.Laid.undo

    def undone(self):
        undo(self)
        use(drive, kind, theirs)

    monkeypatch.setattr(filesystem.Laid, "undo", undone)
    # Left blank, and purged by the next test, were it ours.
    tests = planning.load_plan([on(kind), on(kind, name="next")])
    journal, status = jobs.run(dict(jobs.plan([drive], tests), leave="blank"))
    assert is_there(drive, kind, theirs) and status["drives"][0]["outcome"] == "refused"
    (ended,) = events(journal, "filesystem_unmounted")
    assert not ended["wiped"] and "wrote to it" in ended["reason"]
    assert "signature" in codes(scanned(drive, jobs))


@pytest.mark.variants(1)
@pytest.mark.parametrize("kind", TYPES)
def test_what_somebody_put_on_it_during_the_test_stays(jobs, loop_drive, kind, tmp_path):
    """Our mount is in a namespace of its own, so the drive looks unused to them."""
    drive, theirs = loop_drive(size_bytes=SIZE), tmp_path / "theirs"
    journal, _status = meanwhile(
        jobs, plan_of(jobs, drive, kind, rounds={"max": 6}), has_measured, lambda: use(drive, kind, theirs)
    )
    (ended,) = events(journal, "filesystem_unmounted")
    assert not ended["wiped"] and "are not the test's" in ended["reason"] and is_there(drive, kind, theirs)


@pytest.mark.case(104)
@pytest.mark.variants(1)
@pytest.mark.parametrize("kind", TYPES)
def test_case_104_another_node_laid_over_the_name_is_not_formatted(jobs, loop_drive, kind, tmp_path, monkeypatch):
    drive, other = loop_drive(size_bytes=SIZE), loop_drive("other", size_bytes=SIZE)
    other_before = other.digest()
    in_front(
        tmp_path / "bin", monkeypatch, f"mkfs.{kind}", f'mount --bind {other.path} {drive.path}\nexec "$REAL" "$@"'
    )
    try:
        journal, _status = jobs.run(plan_of(jobs, drive, kind))
    finally:
        subprocess.run(["umount", drive.path], check=True)
    assert other.digest() == other_before
    (finished,) = events(journal, "drive_finished")
    assert finished["outcome"] == "refused" and finished["message"].startswith("not_found")
    (ended,) = events(journal, "filesystem_unmounted")
    assert (ended["wiped"], ended["reason"]) == (True, "")
    assert codes(scanned(drive, jobs)) <= {"unsigned_data"}, scanned(drive, jobs)


@pytest.mark.variants(2)
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("begun", [True, False])
def test_a_stop_while_it_is_made_ends_that(jobs, loop_drive, kind, begun, tmp_path, monkeypatch):
    """mkfs, and what it started, which would write on; the drive does not count as hanging."""
    drive = loop_drive(size_bytes=SIZE)
    pid, gate = tmp_path / "pid", tmp_path / "gate"
    os.mkfifo(gate)
    make = '"$REAL" "$@"\n' if begun else ""
    # A child in the way, as of any wrapper: it waits for what the test never writes.
    in_front(
        tmp_path / "bin",
        monkeypatch,
        f"mkfs.{kind}",
        f"{make}cat {gate} & echo $! > {pid}.new; mv {pid}.new {pid}; wait",
    )
    # By itself it never ends.
    journal, status = meanwhile(jobs, plan_of(jobs, drive, kind), lambda _run: pid.exists())
    assert (status["drives"][0]["outcome"], jobs.ended()[-1]["outcome"]) == ("interrupted", "interrupted")
    assert is_gone(pid.read_text().strip())
    with pytest.raises(subprocess.CalledProcessError):
        use(drive, kind, tmp_path / "theirs")
    for run_id in ("r", "other"):
        assert scanned(drive, jobs, run_id)["eligible"]


def test_a_killed_job_leaves_no_mkfs_that_writes_on(jobs, loop_drive, tmp_path, monkeypatch):
    drive = loop_drive(size_bytes=SIZE)
    pid, gate = tmp_path / "pid", tmp_path / "gate"
    os.mkfifo(gate)
    wait = f'echo $$ > {pid}.new; mv {pid}.new {pid}; read line < {gate}; exec "$REAL" "$@"'
    in_front(tmp_path / "bin", monkeypatch, "mkfs.ext4", wait)
    killed(jobs, plan_of(jobs, drive, "ext4"), lambda _run: pid.exists())
    until(lambda: is_gone(pid.read_text().strip()))
