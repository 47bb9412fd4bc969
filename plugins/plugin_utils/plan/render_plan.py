# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's plan: tests fitted to each of its drives, with fio jobs whose placeholders the host fills in. Pure but for
the template.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ...module_utils.drive.entry import Entry, parse
from ...module_utils.records.base import Json
from ...module_utils.records.identity import Identity
from ...module_utils.records.plan import (
    Fio,
    Plan,
    PlannedDrive,
    PlannedFill,
    PlannedIntegrity,
    PlannedLook,
    PlannedPurge,
    PlannedRun,
    PlannedTest,
    RoundLimits,
    Tune,
    Validity,
)
from ..common import argument_specs
from ..common import schema as schemas
from ..common.argument_specs import Variables
from ..common.values import integer
from . import arrays, in_service, parallel_drives, purge_values, write_rates
from . import cells as celling
from .jobs import POLLED, refilling, sections_of, with_fill_jobs, with_job, with_trial
from .test_record import Test
from .testfiles import PlanError, load_plan
from .write_rates import DriveToPlan

__all__ = ["PlanError", "load_plan", "render", "step_plan"]

OVERWRITE_BLOCK_BYTES = 131_072
# What warms a drive, and has it collect garbage, between two passes of an integrity test.
HEAT = {"access": "random", "block_size": "4KiB", "read_pct": 50, "threads": 4, "queue_depth": 64}


def render(
    tests: t.Sequence[Test],
    *,
    run: t.Mapping[str, str],
    host: str,
    boot_id: str,
    drives: t.Sequence[DriveToPlan],
    engine_version: str,
    variables: Variables,
    tune: Tune | None = None,
    fio_path: str = "fio",
    left_out: t.Collection[str] = (),
    service: bool = False,
) -> Plan:
    """Return the plan of one host (docs/internals.md).

    tests: of load_plan or step_plan. run: {id, name}. drives: as their host found them.
    variables: the host's, of which workload_ioengine, purge_method, ssd_assumed_write_mib_s, ssd_parallel_drives and
      ssd_sample_interval_s count here.
    left_out: drives that take no part; an array of all of them can't be made, which the host says. service: the drives
      hold data, and are only read, all side by side.
    Raises PlanError with every drive that can't do a test, naming host, drive and cell.
    """
    settings = {**_defaults(), **variables}
    measures = any(test.cells or test.integrity or test.power_cut or test.self_test or test.scrub for test in tests)
    problems = _engine_problems(settings, host)
    rendered, wrong = _drives(tests, drives, settings, host, left_out)
    problems += wrong
    if problems:
        raise PlanError(problems)
    at_once = parallel_drives.spec(settings, drives, any_test=measures)
    # A cut reaches all of them.
    if service or any(test.power_cut for test in tests):
        at_once = parallel_drives.AtOnce(max(1, len(drives)))
    return Plan(
        schema_version=1,
        engine_version=engine_version,
        run=PlannedRun(str(run["id"]), str(run["name"])),
        host=str(host),
        boot_id=boot_id,
        parallel_drives=at_once.number,
        together=at_once.together,
        parallel_why=at_once.why,
        sample_interval_s=float(settings.get("ssd_sample_interval_s") or 0),
        look=_look(settings),
        validity=_validity(settings, in_service.limits(tests) if service else {}),
        leave=settings["ssd_leave"] if measures and not service else "as_is",
        criteria=_criteria(settings, "ssd_criteria") if measures else [],
        health_criteria=_criteria(settings, "ssd_health_criteria") if measures else [],
        fio=Fio(fio_path),
        tune=tune or Tune(),
        drives=rendered,
    )


def _drives(
    tests: t.Sequence[Test],
    drives: t.Sequence[DriveToPlan],
    settings: Variables,
    host: str,
    left_out: t.Collection[str],
) -> tuple[list[PlannedDrive], list[str]]:
    """(the plan of each drive, what they can't do)."""
    rendered = []
    known = [drive.identity for drive in drives if drive.identity]
    problems = [f"{host}: {text}" for text in arrays.host_problems(tests, known, settings, POLLED, len(left_out))]
    entries = [parse(schemas.plain(drive.selector)) for drive in drives]
    labels = [*(entry.label for entry in entries), *left_out]
    for place, (drive, entry) in enumerate(zip(drives, entries)):
        carried = [test for test in tests if arrays.carries_test(test, place, len(drives))]
        if not drive.identity:
            problems.append(f"{host}: drive {entry.label}: was not found, so nothing can be planned for it")
            continue
        done, wrong = _for_drive(drive, drive.identity, entry, carried, settings, host, known)
        arrays_of = [arrays.on_drive(test, labels) for test in carried]
        tests_of = [dataclasses.replace(test, array=array) for test, array in zip(done.tests, arrays_of)]
        rendered.append(dataclasses.replace(done, tests=tests_of))
        problems += wrong
    return rendered, problems


