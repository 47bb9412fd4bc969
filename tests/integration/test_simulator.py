# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulated SSD as a block device, with real fio (root, loop, FUSE)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import simulated_ssd as simulator
from simulated_drives import FIGURES, MIB, SIZE
from waiting import wait_for_end, wait_until

NULL_PLUGIN = ["null", f"size={SIZE}"]


def fio(device, *options):
    """Run fio; its one job's read and write figures."""
    argv = [
        "fio",
        "--name=job",
        f"--filename={device}",
        "--direct=1",
        "--thread",
        "--ioengine=libaio",
        "--output-format=json",
        "--randrepeat=0",
        *options,
    ]
    result = subprocess.run(argv, capture_output=True, text=True, check=True)
    return json.loads(result.stdout)["jobs"][0]


def rounds(device, rw, count, queue_depth=16, seconds=1):
    options = [
        f"--rw={rw}",
        "--bs=4k",
        f"--iodepth={queue_depth}",
        "--time_based",
        f"--runtime={seconds}",
        "--norandommap",
    ]
    return [fio(device, *options)["read" if rw == "randread" else "write"]["iops"] for _round in range(count)]


def overwrite(device, times):
    return fio(device, "--rw=write", "--bs=128k", "--iodepth=8", f"--loops={times}")["write"]


def leftovers(directory):
    """Whatever still refers to the directory: loop devices, mounts, living processes' arguments."""
    text = str(directory)
    found = [
        str(path) for path in Path("/sys/block").glob("loop*/loop/backing_file") if path.read_text().startswith(text)
    ]
    found += [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if text in line]
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = entry.read_bytes().decode(errors="replace").replace("\0", " ")
        except OSError:
            continue
        if command.startswith("nbd") and text in command:
            found.append(command)
    return found


@pytest.fixture(autouse=True)
def no_drive_stays(tmp_path):
    """A test that fails leaves none either."""
    yield
    lines = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if f" {tmp_path}/" in line]
    for mount in (Path(line.split()[4]) for line in lines):
        simulator.destroy(mount.parent)


def plugin(**changes):
    return simulator.model_plugin(size_bytes=SIZE, **{**FIGURES, **changes})


@pytest.fixture(name="drive")
def fixture_drive(tmp_path):
    directory = tmp_path / "drives"
    with simulator.simulated_ssd(directory, "drive", plugin()) as record:
        yield record
    assert not leftovers(directory) and not directory.exists()


@pytest.mark.exclusive(depth=16, iops=500)
def test_fresh_then_worn_then_fresh_after_a_discard(drive):
    device = drive["device"]
    assert rounds(device, "randwrite", 1)[0] == pytest.approx(2500, rel=0.05)
    taken = overwrite(device, 2)
    assert taken["bw_bytes"] == pytest.approx(32e6, rel=0.05)
    assert taken["runtime"] < 2000, "two passes over a small drive take a second or so"
    worn = rounds(device, "randwrite", 6)
    assert worn == pytest.approx([500] * 6, rel=0.03)
    assert rounds(device, "randwrite", 1, queue_depth=1)[0] == pytest.approx(500, rel=0.04)
    subprocess.run(["blkdiscard", device], check=True)
    assert Path(device).read_bytes() == bytes(SIZE), "discarded blocks read zeros"
    assert rounds(device, "randwrite", 1)[0] == pytest.approx(2500, rel=0.05)


@pytest.mark.exclusive(depth=16, iops=500)
def test_zeros_written_are_no_discard(drive):
    device = drive["device"]
    overwrite(device, 2)
    subprocess.run(["blkdiscard", "--zeroout", device], check=True)
    assert Path(device).read_bytes() == bytes(SIZE)
    assert rounds(device, "randwrite", 1)[0] == pytest.approx(500, rel=0.05)


@pytest.mark.exclusive(depth=16, iops=1000)
def test_read_limit_is_the_drives_and_not_this_machines(drive, tmp_path):
    with simulator.simulated_ssd(tmp_path / "null", "null", NULL_PLUGIN) as unlimited:
        ceiling = rounds(unlimited["device"], "randread", 1)[0]
        limited = rounds(drive["device"], "randread", 3)
    assert limited == pytest.approx([1000] * 3, rel=0.03)
    assert ceiling > 4 * 1000


def cpu_s(record):
    """CPU seconds that the drive's processes have taken."""
    pids = (record["pid"], int(Path(record["backing_file"]).parent.with_suffix(".pid").read_text()))
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(field[11]) + int(field[12]) for field in fields) / os.sysconf("SC_CLK_TCK")


def cpu_in(record, seconds):
    """CPU seconds that the drive's processes take in the next `seconds`."""
    before_s = cpu_s(record)
    time.sleep(seconds)
    return cpu_s(record) - before_s


