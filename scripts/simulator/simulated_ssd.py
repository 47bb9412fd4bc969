# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Create and destroy simulated SSDs: nbdkit (model.py) -> nbdfuse (a file) -> a loop device with direct I/O.

Below one directory each drive NAME has:
  NAME/drive   the FUSE file behind the loop device: the drive's `backing_file`
  NAME.json    the record: written before anything is started, so that destroy finds what a killed creator left
  NAME.log     what nbdfuse said, and nbdkit until it served (then: syslog)
  NAME.pid     nbdkit's pid file
  NAME.socket  where nbdfuse finds nbdkit; gone once it has
  NAME.power   there from when its power was cut until the drive has noticed (cut_power)
Nothing of a drive needs its creator to live on. Standard library only: it runs before there is a virtual environment.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import traces

TOOLS = {
    "nbdfuse": "libnbd-bin (RHEL: libnbd)",
    "nbdkit": "nbdkit and nbdkit-plugin-python (RHEL: nbdkit-python-plugin)",
    "fusermount3": "fuse3",
    "losetup": "util-linux",
    "umount": "util-linux",
    "blockdev": "util-linux",
}
UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}
TIMEOUT_S = 15
END_TIMEOUT_S = 5
# nbdfuse has ten threads, and a request that sleeps holds one: the queue depth that the drive sees. Each has a
# connection of its own, and each connection so many of nbdkit's threads.
CONNECTIONS, THREADS = 10, 4
SUFFIXES = ("", ".json", ".log", ".pid", ".socket", ".power")
HERE = Path(__file__).resolve().parent


class SimulatorError(Exception):
    """A drive could not be made or taken down; the message says which and what to do."""


def parse_size(text):
    """Bytes of '64MiB', '1GiB', '512K' or '67108864'. Raises ValueError."""
    match = re.fullmatch(r"(\d+)\s*([KMG]?)(?:i?B)?", str(text).strip())
    if not match:
        raise ValueError(f"{text!r} is not a size like 64MiB")
    return int(match[1]) * UNITS[match[2]]


def model_plugin(
    size_bytes,
    fresh_iops,
    steady_iops,
    read_iops,
    write_bandwidth=64e6,
    read_bandwidth=128e6,
    noise_pct=2.0,
    seed=1,
    **more,
):
    """nbdkit's arguments for a drive after model.py (rates per second, bandwidths in bytes per second); more: what
    idling, scatter and latency do there, and its lies (lies.py).
    """
    settings = {
        "size_bytes": size_bytes,
        "fresh_iops": fresh_iops,
        "steady_iops": steady_iops,
        "read_iops": read_iops,
        "write_bandwidth": write_bandwidth,
        "read_bandwidth": read_bandwidth,
        "noise_pct": noise_pct,
        "seed": seed,
        **more,
    }
    return ["python", str(HERE / "nbdkit_plugin.py"), *(f"{key}={value}" for key, value in settings.items())]


def power_file(directory, name):
    """The file whose appearance cuts the power of a drive with a volatile cache."""
    return Path(directory).resolve() / f"{name}.power"


def cut_power(directory, name):
    """Have a drive that was made with cache_bytes and power_file lose what is in its volatile cache, before it does
    the next request.
    """
    power_file(directory, name).touch()


def create(directory, name, plugin, sector_size=512):
    """Make one drive and return its record: name, device, backing_file, pid.

    ``plugin``: nbdkit's arguments, usually from model_plugin(). Nothing is left behind when it fails.
    Raises SimulatorError.
    """
    _check_machine()
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise SimulatorError(f"drive name {name!r}: use letters, digits, '.', '_' and '-'")
    directory = Path(directory).resolve()
    directory.mkdir(parents=True, exist_ok=True)
    for path in (Path(f"{directory / name}{suffix}") for suffix in SUFFIXES):
        if os.path.lexists(path):
            raise SimulatorError(f"{path} exists: if it is of such a drive, destroy it first; else take another name")
    record = {"name": name, "device": None, "backing_file": str(directory / name / "drive"), "pid": None}
    traces.write_record(directory, name)
    try:
        (directory / name).mkdir()
        _start(directory, record, plugin)
        _attach(record, sector_size)
    except BaseException:
        destroy(directory, name)
        raise
    return record


