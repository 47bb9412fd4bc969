# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan as files for Windows, Solaris and Iometer, to be run there by hand: platforms.yml holds what differs. Reads
that file, changes nothing.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import replace

import yaml

from ...module_utils.measure import fio, io_pattern
from ...module_utils.records.identity import Identity
from ...module_utils.records.plan import PlannedTest
from ...module_utils.records.planned_cell import PlannedCell, SizeShare
from . import platform_readme
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


class PlatformTest(t.NamedTuple):
    """A test of a plan as it is on a platform. folder: where its files are. jobs: {file name without .fio: fio's job},
    in the order in which they run; none of Iometer. left_out: cells that can't be had there.
    """

    folder: str
    test: PlannedTest
    jobs: t.Mapping[str, str]
    left_out: t.Sequence[str]


def planned(
    tests: t.Sequence[Test], platform: str, device: str, identity: Identity, queue_depth: int
) -> list[PlatformTest]:
    """Return a plan's tests without the cells that can't be had there. Raises PlanError.

    device: as the platform calls it; no part of an .icf. identity: the sizes of the drive.
    queue_depth: the drive's own, for fills.
    """
    wanted = {} if platform == ICF else platforms()[platform]
    if wanted and not re.fullmatch(wanted["device"], device):
        raise PlanError([f"device: {device!r} is not a whole drive on {platform}; write it like {wanted['example']}"])
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
    problems = [f"test {one.name}: {why}; remove it from the plan" for one in plan.drives[0].tests for why in _why(one)]
    if problems:
        raise PlanError(problems)
    found = []
    for number, test in enumerate(plan.drives[0].tests, start=1):
        gone = [cell.id for cell in test.cells if _lacks(cell, (*NEVER, *wanted["without"]) if wanted else ICF_WITHOUT)]
        if not wanted:
            gone += [cell.id for cell in test.cells if cell.mix and cell.mix.ranges and cell.id not in gone]
        kept = replace(test, cells=[cell for cell in test.cells if cell.id not in gone])
        jobs = _fio_jobs(kept, wanted, device, identity, queue_depth) if wanted else {}
        found.append(PlatformTest(f"{number:02d}-{test.name}", kept, jobs, gone))
    return found


def _why(test: PlannedTest) -> list[str]:
    """Return why a test can't be run by hand."""
    reasons = (
        (test.filesystem, "file systems are created only on Linux"),
        (test.zoned, "fio knows zones only on Linux"),
        (test.integrity, "only the host job reads back what it wrote"),
        (test.power_cut, "only a play cuts a host's power"),
        (test.self_test, "only the host job starts self-tests"),
    )
    return [why for has, why in reasons if has][:1]


def files(tests: t.Sequence[Test], platform: str, device: str, identity: Identity, queue_depth: int) -> Files:
    """{path: text} of a plan's tests, with a README.txt. Arguments and errors as `planned`."""
    found: Files = {}
    lines = [*platform_readme.head(platform)]
    for one in planned(tests, platform, device, identity, queue_depth):
        if platform == ICF:
            made = {f"{one.test.name}.icf": icf(one.test.cells)} if one.test.cells else {}
        else:
            made = {f"{name}.fio": job for name, job in one.jobs.items()}
        found.update({f"{one.folder}/{name}": text for name, text in made.items()})
        lines += platform_readme.of_test(one.folder, one.test, list(one.jobs), one.left_out, platform)
    lines += platform_readme.back(platform)
    return {"README.txt": "\n".join(lines) + "\n", **found}


def _fio_jobs(test: PlannedTest, wanted: Mapping, device: str, identity: Identity, queue_depth: int) -> dict[str, str]:
    active = test.active_range_bytes(*identity.sizes())
    fill = test.precondition
    jobs: list[tuple[str, str]] = []
    whole = active
    if fill:
        whole = active - active % fill.block_size_bytes
        jobs += [("precondition", fill.job)] + [("precondition-remainder", fill.remainder_job)] * (whole < active)
    cells = {cell.id: cell for cell in test.cells}
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
        made[f"{number:03d}-{name}"] = substituted(fio.fill(job, values), wanted)
    return made


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
