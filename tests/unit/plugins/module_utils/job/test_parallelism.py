# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many drives at once a host job finds, on drives whose common limit is known."""

from __future__ import annotations

import dataclasses
import threading
import types

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.deadline import Hangs
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.data_scan import Terms
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.held import Refused
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import campaign, parallelism
from ansible_collections.ssdlab.fleet.plugins.module_utils.job.drive_context import Job
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import fio, parallelism_search
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.fio_runner import CellRun
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.parallelism_search import numbers
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.guard import Refusal
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity
from ansible_collections.ssdlab.fleet.tests.fixtures import journal_events, planned

ASKED = {"repeats": 3, "otherwise": 1}
CELL = {"id": "rand-4k-r100-tc1-qd1", "runtime_s": 3}
DISTURBED = {"cause": "other_io", "level": "disturbs", "message": "another process read"}


class Host:
    """A host whose drives each do 1000 IOPS, and `most` together. wrong: what guard or cell raise, by drive."""

    def __init__(self, drives, most=10**6, history=(), wrong=None, disturbed=(), cells=(CELL,)):
        self.most, self.wrong, self.disturbed = most, wrong or {}, disturbed
        self.held, self.log, self.status, self.wrong_at = set(), [], {}, ""
        # After so many cells of a drive: where it fails midway.
        self.well, self.cells_of, self.left_s = 0, dict.fromkeys(range(drives), 0), []
        self.lock = threading.Lock()
        names = [f"S{place}" for place in range(drives)]
        self.plan = planned.plan_of(
            parallel_drives=drives,
            together={**ASKED, "cells": cells, "alone": names, "numbers": numbers(drives, 1)} if cells else None,
            parallel_why="what S0 shares is unknown" if drives > 1 else "",
            drives=[{"drive": name} for name in names],
        )
        job = {name: None for name in Job._fields}
        job.update(
            history=list(history),
            stop=threading.Event(),
            hung={},
            ended={},
            baselines={},
            terms=Terms(),
            journal=types.SimpleNamespace(add=lambda event, **fields: self.log.append((event, fields))),
            status=types.SimpleNamespace(set=self.show),
            tuned=types.SimpleNamespace(take_place=lambda name: f"place of {name}", leave_place=lambda name: None),
        )
        self.job = Job(**job)

    def show(self, **fields):
        self.status.update(fields)
        self.left_s.append(fields["calibration"]["left_s"])

    def station(self, job, plan, reads_only):
        assert reads_only
        drive, host = plan.drive, self

        def guard(step):
            assert step == "calibration"
            if isinstance(host.wrong.get(drive), Refused):
                raise host.wrong[drive]
            host.held.add(drive)
            if host.wrong_at == "guard" and drive in host.wrong:
                raise host.wrong[drive]

        def cell(name, asked, size_bytes, seed_value):
            assert drive in host.held and bench.place == f"place of {drive}" and asked == planned.cell(**CELL)
            host.cells_of[drive] = host.cells_of.get(drive, 0) + 1
            if drive in host.wrong and host.cells_of[drive] > host.well:
                raise host.wrong[drive]
            together = int(name.split("-")[1])
            found = [DISTURBED] if drive in host.disturbed else []
            read = {**journal_events.FIGURES, "iops": min(1000.0, host.most / together)}
            return CellRun(journal_events.cell_details(read=read, causes=found), {})

        held = types.SimpleNamespace(
            identity=Identity(size_bytes=1 << 30, logical_block_size_bytes=512),
            release=lambda: host.held.discard(drive),
            abandon=lambda reason: host.log.append(("abandoned", drive)),
        )
        bench = types.SimpleNamespace(cell=cell, begin_test=lambda: None, close=lambda: None, place=None)
        watchdog = types.SimpleNamespace(call=lambda what, step: step())
        return types.SimpleNamespace(
            drive=drive, job=job, held=held, bench=bench, guard=guard, watchdog=watchdog, seed=lambda *names: 1
        )


