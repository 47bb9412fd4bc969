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


def test_an_engine_that_fio_cannot_load_is_found_after_the_purge(site, loop_drive):
    """Wrong: fio counts as present by name and version; plan mode passes, and the drive is erased for nothing."""
    drive = loop_drive()
    site.hosts = {"rack1-07": {"ssd_drives": [drive.selector]}}
    environment = {"PATH": f"{WITHOUT_ENGINES}{os.pathsep}{os.environ['PATH']}"}
    code, output = site.play("start", "-e", "ssd_mode=plan", env=environment)
    assert code == 0 and "libaio" not in output, output
    code, output = site.play("qualify", env=environment)
    assert code != 0 and "engine libaio not loadable" in output, output
    assert [record["verified"] for record in site.journal("purge")] == [True]
    assert site.summary()["verdicts"]["error"] == 1


def test_plan_mode_does_not_look_whether_io_uring_is_forbidden(bench):
    """Wrong: kernel.io_uring_disabled is 2 for all, and a plan that needs io_uring passes."""
    switch = "/proc/sys/kernel/io_uring_disabled"
    if not os.path.exists(switch):
        pytest.skip("this kernel has no such switch")
    forbidden = Path(bench.folder, "io_uring_disabled")
    forbidden.write_text("2\n")
    bench.in_namespace("mount", "--bind", forbidden, switch)
    outcome = bench.play("-e", "ssd_mode=plan", "-e", "workload_ioengine=io_uring")
    assert outcome.code == 0 and "io_uring_disabled" not in outcome.output, outcome.output


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
