# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Trials for threads: auto on a drive whose fio takes three CPUs."""

from __future__ import annotations

import types

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.job.drive_context import Attempt
from ansible_collections.ssdlab.fleet.plugins.module_utils.job.thread_trials import ThreadTrials
from ansible_collections.ssdlab.fleet.plugins.module_utils.machine.cpus import Place
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import fio
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.measurement import Chosen
from ansible_collections.ssdlab.fleet.tests.fixtures import planned

AUTO = {"auto_threads": True, "queue_depth": 32}
READS, WRITES = (
    {**AUTO, "id": name, "read_pct": pct, "trial_job": "[global]\na\n"} for name, pct in (("r", 100), ("w", 0))
)
OTHERS = {**AUTO, "id": "o", "block_size_bytes": 131072, "trial_job": "[global]\nb\n"}
TEST = planned.spec(cells=[READS, WRITES, OTHERS, {"id": "one"}])
FIRST = Attempt("t", 1)


class Station:
    """A drive that has the CPUs 0 to 15. history: what earlier jobs noted."""

    def __init__(self, history=(), cpu_s=3.0):
        self.plan, self.history = types.SimpleNamespace(tests=[TEST]), list(history)
        self.job = types.SimpleNamespace(host=Host())
        self.bench = types.SimpleNamespace(place=Place("0-15", None, None, ""), trial=self._trial)
        self.tried, self.shown, self._cpu_s = [], [], cpu_s

    def _trial(self, name, cell, size_bytes, _seed):
        assert cell.read_pct == 100 and size_bytes == 1 << 30
        self.tried.append((cell.job[-2], cell.threads))
        if self._cpu_s is None:
            raise fio.DriveError(f"{name}: no I/O")
        busy = min(1.0, self._cpu_s / cell.threads)
        seen = types.SimpleNamespace(fio_cpu=busy, waited_s=None, cpu_steal=None, run_s=3.0)
        return types.SimpleNamespace(details=types.SimpleNamespace(seen=seen, read=types.SimpleNamespace(iops=1000.0)))

    def active_bytes(self, _test):
        return 1 << 30

    def file(self, attempt, step):
        return f"{attempt.test}-{attempt.attempt}-{step}"

    def seed(self, *_place):
        return 1

    def show(self, **fields):
        self.shown.append(fields)


def note(cell, threads, test="t"):
    """A cell's event in an earlier job's journal."""
    return {"event": "cell", "test": test, "cell": cell, "chosen": {"threads": threads, "queue_depth": 32 // threads}}


def test_each_shape_is_tried_once_for_a_drive_and_the_cells_have_what_was_found():
    station = Station()
    trials = ThreadTrials(station)
    test, loads = trials.with_threads(TEST, FIRST)
    # Three CPUs: below 60 % of each with eight threads, and of those that write below 37.5 % of sixteen.
    assert station.tried == [("a", 1), ("a", 2), ("a", 4), ("a", 8), ("b", 1), ("b", 2), ("b", 4), ("b", 8)]
    assert loads == {
        "r": Chosen(8, 4, cpus=16, trial_cpu=0.375),
        "w": Chosen(16, 2, cpus=16),
        "o": Chosen(8, 4, cpus=16, trial_cpu=0.375),
    }
    assert [(cell.threads, cell.queue_depth) for cell in test.cells] == [(8, 4), (16, 2), (8, 4), (1, 1)]
    assert all(fields["news_within_s"] > 3 for fields in station.shown)
    assert trials.with_threads(TEST, Attempt("t", 2)) == (test, loads) and len(station.tried) == 8


def test_a_drive_so_slow_that_one_thread_is_enough_stays_with_one():
    _test, loads = ThreadTrials(Station(cpu_s=0.2)).with_threads(TEST, FIRST)
    assert {(load.threads, load.queue_depth) for load in loads.values()} == {(1, 32)}


def test_what_earlier_jobs_of_the_run_found_stays():
    history = [note("r", 2), note("w", 4), {"event": "cell", "test": "t", "cell": "one"}, {"event": "round"}]
    station = Station([*history, note("o", 1, test="another"), note("o", 4)])
    _test, loads = ThreadTrials(station).with_threads(TEST, FIRST)
    assert station.tried == []
    assert {name: load.threads for name, load in loads.items()} == {"r": 2, "w": 4, "o": 4}


def test_more_threads_than_the_drive_has_cpus_now_are_chosen_again():
    station = Station([note("r", 32), note("w", 4), note("o", 4)])
    _test, loads = ThreadTrials(station).with_threads(TEST, FIRST)
    assert {name: load.threads for name, load in loads.items()} == {"r": 8, "w": 4, "o": 4}


def test_a_test_without_such_cells_tries_nothing():
    station, test = Station(), planned.spec(cells=[{"id": "one"}])
    assert ThreadTrials(station).with_threads(test, FIRST) == (test, {}) and station.tried == []


def test_the_error_of_a_trial_names_its_cell_and_stays_the_drives():
    with pytest.raises(fio.DriveError, match="trial of cell r with 1 threads: t-1-threads1-r: no I/O"):
        ThreadTrials(Station(cpu_s=None)).with_threads(TEST, FIRST)
