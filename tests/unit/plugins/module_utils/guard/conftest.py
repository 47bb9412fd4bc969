# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The drive that the guard looks at."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.tests.unit.plugins.module_utils.guard.noted import Drive


@pytest.fixture
def drive_of(fake):
    """A host with one drive that may be erased."""
    fake.block = fake.nvme("nvme0n1", "259:0", "SN1", wwid="eui.0025385b71b00eb0")
    return fake


@pytest.fixture
def left(fake, tmp_path):
    """A drive on which a run has left its data."""
    drive = Drive(fake, tmp_path / "drive")
    drive.run()
    return drive
