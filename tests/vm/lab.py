# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The project's playbooks, run over ssh against a guest, and what the guest and its drives' files show of it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

from guest import Guest

REPO = Path(__file__).resolve().parents[2]
PLAY_TIMEOUT_S = 900
COMMAND_LOG = "/var/tmp/commands.jsonl"  # the guest's setup sets it for plays and for host jobs

# As small as a test can be that reaches steady state: emulation is slow, and what is measured does not matter here.
SHORT_TEST = {
    "name": "short",
    "title": "Short",
    "purge": {"method": "auto"},
    "precondition": {"passes": 1},
    "cells": [{"access": "random", "block_size": "4KiB", "read_pct": 0, "threads": 1, "queue_depth": 1, "runtime_s": 1, "rate_iops": 20}],
    "steady_state": {"tracked": [{"block_size": "4KiB", "read_pct": 0, "metric": "write_iops"}], "range_limit": 1.0, "slope_limit": 1.0},
    "rounds": {"max": 6},
}

# Commands that change a drive whatever their arguments, and those that do with one of these words.
_ALWAYS = {"ioctl", "blkdiscard", "dd", "sg_sanitize", "sg_format", "fio-format", "fio-detach"}
_WITH = {
    "nvme": {"format", "sanitize", "write-zeroes", "write", "dsm", "delete-ns", "create-ns", "attach-ns", "detach-ns", "write-uncor"},
    "rssdm": {"-X"},
}
_ONLY_READS = {"fio": {"--version", "--help", "--enghelp", "--showcmd"}, "wipefs": {"-n", "--no-act", "--version", "-V"}}


def is_destructive(argv: list[str]) -> bool:
    """Whether a recorded command could change what a drive holds. What is not known to read only counts."""
    name = os.path.basename(argv[0])
    if name == "hdparm":
        return any(word.startswith(("--security-", "--sanitize-", "--trim", "--write", "--yes")) for word in argv[1:] if word != "--sanitize-status")
    if name in _ONLY_READS:
        return not any(word.split("=")[0] in _ONLY_READS[name] for word in argv[1:])
    return name in _ALWAYS or bool(_WITH.get(name, set()) & set(argv[1:]))


class Lab:
    """One server, the guest, with a state folder and a results folder of this test's own."""

    def __init__(self, guest: Guest, folder: Path, name: str) -> None:
        self.guest = guest
        self.folder = folder
        self.state = f"/var/lib/lab/{name}"
        self.results = folder / "results"
        self.host = {"ssd_drives": []}
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
        }

    def play(self, playbook: str, *args: str) -> tuple[int, str]:
        """Run a playbook to its end: its exit code, and its output as one line of words."""
        process = self.start(playbook, *args)
        try:
            output, _none = process.communicate(timeout=PLAY_TIMEOUT_S)
        finally:
            process.kill()
            process.wait()
        return process.returncode, " ".join(output.split())

    def start(self, playbook: str, *args: str) -> subprocess.Popen:
        """Start a playbook; its output is a pipe."""
        inventory = self.folder / "inventory.json"
        ssh = {
            "ansible_port": self.guest.port,
            "ansible_ssh_common_args": shlex.join(self.guest.ssh_options()),
            "ansible_control_path": str(self.guest.folder / "cp" / "ansible"),
        }
        inventory.write_text(json.dumps({"all": {"children": {"ssd_servers": {"vars": {**self.vars, **ssh}, "hosts": {"guest": self.host}}}}}))
        argv = [os.path.join(os.path.dirname(sys.executable), "ansible-playbook"), str(REPO / "playbooks" / f"{playbook}.yml"), "-i", str(inventory)]
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
        # A module's worker may take its time under emulation.
        environment = dict(inherited, ANSIBLE_NOCOLOR="1", ANSIBLE_CONFIG=str(REPO / "ansible.cfg"), ANSIBLE_TIMEOUT="60")
        return subprocess.Popen(
            [*argv, *args], cwd=REPO, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def erase_nothing(self, playbook: str, *args: str) -> tuple[int, str]:
        """Run a playbook that must leave every drive alone, and see that it did: by their files' hashes and by the recorded commands."""
        self.clear_commands()
        before = self.hashes()
        code, output = self.play(playbook, *args)
        assert self.hashes() == before, output
        commands = self.commands()
        assert commands, "the command log is empty: it proves nothing"
        assert [argv for argv in commands if is_destructive(argv)] == [], output
        return code, output

    def refuse(self, drive: dict, code: str, *told: str, playbook: str = "purge") -> str:
        """A destructive play that must refuse this entry of ssd_drives by this code, telling these words, and touch nothing."""
        self.host["ssd_drives"] = [drive]
        result, output = self.erase_nothing(playbook)
        assert result != 0, output
        assert f"{code}:" in output, output
        for words in told:
            assert words in output, output
        return output

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
        """The records of the run's journal in the guest, all or those of one event."""
        text = self.guest.run(f"cat {self.state}/runs/{run_id}/journal.jsonl").stdout
        records = [json.loads(line) for line in text.splitlines()]
        return [record for record in records if event in ("", record["event"])]

    def summary(self) -> dict:
        """report/summary.json of the newest run."""
        newest = max(self.results.glob("*/report/summary.json"), key=lambda path: path.stat().st_mtime)
        return json.loads(newest.read_text())
