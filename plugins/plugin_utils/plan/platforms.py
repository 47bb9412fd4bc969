# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan as files for Windows, Solaris and Iometer, to be run there by hand: platforms.yml holds what differs. Reads
that file, changes nothing.
"""

from __future__ import annotations

import re
import typing as t

import yaml

from ...module_utils.measure import fio, io_pattern
from ...module_utils.records.identity import Identity
from ...module_utils.records.plan import PlannedTest
from ...module_utils.records.planned_cell import PlannedCell, SizeShare
from ..common.units import block_size, data_size
from . import render_plan as planning
from .test_record import Test
from .testfiles import SHIPPED_DIR, PlanError
from .write_rates import DriveToPlan

ICF = "iometer"
# TN-FD-15 recommends this release; later ones load its files.
ICF_VERSION = "Version 2006.07.27 "
# What Iometer has no word for, or keeps elsewhere than in an access specification.
ICF_WITHOUT = ("jobs", "point", "rate_iops", "batch", "burst_s", "sync", "fdatasync", "range")
NEVER = ("point",)
RULER = "=" * 57
Mapping = t.Mapping[str, t.Any]
Files = dict[str, str]


def platforms() -> dict[str, t.Any]:
    """platforms.yml."""
    found: dict[str, t.Any] = yaml.safe_load((SHIPPED_DIR / "platforms.yml").read_text(encoding="utf-8"))
    return found


def files(tests: t.Sequence[Test], platform: str, device: str, identity: Identity, queue_depth: int) -> Files:
    """{path: text} of a plan's tests, with a README.txt. Raises PlanError.

    device: as the platform calls it; no part of an .icf. identity: the sizes of the drive.
    queue_depth: the drive's own, for fills.
    """
    if platform != ICF:
        wanted = platforms()[platform]
        if not re.fullmatch(wanted["device"], device):
            raise PlanError(
                [f"device: {device!r} is not a whole drive on {platform}; write it like {wanted['example']}"]
            )
    drive = DriveToPlan({"serial": "elsewhere"}, "elsewhere", None, identity, eligible=True, refusals=[])
    plan = planning.render(
        tests,
        run={"id": "elsewhere", "name": "elsewhere"},
        host="elsewhere",
        boot_id="",
        drives=[drive],
        engine_version="",
        variables={"workload_ioengine": "libaio"},
    )
    found: Files = {}
    lines = [
        f"Rendered by ssdlab.fleet for {platform}. Nothing was run there: review every file before you run it.",
        "Everything on the drive is lost. Run the files in the order of their names.",
    ]
    laid = [test.name for test in plan.drives[0].tests if test.filesystem]
    if laid:
        raise PlanError([f"test {laid[0]}: file systems are created only on Linux; remove it from the plan"])
    by_zone = [test.name for test in plan.drives[0].tests if test.zoned]
    if by_zone:
        raise PlanError([f"test {by_zone[0]}: fio knows zones only on Linux; remove it from the plan"])
    read_back = [test.name for test in plan.drives[0].tests if test.integrity]
    if read_back:
        raise PlanError([f"test {read_back[0]}: only the host job reads back what it wrote; remove it from the plan"])
    cut = [test.name for test in plan.drives[0].tests if test.power_cut]
    if cut:
        raise PlanError([f"test {cut[0]}: only a play cuts a host's power; remove it from the plan"])
    tested = [test.name for test in plan.drives[0].tests if test.self_test]
    if tested:
        raise PlanError([f"test {tested[0]}: only the host job starts self-tests; remove it from the plan"])
    for number, test in enumerate(plan.drives[0].tests, start=1):
        folder = f"{number:02d}-{test.name}"
        made, told = (
            _icf_test(test)
            if platform == ICF
            else _fio_test(test, platforms()[platform], device, identity, queue_depth)
        )
        found.update({f"{folder}/{name}": text for name, text in made.items()})
        lines += ["", f"{folder}: {test.title}", *(f"  {line}" for line in [*_order(test, platform), *told])]
    return {"README.txt": "\n".join(lines) + "\n", **found}


def _order(test: PlannedTest, platform: str) -> list[str]:
    """Return what no file says: what comes before, and how often."""
    rounds, fill = test.rounds, test.precondition
    sectors = test.purge.iomemory_sector_bytes
    purge = "Purge the drive with its vendor's tool" + (f", to sectors of {block_size(sectors)}." if sectors else ".")
    before = [] if test.purge.method == "none" else [purge]
    if fill and platform == ICF:
        size = fill.block_size_bytes
        most = f", at most {data_size(test.active_range_max_bytes)}," if test.active_range_max_bytes else ""
        before.append(
            f"Fill {test.active_range_pct} % of it{most} {fill.passes} times: sequential writes of {block_size(size)}."
        )
    limits = [
        f"{rounds.max} times" if (rounds.max or 0) > 1 else "",
        f"until {rounds.capacity_multiple:g} x the capacity is written" if rounds.capacity_multiple else "",
        f"for {rounds.time_limit_s:g} s" if rounds.time_limit_s else "",
    ]
    said = ", or ".join(filter(None, limits))
    again = f"Repeat its cells in turn, at most {said}." if said else "Run its cells once."
    steady = test.steady_state
    if steady:
        tracked = ", ".join(f"{item.metric} of {item.cell}" for item in steady.tracked)
        again += f" The module steady_state decides when it is steady, by {tracked}."
    return [*before, again]


def _fio_test(
    test: PlannedTest, wanted: Mapping, device: str, identity: Identity, queue_depth: int
) -> tuple[Files, list[str]]:
    active = test.active_range_bytes(*identity.sizes())
    fill = test.precondition
    jobs: list[tuple[str, str]] = []
    whole = active
    if fill:
        whole = active - active % fill.block_size_bytes
        jobs += [("precondition", fill.job)] + [("precondition-remainder", fill.remainder_job)] * (whole < active)
    without = (*NEVER, *wanted["without"])
    told = _left_out(test, without)
    cells = {cell.id: cell for cell in test.cells if not _lacks(cell, without)}
    jobs += [(name, cell.job) for name, cell in cells.items()]
    made = {}
    for number, (name, job) in enumerate(jobs, start=1):
        values = {
            "device": device,
            "seed": number,
            "size_bytes": active,
            "max_queue_depth": queue_depth,
            "remainder_offset": whole,
            "remainder_bytes": active - whole,
            "cpus_allowed": None,
            "numa_node": None,
            **_load(cells.get(name), active),
        }
        made[f"{number:03d}-{name}.fio"] = substituted(fio.fill(job, values), wanted)
    return made, told


def _load(cell: PlannedCell | None, active: int) -> dict[str, int]:
    """Return the values of a cell whose threads the host would choose: by its CPUs the most, as nobody knows them
    there; by trials one.
    """
    if cell is None or not (cell.per_cpu or cell.auto_threads):
        return {}
    share = io_pattern.share_bytes(active, cell.threads, cell.block_size_bytes)
    return {"threads": cell.threads, "queue_depth": cell.queue_depth, "share_bytes": share}


def substituted(job: str, wanted: Mapping) -> str:
    """Return a job text with a platform's substitutions."""
    lines = []
    for line in job.splitlines():
        key, _equals, value = line.partition("=")
        other = wanted["replace"].get(key, {}).get(value)
        if key not in wanted["remove"]:
            lines.append(f"{key}={other}" if other else line)
    return "\n".join(lines) + "\n"


