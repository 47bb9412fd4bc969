# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import glob
import gzip
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import fio

VALUES = {"device": "/dev/nvme0n1", "numa_node": None, "seed": 7}


def test_placeholders_are_filled_and_lines_without_a_value_go():
    job = "filename=@ssd_device@\nnuma_mem_policy=prefer:@ssd_numa_node@\nrandseed=@ssd_seed@\n"
    assert fio.fill(job, VALUES) == "filename=/dev/nvme0n1\nrandseed=7\n"


def test_an_unknown_placeholder_is_an_error():
    with pytest.raises(ValueError, match="@ssd_devise@"):
        fio.fill("filename=@ssd_devise@", VALUES)


@pytest.fixture
def fake_fio(tmp_path):
    """A stand-in for fio: says its pid, then sleeps; only the process handling is under test here."""
    path = tmp_path / "fio"
    path.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 60\n")
    path.chmod(0o755)
    return path


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def alive(pid):
    try:
        return open(f"/proc/{pid}/stat").read().split()[2] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    "line",
    [
        "include other.fio",
        "include\tother.fio",
        "include=other.fio",
        "filename=/dev/sdb",
        "exec_prerun = dd",
        "directory=/",
    ],
)
def test_a_job_that_names_more_than_the_drive_is_a_stray(line):
    job = "[cell]\nfilename=/dev/sda\nrw=write\n"
    assert fio.strays(job, "/dev/sda") == []
    assert fio.strays(job + line + "\n", "/dev/sda") == [line]


def test_a_stop_ends_fio(fake_fio, tmp_path):
    stop = threading.Event()
    threading.Thread(target=lambda: (wait_for((tmp_path / "pid").exists), stop.set())).start()
    with pytest.raises(fio.Interrupted):
        fio.Runner(stop, str(fake_fio)).run(str(tmp_path / "x.fio"), str(tmp_path / "x.json"))
    assert not alive(int((tmp_path / "pid").read_text()))


def test_a_run_ticks_as_often_as_it_is_asked(tmp_path):
    path, ticks = tmp_path / "fio", []
    path.write_text("#!/bin/sh\nexec sleep 1\n")
    path.chmod(0o755)
    runner = fio.Runner(threading.Event(), str(path))
    runner.run(str(tmp_path / "x.fio"), str(tmp_path / "x.json"), lambda: ticks.append(time.monotonic()), tick_s=0.05)
    # Never sooner, and on a busy machine later.
    assert ticks and all(after - before >= 0.05 for before, after in zip(ticks, ticks[1:]))


PARENT = """
import sys, threading
sys.path.insert(0, sys.argv[1])
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import fio
fio.Runner(threading.Event(), sys.argv[2]).run(sys.argv[3], sys.argv[3] + ".json")
"""


def test_fio_dies_with_a_parent_that_is_killed(fake_fio, tmp_path):
    path = fio.__file__.split("ansible_collections", maxsplit=1)[0]
    parent = subprocess.Popen([sys.executable, "-c", PARENT, path, str(fake_fio), str(tmp_path / "x")])
    wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip())
    pid = int((tmp_path / "pid").read_text())
    assert alive(pid)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    wait_for(lambda: not alive(pid))


# Says when it starts, and how: it copies its job to its output, as fio reads a job file or its standard input.
COPYING = """#!/bin/sh
for word; do case $word in --output=*) out=${{word#--output=}};; esac; last=$word; done
echo "$last" >> {log}
[ "$last" = - ] && exec cat > "$out"
cat "$last" > "$out"
"""


class Copying:
    """Runs jobs by such a stand-in."""

    def __init__(self, folder, **options):
        self._folder, self.log = folder, folder / "log"
        path = folder / "fio"
        path.write_text(COPYING.format(log=self.log))
        path.chmod(0o755)
        self.runner = fio.Runner(threading.Event(), str(path), **options)

    def run(self, name, **options):
        """The output of a job."""
        job, out = self._folder / f"{name}.fio", self._folder / f"{name}.json"
        job.write_text(f"[{name}]\n")
        assert self.runner.run(str(job), str(out), **options) == (0, "")
        return out.read_text()

    def started(self):
        return self.log.read_text().split()


def test_the_next_fio_starts_while_one_runs_and_gets_its_job_once_it_is_due(tmp_path):
    copying = Copying(tmp_path, starts_early=True)
    assert [copying.run(name, followed=True) for name in "abc"] == ["[a]\n", "[b]\n", "[c]\n"]
    wait_for(lambda: len(copying.started()) == 4)
    assert copying.started() == [str(tmp_path / "a.fio"), "-", "-", "-"]
    copying.runner.close()
    # Nothing is left of the fio that got no job.
    assert sorted(path.name for path in tmp_path.glob("*.json")) == ["a.json", "b.json", "c.json"]
    assert list(tmp_path.glob(".next*")) == []
    assert copying.run("d") == "[d]\n" and copying.started()[4:] == [str(tmp_path / "d.fio")]


@pytest.mark.parametrize(("early", "followed"), [(False, True), (True, False)])
def test_no_fio_is_started_early_where_nothing_follows_or_its_thread_may_end(tmp_path, early, followed):
    copying = Copying(tmp_path, starts_early=early)
    assert copying.run("a", followed=followed) == "[a]\n"
    assert copying.run("b", followed=followed) == "[b]\n"
    assert copying.started() == [str(tmp_path / "a.fio"), str(tmp_path / "b.fio")]


def test_a_waiting_fio_that_somebody_killed_is_told(tmp_path):
    copying = Copying(tmp_path, starts_early=True)
    pids = []
    copying.run("a", followed=True)
    wait_for(lambda: len(copying.started()) == 2)
    for path in glob.glob("/proc/self/task/*/children"):
        pids += [int(pid) for pid in open(path).read().split() if b"cat" in open(f"/proc/{pid}/cmdline", "rb").read()]
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    assert len(pids) == 1
    with pytest.raises(fio.Killed, match="signal 9"):
        copying.run("b", followed=True)
    copying.runner.close()


def test_raw_output_is_there_whole_whatever_becomes_of_its_compression(tmp_path):
    path = tmp_path / "x.json"
    path.write_text("{}\n" * 9)
    (tmp_path / ".x.json.gz").mkdir()
    with pytest.raises(OSError):
        fio.compress(str(path))
    assert fio.read_output(str(path)) == "{}\n" * 9 and not (tmp_path / "x.json.gz").exists()
    (tmp_path / ".x.json.gz").rmdir()
    fio.compress(str(path))
    assert gzip.decompress((tmp_path / "x.json.gz").read_bytes()).decode() == "{}\n" * 9
    assert [found.name for found in tmp_path.iterdir()] == ["x.json.gz"]


def test_a_fio_that_wrote_nothing_leaves_nothing(tmp_path):
    assert fio.read_output(str(tmp_path / "x.json")) == ""
    fio.compress(str(tmp_path / "x.json"))
    assert list(tmp_path.iterdir()) == []
