# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A command is ended by another thread, with what it started."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import TIMED_OUT, Host, Running


def test_runs_an_argument_list_without_a_shell():
    seen = []
    result = Host(log=seen.append).run(
        [sys.executable, "-c", "import sys; print(sys.argv[1:]); sys.exit(3)", "$HOME; *"]
    )
    assert (result.rc, result.stdout) == (3, "['$HOME; *']\n")
    assert seen == [result.argv]


def test_every_command_and_destructive_ioctl_is_logged_before_it_starts(tmp_path, monkeypatch):
    log = tmp_path / "commands"
    monkeypatch.setenv("SSDLAB_FLEET_COMMAND_LOG", str(log))
    said = Host().run([sys.executable, "-c", "import sys; print(open(sys.argv[1]).read())", log]).stdout
    Host().run(["no-such-tool-here", "\n"])
    Host().note_ioctl("BLKDISCARD", "/dev/loop9", 0, 4096)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert json.loads(said) == lines[0] and lines[0][0] == sys.executable
    assert lines[1:] == [["no-such-tool-here", "\n"], ["ioctl", "BLKDISCARD", "/dev/loop9", "0", "4096"]]


def test_nothing_starts_that_cannot_be_logged(tmp_path, monkeypatch):
    monkeypatch.setenv("SSDLAB_FLEET_COMMAND_LOG", str(tmp_path / "none" / "log"))
    with pytest.raises(FileNotFoundError):
        Host().run(["touch", str(tmp_path / "ran")])
    assert not (tmp_path / "ran").exists()


def test_runs_in_the_c_locale_and_passes_stdin(monkeypatch):
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    code = "import os, sys; print(os.environ['LC_ALL'], sys.stdin.read())"
    assert Host().run([sys.executable, "-c", code], stdin="fed").stdout == "C fed\n"
    assert Host().run([sys.executable, "-c", code]).stdout == "C \n"


@pytest.mark.parametrize(
    "argv, rc",
    [(["no-such-tool-here"], 127), (["/etc"], 126), ([sys.executable, "-c", "import time; time.sleep(30)"], 124)],
)
def test_a_command_that_cannot_answer_is_told_by_its_code(argv, rc):
    started = time.monotonic()
    result = Host().run(argv, timeout_s=0.5)
    assert result.rc == rc and argv[0] in result.stderr
    assert time.monotonic() - started < 10


def test_finds_tools_that_a_plain_path_lacks(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert Host().which("sh") in ("/bin/sh", "/usr/bin/sh")
    assert Host().which("no-such-tool-here") is None


def test_everything_lies_under_the_root(tmp_path):
    host = Host(str(tmp_path))
    (tmp_path / "sys/devices/disk").mkdir(parents=True)
    (tmp_path / "sys/block").mkdir()
    (tmp_path / "sys/block/sda").symlink_to("../devices/disk")
    (tmp_path / "sys/devices/disk/size").write_text(" 42\n\0")
    assert host.read("/sys/block/sda/size") == "42"
    assert host.realpath("/sys/block/sda") == "/sys/devices/disk"
    assert host.readlink("/sys/block/sda") == "../devices/disk"
    assert host.glob("/sys/block/s*") == ["/sys/block/sda"]
    assert host.listdir("/sys/block") == ["sda"] and host.listdir("/none") == []
    assert host.exists("/sys/block/sda/size") and not host.exists("/etc/passwd")
    host.write("/sys/block/sda/size", "7")
    assert (tmp_path / "sys/devices/disk/size").read_text() == "7"


def test_write_never_makes_a_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        Host(str(tmp_path)).write("/sys/new", "1")
    assert not os.path.exists(str(tmp_path / "sys"))


def test_a_missing_or_empty_file_has_no_value(tmp_path):
    (tmp_path / "empty").write_text("\n")
    assert Host(str(tmp_path)).get("/empty") is None
    assert Host(str(tmp_path)).get("/missing") is None
    with pytest.raises(OSError):
        Host(str(tmp_path)).read("/missing")


def wrapper(folder):
    """A command that waits for a child of its own, whose pid is in a file by then; the file."""
    pid, gate = folder / "pid", folder / "gate"
    os.mkfifo(gate)
    return ["sh", "-c", f"cat {gate} & echo $! > {pid}.new; mv {pid}.new {pid}; wait"], pid


def is_gone(pid):
    try:
        return "State:\tZ" in Path("/proc", pid.read_text().strip(), "status").read_text()
    except FileNotFoundError:
        return True


def await_file(path):
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_its_children_end_with_it(tmp_path):
    argv, pid = wrapper(tmp_path)
    running, results = Running(Host(), argv), []
    thread = threading.Thread(target=lambda: results.append(running.run(300)))
    thread.start()
    await_file(pid)
    running.end()
    thread.join(60)
    assert [result.rc for result in results] == [-9] and is_gone(pid)


def test_its_children_end_with_its_time(tmp_path):
    argv, pid = wrapper(tmp_path)
    assert Running(Host(), argv).run(2).rc == TIMED_OUT
    await_file(pid)
    assert is_gone(pid)


def test_one_that_is_ended_before_it_starts_does_not_go_on():
    running = Running(Host(), ["sleep", "300"])
    running.end()
    assert running.run(60).rc == -9


def test_one_that_has_ended_is_not_ended_again():
    running = Running(Host(), ["true"])
    assert running.run(60).rc == 0
    running.end()
