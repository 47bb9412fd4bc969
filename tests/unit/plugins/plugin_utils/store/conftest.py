# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run, and a store to put it into."""

from __future__ import annotations

import shutil

import pytest

pytest.importorskip("sqlalchemy")

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store import database
from ansible_collections.ssdlab.fleet.tests.fixtures.report import generator

STOPPED = generator.Drive("server-4", "SIM0004", generator.MODEL, 90_000, 40_000, "interrupted")


@pytest.fixture(name="made_once", scope="session")
def fixture_made_once(tmp_path_factory):
    """Tests get copies of it, as making it takes a hundred times as long."""
    drives = (*generator.DEMO, STOPPED)
    folder = tmp_path_factory.mktemp("run")
    return generator.make(folder, drives, ("wsat", "iops"), rounds=12, unreachable=[("server-9", "SIM0009")])


@pytest.fixture(name="run_dir")
def fixture_run_dir(tmp_path, made_once):
    """Two that pass, one worn, one interrupted, one unreachable; both tests."""
    return shutil.copytree(made_once, tmp_path / "results" / made_once.name)


@pytest.fixture(name="url")
def fixture_url(tmp_path):
    return database.resolve("", str(tmp_path))


@pytest.fixture(name="held_to_peers")
def fixture_held_to_peers(tmp_path):
    """A run of nine hosts whose only criterion is a share of the median; the last drive misses it."""
    pytest.importorskip("scipy")
    drives = [generator.DEMO[0]._replace(host=f"server-{number}", serial=f"SIM{number:04}") for number in range(8)]
    drives.append(generator.DEMO[2]._replace(host="server-8", serial="SIM0008"))
    criteria = [{"test": "wsat", "metric": "write_iops", "min_of_median": 0.7}]
    return generator.make(tmp_path / "results", drives, rounds=12, criteria=criteria)


@pytest.fixture(name="run_dir_beside")
def fixture_run_dir_beside(held_to_peers):
    """Another run beside that one."""
    folder = held_to_peers.parent / "20261122T130000Z-qualify"
    shutil.copytree(held_to_peers, folder)
    for name in ("run.json", "results.jsonl"):
        (folder / name).write_text((folder / name).read_text().replace(held_to_peers.name, folder.name))
    return folder
