# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import errno
import fcntl
import os
import signal
import time

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.blocking_io import in_time
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.deadline import Hangs
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host


@pytest.fixture
def host(tmp_path):
    for name, text in {"governor": "powersave\n", "odd": "a \xe9\u2028\n"}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    os.mkfifo(tmp_path / "blocked")
    return Host(str(tmp_path))


def test_files_are_as_the_host_has_them(host):
    with in_time(host, 5) as patient:
        for path in ("/governor", "/odd"):
            assert (
                patient.read(path) == host.read(path)
                and patient.read_bytes(path) == host.read_bytes(path)
                and patient.get(path) == host.get(path)
            )
        patient.write("/governor", "performance")
        assert host.read("/governor") == patient.read("/governor") == "performance"
        assert patient.get("/absent") is None and patient.run(["true"]).rc == 0


def test_errors_are_the_kernels(host):
    with in_time(host, 5) as patient:
        for act in (lambda: patient.read("/absent"), lambda: patient.write("/absent", "1")):
            with pytest.raises(OSError) as told:
                act()
            assert told.value.errno == errno.ENOENT and told.value.filename == "/absent"
        assert patient.read("/governor") == "powersave"


@pytest.mark.parametrize(
    "act",
    [lambda host: host.read("/blocked"), lambda host: host.get("/blocked"), lambda host: host.write("/blocked", "1")],
)
def test_what_blocks_is_given_up_and_the_next_file_answers(host, act):
    began = time.monotonic()
    with in_time(host, 0.3) as patient:
        with pytest.raises(Hangs, match="no answer in 0.3 s from (reading|writing 1 to) /blocked"):
            act(patient)
        patient.patience_s = 60.0  # of a machine that is busy, for a file that does not block
        assert patient.read("/governor") == "powersave"
    assert time.monotonic() - began < 60


def test_where_the_child_was_ended_another_one_serves(host):
    """Such as by a signal to the whole group, which the job itself heeds in its own way."""
    with in_time(host, 5) as patient:
        patient.read("/governor")
        os.kill(patient._child.pid, signal.SIGKILL)
        patient.write("/governor", "performance")
        os.kill(patient._child.pid, signal.SIGKILL)
        assert patient.read("/governor") == "performance"


def test_the_child_holds_no_lock_of_ours(host, tmp_path):
    """It may stay for as long as the machine is up."""
    with open(tmp_path / "lock", "w") as lock:
        os.set_inheritable(lock.fileno(), True)
        fcntl.flock(lock, fcntl.LOCK_EX)
        with in_time(host, 5) as patient:
            patient.read("/governor")
            held = [
                os.readlink(f"/proc/{patient._child.pid}/fd/{fd}")
                for fd in os.listdir(f"/proc/{patient._child.pid}/fd")
            ]
    assert str(tmp_path / "lock") not in held


def test_a_host_that_starts_no_process_any_more_is_put_back_all_the_same(host, monkeypatch):
    def refuse(*_args, **_kwargs):
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr("subprocess.Popen", refuse)
    with in_time(host, 5) as patient:
        patient.write("/governor", "performance")
        assert patient.read("/governor") == "performance" and patient.get("/absent") is None
