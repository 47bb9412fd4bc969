# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What earlier runs measured of a model on its way from fresh into saturation: read from the results folder, through
the gate.
"""

from __future__ import annotations

import os
import typing as t

from ..common.values import number
from ..run_folder import results_log, run_record, runs
from ..verdict import fob_state

# Newest first; older ones are of older firmware. A folder may hold thousands of runs, and preflight is waited for.
MOST_RUNS = 100
MOST_LINES = 20_000
# A line without these is neither a drive's nor of a test that told how much it wrote; most lines are of neither, and
# cost no parsing.
_DRIVE, _SATURATION = b'"kind": "drive"', b'"written_before_bytes"'


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
    newest: dict[tuple[t.Any, ...], dict[str, t.Any]] = {}
    for line in lines:
        record = results_log.parsed(line)
        if record is not None:
            newest[record["kind"], record["host"], record.get("drive"), record.get("test")] = record
    drives = {key[1:3]: record.get("identity") or {} for key, record in newest.items() if key[0] == "drive"}
    about = (run_record.read_run(run.folder) or {}).get("tests") or {}
    made = [
        _saturation(run, record, drives.get((record["host"], record["drive"]), {}), about)
        for key, record in newest.items()
        if key[0] == "test"
    ]
    return [item for item in made if item is not None and item.model in models]


def _saturation(
    run: runs.KnownRun, record: t.Mapping[str, t.Any], identity: t.Mapping[str, t.Any], about: t.Mapping[str, t.Any]
) -> Saturation | None:
    """None for a record that tells no rate, or not that of a fresh drive: one that was filled is slower from the start.

    With several cells in a round the time is not that of the one that writes.
    """
    if fob_state.why_not(record):
        return None
    shown, windows = record.get("saturation") or {}, record.get("steady_state") or []
    cells = (about.get(record["test"]) or {}).get("cells") or []
    rate = number((record.get("metrics") or {}).get("write_bandwidth"))
    written, elapsed_s, size = (
        shown.get("written_before_bytes"),
        shown.get("elapsed_before_s"),
        identity.get("size_bytes"),
    )
    if (
        record["outcome"] not in ("steady", "not_steady")
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