def _defaults() -> dict[str, t.Any]:
    """Of the variables that a step may not have set."""
    return {
        **{name: argument_specs.default(name) for name in ("workload_ioengine", "purge_method", "ssd_parallel_drives")},
        "ssd_leave": "as_is",
    }


def _look(settings: Variables) -> PlannedLook:
    full = settings.get("ssd_look") == "full"
    return PlannedLook(None if full else float(settings.get("ssd_look_s") or argument_specs.default("ssd_look_s")))


def _validity(settings: Variables, own: t.Mapping[str, float]) -> Validity:
    """Return what cells are held to. own: limits that the tests ask for."""
    limits = schemas.plain(settings.get("ssd_validity_limits")) or {}
    is_strict = settings.get("ssd_unknown_causes") == "disturb"
    return Validity(is_strict, {**own, **{name: float(limit) for name, limit in limits.items()}})


def _criteria(settings: Variables, name: str) -> list[Json]:
    return [item for item in schemas.plain(settings.get(name)) or [] if isinstance(item, dict)]


def _for_drive(
    drive: DriveToPlan,
    identity: Identity,
    entry: Entry,
    tests: t.Sequence[Test],
    settings: Variables,
    host: str,
    of_host: t.Sequence[Identity],
) -> tuple[PlannedDrive, list[str]]:
    """One of the plan's drives, and what it can't do. of_host: the identities of all its drives."""
    where = f"{host}: drive {entry.label}"
    fitted = _fit_tests(tests, identity, settings, of_host, entry.options.plp)
    problems = _poll_problems(any(test.cells for test in tests), identity, settings, where)
    problems += _cache_problems(tests, entry, where)
    problems += [f"{where}: test {test.name}: {line}" for test, (_done, wrong) in zip(tests, fitted) for line in wrong]
    rates = write_rates.of_found(settings.get("ssd_assumed_write_mib_s"), drive)
    rendered = PlannedDrive(
        drive=entry.label,
        selector=entry.given,
        expected=identity,
        vendor=_vendor(identity, settings),
        tests=[done for done, _wrong in fitted],
        assumed_write_bytes_per_s=rates.assumed,
        most_write_bytes_per_s=rates.most,
        lasting_write_bytes_per_s=rates.lasting,
        write_rate_from=rates.source,
    )
    return rendered, problems


def _engine_problems(settings: Variables, host: str) -> list[str]:
    engine, engines = settings["workload_ioengine"], argument_specs.choices("workload_ioengine")
    if engine in engines:
        return []
    return [f"{host}: workload_ioengine: {engine!r} must be one of: {', '.join(engines)}"]


def _cache_problems(tests: t.Sequence[Test], entry: Entry, where: str) -> list[str]:
    """Return what an entry of ssd_drives says of the write cache must not stand against what a test needs."""
    own = entry.options.write_cache
    against = next((test for test in tests if own and test.write_cache not in (None, own)), None)
    if against is None:
        return []
    test = f"test {against.name}, which needs it {against.write_cache}"
    return [f"{where}: write_cache: {own} in its entry contradicts {test}; remove it from the entry"]


def _poll_problems(measures: bool, identity: Identity, settings: Variables, where: str) -> list[str]:
    """Without queues for it the kernel refuses polled I/O or, before 5.16, does it by interrupts and says nothing."""
    if not measures or settings["workload_ioengine"] != POLLED or identity.io_poll is True:
        return []
    advice = "use io_uring, or boot with nvme.poll_queues=N: the kernel sets up poll queues for NVMe drives only"
    return [f"{where}: workload_ioengine: {POLLED}: its queue/io_poll is not 1; {advice}"]


def _vendor(identity: Identity, settings: Variables) -> Json:
    """Return what the inventory wants of a drive's own settings, for every result to be held to (vendor_rssdm,
    vendor_iomemory_dma_delay).
    """
    lines = schemas.plain(settings.get("vendor_rssdm")) or []
    own = [
        line
        for line in lines
        if isinstance(line, dict) and identity.serial and str(line.get("serial")).strip() == identity.serial
    ]
    delay = schemas.plain(settings.get("vendor_iomemory_dma_delay"))
    wanted = {key: value for line in own for key, value in line.items() if key != "serial"}
    return {**wanted, **({"dma_delay": delay} if delay not in (None, "") else {})}


