# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A test of a plan, once its YAML has passed its schema (testfiles.py): what hosts get of it, and what only the
controller needs.
"""

from __future__ import annotations

import dataclasses
import typing as t
from dataclasses import dataclass

from ...module_utils.records.base import Positive
from ...module_utils.records.plan import Departure, PlannedTest


@dataclass(frozen=True)
class ArrayRequest:
    """The key `array` of a test: an array of all drives of a host, before these are known."""

    level: t.Literal[0]
    chunk_bytes: Positive
    # How many the host must have; all: as many as it has.
    drives: int | t.Literal["all"]


@dataclass(frozen=True)
class Test(PlannedTest):
    """A test before it is fitted to a drive: its cells have no jobs yet, and `array` is of a host's drives."""

    # Not a class of tests for pytest.
    __test__: t.ClassVar[bool] = False

    # Where it was written: a file, or ssd_plan[2].
    origin: str = ""
    # The site chose its cells.
    own_cells: bool = True
    description: str = ""
    # A test before it in the plan, that the report compares it with.
    repeats: str | None = None
    # The share by which a drive may differ from its previous run.
    run_margin: float | None = None
    # fio fills its buffers anew for each write.
    refill_buffers: bool = False
    array_request: ArrayRequest | None = None
    # None: it is the test that its source describes, or it states none.
    departs: Departure | None = None
    # Limits of its steady state that its place in the plan decides (testfiles.fill_in_saturation).
    open_limits: tuple[str, ...] = ()

    def planned(self, **changes: t.Any) -> PlannedTest:
        """Return what a host gets of it, with these changes."""
        return PlannedTest(**{**{name: getattr(self, name) for name in _PLANNED}, **changes})


_PLANNED = [field.name for field in dataclasses.fields(PlannedTest)]
