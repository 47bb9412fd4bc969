# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The emulated drive that is purged."""

from __future__ import annotations

import os

import pytest

from ansible_collections.ssdlab.fleet.tests.unit.plugins.module_utils.purge.nvme_bed import Bed


@pytest.fixture
def bed(tmp_path, fake):
    made = []

    def make(**facts):
        made.append(Bed(fake, tmp_path, **facts))
        return made[-1]

    yield make
    for each in made:
        os.close(each.held.handle)
