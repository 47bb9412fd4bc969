# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import locks
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.locks import (
    Lock,
    Locked,
    UntrustedLock,
    drive_lock,
    host_lock,
    look_lock,
)

HOLDER = """
import fcntl, os, sys, time
handle = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.flock(handle, fcntl.LOCK_EX)
os.write(handle, b'{"run": "other"}')
print("held", flush=True)
time.sleep(60)
"""


def test_a_second_owner_is_told_who_holds_it_and_the_file_goes_with_the_holder(tmp_path):
    with Lock("host", {"run": "first"}, str(tmp_path)):
        with pytest.raises(Locked, match="first"):
            Lock("host", {"run": "second"}, str(tmp_path)).acquire()
        assert os.listdir(tmp_path) == ["host.lock"]
    assert os.listdir(tmp_path) == []


def test_a_patient_owner_gets_it_when_the_first_lets_go(tmp_path):
    first = Lock("start", {"run": "first"}, str(tmp_path)).acquire()
    threading.Timer(0.3, first.release).start()
    began = time.monotonic()
    Lock("start", {"run": "second"}, str(tmp_path)).acquire(wait_s=10).release()
    assert 0.2 < time.monotonic() - began < 5


def test_the_kernel_frees_the_lock_of_a_killed_owner(tmp_path):
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path / "host.lock")], stdout=subprocess.PIPE)
    assert holder.stdout.readline() == b"held\n"
    with pytest.raises(Locked, match="other"):
        Lock("host", {}, str(tmp_path)).acquire()
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    with Lock("host", {"run": "next"}, str(tmp_path)):
        assert "next" in (tmp_path / "host.lock").read_text()


ORDERS = [("look", "host", "drive"), ("host", "look", "drive"), ("drive", "look", "host")]


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o022, 0o077])
@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_folders_and_files_are_their_owners_alone_in_every_order(tmp_path, monkeypatch, order, umask):
    monkeypatch.setattr(locks, "LOCK_DIR", str(tmp_path / "run" / "ssdlab-fleet"))
    made = {"look": look_lock("sda"), "host": host_lock({}), "drive": drive_lock("S", {})}
    before = os.umask(umask)
    try:
        for kind in order:
            with made[kind]:
                for folder, _folders, names in os.walk(tmp_path / "run"):
                    assert os.stat(folder).st_mode & 0o7777 == 0o700
                    assert {os.stat(os.path.join(folder, name)).st_mode & 0o7777 for name in names} <= {0o600}
    finally:
        os.umask(before)


def test_a_look_closes_the_folder_that_an_earlier_version_left_open(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "LOCK_DIR", str(tmp_path / "ssdlab-fleet"))
    (tmp_path / "ssdlab-fleet").mkdir(mode=0o755)
    with look_lock("sda"):
        assert os.stat(tmp_path / "ssdlab-fleet").st_mode & 0o7777 == 0o700


def foreign(path):
    os.chown(path, 65534, 65534)


def open_to_all(path):
    os.chmod(path, 0o777)


def open_to_a_group(path):
    os.chown(path, 0, 65534)
    os.chmod(path, 0o775)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("disturb", [foreign, open_to_all, open_to_a_group])
@pytest.mark.parametrize("place", ["", "looks", "looks/sda.lock"])
def test_what_others_made_or_may_write_is_refused_at_once(tmp_path, monkeypatch, place, disturb):
    monkeypatch.setattr(locks, "LOCK_DIR", str(tmp_path / "ssdlab-fleet"))
    (tmp_path / "ssdlab-fleet" / "looks").mkdir(parents=True, mode=0o700)
    (tmp_path / "ssdlab-fleet" / "looks" / "sda.lock").touch(0o600)
    disturb(tmp_path / "ssdlab-fleet" / place)
    began = time.monotonic()
    with pytest.raises(UntrustedLock, match="make sure that no run is under way, then remove it"):
        look_lock("sda").acquire(wait_s=10)
    assert time.monotonic() - began < 5


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("mode", [0o1777, 0o777, 0o770])
def test_an_empty_folder_of_ours_is_closed_and_used(tmp_path, mode):
    """As a tmpfs that somebody mounted there: nobody came."""
    folder = tmp_path / "ssdlab-fleet"
    folder.mkdir()
    os.chown(folder, 0, 65534)
    os.chmod(folder, mode)
    with Lock("host", {}, str(folder)):
        assert os.stat(folder).st_mode & 0o7777 == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_an_open_folder_with_something_in_it_stays_refused(tmp_path):
    folder = tmp_path / "ssdlab-fleet"
    folder.mkdir()
    (folder / "host.lock").touch(0o600)
    os.chmod(folder, 0o1777)
    for _again in range(2):
        with pytest.raises(UntrustedLock, match="mode 1777"):
            Lock("host", {}, str(folder)).acquire()


