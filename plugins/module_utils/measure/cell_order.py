# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order in which a round runs the cells of its test. Pure."""

from __future__ import annotations

import typing as t

from ..records.plan import PlannedTest
from ..records.planned_cell import PlannedCell


def of_round(test: PlannedTest, seed_of: t.Callable[[str], int]) -> list[PlannedCell]:
    """Return the cells of a round in order: as planned or, of a test with a shuffled order, by the seeds that they have
    in this round. The journal has the seeds, so the order can be told and repeated.
    """
    return sorted(test.cells, key=lambda cell: seed_of(cell.id)) if test.cell_order else list(test.cells)