STARTED = {"event": "drive_started", "drive": "S0"}
CASES = [
    ("no limit", {"drives": 4}, 4, "all drives together"),
    ("two at a time", {"drives": 4, "most": 2000}, 2, "with 4 together"),
    ("no more than one", {"drives": 4, "most": 1000}, 1, "with 2 together"),
    (
        "one refused",
        {"drives": 3, "wrong": {"S1": Refused([Refusal("mounted", "on /")])}},
        1,
        "S1: mounted",
    ),
    ("fio fails", {"drives": 3, "wrong": {"S2": fio.FioError("no luck")}}, 1, "not calibrated: S2: no luck"),
    ("long words", {"drives": 3, "wrong": {"S2": fio.FioError("x" * 9999)}}, 1, "not calibrated: S2: x"),
    ("a bug", {"drives": 2, "wrong": {"S0": KeyError("iops")}}, 1, "not calibrated: S0: 'iops'"),
    ("hangs", {"drives": 2, "wrong": {"S0": Hangs("it hangs")}}, 1, "not calibrated: S0: it hangs"),
    ("disturbed", {"drives": 2, "disturbed": ["S1"]}, 1, "S1 has too few figures"),
    ("begun without", {"drives": 2, "history": [STARTED]}, 1, "an earlier job of this run started without calibration"),
    ("it writes", {"drives": 2, "cells": [{**CELL, "read_pct": 99}]}, 1, "also writes or trims"),
]


