# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the project's playbooks against a bed, and look at what its servers hold."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import typing as t
from pathlib import Path

from bed import Bed, Server

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.locks import LOCK_DIR

REPO = Path(__file__).resolve().parents[2]
PLAY_TIMEOUT_S = 240
STATE_DIR = "/var/lib/ssdlab-fleet"


class Fleet:
    """A bed, a results folder and the variables of one run."""

    def __init__(
        self, bed: Bed, folder: Path, run_id: str, plan: list[t.Any], servers: list[Server] | None = None
    ) -> None:
        self.bed = bed
        self.folder = folder
        self.run_id = run_id
        self.results = folder / "results" / run_id
        self.inventory = folder / "inventory.json"
        self._write_inventory(servers or bed.servers, plan)

    def _write_inventory(self, servers: list[Server], plan: list[t.Any]) -> None:
        inventory = json.loads(self.bed.inventory.read_text())
        group = inventory["all"]["children"]["ssd_servers"]
        names = [server.name for server in servers]
        group["hosts"] = {name: values for name, values in group["hosts"].items() if name in names}
        group["vars"].update(
            ssd_mode="destructive",
            ssd_plan=plan,
            ssd_run_id=self.run_id,
            ssd_results_dir=str(self.results.parent),
            ssd_watch_interval_s=2,
            ssd_give_up_s=8,
            # Loop devices answer too fast to outlast what a busy machine takes.
            ssd_validity_limits=dict.fromkeys(
                ("waited_max", "steal_max", "throttled_max", "host_excess_max", "host_part_max"), 1
            ),
        )
        self.inventory.write_text(json.dumps(inventory, indent=2))

    def set_host(self, name: str, **values: t.Any) -> None:
        """Change variables of one host in the run's inventory."""
        inventory = json.loads(self.inventory.read_text())
        inventory["all"]["children"]["ssd_servers"]["hosts"][name].update(values)
        self.inventory.write_text(json.dumps(inventory, indent=2))

    def start(self, playbook: str = "qualify", *args: str) -> subprocess.Popen:
        """Start a playbook in a process group of its own; its output goes to a file in the folder."""
        log = (self.folder / f"{playbook}-{time.monotonic_ns()}.log").open("w")
        argv = [
            ansible("ansible-playbook"),
            str(REPO / "playbooks" / f"{playbook}.yml"),
            "-i",
            str(self.inventory),
            *args,
        ]
        process = subprocess.Popen(argv, cwd=REPO, stdout=log, stderr=log, start_new_session=True, env=clean_env())
        process.log = Path(log.name)
        log.close()
        return process

    def play(self, playbook: str = "qualify", *args: str) -> tuple[int, str]:
        """Run a playbook to its end; its exit code and output."""
        process = self.start(playbook, *args)
        try:
            code = process.wait(timeout=PLAY_TIMEOUT_S)
        finally:
            kill_group(process)
        return code, process.log.read_text()

    def status(self, server: Server) -> dict[str, t.Any]:
        """The server's status.json; empty when there is none yet."""
        shown = self.bed.exec(server, "cat", f"{STATE_DIR}/runs/{self.run_id}/status.json", check=False)
        return json.loads(shown.stdout) if shown.returncode == 0 else {}

    def journal(self, server: Server, event: str = "") -> list[dict[str, t.Any]]:
        """The records of the server's journal, all or those of one event."""
        text = self.bed.exec(server, "cat", f"{STATE_DIR}/runs/{self.run_id}/journal.jsonl").stdout
        records = [json.loads(line) for line in text.splitlines()]
        return [record for record in records if event in ("", record["event"])]

    def summary(self) -> dict[str, t.Any]:
        """report/summary.json."""
        return json.loads((self.results / "report" / "summary.json").read_text())

    def verdicts(self) -> dict[str, list[str]]:
        """Each host's verdicts in the order of its drives."""
        found: dict[str, list[str]] = {}
        for drive in self.summary()["drives"]:
            found.setdefault(drive["host"], []).append(drive["verdict"])
        return found


def ansible(command: str) -> str:
    """The path of one of Ansible's commands, that of the Python which runs the tests."""
    return str(Path(sys.executable).with_name(command))


def clean_env() -> dict[str, str]:
    """The environment without what could point Ansible at another collection or configuration."""
    return {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}


def kill_group(process: subprocess.Popen) -> None:
    """SIGKILL for a playbook and its workers."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def wait_for(what: str, probe: t.Callable[[], t.Any], timeout_s: float = 180) -> t.Any:
    """Ask until the answer is true, and return it."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        answer = probe()
        if answer:
            return answer
        time.sleep(0.3)
    raise AssertionError(f"no {what} within {timeout_s} s")


def processes(bed: Bed, server: Server, name: str) -> list[str]:
    """The ids of the processes of that name that live in the server; a zombie does not."""
    listed = bed.exec(server, "ps", "-e", "-o", "pid=,stat=,comm=").stdout.split("\n")
    rows = [line.split(None, 2) for line in listed if line.strip()]
    return [pid for pid, state, command in rows if command.strip() == name and "Z" not in state]


def held_locks(bed: Bed, server: Server) -> list[str]:
    """The lock files of ours that somebody holds in the server."""
    found = bed.exec(server, "find", LOCK_DIR, "-name", "*.lock", check=False).stdout.split()
    return [path for path in found if bed.exec(server, "flock", "--nonblock", path, "true", check=False).returncode]


def changed_settings(bed: Bed, server: Server) -> dict[str, str]:
    """Every setting of the server that is not as the bed made it, with its value now."""
    hosts = json.loads(bed.inventory.read_text())["all"]["children"]["ssd_servers"]["hosts"]
    before = hosts[server.name]["bed_before"]
    values = {path: effective(bed.exec(server, "cat", path).stdout) for path in before}
    changed = {path: value for path, value in values.items() if value != before[path]}
    if bed.systemd and bed.exec(server, "systemctl", "is-active", "irqbalance", check=False).returncode:
        changed["irqbalance"] = "stopped"
    return changed


def effective(text: str) -> str:
    """The value in force of what sysfs shows: `none [mq-deadline]` means mq-deadline."""
    return text.partition("[")[2].partition("]")[0] or text.strip()


def left_behind(bed: Bed, server: Server) -> list[str]:
    """What a finished or dead run must not leave on a server; empty when all is well."""
    fios = [f"fio {pid}" for pid in processes(bed, server, "fio")]
    settings = [f"{path} is {value}" for path, value in changed_settings(bed, server).items()]
    units: list[str] = []
    if bed.systemd:
        shown = bed.exec(server, "systemctl", "list-units", "--all", "--plain", "--no-legend", "ssdlab-fleet-*").stdout
        units = [line.split()[0] for line in shown.splitlines()]
    return [*fios, *held_locks(bed, server), *settings, *units]
