# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What watching a fleet costs the controller: CPU, memory, and how old what it shows of a host gets.

All hosts are this machine, asked through an sshd of the bench's own, which notes when it is asked for which host; each
has a connection of its own, with the ssh_args of the repository's ansible.cfg. They show a host job that only keeps its
status. The controller's side is real, ssh included; the hosts' side is not counted. It fails where the whole watch, its
first logins included, takes more than 10 % of a core, or a host is not looked at for two minutes. docs/fleet-size.md
has the figures. Run as root from the repository's root:

.venv/bin/python tests/bench/watching.py [--hosts 300] [--minutes 10] [--interval SECONDS]
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
import threading
import time
import typing as t
from pathlib import Path

import busy_machine
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
    """Of one watch. cpu_pct: of one core, ssh included, from the start of ansible-playbook to its end; memory_mib: at
    most; ssh_mib: of the connections that stay open; age_s: the longest time that a host was not looked at, from the
    start to the end. first_s: until all were looked at once. later_*: without that time.
    """

    cpu_pct: float
    later_cpu_pct: float
    memory_mib: float
    ssh_mib: float
    age_s: float
    later_age_s: float
    first_s: float
    looks: int


class FirstLook(threading.Thread):
    """Notes when every host was looked at once, and the CPU seconds that this took. Ended by `over`."""

    def __init__(self, looks: Path, count: int) -> None:
        super().__init__()
        self._looks, self._count = looks, count
        self.over = threading.Event()
        self.at, self.cpu_s = time.time(), 0.0

    def run(self) -> None:
        """Look now and then, as that costs the controller nothing."""
        while not self.over.wait(0.5):
            if self._looks.exists() and len(_times(self._looks)) == self._count:
                self.at, self.cpu_s = time.time(), _cpu_s()
                return


def watch(folder: Path, count: int, seconds: float, interval_s: float | None = None) -> Seen:
    """Watch `count` hosts for so long. Exits where the watch fails or leaves a host out."""
    looks, script, state = folder / "looks.txt", folder / "look", folder / "state"
    script.write_text(LOOK.format(looks=looks), encoding="utf-8")
    script.chmod(0o755)
    names = [f"host{number:04}" for number in range(count)]
    command = [sys.executable, str(fleet.ROOT / "tests/integration/fake_job.py"), str(state), fleet.RUN_ID]
    environment = {**os.environ, "PYTHONPATH": str(fleet.ROOT / "playbooks/collections")}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with subprocess.Popen([*command, str(seconds + 600)], env=environment, **pipes) as job:
        job.stdout.readline()
        with sshd.loopback_sshd(folder, ForceCommand=script, MaxStartups=count + 10, LogLevel="ERROR") as shared:
            first = FirstLook(looks, count)
            first.start()
            began = time.time()
            cost = _play(folder, shared, names, seconds, interval_s)
            first.over.set()
            first.join()
            connections = _connections()
            ssh_mib = sum(map(fleet._share_kib, connections)) / 1024
            ssh_cpu_s = sum(map(_ended, connections))
        job.stdin.close()
    if cost.rc:
        sys.exit(f"exit code {cost.rc}:\n{(folder / 'output.txt').read_text(encoding='utf-8')}")
    return _seen(cost._replace(cpu_s=cost.cpu_s + ssh_cpu_s), ssh_mib, _times(looks), began, first, count)


def _seen(
    cost: fleet.Cost,
    ssh_mib: float,
    times: t.Mapping[str, t.Sequence[float]],
    began: float,
    first: FirstLook,
    count: int,
) -> Seen:
    """The figures of a watch. Exits where a host was never looked at again after the first look."""
    again = sum(len(each) > 1 for each in times.values())
    if again != count or not first.cpu_s:
        sys.exit(
            f"{len(times)} of {count} hosts were asked, {again} more than once, in {cost.wall_s:.0f} s: give it more"
            " --minutes, or a quiet machine"
        )
    ended = began + cost.wall_s
    later_s = ended - first.at
    return Seen(
        cpu_pct=100 * cost.cpu_s / cost.wall_s,
        later_cpu_pct=100 * (cost.cpu_s - first.cpu_s) / later_s,
        memory_mib=cost.memory_mib,
        ssh_mib=ssh_mib,
        age_s=max(_longest([began, *each, ended]) for each in times.values()),
        later_age_s=max(_longest([*each, ended]) for each in times.values()),
        first_s=first.at - began,
        looks=sum(map(len, times.values())),
    )


