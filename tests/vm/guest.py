# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A server with NVMe drives that may really be erased: a Debian under QEMU, by KVM where that boots quickly, else
emulated; one at a time on a machine.

    with Guest([Nvme("SSDQ0001"), Nvme("SSDQ0002", numa_node=1)]) as guest:
        guest.run("nvme list")                 # as root, over ssh
        guest.drives["SSDQ0001"].sha256()      # of the drive's file, from outside

A namespace is a raw file of its own, so that what the guest did to a drive shows outside of it. All is gone with the
block: the process, the files, the connections. The disk is image.py's; each guest writes to a layer of its own above
it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

import guest_machine
import image
import leftovers
import turn
from guest_drives import Nvme
from image import BedError, run
from qemu.qmp.legacy import QEMUMonitorProtocol

SHM = Path("/dev/shm")
FOLDER_PREFIX = "ssdlab-fleet-guest-"
LOCK = SHM / "ssdlab-fleet-guest.lock"
# Of the time that QEMU had (turn.py). By KVM a guest boots within seconds; on some nested machines it would take longer
# than emulation, so the first boot shows whether KVM is of use.
BOOT_LIMIT_S, KVM_BOOT_LIMIT_S = 900, 25
# "tcg" or "kvm": that one, whatever it is like.
ACCELERATOR = "SSDLAB_FLEET_ACCELERATOR"
UNPLUG_TIMEOUT_S = 60
# QEMU 7.2 was seen to die of a fault of its own while the guest booted on a busy machine.
BOOTS = 3
CRASHES = {signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL}


class Crashed(BedError):
    """QEMU itself died, whatever the guest did."""


class Silent(BedError):
    """The guest did not answer in its time."""


class Accelerator:
    """What QEMU runs the guest by, for all guests of this process."""

    def __init__(self) -> None:
        asked = os.environ.get(ACCELERATOR, "")
        self.may_change = not asked
        usable = os.access("/dev/kvm", os.R_OK | os.W_OK)
        self.name = guest_machine.KVM if asked == "kvm" or (usable and asked != "tcg") else guest_machine.TCG

    @property
    def on_trial(self) -> bool:
        """Whether it is KVM, which has not shown yet that it is of use."""
        return self.may_change and self.name == guest_machine.KVM

    def give_up(self) -> None:
        """Emulate from now on."""
        self.name, self.may_change = guest_machine.TCG, False


BY = Accelerator()


