# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a campaign says of the error that it ended with: whether the drive itself led to it."""

from __future__ import annotations

import threading
import types

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.deadline import Hangs, Watchdog
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import campaign
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import fio
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge.method import PurgeError
from ansible_collections.ssdlab.fleet.tests.fixtures import planned


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
        hung={},
        ended={},
        host=nothing(get=lambda _path: "boot"),
        tuned=nothing(take_place=lambda _drive: nothing(_asdict=dict), leave_place=lambda _drive: None),
    )
    held = nothing(
        identity={},
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
