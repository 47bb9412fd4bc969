# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lines of an approved plan from what preflight decides, and what of a later decision is not in that plan. Pure but
for reading test files.
"""

from __future__ import annotations

import datetime
import json
import typing as t
from types import MappingProxyType

from ...module_utils.drive.entry import GUARD_OPTIONS, parse
from ...module_utils.drive.identity import NAMES
from ...module_utils.records import base
from ...module_utils.records.identity import Identity
from ...module_utils.records.plan import Plan
from ...module_utils.run import digests
from ...module_utils.run.states import SETTLED_STATES
from ..common import argument_specs
from ..common.argument_specs import Variables
from ..common.schema import plain
from ..plan import arrays, purge_values
from ..plan.test_record import Test
from ..run_folder import remeasurement
from . import approval, examine_arguments, remeasurement_checks
from .findings import Finding, HostAnswer, Run, shared_value
from .host_tests import HostTests, Requested

# A host's variables that say what else may be erased or done to the host, or how well a drive is checked before that.
OVERRIDES = (
    "preflight_levels",
    "ssd_leave",
    "ssd_look",
    "ssd_look_s",
    "ssd_retest",
    examine_arguments.BOOT,
    "tune_boot_arguments",
    *sorted(examine_arguments.PREPARED),
    *examine_arguments.OF_BMC,
    "tune_fans_ipmi",
    "vendor_power_cycle",
    "vendor_power_cycle_force",
)
DIGEST_LETTERS = 16
ADVICE = "make and approve a new plan, or undo the change"
Plans = t.Mapping[str, Plan]


def decided(
    views: t.Sequence[HostAnswer],
    run: Run,
    requested: Requested,
    plans: Plans,
    now: datetime.datetime,
    started_only: bool = False,
) -> approval.ApprovedPlan:
    """Return what preflight decided, as a plan to approve. started_only: without hosts on which this run needs no
    start.
    """
    hosts = [
        (view, plans[view.name])
        for view in views
        if view.name in plans and view.asked and not (started_only and run.attach.get(view.name) in SETTLED_STATES)
    ]
    return approval.ApprovedPlan(
        run.id,
        run.name,
        str(shared_value(views, "ssd_step")),
        f"{now:%Y-%m-%dT%H:%M:%S}Z",
        [line for view, plan in hosts for line in _lines(view, requested[view.name], plan)],
        {(view.name, drive): why for view in views if not view.gone for drive, why in view.left_out.items()},
        {view.name: view.gone for view in views if view.gone},
    )


def _lines(view: HostAnswer, asked: HostTests, plan: Plan) -> list[approval.Line]:
    definitions = {test.name: _digest(test) for test in asked.tests}
    purges = {test.name: _purge(test, asked.variables) for test in asked.tests}
    of_host = _set(OVERRIDES, view.asked or {})
    # Members of an array are written by its test, which another drive carries.
    planned = [(drive, [test.name for test in drive.tests]) for drive in arrays.written(plan)]
    return [
        approval.Line(
            view.name,
            drive.drive,
            _identity(drive.expected),
            _only(definitions, names),
            _only(purges, names),
            [*_guard_options(drive.selector), *of_host],
        )
        for drive, names in planned
        if names
    ]


def _identity(identity: Identity) -> str:
    """Who a drive is: not its firmware or size, which settings change."""
    named = ((name, getattr(identity, name)) for name in sorted(NAMES))
    return ", ".join(f"{name} {value}" for name, value in named if value)


def _digest(test: Test) -> str:
    """Of a test's definition as its file and the variables have it, not of what one drive can do of it."""
    measured = base.sparse_json(test.planned(purge=None))
    beside = {"refill_buffers": test.refill_buffers, "array": base.to_json(test.array_request)}
    return digests.digest({**measured, **beside}, DIGEST_LETTERS)


def _purge(test: Test, variables: Variables) -> str:
    given = base.sparse_json(purge_values.spec(test.purge, variables))
    return " ".join([given["method"], *(f"{key}={given[key]}" for key in sorted(given) if key != "method")])


def _guard_options(selector: t.Any) -> list[str]:
    options = parse(plain(selector)).options._asdict()
    return [_shown(name, options[name]) for name in GUARD_OPTIONS if options[name]]


def _set(names: t.Sequence[str], variables: Variables) -> list[str]:
    """Return those of a host's variables that are not at their defaults, each in its type: a survey gives texts."""
    values = {name: _in_type(name, plain(variables.get(name))) for name in names}
    return [_shown(name, value) for name, value in values.items() if value not in (None, argument_specs.default(name))]


def _in_type(name: str, value: t.Any) -> t.Any:
    return value if value is None else argument_specs.in_type(name.split("_", 1)[0], {name: value}).get(name, value)


def _shown(name: str, value: t.Any) -> str:
    return f"{name}={json.dumps(value, sort_keys=True)}"


def choose_run(views: t.Sequence[HostAnswer], approved: approval.ApprovedPlan | None) -> list[HostAnswer]:
    """Return the views with the approved plan's run, where ssd_run_id names none."""
    if approved is None or shared_value(views, "ssd_run_id"):
        return list(views)
    own = {"ssd_run_id": approved.run_id}
    return [view if view.asked is None else view._replace(asked={**view.asked, **own}) for view in views]


def is_required(views: t.Sequence[HostAnswer]) -> bool:
    """Return whether nothing may be erased without an approved plan."""
    return bool(shared_value(views, "ssd_approval") == "required")