def step_plan(step: str, variables: Variables | None = None) -> list[Test]:
    """Return the tests of a plan of one step without a measurement: purge, precondition or tune.

    variables: precondition_passes and precondition_block_size, where they are set (purge_method counts in `render`).
    """
    names = ("precondition_passes", "precondition_block_size")
    passes, block_size = ((variables or {}).get(name, argument_specs.default(name)) for name in names)
    fill = PlannedFill(integer(passes) or 0, celling.size_bytes(block_size))
    steps: dict[str, tuple[str, str, PlannedFill | None]] = {
        "purge": ("Purge", "auto", None),
        "precondition": ("Precondition", "none", fill),
        "tune": ("Tune", "none", None),
    }
    if step not in steps:
        raise PlanError([f"no step named {step!r} (known steps: {', '.join(steps)})"])
    title, purge_method, precondition = steps[step]
    return [
        Test(
            name=step,
            title=title,
            origin=f"the step {step}",
            source="",
            purge=PlannedPurge(purge_method),
            precondition=precondition,
            active_range_pct=100,
            cells=[],
            not_applicable=[],
            rounds=RoundLimits(None, None, None),
            steady_state=None,
            after_steady_rounds=0,
            latency_targets_us=[],
            last_rounds=None,
            write_cache=None,
            follows=None,
        )
    ]


def _fit_tests(
    tests: t.Sequence[Test],
    identity: Identity,
    settings: Variables,
    of_host: t.Sequence[Identity],
    plp: bool | None = None,
) -> list[tuple[PlannedTest, list[str]]]:
    """Return each test for one drive. A purge that sets the LBA size sets it for this test and those after it."""
    fitted = []
    for test, refills in zip(tests, refilling(tests)):
        purge = purge_values.spec(test.purge, settings)
        lba_size = purge_values.lba_size_after(purge, identity.sizes()[1])
        identity = dataclasses.replace(identity, logical_block_size_bytes=lba_size)
        fitted.append(_fit_test(test, arrays.identity(test, identity, of_host), settings, purge, refills, plp))
    return fitted


def _fit_test(
    test: Test,
    identity: Identity,
    settings: Variables,
    purge: PlannedPurge,
    refills: frozenset[str],
    plp: bool | None,
) -> tuple[PlannedTest, list[str]]:
    """Return a test for one drive in its rendered form, and what the drive can't do. refills: jobs.refilling; plp: what
    its entry claims of its power-loss protection.
    """
    test, same_cells = celling.with_preferred_size(test, identity)
    cells, left_out, wrong = celling.fit(test, identity)
    capacity, block = identity.sizes()
    zone_bytes = celling.zone_bytes(test, identity)
    active = test.active_range_bytes(capacity, zone_bytes or block)
    engine = settings["workload_ioengine"]
    if purge.method in ("auto", "overwrite"):
        fill = with_fill_jobs(PlannedFill(1, OVERWRITE_BLOCK_BYTES), "purge", engine)
        purge = dataclasses.replace(
            purge, passes=1, block_size_bytes=OVERWRITE_BLOCK_BYTES, job=fill.job, remainder_job=fill.remainder_job
        )
    beside = {"in_service": True} if test.in_service else {}
    sections = [
        [{**one, **beside} for one in sections_of(cell, active, capacity, refills, zone_bytes)] for cell in cells
    ]
    cells = [with_job(cell, engine, own) for cell, own in zip(cells, sections)]
    integrity, cold = _with_heat(test, test.integrity, identity, engine) if test.integrity else (None, [])
    fill_of = test.precondition
    done = test.planned(
        purge=purge,
        precondition=with_fill_jobs(fill_of, "precondition", engine, test.zoned) if fill_of else None,
        cells=[with_trial(cell, engine, active) for cell in cells],
        not_applicable=same_cells + left_out,
        integrity=integrity,
        power_cut=dataclasses.replace(test.power_cut, plp=plp) if test.power_cut else None,
    )
    return done, wrong + cold


def _with_heat(
    test: Test, integrity: PlannedIntegrity, identity: Identity, engine: str
) -> tuple[PlannedIntegrity, list[str]]:
    """Return an integrity test with the random I/O between its passes, and what the drive can't do of it."""
    if not integrity.heat_s:
        return integrity, []
    one = celling.rendered({**HEAT, "runtime_s": integrity.heat_s})
    cells, _left_out, wrong = celling.fit(dataclasses.replace(test, own_cells=True, cells=[one]), identity)
    capacity, block = identity.sizes()
    active = test.active_range_bytes(capacity, block)
    done = [with_job(cell, engine, sections_of(cell, active, capacity)) for cell in cells]
    return dataclasses.replace(integrity, heat=done[0] if done else None), wrong
