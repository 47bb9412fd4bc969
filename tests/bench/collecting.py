# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collecting the raw files of many hosts over ssh, killed in the middle and done again: bytes on the wire, memory, and
whether all files arrive as they are.

All hosts are this machine, through an sshd of the bench's own, in a network namespace that carries nothing else. Each
has a run of its own with as many raw files as a full PTS run writes, 25 for each cell. The limits: 1.1 times the bytes
of all archives, and 1 GiB for ansible-playbook and its workers. 300 hosts take 4 GB below --folder, which is emptied
however the bench ends. docs/fleet-size.md has the figures. Run as root from the repository's root:

.venv/bin/python tests/bench/collecting.py [--hosts 30] [--forks 5] [--cells 56] [--kill-at 0.5] [--folder /dev/shm]
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gzip
import json
import os
import random
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
import fleet

sys.path.insert(0, str(fleet.ROOT / "tests/integration"))

import sshd

WIRE_LIMIT, MEMORY_LIMIT_MIB = 1.1, 1024
CLONE_NEWNET = 0x40000000
# As fio's output of a cell is, compressed: see docs/fleet-size.md.
RAW_BYTES, ROUNDS = 4000, 25


def own_network() -> None:
    """A network of this process and of those that it starts from here on."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET):
        sys.exit(f"no network namespace: {os.strerror(ctypes.get_errno())}")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def wire_bytes() -> int:
    """What went over the network so far, both ways, with the heads of all packets."""
    lines = Path("/proc/self/net/dev").read_text(encoding="ascii").splitlines()
    (loopback,) = [line for line in lines if line.strip().startswith("lo:")]
    return int(loopback.split()[9])


def make_run(folder: Path, files: int) -> Path:
    """A finished run's state folder; its raw files are of random content, so nothing compresses them again."""
    state = folder / "state"
    command = [sys.executable, str(fleet.ROOT / "tests/integration/fake_job.py"), str(state), fleet.RUN_ID, "0"]
    environment = {**os.environ, "PYTHONPATH": str(fleet.ROOT / "playbooks/collections")}
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    source = random.Random(1)
    for number in range(files):
        path = state / "runs" / fleet.RUN_ID / "raw/A1" / f"iops-1-{number:04}-cell.json.gz"
        path.write_bytes(gzip.compress(source.randbytes(RAW_BYTES), mtime=0))
    return state


def collect(folder: Path, shared: fleet.Variables, hosts: t.Mapping[str, t.Any], forks: int, until: int) -> fleet.Cost:
    """One play; killed, with its workers, once `until` hosts are collected (0: never)."""
    arguments = {"run_id": fleet.RUN_ID, "results_dir": "{{ ssd_results_dir }}", "state_dir": "{{ ssd_state_dir }}"}
    playbook = folder / "collect.yml"
    tasks = [{"ssdlab.fleet.collect": arguments}]
    playbook.write_text(json.dumps([{"hosts": "ssd_servers", "gather_facts": False, "tasks": tasks}]))
    ended = threading.Event()

    def kill() -> None:
        while not ended.wait(0.05):
            if len(collected(folder)) >= until:
                for pid in [pid for child in _children() for pid in fleet._family(child)]:
                    with contextlib.suppress(OSError):  # a worker that has just ended
                        if b"ansible-playbook" in Path(f"/proc/{pid}/cmdline").read_bytes():
                            os.kill(pid, signal.SIGKILL)
                return

    thread = threading.Thread(target=kill if until else ended.wait)
    thread.start()
    try:
        return fleet.play(folder, hosts, shared, forks, fleet.BESIDE, playbook)
    finally:
        ended.set()
        thread.join()


def _children() -> list[int]:
    tasks = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text(encoding="ascii").split()]


def collected(folder: Path) -> list[Path]:
    """The hosts' folders in the results."""
    return sorted(path.parent for path in folder.glob(f"results/{fleet.RUN_ID}/raw/host*/.collected"))


def differs(source: Path, copy: Path) -> bool:
    """Whether a collected folder holds anything but the run's files, byte by byte."""
    files = {path.relative_to(source) for path in source.rglob("*") if path.is_file()}
    copies = {path.relative_to(copy) for path in copy.rglob("*") if path.is_file()} - {Path(".collected")}
    return files != copies or any((source / name).read_bytes() != (copy / name).read_bytes() for name in files)


def measure(folder: Path, options: argparse.Namespace) -> int:
    """Kill a collect, go on with it, and again once all is there."""
    state = make_run(folder, options.cells * ROUNDS)
    hosts = {}
    for number in range(options.hosts):
        own = folder / f"host{number:04}"
        shutil.copytree(state, own, copy_function=os.link)
        hosts[own.name] = {"ssd_state_dir": str(own)}
    with sshd.loopback_sshd(folder, MaxStartups=options.forks + 10, LogLevel="ERROR") as ssh:
        shared = {**ssh, "ansible_python_interpreter": sys.executable}
        figures = []
        for name, until in (("killed", round(options.kill_at * options.hosts)), ("resumed", 0), ("again", 0)):
            before, began = wire_bytes(), time.monotonic()
            cost = collect(folder, shared, hosts, options.forks, until)
            done = len(collected(folder))
            figures.append((name, wire_bytes() - before, time.monotonic() - began, cost, done))
            if cost.rc != (-signal.SIGKILL if until else 0):
                sys.exit(f"{name}: exit code {cost.rc}:\n{(folder / 'output.txt').read_text(encoding='utf-8')}")
    wrong = [path.name for path in collected(folder) if differs(state / "runs" / fleet.RUN_ID, path)]
    if wrong or figures[1][-1] != options.hosts:
        sys.exit(f"{figures[1][-1]} of {options.hosts} hosts are collected; differ: {wrong}")
    each = sum(path.stat().st_size for path in (state / "runs").rglob("*") if path.is_file())
    for name, sent, wall_s, cost, done in figures:
        print(
            f"{name}: {done} of {options.hosts} hosts, {sent / 1e6:.1f} MB on the wire, {wall_s:.0f} s of wall,"
            f" {cost.cpu_s:.0f} CPU-s, {cost.memory_mib:.0f} MiB"
        )
    ratio = (figures[0][1] + figures[1][1]) / (each * options.hosts)
    memory_mib, wall_s = max(figure[3].memory_mib for figure in figures), figures[0][2] + figures[1][2]
    print(
        f"{each / 1e6:.1f} MB a host; killed and resumed together {ratio:.3f} times the bytes (limit {WIRE_LIMIT}),"
        f" {wall_s:.0f} s of wall; at most {memory_mib:.0f} MiB (limit {MEMORY_LIMIT_MIB})"
    )
    return busy_machine.exit_code(options, ratio > WIRE_LIMIT or memory_mib > MEMORY_LIMIT_MIB)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, default=30)
    parser.add_argument("--forks", type=int, default=5)
    parser.add_argument("--cells", type=int, default=56, help="of a host's run, 25 raw files each")
    parser.add_argument("--kill-at", type=float, default=0.5, help="share of the hosts that are collected by then")
    parser.add_argument("--folder", type=Path, default=Path("/dev/shm"), help="where all files lie meanwhile")
    busy_machine.add_argument(parser)
    options = parser.parse_args()
    fleet.clean_up_on_sigterm()
    own_network()
    with tempfile.TemporaryDirectory(prefix="ssdlab-collect-", dir=options.folder) as folder:
        return measure(Path(folder), options)


if __name__ == "__main__":
    sys.exit(main())