@pytest.mark.parametrize(("of", "number", "why"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_the_number_is_what_reads_tell_and_one_where_they_cannot(monkeypatch, of, number, why):
    host = Host(**of)
    monkeypatch.setattr(parallelism, "DriveContext", host.station)
    assert parallelism.drives_at_once(host.job, host.plan) == number == host.status["parallel_drives"]
    (record,) = [fields for event, fields in host.log if event == "calibration"]
    assert record["parallel_drives"] == number and why in record["why"] and len(record["why"]) <= 500
    # A drive that hangs stays held.
    assert host.left_s[-1] == 0 and host.left_s == sorted(host.left_s, reverse=True)
    hanging = {drive for event, drive in host.log if event == "abandoned"}
    assert host.held == hanging == ({"S0"} if "it hangs" in why else set())


@pytest.mark.parametrize("well", [0, 2, 3, 5])
@pytest.mark.parametrize(
    "error",
    [fio.FioError("it went away"), Hangs("no answer"), Refused([Refusal("wrong_drive", "another")])],
)
def test_a_drive_that_fails_midway_costs_the_number_and_not_the_run(monkeypatch, well, error):
    """In its first cell alone, between two of them, among others: the others' tests go on one at a time, and the
    drive's own campaign tells what is wrong with it.
    """
    host = Host(3, wrong={"S1": error})
    host.well = well
    monkeypatch.setattr(parallelism, "DriveContext", host.station)
    assert parallelism.drives_at_once(host.job, host.plan) == 1 == host.status["parallel_drives"]
    (record,) = [fields for event, fields in host.log if event == "calibration"]
    assert record["why"].startswith("not calibrated: S1: ") and record["trials"] == []
    assert host.held == ({"S1"} if isinstance(error, Hangs) else set()) == set(host.job.hung)


def test_a_job_that_died_in_the_middle_begins_anew_also_after_a_reboot(monkeypatch):
    """It left no record: what an earlier boot measured alone is compared with nothing of this one."""
    host = Host(2, history=[{"event": "job_started", "boot_id": "one"}, {"event": "guard", "drive": "S0"}])
    monkeypatch.setattr(parallelism, "DriveContext", host.station)
    assert parallelism.drives_at_once(host.job, host.plan) == 2
    (record,) = [fields for event, fields in host.log if event == "calibration"]
    assert {one["drive"] for one in record["alone"]} == {"S0", "S1"} and host.cells_of == {
        **host.cells_of,
        "S0": 6,
        "S1": 6,
    }


def test_what_is_left_is_the_longest_way_at_first_and_less_after_each_group(monkeypatch):
    host = Host(4, most=2000)
    monkeypatch.setattr(parallelism, "DriveContext", host.station)
    parallelism.drives_at_once(host.job, host.plan)
    group_s = parallelism_search.group_s(host.plan.together)
    assert host.left_s[0] == pytest.approx(parallelism_search.most_groups(host.plan.together, 4) * group_s)
    assert [round(one - other, 3) for one, other in zip(host.left_s, host.left_s[1:-1])] == [pytest.approx(group_s)] * (
        len(host.left_s) - 2
    )


def test_the_plans_own_number_is_not_questioned():
    host = Host(2, cells=())
    plan = dataclasses.replace(host.plan, parallel_why="")
    assert parallelism.drives_at_once(host.job, plan) == 2 and not host.log


def test_what_the_drives_share_decides_without_a_trial_and_is_on_record():
    host = Host(2, cells=())
    assert parallelism.drives_at_once(host.job, host.plan) == 2 and not host.held
    (record,) = [fields for event, fields in host.log if event == "calibration"]
    assert record["why"] == host.plan.parallel_why and record["trials"] == record["cells"] == []


def test_what_links_carry_is_used_where_reads_fail(monkeypatch):
    """Not one at a time: the reads were only to find more."""
    host = Host(8, wrong={"S2": fio.FioError("no luck")})
    asked = dataclasses.replace(host.plan.together, otherwise=4, numbers=[8])
    monkeypatch.setattr(parallelism, "DriveContext", host.station)
    assert parallelism.drives_at_once(host.job, dataclasses.replace(host.plan, together=asked)) == 4


@pytest.mark.parametrize(("known", "number"), [(2, 2), (99, 3), (0, 1)])
def test_a_run_that_goes_on_keeps_its_number(known, number):
    host = Host(3, history=[{"event": "calibration", "parallel_drives": known}, STARTED])
    assert parallelism.drives_at_once(host.job, host.plan) == number and not host.log


def test_a_stop_leaves_no_record_and_no_drive_held(monkeypatch):
    host = Host(2, wrong={"S1": fio.Interrupted()})
    monkeypatch.setattr(parallelism, "DriveContext", host.station)
    with pytest.raises(fio.Interrupted):
        parallelism.drives_at_once(host.job, host.plan)
    assert not host.log and not host.held


def test_a_drive_that_hangs_while_the_job_is_stopped_is_not_touched_again(monkeypatch):
    """Each release would hang for its grace, one drive after the other: longer than systemd waits for a job."""
    host = Host(3, wrong={"S0": Hangs("it hangs"), "S1": fio.Interrupted(), "S2": Hangs("it hangs")})
    host.wrong_at = "guard"
    monkeypatch.setattr(parallelism, "DriveContext", host.station)
    with pytest.raises(fio.Interrupted):
        parallelism.drives_at_once(host.job, host.plan)
    assert host.held == {"S0", "S2"} == {drive for event, drive in host.log if event == "abandoned"}


def test_a_drive_that_hung_is_an_error_and_not_refused_as_locked(monkeypatch):
    """It answers again, and what reads left behind has its lock."""
    host, told = Host(2, wrong={"S0": Hangs("it hangs")}), []
    monkeypatch.setattr(parallelism, "DriveContext", host.station)
    parallelism.drives_at_once(host.job, host.plan)
    held = types.SimpleNamespace(identity=Identity(), abandon=told.append)
    station = types.SimpleNamespace(
        job=host.job,
        drive="S0",
        plan=planned.drive(tests=[{}]),
        history=[],
        results=[],
        held=held,
        name="x",
        kernel_log=types.SimpleNamespace(let_go=lambda name: None),
        show=lambda **shown: None,
        note=lambda event, **fields: told.append((event, fields)),
        guard=lambda step: pytest.fail("it was touched again"),
    )
    monkeypatch.setattr(campaign, "DriveContext", lambda job, plan: station)
    of_tests = types.SimpleNamespace(
        error="", alone=True, finished=[], missed=lambda: "", settle_unfinished=lambda: None
    )
    monkeypatch.setattr(campaign, "DriveTests", lambda station: of_tests)
    assert campaign.Campaign(host.job, station.plan).run() == "error"
    ended = {"outcome": "error", "message": "it hangs", "drive_fault": True}
    assert told == ["it hangs", ("drive_finished", ended)]
