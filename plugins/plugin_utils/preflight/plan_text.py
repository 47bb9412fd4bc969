# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a plan would do and how long it should take, as text for plan mode: of one host, and of the fleet host by host.
Pure.
"""

from __future__ import annotations

import datetime
import textwrap
import typing as t
from dataclasses import dataclass

from ...module_utils.drive import entry
from ...module_utils.guard import scan_offsets
from ...module_utils.measure.rounds import MOST_TIMES, cell_s
from ...module_utils.records.base import Json
from ...module_utils.records.guard import Look
from ...module_utils.records.plan import NotApplicable, Plan, PlannedDrive, PlannedIntegrity, PlannedTest
from ...module_utils.records.purge import OfferedPurge
from ...module_utils.run import read_only
from ...module_utils.run.states import SETTLED_STATES
from ..common import schema as schemas
from ..common import units
from ..common.units import plan_duration, plan_duration_closely, plan_duration_span
from ..plan import arrays, filesystems, health_criteria, hostplan, parallel_drives, time_estimates
from ..run_folder.run_record import RunWarning
from . import (
    criteria_checks,
    duration_history,
    findings,
    plan_groups,
    plan_totals,
    power_cuts,
    purge_choice,
    remeasurement_checks,
    run_json,
    saturation_feasibility,
    service_drives,
    wear,
)
from .findings import HostAnswer, Run
from .host_tests import HostTests, Requested
from .wear import NOTHING as WRITES_NOTHING

Span = tuple[float, float]
IDENTITY_SHOWN = ("model", "serial", "wwn", "firmware", "backing_file")
# What identical drives have in common.
KIND_SHOWN = ("model", "firmware")


@dataclass(frozen=True)
class TestEstimate:
    """How long a test takes, in s: min_s if it is steady at the first chance, max_s if every limit is reached;
    read_back_bytes: what is written and read back; read_back_s: to read it.
    """

    test: str
    min_s: float
    max_s: float
    read_back_bytes: int = 0
    read_back_s: float = 0.0


@dataclass(frozen=True)
class DriveEstimate:
    """How long all tests of a drive take, in s, and each of them, in their order."""

    drive: str
    min_s: float
    max_s: float
    tests: list[TestEstimate]


def estimate(plan: Plan, chosen: purge_choice.Chosen | None = None) -> list[DriveEstimate]:
    """Return how long each drive of a plan takes, if it writes as it is taken to: a limit in bytes is turned into time
    by that. chosen: the purges, where they are known.
    """
    estimates = []
    for drive in plan.drives:
        offers = [(chosen or {}).get((drive.drive, test.name)) for test in drive.tests]
        tests = [_estimate_test(test, drive, offer) for test, offer in zip(drive.tests, offers)]
        min_s, max_s = round(sum(test.min_s for test in tests), 1), round(sum(test.max_s for test in tests), 1)
        estimates.append(DriveEstimate(drive.drive, min_s, max_s, tests))
    return estimates


def _estimate_test(test: PlannedTest, drive: PlannedDrive, offer: OfferedPurge | None) -> TestEstimate:
    share, bytes_per_s = purge_choice.share_of_fill(test, offer), drive.assumed_write_bytes_per_s
    shortest, longest = time_estimates.span_s(test, drive.expected, bytes_per_s, share)
    read_back = time_estimates.read_back_bytes(test, drive.expected, bytes_per_s)
    return TestEstimate(test.name, round(shortest, 1), round(longest, 1), read_back, round(read_back / bytes_per_s, 1))


class HostsBefore(t.NamedTuple):
    """What was told of the hosts before one, and what each of them takes."""

    told: plan_groups.Told
    totals: list[plan_totals.Total]


# Of a line with the tests that a budget leaves out.
BUDGET_WIDTH = 120
TIME_BUDGET = "time_budget"
# In place of the path of a drive that the guard refuses.
REFUSED = "nothing, as it is refused"


def describe(
    plan: Plan,
    paths: t.Mapping[str, str],
    criteria: t.Sequence[Json] | None = None,
    chosen: purge_choice.Chosen | None = None,
    looks: t.Mapping[str, Look] | None = None,
    wear: t.Mapping[str, str] | None = None,
    known: duration_history.Known | None = None,
    worn: t.Sequence[plan_totals.Worn] = (),
    before: HostsBefore | None = None,
    gives_up: t.Mapping[str, t.Sequence[str]] | None = None,
    refused: t.Collection[str] = (),
) -> list[str]:
    """Return the lines that plan mode prints for one host.

    paths: device path now, by drive. criteria: None where nothing is judged. chosen: the purge of each test, as far as
      it is known.
    looks: what was looked at of each drive. gives_up: what its entry's `retired` gives up. wear: what wear.wear_text
    says of each drive. known: of duration_history.known. worn: what is written to its drives. before: to which this
    host is added. refused: drives that no total counts.
    """
    known, before = known or {}, before or HostsBefore({}, [])
    lines = [f"{plan.host}: {len(plan.drives)} drive{'s' * (len(plan.drives) != 1)}, {_at_once(plan)}"]
    reads_s = parallel_drives.span_s(plan.together, len(plan.drives))
    blocks, spans = [], []
    refused = set(refused)
    for drive, took in zip(plan.drives, estimate(plan, chosen)):
        looked_at, writes = (looks or {}).get(drive.drive), (wear or {}).get(drive.drive)
        whole_s = _whole_s(drive, took, known)
        spans += [] if drive.drive in refused else [whole_s]
        included = ", these reads included" if plan.together and len(plan.drives) > 1 else ""
        details = [
            line for number in range(len(drive.tests)) for line in _test_lines(drive, number, took, chosen, known)
        ]
        details += [f"    {line}" for line in arrays.members_text(plan, drive.drive)]
        if criteria is not None:
            details += [f"    {line}" for line in criteria_checks.applying(criteria, drive) or ["no criterion applies"]]
        details += [f"    {line}" for line in _repeats_lines(plan, drive, chosen)]
        details.append(f"    in all {_in_all(drive, whole_s, took, known, reads_s)}{included}")
        where = paths.get(drive.drive, REFUSED)
        own = [f"    {scan_offsets.scan_text(looked_at, units.data_size)}"] if looked_at else []
        own += [f"    retired, gives up {text}" for text in (gives_up or {}).get(drive.drive, ())]
        own += [f"    lifted by its entry: {text}" for text in filter(None, [_overrides(drive)])]
        bound = "" if writes == WRITES_NOTHING else f", if it writes at most {_rate(drive.lasting_write_bytes_per_s)}"
        own += [f"    {writes}{bound}"] if writes else []
        who = (identity_text(drive, KIND_SHOWN), identity_text(drive))
        blocks.append(plan_groups.Block(drive.drive, _verb(drive), where, *who, own, details))
    total = plan_totals.of_host(plan, spans, reads_s, worn)
    before.totals.append(total)
    return [*lines, *plan_groups.lines(blocks, plan.host, before.told), *plan_totals.host_lines(total)]


def _test_lines(
    drive: PlannedDrive,
    number: int,
    took_all: DriveEstimate,
    chosen: purge_choice.Chosen | None,
    known: duration_history.Known,
) -> list[str]:
    """Return the lines of a drive's test. number: from 0."""
    test, took = drive.tests[number], took_all.tests[number]
    as_before, offer = known.get((drive.drive, test.name)), (chosen or {}).get((drive.drive, test.name))
    took_s = known_text(as_before) if as_before else plan_duration_span(took.min_s, took.max_s)
    more = [
        *_saturation_lines(test, drive.expected.sizes()[0]),
        *(purge_choice.plan_lines(offer) if offer else []),
        *_read_back_lines(took),
        *_preferred_lines(test),
        *_by_host_lines(test),
        *(f"not applicable: {reason}: {', '.join(ids)}" for reason, ids in _by_reason(test.not_applicable).items()),
    ]
    size_bytes, _block = drive.expected.sizes()
    return [
        f"    {number + 1}. {test.name}: {_steps(test, size_bytes)}; {took_s}",
        *(f"       {line}" for line in more),
    ]


