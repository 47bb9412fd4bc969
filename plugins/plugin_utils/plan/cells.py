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

from ...module_utils.measure import io_pattern
from ...module_utils.records import base
from ...module_utils.records import plan as planning
from ...module_utils.records.planned_cell import PlannedCell
from ..common import cell_names
from ..common.units import block_size, data_size
from . import io_patterns, streams

# A drive without a preference tells its logical block, 512 B: no host writes less than a page, and no flash either.
LEAST_PREFERRED_BYTES = 4096
Mapping = t.Mapping[str, t.Any]

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
Cell = dict[str, t.Any]
Test = dict[str, t.Any]


def preferred_size_bytes(identity: Mapping) -> int:
    """Return the preferred write size of a drive: what the kernel has in minimum_io_size (NVMe's NPWG), at
    least 4 KiB.
    """
    told: int = identity.get("minimum_io_size_bytes") or identity["logical_block_size_bytes"]
    return max(LEAST_PREFERRED_BYTES, told)


def with_preferred_size(test: Mapping, identity: Mapping) -> tuple[dict[str, t.Any], list[dict[str, str]]]:
    """Return a test with the size of this drive in its cells and in what it tracks, and the cells that became another
    of the test's: [{id, reason}].

    A cell that was resolved keeps in `preferred` the name that it has in the test of every drive.
    """
    size = preferred_size_bytes(identity)
    fixed = {cell["id"] for cell in test["cells"] if not cell.get("preferred")}
    found, left_out = [], []
    for cell in test["cells"]:
        name = cell_names.on_drive(cell["id"], size)
        if not cell.get("preferred"):
            found.append(cell)
        elif name in fixed:
            left_out.append(
                {
                    "id": cell["id"],
                    "reason": f"the drive prefers writes of {block_size(size)}, which is cell {name}",
                }
            )
        else:
            found.append({**cell, "id": name, "block_size_bytes": size, "preferred": cell["id"]})
    steady = test["steady_state"]
    if steady:
        tracked = [{**item, "cell": cell_names.on_drive(item["cell"], size)} for item in steady.get("tracked", [])]
        steady = {**steady, "tracked": tracked}
    return {**test, "cells": found, "steady_state": steady}, left_out


def size_bytes(text: str | int) -> int:
    """Bytes of a block size: 512B, 4KiB, 1MiB, or a number. Raises ValueError."""
    match = BLOCK_SIZE.fullmatch(str(text))
    if match is None:
        raise ValueError(f"{text!r} is not a block size: write 512B, 4KiB, 1MiB, or a number of bytes")
    return int(match["number"]) * UNIT_BYTES[match["unit"] or "B"]


def is_size(text: str) -> bool:
    """Return whether this is a block size."""
    return BLOCK_SIZE.fullmatch(text) is not None


def cell_id(cell: t.Mapping[str, t.Any]) -> str:
    """Return the cell's name in records and file names: rand-4k-w100-tc4-qd32 (io_patterns.name_part); a mix by its
    share of
    reads: r65. Before the drive is known, rand-preferred-… for its preferred write size.

    Then, where the cell has them: 1000iops, batch16, ramp5s, sync, o_dsync, fdatasync1, what io_patterns.id_parts
    tells, lead. Several streams have their name: jobs-web-3f2a.
    """
    parts = [
        cell["access"][:4].replace("sequ", "seq"),
        cell_names.PREFERRED if cell.get("preferred") else cell_names.size(cell["block_size_bytes"]),
        "w100" if cell["read_pct"] == 0 else f"r{cell['read_pct']}",
        io_patterns.name_part(cell),
    ]
    parts = streams.id_parts(cell) if cell.get("jobs") else parts
    ramp_s = 0 if cell.get("burst_s") else cell.get("ramp_s")
    given = (
        (f"{cell.get('rate_iops')}iops", cell.get("rate_iops")),
        (f"batch{cell.get('batch')}", cell.get("batch")),
        (f"ramp{ramp_s}s", ramp_s),
    )
    parts += [text for text, value in given if value]
    parts += [cell["ioengine"]] if cell.get("ioengine") else []
    parts += [f"o_{cell['sync']}"] if cell.get("sync") else []
    parts += [f"fdatasync{cell['fdatasync']}"] if cell.get("fdatasync") else []
    return "-".join([*parts, *io_patterns.id_parts(cell), *(["lead"] if cell.get("lead") else [])])


