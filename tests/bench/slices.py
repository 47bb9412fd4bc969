# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run in slices, as AWX's nodes work on it: ansible-runner processes side by side, each with a part of the hosts and
a folder of its own, one PostgreSQL, one report.

Hosts answer from a recording, as in fleet.py: what the controllers do is real, what a host would do, and ssh, costs
nothing here. docs/fleet-size.md has the figures. It fails unless the one report says of every host that its drive
passed, and where AWX would not keep an event. Run as root from the repository's root; it needs the package postgresql:

.venv/bin/python tests/bench/slices.py [--hosts 30] [--slices 1 3] [--forks 20] [--recording FOLDER]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
import typing as t
from pathlib import Path

import fleet

sys.path.insert(0, str(fleet.ROOT / "tests/integration"))

import postgres
from awx_jobs import EVENT_LIMIT

RUNNER = Path(sys.executable).parent / "ansible-runner"
# What a slice does of a night. The watch has nothing to wait for here.
SLICED = ("start", "watch", "collect")


class Spent(t.NamedTuple):
    """Of the jobs of one step, side by side. cpu_s: of all together."""

    step: str
    cpu_s: float
    wall_s: float


def step(folder: Path, playbook: str, parts: t.Sequence[t.Sequence[str]], shared: fleet.Variables, forks: int) -> Spent:
    """Run a playbook on each part of the hosts at once. Exits where one fails."""
    began, jobs = time.monotonic(), {}
    for number, hosts in enumerate(parts):
        job = folder / f"{playbook}-{number}"
        (job / "env").mkdir(parents=True)
        (job / "inventory").mkdir()
        own = {**shared, "ssd_results_dir": str(job / "results")}
        servers = {"ssd_servers": {"vars": own, "hosts": {name: {} for name in hosts}}}
        (job / "inventory/hosts.json").write_text(json.dumps({"all": {"children": servers}}), encoding="utf-8")
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")},
            "PATH": f"{RUNNER.parent}{os.pathsep}{os.environ.get('PATH', '')}",
            "ANSIBLE_CONFIG": str(fleet.ROOT / "ansible.cfg"),
            "ANSIBLE_CONNECTION_PLUGINS": str(fleet.PLUGINS / "connection"),
            "ANSIBLE_PIPELINING": "1",
            "ANSIBLE_FORKS": str(forks),
        }
        argv = [str(RUNNER), "run", str(job), "--project-dir", str(fleet.ROOT), "-p", f"playbooks/{playbook}.yml"]
        with open(job / "log", "wb") as log:
            actions = [(os.POSIX_SPAWN_DUP2, log.fileno(), 1), (os.POSIX_SPAWN_DUP2, log.fileno(), 2)]
            jobs[os.posix_spawn(argv[0], [*argv, "--ident", "1"], environment, file_actions=actions)] = job
    cpu_s, failed = 0.0, []
    while jobs:
        pid, status, used = os.wait3(0)
        job = jobs.pop(pid)
        cpu_s += used.ru_utime + used.ru_stime
        failed += [str(job / "log")] if status else []
    if failed:
        sys.exit(f"{playbook} failed: see {', '.join(failed)}")
    events = {path: path.stat().st_size for path in folder.glob(f"{playbook}-*/artifacts/1/job_events/*.json")}
    largest = max(events, key=lambda path: events[path])
    if events[largest] > EVENT_LIMIT:
        sys.exit(f"AWX would drop what a task returned: {events[largest]} bytes in {largest}")
    return Spent(playbook, cpu_s, time.monotonic() - began)


def record_more(recording: Path) -> None:
    """What playbooks ask that begin after the start, and qualify.yml does not."""
    shared = fleet.variables(recording, (recording / "backing.txt").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="ssdlab-slices-") as folder:
        step(Path(folder), "collect", [["recorded"]], {**shared, "bench_record": True}, forks=1)


def night(folder: Path, count: int, slices: int, shared: fleet.Variables, forks: int) -> list[Spent]:
    """A run of `count` hosts in slices. Exits unless its report says that every drive passed."""
    hosts = [f"host{number:05}" for number in range(count)]
    # As AWX deals them out.
    parts = [hosts[number::slices] for number in range(slices)]
    spent = [step(folder, name, parts, shared, forks) for name in SLICED]
    spent.append(step(folder, "report", [hosts], shared, forks))
    wrong = set(hosts) ^ fleet.passed(folder / "report-0")
    if wrong:
        sys.exit(f"{len(wrong)} hosts with a wrong verdict: see {folder}/report-0")
    return spent


def told(count: int, slices: int, spent: t.Sequence[Spent]) -> str:
    """The figures of a night for people."""
    cpu_s, wall_s = (sum(getattr(each, name) for each in spent) for name in ("cpu_s", "wall_s"))
    steps = ", ".join(f"{each.step} {each.cpu_s / count:.2f}/{each.wall_s:.0f}" for each in spent)
    return (
        f"{count} hosts in {slices} slices: {cpu_s / count:.2f} CPU-s a host, {wall_s:.0f} s of wall "
        f"(CPU-s a host / wall of each step: {steps})"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, nargs="+", default=[30])
    parser.add_argument("--slices", type=int, nargs="+", default=[1, 3])
    parser.add_argument("--forks", type=int, default=20)
    parser.add_argument("--recording", type=Path, help="keep the recording here, or use the one that is here")
    options = parser.parse_args()
    if not postgres.programs():
        sys.exit("it needs PostgreSQL: install the package postgresql")
    with tempfile.TemporaryDirectory(prefix="ssdlab-bench-") as temporary:
        recording = options.recording or Path(temporary)
        if not (recording / "backing.txt").exists():
            recording.mkdir(parents=True, exist_ok=True)
            fleet.record(recording)
            record_more(recording)
        shared = fleet.variables(recording, (recording / "backing.txt").read_text(encoding="utf-8"))
        with postgres.running(postgres.programs()) as server:
            for count in options.hosts:
                for slices in options.slices:
                    store = {"ssd_store_url": server.new_database(f"n{count}_{slices}"), "ssd_folders_in_store": True}
                    # In memory: ansible-runner fails where it cannot read a job's last output within five seconds.
                    folder = Path(tempfile.mkdtemp(prefix="ssdlab-bench-", dir="/dev/shm"))
                    spent = night(folder, count, slices, {**shared, **store}, options.forks)
                    print(told(count, slices, spent), flush=True)
                    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
