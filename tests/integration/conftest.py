# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Loop devices of a test's own, and the project's playbooks run against this machine."""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import cells
import control_drive
import drive_data
import holding
import leftovers
import own_machine
import pytest
import quick_fio
from host_jobs import HostJobs
from hostile import BAD, GOOD, hostile_python
from play_server import PlayServer
from waiting import STALL_S, sizes, wait_for_end, works
from wrong_drive import Bench

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import locks
from ansible_collections.ssdlab.fleet.tests.fixtures import run_results

REPO = Path(__file__).resolve().parents[2]
MIB = 1 << 20
# Tests of other versions of Ansible have other tools.
TOOLS = Path(sys.executable).parent
PLAYS = PlayServer()

SHORT_TEST = {
    "name": "short",
    "title": "Short",
    "purge": {"method": "auto"},
    "precondition": {"passes": 2},
    "cells": [
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
    "steady_state": {"tracked": [{"block_size": "4KiB", "read_pct": 0, "metric": "write_iops"}], **cells.ANY_RATES},
    "rounds": {"max": 8},
}


def pytest_configure(config):
    """Each process that runs tests gets a machine of its own; pytest-xdist's controller runs none."""
    plugins = config.pluginmanager
    if plugins.has_plugin("own_machine"):
        return  # tests/compat has these hooks too
    plugins.register(own_machine, "own_machine")
    if plugins.has_plugin("xdist"):
        plugins.register(importlib.import_module("distribution"), "distribution")
    runs_tests = hasattr(config, "workerinput") or not config.getoption("numprocesses", None)
    if runs_tests:
        quick_fio.enter()
        config.add_cleanup(quick_fio.leave)
    if runs_tests and os.geteuid() == 0:
        own_machine.enter()
        config.add_cleanup(own_machine.leave)
    if runs_tests:
        control_drive.register(config)


def pytest_sessionstart(session):
    """What is made in the tests' temporary folders is theirs."""
    leftovers.claim(session.config._tmp_path_factory.getbasetemp())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Of the variants of a test only the first ones are not long."""
    count = collections.Counter()
    for item in items:
        kept = item.get_closest_marker("variants")
        count[item.function] += kept is not None
        if kept and count[item.function] > kept.args[0]:
            item.add_marker(pytest.mark.long)


class LoopDrive:
    """A loop device that the test made; its backing file is its stable name."""

    def __init__(self, folder, name, size_bytes, sector_bytes):
        self.file = Path(folder) / (name + ".img")
        with open(self.file, "wb") as out:
            out.truncate(size_bytes)
        self.path = own_machine.attach(self.file, "--direct-io=on", "--sector-size", str(sector_bytes))
        self.selector = {"backing_file": str(self.file)}

    @property
    def name(self):
        return os.path.basename(self.path)

    def digest(self):
        return drive_data.digest(self.file)

    def detach(self):
        behind = Path("/sys/block") / self.name / "loop" / "backing_file"
        if behind.exists() and behind.read_text().strip() == str(self.file):
            subprocess.run(["losetup", "--detach", self.path], check=True)


@pytest.fixture
def loop_drive():
    """Make loop drives: loop_drive(name, size_bytes=64 MiB, sector_bytes=512)."""
    if os.geteuid() != 0:
        pytest.skip("needs root for loop devices")
    folder = tempfile.mkdtemp(dir="/dev/shm", prefix="ssdlab-test-")
    made = []

    def make(name="drive", size_bytes=64 * MIB, sector_bytes=512):
        made.append(LoopDrive(folder, name, size_bytes, sector_bytes))
        return made[-1]

    try:
        yield make
    finally:
        for drive in made:
            drive.detach()
        shutil.rmtree(folder)


class Site:
    """An inventory with this machine as its servers, a state folder and a results folder of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.state = folder / "state"
        self.results = folder / "results"
        self.hosts = {}
        self.tools = TOOLS
        self.vars = {
            "ansible_connection": "local",
            "ansible_python_interpreter": sys.executable,
            "ssd_become": False,
            "ssd_mode": "destructive",
            "ssd_state_dir": str(self.state),
            "ssd_results_dir": str(self.results),
            "ssd_watch_interval_s": 1,
            "ssd_validity_limits": cells.ANY_MACHINE,
            "ssd_plan": [SHORT_TEST],
        }

    def _command(self, playbook, args, env, group):
        """(arguments of ansible-playbook, its environment)."""
        inventory = self.folder / "inventory.json"
        inventory.write_text(json.dumps({"all": {"children": {group: {"vars": self.vars, "hosts": self.hosts}}}}))
        path = playbook if isinstance(playbook, Path) else REPO / "playbooks" / (playbook + ".yml")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
        own = {"ANSIBLE_NOCOLOR": "1", "ANSIBLE_CONFIG": str(REPO / "ansible.cfg")}
        environment = {**inherited, **own, **(env or {})}
        return [str(path), "-i", str(inventory), *args], environment

    def play(self, playbook, *args, env=None, group="ssd_servers", cwd=REPO, prefix=(), stall_s=STALL_S):
        """Run a playbook to its end, under the command `prefix`: (exit code, output). It fails once neither the play
        nor a host job of its site has moved for that long.
        """
        arguments, environment = self._command(playbook, args, env, group)
        if not prefix and self.tools == TOOLS and PLAYS.serves(environment):
            done = PLAYS.run(arguments, cwd, environment, stall_s, self.progress)
            return done.returncode, done.stdout + done.stderr
        with subprocess.Popen(
            [*prefix, str(self.tools / "ansible-playbook"), *arguments],
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            moved = works(process.pid)
            output, errors = wait_for_end(process, playbook, lambda: (moved(), self.progress()), stall_s)
        return process.returncode, output + errors

    def progress(self):
        """What the host jobs and plays of this site have written."""
        return sizes((self.folder, "**/journal.jsonl"), (self.folder, "**/results.jsonl"))()

    def start(self, playbook, *args, env=None):
        """A playbook in a process that somebody else ends; what it says goes to `said`."""
        arguments, environment = self._command(playbook, args, env, "ssd_servers")
        with open(self.folder / "said.txt", "w") as output:
            return subprocess.Popen(
                [str(self.tools / "ansible-playbook"), *arguments],
                cwd=REPO,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    @property
    def said(self):
        return (self.folder / "said.txt").read_text()

    @contextlib.contextmanager
    def held(self, start, at=holding.measures()):
        """Begin the site's newest host job by `start()`, and hold it in the middle of a step: while the block runs it
        lives and does not end. Yields what start returned.
        """
        before = self.run_folders()

        def status_of():
            paths = [folder / "status.json" for folder in self.run_folders() if folder not in before]
            return json.loads(paths[0].read_text()) if paths and paths[0].exists() else {}

        def send(name, pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.Signals["SIG" + name])

        # The job may be done before the play that starts it.
        with concurrent.futures.ThreadPoolExecutor() as pool:
            starting = pool.submit(start)
            with holding.held(status_of, at, send, starting=starting):
                yield starting.result()

    def run_folders(self):
        return sorted((self.state / "runs").glob("*")) if self.state.exists() else []

    def journal(self, event=""):
        (run,) = self.run_folders()
        records = [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]
        return [record for record in records if event in ("", record["event"])]

    def ended(self):
        """The results of the tests that have an end, of the only run on the host."""
        (run,) = self.run_folders()
        return run_results.ended(run)

    def summary(self):
        (path,) = self.results.glob("*/report/summary.json")
        return json.loads(path.read_text())

    def end_jobs(self):
        """End, by its pid, every host job that a failed test left."""
        for path in self.run_folders():
            try:
                status = json.loads((path / "status.json").read_text())
                if (
                    status["state"] in ("starting", "running")
                    and str(path) in open(f"/proc/{status['pid']}/cmdline").read()
                ):
                    os.kill(status["pid"], signal.SIGTERM)
            except (OSError, ValueError):
                continue


@pytest.fixture
def site(tmp_path):
    """A site on this machine; no host job of it survives the test."""
    place = Site(tmp_path)
    try:
        yield place
    finally:
        place.end_jobs()


@pytest.fixture(scope="module")
def make_bench(tmp_path_factory):
    """Make benches for the cases of docs/wrong-drives.md, each with its drives and its site, for all
    tests of a file.
    """
    if os.geteuid() != 0:
        pytest.skip("needs root for loop devices")
    with contextlib.ExitStack() as made:

        def make():
            place = Site(tmp_path_factory.mktemp("site"))
            new = made.enter_context(Bench(place))
            new.callback(place.end_jobs)
            return new

        yield make


@pytest.fixture(scope="module")
def bench(make_bench):
    """One bench for all tests of a file."""
    return make_bench()


@pytest.fixture
def jobs(tmp_path, monkeypatch):
    """Host jobs of this process; they set handlers of signals."""
    monkeypatch.setattr(locks, "LOCK_DIR", own_machine.lock_folder(tmp_path / "locks"))
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    yield HostJobs(tmp_path)
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def pair(site, tmp_path):
    """Two servers on this machine, one honest and one that is not, each with a state folder of its own:
    pair(answer).
    """
    site.vars.pop("ssd_state_dir")
    site.vars["ssd_mode"] = "plan"

    def make(answer, **more):
        for name in (GOOD, BAD):
            site.hosts[name] = {
                "ssd_state_dir": str(tmp_path / name),
                "ssd_drives": [{"serial": {GOOD: "A1", BAD: "B2"}[name]}],
            }
        site.hosts[BAD].update(ansible_python_interpreter=hostile_python(tmp_path / "hostile", answer), **more)
        return site

    return make
