# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run survives: a killed playbook, a killed host job, a stop, servers that go away. Real servers, real fio."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import cells
import holding
import pytest
from bed import Bed, BedError, why_not
from play import STATE_DIR, Fleet, held_locks, kill_group, left_behind, processes, wait_for
from waiting import wait_for_end

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())


def short_test(name: str, runtime_s: int, rounds: int = 3) -> dict:
    """A test that is steady as soon as it can be, on any machine."""
    cell = {
        "access": "random",
        "block_size": "4KiB",
        "read_pct": 0,
        "queue_depth": 4,
        "runtime_s": runtime_s,
        "rate_iops": 1000,
    }
    tracked = {"block_size": "4KiB", "read_pct": 0, "metric": "write_iops"}
    return {
        "name": name,
        "purge": {"method": "deallocate"},
        "precondition": False,
        "cells": [cell],
        "steady_state": {
            "tracked": [tracked],
            "window": rounds,
            "min_capacity_multiple": 0,
            "confirm_windows": 0,
            **cells.ANY_RATES,
        },
        "rounds": {"max": rounds + 3},
    }


NOBODY = "192.0.2.1"  # RFC 5737: an address for documentation
# A cell that is over only when a test ends it.
HOUR_S = 3600
PLAN = [short_test("first", runtime_s=1), short_test("second", runtime_s=4)]


@pytest.fixture(scope="module", params=["systemd", "session"])
def bed(request):
    """One server with one drive: where the host job is a systemd unit, and where it is a session of its own."""
    made = Bed(f"kill-{request.param}")
    try:
        yield made.up(servers=1, drives=1, systemd=request.param == "systemd")
    finally:
        made.down()


@pytest.fixture(scope="module")
def three_servers():
    """Three servers with one drive each."""
    made = Bed("fleet")
    try:
        yield made.up(servers=3, drives=1)
    finally:
        made.down()


@pytest.fixture
def fleet(bed, tmp_path, request):
    """A run of its own for each test, on the one server."""
    return a_run(bed, tmp_path, request, PLAN)


def a_run(bed: Bed, folder, request, plan) -> Fleet:
    """A run whose id tells the test, and whose measurements are valid on any machine."""
    made = Fleet(bed, folder, request.node.originalname.replace("_", "-"), plan)
    for server in bed.servers:
        made.set_host(server.name, ssd_validity_limits=cells.ANY_MACHINE)
    return made


def in_cell(fleet: Fleet, server, test: str):
    """Whether fio is at work on this test."""
    return holding.measures(test)(fleet.status(server)) and processes(fleet.bed, server, "fio")


def held_in(fleet: Fleet, server, test: str, number: int = 1):
    """The server's host job, held in this round of this test."""
    # Read from here: a process in the server for each look would miss a round on a busy machine.
    path = Path(f"/proc/{server.pid}/root{STATE_DIR}/runs/{fleet.run_id}/status.json")

    def status_of() -> dict:
        return json.loads(path.read_text()) if path.exists() else {}

    def send(name: str, pid: int) -> None:
        with contextlib.suppress(BedError):  # the server is gone
            fleet.bed.exec(server, "kill", f"-{name}", str(pid), check=False)

    return holding.held(status_of, holding.measures(test, number), send)


def purged_tests(fleet: Fleet, server) -> list[tuple[str, int]]:
    """Test and attempt of every purge, in order."""
    return [(record["test"], record["attempt"]) for record in fleet.journal(server, "purge")]


def test_killed_playbook_is_attached_to(fleet):
    """SIGKILL of ansible-playbook in the middle of a round: the job goes on by itself, a second play reports."""
    server = fleet.bed.servers[0]
    play = fleet.start()
    try:
        with held_in(fleet, server, "second"):
            kill_group(play)
            assert fleet.status(server)["state"] == "running"
    finally:
        kill_group(play)
    code, output = fleet.play()
    assert code == 0, output
    assert fleet.verdicts() == {server.name: ["pass"]}
    wait_for("clean server", lambda: not left_behind(fleet.bed, server))
    assert purged_tests(fleet, server) == [("first", 1), ("second", 1)]
    assert len(fleet.journal(server, "job_started")) == 1


def test_job_finishes_and_restores_without_a_controller(bed, tmp_path, request):
    """After the playbook's death nobody asks, and the host still gets its settings back."""
    fleet = a_run(bed, tmp_path, request, PLAN[1:])
    server = fleet.bed.servers[0]
    play = fleet.start()
    try:
        with held_in(fleet, server, "second", number=2):
            kill_group(play)
    finally:
        kill_group(play)
    wait_for("end of the job", lambda: fleet.status(server)["state"] == "finished")
    assert fleet.status(server)["restored"] is True
    wait_for("clean server", lambda: not left_behind(fleet.bed, server))
    code, output = fleet.play()
    assert code == 0, output
    assert fleet.verdicts() == {server.name: ["pass"]}


