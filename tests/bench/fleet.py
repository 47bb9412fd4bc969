# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a play costs the controller for each host: CPU, wall time, memory, bytes sent, task executions.

One real qualification of a loop device of its own over the connection `local` is recorded first: what each module
answered, by its name and arguments, and the archive. Then many hosts that answer so are qualified, from preflight to
report. What the controller does is real; what a host would do, and ssh, costs nothing here, and what answering from the
recording takes is not counted (but in the list of tasks). docs/fleet-size.md has the figures. Run as root from the
repository's root:

.venv/bin/python tests/bench/fleet.py [--hosts 10 100 300 1000] [--forks 20] [--tasks] [--floor] [--faults]
[--busy] [--recording FOLDER]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import typing as t
from pathlib import Path

import busy_machine
import harness

ROOT = Path(__file__).resolve().parents[2]
PLUGINS = Path(__file__).resolve().parent / "fleet_plugins"
QUALIFY = ROOT / "playbooks/qualify.yml"
RUN_ID = "recorded"
# For a playbook that does not lie in playbooks/.
BESIDE = {"ANSIBLE_COLLECTIONS_PATH": str(ROOT / "playbooks/collections")}
CPU_LIMIT_S, WALL_LIMIT_S, MEMORY_LIMIT_MIB = 0.5, 0.3, 1024
# Modules, engine and plan, each once and compressed.
SENT_LIMIT_KIB = 1800
# The memory limit is for fleets up to this size.
MEMORY_LIMIT_HOSTS = 300
# Of a thousand hosts; the rest are as they should be.
FAULTS = {"hangs": 50, "unreachable": 50, "garbage": 10}
# What an operator of such a fleet sets: as in AWX's nightly, and a shorter limit of each task.
LEFT_OUT = {"ssd_task_timeout_s": 30}
CELL = {"access": "random", "block_size": "4KiB", "read_pct": 0, "threads": 1, "queue_depth": 4, "runtime_s": 1}
TEST = {
    "name": "short",
    "title": "Short",
    "purge": {"method": "auto"},
    "cells": [{**CELL, "rate_iops": 200}],
    "steady_state": {
        "tracked": [{"block_size": "4KiB", "read_pct": 0, "metric": "write_iops"}],
        **busy_machine.ANY_RATES,
    },
    # As many as a busy machine needs until five in a row are undisturbed.
    "rounds": {"max": 60},
}
# The tasks that ask a host; any other one only costs its process.
ASKS = ("ssdlab.fleet.examine", "ssdlab.fleet.host_job", "ssdlab.fleet.collect")
Variables = t.Dict[str, t.Any]


class Cost(t.NamedTuple):
    """Of one play. cpu_s: of ansible-playbook and all its workers, less what answering from the recording takes;
    memory_mib: the most of them together.
    """

    rc: int
    cpu_s: float
    wall_s: float
    memory_mib: float
    sent_bytes: int
    tasks: list[dict[str, t.Any]]


def variables(recording: Path, backing: str) -> Variables:
    """Those that all hosts share, whether they are recorded or answer."""
    return {
        "ansible_connection": "recorded",
        "ansible_python_interpreter": sys.executable,
        "bench_recording": str(recording),
        "ssd_become": False,
        "ssd_mode": "destructive",
        "ssd_run_id": RUN_ID,
        "ssd_state_dir": str(recording / "state"),
        "ssd_watch_interval_s": 1,
        "ssd_validity_limits": {"in_flight_min": 0, "idle_gap_s": 60, **busy_machine.OTHERS_LOAD},
        "ssd_plan": [TEST],
        "ssd_drives": [{"backing_file": backing, "ssd_overwrite_data": True}],
    }


def _environment(counted: Path, forks: int) -> dict[str, str]:
    """Of ansible-playbook, with the bench's plugins. counted: where they tell of the tasks."""
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")},
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_CONNECTION_PLUGINS": str(PLUGINS / "connection"),
        "ANSIBLE_CALLBACK_PLUGINS": str(PLUGINS / "callback"),
        "ANSIBLE_CALLBACKS_ENABLED": "ssdlab.fleet.fleet,task_count",
        "ANSIBLE_PIPELINING": "1",
        "ANSIBLE_FORKS": str(forks),
        "ANSIBLE_NOCOLOR": "1",
        "SSDLAB_FLEET_TASK_COUNT": str(counted),
    }


