# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The project's playbooks, run over ssh against a guest, and what the guest and its drives' files show of it."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
import typing as t
from pathlib import Path

import cells
import turn
from guest import Guest
from guest_drives import Nvme
from wrong_drive_outcome import Outcome

from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.tests.fixtures import run_results

REPO = Path(__file__).resolve().parents[2]
# Of the time that the guest had (turn.py).
PLAY_TIMEOUT_S = 900
ASKS = 900
STAND_IN = "/usr/local/sbin/nvme"  # before the real one in every PATH of the guest
STAND_IN_STATE = "/usr/local/sbin/nvme.json"
COMMAND_LOG = "/var/tmp/commands.jsonl"  # the guest's setup sets it for plays and for host jobs
# Nothing is on its way to a drive: 0.2 s after the last write, md writes to each drive of an array that it is clean.
SETTLED = (
    "sync; for state in /sys/block/md*/md/array_state; do "
    "while grep -qsE '^active|write-pending' $state; do sleep 0.1; done; done; sync"
)

# As small as a test can be that reaches steady state: emulation is slow, and what is measured does not matter here.
SHORT_TEST = {
    "name": "short",
    "title": "Short",
    "purge": {"method": "auto"},
    "precondition": {"passes": 1},
    "cells": [cells.writes(20)],
    "steady_state": {
        "tracked": [{"block_size": "4KiB", "read_pct": 0, "metric": "write_iops"}],
        "range_limit": 1.0,
        "slope_limit": 1.0,
    },
    "rounds": {"max": 6},
}


def overwritable(selector: dict) -> dict:
    """The entry of ssd_drives for a drive whose unsigned data may go."""
    return {**selector, "ssd_overwrite_data": True}


def wait_for(what: str, probe: t.Callable[[], object]) -> None:
    """Ask until the answer is true. What waits for a CPU answers late, so answers are counted, not seconds."""
    for _ask in range(ASKS):
        if probe():
            return
        time.sleep(1)
    raise AssertionError(f"no {what} after {ASKS} asks")


class File:
    """A drive as `wrong_drive.Outcome` looks at it: by the file behind it."""

    def __init__(self, drive: Nvme) -> None:
        self.drive = drive
        self.sealed = drive.sha256()

    def has_changed(self) -> bool:
        """Since it was sealed."""
        return self.drive.sha256() != self.sealed