def test_killed_host_job_starts_its_test_again(fleet):
    """SIGKILL of the host job: no fio survives, locks are free, settings come back, only the broken test
    is done again.
    """
    server = fleet.bed.servers[0]
    play = fleet.start()
    try:
        with held_in(fleet, server, "second") as status:
            fleet.bed.exec(server, "kill", "-KILL", str(status["pid"]))
        wait_for("end of fio", lambda: not processes(fleet.bed, server, "fio"))
        wait_for("free locks", lambda: not held_locks(fleet.bed, server))
        if fleet.bed.systemd:
            wait_for("restored server", lambda: not left_behind(fleet.bed, server))
        # The play that watched must not take a dead job for a good one.
        wait_for_end(play, "the play that watched")
        assert play.returncode != 0
    finally:
        kill_group(play)
    code, output = fleet.play()
    assert code == 0, output
    assert fleet.verdicts() == {server.name: ["pass"]}
    assert purged_tests(fleet, server) == [("first", 1), ("second", 1), ("second", 2)]
    wait_for("clean server", lambda: not left_behind(fleet.bed, server))


def test_restore_puts_a_dead_jobs_host_back(fleet):
    """restore.yml refuses while the job lives; once it is dead, the settings are back after it."""
    server = fleet.bed.servers[0]
    play = fleet.start()
    try:
        with held_in(fleet, server, "first") as status:
            code, output = fleet.play("restore")
            assert code != 0, output
            fleet.bed.exec(server, "kill", "-KILL", str(status["pid"]))
        wait_for("end of fio", lambda: not processes(fleet.bed, server, "fio"))
    finally:
        kill_group(play)
    code, output = fleet.play("restore")
    assert code == 0, output
    wait_for("clean server", lambda: not left_behind(fleet.bed, server))
    assert fleet.status(server)["restored"] is True
    # Without systemd nobody noted what the dead job left on the drive, so it is that run's alone, and only that run may
    # go on with it.
    code, output = fleet.play()
    assert code == 0, output


def test_stop_ends_cleanly(bed, tmp_path, request):
    """stop.yml: fio gone, host restored, the unfinished test counts as invalid: interrupted."""
    fleet = a_run(bed, tmp_path, request, [PLAN[0], short_test("second", runtime_s=HOUR_S)])
    server = fleet.bed.servers[0]
    play = fleet.start()
    try:
        wait_for("second test", lambda: in_cell(fleet, server, "second"))
        code, output = fleet.play("stop")
        assert code == 0, output
        wait_for("clean server", lambda: not left_behind(fleet.bed, server))
        assert fleet.status(server)["state"] == "stopped"
        wait_for_end(play, "the play that watched")
        assert play.returncode != 0
    finally:
        kill_group(play)
    drive = fleet.summary()["drives"][0]
    tests = {test["test"]: test for test in drive["tests"]}
    assert drive["verdict"] == "invalid"
    assert tests["first"]["verdict"] == "pass"
    assert tests["second"]["verdict"] == "invalid"
    assert "interrupted" in " ".join(tests["second"]["reasons"])


def test_host_that_goes_away(three_servers, tmp_path, request):
    """One server dies in the middle: the others finish, its drive is not tested, the play fails. Last user of that
    server.
    """
    fleet = a_run(three_servers, tmp_path, request, PLAN)
    lost = three_servers.servers[2]
    play = fleet.start()
    try:
        with held_in(fleet, lost, "second"):
            three_servers.kill(lost)
        wait_for_end(play, "the play")
        assert play.returncode != 0
    finally:
        kill_group(play)
    assert fleet.verdicts() == {"server1": ["pass"], "server2": ["pass"], "server3": ["not_tested"]}
    wait_for("clean server", lambda: not left_behind(three_servers, three_servers.servers[0]))


def test_first_host_unreachable(three_servers, tmp_path, request):
    """The judge runs once and elsewhere, so it does not need the first host; the others are measured."""
    fleet = a_run(three_servers, tmp_path, request, PLAN[:1])
    fleet.set_host("server1", ansible_host=NOBODY)
    code, output = fleet.play("qualify", "--limit", "server1,server2")
    assert code != 0, output
    assert fleet.verdicts() == {"server1": ["not_tested"], "server2": ["pass"]}


def test_all_hosts_unreachable(three_servers, tmp_path, request):
    """Nobody answers: the play fails, and report.yml says so for every drive."""
    fleet = a_run(three_servers, tmp_path, request, PLAN[:1])
    for name in ("server1", "server2", "server3"):
        fleet.set_host(name, ansible_host=NOBODY)
    code, output = fleet.play()
    assert code != 0, output
    code, output = fleet.play("report")
    assert code != 0, output
    assert fleet.verdicts() == {name: ["not_tested"] for name in ("server1", "server2", "server3")}


def test_limit_asks_only_for_what_it_names(three_servers, tmp_path, request):
    """With --limit the run is about these hosts, and passes when they do."""
    fleet = a_run(three_servers, tmp_path, request, PLAN[:1])
    code, output = fleet.play("qualify", "--limit", "server2")
    assert code == 0, output
    assert fleet.verdicts() == {"server2": ["pass"]}