def expand(test: t.Mapping[str, t.Any]) -> list[Cell]:
    """Return the cells of a test that fits the schema and has its defaults, as the plan has them: first the one that
    leads every round.
    """
    lead = [rendered({**test["lead"], "lead": True})] if test.get("lead") else []
    return [*lead, *(rendered(source) for source in sources(test))]


def sources(test: t.Mapping[str, t.Any]) -> list[Cell]:
    """Return the cells as a test file would list them: the matrix in its nesting, then the single ones."""
    found: list[Cell] = []
    matrix = test.get("matrix")
    if matrix:
        axes = [matrix[axis] if isinstance(matrix[axis], list) else [matrix[axis]] for axis in MATRIX_AXES]
        rest = {key: matrix[key] for key in CELL_KEYS if key in matrix}
        found += [{**dict(zip(MATRIX_AXES, point)), **rest} for point in itertools.product(*axes)]
    return [*found, *test["cells"]]


def rendered(source: t.Mapping[str, t.Any]) -> Cell:
    """Return a cell of a test file as the plan has it: with its id, and the block size in bytes."""
    if source.get("jobs"):
        cell = streams.rendered(source, size_bytes)
        return {"id": cell_id(cell), **cell}
    cell = {key: value for key, value in source.items() if key != "block_size"}
    if source["block_size"] == cell_names.PREFERRED:
        # The size of a drive that has no preference, until cells.with_preferred_size says that of the drive.
        cell.update(preferred=True, block_size_bytes=LEAST_PREFERRED_BYTES)
    else:
        cell["block_size_bytes"] = size_bytes(source["block_size"])
    cell = io_patterns.rendered(cell, size_bytes)
    return {"id": cell_id(cell), **cell}


def planned(cell: Cell) -> PlannedCell:
    """Return a cell as the plan has it, but for its job, which takes the drive."""
    return base.parse(PlannedCell, {**cell, "job": "", "preferred": None})


def short_names(cells: t.Sequence[Cell]) -> list[str]:
    """Return the cells' ids without the threads, depth and so on at their end, where they differ without."""
    short = ["-".join(cell["id"].split("-")[:3]) for cell in cells]
    return short if len(set(short)) == len(short) else [cell["id"] for cell in cells]


def static_problems(cells: t.Sequence[Cell]) -> list[str]:
    """Cells that no drive can do, and cells that are named twice; as "cell <id>: message"."""
    found = []
    for cell in cells:
        found += [f"cell {cell['id']}: {problem}" for problem in streams.problems(cell) + streams.range_problems(cell)]
        if cell["block_size_bytes"] % 512:
            found.append(
                f"cell {cell['id']}: block_size {block_size(cell['block_size_bytes'])} is not a multiple of 512 B, the "
                "smallest logical block"
            )
        if cell["threads"] * cell["queue_depth"] > MAX_OUTSTANDING:
            outstanding = cell["threads"] * cell["queue_depth"]
            found.append(
                f"cell {cell['id']}: threads x queue_depth = {outstanding} I/Os outstanding; at most "
                f"{MAX_OUTSTANDING} are possible"
            )
        if cell.get("batch", 0) > cell["queue_depth"]:
            found.append(
                f"cell {cell['id']}: batch {cell['batch']} is more than its queue_depth of {cell['queue_depth']}"
            )
        if cell.get("ramp_s", 0) >= cell["runtime_s"]:
            # fio then gives figures of a moment.
            found.append(
                f"cell {cell['id']}: ramp_s {cell['ramp_s']} must be shorter than its runtime_s of {cell['runtime_s']}"
            )
        if cell.get("ioengine") == "sync" and cell["queue_depth"] > 1:
            found.append(
                f"cell {cell['id']}: ioengine sync has one I/O in flight per thread, not a queue_depth of "
                f"{cell['queue_depth']}; use more threads"
            )
        if cell.get("rate_iops") and cell["rate_iops"] < rate_shares(cell):
            found.append(
                f"cell {cell['id']}: rate_iops {cell['rate_iops']} leaves less than 1 IOPS for each thread and "
                "direction"
            )
        found += [f"cell {cell['id']}: {problem}" for problem in io_patterns.problems(cell)]
    names = [cell["id"] for cell in cells]
    found += [
        f"cell {name}: is in the test twice" for name in sorted({name for name in names if names.count(name) > 1})
    ]
    return found


