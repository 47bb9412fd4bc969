# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A short sample of tests/bench/collecting.py: a collect over ssh that is killed goes on where it was, and what an
interrupted bench made is taken away.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import sshd
from waiting import wait_for_end, wait_until, works

BENCH = Path(__file__).resolve().parents[1] / "bench" / "collecting.py"

pytestmark = pytest.mark.skipif(os.geteuid() != 0 or not sshd.SSHD, reason="needs root, and an sshd")


def bench(folder):
    """The bench with three hosts, one at a time; it kills the collect once the first host is there."""
    argv = [sys.executable, str(BENCH), "--hosts", "3", "--forks", "1", "--kill-at", "0.3", "--folder", str(folder)]
    return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_a_killed_collect_goes_on_where_it_was(tmp_path):
    with bench(tmp_path) as process:
        said, _errors = wait_for_end(process)
    done = dict(re.findall(r"^(\w+): (\d) of 3 hosts", said, re.MULTILINE))
    assert int(done["killed"]) < 3 and done["resumed"] == done["again"] == "3", said
    # The host that was under way when the collect was killed is sent again, and no other one.
    assert float(re.search(r"together ([\d.]+) times the bytes", said).group(1)) < 1 + 1 / 3 + 0.1, said
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_bench_leaves_nothing(tmp_path):
    with bench(tmp_path) as process:
        wait_until(
            lambda: list(tmp_path.glob("*/results/*/raw")),
            "a collected host",
            progress=works(process.pid),
            process=process,
        )
        process.send_signal(signal.SIGTERM)
        said, _errors = wait_for_end(process)
    assert "ended by SIGTERM" in said and process.returncode and list(tmp_path.iterdir()) == []
