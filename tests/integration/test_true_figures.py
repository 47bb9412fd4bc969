# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Figures that must not be believed: real campaigns, real fio, on simulated drives whose true rates are known."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import simulated_ssd as simulator
import yaml

MIB = 1 << 20
DEMO = Path(__file__).resolve().parents[2] / "roles/workload/files/plans/demo.yml"
TRUE_IOPS = 350
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root for loop devices")


@pytest.fixture
def worn_drive(tmp_path):
    """Make a drive that is fast while fresh, 2,200 IOPS, and slow in its steady state, 350: worn_drive(size_mib)."""
    made = []

    def make(size_mib):
        directory = tmp_path / "drives"
        figures = {
            "size_bytes": size_mib * MIB,
            "fresh_iops": 2200,
            "steady_iops": TRUE_IOPS,
            "read_iops": 3000,
            "seed": 3,
        }
        made.append(simulator.simulated_ssd(directory, "worn", simulator.model_plugin(**figures)))
        return made[-1].__enter__()

    try:
        yield make
    finally:
        for drive in made:
            drive.__exit__(None, None, None)


def judged(site, drive, tests):
    """The only drive of summary.json after a whole qualification, with a criterion that its true rate misses."""
    site.hosts = {"server": {"ssd_drives": [{"backing_file": drive["backing_file"]}]}}
    site.vars.update(ssd_plan=tests, ssd_criteria=[{"test": "wsat", "metric": "write_iops", "min": 480}])
    code, output = site.play("qualify")
    (found,) = site.summary()["drives"]
    assert code != 0, output
    return found


def test_a_plateau_before_the_fall_is_not_certified(worn_drive, site):
    """The demo's own limits end before 2 x 256 MiB are written: its curve counts, and has no figure for the criterion,
    and not the 2,028 IOPS of a drive that is still fresh.
    """
    wsat, _iops = yaml.safe_load(DEMO.read_text(encoding="utf-8"))
    found = judged(site, worn_drive(256), [wsat])
    (wsat,) = found["tests"]
    assert (found["verdict"], wsat["verdict"], wsat["metrics"]["write_iops"]) == ("invalid", "invalid", None)
    assert any("no window may begin before 2 x the user capacity" in text for text in wsat["remarks"])


@pytest.mark.long
@pytest.mark.exclusive(depth=32, iops=TRUE_IOPS)
def test_with_time_enough_the_true_rate_is_measured_and_fails(worn_drive, site):
    wsat = {
        "base": "wsat",
        "name": "wsat",
        "steady_state": {"sample_every": 2},
        "rounds": {"max": 200, "capacity_multiple": 12, "time_limit_s": 200},
    }
    cell = {"access": "random", "block_size": "4KiB", "read_pct": 0, "threads": 1, "queue_depth": 32, "runtime_s": 1}
    found = judged(site, worn_drive(64), [{**wsat, "cells": [cell]}])
    (test,) = found["tests"]
    assert test["verdict"] == "fail" and test["metrics"]["write_iops"] == pytest.approx(TRUE_IOPS, rel=0.02)
    assert test["metrics"]["write_iops_fitted_end"] == pytest.approx(TRUE_IOPS, rel=0.04)