def destroy(directory, name=None):
    """Take down the drive ``name``, or all below ``directory``, also what a killed creator left. Idempotent.

    Only what create() made: files, links and folders of others stay as they are.
    Raises SimulatorError when something stays, for example since a program still holds the device.
    """
    directory = Path(directory).resolve()
    # A mount without its record is ours too; another file system's mount is not.
    names = traces.recorded(directory) | {path.parent.name for path in traces.mounted_files(directory)}
    problems = []
    for each in sorted(names):
        if name in (None, each):
            try:
                _destroy_one(directory, each)
            except SimulatorError as error:
                problems.append(f"drive {each}: {error}")
    if problems:
        raise SimulatorError("; ".join(problems))
    with contextlib.suppress(OSError):
        directory.rmdir()


@contextlib.contextmanager
def simulated_ssd(directory, name, plugin, sector_size=512):
    """create() and, whatever happens in the block, destroy()."""
    record = create(directory, name, plugin, sector_size)
    try:
        yield record
    finally:
        destroy(directory, name)


def _start(directory, record, plugin):
    """Start nbdkit, which puts itself into the background, and nbdfuse.

    In the foreground nbdkit has itself sent SIGTERM once its parent ends, whatever its options say. By --run, where
    nbdfuse is its child, its main thread then polled without end: a whole CPU.
    """
    stem = str(directory / record["name"])
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONHOME"}
    environment.update(PYTHONPATH=str(HERE), PYTHONDONTWRITEBYTECODE="1")
    at = os.open(directory, os.O_PATH | os.O_DIRECTORY)
    # By way of the folder's handle: a socket's own path may have 107 bytes at most.
    socket = f"/proc/self/fd/{at}/{record['name']}.socket"
    nbdkit = ["nbdkit", "--unix", socket, "--pidfile", f"{stem}.pid", "--threads", str(THREADS), *plugin]
    # nbdfuse has several connections by a URI alone. Over one it keeps requests back until another is answered: on a
    # busy machine 16 in flight at 240 ms gave 6 to 7 of 10 reads a second.
    nbdfuse = ["nbdfuse", "-C", str(CONNECTIONS), "-o", f"fsname={traces.FILE_SYSTEM}", record["backing_file"]]
    try:
        with open(f"{stem}.log", "xb") as log:
            # A session of its own: Ctrl-C must reach the campaign first, not pull the drive from under it.
            settings = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log, "start_new_session": True}
            settings["pass_fds"] = [at]
            with contextlib.suppress(subprocess.TimeoutExpired):
                with signals_held():
                    served = subprocess.Popen(nbdkit, env=environment, **settings)
                if served.wait(TIMEOUT_S) == 0:
                    with signals_held():
                        fuse = subprocess.Popen([*nbdfuse, f"nbd+unix:///?socket={socket}"], **settings)
                    record["pid"] = fuse.pid
                    traces.poll(lambda: os.path.isfile(record["backing_file"]) or fuse.poll() is not None, TIMEOUT_S)
        if not os.path.isfile(record["backing_file"]):
            program = "nbdfuse" if record["pid"] else "nbdkit"
            said = Path(f"{stem}.log").read_text(errors="replace")[-500:]
            raise SimulatorError(f"drive {record['name']}: {program} did not start: {said}")
        # All connections are made: nobody else may come.
        os.unlink(f"{stem}.socket")
    finally:
        os.close(at)


