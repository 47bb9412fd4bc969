# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Short samples of the benches of watching and collecting (docs/fleet-size.md), which ask real hosts over ssh."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from sshd import SSHD

REPO = Path(__file__).resolve().parents[2]
# A second is long on a machine that others use too.
INTERVAL_S, LATE_S = 3, 12

pytestmark = pytest.mark.skipif(not SSHD or os.geteuid() != 0, reason="needs root and sshd (Debian: openssh-server)")


def bench(name, *options):
    """What a bench printed. Its limits are for a fleet, and for a machine that does nothing else."""
    command = [sys.executable, str(REPO / "tests/bench" / f"{name}.py"), *map(str, options)]
    done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, timeout=120, check=False)
    assert "limit" in done.stdout, done.stdout + done.stderr
    return done.stdout


def test_every_host_is_looked_at_as_often_as_the_watch_says():
    said = bench("watching", "--hosts", 4, "--minutes", 0.2, "--interval", INTERVAL_S)
    looks, age_s = map(int, re.search(r"; (\d+) looks, no progress older than (\d+) s", said).groups())
    assert looks >= 4 * 2 and INTERVAL_S <= age_s <= LATE_S, said


def test_a_killed_collect_goes_on_and_brings_no_host_twice():
    said = bench("collecting", "--hosts", 4, "--forks", 1, "--files", 500, "--kill-at", 0.5)
    sent = {
        name: (int(hosts), float(mb)) for name, hosts, mb in re.findall(r"(\w+): (\d) of 4 hosts, ([\d.]+) MB", said)
    }
    assert 2 <= sent["killed"][0] < 4 and sent["resumed"][0] == 4, said
    # Of the hosts that were collected only the question is sent again.
    archive_mb = float(re.search(r"([\d.]+) MB a host", said)[1])
    assert sent["resumed"][1] < (4 - sent["killed"][0] + 0.5) * archive_mb, said
    assert sent["again"][1] < archive_mb, said
