# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Qualify three simulated SSDs on this machine, and take all of it away again, also after Ctrl-C, SIGTERM or a failure.

Ends 0 exactly when the two good drives pass and the worn one fails. A demo that was killed by SIGKILL is cleaned up by
the next one, or by the argument --clean.
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts/simulator"), str(ROOT / "playbooks/collections")]

# Both folders have to be on the path first, as nothing of the project is installed.
import simulated_ssd as simulator

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import control
from ansible_collections.ssdlab.fleet.plugins.module_utils.run.folder import RunDir, run_ids

PREFIX = "ssd-demo."
RESULTS = ROOT / "ssd-results"
# So slow that all three at once take a third of a CPU at most, and that 64 requests keep a drive busy for much longer
# than a busy machine keeps a program waiting: 0.1 s fresh, 0.28 s mixed, 0.43 s worn in.
ALIKE = {"size_bytes": 12 * 2**20, "fresh_iops": 600, "steady_iops": 150, "read_iops": 150}
DRIVES = {
    "good-1": {**ALIKE, "seed": 1},
    "good-2": {**ALIKE, "seed": 2},
    "worn": {**ALIKE, "seed": 3, "steady_iops": 75},
}
EXPECTED = {"good-1": "pass", "good-2": "pass", "worn": "fail"}
# How long ansible-playbook gets to end by itself, and its modules and the host job after it.
PATIENCE_S = 15


class Stopped(Exception):
    """A signal asked the demo to end; its number is the only argument."""


def main(arguments):
    handle_signals(stop)
    if arguments == ["--clean"]:
        clean_after_killed_demos()
        say("nothing of killed demos is left")
        return 0
    playbook, number = None, 0
    directory = Path(tempfile.mkdtemp(prefix=PREFIX))
    lock = take_lock(directory)
    try:
        say(
            f"its drives are in {directory}, and go when it ends, also by Ctrl-C or SIGTERM. "
            "Should it be killed (kill -9), run scripts/demo --clean"
        )
        clean_after_killed_demos()
        for name, figures in DRIVES.items():
            with signals_wait():  # a losetup whose parent was interrupted would attach a device that nobody knows
                simulator.create(directory, name, simulator.model_plugin(**figures))
        run_id = new_run_id()
        playbook = start_playbook(directory, run_id)
        playbook.wait()
        return verdict(run_id)
    except Stopped as stopped:
        number = stopped.args[0]
        say(f"ended by {signal.Signals(number).name}, cleaning up")
        return 128 + number
    finally:
        handle_signals(signal.SIG_IGN)
        end_playbook(playbook)
        try:
            clean_up(directory)
        except simulator.SimulatorError as error:
            say(f"{error}. Then run scripts/demo --clean")
            raise SystemExit(1) from error
        if number:
            say("cleaned up: nothing of it is left but what is in ssd-results/")
        lock.close()


def say(text):
    print(f"demo: {text}", file=sys.stderr, flush=True)


def new_run_id():
    """An id that no other demo has, with its folder: two that start in one second would take each other's run for
    theirs.
    """
    while True:
        run_id = f"{datetime.datetime.now(datetime.timezone.utc):%Y%m%dT%H%M%SZ}-demo"
        with contextlib.suppress(FileExistsError):
            (RESULTS / run_id).mkdir(parents=True)
            return run_id
        time.sleep(0.5)


def stop(number, _frame):
    raise Stopped(number)


@contextlib.contextmanager
def signals_wait():
    """Let the block end before a signal stops the demo."""
    numbers = []
    handle_signals(lambda number, _frame: numbers.append(number))
    try:
        yield
    finally:
        handle_signals(stop)
        if numbers:
            raise Stopped(numbers[0])


def handle_signals(handler):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, handler)


