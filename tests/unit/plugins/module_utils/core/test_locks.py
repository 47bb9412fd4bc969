# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.locks import Lock, Locked

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
    monkeypatch.setattr(os, "pwrite", lambda *_args: (_ for _ in ()).throw(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))))
    with pytest.raises(OSError, match="No space left on device: .*host.lock"):
        Lock("host", {"run": "first"}, str(tmp_path)).acquire()
    monkeypatch.undo()
    Lock("host", {"run": "second"}, str(tmp_path)).acquire().release()
    assert os.listdir(tmp_path) == []
