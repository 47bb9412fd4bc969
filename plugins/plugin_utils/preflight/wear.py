# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much a plan writes to a drive, at least and at most, against its rated life and the site's budget. Pure.

Bytes are those of the host: what the drive writes besides (write amplification) is not in them, and ratings (TBW) count
host bytes too.
"""

from __future__ import annotations

import fnmatch
import typing as t

from ...module_utils.measure.rounds import cell_s
from ...module_utils.records.answers import UsedLife
from ...module_utils.records.plan import Plan, PlannedDrive, PlannedTest
from ...module_utils.records.planned_cell import AnyLoad
from ...module_utils.records.purge import OfferedPurge
from ..common import argument_specs, units
from ..common import schema as schemas
from ..common.argument_specs import Variables
from ..plan import arrays, streams, time_estimates, write_rates
from . import purge_choice, variable_rules
from .findings import Finding, HostAnswer

TB = 10**12
NOTHING = "writes nothing"
ADVICE = "take tests out, lower rounds.max or rounds.capacity_multiple, or raise the budget"


def of_drive(drive: PlannedDrive, chosen: purge_choice.Chosen | None = None, times: int = 1) -> tuple[float, float]:
    """Bytes that the tests of a drive of plan.json write: (at least, at most). chosen: as in plan_text.estimate; times:
    as in time_estimates.rounds_s.
    """
    offers = [(chosen or {}).get((drive.drive, test.name)) for test in drive.tests]
    parts = [_of_test(test, drive, offer, times) for test, offer in zip(drive.tests, offers)]
    return sum(least for least, _most in parts), sum(most for _least, most in parts)


def _of_test(test: PlannedTest, drive: PlannedDrive, offer: OfferedPurge | None, times: int) -> tuple[float, float]:
    """At least: an overwriting purge, the fill, and what has to be written before a window may begin. At most: beside
    it every round that the limits allow, each cell that writes doing so as fast as the drive's link lets it or, if that
    is more than its fast flash may hold, as fast as a drive of its size keeps up.
    """
    size, _block = drive.expected.sizes()
    least, most = _at_rate(test, drive, offer, times, drive.most_write_bytes_per_s)
    if test.active_range_bytes(size, 1) > write_rates.CACHED_SHARE * size:
        lasting = _at_rate(test, drive, offer, times, drive.lasting_write_bytes_per_s)
        least, most = min(least, lasting[0]), min(most, lasting[1] + write_rates.CACHED_SHARE * size)
    return least, most


def _at_rate(
    test: PlannedTest, drive: PlannedDrive, offer: OfferedPurge | None, times: int, bytes_per_s: float
) -> tuple[float, float]:
    size, _block = drive.expected.sizes()
    # Other purges write, if at all, within the drive.
    fill = size * ((offer.method if offer else test.purge.method) == "overwrite")
    fill += time_estimates.fill_bytes(test, drive.expected)
    fill += time_estimates.read_back_bytes(test, drive.expected, bytes_per_s)
    fill += round(time_estimates.heat_s(test, drive.expected, bytes_per_s) * bytes_per_s)
    if test.power_cut:
        return fill, fill + test.power_cut.cycles * test.power_cut.max_write_s * bytes_per_s
    writing = [cell for cell in test.cells if cell.read_pct < 100]
    if not writing:
        return fill, fill
    round_bytes = sum(_rate(cell, bytes_per_s, size) * cell_s(cell) for cell in writing)
    _shortest_s, longest_s = time_estimates.rounds_s(test, size / bytes_per_s, times)
    most = round_bytes * longest_s / sum(cell_s(cell) for cell in test.cells)
    multiple = test.rounds.capacity_multiple
    if multiple:
        # What is written in a ramp is not counted towards the limit.
        uncounted = max(cell_s(cell) / cell.runtime_s for cell in writing)
        most = min(most, multiple * size * uncounted + round_bytes)
    before = time_estimates.least_multiple(test) * size
    return fill + min(before, most), fill + most


def _rate(cell: AnyLoad, bytes_per_s: float, size: int) -> float:
    """Return the most that a cell writes in a second: what its rate limit lets through, where it has one.

    size: of the drive, in bytes.
    """
    if cell.jobs:
        writing = [job for job in cell.jobs if job.read_pct < 100 and not job.trim]
        return min(bytes_per_s, sum(_rate(job, bytes_per_s, size) for job in writing))
    if cell.rate_mib_s_per_tb:
        return min(bytes_per_s, streams.rate_bytes_s(cell.rate_mib_s_per_tb, size))
    if not cell.rate_iops:
        return bytes_per_s
    largest = max([cell.block_size_bytes, *(one.size_bytes for one in (cell.mix and cell.mix.sizes) or ())])
    return min(bytes_per_s, cell.rate_iops * (100 - cell.read_pct) / 100 * largest)


def rated_bytes(model: str | None, ratings: t.Any) -> float | None:
    """Return the rated life in bytes by ssd_rated_tbw, [{model: shell pattern, tbw: terabytes}]: of the first entry
    that fits; None: not known, or the list is wrong (a finding says so).
    """
    right = argument_specs.in_type("ssd", {"ssd_rated_tbw": ratings}).get("ssd_rated_tbw", [])
    fitting = (entry["tbw"] * TB for entry in right if fnmatch.fnmatchcase((model or "").strip(), entry["model"]))
    return next(fitting, None)


def allowed_bytes(model: str | None, asked: Variables) -> float | None:
    """Return what ssd_wear_budget lets a run write to a drive of a model; None: anything, or a share of a life that
    nobody knows.
    """
    share, amount = variable_rules.wear_budget(asked.get("ssd_wear_budget")) or (None, None)
    rated = rated_bytes(model, asked.get("ssd_rated_tbw"))
    return amount if share is None else None if rated is None else share / 100 * rated


def budgets(host: HostAnswer) -> dict[str, int]:
    """Return the bytes that ssd_wear_budget lets the run write to each drive of a host; none where it has no budget."""
    asked = schemas.plain(host.asked or {})
    allowed = {
        str(found.drive): allowed_bytes(found.identity.model if found.identity else None, asked)
        for found in host.drives or ()
    }
    return {drive: int(most) for drive, most in allowed.items() if most is not None}


def used_of(told: t.Sequence[UsedLife] | None) -> dict[str, int | None]:
    """Per drive how many % of its rated life are used by its own count, of host_checks' answer; None: not told."""
    return {item.drive: item.used_pct for item in told or ()}


