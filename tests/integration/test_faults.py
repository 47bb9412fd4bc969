# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A sample of the fault bench (tests/faults); `scripts/test faults` plays all of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from table import CASES

FAULTS = Path(__file__).resolve().parents[1] / "faults"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root for loop devices")


@pytest.mark.variants(2)
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.sample])
def test_a_host_job_survives(name):
    if CASES[name].served and not shutil.which("nbdfuse"):
        pytest.skip("needs nbdkit and nbdfuse for a drive that hangs")
    # A process of its own: the bench waits for all of its children.
    done = subprocess.run(
        [sys.executable, str(FAULTS / "run.py"), "--jobs", "1", "--case", name],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
