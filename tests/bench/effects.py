# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What taking time from fio does to a rate and to p99, and what is decided: false alarms and misses.

    .venv/bin/python tests/bench/effects.py [--seconds 2] [--repeat 1] [--depths 1,8,32] [--only WORD] [--busy]

Cells by real fio on simulated drives that take a fixed time for each I/O, so that none makes good what its host lost:
quiet rounds first, then each cause at each strength with a quiet round after it. The drive runs on other CPUs than fio,
where there are two. Errors are against the median of the quiet rounds; one that their own spread explains is no miss.
At depth 1 a cell of less than 5 s has no p99. Run as root from the repository's root.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import sys
import tempfile
import typing as t
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [
    str(ROOT / part) for part in ("playbooks/collections", "scripts/simulator", "tests/integration", "tests/bench")
]

import busy_machine
import measuring
import simulated_ssd
import taking_time

from ansible_collections.ssdlab.fleet.plugins.module_utils.machine.cpus import Place
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import quiet_runs
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.disturbances import DISTURBS, UNKNOWN
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.judged_rounds import JudgedRounds
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.validity_limits import Limits
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.attempt import MeasuredCell
from ansible_collections.ssdlab.fleet.tests.fixtures import planned

CELL, FIO_CPU = "c", 0
# The tolerance of a rate and of a tail.
RATE_OFF, TAIL_OFF = 0.02, 0.05
QUIET_FIRST = 4
LONGEST_TOLD = 60
FAST = {"fresh_iops": 50e3, "steady_iops": 50e3, "read_iops": 50e3, "write_bandwidth": 1e9, "read_bandwidth": 1e9}
FIXED = {"size_bytes": 64 << 20, "noise_pct": 0, "catch_up_s": 0, **FAST}
DRIVES = {
    # Deeper than one, I/Os wait at it.
    "serial": {**FIXED, "read_iops": 400},
    # None waits at it, up to the ten that it has room for.
    "parallel": {**FIXED, "latency_s": 0.004},
}
CAUSES: dict[str, t.Callable[[], t.ContextManager[None]]] = {
    "busy loop": lambda: taking_time.loops(FIO_CPU),
    "busy loops, 3": lambda: taking_time.loops(FIO_CPU, 3),
    "slices of 5 %": lambda: taking_time.slices(FIO_CPU, 0.001, 0.019),
    "slices of 20 %": lambda: taking_time.slices(FIO_CPU, 0.001, 0.004),
    "stops of 5 ms, 5 %": lambda: taking_time.stopped(0.005, 0.095),
    "stops of 5 ms, 20 %": lambda: taking_time.stopped(0.005, 0.020),
    "stops of 50 ms, 5 %": lambda: taking_time.stopped(0.050, 0.950),
    "stops of 50 ms, 20 %": lambda: taking_time.stopped(0.050, 0.200),
    "quota of 20 %": lambda: taking_time.quota(0.20),
    "quota of 3 %": lambda: taking_time.quota(0.03),
}
ROW = "{0:14} {1:>5} {2:22} {3:>8} {4:>8} {5:>8}  {6:9} {7}"


class Row(t.NamedTuple):
    """One cell. cause: "" for a quiet round; p99: in µs; host_part: of its mean latency, by the kernel's count."""

    number: int
    cause: str
    iops: float
    p99: float | None
    host_part: float | None
    cell: MeasuredCell


class Verdict(t.NamedTuple):
    """What was decided of a cell, and its errors as shares; the largest ones of quiet rounds."""

    rate_off: float
    tail_off: float | None
    rate_spread: float
    tail_spread: float
    disturbs: bool
    has_percentiles: bool
    is_unknown: bool


def measured(made, depth, seconds, only, repeat, told):
    """The rows of one drive at one depth."""
    rows = [_row(made, number, "", depth, seconds) for number in range(1, QUIET_FIRST + 1)]
    for _each in range(repeat):
        for name, taking in CAUSES.items():
            if only and only not in name:
                continue
            try:
                with taking():
                    rows.append(_row(made, len(rows) + 1, name, depth, seconds))
            except taking_time.Unavailable as error:
                told(f"{name}: {error}")
                continue
            rows.append(_row(made, len(rows) + 1, "", depth, seconds))
    return rows


def _row(made, number, cause, depth, seconds):
    details = made.cell(read_pct=100, queue_depth=depth, runtime_s=seconds)
    event = {**base.sparse_json(details), "round": number, "cell": CELL, "seed": number}
    cell = base.parse(MeasuredCell, event)
    compared = quiet_runs.of_round(number, planned_cell(depth, seconds), cell.seen, cell.causes, Limits())
    host_part = None if compared.host_s is None else compared.host_s / compared.latency_s
    return Row(number, cause, details.read.iops, details.read.percentiles_us.get("99"), host_part, cell)


def planned_cell(depth, seconds):
    """The cell of a plan that all rows are rounds of."""
    return planned.cell(id=CELL, queue_depth=depth, runtime_s=seconds)