def _icf_test(test: PlannedTest) -> tuple[Files, list[str]]:
    cells = [cell for cell in test.cells if not _lacks(cell, ICF_WITHOUT) and not (cell.mix and cell.mix.ranges)]
    told = [
        f"{cell.id}: {cell.threads} workers, {cell.queue_depth} outstanding I/Os each, {cell.runtime_s} s"
        + (f" after a ramp of {cell.ramp_s} s." if cell.ramp_s else ".")
        for cell in cells
    ]
    kept = {cell.id for cell in cells}
    gone = [cell.id for cell in test.cells if cell.id not in kept]
    told += [f"Left out, as Iometer does not support them: {', '.join(gone)}."] if gone else []
    return ({f"{test.name}.icf": icf(cells)} if cells else {}), told


def icf(cells: t.Sequence[PlannedCell]) -> str:
    """Iometer's access specifications of cells: a file with that section alone. Every I/O is aligned to 4 KiB, or to
    itself where it is smaller.
    """
    lines = [ICF_VERSION, f"'ACCESS SPECIFICATIONS {RULER}"]
    for cell in cells:
        lines += ["'Access specification name,default assignment", f"\t{cell.id},NONE"]
        lines += ["'size,% of size,% reads,% random,delay,burst,align,reply"]
        size, random = cell.block_size_bytes, 100 * (cell.access == "random")
        for part in (cell.mix and cell.mix.sizes) or [SizeShare(size, 100)]:
            align = size if cell.mix else min(size, 4096)
            values = (part.size_bytes, part.pct, cell.read_pct, random, 0, 1, align, 0)
            lines.append("\t" + ",".join(map(str, values)))
    return "\n".join([*lines, "'END access specifications", ICF_VERSION]) + "\n"


def _lacks(cell: PlannedCell, without: t.Sequence[str]) -> bool:
    return any(getattr(part, key, None) for part in (cell, *(cell.jobs or ())) for key in without)


def _left_out(test: PlannedTest, without: t.Sequence[str]) -> list[str]:
    gone = [cell.id for cell in test.cells if _lacks(cell, without)]
    return [f"Left out, as fio does not support it there: {', '.join(gone)}."] if gone else []