def _read_back_lines(took: TestEstimate) -> list[str]:
    """Return what it costs to read back what a test writes; none where it does not."""
    gib = took.read_back_bytes / (1 << 30)
    if not gib:
        return []
    took_s, cpu_s = (
        plan_duration(max(1, seconds)) for seconds in (took.read_back_s, gib * time_estimates.READ_BACK_CPU_S_PER_GIB)
    )
    return [f"reading back takes at most {took_s} of it, and both directions {cpu_s} of a CPU"]


def _repeats_lines(plan: Plan, drive: PlannedDrive, chosen: purge_choice.Chosen | None) -> list[str]:
    """Return what measuring disturbed rounds again may add to a drive's time and wear; none where nothing."""
    capacity_s = drive.expected.sizes()[0] / drive.assumed_write_bytes_per_s
    more_s = sum(time_estimates.repeats_s(test, capacity_s) for test in drive.tests)
    if not more_s:
        return []
    with_repeats, without = (wear.of_drive(drive, chosen, times)[1] for times in (MOST_TIMES, 1))
    more = [plan_duration(more_s)] + ([units.data_size(with_repeats - without)] if with_repeats > without else [])
    budget = ", as far as the budget leaves it" if plan.time_budget_s or drive.wear_budget_bytes else ""
    return [f"disturbed rounds are measured again, which may add up to {' and '.join(more)}{budget}"]