def play(
    folder: Path,
    hosts: t.Mapping[str, t.Any],
    shared: Variables,
    forks: int = 20,
    extra: t.Mapping[str, str] | None = None,
    playbook: Path = QUALIFY,
) -> Cost:
    """Qualify hosts; inventory, results and output go below `folder`. extra: environment variables."""
    inventory, counted, sent = (folder / name for name in ("inventory.json", "tasks.json", "sent.txt"))
    own = {**shared, "ssd_results_dir": str(folder / "results"), "bench_sent": str(sent)}
    servers = {"ssd_servers": {"vars": own, "hosts": hosts}}
    inventory.write_text(json.dumps({"all": {"children": servers}}), encoding="utf-8")
    environment = {**_environment(counted, forks), **(extra or {})}
    argv = [str(Path(sys.executable).parent / "ansible-playbook"), str(playbook), "-i", str(inventory)]
    streams = {"stdin": subprocess.DEVNULL, "stderr": subprocess.STDOUT}
    began = time.monotonic()
    with open(folder / "output.txt", "w", encoding="utf-8") as output:
        process = subprocess.Popen(argv, cwd=folder, env=environment, stdout=output, **streams)
        try:
            with watched_memory(process.pid) as memory:
                _pid, status, used = os.wait4(process.pid, 0)
        except BaseException:
            _end(process)
            raise
    wall_s = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    lines = [line.split() for line in sent.read_text(encoding="utf-8").splitlines()] if sent.exists() else []
    return Cost(
        rc=process.returncode,
        cpu_s=used.ru_utime + used.ru_stime - sum(float(cpu_s) for _host, _size, cpu_s in lines),
        wall_s=wall_s,
        memory_mib=max(memory),
        sent_bytes=sum(int(size_bytes) for _host, size_bytes, _cpu_s in lines),
        tasks=json.loads(counted.read_text(encoding="utf-8")) if counted.exists() else [],
    )


def clean_up_on_sigterm() -> None:
    """Let SIGTERM end this process as Ctrl-C does, so that what it made is taken away."""
    signal.signal(signal.SIGTERM, lambda *_given: sys.exit("ended by SIGTERM"))


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a play and its workers: none writes into a folder that is being removed."""
    for pid in _family(process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


@contextlib.contextmanager
def watched_memory(pid: int, every_s: float = 2.0) -> t.Iterator[list[float]]:
    """The memory of a process and all below it, in MiB, a figure for each look. A page that they share counts once."""
    looks, ended = [0.0], threading.Event()

    def look() -> None:
        while not ended.wait(every_s):
            looks.append(sum(map(_share_kib, _family(pid))) / 1024)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield looks
    finally:
        ended.set()
        thread.join()


def _family(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
        return [pid, *(member for child in children for member in _family(int(child)))]
    return []


def _share_kib(pid: int) -> int:
    """Its proportional share (PSS)."""
    with contextlib.suppress(OSError, ValueError):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return 0


def record(recording: Path) -> None:
    """Qualify a loop device for real, and keep what this machine answered."""
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="ssdlab-bench-") as memory, harness.loop_device(
        memory
    ) as backing:
        cost = play(recording, {"recorded": {}}, {**variables(recording, backing), "bench_record": True})
        if cost.rc:
            sys.exit(f"the run to be recorded failed:\n{(recording / 'output.txt').read_text(encoding='utf-8')}")
        (recording / "backing.txt").write_text(backing, encoding="utf-8")


def replay(recording: Path, count: int, forks: int, faults: bool) -> Cost:
    """Qualify `count` hosts that answer as recorded. Exits unless every host without a fault passed."""
    hosts: dict[str, t.Any] = {f"host{number:04}": {} for number in range(count)}
    names = iter(list(hosts))
    for fault, of_thousand in FAULTS.items() if faults else ():
        for _each in range(max(1, count * of_thousand // 1000)):
            hosts[next(names)] = {"bench_fault": fault}
    shared = variables(recording, (recording / "backing.txt").read_text(encoding="utf-8"))
    shared.update(LEFT_OUT if faults else {})
    folder = Path(tempfile.mkdtemp(prefix="ssdlab-fleet-bench-"))
    cost = play(folder, hosts, shared, forks)
    wrong = {name for name, host in hosts.items() if not host} ^ passed(folder)
    if cost.rc != (2 if faults else 0) or wrong:
        sys.exit(f"exit code {cost.rc}, {len(wrong)} hosts with a wrong verdict: see {folder}/output.txt")
    shutil.rmtree(folder)
    return cost


def floor(recording: Path, of: Cost, count: int, forks: int) -> Cost:
    """What as many tasks cost that do nothing: `ping` for each that asks a host, `debug` for any other."""
    each = [task for task in of.tasks if not task["run_once"]]
    executed = round(sum(len(task["hosts"]) for task in each) / count)
    asking = sum(len(task["hosts"]) for task in each if task["action"] in ASKS) // count
    nothing = [{"ansible.builtin.ping": {}}] * asking + [{"ansible.builtin.debug": {"msg": ""}}] * (executed - asking)
    folder = Path(tempfile.mkdtemp(prefix="ssdlab-fleet-bench-"))
    playbook = folder / "floor.yml"
    playbook.write_text(json.dumps([{"hosts": "ssd_servers", "gather_facts": False, "tasks": nothing}]))
    shared = variables(recording, (recording / "backing.txt").read_text(encoding="utf-8"))
    cost = play(folder, {f"host{number:04}": {} for number in range(count)}, shared, forks, playbook=playbook)
    if cost.rc:
        sys.exit(f"exit code {cost.rc}: see {folder}/output.txt")
    shutil.rmtree(folder)
    return cost


def passed(folder: Path) -> set[str]:
    """The hosts whose drive passed; none where the play did not come to its report."""
    reports = folder.glob("results/*/report/summary.json")
    drives = [drive for path in reports for drive in json.loads(path.read_text(encoding="utf-8"))["drives"]]
    return {drive["host"] for drive in drives if drive["verdict"] == "pass"}


def told(cost: Cost, count: int, tasks: bool, what: str = "") -> list[str]:
    """A play's figures for people."""
    executed = sum(len(task["hosts"]) for task in cost.tasks)
    lines = [
        f"{count} hosts{what}: {cost.cpu_s / count:.3f} CPU-s and {cost.wall_s / count:.3f} s of wall a host,"
        f" {cost.memory_mib:.0f} MiB, {executed / count:.1f} task executions and"
        f" {cost.sent_bytes / count / 1024:.0f} KiB sent a host"
    ]
    for task in cost.tasks if tasks else ():
        cpu_ms = task["cpu_s"] / count * 1000
        lines.append(f"  {len(task['hosts']):5} hosts {cpu_ms:6.1f} ms of CPU a host  {task['action']}: {task['task']}")
    return lines