@pytest.mark.parametrize("state, told", [("D", True), ("S", False), ("R", False)])
def test_a_holder_that_waits_in_the_kernel_is_named(tmp_path, monkeypatch, state, told):
    stat = tmp_path / "stat"
    began_ticks = int((float(Path("/proc/uptime").read_text().split()[0]) - 600) * os.sysconf("SC_CLK_TCK"))
    stat.write_text(f"7 (nvme) a) {state} 1 7 7 0 {'0 ' * 14}{began_ticks} 0")
    monkeypatch.setattr(locks.glob, "glob", lambda pattern: [str(stat)] if pattern.endswith("/stat") else [])
    with Lock("host", {"pid": 7}, str(tmp_path)), pytest.raises(Locked) as refused:
        Lock("host", {"pid": 8}, str(tmp_path)).acquire()
    said = re.search(r"PID 7 \(nvme\) a\), begun (\d+) s ago, is in uninterruptible sleep", str(refused.value))
    assert bool(said) is told and (not said or 600 <= int(said[1]) < 700)


def test_a_lock_file_that_is_none(tmp_path):
    (tmp_path / "host.lock").symlink_to(tmp_path / "other")
    with pytest.raises(OSError):
        Lock("host", {}, str(tmp_path)).acquire()
    (tmp_path / "host.lock").unlink()
    os.mkfifo(tmp_path / "host.lock", 0o600)
    with pytest.raises(UntrustedLock, match="is not what this collection created"):
        Lock("host", {}, str(tmp_path)).acquire()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_user_who_may_not_lock_is_told_at_once(monkeypatch):
    """As `discover` without root, on a host where root has looked before."""
    with tempfile.TemporaryDirectory() as folder:  # tmp_path lies where only root gets to
        os.chmod(folder, 0o755)
        monkeypatch.setattr(locks, "LOCK_DIR", os.path.join(folder, "ssdlab-fleet"))
        look_lock("sda").acquire().release()
        for mode in (0o700, 0o755):
            os.chmod(locks.LOCK_DIR, mode)
            pid = os.fork()
            if pid == 0:
                os._exit(_locks_as_a_user())
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def _locks_as_a_user():
    """0 where the lock was refused for want of rights, within a second."""
    began = time.monotonic()
    os.setresuid(65534, 65534, 65534)
    try:
        look_lock("sda").acquire(wait_s=10)
    except PermissionError:
        return 0 if time.monotonic() - began < 1 else 1
    except BaseException:
        return 2
    return 3


def test_a_lock_whose_file_was_removed_is_taken_again_and_never_another_ones(tmp_path):
    """Somebody empties /run: the living job takes its lock anew, and what another has taken meanwhile stays his."""
    first, second = (Lock("host", {"run": name}, str(tmp_path)) for name in ("first", "second"))
    first.acquire()
    first.renew()
    os.unlink(first.path)
    first.renew()
    with pytest.raises(Locked, match="first"):
        second.acquire()
    os.unlink(first.path)
    second.acquire()
    with pytest.raises(Locked, match="second"):
        first.renew()
    first.release()
    assert "second" in (tmp_path / "host.lock").read_text()
    with pytest.raises(Locked, match="second"):
        first.acquire()
    second.release()
    assert os.listdir(tmp_path) == []


def test_a_lock_that_can_not_say_whose_it_is_is_not_held(tmp_path, monkeypatch):
    """/run is full."""

    def full(*_args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(OSError, match="No space left on device: .*host.lock"):
        Lock("host", {"run": "first"}, str(tmp_path)).acquire()
    monkeypatch.undo()
    Lock("host", {"run": "second"}, str(tmp_path)).acquire().release()
    assert os.listdir(tmp_path) == []