def _at_once(plan: Plan) -> str:
    number = plan.parallel_drives
    if len(plan.drives) < 2 or not plan.parallel_why:
        return f"{number} at a time"
    if not plan.together:
        return f"{number} at a time: {plan.parallel_why}"
    most_s = parallel_drives.span_s(plan.together, len(plan.drives))[1]
    reads = f"reads of at most {plan_duration(most_s)} find the number first"
    return f"{plan.together.otherwise} to {number} at a time: {plan.parallel_why}; {reads}"


def _whole_s(drive: PlannedDrive, took: DriveEstimate, known: duration_history.Known) -> Span:
    """Return the time of the whole plan on a drive. What earlier runs tell counts where they tell it."""
    whole = duration_history.of_drive(drive, known)
    if whole:
        return whole.low_s, whole.high_s
    told = [(test, known.get((drive.drive, test.test))) for test in took.tests]
    return (
        sum(as_before.low_s if as_before else test.min_s for test, as_before in told),
        sum(as_before.high_s if as_before else test.max_s for test, as_before in told),
    )


def _in_all(
    drive: PlannedDrive,
    whole_s: Span,
    took: DriveEstimate,
    known: duration_history.Known,
    reads_s: Span,
) -> str:
    """Return that time in words. reads_s: of together."""
    low, high = whole_s[0] + reads_s[0], whole_s[1] + reads_s[1]
    whole = duration_history.of_drive(drive, known)
    if whole:
        return known_text(whole._replace(low_s=low, high_s=high))
    names = [test.test for test in took.tests if (drive.drive, test.test) in known]
    some = f"; the time of {', '.join(names)} is known from earlier runs" if names else ""
    assumed = f"if it writes {_rate(drive.assumed_write_bytes_per_s)} ({drive.write_rate_from})"
    return f"{plan_duration_span(low, high)}, {assumed}{some}"


def known_text(took: duration_history.Range) -> str:
    """Return the range of a time that is known: 2 h 5 min to 2 h 15 min, from 3 earlier runs of this model."""
    low, high = plan_duration_closely(took.low_s), plan_duration_closely(took.high_s)
    times_told = low if low == high else f"{low} to {high}"
    return f"{times_told}, from {took.runs} earlier run{'s' * (took.runs != 1)} of this model"


def _saturation_lines(test: PlannedTest, size_bytes: int) -> list[str]:
    """Return what a saturation test asks of the drive before its window may begin, and which drives its own
    limits leave out.
    """
    rate = time_estimates.slowest_write(test, size_bytes)
    if rate is None:
        return []
    multiple = time_estimates.least_multiple(test)
    asked = f"no window begins before {multiple:g} x {units.data_size(size_bytes)} is written"
    if rate == float("inf"):
        return [
            (
                f"{asked}, and the test's limits leave no time for that; raise rounds.max or rounds.time_limit_s, or "
                f"{saturation_feasibility.alternative_advice(test)}"
            )
        ]
    blocks = {cell.block_size_bytes for cell in test.cells if cell.read_pct == 0 and not cell.jobs}
    iops = f" ({rate / min(blocks):,.0f} IOPS of {units.block_size(min(blocks))})" if len(blocks) == 1 else ""
    return [
        (
            f"{asked}; on a drive that writes less than {_rate(rate)}{iops} on average, the test's "
            "limits are too short and its result is invalid"
        ),
        f"for such a drive, {saturation_feasibility.alternative_advice(test)}",
    ]


