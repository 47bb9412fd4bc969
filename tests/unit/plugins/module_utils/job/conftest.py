# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run's folder for the tests of host jobs."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.run import folder


@pytest.fixture
def run_dir(tmp_path):
    """The folder of run r."""
    place = folder.RunDir(str(tmp_path), "r")
    (tmp_path / "runs" / "r").mkdir(parents=True)
    return place
