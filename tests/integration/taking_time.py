# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ways to take time from fio while it measures: other load, a hypervisor's stops, a quota. For tests and benches."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

# Of real-time priority where that is allowed: nothing else then runs on the CPU meanwhile.
SLICES = """
import os, sys, time
busy_s, free_s = map(float, sys.argv[1:])
try:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
except OSError:
    pass
while True:
    until_s = time.monotonic() + busy_s
    while time.monotonic() < until_s:
        pass
    time.sleep(free_s)
"""


class Unavailable(Exception):
    """This machine can't take time in this way."""


@contextlib.contextmanager
def loops(cpu, count=1):
    """Busy loops of normal priority on a CPU."""
    with _beside([["taskset", "-c", str(cpu), "sh", "-c", "while :; do :; done"]] * count):
        yield


@contextlib.contextmanager
def slices(cpu, busy_s, free_s):
    """A CPU taken for busy_s, again and again, with free_s between."""
    with _beside([["taskset", "-c", str(cpu), sys.executable, "-c", SLICES, str(busy_s), str(free_s)]]):
        yield


@contextlib.contextmanager
def _beside(commands):
    processes = [subprocess.Popen(command) for command in commands]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


@contextlib.contextmanager
def stopped(for_s, every_s):
    """fio, as it is found among our children, stopped again and again, as a guest whose host gives it no time is."""
    over = threading.Event()

    def run():
        while not over.wait(every_s):
            for pid in _fio():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
                    time.sleep(for_s)
                    os.kill(pid, signal.SIGCONT)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _fio():
    found = []
    for thread in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{thread}/children") as source:
            found += [int(pid) for pid in source.read().split()]
    return [pid for pid in found if open(f"/proc/{pid}/comm").read() == "fio\n"]


@contextlib.contextmanager
def quota(share):
    """This process, and what it starts, in a control group that may use so much of one CPU. Raises Unavailable."""
    v1 = Path("/sys/fs/cgroup/cpu")
    base = v1 if v1.is_dir() else Path("/sys/fs/cgroup")
    if not (base / "cgroup.procs").exists():
        raise Unavailable("no control groups here")
    group, period_us = base / f"ssdlab-test-{os.getpid()}", 100_000
    lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    home = [path for _number, names, path in lines if names.split(",")[0] == ("cpu" if v1.is_dir() else "")][0]
    try:
        group.mkdir()
        if v1.is_dir():
            (group / "cpu.cfs_quota_us").write_text(str(int(share * period_us)))
        else:
            (group / "cpu.max").write_text(f"{int(share * period_us)} {period_us}")
        (group / "cgroup.procs").write_text(str(os.getpid()))
    except OSError as error:
        with contextlib.suppress(OSError):
            group.rmdir()
        raise Unavailable(f"control groups can't be used here: {error}") from None
    try:
        yield
    finally:
        # What it started meanwhile may go on, such as a bench's timer.
        for pid in (group / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                (base / home.lstrip("/") / "cgroup.procs").write_text(pid)
        group.rmdir()
