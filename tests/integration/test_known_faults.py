# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Known faults that take drives or plays to show (tests/machines/README.md).

A line that begins with "Wrong:" names the fault: the assertions beside it record what happens until it is fixed.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import own_data_lab
import pytest

WITHOUT_ENGINES = Path(__file__).resolve().parents[1] / "fixtures/reports/fio-without-engines"


def test_an_engine_that_fio_cannot_load_is_found_before_the_purge(site, loop_drive):
    drive = loop_drive()
    site.hosts = {"rack1-07": {"ssd_drives": [drive.selector]}}
    environment = {"PATH": f"{WITHOUT_ENGINES}{os.pathsep}{os.environ['PATH']}"}
    for play, *words in (("start", "-e", "ssd_mode=plan"), ("qualify",)):
        code, output = site.play(play, *words, env=environment)
        assert code != 0 and "fio can't use libaio: fio: engine libaio not loadable" in output, output


@pytest.fixture(name="lab")
def fixture_lab(tmp_path, monkeypatch, loop_drive):
    with own_data_lab.standing(tmp_path, monkeypatch, loop_drive) as lab:
        yield lab


def test_a_partition_that_a_kernel_saw_in_our_fill(lab):
    """Wrong: nobody wrote since our run, and no table is there; the drive is refused night after night all the same."""
    assert lab.run("one")[0] == "complete" and lab.codes() == []
    # What a kernel with CONFIG_ATARI_PARTITION makes of some fills.
    subprocess.run(["addpart", lab.drive.path, "4", "2048", "8192"], check=True)
    try:
        lab.refused("two", "partition_table")
        lab.options = {"allow": ["partition_table"]}
        assert lab.codes() == []
    finally:
        subprocess.run(["delpart", lab.drive.path, "4"], check=True)
