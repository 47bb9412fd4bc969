# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a campaign says of the error that it ended with, whether the drive itself led to it; and how a drive is left."""

from __future__ import annotations

import threading
import types

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.background import Background
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.deadline import Hangs, Watchdog
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.held import Refused
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import campaign, release_drive
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import fio
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.kernel_faults import OF_HOST
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge.method import PurgeError
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity
from ansible_collections.ssdlab.fleet.tests.fixtures import planned, run_results


class OfDrive:
    """Those of a drive, which end with an error."""

    error, finished = "t: an error", ()

    def __init__(self, raised, drive_fault, alone):
        self._raised, self.drive_fault, self.alone = raised, drive_fault, alone

    def missed(self):
        return ""

    def later_s(self, _tests):
        return None

    def settle_unfinished(self):
        """Nothing is unfinished."""

    def run(self, _test):
        if self._raised:
            raise self._raised
        return "error"


@pytest.mark.parametrize(
    "raised, drive_fault, alone, stopped, told",
    [
        (None, True, True, False, True),
        (None, False, True, False, None),
        (fio.DriveError("io"), False, True, False, True),
        (fio.FioError("no JSON"), False, True, False, None),
        (PurgeError("no purge"), False, True, False, None),
        (ValueError("a fault of ours"), False, True, False, None),
        (Hangs("hangs"), False, True, False, True),
        # Any drive of an array may hang.
        (Hangs("hangs"), False, False, False, None),
        # A stop cut a step short.
        (Hangs("hangs"), False, True, True, None),
    ],
)
def test_the_end_says_whether_the_drive_itself_led_to_its_error(monkeypatch, raised, drive_fault, alone, stopped, told):
    stop, noted = threading.Event(), {}

    def guard(_step):
        if stopped:
            stop.set()

    nothing = types.SimpleNamespace
    job = nothing(
        stop=stop,
        side_by_side=None,
        hung={},
        in_service=False,
        ended={},
        host=nothing(get=lambda _path: "boot"),
        tuned=nothing(take_place=lambda _drive: nothing(_asdict=dict, cpus=None), leave_place=lambda _drive: None),
    )
    held = nothing(
        identity=Identity(),
        path="/dev/x",
        keep_as_evidence=lambda _why: None,
        content_is_ours=lambda: None,
        abandon=lambda _why: None,
        release=lambda: None,
    )
    station = nothing(
        job=job,
        drive="d",
        plan=planned.drive(tests=[{}]),
        history=[],
        results=[],
        held=held,
        bench=nothing(check_fio=lambda: None),
        beside=Background("writes"),
        name="x",
        kernel_log=nothing(let_go=lambda _name: None, settle=lambda: None),
        conditions=nothing(begin=lambda _history: None, baseline=None),
        watchdog=Watchdog(threading.Event()),
        show=lambda **_shown: None,
        guard=guard,
        note=lambda event, **fields: noted.update({event: fields}),
    )
    monkeypatch.setattr(campaign, "DriveContext", lambda _job, _plan: station)
    monkeypatch.setattr(campaign, "DriveTests", lambda _station: OfDrive(raised, drive_fault, alone))
    monkeypatch.setattr(campaign.health, "power_cycles", lambda _host, _identity: None)
    assert campaign.Campaign(job, station.plan).run() == "error"
    assert noted["drive_finished"].get("drive_fault") == told, noted


class Measured(OfDrive):
    """Tests of which each ends as a table says; a stop comes in one that is to be interrupted."""

    error = ""

    def __init__(self, ends, missed):
        self._ends, self._missed, self.finished = dict(ends), missed, []
        self.drive_fault, self.alone = False, True

    def missed(self):
        return self._missed

    def work(self, _purge):
        return None

    def run(self, test):
        outcome = self._ends[test.name]
        reasons = [f"{OF_HOST}: x"] if outcome == "host fault" else []
        outcome = "error" if reasons else outcome
        self.error = f"{test.name}: an error" if outcome == "error" else self.error
        self.finished.append(run_results.attempt(test=test.name, outcome=outcome, reasons=reasons))
        if outcome == "interrupted":
            raise fio.Interrupted()
        return outcome


PURGES, GOES_ON = {"method": "auto"}, {"method": "none"}
DONE = release_drive.Leaving("blank", "", 0.1)
SLOW = release_drive.Leaving("as_is", "it takes long", 20.0)


