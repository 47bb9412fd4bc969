# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The run that reports are built from."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.tests.fixtures.report import generator
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.report.built import STOPPED


@pytest.fixture(name="mixed")
def fixture_mixed(tmp_path):
    """Two that pass, one worn, one interrupted, one unreachable; both tests."""
    drives = (*generator.DEMO, STOPPED)
    return generator.make(tmp_path, drives, ("wsat", "iops"), unreachable=[("server-9", "SIM0009")])
