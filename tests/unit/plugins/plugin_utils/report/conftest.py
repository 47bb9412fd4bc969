# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The run that reports are built from."""

from __future__ import annotations

import shutil

import pytest

from ansible_collections.ssdlab.fleet.tests.fixtures.report import generator
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.report.built import STOPPED


@pytest.fixture(name="made_once", scope="session")
def fixture_made_once(tmp_path_factory):
    """Tests get copies of it, as making it takes a hundred times as long."""
    drives = (*generator.DEMO, STOPPED)
    folder = tmp_path_factory.mktemp("mixed")
    return generator.make(folder, drives, ("wsat", "iops"), unreachable=[("server-9", "SIM0009")])


@pytest.fixture(name="mixed")
def fixture_mixed(tmp_path, made_once):
    """Two that pass, one worn, one interrupted, one unreachable; both tests."""
    return shutil.copytree(made_once, tmp_path / made_once.name)
