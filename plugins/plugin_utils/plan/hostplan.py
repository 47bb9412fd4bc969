# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a host's Ansible variables to its plan: which variables count, and what tuning they mean."""

from __future__ import annotations

import contextlib
import dataclasses
import typing as t

from ...module_utils.purge import methods
from ...module_utils.purge.method import PurgeError
from ...module_utils.records.found_drives import FoundDrive
from ...module_utils.records.identity import Identity
from ...module_utils.records.plan import Plan, PlannedPurge, PlannedTest, Tune
from ..common import argument_specs
from ..common import schema as schemas
from ..common.argument_specs import Variables
from ..common.units import plan_duration_closely
from . import (
    criteria_files,
    health_criteria,
    in_service,
    parallel_drives,
    purge_values,
    time_estimates,
    tuning,
    tuning_values,
    write_rates,
)
from . import render_plan as planning
from .test_record import Test
from .write_rates import DriveToPlan

# The variables that shape a host's plan, each owned by the role of its prefix.
VARIABLES = (
    "ssd_assumed_write_mib_s",
    "ssd_criteria",
    "ssd_health_criteria",
    "ssd_leave",
    "ssd_look",
    "ssd_look_s",
    "ssd_parallel_drives",
    "ssd_plan",
    "ssd_sample_interval_s",
    "ssd_step",
    "ssd_tests_dirs",
    "ssd_time_budget",
    "ssd_unknown_causes",
    "ssd_validity_limits",
    *tuning.VARIABLES,
    *purge_values.VARIABLES,
    *argument_specs.options("precondition"),
    *argument_specs.options("workload"),
    "vendor_iomemory_dma_delay",
    "vendor_rssdm",
)
# Those that name the tests, whatever drives there are.
TEST_VARIABLES = ("ssd_plan", "ssd_step", "ssd_tests_dirs", *argument_specs.options("precondition"))
# What --tags and --skip-tags of the play say: the concerns of tuning are tags too.
TAGS = ("ansible_run_tags", "ansible_skip_tags")
# What a second measurement is narrowed to (ssd_retest): tests. The playbook retest.yml sets it.
AGAIN = "ssd_again"
# ssd_mode, which says whether a run only reads.
MODE = "ssd_mode"
GIVEN = (*TAGS, AGAIN, MODE)


def tune_spec(variables: Variables, keep: bool = False) -> Tune:
    """Return the plan's `tune` (docs/internals.md). `keep`: leave the settings until restore.yml; nothing can be held
    open then.
    """
    run_tags, skip_tags = (variables.get(name) or () for name in TAGS)
    values = tuning_values.normal(variables)
    return tuning.build(values, tuning.requested_concerns(values, run_tags, skip_tags), keep)


Drives = t.Sequence[DriveToPlan]


def load_tests(variables: Variables) -> list[Test]:
    """Return the tests that a host's TEST_VARIABLES ask for: those of ssd_plan, or the one step of ssd_step. Tuning
    alone touches no drive. Raises PlanError.
    """
    step = variables["ssd_step"]
    if step == "qualify":
        return planning.load_plan(variables["ssd_plan"], variables["ssd_tests_dirs"])
    return [] if step == "tune" else planning.step_plan(step, variables)


def choose_tests(
    asked: t.Sequence[Test], variables: Variables, drives: Drives = ()
) -> tuple[list[Test], dict[str, float]]:
    """Return those of a host's tests (load_tests) that it runs, and {name: their longest time in s} of those that
    ssd_time_budget leaves out. Raises PlanError where it leaves out all.

    drives: the tests have to fit (time_estimates.within) on all of them.
    """
    if variables["ssd_step"] != "qualify":
        return list(asked), {}
    kept, left_out = _within(asked, variables, drives)
    again = variables.get(AGAIN)
    if again:
        # A drive is measured again by itself: no array is made of it.
        return [test for test in asked if test.name in again["tests"] and not test.array_request], left_out
    if left_out and not kept:
        name, longest_s = min(left_out.items(), key=lambda item: item[1])
        before_s = reads_s(variables, drives)
        problem = (
            f"ssd_time_budget: no test of the plan fits into {variables['ssd_time_budget']}: the shortest, "
            f"{name}, may take {plan_duration_closely(longest_s)}"
            + f", and finding how many drives run at a time {plan_duration_closely(before_s)}"
            * bool(before_s)
        )
        raise planning.PlanError([f"{problem}; give more time or a shorter plan"])
    return kept, left_out