@contextlib.contextmanager
def signals_held():
    """Keep SIGINT and SIGTERM back: one between a child's fork and its exec would leave a child that nothing names."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Python's handlers run in the main thread alone
        return
    came = []
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in handlers:
        signal.signal(number, lambda *received: came.append(received[0]))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number in came:
            signal.raise_signal(number)


def _attach(record, sector_size):
    record["device"] = _run(
        "losetup", "--find", "--show", "--direct-io=on", f"--sector-size={sector_size}", record["backing_file"]
    )
    _run("blockdev", "--setrw", record["device"])
    if Path("/sys/block", Path(record["device"]).name, "loop/dio").read_text().strip() != "1":
        raise SimulatorError(
            f"drive {record['name']}: the kernel refused direct I/O for {record['device']}; the page cache would "
            "hide the drive"
        )


def _destroy_one(directory, name):
    stem, mount = directory / name, directory / name
    backing_file, pid_file = f"{mount}/drive", f"{stem}.pid"
    for device in traces.loops(backing_file):
        _run("losetup", "--detach", device)
    if not traces.poll(lambda: not traces.loops(backing_file), TIMEOUT_S):
        raise SimulatorError(
            f"{', '.join(traces.loops(backing_file))} is still held by a program: end it and destroy again"
        )
    # With the loop device gone nothing of ours uses the file; udev or a scan may, for a moment.
    if not traces.poll(
        lambda: Path(backing_file) not in traces.mounted_files(directory) or traces.unmount(mount), TIMEOUT_S
    ):
        raise SimulatorError(f"{mount} can't be unmounted: it is in use")
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in traces.processes(backing_file, pid_file):
            traces.signal_process(pid, number, backing_file, pid_file)
        if traces.poll(lambda: not traces.processes(backing_file, pid_file), END_TIMEOUT_S):
            break
    else:
        raise SimulatorError(f"processes {traces.processes(backing_file, pid_file)} do not end")
    # Not empty or no folder: not as create() made it.
    with contextlib.suppress(OSError):
        mount.rmdir()
    traces.remove_files(directory, name)


def _run(*argv):
    result = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if result.returncode:
        raise SimulatorError(f"{' '.join(argv)}: {result.stderr.strip() or result.returncode}")
    return result.stdout.strip()


def _check_machine():
    # A login shell of a plain user lacks sbin, sudo may keep that.
    os.environ["PATH"] = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = [f"{tool} (package {package})" for tool, package in TOOLS.items() if not shutil.which(tool)]
    if missing:
        raise SimulatorError(f"missing: {', '.join(missing)}; scripts/setup demo installs them")
    if os.geteuid() != 0:
        raise SimulatorError("loop devices need root: run it with sudo")
    if not os.path.exists("/dev/fuse"):
        raise SimulatorError("/dev/fuse is missing: load the kernel's fuse module (modprobe fuse)")


def _arguments(argv):
    parser = argparse.ArgumentParser(
        prog="simulated-ssd",
        description="Simulated SSDs as loop devices: fresh, then worn in, fresh again after a discard.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("create", help="make a drive and print its record as JSON")
    make.add_argument("name")
    make.add_argument("--size", type=parse_size, default="12MiB", dest="size_bytes", metavar="12MiB")
    make.add_argument("--fresh-iops", type=float, default=600, help="4 KiB writes a second up to one capacity written")
    make.add_argument(
        "--steady-iops", type=float, default=150, help="4 KiB writes a second from two capacities written"
    )
    make.add_argument("--read-iops", type=float, default=150)
    make.add_argument("--write-bandwidth", type=float, default=64e6, help="bytes a second")
    make.add_argument("--read-bandwidth", type=float, default=128e6, help="bytes a second")
    make.add_argument(
        "--idle-gc-bandwidth", type=float, default=0.0, help="bytes a second that idle time makes free for fresh writes"
    )
    make.add_argument("--collect-after-s", type=float, default=0.0, help="how long it idles before it makes room")
    make.add_argument("--spare-pct", type=float, default=7.0, help="how much of the capacity idle time can make free")
    make.add_argument(
        "--scatter-cost", type=float, default=0.0, help="how many times more a stream over scattered data costs"
    )
    make.add_argument(
        "--reads-wait", type=float, default=0.0, help="how long reads wait for a write, as a multiple of what it takes"
    )
    make.add_argument("--latency-s", type=float, default=0.0, help="what each request takes besides, in parallel")
    make.add_argument("--lies", default="", help="what it does wrong: flip:8192,stale:40960, ... (docs/testing.md)")
    make.add_argument("--noise-pct", type=float, default=2.0)
    make.add_argument("--seed", type=int, default=1)
    make.add_argument("--sector-size", type=int, choices=(512, 4096), default=512)
    take = commands.add_parser("destroy", help="take down one drive or all of a directory")
    take.add_argument("name", nargs="?")
    for command in (make, take):
        command.add_argument("--dir", required=True, dest="directory", help="where the drives live")
    return vars(parser.parse_args(argv))


def main(argv=None):
    arguments = _arguments(argv)
    command, directory, name = (arguments.pop(key) for key in ("command", "directory", "name"))
    try:
        if command == "destroy":
            destroy(directory, name)
        else:
            sector_size = arguments.pop("sector_size")
            print(json.dumps(create(directory, name, model_plugin(**arguments), sector_size)))
    except SimulatorError as error:
        print(f"simulated-ssd: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    # SIGTERM takes the same way out as Ctrl-C, so that a drive half made is taken down.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