@pytest.mark.parametrize(
    ("ends", "purges", "about", "left", "says"),
    [
        (["steady", "complete"], [PURGES, GOES_ON], {}, "blank", ""),
        (["steady", "invalid"], [PURGES, GOES_ON], {}, "blank", ""),
        (["not_steady", "invalid"], [PURGES, PURGES], {}, "blank", ""),
        (["steady", "error"], [PURGES, PURGES], {}, None, "wsat: an error"),
        # After a fault of the host the next test is done, where the drive is still there.
        (["host fault", "steady"], [PURGES, PURGES], {}, "as_is", "iops: an error"),
        (["host fault", "error"], [PURGES, PURGES], {}, None, "wsat: an error"),
        (["host fault", None], [PURGES, PURGES], {"lost": Refused([])}, None, "iops: an error"),
        (["host fault", None], [PURGES, PURGES], {"lost": Hangs("hangs")}, None, "iops: an error"),
        (["host fault", None], [PURGES, PURGES], {"gone": True}, None, "iops: an error"),
        # What an earlier job of the run left behind with an error.
        (["error-before", "steady"], [PURGES, PURGES], {}, "as_is", ""),
        (["steady", "invalid"], [PURGES, PURGES], {"missed": "iops: write_iops is 1 (min 2)"}, "evidence", ""),
        # Of a host that could not be tuned nothing was begun, so nothing is to be wiped.
        (["invalid", "invalid"], [PURGES, PURGES], {"wrote": False}, None, ""),
        (["steady", "invalid"], [PURGES, PURGES], {"leave": "as_is"}, None, ""),
        # A stop: the job that goes on begins with the first test that does not stand yet.
        (["steady", "interrupted"], [PURGES, PURGES], {}, "blank", "the run was stopped"),
        (["steady", "interrupted"], [PURGES, GOES_ON], {}, "as_is", "still holds test data (wsat, with which"),
        (["interrupted", None], [GOES_ON, PURGES], {}, "as_is", "still holds test data (iops, with which"),
        (["interrupted", None], [PURGES, PURGES], {"stopped": SLOW}, "as_is", "test data (it takes long), which"),
        (["interrupted", None], [PURGES, PURGES], {"wrote": False}, None, "the run was stopped"),
        (["interrupted", None], [PURGES, PURGES], {"unsettled": True}, None, "the run was stopped"),
        (["steady", "interrupted"], [PURGES, PURGES], {"missed": "a miss"}, None, "the run was stopped"),
        (["steady", "interrupted"], [PURGES, PURGES], {"leave": "as_is"}, None, "the run was stopped"),
    ],
)
def test_only_a_missed_criterion_and_an_error_leave_data(monkeypatch, ends, purges, about, left, says):
    nothing, noted = types.SimpleNamespace, {}
    planned_tests = [{"name": name, "purge": purge} for name, purge in zip(("iops", "wsat"), purges)]
    before = [run_results.attempt(test="iops", outcome="error")] if ends[0] == "error-before" else []
    job = nothing(
        stop=threading.Event(),
        side_by_side=None,
        hung={},
        in_service=False,
        ended={},
        leave=about.get("leave", "blank"),
        host=nothing(get=lambda _path: "boot", exists=lambda _path: "gone" not in about),
        tuned=nothing(take_place=lambda _drive: nothing(_asdict=dict, cpus=None), leave_place=lambda _drive: None),
    )
    held = nothing(
        identity=Identity(), path="/dev/x", handle=7, evidence="", blank=False, unsettled=about.get("unsettled", False)
    )
    held.keep_as_evidence = lambda why: setattr(held, "evidence", why)
    held.content_is_ours = held.release = lambda: None
    station = nothing(
        job=job,
        drive="d",
        plan=planned.drive(tests=planned_tests),
        history=[],
        results=before,
        held=held,
        wrote=about.get("wrote", True),
        bench=nothing(check_fio=lambda: None),
        name="x",
        kernel_log=nothing(let_go=lambda _name: None, settle=lambda: None),
        conditions=nothing(begin=lambda _history: None, baseline=None),
        watchdog=Watchdog(threading.Event()),
        show=lambda **_shown: None,
        guard=lambda _step: None,
        note=lambda event, **fields: noted.update({event: fields}),
        beside=Background("writes"),
    )

    def look():
        if "lost" in about:
            raise about["lost"]

    station.look = look
    tests = Measured(zip(("iops", "wsat"), ends), about.get("missed", ""))
    tests.finished = list(before)
    monkeypatch.setattr(campaign, "DriveContext", lambda _job, _plan: station)
    monkeypatch.setattr(campaign, "DriveTests", lambda _station: tests)
    monkeypatch.setattr(campaign.health, "power_cycles", lambda _host, _identity: None)
    monkeypatch.setattr(campaign.failure_logs, "keep_logs", lambda *_of: None)
    monkeypatch.setattr(
        release_drive, "blank", lambda _work, unwell="": DONE if not unwell else DONE._replace(state="as_is")
    )
    monkeypatch.setattr(release_drive, "make_blank_in_time", lambda _work: about.get("stopped", DONE))
    campaign.Campaign(job, station.plan).run()
    assert (noted.get("left") or {}).get("state") == left
    assert says in noted["drive_finished"]["message"] and bool(says) == bool(noted["drive_finished"]["message"])
    assert held.blank == (left == "blank")