def rate_shares(cell: t.Mapping[str, t.Any]) -> int:
    """Return the smallest rate_iops that gives every thread 1 IOPS in each of the cell's directions."""
    smaller: int = min(share for share in (cell["read_pct"], 100 - cell["read_pct"]) if share)
    threads: int = cell["threads"]
    return -(-threads * 100 // smaller)


def track(
    tracked: t.Sequence[t.Mapping[str, t.Any]], cells: t.Sequence[Cell]
) -> tuple[list[dict[str, str]], list[str]]:
    """Return the tracked cells by their names: ([{cell, metric}], problems). A cell is found by what it is, not by its
    position.
    """
    found, wrong = [], []
    for index, item in enumerate(tracked):
        where = f"steady_state.tracked[{index}]"
        wanted = {key: value for key, value in item.items() if key not in ("metric", "block_size")}
        if "block_size" in item:
            own = item["block_size"] == cell_names.PREFERRED
            wanted.update(
                {"preferred": True} if own else {"preferred": None, "block_size_bytes": size_bytes(item["block_size"])}
            )
        if "threads" in item:
            auto = item["threads"] == io_patterns.AUTO
            wanted.update({"threads": 1, "auto_threads": True} if auto else {"auto_threads": None})
        matches = [
            cell
            for cell in cells
            if not cell.get("lead") and all(cell.get(key) == value for key, value in wanted.items())
        ]
        described = ", ".join(f"{key} {item[key]}" for key in item if key != "metric") or "no key but the metric"
        if not matches:
            wrong.append(f"{where}: the test has no cell with {described}")
        elif len({cell["id"] for cell in matches}) > 1:
            apart = [
                key.replace("_bytes", "")
                for key in SELECTING_KEYS
                if len({(cell[key], key == "block_size_bytes" and cell.get("preferred")) for cell in matches}) > 1
            ]
            wrong.append(
                f"{where}: {len(matches)} cells have {described}; name {' and '.join(apart) or 'another cell'} too"
            )
        else:
            found.append({"cell": matches[0]["id"], "metric": item["metric"]})
            wrong += [f"{where}.metric: {problem}" for problem in _direction_problem(item["metric"], matches[0])]
    return found, wrong


def _direction_problem(metric: str, cell: Cell) -> list[str]:
    direction = metric.split("_", 1)[0]
    absent = direction in ("read", "write") and direction not in io_pattern.sides(planned(cell))
    return [f"{metric}: cell {cell['id']} has no {direction}s"] if absent else []


def active_range_bytes(test: Mapping, identity: Mapping) -> int:
    """Return the ActiveRange of a test on a drive, in whole logical blocks."""
    size, block = identity["size_bytes"], identity["logical_block_size_bytes"]
    return planning.active_range_bytes(test["active_range_pct"], test.get("active_range_max_bytes"), size, block)


def fill_passes(passes: int, active_range_pct: int) -> int:
    """Return how often the ActiveRange is written in whole, for at least so many times the *user* capacity: of 2 x, 3
    times a range of 75 %, 4 times one of 50 %.
    """
    return -(-passes * 100 // active_range_pct)


def fit(
    test: t.Mapping[str, t.Any], identity: t.Mapping[str, t.Any]
) -> tuple[list[Cell], list[dict[str, str]], list[str]]:
    """Return what of a test a drive can do: (cells, not_applicable: [{id, reason}], problems).

    A cell that the logical block size forbids, or that trims where the drive takes no discard, is not applicable in a
    shipped test (the PTS matrix holds 512 B), and an error in a test whose cells the site chose, and where it is
    tracked.
    """
    block, active = identity["logical_block_size_bytes"], active_range_bytes(test, identity)
    tracked = {item["cell"] for item in (test["steady_state"] or {}).get("tracked", [])}
    cells, left_out = [], []
    wrong: dict[str, list[str]] = {}
    for cell in test["cells"]:
        size = cell["block_size_bytes"]
        # Of a mix of a cell's own, sizes may be left out; a stream has to have all of its.
        sizes = [one for job in cell.get("jobs") or () for one in streams.sizes(job)] or [size]
        reason = next(filter(None, (_block_problem(one, block) for one in sizes)), "")
        reason = reason or streams.trim_problem(cell, identity)
        fitted, sizes_left_out = io_patterns.fitted(cell, block)
        cramped = _room_problem(cell, active)
        if cramped:
            wrong.setdefault(cramped, []).append(cell["id"])
        elif not reason and (not sizes_left_out or (fitted is not cell and not test["own_cells"])):
            cells.append(fitted)
            left_out += [{"id": cell["id"], "reason": sizes_left_out}] if sizes_left_out else []
        elif sizes_left_out and not reason:
            wrong.setdefault(f"{sizes_left_out.partition(': left out')[0]}; take them out of the mix", []).append(
                cell["id"]
            )
        elif test["own_cells"]:
            wrong.setdefault(f"{reason}; take it out of the test", []).append(cell["id"])
        elif cell["id"] in tracked:
            message = f"{reason}, and it is tracked for steady state; use a test of your own that tracks another cell"
            wrong.setdefault(message, []).append(cell["id"])
        else:
            left_out.append({"id": cell["id"], "reason": reason})
    problems = [f"cell {', '.join(ids)}: {message}" for message, ids in wrong.items()] + _fill_problems(
        test["precondition"], block, active
    )
    if test["cells"] and not cells and not problems:
        reasons = sorted({item["reason"] for item in left_out})
        problems.append(f"none of the test's cells can run on this drive{': ' * bool(reasons)}{'; '.join(reasons)}")
    return cells, left_out, problems


def _room_problem(cell: Cell, active: int) -> str:
    """Return why a cell has no room in the ActiveRange of so many bytes; "" where it has."""
    size, jobs = cell["block_size_bytes"], cell.get("jobs")
    placed = jobs or ([cell] if cell.get("range") else [])
    if any(streams.share_bytes(one, active) < one["block_size_bytes"] for one in placed):
        return f"{'a stream' if jobs else 'it'} has no room in its part of the ActiveRange of {data_size(active)}"
    if size * cell["threads"] > active and not jobs:
        return f"{cell['threads']} x {block_size(size)} do not fit into the ActiveRange of {data_size(active)}"
    return ""


def _block_problem(size: int, logical: int) -> str:
    wrong = "below" if size < logical else "not a multiple of" if size % logical else ""
    least = f"the drive's logical block size of {block_size(logical)}"
    return f"block size {block_size(size)} is {wrong} {least}" if wrong else ""


def _fill_problems(precondition: t.Mapping[str, t.Any] | None, logical: int, active: int) -> list[str]:
    if not precondition:
        return []
    size = precondition["block_size_bytes"]
    problem = _block_problem(size, logical) or (
        f"{block_size(size)} is more than the ActiveRange of {data_size(active)}" if size > active else ""
    )
    return [f"precondition.block_size: {problem}"] if problem else []
