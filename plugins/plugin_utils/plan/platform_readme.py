# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The README.txt of a plan for another platform: what no job file says, the commands to run, and how the results come
back (plugin_utils/ingest). Pure.
"""

from __future__ import annotations

import typing as t

from ...module_utils.records.plan import PlannedTest
from ..common.units import block_size, data_size

ICF = "iometer"
# What the results of a test go to, in its folder.
RESULTS = "results"
# Of a job file without .fio, in round N. json+ has the latencies of every I/O, which percentiles are made of.
_FIO = "fio --output-format=json+ --output={results}{name}.{number}.json {name}.fio"
# The loop of rounds: cmd.exe at its prompt, and sh.
_WINDOWS = "for /L %r in (1,1,{rounds}) do for %f in ({names}) do " + _FIO.format(
    results=f"{RESULTS}\\", name="%f", number="%r"
)
_SH = "r=1; while [ $r -le {rounds} ]; do for f in {names}; do {fio}; done; r=$((r+1)); done"


def head(platform: str) -> list[str]:
    """Return the first lines."""
    order = "" if platform == ICF else " Run the commands of each test in its folder, in this order."
    return [
        f"Rendered by ssdlab.fleet for {platform}. Nothing was run there: review every file before you run it.",
        f"Everything on the drive is lost.{order}",
    ]


def of_test(
    folder: str, test: PlannedTest, jobs: t.Sequence[str], left_out: t.Sequence[str], platform: str
) -> list[str]:
    """Return the lines of a test. jobs: its job files without .fio, in order."""
    lines = _order(test, platform)
    lines += _iometer(test) if platform == ICF else _commands(test, jobs, platform)
    tool = "Iometer does" if platform == ICF else "fio does"
    where = "them" if platform == ICF else "it there"
    lines += [f"Left out, as {tool} not support {where}: {', '.join(left_out)}."] if left_out else []
    return ["", f"{folder}: {test.title}", *(f"  {line}" for line in lines)]


def back(platform: str) -> list[str]:
    """Return the lines on how the results come back to the controller."""
    what = "each test's results.csv in its folder" if platform == ICF else f"the folders {RESULTS}"
    return [
        "",
        "Back to a verdict",
        f"  Copy this folder, with {what}, to the controller. State there which drive it was, in drive.yml:",
        '    ingest_drive: {serial: "…", model: "…", firmware: "…", size_bytes: as rendered}',
        "    ingest_host: the name of this machine",
        "    ingest_system: its operating system",
        "  and, with the ssd_plan that this folder was rendered with, run",
        f"    ansible-playbook ssdlab.fleet.ingest -e @drive.yml -e ssd_plan=… -e ingest_platform={platform}"
        ' -e ssd_run_id=… -e \'{"ingest_files": ["this folder"]}\'',
        "  It judges by ssd_criteria, and marks the run as measured elsewhere. The page docs/ingest.md has more.",
    ]


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


def _commands(test: PlannedTest, jobs: t.Sequence[str], platform: str) -> list[str]:
    """Return the commands for a test's folder. A file's name may be any; its time says which round it is of."""
    cells = {cell.id for cell in test.cells}
    fills = [name for name in jobs if name[4:] not in cells]
    rounds = [name for name in jobs if name[4:] in cells]
    limits = test.rounds
    # Who measures by a capacity or a time says himself when it is enough.
    most = str(limits.max or 1) if not (limits.capacity_multiple or limits.time_limit_s) else "ROUNDS"
    is_windows = platform == "windows"
    results = f"{RESULTS}\\" if is_windows else f"{RESULTS}/"
    lines = [f"mkdir {RESULTS}", *(_FIO.format(results=results, name=name, number="fill") for name in fills)]
    if rounds and is_windows:
        lines.append(_WINDOWS.format(rounds=most, names=" ".join(rounds)))
    elif rounds:
        command = _FIO.format(results=results, name="$f", number="$r")
        lines.append(_SH.format(rounds=most, names=" ".join(rounds), fio=command))
    return [f"  {line}" for line in lines]


def _iometer(test: PlannedTest) -> list[str]:
    return [
        f"{cell.id}: {cell.threads} workers, {cell.queue_depth} outstanding I/Os each, {cell.runtime_s} s"
        + (f" after a ramp of {cell.ramp_s} s." if cell.ramp_s else ".")
        for cell in test.cells
    ]