def missed(cost: Cost, count: int, busy: bool, faults: bool) -> list[str]:
    """The limits that a play exceeds. busy: its times say nothing; faults: nor does its wall time, as hosts hang."""
    figures = [
        (0 if busy else cost.cpu_s / count, CPU_LIMIT_S, "CPU-s a host"),
        (0 if busy or faults else cost.wall_s / count, WALL_LIMIT_S, "s of wall a host"),
        (cost.sent_bytes / count / 1024, SENT_LIMIT_KIB, "KiB sent a host"),
        (cost.memory_mib if count <= MEMORY_LIMIT_HOSTS else 0, MEMORY_LIMIT_MIB, "MiB"),
    ]
    return [f"{count} hosts: {value:.4g} {unit}, more than {limit}" for value, limit, unit in figures if value > limit]


def growth(costs: t.Mapping[int, Cost]) -> list[str]:
    """What is the same for a fleet of any size, and what each host adds: by the smallest and the largest one."""
    if len(costs) < 2:
        return []
    few, many = min(costs), max(costs)
    told = []
    for name, unit in (("cpu_s", "CPU-s"), ("wall_s", "s of wall")):
        small, large = getattr(costs[few], name), getattr(costs[many], name)
        each = (large - small) / (many - few)
        told.append(f"{small - few * each:.1f} {unit} and {each:.3f} for each host")
    return [f"from {few} to {many} hosts: {'; '.join(told)}"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, nargs="+", default=[10, 100, 300, 1000])
    parser.add_argument("--forks", type=int, default=20)
    parser.add_argument("--recording", type=Path, help="keep the recording here, or use the one that is here")
    parser.add_argument("--tasks", action="store_true", help="list the tasks: for how many hosts, and their CPU")
    parser.add_argument("--floor", action="store_true", help="also as many tasks that do nothing")
    parser.add_argument(
        "--faults", action="store_true", help="5 %% of the hosts hang, 5 %% are unreachable, 1 %% answer garbage"
    )
    busy_machine.add_argument(parser)
    options = parser.parse_args()
    high, costs = [], {}
    with tempfile.TemporaryDirectory(prefix="ssdlab-bench-") as temporary:
        recording = options.recording or Path(temporary)
        if not (recording / "backing.txt").exists():
            recording.mkdir(parents=True, exist_ok=True)
            record(recording)
        for count in options.hosts:
            cost = replay(recording, count, options.forks, options.faults)
            print(*told(cost, count, options.tasks), sep="\n", flush=True)
            if options.floor:
                print(*told(floor(recording, cost, count, options.forks), count, options.tasks, ", floor"), flush=True)
            costs[count] = cost
            high += missed(cost, count, options.busy, options.faults)
    print(*growth(costs), *(f"over the limit: {text}" for text in high), sep="\n")
    return 1 if high else 0


if __name__ == "__main__":
    sys.exit(main())
