# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The benches that need a guest run in their shortest form, each in a guest of its own."""

from __future__ import annotations

import pytest
import shortest


@pytest.mark.parametrize("name", shortest.IN_A_GUEST)
def test_it_runs_in_its_shortest_form(tmp_path, name):
    shortest.run(name, shortest.IN_A_GUEST[name], tmp_path)
