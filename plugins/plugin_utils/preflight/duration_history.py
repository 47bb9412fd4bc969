# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long the tests of a plan will take by what earlier runs took on drives of the model. Pure, but for what
`of_hosts` reads.
"""

from __future__ import annotations

import statistics
import typing as t

from ...module_utils.drive.attributes import VIRTUAL
from ...module_utils.measure.rounds import cell_s
from ...module_utils.records.plan import Plan, PlannedDrive, PlannedTest
from ...module_utils.records.purge import OfferedPurge
from ..plan import time_estimates
from ..run_folder.runs import KnownRun
from ..verdict import comparability
from . import purge_choice, timings
from .host_tests import TestsOfHosts
from .timings import AROUND, Timing, model

# Drives of a model name differ by a few blocks, never by a hundredth.
SAME_SIZE = 0.01

# A range is never narrower to each side: drives of a model differ, and so do days. With one figure nobody knows by how
# much.
LEAST_SPREAD = 0.05
SPREAD_OF_ONE = 0.1
# The share of the figures that is left out at either end, so that one bad drive of a fleet widens nothing.
TAIL = 0.05
# A round can't be shorter than its cells; if it was, these were others (a ramp is in no name).
SHORTEST = 0.98


class Range(t.NamedTuple):
    """From low_s to high_s, as so many runs took."""

    low_s: float
    high_s: float
    runs: int


# {(drive, test): its range}; AROUND in place of a test: what a drive's campaign takes beside its tests.
Known = dict[tuple[str, str], Range]


def of_hosts(
    own: t.Iterable[KnownRun],
    plans: t.Mapping[str, Plan],
    tests: TestsOfHosts,
    chosen: t.Mapping[str, purge_choice.Chosen],
    but: str,
) -> dict[str, Known]:
    """Return what is known for the plan of each host. own: the runs with results. tests: what run.json tells of each
    host's tests. but: the run that is under way.
    """
    models = {model(vars(drive.expected)) for plan in plans.values() for drive in plan.drives} - {""}
    names = {test.name for plan in plans.values() for drive in plan.drives for test in drive.tests}
    seen = timings.of_models(own, models, names, but)
    return {
        host: known(plan, comparability.definitions({"tests": tests[host]}), seen, chosen.get(host))
        for host, plan in plans.items()
        if host in tests
    }


def known(
    plan: Plan,
    definitions: t.Mapping[str, t.Mapping[str, str]],
    seen: t.Sequence[Timing],
    chosen: purge_choice.Chosen | None = None,
) -> Known:
    """Return the ranges of what earlier runs did in the same way on such drives.

    definitions: of comparability.definitions. seen: of results.timings. chosen: the purge of each
      test, as far as it is known.
    """
    found: Known = {}
    for drive in plan.drives:
        alike = [item for item in seen if _is_alike(item, drive, plan.host)]
        for test in drive.tests:
            offer = (chosen or {}).get((drive.drive, test.name))
            name = test.name
            mine = [item for item in alike if item.test == name and item.definition == definitions.get(name)]
            same = [item for item in mine if _is_as_planned(item, test, offer)]
            if same:
                found[drive.drive, test.name] = spread(same, time_estimates.fill_bytes(test, drive.expected))
        around = [item for item in alike if item.test == AROUND and item.definition == {"left": plan.leave}]
        if around:
            found[drive.drive, AROUND] = spread(around, 0)
    return found


def _is_alike(item: Timing, drive: PlannedDrive, host: str) -> bool:
    """Return whether it is of such a drive; of virtual ones each host has its own."""
    identity, (size, _block) = drive.expected, drive.expected.sizes()
    return (
        item.model == model(vars(identity))
        and abs(item.size_bytes - size) <= SAME_SIZE * size
        and (identity.transport not in VIRTUAL or item.host == host)
    )


def _is_as_planned(item: Timing, test: PlannedTest, offer: OfferedPurge | None) -> bool:
    """Return whether it was purged in the way that it will be, as far as that is known, and its rounds were
    no shorter.
    """
    method = offer.method if offer else test.purge.method
    round_s = sum(cell_s(cell) for cell in test.cells)
    purged = bool(item.method) if method == "auto" else item.method == ("" if method == "none" else method)
    return purged and item.rounds_s >= SHORTEST * item.rounds * round_s


def took_s(item: Timing, written: float) -> float:
    """Return the time of a test of which an earlier one's rate, purge and rounds are known. written: bytes of
    its fill.
    """
    return item.purge_s + (written / item.fill_bytes_per_s if item.fill_bytes_per_s else 0.0) + item.rounds_s


def spread(same: t.Sequence[Timing], written: float) -> Range:
    """Return the median of what each drive took, from the shortest to the longest but for the TAIL."""
    times = sorted(took_s(item, written) for item in same)
    cut, middle = int(TAIL * len(times)), statistics.median(times)
    least = LEAST_SPREAD if len(times) > 1 else SPREAD_OF_ONE
    low, high = min(times[cut], (1 - least) * middle), max(times[-1 - cut], (1 + least) * middle)
    return Range(low, high, len({item.run_id for item in same}))


def of_drive(drive: PlannedDrive, ranges: Known) -> Range | None:
    """Return the whole plan on a drive; None unless all of its tests are known."""
    parts = [ranges.get((drive.drive, test.name)) for test in drive.tests]
    if not parts or None in parts:
        return None
    told = [part for part in (*parts, ranges.get((drive.drive, AROUND))) if part]
    return Range(sum(part.low_s for part in told), sum(part.high_s for part in told), min(part.runs for part in told))
