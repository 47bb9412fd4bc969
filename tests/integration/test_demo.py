# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""scripts/demo: what it shows when left alone, and that nothing stays behind when it is not (root, loop, FUSE)."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
import run_demo
from waiting import sizes, wait_for_end, wait_until, works

DEMO = Path(__file__).resolve().parents[2] / "scripts/demo"
LOCKS = Path("/run/ssdlab-fleet")


@pytest.fixture(name="folder")
def fixture_folder(tmp_path):
    """Where a test's demos put their drives. A test that fails leaves nothing either."""
    yield tmp_path
    for path in tmp_path.glob("ssd-demo.*"):
        run_demo.clean_up(path)


def start(folder, *before, **environment):
    """Start the demo with its drives below the folder, by the command before it."""
    return subprocess.Popen(
        [*before, str(DEMO)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "TMPDIR": str(folder), **environment},
    )


def finish(process, folder):
    """Its exit code and output."""
    output, _no_errors = wait_for_end(process, "the demo", progress(process, folder), end=process.terminate)
    return process.returncode, output


def progress(process, folder):
    """What a demo computes, and what its host jobs write."""
    moved, written = works(process.pid), sizes((folder, "ssd-demo.*/state/runs/*/journal.jsonl"))
    return lambda: (moved(), written())


def left_behind(folder):
    """What refers to the folder, and the locks of any demo's host job."""
    text = str(folder)
    found = [str(path) for path in folder.glob("ssd-demo.*")]
    found += [
        path.read_text() for path in Path("/sys/block").glob("loop*/loop/backing_file") if text in path.read_text()
    ]
    found += [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if text in line]
    found += [str(path) for path in LOCKS.glob("*.lock") if '-demo"' in path.read_text()]
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = entry.read_bytes().decode(errors="replace").replace("\0", " ")
        except OSError:
            continue
        if text in command:
            found.append(command)
    return found


def reached(condition, process, folder):
    """Wait until a demo is there."""
    wait_until(condition, "the demo's stage", progress(process, folder), process, lambda: process.communicate()[0])


def drive_file(folder):
    return any(folder.glob("ssd-demo.*/good-1/drive"))


def measuring(folder):
    statuses = [json.loads(path.read_text()) for path in folder.glob("ssd-demo.*/state/runs/*/status.json")]
    return any(drive["phase"] == "measure" and drive["round"] >= 2 for status in statuses for drive in status["drives"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("stage", [drive_file, measuring])
def test_a_signal_leaves_nothing_behind(folder, stage, number):
    process = start(folder)
    reached(lambda: stage(folder), process, folder)
    process.send_signal(number)
    code, output = finish(process, folder)
    assert code == 128 + number, output
    assert f"ended by {signal.Signals(number).name}" in output and "cleaned up: nothing of it is left" in output
    assert not left_behind(folder)


def test_in_a_container_its_own_drives_are_not_refused(folder):
    """Where the guard can't see users outside."""
    outside = start(folder, "unshare", "--pid", "--fork", "--mount-proc")
    reached(lambda: measuring(folder), outside, folder)
    inside = int(Path(f"/proc/{outside.pid}/task/{outside.pid}/children").read_text())
    os.kill(inside, signal.SIGTERM)
    code, output = finish(outside, folder)
    assert code == 128 + signal.SIGTERM, output
    assert not left_behind(folder)


def test_a_failure_leaves_nothing_behind(folder):
    code, output = finish(start(folder, ANSIBLE_CALLBACKS_ENABLED="ansible.builtin.default"), folder)
    assert code == 1 and "callbacks_enabled" in output, output
    assert not left_behind(folder)


def killed_one(folder):
    """A demo that was killed while it measured, after it had said what to do then."""
    killed = start(folder)
    reached(lambda: measuring(folder), killed, folder)
    killed.kill()
    assert "run scripts/demo --clean" in next(line for line in killed.stdout if line.startswith("demo: "))
    return killed


def test_a_killed_demo_is_cleaned_up_by_the_command_that_it_named(folder):
    killed = killed_one(folder)
    assert left_behind(folder)
    environment = {**os.environ, "TMPDIR": str(folder)}
    done = subprocess.run([str(DEMO), "--clean"], capture_output=True, text=True, env=environment, check=True)
    killed.communicate()
    assert "cleaning up after a killed demo" in done.stderr
    assert not left_behind(folder)


def test_the_next_demo_cleans_up_after_a_killed_one(folder):
    killed = killed_one(folder)
    remains = next(folder.glob("ssd-demo.*"))
    assert left_behind(folder)
    following = start(folder)
    reached(lambda: not remains.exists() and drive_file(folder), following, folder)
    following.terminate()
    _code, output = finish(following, folder)
    killed.communicate()
    assert "cleaning up after a killed demo" in output
    assert not left_behind(folder)


def test_a_link_of_somebody_elses_is_not_followed(folder, monkeypatch):
    """Anybody may put things into /tmp under the demo's name: they lead the demo's cleaning nowhere."""
    precious, cleaned = folder / "precious", []
    (precious / "state").mkdir(parents=True)
    (precious / "lock").write_text("mine")
    (folder / "ssd-demo.link").symlink_to(precious)
    (folder / "ssd-demo.inside").mkdir()
    (folder / "ssd-demo.inside" / "lock").symlink_to(precious / "lock")
    other = folder / "ssd-demo.other"
    other.mkdir()
    (other / "lock").touch()
    os.chown(other, 12345, 12345)
    killed = folder / "ssd-demo.killed"
    killed.mkdir()
    (killed / "lock").touch()
    monkeypatch.setattr(run_demo.tempfile, "tempdir", str(folder))
    monkeypatch.setattr(run_demo, "clean_up", cleaned.append)
    run_demo.clean_after_killed_demos()
    assert cleaned == [killed] and (precious / "lock").read_text() == "mine"
    monkeypatch.undo()
    for path in (folder / "ssd-demo.link", folder / "ssd-demo.inside" / "lock"):
        path.unlink()


@pytest.mark.exclusive(depth=32, iops=700)
def test_two_pass_and_the_worn_one_fails(folder):
    code, output = finish(start(folder), folder)
    assert code == 0, output
    assert not left_behind(folder)
    report = Path(re.search(r"^Report: (.+)/index\.html$", output, re.MULTILINE)[1])
    summary = json.loads((report / "summary.json").read_text())
    assert [(Path(drive["drive"]).parent.name, drive["verdict"]) for drive in summary["drives"]] == [
        ("good-1", "pass"),
        ("good-2", "pass"),
        ("worn", "fail"),
    ]
    records = [json.loads(line) for line in (report.parent / "raw/demo/journal.jsonl").read_text().splitlines()]
    # Side by side: the last drive begins its first test before the first one ends its own.
    tests = [record for record in records if record["event"] in ("test_started", "test_finished")]
    assert [record["event"] for record in tests[:3]] == ["test_started"] * 3
    rates = [
        record["write"]["iops"]
        for record in records
        if record["event"] == "cell" and record["test"] == "wsat" and "good-1" in record["drive"]
    ]
    # Fresh, transition, steady: as the simulated drive is made. A busy machine may hold each rate down, but lifts none.
    fresh, steady = run_demo.ALIKE["fresh_iops"], run_demo.ALIKE["steady_iops"]
    assert max(rates[:2]) > 0.625 * fresh and 0.86 * steady < rates[-1] < 1.05 * steady
    assert any(1.3 * steady < rate < 0.7 * fresh for rate in rates)
