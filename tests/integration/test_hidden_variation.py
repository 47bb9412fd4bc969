# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The slowest second of real cells, on a simulated drive that is even, and one that stalls for a second and a half."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from pathlib import Path

import measuring
import pytest
import simulated_ssd as simulator

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import kernel_counters

# 32 of its I/Os take it 0.2 s, longer than fio is kept from its CPU by most machines.
IOPS, DEPTH = 160, 32
CELL = {"queue_depth": DEPTH, "runtime_s": 10}
# In the middle of a cell, whenever a busy machine begins it.
STOP_AFTER_IOS, STOPPED_S = 4 * IOPS, 1.5
pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root for loop devices"),
    pytest.mark.exclusive(depth=DEPTH, iops=IOPS),
]


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """A drive's device and the process that is it."""
    figures = {"size_bytes": 64 << 20, "fresh_iops": IOPS, "steady_iops": IOPS, "read_iops": IOPS}
    folder = tmp_path_factory.mktemp("drives")
    with simulator.simulated_ssd(folder, "stalls", simulator.model_plugin(**figures)) as drive:
        yield drive["device"], int(Path(folder, "stalls.pid").read_text(encoding="utf-8"))


@pytest.fixture
def cells(simulated, tmp_path):
    made = measuring.Measuring(simulated[0], tmp_path)
    try:
        yield made
    finally:
        made.close()


@contextlib.contextmanager
def stalled(device, pid):
    """Stop the process that is the drive for a while, once it has done so many I/Os."""
    over = threading.Event()
    witness = kernel_counters.Witness(Host(), os.path.basename(device), None)
    began = witness.sample().ios

    def run():
        while witness.sample().ios - began < STOP_AFTER_IOS:
            if over.wait(0.05):
                return
        os.kill(pid, signal.SIGSTOP)
        time.sleep(STOPPED_S)
        os.kill(pid, signal.SIGCONT)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_a_drive_that_is_even_has_no_slow_second(cells):
    assert cells.cell(**CELL).seen.slowest_second_pct < 50


def test_a_drive_that_stalls_for_a_second_shows_it(cells, simulated):
    with stalled(*simulated):
        told = cells.cell(**CELL)
    assert told.seen.slowest_second_pct > 80


def test_a_cell_that_is_too_short_has_none(cells):
    assert cells.cell(queue_depth=DEPTH).seen.slowest_second_pct is None
