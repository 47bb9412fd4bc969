# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cells of a test: from the source form to the rendered one, and whether a drive can do them. Pure.

Those with `block_size: preferred` are of the size that a drive says it writes best, so that nothing has to be read and
written again around them.
"""

from __future__ import annotations

import itertools
import re
import typing as t
from dataclasses import replace

from ...module_utils.measure import io_pattern
from ...module_utils.records import base
from ...module_utils.records.base import Json
from ...module_utils.records.identity import Identity
from ...module_utils.records.plan import NotApplicable, PlannedFill, Tracked
from ...module_utils.records.planned_cell import AnyLoad, PlannedCell
from ..common import cell_names
from ..common.units import block_size, data_size
from . import io_patterns, streams
from .test_record import Test

# A drive without a preference tells its logical block, 512 B: no host writes less than a page, and no flash either.
LEAST_PREFERRED_BYTES = 4096

BLOCK_SIZE = re.compile(r"(?P<number>[1-9][0-9]*)(?P<unit>B|KiB|MiB)?")
UNIT_BYTES = {"MiB": 1 << 20, "KiB": 1 << 10, "B": 1}
# The outermost loop of a round comes first.
MATRIX_AXES = ("access", "threads", "queue_depth", "read_pct", "block_size")
# What all cells of a matrix share.
CELL_KEYS = (
    "runtime_s",
    "rate_iops",
    "batch",
    "ramp_s",
    "ioengine",
    "range",
    *io_patterns.SHARED_KEYS,
    *streams.SYNC_KEYS,
)
SELECTING_KEYS = ("access", "block_size_bytes", "read_pct", "threads", "queue_depth")
# fs.aio-max-nr is 65,536 by default: more I/Os than that can't be in flight, and no drive has more than 65,535 a queue.
MAX_OUTSTANDING = 65_536


def preferred_size_bytes(identity: Identity) -> int:
    """Return the preferred write size of a drive: what the kernel has in minimum_io_size (NVMe's NPWG), at
    least 4 KiB.
    """
    told = identity.minimum_io_size_bytes or identity.sizes()[1]
    return max(LEAST_PREFERRED_BYTES, told)


def with_preferred_size(test: Test, identity: Identity) -> tuple[Test, list[NotApplicable]]:
    """Return a test with the size of this drive in its cells and in what it tracks, and the cells that became another
    of the test's.

    A cell that was resolved keeps in `preferred` the name that it has in the test of every drive.
    """
    size = preferred_size_bytes(identity)
    fixed = {cell.id for cell in test.cells if not cell.preferred}
    found, left_out = [], []
    for cell in test.cells:
        name = cell_names.on_drive(cell.id, size)
        if not cell.preferred:
            found.append(cell)
        elif name in fixed:
            reason = f"the drive prefers writes of {block_size(size)}, which is cell {name}"
            left_out.append(NotApplicable(cell.id, reason))
        else:
            found.append(replace(cell, id=name, block_size_bytes=size))
    steady = test.steady_state
    if steady:
        tracked = [replace(item, cell=cell_names.on_drive(item.cell, size)) for item in steady.tracked]
        steady = replace(steady, tracked=tracked)
    return replace(test, cells=found, steady_state=steady), left_out


def size_bytes(text: str | int) -> int:
    """Bytes of a block size: 512B, 4KiB, 1MiB, or a number. Raises ValueError."""
    match = BLOCK_SIZE.fullmatch(str(text))
    if match is None:
        raise ValueError(f"{text!r} is not a block size: write 512B, 4KiB, 1MiB, or a number of bytes")
    return int(match["number"]) * UNIT_BYTES[match["unit"] or "B"]


def is_size(text: str) -> bool:
    """Return whether this is a block size."""
    return BLOCK_SIZE.fullmatch(text) is not None


def cell_id(cell: PlannedCell) -> str:
    """Return the cell's name in records and file names: rand-4k-w100-tc4-qd32 (io_patterns.name_part); a mix by its
    share of
    reads: r65. Before the drive is known, rand-preferred-… for its preferred write size.

    Then, where the cell has them: 1000iops, batch16, ramp5s, sync, o_dsync, fdatasync1, what io_patterns.id_parts
    tells, lead. Several streams have their name: jobs-web-3f2a.
    """
    parts = [
        cell.access[:4].replace("sequ", "seq"),
        cell_names.PREFERRED if cell.preferred else cell_names.size(cell.block_size_bytes),
        "w100" if cell.read_pct == 0 else f"r{cell.read_pct}",
        io_patterns.name_part(cell),
    ]
    parts = streams.id_parts(cell) if cell.jobs else parts
    ramp_s = 0 if cell.burst_s else cell.ramp_s
    given = (
        (f"{cell.rate_iops}iops", cell.rate_iops),
        (f"batch{cell.batch}", cell.batch),
        (f"ramp{ramp_s}s", ramp_s),
    )
    parts += [text for text, value in given if value]
    parts += [cell.ioengine] if cell.ioengine else []
    parts += [f"o_{cell.sync}"] if cell.sync else []
    parts += [f"fdatasync{cell.fdatasync}"] if cell.fdatasync else []
    return "-".join([*parts, *io_patterns.id_parts(cell), *(["lead"] if cell.lead else [])])


def expand(test: Json) -> list[PlannedCell]:
    """Return the cells of a test file that fits the schema and has its defaults: first the one that leads every
    round.
    """
    lead = [rendered({**test["lead"], "lead": True})] if test.get("lead") else []
    return [*lead, *(rendered(source) for source in sources(test))]


def sources(test: Json) -> list[Json]:
    """Return the cells as a test file would list them: the matrix in its nesting, then the single ones."""
    found: list[Json] = []
    matrix = test.get("matrix")
    if matrix:
        axes = [matrix[axis] if isinstance(matrix[axis], list) else [matrix[axis]] for axis in MATRIX_AXES]
        rest = {key: matrix[key] for key in CELL_KEYS if key in matrix}
        found += [{**dict(zip(MATRIX_AXES, point)), **rest} for point in itertools.product(*axes)]
    return [*found, *test["cells"]]


def rendered(source: Json) -> PlannedCell:
    """Return a cell of a test file as plans have it, but for its job, which takes the drive. One of the drive's
    preferred size is of that of a drive without a preference until with_preferred_size.
    """
    if source.get("jobs"):
        cell = streams.rendered(source, size_bytes)
        return replace(cell, id=cell_id(cell))
    preferred = cell_names.PREFERRED if source["block_size"] == cell_names.PREFERRED else None
    size = LEAST_PREFERRED_BYTES if preferred else size_bytes(source["block_size"])
    given = {**io_patterns.rendered(source, size_bytes), "id": "", "block_size_bytes": size, "preferred": preferred}
    cell = base.parse(PlannedCell, given)
    name = cell_id(cell)
    return replace(cell, id=name, preferred=name if preferred else None)


def short_names(cells: t.Sequence[PlannedCell]) -> list[str]:
    """Return the cells' ids without the threads, depth and so on at their end, where they differ without."""
    short = ["-".join(cell.id.split("-")[:3]) for cell in cells]
    return short if len(set(short)) == len(short) else [cell.id for cell in cells]


def static_problems(cells: t.Sequence[PlannedCell]) -> list[str]:
    """Cells that no drive can do, and cells that are named twice; as "cell <id>: message"."""
    found = [f"cell {cell.id}: {problem}" for cell in cells for problem in _cell_problems(cell)]
    names = [cell.id for cell in cells]
    found += [
        f"cell {name}: is in the test twice" for name in sorted({name for name in names if names.count(name) > 1})
    ]
    return found


def _cell_problems(cell: PlannedCell) -> list[str]:
    found = streams.problems(cell) + streams.range_problems(cell)
    if cell.block_size_bytes % 512:
        size = block_size(cell.block_size_bytes)
        found.append(f"block_size {size} is not a multiple of 512 B, the smallest logical block")
    outstanding = cell.threads * cell.queue_depth
    if outstanding > MAX_OUTSTANDING:
        most = f"at most {MAX_OUTSTANDING} are possible"
        found.append(f"threads x queue_depth = {outstanding} I/Os outstanding; {most}")
    if (cell.batch or 0) > cell.queue_depth:
        found.append(f"batch {cell.batch} is more than its queue_depth of {cell.queue_depth}")
    if (cell.ramp_s or 0) >= cell.runtime_s:
        # fio then gives figures of a moment.
        found.append(f"ramp_s {cell.ramp_s} must be shorter than its runtime_s of {cell.runtime_s}")
    if cell.ioengine == "sync" and cell.queue_depth > 1:
        depth = f"not a queue_depth of {cell.queue_depth}; use more threads"
        found.append(f"ioengine sync has one I/O in flight per thread, {depth}")
    if cell.rate_iops and cell.rate_iops < rate_shares(cell):
        found.append(f"rate_iops {cell.rate_iops} leaves less than 1 IOPS for each thread and direction")
    return found + io_patterns.problems(cell)


def rate_shares(cell: PlannedCell) -> int:
    """Return the smallest rate_iops that gives every thread 1 IOPS in each of the cell's directions."""
    smaller = min(share for share in (cell.read_pct, 100 - cell.read_pct) if share)
    return -(-cell.threads * 100 // smaller)


def track(tracked: t.Sequence[Json], cells: t.Sequence[PlannedCell]) -> tuple[list[Tracked], list[str]]:
    """Return the tracked cells of a test file by their names, and problems. A cell is found by what it is, not by its
    position.
    """
    found, wrong = [], []
    for index, item in enumerate(tracked):
        where = f"steady_state.tracked[{index}]"
        wanted = _tracked_values(item)
        matches = [cell for cell in cells if not cell.lead and all(_value(cell, key) == wanted[key] for key in wanted)]
        described = ", ".join(f"{key} {item[key]}" for key in item if key != "metric") or "no key but the metric"
        if not matches:
            wrong.append(f"{where}: the test has no cell with {described}")
        elif len({cell.id for cell in matches}) > 1:
            apart = [
                key.replace("_bytes", "")
                for key in SELECTING_KEYS
                if len({(_value(cell, key), key == "block_size_bytes" and _is_preferred(cell)) for cell in matches}) > 1
            ]
            wrong.append(
                f"{where}: {len(matches)} cells have {described}; name {' and '.join(apart) or 'another cell'} too"
            )
        else:
            found.append(Tracked(matches[0].id, item["metric"]))
            wrong += [f"{where}.metric: {problem}" for problem in _direction_problem(item["metric"], matches[0])]
    return found, wrong


def _tracked_values(item: Json) -> Json:
    """Return what the keys of a tracked cell in a test file select, in those of a plan (_value)."""
    wanted = {key: value for key, value in item.items() if key not in ("metric", "block_size")}
    if item.get("block_size") == cell_names.PREFERRED:
        wanted["preferred"] = True
    elif "block_size" in item:
        wanted.update(preferred=False, block_size_bytes=size_bytes(item["block_size"]))
    if "threads" in item:
        auto = item["threads"] == io_patterns.AUTO
        wanted.update({"threads": 1, "auto_threads": True} if auto else {"auto_threads": False})
    return wanted


def _value(cell: PlannedCell, key: str) -> t.Any:
    return _is_preferred(cell) if key == "preferred" else getattr(cell, key)


def _is_preferred(cell: PlannedCell) -> bool:
    return cell.preferred is not None


def _direction_problem(metric: str, cell: PlannedCell) -> list[str]:
    direction = metric.split("_", 1)[0]
    absent = direction in ("read", "write") and direction not in io_pattern.sides(cell)
    return [f"{metric}: cell {cell.id} has no {direction}s"] if absent else []


def zone_bytes(test: Test, identity: Identity) -> int | None:
    """Return the size of the drive's zones for a test that goes by them, its logical block for a drive without any (the
    plan is not for it); None for any other test.
    """
    own = identity.zone_bytes or identity.sizes()[1]
    return own if test.zoned else None


def fill_passes(passes: int, active_range_pct: int) -> int:
    """Return how often the ActiveRange is written in whole, for at least so many times the *user* capacity: of 2 x, 3
    times a range of 75 %, 4 times one of 50 %.
    """
    return -(-passes * 100 // active_range_pct)


def fit(test: Test, identity: Identity) -> tuple[list[PlannedCell], list[NotApplicable], list[str]]:
    """Return what of a test a drive can do: its cells, those left out, problems.

    A cell that the logical block size forbids, or that trims where the drive takes no discard, is not applicable in a
    shipped test (the PTS matrix holds 512 B), and an error in a test whose cells the site chose, and where it is
    tracked.
    """
    capacity, block = identity.sizes()
    active = test.active_range_bytes(capacity, zone_bytes(test, identity) or block)
    tracked = {item.cell for item in test.steady_state.tracked} if test.steady_state else set()
    cells, left_out = [], []
    wrong: dict[str, list[str]] = {}
    for cell in test.cells:
        # Of a mix of a cell's own, sizes may be left out; a stream has to have all of its.
        sizes = [one for job in cell.jobs or () for one in streams.sizes(job)] or [cell.block_size_bytes]
        reason = next(filter(None, (_block_problem(one, block) for one in sizes)), "")
        reason = reason or streams.trim_problem(cell, identity) or _zones_problem(test, cell, identity)
        fitted, sizes_left_out = io_patterns.fitted(cell, block)
        cramped = _room_problem(cell, active)
        if cramped:
            wrong.setdefault(cramped, []).append(cell.id)
        elif not reason and (not sizes_left_out or (fitted is not cell and not test.own_cells)):
            cells.append(fitted)
            left_out += [NotApplicable(cell.id, sizes_left_out)] if sizes_left_out else []
        elif sizes_left_out and not reason:
            message = f"{sizes_left_out.partition(': left out')[0]}; take them out of the mix"
            wrong.setdefault(message, []).append(cell.id)
        elif test.own_cells:
            wrong.setdefault(f"{reason}; take it out of the test", []).append(cell.id)
        elif cell.id in tracked:
            message = f"{reason}, and it is tracked for steady state; use a test of your own that tracks another cell"
            wrong.setdefault(message, []).append(cell.id)
        else:
            left_out.append(NotApplicable(cell.id, reason))
    problems = [f"cell {', '.join(ids)}: {message}" for message, ids in wrong.items()]
    problems += _fill_problems(test.precondition, block, active)
    if test.cells and not cells and not problems:
        reasons = sorted({item.reason for item in left_out})
        problems.append(f"none of the test's cells can run on this drive{': ' * bool(reasons)}{'; '.join(reasons)}")
    return cells, left_out, problems


def _zones_problem(test: Test, cell: PlannedCell, identity: Identity) -> str:
    """Return why the drive can't have open what a cell writes at a time; "" where it can. 0: it knows no limit."""
    limits = (identity.max_open_zones, identity.max_active_zones)
    most = min((limit for limit in limits if limit), default=0)
    if not test.zoned or cell.read_pct == 100 or not most or cell.threads <= most:
        return ""
    return f"it writes to {cell.threads} zones at a time, and the drive can have {most} open"


def _room_problem(cell: PlannedCell, active: int) -> str:
    """Return why a cell has no room in the ActiveRange of so many bytes; "" where it has."""
    placed: t.Sequence[AnyLoad] = cell.jobs or ([cell] if cell.range else [])
    if any(streams.share_bytes(one, active) < one.block_size_bytes for one in placed):
        return f"{'a stream' if cell.jobs else 'it'} has no room in its part of the ActiveRange of {data_size(active)}"
    if cell.block_size_bytes * cell.threads > active and not cell.jobs:
        size = block_size(cell.block_size_bytes)
        return f"{cell.threads} x {size} do not fit into the ActiveRange of {data_size(active)}"
    return ""


def _block_problem(size: int, logical: int) -> str:
    wrong = "below" if size < logical else "not a multiple of" if size % logical else ""
    least = f"the drive's logical block size of {block_size(logical)}"
    return f"block size {block_size(size)} is {wrong} {least}" if wrong else ""


def _fill_problems(precondition: PlannedFill | None, logical: int, active: int) -> list[str]:
    if not precondition:
        return []
    size = precondition.block_size_bytes
    problem = _block_problem(size, logical) or (
        f"{block_size(size)} is more than the ActiveRange of {data_size(active)}" if size > active else ""
    )
    return [f"precondition.block_size: {problem}"] if problem else []