class Lab:
    """One server, the guest, with a state folder and a results folder of this test's own."""

    def __init__(self, guest: Guest, folder: Path, name: str) -> None:
        self.guest = guest
        self.folder = folder
        self.state = f"/var/lib/lab/{name}"
        self.results = folder / "results"
        self.disks: dict[str, File] = {}
        self.host = {"ssd_drives": []}
        self.timeout_s = PLAY_TIMEOUT_S
        self.vars = {
            "ansible_host": "127.0.0.1",
            "ansible_user": "root",
            "ansible_python_interpreter": "/usr/bin/python3",
            "ssd_mode": "destructive",
            "ssd_state_dir": self.state,
            "ssd_results_dir": str(self.results),
            "ssd_watch_interval_s": 2,
            "ssd_host_timeout_s": 60,
            "ssd_plan": [SHORT_TEST],
            # To find the number takes minutes of reads under emulation.
            "ssd_parallel_drives": 1,
            "preflight_traffic_s": 0,
        }

    def play(self, playbook: str, *args: str) -> tuple[int, str]:
        """Run a playbook to its end: its exit code and output."""
        process = self.start(playbook, *args)
        try:
            output, _none = turn.communicate(process, self.guest.process.pid, self.timeout_s)
        finally:
            self.kill(process)
        return process.returncode, output

    @staticmethod
    def kill(process: subprocess.Popen) -> None:
        """End a playbook and its workers, as when the controller dies."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def outcome(self, playbook: str, *args: str) -> Outcome:
        """Run a playbook, and look at the files of all drives, the recorded commands and the findings."""
        return self._judge(lambda: self.play(playbook, *args))

    def outcome_between(self, stage: t.Callable[[], object], step: str = "purge") -> Outcome:
        """Preflight, then `stage`, then the start of the host job: what happens to a drive after it was looked at."""
        ready, go, path = (self.folder / name for name in ("ready", "go", "between.yml"))
        wait = {"argv": ["sh", "-c", 'touch "$0"; until [ -e "$1" ]; do sleep 0.2; done', str(ready), str(go)]}
        local = {
            "delegate_to": "localhost",
            "connection": "local",
            "vars": {"ansible_python_interpreter": sys.executable},
        }
        tasks = [
            {"name": "Stage", "ansible.builtin.command": wait, **local},
            {
                "name": "Start",
                "ansible.builtin.import_role": {"name": "ssdlab.fleet.workload"},
                "when": "ssd_decision.run.destructive",
            },
        ]
        shipped = [
            {"import_playbook": str(REPO / "playbooks" / f"{name}.yml")}
            for name in ("preflight", "watch", "collect", "report")
        ]
        path.write_text(
            json.dumps([shipped[0], {"hosts": "ssd_servers", "gather_facts": False, "tasks": tasks}, *shipped[1:]])
        )

        def play() -> tuple[int, str]:
            process = self.start(path, "-e", f"ssd_step={step}")
            try:
                while not ready.exists() and process.poll() is None:
                    time.sleep(0.2)
                if process.poll() is None:
                    stage()
                go.touch()
                output, _none = turn.communicate(process, self.guest.process.pid, PLAY_TIMEOUT_S)
            finally:
                self.kill(process)
            return process.returncode, output

        return self._judge(play)

    def _judge(self, play: t.Callable[[], tuple[int, str]]) -> Outcome:
        self.clear_commands()
        self.guest.run(SETTLED)
        self.disks = {f"file of {key}": File(drive) for key, drive in self.guest.drives.items()}
        code, output = play()
        self.guest.run("sync")
        return Outcome(self, code, output, self.commands(), self.journal())

    def refused(self, entry: dict, *codes: str, told: str = "", args: tuple = ()) -> Outcome:
        """A destructive play at one entry of ssd_drives that must be refused for these reasons alone, and touch
        nothing.
        """
        self.host["ssd_drives"] = [entry]
        outcome = self.outcome("purge", *args)
        outcome.refused(parse(entry).label, *codes)
        assert told in outcome.output, outcome.output
        return outcome

    def start(self, playbook: str | Path, *args: str) -> subprocess.Popen:
        """Start a playbook, one of the project's by its name, in a process group of its own; its output is a pipe."""
        path = playbook if isinstance(playbook, Path) else REPO / "playbooks" / f"{playbook}.yml"
        inventory = self.folder / "inventory.json"
        ssh = {
            "ansible_port": self.guest.port,
            "ansible_ssh_common_args": shlex.join(self.guest.ssh_options()),
            "ansible_control_path": str(self.guest.folder / "cp" / "ansible"),
        }
        inventory.write_text(
            json.dumps(
                {"all": {"children": {"ssd_servers": {"vars": {**self.vars, **ssh}, "hosts": {"guest": self.host}}}}}
            )
        )
        argv = [os.path.join(os.path.dirname(sys.executable), "ansible-playbook"), str(path), "-i", str(inventory)]
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
        # A module's worker may take its time under emulation.
        settings = {
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_TIMEOUT": "60",
            "ANSIBLE_CONFIG": str(REPO / "ansible.cfg"),
            "ANSIBLE_COLLECTIONS_PATH": str(REPO / "playbooks" / "collections"),
        }
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        return subprocess.Popen(
            [*argv, *args], cwd=REPO, env={**inherited, **settings}, start_new_session=True, **pipes
        )

    def hashes(self) -> dict[str, str]:
        """Of every drive, all that the guest wrote included."""
        self.guest.run("sync")
        return {key: drive.sha256() for key, drive in self.guest.drives.items()}

    def commands(self) -> list[list[str]]:
        """What plays and host jobs ran since `clear_commands`."""
        text = self.guest.run(f"cat {COMMAND_LOG} 2>/dev/null || true").stdout
        return [json.loads(line) for line in text.splitlines()]

    def clear_commands(self) -> None:
        """Begin the log anew."""
        self.guest.run(f"rm -f {COMMAND_LOG}")

    def journal(self, event: str = "", run_id: str = "*") -> list[dict]:
        """The records of the run's journal in the guest, all or those of one event; none before there is a run."""
        text = self.guest.run(f"cat {self.state}/runs/{run_id}/journal.jsonl 2>/dev/null || true").stdout
        records = [json.loads(line) for line in text.splitlines()]
        return [record for record in records if event in ("", record["event"])]

    def ended(self) -> list[dict]:
        """The results of the tests that have an end, of the only run in the guest."""
        plan = json.loads(self.guest.run(f"cat {self.state}/runs/*/plan.json").stdout)
        return run_results.ended_of(plan, self.journal())

    def summary(self) -> dict:
        """report/summary.json of the newest run."""
        newest = max(self.results.glob("*/report/summary.json"), key=lambda path: path.stat().st_mtime)
        return json.loads(newest.read_text())
