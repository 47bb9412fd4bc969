# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of public bug reports that take drives or plays to show (tests/machines/README.md)."""

from __future__ import annotations

import json
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


def written_of(lab):
    """What the ledger noted of the kernel's count when the run let go."""
    (path,) = Path(lab.state, "drives").glob("*.json")
    return json.loads(path.read_text())["written"]


@pytest.fixture(name="lab")
def fixture_lab(tmp_path, monkeypatch, loop_drive):
    with own_data_lab.standing(tmp_path, monkeypatch, loop_drive) as lab:
        yield lab


@pytest.fixture(name="seen")
def fixture_seen(lab):
    """A drive that a run filled, and the partition that a kernel with CONFIG_ATARI_PARTITION makes of some fills."""
    assert lab.run("one")[0] == "complete" and lab.codes() == []
    subprocess.run(["addpart", lab.drive.path, "4", "2048", "8192"], check=True)
    try:
        yield lab
    finally:
        subprocess.run(["delpart", lab.drive.path, "4"], check=True)


def test_a_partition_that_a_kernel_saw_in_our_fill_keeps_nobody_out(seen):
    assert seen.codes() == [] and seen.run("two")[0] == "complete"


def test_a_partition_that_somebody_wrote_to_is_theirs(seen):
    """Even where he wrote what was there: the kernel counted it."""
    seen.put(2048 * 512, seen.put(2048 * 512, bytes(4096)))
    seen.refused("two", "partition_table")
    seen.options = {"allow": ["partition_table"]}
    assert seen.codes() == ["unsigned_data"]


def test_a_partition_with_data_that_no_counter_saw_is_theirs(seen):
    seen.write_past(2048 * 512, b"somebody's" * 410)
    seen.refused("two", "partition_table")


def test_a_partition_after_the_drive_came_back_is_not_known_to_be_ours(seen):
    seen.rewrite(written={**written_of(seen), "diskseq": 1})
    seen.refused("two", "partition_table")
