# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A short sample of tests/bench/false_refusals.py: five drives in each state that our own work leaves them in, looked
at on this machine.
"""

from __future__ import annotations

import os
import sys

import own_machine
import pytest
from conftest import REPO

sys.path.insert(0, str(REPO / "tests" / "bench"))

import false_refusals  # pylint: disable=wrong-import-position


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for loop devices")
@pytest.mark.parametrize("state", false_refusals.STATES)
def test_no_drive_is_refused_that_nobody_else_used(state, monkeypatch):
    monkeypatch.setattr(
        false_refusals.Drive,
        "attach",
        lambda drive: setattr(drive, "path", own_machine.attach(drive.file, "--direct-io=on")),
    )
    assert false_refusals.refused(state, looks=5, seconds=0.2, drives=5) == []