def _longest(times: t.Sequence[float]) -> float:
    return max(b - a for a, b in zip(times, times[1:]))


def _play(
    folder: Path,
    shared: fleet.Variables,
    hosts: t.Sequence[str],
    seconds: float,
    interval_s: float | None,
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
    # ansible.cfg says how long a connection stays open.
    common = shared["ansible_ssh_common_args"].replace("-o ControlPath=none", "")
    shared = {**shared, "ansible_ssh_common_args": common}
    return fleet.play(folder, own, shared, extra=fleet.BESIDE, playbook=playbook)


def _children() -> list[int]:
    tasks = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text(encoding="ascii").split()]


def _connections() -> list[int]:
    """The processes of ssh that were left to us, those that have ended too."""
    return [child for child in _children() if _proc(child, "comm") == b"ssh\n"]


def _ended(pid: int) -> float:
    """CPU seconds of a connection, which ends with this."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    _pid, _status, used = os.wait4(pid, 0)
    return used.ru_utime + used.ru_stime


def _cpu_s() -> float:
    """CPU seconds so far of the watch under way, with its workers and ssh."""
    plays = [child for child in _children() if b"ansible-playbook" in _proc(child, "cmdline")]
    watching = [member for play in plays for member in fleet._family(play)]
    # utime, stime, cutime and cstime: fields 14 to 17 of proc(5), stat, of which the second may hold blanks.
    fields = [_proc(pid, "stat").rpartition(b")")[2].split()[11:15] for pid in [*watching, *_connections()]]
    return sum(int(ticks) for each in fields for ticks in each) / os.sysconf("SC_CLK_TCK")


def _proc(pid: int, name: str) -> bytes:
    """A file of a process; empty once it is gone."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/{name}").read_bytes()
    return b""


def _times(looks: Path) -> dict[str, list[float]]:
    """When each host was looked at, in seconds of the clock. A line that is being written is left out."""
    times = collections.defaultdict(list)
    for line in looks.read_text(encoding="ascii").splitlines(keepends=True):
        if line.endswith("\n"):
            when, host = line.split()
            times[host].append(float(when))
    return times


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, nargs="+", default=[300])
    parser.add_argument("--minutes", type=float, default=10, help="the goal is for watches of 10 minutes or more")
    parser.add_argument("--interval", type=float, help="seconds between looks; by default as many as the watch takes")
    busy_machine.add_argument(parser)
    options = parser.parse_args()
    fleet.clean_up_on_sigterm()
    high = False
    for count in options.hosts:
        with tempfile.TemporaryDirectory(prefix="ssdlab-watch-", dir="/dev/shm") as folder:
            seen = watch(Path(folder), count, options.minutes * 60, options.interval)
        print(
            f"{count} hosts: {seen.cpu_pct:.1f} % of a core, oldest progress {seen.age_s:.0f} s;"
            f" without the first look's logins ({seen.first_s:.0f} s): {seen.later_cpu_pct:.1f} % and"
            f" {seen.later_age_s:.0f} s; {seen.looks} looks, {seen.memory_mib:.0f} MiB and {seen.ssh_mib:.0f} MiB of"
            " open connections",
            flush=True,
        )
        high |= seen.cpu_pct > CPU_LIMIT_PCT or seen.age_s > AGE_LIMIT_S
    print(f"limits of the whole watch: {CPU_LIMIT_PCT:.0f} % of a core, {AGE_LIMIT_S:.0f} s")
    return busy_machine.exit_code(options, high)


if __name__ == "__main__":
    sys.exit(main())