class Guest:
    """The guest, from `start` to `close`. It may be stopped and started again with other drives; its own disk keeps
    what was written.
    """

    def __init__(self, drives: list[Nvme], extra: list[str] | None = None) -> None:
        self.drives = {drive.key: drive for drive in drives}
        self.extra = extra or []  # further arguments for QEMU
        self.folder: Path | None = None
        self.port = 0
        self.process: subprocess.Popen | None = None
        self.boot_seconds = 0.0
        self._lock = None

    def __enter__(self) -> Guest:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_error) -> None:
        self.close()

    def start(self, drives: list[Nvme] | None = None) -> Guest:
        """Boot with these drives, in this order of slots (the same ones when none are given), and wait for ssh."""
        if drives is not None:
            self.drives = {drive.key: drive for drive in drives}
        self._prepare()
        started = time.monotonic()
        if not (BY.on_trial and self._boots_by_kvm()):
            self._boot()
        self.boot_seconds = time.monotonic() - started
        return self

    def _boots_by_kvm(self) -> bool:
        """Whether it has booted by KVM within seconds; where not, it is off again, and nobody tries once more."""
        self._launch()
        try:
            self._wait_for_ssh(KVM_BOOT_LIMIT_S)
        except BedError:
            self.stop()
            BY.give_up()
            return False
        BY.may_change = False
        return True

    def _boot(self) -> None:
        """Boot, again where QEMU itself crashes."""
        for more in reversed(range(BOOTS)):
            self._launch()
            try:
                return self._wait_for_ssh(BOOT_LIMIT_S)
            except Crashed as crash:
                if not more:
                    raise
                warnings.warn(f"the guest boots again: {crash}", stacklevel=2)

    def stop(self) -> None:
        """Off at once, as in a power loss: the guest is not asked."""
        self._close_connections()
        if self.process is not None:
            if self.process.poll() is None:
                self.process.terminate()  # QEMU writes out what it holds, and ends
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None

    def cut_power(self) -> None:
        """Kill QEMU: what it holds itself is lost; what this machine's kernel has of its files stays."""
        self.process.kill()
        self.process.wait()
        self._close_connections()

    def close(self) -> None:
        """Nothing stays: no process, no file, no lock."""
        self.stop()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def run(
        self, script: str, check: bool = True, timeout_s: float = 120, stdin: str | None = None
    ) -> subprocess.CompletedProcess:
        """Run a shell script in the guest as root, over one connection that stays open. BedError when it fails.
        timeout_s: of the time that the guest had.
        """
        argv = ["ssh", *self.ssh_options(), "-p", str(self.port), "root@127.0.0.1", script]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with turn.as_file(stdin or "") as file, subprocess.Popen(argv, stdin=file, text=True, **pipes) as process:
            said = turn.communicate(process, self.process.pid, timeout_s)
        done = subprocess.CompletedProcess(argv, process.returncode, *said)
        if check and done.returncode:
            raise BedError(f"guest: {script}: exit {done.returncode}: {done.stderr.strip()[-2000:]}")
        return done

    def put(self, path: str, text: str, mode: str = "0644") -> None:
        """Write a file in the guest."""
        self.run(f"install -D -m {mode} /dev/stdin {path}", stdin=text)

    def namespaces(self) -> dict[tuple[str, int], str]:
        """{(serial, namespace): its node as the guest names it now}. For staging: what is tested finds drives by
        itself.
        """
        said = self.run("cd /sys/block && grep -H . nvme*n*/hidden nvme*n*/nsid nvme*n*/device/serial").stdout
        facts: dict[str, dict[str, str]] = {}
        for path, value in (line.split(":", 1) for line in said.splitlines()):
            facts.setdefault(path.split("/")[0], {})[path.rpartition("/")[2]] = value.strip()
        return {
            (fact["serial"], int(fact["nsid"])): f"/dev/{name}" for name, fact in facts.items() if fact["hidden"] == "0"
        }

    def device(self, serial: str, nsid: int = 1) -> str:
        """The node of one namespace."""
        nodes = self.namespaces()
        if (serial, nsid) not in nodes:
            raise BedError(f"the guest has no namespace {nsid} of {serial}; it has {sorted(nodes)}")
        return nodes[serial, nsid]

    def blank(self, *serials: str) -> None:
        """Zeros on the first namespace of these drives, as they came."""
        nodes = self.namespaces()
        self.run("; ".join(f"blkdiscard -f {nodes[serial, 1]}" for serial in serials))

    def unplug(self, key: str) -> Nvme:
        """Pull a drive; its slot stays empty, and its file as it is."""
        drive = self.drives.pop(key)
        with self.monitor() as monitor:
            monitor.cmd("device_del", id=drive.id)
            deadline = time.monotonic() + UNPLUG_TIMEOUT_S
            while any(bus["qdev_id"] == drive.id for bus in _pci_devices(monitor)):
                if time.monotonic() > deadline:
                    raise BedError(f"{key} is still there {UNPLUG_TIMEOUT_S} s after it was pulled")
                time.sleep(0.5)
            for index in range(len(drive.namespaces)):
                with contextlib.suppress(Exception):  # gone with a namespace that was its controller's alone
                    monitor.cmd("blockdev-del", **{"node-name": f"{drive.id}n{index}"})
        return drive

    def plug(self, drive: Nvme, in_place_of: Nvme) -> Nvme:
        """Put a drive of one namespace into the slot of one that was pulled. QEMU adds no namespace later, so the
        controller has it built in.
        """
        (node,) = drive.nodes(self.folder)
        with self.monitor() as monitor:
            monitor.cmd("blockdev-add", **node)
            controller = dict(drive.devices()[0], bus=f"slot-{in_place_of.id}", drive=node["node-name"])
            monitor.cmd("device_add", **controller)
        self.drives[drive.key] = drive
        return drive

    @contextlib.contextmanager
    def monitor(self):
        """QEMU's monitor (QMP)."""
        with QEMUMonitorProtocol(str(self.folder / "qmp.sock")) as monitor:
            monitor.connect()
            monitor.settimeout(60)
            yield monitor

    def ssh_options(self) -> list[str]:
        """What ssh needs to reach the guest, and nothing of the user's own configuration."""
        options = {
            "IdentityFile": image.ensure() / "id_ed25519",
            "IdentitiesOnly": "yes",
            "BatchMode": "yes",
            "ConnectTimeout": "20",
            "UserKnownHostsFile": self.folder / "known_hosts",
            "ControlMaster": "auto",
            "ControlPersist": "300",
            "ControlPath": self.folder / "cp" / "own",
            "LogLevel": "ERROR",
        }
        return ["-F", "none", *(word for name, value in options.items() for word in ("-o", f"{name}={value}"))]

    def serial_log(self) -> str:
        """What the guest's console said, and QEMU."""
        return "".join(
            (self.folder / name).read_text(errors="replace")
            for name in ("serial.log", "qemu.log")
            if (self.folder / name).exists()
        )

    def _prepare(self) -> None:
        """The lock, the folder and the layer above the image, once."""
        if self.folder is not None:
            return
        disk = image.ensure()
        self._lock = LOCK.open("w", encoding="utf-8")
        fcntl.flock(self._lock, fcntl.LOCK_EX)  # waits for another suite's guest
        for stale in SHM.glob(FOLDER_PREFIX + "*"):
            shutil.rmtree(stale, ignore_errors=True)
        self.folder = Path(tempfile.mkdtemp(dir=SHM, prefix=FOLDER_PREFIX))
        leftovers.claim(self.folder)
        (self.folder / "cp").mkdir()
        run(
            [
                "qemu-img",
                "create",
                "-q",
                "-f",
                "qcow2",
                "-b",
                disk / "disk.qcow2",
                "-F",
                "qcow2",
                self.folder / "disk.qcow2",
            ]
        )
        self.port = _free_port()
        host_key = (disk / "host_key.pub").read_text(encoding="utf-8")
        (self.folder / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {host_key}", encoding="utf-8")

    def _launch(self) -> None:
        with (self.folder / "qemu.log").open("ab") as log:
            # Should this process be killed, the guest ends with it. A session of its own: Ctrl-C is ours alone.
            self.process = subprocess.Popen(
                [
                    "setpriv",
                    "--pdeathsig",
                    "KILL",
                    *guest_machine.arguments(self.folder, self.port, list(self.drives.values()), BY.name),
                    *self.extra,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _wait_for_ssh(self, limit_s: float) -> None:
        booting = turn.Turn(self.process.pid)
        while not self._answers():
            code = self.process.poll()
            if code is not None:
                kind = Crashed if -code in CRASHES else BedError
                raise kind(f"QEMU ended with {code}: {self.serial_log()[-2000:]}")
            if booting.spent_s() > limit_s:
                raise Silent(f"the guest did not answer in {limit_s} s of its own: {self.serial_log()[-2000:]}")
            time.sleep(1)

    def _answers(self) -> bool:
        """QEMU takes the connection at once; only sshd says who it is."""
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            return connection.recv(4) == b"SSH-"
        return False

    def _close_connections(self) -> None:
        for control in (self.folder / "cp").glob("*") if self.folder else ():
            run(["ssh", "-F", "none", "-o", f"ControlPath={control}", "-O", "exit", "any"], check=False)


def _pci_devices(monitor) -> list[dict]:
    """All PCI devices, those behind bridges too."""
    waiting = [device for bus in monitor.cmd("query-pci") for device in bus["devices"]]
    found = []
    while waiting:
        device = waiting.pop()
        found.append(device)
        waiting += device.get("pci_bridge", {}).get("devices", [])
    return found


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]