def start_playbook(directory, run_id):
    variables = {
        "ssd_mode": "destructive",
        "ssd_demo_dir": directory,
        "ssd_state_dir": directory / "state",
        "ssd_results_dir": RESULTS,
        "ssd_run_name": "demo",
        "ssd_run_id": run_id,
    }
    command = ["ansible-playbook", "playbooks/qualify.yml", "--inventory=inventories/demo"]
    for name, value in variables.items():
        command += ["--extra-vars", extra_variable(name, value)]
    # Modules run from below the demo's folder, so that clean_up() finds those that outlive the playbook.
    environment = {
        **os.environ,
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_REMOTE_TEMP": f"{directory}/modules",
    }
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, start_new_session=True)


def extra_variable(name, value):
    """One of ansible-playbook's, whatever blanks are in its value."""
    return json.dumps({name: str(value)})


def end_playbook(playbook):
    """End ansible-playbook if it still runs; the host job is not its child and is ended by clean_up()."""
    for number in (signal.SIGINT, signal.SIGKILL):
        if playbook is None or playbook.poll() is not None:
            return
        os.killpg(playbook.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            playbook.wait(PATIENCE_S)


def verdict(run_id):
    """Print what became of each drive; 0 when it is what the demo is to show."""
    report = RESULTS / run_id / "report"
    try:
        drives = json.loads((report / "summary.json").read_text())["drives"]
    except OSError as error:
        say(f"no report: {error}")
        return 1
    found = {Path(drive["drive"]).parent.name: drive["verdict"] for drive in drives}
    print("\nThe demo's drives:")
    for name, wanted in EXPECTED.items():
        print(f"  {name:8} {found.get(name)}" + ("" if found.get(name) == wanted else f"   (expected: {wanted})"))
    give_to_caller(RESULTS)
    print(f"Report: {report / 'index.html'}")
    if "invalid" in found.values():
        print("Invalid: no measurement of it counts; the reason is above. On a busy machine, try with less beside it.")
    if found != EXPECTED:
        return 1
    print("As it should be: the worn drive fails its criterion, which is what fails the play above.")
    return 0


def give_to_caller(folder):
    """Under sudo the results belong to the user who called it."""
    if "SUDO_UID" in os.environ:
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, int(os.environ["SUDO_UID"]), int(os.environ["SUDO_GID"]), follow_symlinks=False)


def take_lock(directory):
    """Hold the folder's lock as long as this process lives: it tells a running demo from one that was killed."""
    directory.chmod(0o755)
    lock = open(directory / "lock", "wb")
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return lock


def clean_after_killed_demos():
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/lock"):
        # Anybody may put a link here that leads to a folder of ours.
        folder = path.parent.lstat()
        if not stat.S_ISDIR(folder.st_mode) or folder.st_uid != os.geteuid() or path.is_symlink():
            continue
        with open(path, "rb") as lock, contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            say(f"cleaning up after a killed demo: {path.parent}")
            clean_up(path.parent)


def clean_up(directory):
    """Stop the host job, which restores the host, then take the drives and the folder away."""
    end_jobs(directory)
    simulator.destroy(directory)
    shutil.rmtree(directory, ignore_errors=True)


def end_jobs(directory):
    """End the host job, and what outlived the demo's playbook: one of these may be starting a job just now, hence the
    second look.
    """
    host, state_dir = Host(), str(directory / "state")
    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        for run_id in run_ids(state_dir):
            control.stop(host, RunDir(state_dir, run_id))
        left = processes_of(directory)
        if not left:
            return
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM if time.monotonic() < deadline_s else signal.SIGKILL)
        time.sleep(0.2)


def processes_of(directory):
    """Living processes of a demo: its playbook, and programs of its folder (Ansible's modules, the engine)."""
    folders = tuple(f"{directory}/{name}/" for name in ("modules", "state"))
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = entry.read_bytes().decode(errors="replace").split("\0")
            program = os.path.basename(words[0])  # a pager that shows a file of the demo is somebody else's
            named = any(word.startswith(folders) or word == extra_variable("ssd_demo_dir", directory) for word in words)
            if named and program.startswith(("python", "fio")):
                found.append(int(entry.parent.name))
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
