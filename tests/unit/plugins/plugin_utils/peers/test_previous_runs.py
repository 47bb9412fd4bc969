# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runs before one: read one by one, and kept as no more than what a judgement takes."""

from __future__ import annotations

import gc
import weakref

import pytest

pytest.importorskip("scipy")

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.peers import fleet_verdicts
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import write_report
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import earlier_reports
from ansible_collections.ssdlab.fleet.tests.fixtures.report import fleets

NIGHTS = 6


class Summary(dict):
    """Can be watched, as a plain dict can't."""


@pytest.fixture(name="site")
def fixture_site(tmp_path):
    """(results folder, run.json, records) of a night with six reports before it."""
    for number in range(NIGHTS):
        run, records = fleets.fleet(hosts=3, seed=number, run_id=f"n{number}")
        fleets.write(tmp_path, {**run, "started": f"2026-11-0{number + 1}T01:00:00Z"}, records)
        write_report.make(str(tmp_path), f"n{number}")
    run, records = fleets.fleet(hosts=3, seed=9, run_id="n9", slow={(0, 0): 0.7})
    return str(tmp_path), {**run, "started": "2026-11-20T01:00:00Z"}, records


def test_no_more_than_two_summaries_are_in_memory(site, monkeypatch):
    """The one that is read and the newest: a thousand nights of a large fleet would be many GiB."""
    alive, most = weakref.WeakSet(), []
    read = earlier_reports.read

    def watched(*arguments):
        gc.collect()
        found = read(*arguments)
        most.append(len(alive) + 1)
        return found and _seen(Summary(found))

    def _seen(summary):
        alive.add(summary)
        return summary

    Summary.__hash__ = object.__hash__
    monkeypatch.setattr(earlier_reports, "read", watched)
    told = fleet_verdicts.judge_run(*site).fleet
    assert len(told["nights"]["runs"]) == NIGHTS and max(most) <= 2
