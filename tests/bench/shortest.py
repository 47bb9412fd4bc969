# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The shortest form of each bench that the docs cite: it shows that the bench runs, on any machine."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import typing as t
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Against one that hangs; a slow machine is no fault of theirs.
TIMEOUT_S = 900


class Bench(t.NamedTuple):
    """arguments: the shortest form; FOLDER is an empty one. says: a line of its output, a pattern."""

    arguments: str
    says: str


BENCHES = {
    "campaigns": Bench("--number 1 --drives 1 --short --busy", r"1 campaigns: \{'\w+': 1\}; [\d.]+ s at most .*"),
    "collecting": Bench("--hosts 2 --cells 1 --busy", r"resumed: 2 of 2 hosts, .* MB on the wire, .*"),
    "demo_under_load": Bench(
        "--beside 1 --limited 1 --stop-after 3", r"\| 2 \| half of the CPU \| \d+:\d\d \| stopped \| – \|"
    ),
    "effects": Bench(
        "--seconds 1 --depths 1 --only loops --drive parallel --busy", r"6 cells: rates \d false alarms, \d misses; .*"
    ),
    "engine_cost": Bench("--pairs 1 --seconds 1 --busy", r"\| io_uring_fixed \| [\d,]+ \| [\d,]+ \| median [\d.]+, .*"),
    "estimates": Bench("--plans smoke --share 0.01 --busy", r"\| `smoke` \| \d+ s \| [\d.]+ to [\d.]+ \| .*"),
    "false_alarms": Bench("--cells 1 --drives 1 --busy", r"1 cells, \d false alarms; load average .*"),
    "false_refusals": Bench("--looks 1 --drives 1 --only fresh", r"\| fresh \| 0 of 1 \|"),
    "fleet": Bench("--hosts 2 --busy", r"2 hosts.*CPU-s.*"),
    "fleet_page": Bench("--drives 20 --runs 8 --metrics 10 --busy", r"\| 20 \| 8 \| 1,600 \| \d+ MiB \| .* MB \|"),
    "fleet_statistics": Bench("--table flags --fleets 1 --drives 8", r"\| 8 \| normal 3 %.* \| [01]\.000 \|"),
    "harness": Bench("--pairs 1 --cells 2 --seconds 1 --busy", r"median ratio [\d.]+ \(limit .*"),
    "journal": Bench("--mib 1 cell torn", r"torn +1 .*  left out, as it cannot be trusted: .*"),
    "look": Bench("--looks 1 --seconds 0.05", r"\| 4 GiB \| 1 GiB \| [01] of 1 \| .*"),
    "lying_drives": Bench(
        "--lies vanish --tests one --honest 3 --share 2/3", r"1 honest runs, 0 false alarms; 0 cells of .*"
    ),
    "nights": Bench("--nights 1 --hosts 2 --drives 6", r"all: \d+ of \d+ tests of healthy drives count .*"),
    "pictures": Bench("--folder FOLDER", r"FOLDER/report-fleet\.png"),
    "read_back_cost": Bench("--passes 1 --mib 16 --busy", r"\| reading back \| [\d.]+ CPU-s \| .* s \|"),
    "report": Bench("--drives 20 --metrics 10 --busy", r"\| 20 \| [\d.]+ s \| .* ms each \|"),
    "slices": Bench("--hosts 2 --slices 1", r"2 hosts in 1 slices: [\d.]+ CPU-s a host, .*"),
    "ssh_hosts": Bench("--hosts 1 --seconds 1 --busy", r"1 hosts: slowest [\d.]+ s, wall .*"),
    "store": Bench("--drives 4 --runs 2", r"\| 4 \| 2 \| 480 \| .*"),
    "suite_pictures": Bench("--short --folder FOLDER", r"FOLDER/suite-sweep\.png \d+ bytes"),
    "template_cost": Bench("--pairs 1 --seconds 1 --busy", r"  template ÷ printed median [\d.]+, .*"),
    "watching": Bench("--hosts 2 --minutes 0.25 --interval 1 --busy", r"2 hosts: [\d.]+ % of a core, .*"),
}
# They boot a guest: tests/vm/test_benches.py.
IN_A_GUEST = {
    "false_refusals_guest": Bench("--looks 10", r"\| \d+ \| \d+ \| \d+ \| \d+ \| .* \|"),
    "look_guest": Bench("--seconds 1", r"\| \w+ \| 1 \| [\d.]+ s \| \d+ \| .* s \|.*"),
}


def run(name, bench, folder):
    """Start it as a user does. A bench that hangs is ended as Ctrl-C ends it, so that it takes away what it made."""
    arguments = bench.arguments.replace("FOLDER", str(folder)).split()
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "tests/bench" / f"{name}.py"), *arguments],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        output, errors = process.communicate(timeout=TIMEOUT_S)
    except BaseException:
        process.send_signal(signal.SIGINT)
        process.communicate()
        raise
    said = f"{output}\n{errors}"
    assert process.returncode == 0, said
    pattern = bench.says.replace("FOLDER", re.escape(str(folder)))
    assert any(re.fullmatch(pattern, line) for line in output.splitlines()), said
