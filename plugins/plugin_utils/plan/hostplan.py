# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a host's Ansible variables to its plan: which variables count, and what tuning they mean."""

from __future__ import annotations

import typing as t

from ..common import schema as schemas
from . import render as planning
from . import limits, tuning, tuning_values

# The variables that shape a host's plan, each owned by the role of its prefix.
VARIABLES = (
    "ssd_criteria",
    "ssd_leave",
    "ssd_look",
    "ssd_look_s",
    "ssd_parallel_drives",
    "ssd_plan",
    "ssd_sample_interval_s",
    "ssd_step",
    "ssd_tests_dirs",
    "ssd_unknown_causes",
    "ssd_validity_limits",
    *tuning.VARIABLES,
    "purge_iomemory_sector_bytes",
    "purge_iomemory_size_pct",
    "purge_lba_size_bytes",
    "purge_method",
    "purge_stuck_s",
    "purge_timeout_s",
    "precondition_block_size",
    "precondition_passes",
    "vendor_iomemory_dma_delay",
    "vendor_rssdm",
    "workload_ioengine",
)
# What --tags and --skip-tags of the play say: the concerns of tuning are tags too.
TAGS = ("ansible_run_tags", "ansible_skip_tags")


def tune_spec(variables: t.Mapping[str, t.Any], keep: bool = False) -> dict[str, t.Any]:
    """The plan's `tune` (docs/internals.md). `keep`: leave the settings until restore.yml; nothing can be held open then."""
    run_tags, skip_tags = (variables.get(name) or () for name in TAGS)
    values = tuning_values.normal(variables)
    return tuning.build(values, tuning.wanted(values, run_tags, skip_tags), keep)


def tests(variables: t.Mapping[str, t.Any]) -> list[dict[str, t.Any]]:
    """The tests of a run: those of ssd_plan, or the one step of ssd_step. Tuning alone touches no drive. Raises PlanError."""
    step = variables["ssd_step"]
    if step == "qualify":
        return planning.load_plan(variables["ssd_plan"], variables["ssd_tests_dirs"])
    return [] if step == "tune" else planning.step_plan(step, variables)


def criteria(variables: t.Mapping[str, t.Any]) -> t.Any:
    """What a run holds drives to: files of criteria, ssd_criteria on top; nothing for a single step. Raises PlanError."""
    return limits.merged(variables) if variables["ssd_step"] == "qualify" else []


def build(
    variables: t.Mapping[str, t.Any],
    *,
    run: t.Mapping[str, str],
    host: str,
    boot_id: str,
    drives: t.Sequence[t.Mapping[str, t.Any]],
    engine_version: str,
) -> dict[str, t.Any]:
    """plan.json of a host, from its VARIABLES and, where they are there, its TAGS. Raises PlanError."""
    values = schemas.plain({name: variables[name] for name in (*VARIABLES, *TAGS) if name in VARIABLES or name in variables})
    values["ssd_criteria"] = criteria(values)
    return planning.render(
        tests(values),
        run=run,
        host=host,
        boot_id=boot_id,
        drives=drives,
        engine_version=engine_version,
        variables=values,
        tune=tune_spec(values, keep=values["ssd_step"] == "tune"),
    )
