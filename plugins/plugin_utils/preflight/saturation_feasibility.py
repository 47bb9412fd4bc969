# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a drive can write in time what a saturation test asks for, by what earlier runs measured of its model (read
from the results folder, through the gate): proof refuses, doubt does not.

What to run instead is the same after preconditioning, which shows no saturation and is not called so.
"""

from __future__ import annotations

import os
import typing as t

import yaml

from ...module_utils.drive.attributes import VIRTUAL
from ...module_utils.records.plan import Plan, PlannedDrive, PlannedTest
from ..common import units
from ..common.units import plan_duration
from ..common.values import number
from ..plan import time_estimates
from ..run_folder import results_log, run_record, runs
from ..run_folder.run_record import Definition, RunWarning
from ..validation.record_check import Record
from ..verdict import fob_state
from .duration_history import SAME_SIZE
from .findings import Finding

ALTERNATIVE = "steady-writes"

# Newest first; older ones are of older firmware. A folder may hold thousands of runs, and preflight is waited for.
MOST_RUNS = 100
MOST_LINES = 20_000
# A line without these is neither a drive's nor of a test that told how much it wrote; most lines are of neither, and
# cost no parsing.
_DRIVE, _SATURATION = b'"kind": "drive"', b'"written_before_bytes"'

# After its fall a drive's rate moves within the range that steady state allows (20 %); what it would take at 20 % more
# is still proof.
FASTER = 1.2
# One drive may be a bad one of its model.
LEAST_DRIVES = 2
CHECK = "saturation_time"


def alternative(test: PlannedTest) -> str:
    """Return an entry of ssd_plan."""
    entry = {
        "base": test.name,
        "name": ALTERNATIVE,
        "title": "Random writes after preconditioning, until steady",
        "precondition": {"passes": 2},
    }
    text: str = yaml.safe_dump(entry, default_flow_style=True, sort_keys=False, width=1000)
    return text.strip()


def alternative_advice(test: PlannedTest) -> str:
    """Return the offer as a part of a sentence."""
    return f"measure after preconditioning instead (that shows no write saturation): ssd_plan: [{alternative(test)}]"


class Saturation(t.NamedTuple):
    """Of one test of one drive: written_bytes in elapsed_s of rounds since its purge, and its write rate over the
    window after that.
    """

    model: str
    size_bytes: int
    cell: str
    written_bytes: int
    elapsed_s: float
    then_bytes_per_s: float
    run_id: str
    host: str
    drive: str


def saturations(results_dir: str, models: t.Collection[str]) -> list[Saturation]:
    """Return what was measured of drives of these models from fresh, by tests of one cell. Raises nothing for
    damage.
    """
    found: list[Saturation] = []
    newest = sorted(runs.on_controller(results_dir), key=lambda run: run.started, reverse=True)[:MOST_RUNS]
    left = MOST_LINES
    for run in newest if models else ():
        lines = _lines(os.path.join(run.folder, run_record.RESULTS), left)
        left -= len(lines)
        found += _of_run(run, lines, models)
    return found


def _lines(path: str, most: int) -> list[bytes]:
    try:
        with open(path, "rb") as file:
            return [line for line in file if _DRIVE in line or _SATURATION in line][: max(0, most)]
    except OSError:
        return []


def _of_run(run: runs.KnownRun, lines: t.Sequence[bytes], models: t.Collection[str]) -> list[Saturation]:
    newest: dict[tuple[t.Any, ...], Record] = {}
    for line in lines:
        record = results_log.parsed(line)
        if record is not None:
            newest[record["kind"], record["host"], record.get("drive"), record.get("test")] = record
    drives = {key[1:3]: record for key, record in newest.items() if key[0] == "drive"}
    about = (run_record.read_run(run.folder) or {}).get("tests") or {}
    made = [
        _saturation(run, record, drives.get((record["host"], record["drive"]), {}), about)
        for key, record in newest.items()
        if key[0] == "test"
    ]
    return [item for item in made if item is not None and item.model in models]


def _saturation(
    run: runs.KnownRun, record: Record, drive: Record, about: t.Mapping[str, Definition]
) -> Saturation | None:
    """None for a record that tells no rate, or not that of a fresh drive: one that was filled is slower from the start.

    With several cells in a round the time is not that of the one that writes.
    """
    if fob_state.why_not(record):
        return None
    shown, windows, identity = (
        record.get("saturation") or {},
        record.get("steady_state") or [],
        drive.get("identity") or {},
    )
    cells = (about.get(record["test"]) or {}).get("cells") or []
    rate = number((record.get("metrics") or {}).get("write_bandwidth"))
    written, elapsed_s, size = (
        shown.get("written_before_bytes"),
        shown.get("elapsed_before_s"),
        identity.get("size_bytes"),
    )
    if (
        record["outcome"] not in ("steady", "not_steady", "complete")
        or len(cells) != 1
        or not windows
        or not (written and elapsed_s and rate and size)
        or not identity.get("model")
    ):
        return None
    return Saturation(
        identity["model"],
        size,
        windows[0].get("cell") or cells[0],
        written,
        elapsed_s,
        rate,
        run.id,
        record["host"],
        record["drive"],
    )


def wanted_models(plans: t.Mapping[str, Plan]) -> set[str]:
    """Return the models of which a test of these plans asks for more than it may be able to wait for."""
    return {str(drive.expected.model) for drive, _test in _bound(plans.values())}


def _bound(plans: t.Iterable[Plan]) -> list[tuple[PlannedDrive, PlannedTest]]:
    """Return each drive of a known model with each of its saturation tests of one cell that have a limit in time."""
    pairs = [(drive, test) for plan in plans for drive in plan.drives for test in drive.tests]
    return [
        (drive, test)
        for drive, test in pairs
        if drive.expected.model
        and drive.expected.transport not in VIRTUAL
        and len(test.cells) == 1
        and time_estimates.slowest_write(test, drive.expected.sizes()[0]) is not None
    ]


def findings(plans: t.Mapping[str, Plan], known: t.Sequence[Saturation]) -> list[Finding]:
    """Tests that no drive of the model could finish, by LEAST_DRIVES or more of them. plans: plan.json by host; known:
    of results.history.
    """
    slow = _slow(plans, known)
    return [
        Finding(f"test {test.name}: {proof}; {_advice(test)}", host, drive)
        for host, drive, test, proof, sure in slow
        if sure
    ]


def warnings(plans: t.Mapping[str, Plan], known: t.Sequence[Saturation]) -> list[RunWarning]:
    """Return those that fewer drives speak against, as warnings."""
    return [
        RunWarning(host, CHECK, drive, "warning", f"test {test.name}: {proof}", _advice(test))
        for host, drive, test, proof, sure in _slow(plans, known)
        if not sure
    ]


def _advice(test: PlannedTest) -> str:
    return f"raise its rounds.max or rounds.time_limit_s, or {alternative_advice(test)}"


def _slow(plans: t.Mapping[str, Plan], known: t.Sequence[Saturation]) -> list[tuple[str, str, PlannedTest, str, bool]]:
    """(host, drive, test, what speaks against it, whether enough drives do)."""
    bound = [(host, drive, test) for host, plan in plans.items() for drive, test in _bound([plan])]
    said = [(host, drive, test, too_slow(test, drive, known)) for host, drive, test in bound]
    return [
        (
            host,
            drive.drive,
            test,
            proof,
            _are_enough(_alike(test, drive, known), host),
        )
        for host, drive, test, proof in said
        if proof
    ]


def _are_enough(seen: t.Sequence[Saturation], host: str) -> bool:
    """Return whether so many speak against a test that it is refused. No single host can have another one's refused."""
    hosts = {item.host for item in seen}
    return len({(item.host, item.drive) for item in seen}) >= LEAST_DRIVES and (len(hosts) > 1 or hosts == {host})