def wear_text(least: float, most: float, rated: float | None, used_pct: int | None = None) -> str:
    """Return what plan mode prints of a drive: writes 1.9 TB to 12 TB, 0.3 to 1.7 % of its rated 700 TB (12 % used, by
    its own count). The drive goes by what it wrote to its flash, the rating by what the host wrote.
    """
    span = units.data_size(least) if least == most else f"{units.data_size(least)} to {units.data_size(most)}"
    if not most:
        return NOTHING
    own = "" if used_pct is None else f"{used_pct} % used, by its own count"
    if rated is None:
        told = "; ".join(filter(None, ["share of its rated life unknown: set ssd_rated_tbw", own]))
        return f"writes {span} ({told})"
    shares = f"{100 * most / rated:.2g}" if least == most else f"{100 * least / rated:.2g} to {100 * most / rated:.2g}"
    return f"writes {span}, {shares} % of its rated {units.data_size(rated)}" + (f" ({own})" if own else "")


def findings(
    host: str,
    plan: Plan,
    asked: Variables,
    chosen: purge_choice.Chosen | None = None,
    times_written: int = 1,
    used: t.Mapping[str, int | None] | None = None,
) -> list[Finding]:
    """Drives to which the plan may write more than ssd_wear_budget, and those of which a share can't be told as their
    rated life is not known. times_written: 2 where ssd_retest may measure a drive again. used: of used_of.
    """
    budget = variable_rules.wear_budget(asked.get("ssd_wear_budget"))
    if budget is None:
        return []
    share = budget[0]
    found = []
    for drive in arrays.written(plan):
        model = drive.expected.model
        rated = rated_bytes(model, asked.get("ssd_rated_tbw"))
        most = times_written * of_drive(drive, chosen)[1]
        used_pct = (used or {}).get(drive.drive)
        if share is not None and rated is None and most:
            message = (
                f"ssd_wear_budget: {share:g} % of an unknown rated life: add model {model or '(none reported)'!r} to "
                "ssd_rated_tbw, or give the budget in TB"
            )
            message += "" if used_pct is None else f"; {used_pct} % of it is used already, by the drive's own count"
            found.append(Finding(message, host, drive.drive, drive.drive))
            continue
        allowed = allowed_bytes(model, asked) or 0.0
        if most > allowed:
            limit = units.data_size(allowed)
            own = "" if used_pct is None else f"{used_pct} % of its rated life is used already, by its own count; "
            message = (
                f"ssd_wear_budget: the plan{' (with ssd_retest, twice)' * (times_written > 1)} may write "
                f"{units.data_size(most)}, more than the {limit} of the budget; {own}{ADVICE}"
            )
            found.append(Finding(message, host, drive.drive, drive.drive))
    return found