def _rate(bytes_per_s: float) -> str:
    return units.show("bandwidth", bytes_per_s)


def _preferred_lines(test: PlannedTest) -> list[str]:
    """Of which size the cells of the drive's preferred write size are."""
    sizes = {cell.block_size_bytes for cell in test.cells if cell.preferred}
    return [f"the drive prefers writes of {units.block_size(size)}" for size in sizes]


def _by_host_lines(test: PlannedTest) -> list[str]:
    """Of the cells whose threads the host chooses, what is known before."""
    loads = {(cell.threads, cell.queue_depth) for cell in test.cells if cell.per_cpu}
    auto = {(cell.block_size_bytes, cell.access, cell.queue_depth) for cell in test.cells if cell.auto_threads}
    return [
        f"threads by the CPUs that fio gets there, {most} at most; threads x queue depth = {most * depth}"
        for most, depth in sorted(loads)
    ] + [
        f"threads: auto for {access} {units.block_size(size)}: as many as short reads show that fio needs; threads x "
        f"queue depth = {depth}"
        for size, access, depth in sorted(auto)
    ]


def _by_reason(not_applicable: t.Iterable[NotApplicable]) -> dict[str, list[str]]:
    grouped: dict[str, list[str]] = {}
    for item in not_applicable:
        grouped.setdefault(item.reason, []).append(item.id)
    return grouped


def identity_text(drive: PlannedDrive, shown: t.Sequence[str] = IDENTITY_SHOWN) -> str:
    """Who a drive is, in one line: model, serial, wwn, firmware, size, logical block size."""
    known = vars(drive.expected)
    named = [str(known[key]) if key == "model" else f"{key} {known[key]}" for key in shown if known[key]]
    size, block = drive.expected.sizes()
    return ", ".join([*named, units.data_size(size), f"{units.block_size(block)} blocks"])


def _overrides(drive: PlannedDrive) -> str:
    """Return which refusals the drive's entry lifts, as it is written there; a retired drive has lines of its own."""
    options = entry.parse(drive.selector).options
    given = [f"allow: [{', '.join(options.allow)}]"] if options.allow else []
    given += ["ssd_overwrite_data: true"] if options.ssd_overwrite_data else []
    given += [f"release_evidence: {options.release_evidence}"] if options.release_evidence else []
    return ", ".join(given)


def _verb(drive: PlannedDrive) -> str:
    erases = any(
        test.purge.method != "none"
        or test.precondition
        or test.integrity
        or test.power_cut
        or any(cell.read_pct < 100 for cell in test.cells)
        for test in drive.tests
    )
    reads = any(test.in_service for test in drive.tests)
    return "would erase" if erases else "would only read" if reads else "would use"


def _steps(test: PlannedTest, size_bytes: int) -> str:
    steps = []
    active = _active_range(test, size_bytes)
    purge, fill, cells = test.purge.method, test.precondition, test.cells
    steps.append("no purge" if purge == "none" else f"purge ({purge})")
    if test.array:
        steps.append(arrays.describe(test.array))
    if test.filesystem:
        steps.append(filesystems.describe(test.filesystem))
    if fill:
        content = " with zeros" if fill.data else ", the last pass read back" if test.integrity else ""
        passes = fill.passes + (test.integrity.passes if test.integrity else 0)
        multiple = passes * test.active_range_bytes(size_bytes, 1) / size_bytes
        written = "" if multiple == passes else f" ({multiple:.3g} x the user capacity)"
        steps.append(f"precondition {passes} x the ActiveRange of {active}{written}{content}")
    elif test.integrity:
        later, times = _before_read_back(test.integrity), _times(test.integrity)
        steps.append(f"write the ActiveRange of {active} and read it back{later}{times}")
    if test.power_cut:
        steps.append(power_cuts.step(test.power_cut))
    if test.self_test:
        steps.append(f"the drive's own self-test ({test.self_test})")
    if test.scrub:
        part, nights = units.data_size(test.scrub.part_bytes(size_bytes)), test.scrub.nights(size_bytes)
        steps.append(
            f"read {part} at {test.scrub.rate_mib_s} MiB/s, another part each time, all of it in {nights} "
            f"run{'s' * (nights != 1)}"
        )
    if cells:
        shown = cells[0].id if len(cells) == 1 else f"{len(cells)} cells"
        order = ", in another order each round" if test.cell_order else ""
        round_s = plan_duration(sum(cell_s(cell) for cell in cells))
        steps.append(f"rounds of {shown} ({round_s}{order}) {_until(test)}")
    return ", ".join(steps)


