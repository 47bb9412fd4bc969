# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether scripts/demo ends as expected on a busy machine: a Markdown table of demos beside busy loops, and of demos in
a control group that has half of the machine's CPU time. Needs root; takes three to ten minutes for each demo.

    python tests/bench/demo_under_load.py --beside 10 --limited 5

Its loops have normal priority and are ended by their ids; the control group is its own, and removed. Exit code 0: each
demo ended as expected, or was stopped by --stop-after.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import os
import re
import signal
import subprocess
import sys
import time
import typing as t
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GROUPS = Path("/sys/fs/cgroup")
NAME = f"ssdlab-bench-{os.getpid()}"
PERIOD_US = 100_000
LOOPS = 2
# The limit is ten minutes; what takes longer is stopped and counts as failed.
LIMIT_S = 900


class Ending(t.NamedTuple):
    """How a demo ended. code: its exit code; stopped: by this bench."""

    seconds: float
    code: int
    stopped: bool
    verdicts: str

    @property
    def text(self):
        if self.stopped and self.code == 128 + signal.SIGTERM:
            return "stopped"
        return "as expected" if self.code == 0 else f"not as expected ({self.code})"


@contextlib.contextmanager
def busy_loops():
    """Two processes that never wait, one for each CPU of a small machine."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _loop in range(LOOPS)]
    try:
        yield []
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


@contextlib.contextmanager
def half_of_the_cpu():
    """The words before a command that put it into a control group with half of the CPU time (version 1 or 2)."""
    parent = GROUPS / "cpu" if (GROUPS / "cpu/cpu.cfs_quota_us").exists() else GROUPS
    quota_us = PERIOD_US * os.cpu_count() // 2
    control, enabled = GROUPS / "cgroup.subtree_control", False
    if parent == GROUPS and "cpu" not in control.read_text().split():
        control.write_text("+cpu")
        enabled = True
    group = parent / NAME
    group.mkdir()
    try:
        if parent == GROUPS:
            (group / "cpu.max").write_text(f"{quota_us} {PERIOD_US}")
        else:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(quota_us))
        yield ["sh", "-c", 'echo $$ > "$0" && exec "$@"', str(group / "cgroup.procs")]
    finally:
        remove(group)
        if enabled:
            control.write_text("-cpu")


def remove(group):
    """Remove the group once what runs in it has ended."""
    deadline_s = time.monotonic() + 30
    while True:
        try:
            group.rmdir()
            return
        except OSError:
            if time.monotonic() > deadline_s:
                raise
            time.sleep(0.2)


LOADS = {"beside two busy loops": busy_loops, "half of the CPU": half_of_the_cpu}


def run_demo(before, stop_after_s):
    """One demo, whose output goes to standard error if it did not end as it should."""
    begun_s = time.monotonic()
    # A session of its own: Ctrl-C ends this bench, which ends the demo.
    demo = subprocess.Popen(
        [*before, str(ROOT / "scripts/demo")],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    stopped = False
    try:
        output = demo.communicate(timeout=stop_after_s or LIMIT_S)[0]
    except subprocess.TimeoutExpired:
        stopped = bool(stop_after_s)
        demo.send_signal(signal.SIGTERM)
        output = demo.communicate()[0]
    except BaseException:
        demo.send_signal(signal.SIGTERM)
        demo.communicate()
        raise
    seconds = time.monotonic() - begun_s
    found = re.findall(r"^  (good-1|good-2|worn) +(\S+)", output, re.MULTILINE)
    if demo.returncode and not stopped:
        print(output, file=sys.stderr)
    return Ending(seconds, demo.returncode, stopped, ", ".join(f"{name} {verdict}" for name, verdict in found))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--beside", type=int, default=1, help="demos beside two busy loops")
    parser.add_argument("--limited", type=int, default=1, help="demos in a control group with half of the CPU time")
    parser.add_argument("--stop-after", type=float, metavar="S", help="stop each demo after so many seconds")
    options = parser.parse_args()
    if os.geteuid() != 0:
        parser.error("it needs root")
    # Normal, also where it was started by something nice: demos and loops have the same.
    os.setpriority(os.PRIO_PROCESS, 0, 0)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    subprocess.run([str(ROOT / "scripts/setup"), "demo"], check=True)
    print("| # | load | time | ended | verdicts |\n| --- | --- | --- | --- | --- |", flush=True)
    loads = ["beside two busy loops"] * options.beside + ["half of the CPU"] * options.limited
    endings = collections.Counter()
    for number, load in enumerate(loads, 1):
        with LOADS[load]() as before:
            ending = run_demo(before, options.stop_after)
        minutes, seconds = divmod(round(ending.seconds), 60)
        print(f"| {number} | {load} | {minutes}:{seconds:02d} | {ending.text} | {ending.verdicts or '–'} |", flush=True)
        endings[ending.text] += 1
    print(f"\n{len(loads)} demos: " + ", ".join(f"{count} {text}" for text, count in endings.items()))
    return not set(endings) <= {"as expected", "stopped"}


if __name__ == "__main__":
    sys.exit(main())