def criteria(variables: Variables) -> t.Any:
    """Return what a run holds drives to: files of criteria, ssd_criteria on top; nothing for a single step.
    Raises PlanError.
    """
    return criteria_files.merged(variables) if variables["ssd_step"] == "qualify" else []


def _within(asked: t.Sequence[Test], variables: Variables, drives: Drives) -> tuple[list[Test], dict[str, float]]:
    most_s = time_estimates.budget_s(variables.get("ssd_time_budget"))
    seen = [drive for drive in drives if has_sizes(drive)]
    if most_s is None or not seen:
        return list(asked), {}
    # What purge_method says counts for the tests that leave the method open.
    timed = [dataclasses.replace(test, purge=purge_values.spec(test.purge, variables)) for test in asked]

    def share(test: PlannedTest, place: int) -> float | None:
        return _purge_share(test.purge, seen[place])

    identities = [drive.identity or Identity() for drive in seen]
    asked_mib_s = variables["ssd_assumed_write_mib_s"]
    rates = [write_rates.of_found(asked_mib_s, drive).assumed for drive in seen]
    kept, rest = time_estimates.within(timed, identities, most_s - reads_s(variables, seen), rates, share)
    return [test for test in asked if test.name in kept], rest


def has_sizes(drive: FoundDrive) -> bool:
    """Return whether a drive tells what is needed to plan tests for it."""
    return bool(drive.identity and drive.identity.size_bytes and drive.identity.logical_block_size_bytes)


def reads_s(variables: Variables, drives: Drives) -> float:
    """Return what the reads by which a host finds how many drives it measures at the same time take at most, from the
    time of each of its drives.
    """
    settings = {name: variables[name] for name in ("ssd_parallel_drives", "workload_ioengine")}
    seen = [drive for drive in drives if has_sizes(drive)]
    return parallel_drives.span_s(parallel_drives.spec(settings, seen, any_test=True).together, len(seen))[1]


def _purge_share(purge: PlannedPurge, drive: FoundDrive) -> float | None:
    """time_estimates.purge_share of what a purge is on a drive, as `auto` may be an overwrite.

    None where the drive wasn't asked, or offers no purge, which preflight tells.
    """
    capabilities = drive.purge_capabilities
    if purge.method == "none" or not capabilities:
        return None
    with contextlib.suppress(PurgeError):
        lba_size = drive.identity.logical_block_size_bytes if drive.identity else None
        offered = methods.offers_for(methods.reported(capabilities), lba_size, purge)
        return time_estimates.purge_share(methods.choose(purge.method, offered).method)
    return None


def build(
    variables: Variables,
    tests: t.Sequence[Test],
    *,
    run: t.Mapping[str, str],
    host: str,
    boot_id: str,
    drives: Drives,
    engine_version: str,
    left_out: t.Collection[str] = (),
) -> Plan:
    """Return the plan of a host, from its VARIABLES and, where they are there, what is GIVEN. tests: of choose_tests.
    left_out: drives that take no part. Raises PlanError.
    """
    values = schemas.plain(
        {name: variables[name] for name in (*VARIABLES, *GIVEN) if name in VARIABLES or name in variables}
    )
    values["ssd_criteria"], values["ssd_health_criteria"] = criteria(values), health_criteria.resolved(values)
    service = in_service.is_service(tests, values.get(MODE))
    plan = planning.render(
        tests,
        run=run,
        host=host,
        boot_id=boot_id,
        drives=drives,
        left_out=left_out,
        engine_version=engine_version,
        variables=values,
        tune=Tune() if service else tune_spec(values, keep=values["ssd_step"] == "tune"),
        service=service,
    )
    slowest = min((drive.assumed_write_bytes_per_s for drive in plan.drives), default=None)
    return dataclasses.replace(plan, assumed_write_bytes_per_s=slowest)