def _active_range(test: PlannedTest, size_bytes: int) -> str:
    """Return how large a part of the drive a test uses: 5 %, or 68.72 GB, as more would only take longer."""
    most, share = test.active_range_max_bytes, f"{test.active_range_pct} %"
    if not most or most >= size_bytes * test.active_range_pct // 100:
        return share
    return f"{units.data_size(most)} (less than {share}, so that a large drive takes no longer)"


def _before_read_back(asked: PlannedIntegrity) -> str:
    """Return what befalls a drive between writing and reading back: " after a reset and a pause of 2 h"."""
    at_rest = " in a power state without I/O" if asked.low_power else ""
    pause = f"a pause of {plan_duration(asked.left_alone_s)}{at_rest}" if asked.left_alone_s else ""
    told = [text for text in ("a reset of its controller" if asked.reset else "", pause) if text]
    return f" after {' and '.join(told)}" if told else ""


def _times(asked: PlannedIntegrity) -> str:
    """Return how often: ", for 24 h (at least 2 times), with 15 min of random I/O between, until a block is wrong"."""
    if not asked.duration_s:
        return f", {asked.passes} times" if asked.passes > 1 else ""
    heat = f", with {plan_duration(asked.heat_s)} of random I/O between" if asked.heat_s else ""
    end = ", until a block is wrong" if asked.stop_at_first else ""
    return f", for {plan_duration(asked.duration_s)} (at least {asked.passes} times){heat}{end}"


def _until(test: PlannedTest) -> str:
    rounds, steady = test.rounds, test.steady_state
    limits = [
        f"{rounds.max} round{'s' * (rounds.max != 1)}" if rounds.max else "",
        f"{rounds.capacity_multiple:g} x the user capacity written" if rounds.capacity_multiple else "",
        plan_duration(rounds.time_limit_s) if rounds.time_limit_s else "",
    ]
    ends = " or ".join(limit for limit in limits if limit)
    least = rounds.least_capacity_multiple
    ends += f" from when {least:g} x the user capacity is written" if least else ""
    if not steady:
        return f"until {ends}"
    every = f", one round in {steady.sample_every}" if steady.sample_every > 1 else ""
    confirmed = ", confirmed by the one before" if steady.confirm_windows else ""
    tracked = ", ".join(f"{item.cell} {item.metric}" for item in steady.tracked)
    return (
        f"until steady ({tracked}; window of {steady.window} rounds{every}, "
        f"{plan_duration(time_estimates.window_s(test))}{confirmed}), at most {ends}"
        f"{'' if steady.required else '; its curve counts in any case'}"
    )


