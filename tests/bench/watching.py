# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What watching a fleet costs the controller: CPU, memory, and how old what it shows of a host gets.

All hosts are this machine, asked through an sshd of the bench's own, which notes when it is asked for which host; each
has a connection of its own. They show a host job that only keeps its status. The controller's side is real, ssh
included; the hosts' side is not counted. docs/fleet-size.md has the figures. Run as root from the repository's root:

.venv/bin/python tests/bench/watching.py [--hosts 300] [--minutes 5] [--interval SECONDS] [--persist SECONDS]
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
import typing as t
from pathlib import Path

import fleet

sys.path.insert(0, str(fleet.ROOT / "tests/integration"))

import sshd

CPU_LIMIT_PCT, AGE_LIMIT_S = 10.0, 120.0
# The host is in the path of what is asked for: …/host0001/runs/recorded/status.json.
LOOK = """#!/bin/sh
host=${{SSH_ORIGINAL_COMMAND##*/host}}
echo "$(date +%s.%N) ${{host%%/*}}" >> {looks}
eval "$SSH_ORIGINAL_COMMAND"
"""
# Linux: processes that their parent left, ssh's for later looks, become ours.
PR_SET_CHILD_SUBREAPER = 36


class Seen(t.NamedTuple):
    """Of one watch. cpu_pct: of one core, from the start of ansible-playbook to its end, ssh included; memory_mib: at
    most; ssh_mib: of the connections that stay open; age_s: the longest time between two looks at one host.
    """

    cpu_pct: float
    memory_mib: float
    ssh_mib: float
    age_s: float
    looks: int


def watch(folder: Path, count: int, seconds: float, interval_s: float | None = None, persist_s: int = 60) -> Seen:
    """Watch `count` hosts for so long. Exits where the watch fails or leaves a host out."""
    looks, script, state = folder / "looks.txt", folder / "look", folder / "state"
    script.write_text(LOOK.format(looks=looks), encoding="utf-8")
    script.chmod(0o755)
    command = [sys.executable, str(fleet.ROOT / "tests/integration/fake_job.py"), str(state), fleet.RUN_ID]
    environment = {**os.environ, "PYTHONPATH": str(fleet.ROOT / "playbooks/collections")}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with subprocess.Popen([*command, str(seconds + 600)], env=environment, **pipes) as job:
        job.stdout.readline()
        with sshd.loopback_sshd(folder, ForceCommand=script, MaxStartups=count + 10, LogLevel="ERROR") as shared:
            cost = _play(
                folder, shared, {f"host{number:04}": {} for number in range(count)}, seconds, interval_s, persist_s
            )
            connections = _connections()
            ssh_mib = sum(map(fleet._share_kib, connections)) / 1024
            ssh_cpu_s = sum(map(_ended, connections))
        job.stdin.close()
    if cost.rc:
        sys.exit(f"exit code {cost.rc}:\n{(folder / 'output.txt').read_text(encoding='utf-8')}")
    ages = _ages(looks.read_text(encoding="ascii").splitlines())
    if len(ages) != count:
        print((folder / "output.txt").read_text(encoding="utf-8"))
        sys.exit(f"{len(ages)} of {count} hosts were asked more than once")
    share = (cost.cpu_s + ssh_cpu_s) / cost.wall_s
    return Seen(100 * share, cost.memory_mib, ssh_mib, max(max(each) for each in ages.values()), _count(ages))


def _play(
    folder: Path,
    shared: fleet.Variables,
    hosts: t.Mapping[str, t.Any],
    seconds: float,
    interval_s: float | None,
    persist_s: int,
) -> fleet.Cost:
    """A watch, as the role workload begins it."""
    for name in hosts:
        (folder / name).symlink_to(folder / "state")
    look = {"run_id": fleet.RUN_ID, "for_s": seconds, **({"interval_s": interval_s} if interval_s else {})}
    tasks = [{"ssdlab.fleet.watch": look, "run_once": True}]
    playbook = folder / "watch.yml"
    playbook.write_text(json.dumps([{"hosts": "ssd_servers", "gather_facts": False, "tasks": tasks}]))
    own = {
        name: {"ssd_state_dir": str(folder / name), "ansible_control_path": str(folder / f"c-{name}")} for name in hosts
    }
    # As ansible.cfg has it: the connections' own options, and those alone.
    common = shared["ansible_ssh_common_args"].replace("-o ControlPath=none", "")
    arguments = f"-C -o ControlMaster=auto -o ControlPersist={persist_s}s"
    shared = {**shared, "ansible_ssh_common_args": common, "ansible_ssh_args": arguments}
    return fleet.play(folder, own, shared, extra=fleet.BESIDE, playbook=playbook)


def _connections() -> list[int]:
    """The processes of ssh that were left to us, those that have ended too."""
    pid = os.getpid()
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return [int(child) for child in children if Path(f"/proc/{child}/comm").read_text(encoding="ascii") == "ssh\n"]


def _ended(pid: int) -> float:
    """CPU seconds of a connection, which ends with this."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    _pid, _status, used = os.wait4(pid, 0)
    return used.ru_utime + used.ru_stime


def _ages(looks: t.Sequence[str]) -> dict[str, list[float]]:
    """Seconds between looks at each host, of those that were looked at more than once."""
    times = collections.defaultdict(list)
    for line in looks:
        when, host = line.split()
        times[host].append(float(when))
    return {host: [b - a for a, b in zip(each, each[1:])] for host, each in times.items() if len(each) > 1}


def _count(ages: t.Mapping[str, t.Sequence[float]]) -> int:
    return sum(len(each) + 1 for each in ages.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, nargs="+", default=[300])
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--interval", type=float, help="seconds between looks; by default as many as the watch takes")
    parser.add_argument("--persist", type=int, default=60, help="seconds that a connection stays open")
    options = parser.parse_args()
    high = False
    for count in options.hosts:
        with tempfile.TemporaryDirectory(prefix="ssdlab-watch-", dir="/dev/shm") as folder:
            seen = watch(Path(folder), count, options.minutes * 60, options.interval, options.persist)
        print(
            f"{count} hosts: {seen.cpu_pct:.1f} % of a core, {seen.memory_mib:.0f} MiB and {seen.ssh_mib:.0f} MiB of"
            f" open connections; {seen.looks} looks, no progress older than {seen.age_s:.0f} s",
            flush=True,
        )
        high |= seen.cpu_pct > CPU_LIMIT_PCT or seen.age_s > AGE_LIMIT_S
    print(f"limits: {CPU_LIMIT_PCT:.0f} % of a core, {AGE_LIMIT_S:.0f} s")
    return 1 if high else 0


if __name__ == "__main__":
    sys.exit(main())