def unusable(
    approved: approval.ApprovedPlan | None,
    views: t.Sequence[HostAnswer],
    run: Run | None,
    starts: t.Sequence[approval.Line],
) -> list[Finding]:
    """Return why the approved plan is none for this run, or is missing. starts: the drives that this play
    would erase.
    """
    if approved is None:
        return [Finding(f"ssd_approved_plan: {_MISSING}")] if starts and is_required(views) else []
    if shared_value(views, "ssd_step") == "tune":
        return [
            Finding("ssd_approved_plan: tuning erases nothing, so there is nothing to approve; remove the variable")
        ]
    step = str(shared_value(views, "ssd_step"))
    if approved.step != step:
        names = [approval.PLAYBOOKS.get(one, one) for one in (approved.step, step)]
        other = "ssd_approved_plan: it is a plan of {}, and this is {}; approve a plan of its own"
        return [Finding(other.format(*names))]
    first = remeasurement_checks.remeasured_run(views)
    if run is None or approved.run_id == (first or run.id):
        return []
    own = f"run {run.id}" + f", the second measurement of {first}" * bool(first)
    how = f"give -e ssd_run_id={approved.run_id}, or make and approve a plan of this run"
    return [Finding(f"ssd_approved_plan: it is of run {approved.run_id}, and this is {own}; {how}")]


_MISSING = (
    "nothing was approved, and ssd_approval is required: start the workflow, which begins with the plan (docs/awx.md), "
    "or give the file that ssd_mode=plan wrote. In a workflow, the plan's artifact ssd_approved_plan did not arrive"
)


def findings(approved: approval.ApprovedPlan, now: approval.ApprovedPlan) -> list[Finding]:
    """Return what would be done now and is not in the approved plan, drive by drive. A drive that is gone is no
    finding, and a second measurement may have fewer tests.
    """
    known, hosts = approved.by_drive(), {line.host for line in approved.lines}
    narrowed = now.run_id == remeasurement.id_of(approved.run_id)
    found = []
    for line in now.lines:
        then = known.get((line.host, line.drive))
        if then is None:
            what = "this drive is" if line.host in hosts else "this host is"
            message = f"ssd_approved_plan: {what} not in the approved plan ({line.identity}); {ADVICE}"
            found.append(Finding(message, line.host, line.drive))
            continue
        if narrowed:
            then = then._replace(tests=_only(then.tests, line.tests), purge=_only(then.purge, line.tests))
        parts = [name for name in approval.PARTS if getattr(then, name) != getattr(line, name)]
        if parts:
            differences = "; ".join(
                f"other {name}: approved {then.part(name)}, now {line.part(name)}" for name in parts
            )
            found.append(Finding(f"ssd_approved_plan: {differences}; {ADVICE}", line.host, line.drive))
    return found


def carried_out(
    views: t.Sequence[HostAnswer], run: Run, now: approval.ApprovedPlan, collected: t.Container[tuple[str, str]]
) -> list[Finding]:
    """Return the drives that this run has begun with on hosts that have forgotten it (cleanup.yml): what was approved
    is done. collected: (host, drive) of the drives of which this controller has the run's results.
    """
    wrote = {
        (view.name, str(found.drive))
        for view in views
        for found in view.drives or ()
        if found.own_data and found.own_data.run_id == run.id
    }
    what = f"ssd_approved_plan: run {run.id} has already begun with this drive; make and approve a new plan"
    return [
        Finding(what, line.host, line.drive)
        for line in now.lines
        if line.host not in run.attach and ((key := (line.host, line.drive)) in wrote or key in collected)
    ]


def can_be_left_out(differing: t.Sequence[Finding], now: approval.ApprovedPlan, run: Run) -> bool:
    """Return whether the run can start without the drives that differ: others remain, and no host has begun with one of
    them. A single step does all that it names or nothing.
    """
    begun = any(one.host in run.attach for one in differing)
    return now.step == "qualify" and 0 < len(differing) < len(now.lines) and not begun


def _only(values: t.Mapping[str, str], names: t.Container[str]) -> dict[str, str]:
    return {name: value for name, value in values.items() if name in names}


def left_out(approved: approval.ApprovedPlan | None, host: str) -> t.Mapping[str, str]:
    """{drive: why} of a host's drives that the approved plan leaves out, so that nobody approved to erase them."""
    if approved is None:
        return MappingProxyType({})
    return {
        drive: f"the approved plan leaves it out: {why}" for (of, drive), why in approved.left_out.items() if of == host
    }


def hosts_left_out(approved: approval.ApprovedPlan | None) -> dict[str, str]:
    """Return the same of hosts: they could not be planned."""
    gone = approved.hosts_left_out if approved else {}
    return {host: f"the approved plan leaves this host out: {why}" for host, why in gone.items()}


def takes(now: approval.ApprovedPlan, approved: approval.ApprovedPlan | None, attach: t.Mapping[str, str]) -> list[str]:
    """Return what a start prints: each drive that it erases, by host. attach: the run's state on hosts that have it."""
    hosts: dict[str, list[str]] = {}
    for line in now.lines:
        hosts.setdefault(line.host, []).append(f"  {line.text()}")
    source = (
        f"all in the approved plan (SHA-256 {approval.sha256(approved)})" if approved else "without an approved plan"
    )
    counts = f"{len(now.lines)} drive{'s' * (len(now.lines) != 1)} of {len(hosts)} host{'s' * (len(hosts) != 1)}"
    lines = [f"Run {now.run_id} takes {counts}, {source}:"]
    for host, drives in hosts.items():
        lines += [f"{host}:", *drives]
    return lines + [
        f"{host}: this run is {state} on this host, so nothing is started there"
        for host, state in attach.items()
        if state in SETTLED_STATES
    ]