def fleet_lines(
    views: t.Sequence[HostAnswer],
    run: Run | None,
    requested: Requested,
    plans: t.Mapping[str, Plan],
    chosen: t.Mapping[str, purge_choice.Chosen],
    known: t.Mapping[str, duration_history.Known],
    now: datetime.datetime,
    is_refused: bool = False,
) -> list[str]:
    """Return the lines; none without a run. now: in UTC. is_refused: something is to be fixed before it can start. Why
    drives and hosts are left out is told after the plan (excluded_drives.lines).
    """
    if run is None:
        return []
    mode = read_only.MODE if any(service_drives.is_service(view.asked) for view in views) else "destructive"
    starts = "it cannot start before what is told below is fixed" if is_refused else f"ssd_mode={mode} starts it"
    lines = [f"Plan of run {run.id}: nothing was erased or changed; {starts}"]
    held_to = run_json.criteria(views)
    before = HostsBefore({}, [])
    for view in views:
        state = run.attach.get(view.name)
        if view.unreachable:
            lines.append(f"{view.name}: unreachable; its drives would count as not tested")
        elif view.gone:
            lines.append(f"{view.name}: left out, so its drives would count as not tested; see below")
        elif state in SETTLED_STATES:
            lines.append(f"{view.name}: this run is {state} on this host, so nothing would be started")
        elif view.name in plans and view.asked:
            eligible = {
                str(found.drive): found.path or "?"
                for found in view.drives or ()
                if found.identity and not findings.standing(found, run)
            }
            looks = {str(found.drive): found.look for found in view.drives or () if found.look}
            gives_up = {str(found.drive): found.gives_up for found in view.drives or () if found.gives_up}
            ratings = schemas.plain(view.asked.get("ssd_rated_tbw"))
            used = wear.used_of(view.wear)
            plan, took = plans[view.name], known.get(view.name)
            worn = {
                drive.drive: plan_totals.Worn(
                    *wear.of_drive(drive, chosen[view.name]), wear.rated_bytes(drive.expected.model, ratings)
                )
                for drive in arrays.written(plan)
            }
            texts = {drive: wear.wear_text(*told_of, used.get(drive)) for drive, told_of in worn.items()}
            refused = [drive.drive for drive in plan.drives if drive.drive not in eligible]
            mine = [one for drive, one in worn.items() if drive not in refused]
            lines += describe(
                plan, eligible, held_to, chosen[view.name], looks, texts, took, mine, before, gives_up, refused
            )
            lines += [f"  {text}" for text in power_cuts.lines(view, plan)]
            for text in _beyond_budget(view, requested[view.name]):
                lines += textwrap.wrap(text, BUDGET_WIDTH, initial_indent="  ", subsequent_indent="    ")
        if view.left_out and not view.gone:
            lines.append(f"  left out, see below: {', '.join(view.left_out)}")
    lines += plan_totals.fleet_lines(before.totals, now)
    lines += _health_lines(run_json.health_criteria(views))
    return lines + remeasurement_checks.plan_lines(remeasurement_checks.is_requested(views), held_to)


def _health_lines(of_hosts: t.Mapping[str, t.Sequence[Json]]) -> list[str]:
    """Return what each host's drives are held to, in a line for all hosts with the same."""
    hosts: dict[str, list[str]] = {}
    for host, criteria in of_hosts.items():
        hosts.setdefault(health_criteria.told(criteria), []).append(host)
    return [
        f"Health criteria (ssd_health_criteria){of}, also if a test is invalid: {told}"
        for told, names in hosts.items()
        for of in [f" of {findings.host_list(names)}" if len(hosts) > 1 else ""]
    ]


def _beyond_budget(view: HostAnswer, asked: HostTests) -> list[str]:
    """Return what ssd_time_budget leaves out on a host, as one text; none where nothing is."""
    variables = asked.variables
    rest = {} if variables.get(hostplan.AGAIN) else asked.left_out
    shown = ", ".join(f"{name} (up to {plan_duration(longest_s)})" for name, longest_s in rest.items())
    reads_s = hostplan.reads_s(variables, view.drives_to_plan())
    reads = f", of which finding how many drives run at a time takes up to {plan_duration(reads_s)}" * bool(reads_s)
    return [f"left out by ssd_time_budget ({variables['ssd_time_budget']} per drive{reads}): {shown}"] if rest else []


def budget_warnings(
    views: t.Sequence[HostAnswer], requested: Requested, begun: t.Mapping[str, Plan]
) -> list[RunWarning]:
    """Return the same for run.json, so that a run that is started at once and its report tell it too. begun: the plans
    of hosts on which the run is not under way.
    """
    remedy = "raise ssd_time_budget, or take a shorter plan"
    return [
        RunWarning(view.name, TIME_BUDGET, drive.drive, "warning", text, remedy)
        for view in views
        if view.name in begun
        for text in _beyond_budget(view, requested[view.name])
        for drive in begun[view.name].drives
    ]
