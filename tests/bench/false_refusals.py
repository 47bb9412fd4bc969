# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How often drives are refused that should not be, in each state that our own work leaves them in, on this machine with
its own /etc.

    python tests/bench/false_refusals.py [--looks 200] [--seconds 0.2] [--drives 10] [--only readers]

A refusal names who had the drive open: its whole command, those that started it, and in how many looks it was there.
Drives are files behind loop devices that this bench makes, looked at side by side. A crypto-erased drive is one that
was overwritten with noise while it
was held: the ledger never believes the counters of a loop device, so for that state alone the bench has it take the
drives for others.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import os
import subprocess
import sys
import tempfile
import typing as t
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "playbooks" / "collections"))

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import (
    data_scan,
    device_users,
    guard_check,
    ledger,
    open_handles,
    write_counters,
)

SIZE_BYTES = 48 << 20
# Programs that look at drives by themselves, over and over; one that is not installed here is left out. Three reads
# within a look at users (three seconds; eight on a busy host) are a user's.
READ_EVERY_S = 10.0
READERS = ("blkid -p {0}", "lsblk {0}", "udevadm info --query=all --name={0}", "smartctl -i {0}", "multipath -c {0}")


class Drive:
    """A loop device of this bench, and its file."""

    def __init__(self, file: Path) -> None:
        self.file = file
        with file.open("wb") as out:
            out.truncate(SIZE_BYTES)
        self.attach()

    def attach(self) -> None:
        """It may get another number."""
        self.path = _run("losetup", "--find", "--show", "--direct-io=on", str(self.file))

    def detach(self) -> None:
        """Give the loop device back."""
        _run("losetup", "--detach", self.path)


class Lab(t.NamedTuple):
    """Drives, and the folder with our ledger of them."""

    drives: list[Drive]
    state_dir: str

    def seen(self, seconds: float = 0.2) -> list[dict]:
        """A look at all drives."""
        entries = [parse({"backing_file": str(drive.file)}) for drive in self.drives]
        return guard_check.inspect(Host(), entries, None, self.state_dir, None, data_scan.Terms(seconds))

    def run(self, write: t.Callable[[str], None], blank: bool = False) -> None:
        """As a run of ours that writes so."""
        for drive, seen in zip(self.drives, self.seen()):
            before = ledger.begin(Host(), self.state_dir, seen["identity"], "night")
            write(drive.path)
            ledger.end(Host(), before, seen["identity"], blank=blank)


def _run(*argv: str) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


def _fill(path: str) -> None:
    fio = [
        "fio",
        "--name=x",
        "--filename=" + path,
        "--direct=1",
        "--refill_buffers=1",
        "--norandommap",
        f"--size={SIZE_BYTES}",
    ]
    _run(*fio, "--rw=write", "--bs=128k")
    _run(*fio, "--rw=randwrite", "--bs=4k", "--io_size=4m")


def _noise(path: str) -> None:
    with open(path, "r+b", buffering=0) as device:
        device.write(os.urandom(SIZE_BYTES))
        os.fsync(device.fileno())


def _zeros(path: str) -> None:
    _run("blkdiscard", path)


def _ones(path: str) -> None:
    with open(path, "r+b", buffering=0) as device:
        device.write(b"\xff" * SIZE_BYTES)
        os.fsync(device.fileno())


@contextlib.contextmanager
def fresh(_lab: Lab) -> t.Iterator[None]:
    """As they came."""
    yield


@contextlib.contextmanager
def with_live_readers(lab: Lab) -> t.Iterator[None]:
    """Fresh ones, while other programs look at all of them again and again."""
    loops = [
        reader.format(drive.path) for drive in lab.drives[:3] for reader in READERS if Host().which(reader.split()[0])
    ]
    # exec: the shell itself has no drive open.
    readers = []
    for each in loops:
        script = f"while :; do {each}; sleep {READ_EVERY_S:g}; done >/dev/null 2>&1"
        readers.append(subprocess.Popen(["sh", "-c", script]))
    try:
        yield
    finally:
        for reader in readers:
            reader.kill()
            reader.wait()


def _after(
    write: t.Callable[[str], None], blank: bool = False, anew: bool = False, noise: bool = False
) -> t.Callable[[Lab], contextlib.AbstractContextManager]:
    @contextlib.contextmanager
    def state(lab: Lab) -> t.Iterator[None]:
        lab.run(write, blank)
        for drive in lab.drives if anew else ():
            drive.detach()
            drive.attach()
        untouched = write_counters.untouched
        if noise:
            write_counters.untouched = lambda host, entry, identity: untouched(
                host, entry, dict(identity, backing_file=None)
            )
        try:
            yield
        finally:
            write_counters.untouched = untouched
            for drive in lab.drives:
                _zeros(drive.path)

    return state


STATES = {
    "fresh": fresh,
    "readers: fresh, with programs that look at drives": with_live_readers,
    "purged, reads as zeros": _after(_zeros),
    "purged, reads as ones": _after(_ones),
    "crypto-erased by us, reads as noise": _after(_noise, noise=True),
    "after our own run, left as it is": _after(_fill),
    "the same, attached again": _after(_fill, anew=True),
    "after our own run, left blank": _after(_zeros, blank=True),
    "the same, attached again ": _after(_zeros, blank=True, anew=True),
}


class Watch(open_handles.Watch):
    """Notes of everybody who has a drive open what he is, while he is still there to be asked."""

    seen: collections.Counter[str] = collections.Counter()

    def look(self, deep: bool) -> open_handles.OpenersByKey:
        """As ever."""
        found = super().look(deep)
        for key in self._watched() & found.keys():
            Watch.seen.update(f"{key} open{'ed to write' * one.writes}: {_line_of(one.pid)}" for one in found[key])
        return found


def _line_of(pid: int) -> str:
    """The commands of a process and of those that started it."""
    commands = []
    while pid > 1 and len(commands) < 5:
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            parent = int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
        except OSError:
            words, parent = "gone", 0
        commands.append(f"{pid} {words.strip():.160}")
        pid = parent
    return " <- ".join(commands)


def refused(name: str, looks: int, seconds: float, drives: int) -> list[list]:
    """The refusals of every look, of at least so many, that refused a drive in this state."""
    with contextlib.ExitStack() as made:
        folder = Path(made.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm", prefix="ssdlab-bench-")))
        lab = Lab([], str(folder / "state"))
        os.mkdir(lab.state_dir, 0o755)
        for number in range(drives):
            lab.drives.append(Drive(folder / f"drive-{number}"))
            made.callback(lab.drives[-1].detach)
        with STATES[name](lab):
            return [
                one["refusals"]
                for _look in range(-(-looks // drives))
                for one in lab.seen(seconds)
                if not one["eligible"]
            ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--looks", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--drives", type=int, default=10)
    parser.add_argument("--only", default="", help="states whose name begins so")
    given = parser.parse_args()
    device_users.Watch = Watch
    print("| state | refused |\n|---|---|", flush=True)
    for name in filter(lambda name: name.startswith(given.only), STATES):
        Watch.seen.clear()
        found = refused(name, given.looks, given.seconds, given.drives)
        print(f"| {name.strip()} | {len(found)} of {given.looks} {f'{found[0]} ' if found else ''}|", flush=True)
        for who, times in Watch.seen.most_common():
            print(f"  {times} times, {who}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
