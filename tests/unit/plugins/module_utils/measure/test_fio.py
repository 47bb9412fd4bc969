# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import gzip
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