def verdicts(rows, load):
    """What a test with these rounds decides of each, in their order. load: the planned cell."""
    judged = JudgedRounds([load], {CELL}, Limits(), False)
    for row in rows:
        judged.take_cell(row.cell)
        judged.end_round(row.number, [], 0)
    quiet = [row for row in rows if not row.cause]
    iops = statistics.median(row.iops for row in quiet)
    tails = [row.p99 for row in quiet if row.p99]
    p99 = statistics.median(tails) if tails else None
    without = judged.without_percentiles().get(CELL, set())
    unknown = {
        number
        for item in judged.causes().disturbances()
        if item.level == UNKNOWN
        for first, last in item.rounds
        for number in range(first, last + 1)
    }
    rate_spread = max(abs(row.iops / iops - 1) for row in quiet)
    tail_spread = max((abs(each / p99 - 1) for each in tails), default=0.0)
    return [
        Verdict(
            row.iops / iops - 1,
            row.p99 / p99 - 1 if p99 and row.p99 else None,
            rate_spread,
            tail_spread,
            judged.is_disturbed(row.number),
            row.number not in without,
            row.number in unknown,
        )
        for row in rows
    ]


def shown(drive, depth, rows, found):
    """A line for each cell."""
    for row, verdict in zip(rows, found):
        decided = DISTURBS if verdict.disturbs else UNKNOWN if verdict.is_unknown else "counts"
        tails = "" if verdict.has_percentiles else "no percentiles"
        tails += "".join(f"; {item.message[:LONGEST_TOLD]}" for item in row.cell.causes)
        off = "" if verdict.tail_off is None else f"{verdict.tail_off:+.1%}"
        part = "" if row.host_part is None else f"{row.host_part:.2%}"
        print(ROW.format(drive, depth, row.cause or "quiet", f"{verdict.rate_off:+.1%}", off, part, decided, tails))


def counts(found):
    """(false alarms, misses) of rates, then of tails of the rounds whose rate counts."""
    alarms = sum(each.disturbs and abs(each.rate_off) <= RATE_OFF for each in found)
    misses = sum(not each.disturbs and abs(each.rate_off) > RATE_OFF + each.rate_spread for each in found)
    tails = [each for each in found if not each.disturbs and each.tail_off is not None]
    tail_alarms = sum(not each.has_percentiles and abs(each.tail_off) <= TAIL_OFF for each in tails)
    tail_misses = sum(each.has_percentiles and abs(each.tail_off) > TAIL_OFF + each.tail_spread for each in tails)
    return alarms, misses, tail_alarms, tail_misses


def grid(results, header, shown_of):
    """A table for docs: a row for each cause, a column for each drive and depth. shown_of: the text of the verdicts of
    one field.
    """
    columns = list(results)
    names = [cause for cause in CAUSES if any(cause in found for found in results.values())]
    lines = [[header, *(f"{drive}, {depth}" for drive, depth in columns)], ["---"] * (len(columns) + 1)]
    lines += [[name, *(shown_of(results[column].get(name, [])) for column in columns)] for name in names]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def shown_rates(found):
    """The median error of a rate, and whether its round is disturbed."""
    if not found:
        return ""
    disturbed = sum(each.disturbs for each in found)
    how = (
        "" if not disturbed else " disturbed" if disturbed == len(found) else f" disturbed {disturbed} of {len(found)}"
    )
    return f"{statistics.median(each.rate_off for each in found):+.1%}{how}"


def shown_tails(found):
    """The median error of p99, and whether there is one."""
    off = [each.tail_off for each in found if each.tail_off is not None]
    given = sum(each.has_percentiles and not each.disturbs for each in found)
    how = "" if given == len(found) else " none" if not given else f" {given} of {len(found)}"
    return f"{statistics.median(off):+.0%}{how}" if off else ""


@contextlib.contextmanager
def apart():
    """What is started meanwhile gets the CPUs that fio does not have, and goes before all else there."""
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, mine - {FIO_CPU} or mine)
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        os.sched_setaffinity(0, mine)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=2, help="of each cell")
    parser.add_argument("--repeat", type=int, default=1, help="how often each cause is staged")
    parser.add_argument("--depths", type=lambda text: [int(one) for one in text.split(",")], default=[1, 8, 32])
    parser.add_argument("--only", default="", help="only causes whose name holds this")
    parser.add_argument("--drive", choices=[*DRIVES], help="only this drive")
    busy_machine.add_argument(parser)
    options = parser.parse_args()
    print(ROW.format("drive", "depth", "cause", "rate", "p99", "host", "decided", "tails"))
    everything, results = [], {}
    for name in [options.drive] if options.drive else DRIVES:
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm", prefix="ssdlab-bench-"))
            with apart():
                plugin = simulated_ssd.model_plugin(**DRIVES[name])
                drive = stack.enter_context(simulated_ssd.simulated_ssd(Path(folder, "drives"), "bench", plugin))
            made = measuring.Measuring(drive["device"], Path(folder))
            stack.callback(made.close)
            made.bench.place = Place(str(FIO_CPU), None, None, "")
            made.bench.limits = Limits(idle_gap_s=3600)
            for depth in options.depths:
                rows = measured(made, depth, options.seconds, options.only, options.repeat, print)
                found = verdicts(rows, planned_cell(depth, options.seconds))
                shown(name, depth, rows, found)
                everything += found
                staged = results.setdefault((name, depth), {})
                for row, verdict in zip(rows, found):
                    if row.cause:
                        staged.setdefault(row.cause, []).append(verdict)
    print("\n" + grid(results, "rate", shown_rates), grid(results, "p99", shown_tails), sep="\n\n", end="\n\n")
    alarms, misses, tail_alarms, tail_misses = counts(everything)
    print(
        f"{len(everything)} cells: rates {alarms} false alarms, {misses} misses; "
        f"tails {tail_alarms} false alarms, {tail_misses} misses"
    )
    return busy_machine.exit_code(options, bool(misses))


if __name__ == "__main__":
    sys.exit(main())
