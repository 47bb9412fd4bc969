# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a plan says of drives that run at the same time: a number, by the inventory or by what the drives share, or the
reads by which the host finds it where that does not decide (ssd_parallel_drives: auto). Pure but for the template.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ...module_utils.drive.entry import parse
from ...module_utils.measure import parallelism_search
from ...module_utils.records.found_drives import FoundDrive
from ...module_utils.records.identity import Identity
from ...module_utils.records.plan import ReadTogether
from ..common import schema as schemas
from ..common import values
from ..common.argument_specs import Variables
from . import cells as celling
from . import shared_limits
from .jobs import section_of, with_job

# One that asks most of the CPUs, and one that asks most of links and adapters.
READS: tuple[dict[str, t.Any], ...] = (
    {"access": "random", "block_size": "4KiB", "threads": 4, "queue_depth": 32},
    {"access": "sequential", "block_size": "128KiB", "threads": 1, "queue_depth": 32},
)
LENGTH = {"read_pct": 100, "ramp_s": 1, "runtime_s": 1}
# What they may take in all.
MOST_S = 180.0


class AtOnce(t.NamedTuple):
    """number: parallel_drives of a plan, with together the most that there may be; why: with auto."""

    number: int
    together: ReadTogether | None = None
    why: str = ""


def spec(settings: Variables, drives: t.Sequence[FoundDrive], any_test: bool) -> AtOnce:
    """Return what a plan says. any_test: whether it does more than purge and fill."""
    asked = settings["ssd_parallel_drives"]
    if asked != values.AUTO:
        return AtOnce(values.drives_at_once(asked, len(drives)))
    limits = shared_limits.of_drives(drives)
    if limits.sure == limits.most or not any_test:
        return AtOnce(limits.most, None, limits.why)
    return AtOnce(limits.most, _reads(settings, drives, limits), limits.why)


def _reads(settings: Variables, drives: t.Sequence[FoundDrive], limits: shared_limits.Limits) -> ReadTogether:
    """Return the reads: as many drives alone as the time allows."""
    # One thread in sequence, or any at random: their jobs are the same for every size of drive.
    rendered = [celling.rendered({**read, **LENGTH}) for read in READS]
    cells = [with_job(cell, settings["workload_ioengine"], [section_of(cell, 0)]) for cell in rendered]
    numbers = parallelism_search.numbers(limits.most, limits.sure)
    asked = ReadTogether(parallelism_search.FEWEST_REPEATS, cells, _spread(drives, 1), numbers, limits.sure)
    for count in range(2, len(drives) + 1):
        more = dataclasses.replace(asked, alone=_spread(drives, count))
        if span_s(more, len(drives))[1] > MOST_S:
            break
        asked = more
    return asked


def _spread(drives: t.Sequence[FoundDrive], count: int) -> list[str]:
    """Return so many drives, evenly of all kinds and places."""
    ordered = sorted(drives, key=_kind)
    chosen = [ordered[place * len(ordered) // count] for place in range(count)]
    return [parse(schemas.plain(drive.selector)).label for drive in chosen]


def _kind(drive: FoundDrive) -> tuple[str, ...]:
    identity = drive.identity or Identity()
    return (str(identity.model), str(identity.firmware), *(part.name for part in drive.shared or ()))


def span_s(asked: ReadTogether | None, drives: int) -> tuple[float, float]:
    """Return the shortest and longest time that it takes a host to find the number of its drives; 0 where it does not.
    asked: `together` of its plan.
    """
    if not asked or drives < 2:
        return 0.0, 0.0
    # Where a drive alone is unsteady, that is all.
    group_s = parallelism_search.group_s(asked)
    return len(asked.alone) * group_s, parallelism_search.most_groups(asked, drives) * group_s
