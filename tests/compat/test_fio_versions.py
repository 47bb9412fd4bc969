# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A whole qualification with each other fio at hand that the collection takes: those that SSDLAB_FLEET_FIOS names, as
PATH has folders, else /opt/fio*/bin/fio.
"""

from __future__ import annotations

import glob
import os
import re
import subprocess
from pathlib import Path

import pytest
from conftest import SHORT_TEST

NAMED = "SSDLAB_FLEET_FIOS"
OLDEST = (3, 28)
# What a job asks of fio: both directions in one job, a sequence, depth 1, several threads, and a limited rate.
CELLS = [
    SHORT_TEST["cells"][0],
    {"access": "random", "block_size": "4KiB", "read_pct": 65, "threads": 2, "queue_depth": 4, "runtime_s": 1},
    {"access": "sequential", "block_size": "128KiB", "read_pct": 100, "threads": 1, "queue_depth": 8, "runtime_s": 1},
    {"access": "random", "block_size": "4KiB", "read_pct": 100, "threads": 1, "queue_depth": 1, "runtime_s": 1},
]


def version_of(path):
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    match = re.match(r"fio-(\d+)\.(\d+)", said)
    return (int(match[1]), int(match[2])) if match else None


def at_hand():
    """The oldest and the newest of them: {version: path}."""
    named = os.environ.get(NAMED, "").split(os.pathsep)
    found = {version_of(path): path for path in filter(None, named if any(named) else glob.glob("/opt/fio*/bin/fio"))}
    taken = sorted(version for version in found if version and version >= OLDEST)
    return {version: found[version] for version in [*taken[:1], *taken[-1:]]}


@pytest.fixture(params=["oldest", "newest"])
def fio(request):
    found = at_hand()
    if not found:
        pytest.skip(f"no other fio is at hand: build the oldest and the newest, and name them in {NAMED}")
    if request.param == "newest" and len(found) == 1:
        pytest.skip("only one other fio is at hand")
    version = min(found) if request.param == "oldest" else max(found)
    return version, found[version]


def test_a_whole_qualification(fio, site, loop_drive, tmp_path):
    version, path = fio
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/fio").symlink_to(Path(path).resolve())
    site.vars["ssd_plan"] = [{**SHORT_TEST, "cells": CELLS}]
    site.vars["ssd_criteria"] = [{"metric": "write_iops", "min": 100}]
    site.hosts = {"rack1-07": {"ssd_drives": [loop_drive().selector]}}
    code, output = site.play("qualify", env={"PATH": f"{tmp_path}/bin{os.pathsep}{os.environ['PATH']}"})
    assert code == 0, output
    (test,) = site.ended()
    assert test["outcome"] == "steady" and len(test["cells"]) == len(CELLS)
    assert all(cell["metrics"]["iops"] > 0 for cell in test["cells"]), test["cells"]
    (snapshot,) = site.journal("snapshot")
    assert snapshot["tools"]["fio"] == {
        "path": f"{tmp_path}/bin/fio",
        "version": "{}.{}".format(*version),
    }