def test_waiting_costs_no_cpu(drive):
    overwrite(drive["device"], 2)
    before_s = cpu_s(drive)
    rounds(drive["device"], "randwrite", 1, seconds=2)
    assert cpu_s(drive) - before_s < 0.8, "of the 4 seconds that two busy processes would take"


@pytest.mark.parametrize("ends", ["by itself", "killed", "with its session's signal"])
def test_an_idle_drive_takes_no_cpu_once_its_creator_has_ended(tmp_path, ends):
    """And it serves on, as nothing of it depends on who made it."""
    how = {
        "by itself": "",
        "killed": "os.kill(os.getpid(), signal.SIGKILL)",
        "with its session's signal": "os.killpg(0, signal.SIGTERM)",
    }
    script = (
        "import json, os, signal, sys, simulated_ssd as s\n"
        f"print(json.dumps(s.create(sys.argv[1], 'drive', {plugin()!r})), flush=True)\n" + how[ends]
    )
    made = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(simulator.HERE)},
        capture_output=True,
        text=True,
        start_new_session=True,
        check=False,
    )
    record = json.loads(made.stdout)
    try:
        # udev may still read the new device; a server that polls without end never has such seconds.
        wait_until(lambda: cpu_in(record, 2) <= 0.05, "an idle drive", stall_s=60)
        assert rounds(record["device"], "randwrite", 1)[0] > 0
    finally:
        for _time in range(2):
            simulator.destroy(tmp_path)
    assert not leftovers(tmp_path) and not tmp_path.exists()


def test_data_survives_on_4096_byte_sectors(tmp_path):
    fast = plugin(fresh_iops=8000, steady_iops=8000, read_iops=8000)
    with simulator.simulated_ssd(tmp_path / "drives", "drive", fast, sector_size=4096) as record:
        size = Path("/sys/block", Path(record["device"]).name, "queue/logical_block_size").read_text()
        assert int(size) == 4096
        done = fio(
            record["device"],
            "--rw=randwrite",
            "--bs=4k,4k,4k",
            "--iodepth=16",
            "--verify=crc32c",
            "--verify_fatal=1",
            "--verify_state_save=0",
        )
    assert done["read"]["io_bytes"] == SIZE and done["error"] == 0


def test_a_killed_creators_drive_is_found_and_destroyed(tmp_path):
    directory = tmp_path / "drives"
    script = (
        "import os, signal, sys, simulated_ssd as s\n"
        f"with s.simulated_ssd(sys.argv[1], 'drive', {NULL_PLUGIN!r}):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    child = subprocess.run(
        [sys.executable, "-c", script, str(directory)],
        env={**os.environ, "PYTHONPATH": str(simulator.HERE)},
        check=False,
    )
    assert child.returncode == -signal.SIGKILL
    assert leftovers(directory)
    simulator.destroy(directory)
    assert not leftovers(directory) and not directory.exists()


@pytest.mark.parametrize("lost", ["drive.json", "drive.pid"])
def test_destroy_without_its_files(tmp_path, lost):
    simulator.create(tmp_path, "drive", NULL_PLUGIN)
    (tmp_path / lost).unlink()
    simulator.destroy(tmp_path)
    assert not leftovers(tmp_path)


@pytest.mark.parametrize("killed", ["nbdfuse", "nbdkit"])
def test_destroy_after_a_process_was_killed(tmp_path, killed):
    record = simulator.create(tmp_path, "drive", NULL_PLUGIN)
    pids = {"nbdfuse": record["pid"], "nbdkit": int((tmp_path / "drive.pid").read_text())}
    os.kill(pids[killed], signal.SIGKILL)
    simulator.destroy(tmp_path)
    assert not leftovers(tmp_path)


def contents(directory):
    return {
        path.name: os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else path.is_dir()
        for path in directory.iterdir()
    }


