# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one figure that a finished test is shown by, where there is room for no more. Pure."""

from __future__ import annotations

import re
import typing as t

from ..measure import health_metrics
from ..records.attempt import AttemptResult
from ..records.run_files import TestFigure

Metrics = t.Mapping[str, t.Optional[float]]
# From here on a rate says more than a number of I/Os.
LARGE_BLOCK_BYTES = 128 << 10
BLOCK_OF_CELL = re.compile(r"[a-z]+-(?P<number>[0-9]+)(?P<unit>[bk])-")


def of_result(result: AttemptResult) -> TestFigure:
    """Return the average of the first tracked variable of a test; without a rule of steady state, its main metric."""
    tracked = next((window for window in result.steady_state if window.average is not None), None)
    if tracked:
        return TestFigure(result.test, result.outcome, tracked.metric, tracked.average)
    metrics = measured(result.metrics)
    name = metric(metrics, next((one.cell for one in result.cells), ""))
    return TestFigure(result.test, result.outcome, name, metrics[name] if name else None)


def measured(metrics: Metrics) -> Metrics:
    """Return the figures that were measured, without those of the drive's health."""
    return {name: value for name, value in metrics.items() if value is not None and name not in health_metrics.TABLE}


def metric(metrics: Metrics, first_cell: str) -> str | None:
    """Return the main metric of a test without steady state: the I/Os, and the rate for large blocks; of its one
    direction, if it has one. first_cell: its id, which tells the block size; the figures are that cell's.
    """
    block = BLOCK_OF_CELL.match(first_cell)
    size_bytes = int(block["number"]) * {"b": 1, "k": 1024}[block["unit"]] if block else 0
    kind = "bandwidth" if size_bytes >= LARGE_BLOCK_BYTES else "iops"
    directions = [name for name in (f"read_{kind}", f"write_{kind}") if name in metrics]
    wanted = directions if len(directions) == 1 else [kind, *directions]
    return next((name for name in wanted if name in metrics), next(iter(metrics), None))