def _alike(test: PlannedTest, drive: PlannedDrive, known: t.Sequence[Saturation]) -> list[Saturation]:
    """Return what was measured of drives of this model and size by the same cell."""
    model, (size, _block), cell = str(drive.expected.model), drive.expected.sizes(), test.cells[0].id
    return [
        item
        for item in known
        if item.model == model and item.cell == cell and abs(item.size_bytes - size) <= SAME_SIZE * size
    ]


def too_slow(test: PlannedTest, drive: PlannedDrive, known: t.Sequence[Saturation]) -> str:
    """Return why the test cannot get as far as its first window on such a drive; "" where that is not proved: the
    fastest that was measured counts.
    """
    (size, _block), alike = drive.expected.sizes(), _alike(test, drive, known)
    asked, left_s = time_estimates.least_multiple(test) * size, time_estimates.time_for_writing_s(test)
    if not alike or left_s is None:
        return ""
    fastest = min(alike, key=lambda item: needed_s(item, asked))
    least_s = needed_s(fastest, asked)
    if least_s <= left_s:
        return ""
    return (
        f"its limits leave {plan_duration(max(0.0, left_s))} for writing "
        f"{time_estimates.least_multiple(test):g} x {units.data_size(size)}; "
        f"this model takes at least {plan_duration(least_s)}, as run {fastest.run_id} measured ({fastest.host}, "
        f"{fastest.drive}: "
        f"{units.data_size(fastest.written_bytes)} in {plan_duration(fastest.elapsed_s)}, then "
        f"{units.show('bandwidth', fastest.then_bytes_per_s)})"
    )


def needed_s(item: Saturation, asked_bytes: float) -> float:
    """Return how long a drive like this takes at least to write so much from fresh on. 0 where it was seen to have
    written as much.
    """
    if asked_bytes <= item.written_bytes:
        return 0.0
    return item.elapsed_s + (asked_bytes - item.written_bytes) / (item.then_bytes_per_s * FASTER)