def test_destroy_takes_nothing_of_others(tmp_path):
    """It runs as root, on any folder that it is given."""
    elsewhere = tmp_path / "elsewhere"
    simulator.create(elsewhere, "copied", NULL_PLUGIN)
    record = (elsewhere / "copied.json").read_text()
    folder = tmp_path / "drives"
    folder.mkdir()
    for name, text in {
        "package.json": '{"name": "package"}',
        "package.log": "theirs",
        "package.pid": "1",
        "list.json": "[]",
        "number.json": "1",
        "empty.json": "",
        "binary.json": "\udcff",
        "deep.json": "[" * 4000,
        "copied.json": record,
        "made.json": json.dumps({"name": "made", "device": None, "backing_file": f"{folder}/made/drive", "pid": None}),
        "made.log": "theirs",
    }.items():
        (folder / name).write_text(text, errors="surrogateescape")
    (folder / "link.json").symlink_to(elsewhere / "copied.json")
    (folder / "dangling.json").symlink_to("nowhere")
    (folder / "folder.json").mkdir()
    (folder / "package").mkdir()
    os.mkfifo(folder / "pipe.json")
    (folder / "real.json.new").symlink_to("nowhere else")
    theirs = contents(folder)
    simulator.create(folder, "real", NULL_PLUGIN)
    for name in ("package", "real", None, None):
        simulator.destroy(folder, name)
    assert contents(folder) == theirs and not leftovers(folder)
    assert Path(elsewhere / "copied" / "drive").is_file() and (elsewhere / "copied.json").read_text() == record
    # A record of another user's is none of ours.
    os.chown(elsewhere / "copied.json", 12345, 12345)
    (folder / "other.json").write_text(record.replace(f"{elsewhere}/copied", f"{folder}/other"))
    os.chown(folder / "other.json", 12345, 12345)
    simulator.destroy(folder)
    assert (folder / "other.json").exists()
    simulator.destroy(elsewhere)
    assert not leftovers(elsewhere) and [path.name for path in elsewhere.iterdir()] == ["copied.json"]


@pytest.mark.parametrize("taken", ["one", "one.json", "one.log", "one.pid", "one.socket"])
def test_create_overwrites_nothing(tmp_path, taken):
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / taken).symlink_to(precious)
    with pytest.raises(simulator.SimulatorError, match=f"{taken} exists: "):
        simulator.create(tmp_path, "one", NULL_PLUGIN)
    assert contents(tmp_path) == {"precious": b"mine", taken: str(precious)}


def test_a_folder_with_a_long_name_will_do(tmp_path):
    """Longer than a socket's path may be."""
    folder = tmp_path / ("long" * 30)
    with simulator.simulated_ssd(folder, "drive", NULL_PLUGIN) as record:
        assert len(Path(record["device"]).read_bytes()) == SIZE
        assert not (folder / "drive.socket").exists()
    assert not folder.exists()


def test_failed_creation_leaves_nothing(tmp_path):
    with pytest.raises(
        simulator.SimulatorError, match=r"drive bad: nbdkit did not start: (?s:.*)fresh_iops must be above 0"
    ):
        simulator.create(tmp_path / "drives", "bad", plugin(fresh_iops=0))
    assert not leftovers(tmp_path) and not (tmp_path / "drives").exists()


def test_device_in_use_is_named_and_kept_until_released(tmp_path, monkeypatch):
    record = simulator.create(tmp_path, "drive", NULL_PLUGIN)
    monkeypatch.setattr(simulator, "TIMEOUT_S", 0.3)
    with open(record["device"], "rb"):
        with pytest.raises(simulator.SimulatorError, match=f"drive drive: {record['device']} is still held"):
            simulator.destroy(tmp_path)
    monkeypatch.undo()
    simulator.destroy(tmp_path)
    assert not leftovers(tmp_path)


def test_command_line(tmp_path):
    command = [str(simulator.HERE.parent / "simulated-ssd")]
    directory = str(tmp_path / "drives")
    made = subprocess.run(
        [*command, "create", "one", "--size", "8MiB", "--dir", directory], capture_output=True, text=True, check=True
    )
    record = json.loads(made.stdout)
    assert os.path.getsize(record["backing_file"]) == 8 * MIB and Path(record["device"]).is_block_device()
    again = subprocess.run([*command, "create", "one", "--dir", directory], capture_output=True, text=True, check=False)
    assert again.returncode == 1 and "destroy it first" in again.stderr
    for _time in range(2):
        subprocess.run([*command, "destroy", "--dir", directory], check=True)
    assert not leftovers(tmp_path)


def test_sigterm_during_creation_leaves_nothing(tmp_path):
    directory = tmp_path / "drives"
    reached = (
        directory.exists,
        lambda: any(directory.iterdir()),
        lambda: str(directory) in Path("/proc/self/mountinfo").read_text(),
    )
    for moment in reached:
        child = subprocess.Popen(
            [sys.executable, str(simulator.HERE / "simulated_ssd.py"), "create", "one", "--dir", str(directory)]
        )
        wait_until(lambda: moment() or child.poll() is not None, "the moment", poll_s=0.005)
        child.terminate()
        wait_for_end(child)
        simulator.destroy(directory)
        assert not leftovers(directory)


def test_a_signal_waits_until_a_child_has_its_own_name():
    """Between fork and exec it is no nbdkit yet, and nothing that takes a drive down would find it."""
    begun = []
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), simulator.signals_held():
            signal.raise_signal(signal.SIGTERM)
            begun.append("the child")
    finally:
        signal.signal(signal.SIGTERM, before)
    assert begun == ["the child"]
