# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run of the store against its peers and against the nights before, every cell included: for notebooks, and fleets of
any size.
"""

from __future__ import annotations

import typing as t

from . import frames
from .database import opened
from .schema import tables
from .store_requirements import StoreError, missing, sa

if t.TYPE_CHECKING:
    import pandas

# Of the long table, what a comparison with other nights takes.
BEFORE = ("serial", "model", "firmware", "conditions", "test", "cell", "metric", "value")


class FleetTables(t.NamedTuple):
    """What docs/fleet.md describes, as tables. figures: each figure of each drive with n, median, by, z, p and outlier.
    low_hosts: host_effects.effects.
    changes: each model's figures against the nights before or the baseline. against: the runs that it was compared
      with.
    """

    figures: pandas.DataFrame
    groups: pandas.DataFrame
    too_few: pandas.DataFrame
    low_hosts: pandas.DataFrame
    firmwares: pandas.DataFrame
    changes: pandas.DataFrame
    repeatability: pandas.DataFrame
    against: list[str]


def judged(url: str, run_id: str = "", nights: int = 30, baseline: str = "") -> FleetTables:
    """Hold a run of the store against its peers and against earlier runs. Raises StoreError.

    url: as of frames.long. run_id: "" is the newest run. nights: with how many runs of its name before it the run is
      compared, at most; with a
    baseline, which is the id of a run, with that alone. Only measurements that count are there.
    """
    from ..peers import statistics_requirements

    lacks = missing(url, tables=True) or [text for text in [statistics_requirements.missing_requirements()] if text]
    if lacks:
        raise StoreError(lacks[0])
    # What imports pandas waits until it is known to be there.
    from ..peers import host_effects, outliers, trends

    run_id, against = _runs(url, run_id, nights, baseline)
    now = frames.long(url, runs=[run_id], rounds=False, valid=True, columns=(*frames.LONG, *frames.MORE))
    figures = outliers.held(now)
    # Of millions of rows nothing but this is kept.
    before = trends.by_drive(frames.long(url, runs=against, rounds=False, valid=True, columns=BEFORE), cells=True)
    return FleetTables(
        figures,
        outliers.groups(figures),
        outliers.too_few(figures),
        host_effects.effects(figures),
        trends.firmwares(figures),
        trends.changes(trends.by_drive(now, cells=True), before),
        trends.repeats(before),
        against,
    )


def _runs(url: str, run_id: str, nights: int, baseline: str) -> tuple[str, list[str]]:
    """(the run, those to compare it with, newest first)."""
    table = tables().run
    with opened(url) as store, store.reading() as connection:
        known = {
            row.run_id: row for row in connection.execute(sa.select(table.c.run_id, table.c.name, table.c.started))
        }
    order = sorted(known, key=lambda name: (known[name].started or "", name), reverse=True)
    for asked in filter(None, (run_id, baseline)):
        if asked not in known:
            raise StoreError(f"the store has no run {asked}; the newest ones: {', '.join(order[:5]) or 'none'}")
    if not order:
        raise StoreError("the store has no run: playbooks/import.yml brings the folders of runs into it")
    run_id = run_id or order[0]
    if baseline:
        return run_id, [baseline]
    before = [name for name in order[order.index(run_id) + 1 :] if known[name].name == known[run_id].name]
    return run_id, before[:nights]
