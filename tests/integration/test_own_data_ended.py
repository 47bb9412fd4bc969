# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a run ends, and in which state its drive is then: done, killed, stopped, cut in a purge."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import signal
import time
from pathlib import Path

import own_data_lab
import pytest
from own_data_lab import LONG, QUICK
from waiting import wait_until

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import deadline, locks
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import guard_check, ledger
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import control, engine
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge.sentinels import Sentinels
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import folder as rundir
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import render_plan as planning


@pytest.fixture(name="lab")
def fixture_lab(tmp_path, monkeypatch, loop_drive):
    with own_data_lab.standing(tmp_path, monkeypatch, loop_drive) as lab:
        yield lab


def test_a_run_that_died_at_its_end_keeps_nobody_out(lab):
    run = lab.kill_one("one", QUICK, dies="campaign.Campaign._leave = lambda self: os._exit(9)")
    assert lab.codes() == ["unsigned_data"]
    engine.HostJob(run, Host()).run()
    assert lab.codes() == [] and lab.run("two")[0] == "complete"


@pytest.mark.parametrize("waits", [False, True], ids=["looking", "waiting for another look"])
def test_a_stop_ends_a_long_look(lab, loop_drive, waits):
    """It is told as stopped, not as a drive that hangs."""
    lab.drive = loop_drive("large", size_bytes=512 << 30)
    run = lab.prepare("one", look={"seconds": None})
    stopped_s = []

    def looks():
        opened = any(os.path.realpath(link) == lab.drive.path for link in Path("/proc/self/fd").glob("*"))
        return '"guard"' in Path(run.status).read_text() and (opened or waits)

    def stop():
        wait_until(looks, "the look")
        stopped_s.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGTERM)

    with contextlib.ExitStack() as other:
        if waits:
            other.enter_context(locks.look_lock(lab.drive.name))
        other.enter_context(concurrent.futures.ThreadPoolExecutor()).submit(stop)
        engine.HostJob(run, Host()).run()
    status = run.read_status()
    assert (status["state"], status["drives"][0]["outcome"], status["drives"][0]["message"]) == (
        "stopped",
        "interrupted",
        "the run was stopped",
    )
    # Of a drive that hangs it would be told after STOP_GRACE_S.
    assert time.monotonic() - stopped_s[0] < deadline.STOP_GRACE_S and not lab.has_entry()


@pytest.mark.parametrize("leave, state", [("blank", "blank"), ("as_is", None)])
def test_a_drive_that_did_well_is_left_as_asked(lab, leave, state):
    outcome, journal = lab.run("one", tests=planning.load_plan([QUICK]), leave=leave)
    left = [record for record in journal if record["event"] == "left"]
    assert outcome == "complete" and [record["state"] for record in left] == ([state] if state else [])
    assert lab.codes(state=False) == ([] if state else ["unsigned_data"]) and lab.codes() == []


def test_what_is_not_valid_leaves_no_data(lab):
    tracked = [{"block_size": "4KiB", "read_pct": 0, "metric": "write_mean_latency_us"}]
    test = dict(QUICK, steady_state={"tracked": tracked, "range_limit": 1e-9}, rounds={"max": 5})
    _outcome, journal = lab.run("one", tests=planning.load_plan([test]), leave="blank")
    (left,) = [record for record in journal if record["event"] == "left"]
    assert (left["state"], left["reason"]) == ("blank", "") and lab.codes(state=False) == []


@pytest.mark.parametrize(("purge", "blank"), [("deallocate", True), ("none", False)])
def test_a_stop_leaves_no_data_where_the_run_would_go_on_with_a_purge(lab, purge, blank):
    run = lab.prepare("one", planning.load_plan([dict(LONG, purge={"method": purge})]), leave="blank")

    def filled():
        return any(record["event"] == "precondition" for record in rundir.read_journal(run.journal))

    def stop():
        try:
            wait_until(filled, "the fill")
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    with concurrent.futures.ThreadPoolExecutor() as pool:
        stopping = pool.submit(stop)
        engine.HostJob(run, Host()).run()
        stopping.result()
    (left,) = [record for record in rundir.read_journal(run.journal) if record["event"] == "left"]
    (drive,) = run.read_status()["drives"]
    assert (drive["outcome"], left["state"]) == ("interrupted", "blank" if blank else "as_is")
    assert ("purge.yml erases it" in drive["message"]) is not blank
    # No other run has to take anything on trust, whatever this host's ledger says.
    assert lab.codes(state=False) == ([] if blank else ["unsigned_data"]) and lab.codes() == []


def test_sentinels_of_a_purge_that_was_cut_are_ours(lab):
    """A job that dies between planting them and the purge leaves random blocks, both ends of the drive among them."""
    lab.run("one")
    identity = lab.inspect()["identity"]
    before = ledger.begin(Host(), lab.state, identity, "two")
    sentinels = Sentinels(identity["size_bytes"], identity["logical_block_size_bytes"])
    ledger.note(before, identity, "", sentinels.blocks())
    handle = os.open(lab.drive.path, os.O_RDWR | os.O_DIRECT)
    sentinels.plant(handle)
    os.close(handle)
    (seen,) = guard_check.inspect(Host(), [parse(lab.drive.selector)], state_dir=lab.state, run_id="two")
    assert seen["eligible"] and seen["own_data"]["proved"] == "content"
    lab.put(0, b"x")
    (seen,) = guard_check.inspect(Host(), [parse(lab.drive.selector)], state_dir=lab.state, run_id="two")
    assert not seen["eligible"]


def test_a_killed_run_goes_on_and_no_other_run_may(lab):
    lab.kill_one("one")
    assert lab.entry()["state"] == "writing" and lab.codes() == ["unsigned_data"]
    assert lab.inspect()["own_data"]["run_id"] == "one"
    lab.refused("two", "unsigned_data")
    # As after a reboot: another boot id, and names may be others.
    lab.reattach()
    assert lab.run("one", boot_id="another-boot")[0] == "complete"
    assert lab.codes() == []


def test_a_killed_run_that_was_stopped_leaves_its_drive_to_others(lab):
    run = lab.kill_one("one")
    own_data_lab.restore(run)
    assert lab.codes() == ["unsigned_data"]
    control.stop(Host(), run)
    assert lab.codes() == [] and lab.run("two")[0] == "complete"
