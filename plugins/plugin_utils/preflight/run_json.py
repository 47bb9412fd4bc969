# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""run.json as preflight writes it."""

from __future__ import annotations

import contextlib
import datetime
import platform
import typing as t

from ansible.release import __version__ as ansible_version

from ...module_utils.core.files import SCHEMA_VERSION
from ...module_utils.records.plan import PlannedRun
from ..common import argument_specs, cell_names
from ..common import schema as schemas
from ..common.version import collection_version
from ..plan import cells, criteria_files
from ..plan import health_criteria as health
from ..plan.testfiles import PlanError
from ..run_folder.run_record import Definition, RequestedDrive, RunRecord, RunWarning
from . import drive_feasibility, findings, refused_drives, remeasurement_checks, wear
from .findings import HostAnswer, Run
from .host_tests import HostTests, Requested, TestsOfHosts


def criteria(views: t.Sequence[HostAnswer]) -> t.Any:
    """Return the run's criteria; None for a single step, which measures nothing that one could be about."""
    if findings.shared_value(views, "ssd_step") != "qualify":
        return None
    own = findings.shared_value(views, "ssd_criteria") or []
    folders = [schemas.plain(view.asked.get("ssd_tests_dirs")) or [] for view in views if view.asked]
    found: list[t.Any] = []
    for dirs in {repr(each): each for each in folders}.values() if isinstance(own, list) else ():
        with contextlib.suppress(PlanError):  # _plans says what is wrong with a file
            found += [
                criterion
                for criterion in criteria_files.merged({"ssd_criteria": own, "ssd_tests_dirs": dirs})
                if criterion not in found
            ]
    return found or own


def health_criteria(views: t.Sequence[HostAnswer]) -> dict[str, list[dict[str, t.Any]]]:
    """Return what the health of each host's drives is held to; nothing for a single step, which measures nothing."""
    if findings.shared_value(views, "ssd_step") != "qualify":
        return {}
    return {view.name: health.resolved(view.asked) for view in views if view.asked is not None}


def record(
    views: t.Sequence[HostAnswer],
    run: Run,
    now: datetime.datetime,
    tests: TestsOfHosts,
    requested: Requested,
    warnings: t.Sequence[RunWarning],
) -> RunRecord:
    """Return run.json. tests: what it tells about those of each host."""
    asked = [
        RequestedDrive(
            host=view.name,
            drive=drive,
            tests=[
                name
                for name, about in tests[view.name].items()
                if (not about.get("array") or drive == last) and name not in without.get(drive, ())
            ],
            engine=engine,
            validity_limits=limits,
            rack=rack,
            preferred_write_bytes=sizes.get(drive),
            wear_budget_bytes=budgets.get(drive),
            model=models.get(drive),
            left_out_tests=[*left_out, *without.get(drive, ())] or None,
            left_out_cells=left_out or None,
            left_out=why,
            sick=sick.get(drive),
            again=remeasurement_checks.counting_tests(view, drive),
        )
        for view in views
        if view.asked is not None
        for rack in [str(view.asked["ssd_rack"]) if view.asked.get("ssd_rack") else None]
        for engine in [str(requested[view.name].variables["workload_ioengine"])]
        for limits in [schemas.plain(view.asked.get("ssd_validity_limits")) or {}]
        for sizes in [_preferred(view, run, tests[view.name])]
        for budgets in [wear.budgets(view)]
        for models in [_models(view)]
        for sick in [{**refused_drives.sick(view), **view.sick}]
        for left_out in [_left_out_cells(requested[view.name])]
        for without in [drive_feasibility.self_tests_left_out(view, requested[view.name].tests)]
        for labels in [[entry.label for entry in view.entries or ()]]
        for last in labels[-1:] or [""]
        for drive, why in [*((label, None) for label in labels), *view.left_out.items()]
    ]
    return RunRecord(
        schema_version=SCHEMA_VERSION,
        run=PlannedRun(run.id, run.name),
        started=f"{now:%Y-%m-%dT%H:%M:%S}Z",
        again_of=remeasurement_checks.remeasured_run(views) or None,
        asked=asked,
        criteria=criteria(views) or [],
        health_criteria=health_criteria(views),
        unknown_causes=findings.shared_value(views, "ssd_unknown_causes")
        or argument_specs.default("ssd_unknown_causes"),
        tests={name: about for host_tests in tests.values() for name, about in host_tests.items()},
        versions={
            "collection": collection_version(),
            "ansible_core": ansible_version,
            "python": platform.python_version(),
        },
        warnings=list(warnings),
    )


def _models(view: HostAnswer) -> dict[str, str]:
    """Return each drive's model, as preflight saw it: criteria of a model hold for it to the end."""
    return {
        str(found.drive): found.identity.model for found in view.drives or () if found.identity and found.identity.model
    }


def _left_out_cells(requested: HostTests) -> dict[str, list[str]]:
    """Return the tests that ssd_time_budget leaves out on a host, with their cells."""
    return {test.name: [cell.id for cell in test.cells] for test in requested.asked if test.name in requested.left_out}


def _preferred(view: HostAnswer, run: Run, tests: t.Mapping[str, Definition]) -> dict[str, int]:
    """Return the size of cells of the preferred write size, by drive; nothing where no test has such cells, and where
    the run is under way: its cells have the size that it began with.
    """
    used = any(cell_names.is_preferred(cell) for about in tests.values() for cell in about["cells"])
    if not used or run.attach.get(view.name):
        return {}
    return {
        str(found.drive): cells.preferred_size_bytes(found.identity)
        for found in view.drives or ()
        if found.identity and found.identity.logical_block_size_bytes
    }
