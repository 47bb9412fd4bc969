# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a purge method, and whoever leaves a drive blank, gets to work with."""

from __future__ import annotations

import typing as t

from ..measure import precondition_curve
from ..purge.method import Work
from .drive_context import DriveContext

Mapping = t.Mapping[str, t.Any]


def work_on(station: DriveContext, test: Mapping, names: Mapping) -> Work:
    """For a test of a drive that is held. `names`: of the test and its attempt."""

    def fill(tick: t.Callable[[float | None], None]) -> dict[str, t.Any]:
        size, seed = station.held.identity["size_bytes"], station.seed(names, "purge")
        record = station.bench.fill(station.file(names, "purge"), test["purge"], size, seed, tick)
        precondition_curve.check(record["kernel_bytes_written"], record["bytes_written"])
        return record

    return Work(
        host=station.job.host,
        held=station.held,
        options=test["purge"],
        tick=station.tick,
        note=lambda event, **fields: station.note(event, **dict(fields, **names)),
        fill=fill,
        history=station.history,
        bounded=station.watchdog.call,
    )
