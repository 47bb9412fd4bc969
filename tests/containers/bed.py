# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Containers as servers, loop devices as drives: a bed of test servers that is made, and taken away whole.

    python bed.py up NAME [--servers 3] [--drives 2]    prints the path of the bed's inventory
    python bed.py down NAME                             nothing stays: containers, loop devices, files

Needs root. Never --privileged: that would show a container the machine's own disks. Standard library only.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

# Molecule runs this file as a program.
sys.path.append(str(Path(__file__).resolve().parents[2] / "scripts"))
import leftovers
from podman import CACHE, BedError, ensure_image, missing_tools, podman, run

SHM = Path("/dev/shm")
LABEL = "ssdlab-fleet-bed"
USER = "tester"
# What waits for a CPU answers late, so answers are counted, not seconds; on an idle machine these take two minutes.
BOOT_ASKS = 400
# A usual capacity is no multiple of 128 KiB, so a drive of the bed isn't either.
DRIVE_SIZE_BYTES = 64 * 2**20 + 90112
# What Python compiles of modules and engines is kept for all servers; setup has the variables.
KEPT_BYTECODE = Path(__file__).resolve().parents[1] / "kept_bytecode"
BYTECODE = CACHE / "bytecode"
# Settings as a host has them before it is tuned: none of them is what tuning wants.
GOVERNOR_BEFORE = "powersave"
QUEUE_BEFORE = {"scheduler": "mq-deadline", "nomerges": "0", "rq_affinity": "1", "add_random": "1"}


@dataclass
class Drive:
    """One loop device on a file of the bed's own folder."""

    backing_file: Path
    device: str = ""


@dataclass
class Server:
    """One container: its name in the inventory, its name for podman, and its drives."""

    name: str
    container: str
    drives: list[Drive] = field(default_factory=list)
    address: str = ""
    pid: int = 0  # of its first process; 0 when it is gone


class Bed:
    """All servers of one name. `up` and `down` may be called again at any time."""

    def __init__(self, name: str) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9-]{0,30}", name):
            raise BedError(f"bed name {name!r}: use lower-case letters, digits and dashes")
        # Two checkouts on one machine have beds of their own.
        self.name = f"{name}-{hashlib.sha256(str(CACHE).encode()).hexdigest()[:6]}"
        self.files = SHM / f"ssdlab-fleet-bed-{self.name}"
        self.folder = CACHE / f"bed-{name}"
        self.key = self.folder / "id_ed25519"
        self.known_hosts = self.folder / "known_hosts"
        self.inventory = self.folder / "inventory.json"
        self.servers: list[Server] = []
        self.systemd = True

    def up(self, servers: int = 3, drives: int = 2, systemd: bool = True) -> Bed:
        """Make the bed anew; without systemd, sshd runs below a bare init. What was made goes away on a failure."""
        image = ensure_image()
        self.down()
        self.systemd = systemd
        try:
            self.files.mkdir(mode=0o700)
            leftovers.claim(self.files)
            self.folder.mkdir(parents=True)
            run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", self.name, "-f", str(self.key)])
            (self.files / "cp").mkdir()
            for number in range(1, servers + 1):
                self.servers.append(self._make(image, number, drives))
            for server in self.servers:
                self._open_ssh(server)
            self.inventory.write_text(json.dumps(self._inventory(), indent=2) + "\n")
        except BaseException:
            self.down()
            raise
        return self

    def down(self) -> None:
        """Take away the bed's containers, loop devices (also those that a container attached), and files."""
        for control in (self.files / "cp").glob("*"):
            run(["ssh", "-o", f"ControlPath={control}", "-O", "exit", "any"], check=False)
        names = podman("ps", "--all", "--quiet", "--filter", f"label={LABEL}={self.name}").stdout.split()
        if names:
            podman("rm", "--force", "--time", "0", "--volumes", *names)
        for device in attached_below(self.files):
            run(["losetup", "--detach", device])
        for folder in (self.files, self.folder):
            shutil.rmtree(folder, ignore_errors=True)
        self.servers = []

    def exec(self, server: Server, *argv: str, check: bool = True, **kwargs):
        """Run a command as root in a server. Tests ask several times a second, and `podman exec` takes twenty times
        as much CPU.
        """
        if not server.pid:
            raise BedError(f"{server.name} is gone")
        enter = ["nsenter", "--target", str(server.pid), "--all", "--root", "--wd", "--"]
        return run([*enter, *argv], check=check, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}, **kwargs)

    def kill(self, server: Server) -> None:
        """The server is gone at once, as in a power loss."""
        podman("kill", server.container)
        server.pid = 0

    def _make(self, image: str, number: int, drives: int) -> Server:
        server = Server(f"server{number}", f"{self.name}-{number}")
        for index in range(drives):
            server.drives.append(attach(self.files / f"{server.name}-drive{index + 1}.img"))
        cpu = fake_cpu_tree(self.files / f"{server.name}-cpu")
        BYTECODE.mkdir(exist_ok=True)
        devices = [arg for drive in server.drives for arg in ("--device", drive.device)]
        # A container's /sys is read-only; its own drives' queue attributes are not, as on a server.
        queues = [arg for drive in server.drives for arg in ("--volume", sysfs_volume(drive.device))]
        init = ["--systemd=always", image, "/sbin/init"]
        if not self.systemd:
            init = ["--systemd=false", "--init", "--tmpfs", "/run/sshd:mode=0755", image, "/usr/sbin/sshd", "-D"]
        podman(
            "run",
            "--detach",
            "--name",
            server.container,
            "--hostname",
            server.name,
            "--label",
            f"{LABEL}={self.name}",
            # SYS_PTRACE: the guard looks at what every process has open, as root of a real server may.
            "--cap-add",
            "SYS_ADMIN",
            "--cap-add",
            "SYS_PTRACE",
            "--security-opt",
            "seccomp=unconfined",
            "--security-opt",
            "unmask=/sys/dev:/sys/dev/block",
            "--volume",
            f"{cpu}:/sys/devices/system/cpu",
            "--volume",
            f"{KEPT_BYTECODE}:/usr/local/lib/kept-bytecode:ro",
            "--volume",
            f"{BYTECODE}:/var/cache/kept-bytecode",
            *queues,
            *devices,
            *init,
        )
        shown = podman(
            "inspect", "--format", "{{.State.Pid}} {{.NetworkSettings.IPAddress}}", server.container
        ).stdout.split()
        server.pid, server.address = int(shown[0]), shown[1]
        return server

    def _open_ssh(self, server: Server) -> None:
        """Give the server our public key and take its host key, once it has booted."""
        home = f"/home/{USER}/.ssh"
        self.exec(server, "install", "-d", "-m", "0700", "-o", USER, "-g", USER, home)
        self.exec(
            server,
            "install",
            "-m",
            "0600",
            "-o",
            USER,
            "-g",
            USER,
            "/dev/stdin",
            f"{home}/authorized_keys",
            input=self.key.with_suffix(".pub").read_text(),
        )
        if self.systemd:
            self._wait_for_boot(server)
        host_key = self.exec(server, "cat", "/etc/ssh/ssh_host_ed25519_key.pub").stdout
        with self.known_hosts.open("a") as handle:
            handle.write(f"{server.address} {host_key}")

    def _wait_for_boot(self, server: Server) -> None:
        state = ""
        for _ask in range(BOOT_ASKS):
            state = self.exec(server, "systemctl", "is-system-running", check=False).stdout.strip()
            if state in ("running", "degraded"):
                return
            time.sleep(0.3)
        raise BedError(
            f"{server.name}: systemd is {state or 'silent'} after {BOOT_ASKS} asks; see podman logs {server.container}"
        )

    def _inventory(self) -> dict:
        # What is on the drives may go: molecule gives them a past of random data. Nobody outside the containers uses
        # them.
        hosts = {
            server.name: {
                "ansible_host": server.address,
                "ssd_drives": [
                    {"backing_file": str(drive.backing_file), "ssd_overwrite_data": True, "allow": ["unseen_users"]}
                    for drive in server.drives
                ],
                "bed_container": server.container,
                "bed_devices": [drive.device for drive in server.drives],
                "bed_before": settings_before(server),
            }
            for server in self.servers
        }
        ssh = {
            "ansible_user": USER,
            "ansible_ssh_private_key_file": str(self.key),
            "ansible_ssh_common_args": f"-o UserKnownHostsFile={self.known_hosts} -o ConnectTimeout=5",
            # Addresses are used again: an old bed's open connection must not be taken for ours.
            "ansible_control_path_dir": str(self.files / "cp"),
            "ansible_python_interpreter": "/usr/bin/python3",
        }
        return {"all": {"children": {"ssd_servers": {"hosts": hosts, "vars": ssh}}}}


def attach(backing_file: Path, size_bytes: int = DRIVE_SIZE_BYTES) -> Drive:
    """Make an empty file and a loop device on it: 4 KiB blocks, direct I/O, writable."""
    with backing_file.open("xb") as handle:
        handle.truncate(size_bytes)
    device = run(
        ["losetup", "--find", "--show", "--sector-size", "4096", "--direct-io=on", str(backing_file)]
    ).stdout.strip()
    run(["blockdev", "--setrw", device])  # the flag outlives the loop device that had it
    for name, value in QUEUE_BEFORE.items():
        Path("/sys/block", Path(device).name, "queue", name).write_text(value)
    return Drive(backing_file, device)


def attached_below(folder: Path) -> list[str]:
    """Loop devices whose backing file, deleted or not, lies in the folder."""
    listed = json.loads(
        run(["losetup", "--json", "--list", "--output", "NAME,BACK-FILE"]).stdout or '{"loopdevices": []}'
    )
    return [row["name"] for row in listed["loopdevices"] if (row["back-file"] or "").startswith(f"{folder}/")]


def sysfs_volume(device: str) -> str:
    """The volume argument that leaves a loop device's sysfs folder writable in the container."""
    folder = os.path.realpath(f"/sys/block/{Path(device).name}/queue")
    return f"{folder}:{folder}:rw"


def fake_cpu_tree(folder: Path) -> Path:
    """A stand-in for /sys/devices/system/cpu with one frequency policy per CPU, so that tuning has
    something to change.
    """
    real = Path("/sys/devices/system/cpu")
    folder.mkdir()
    for name in ("online", "possible", "present", "offline", "kernel_max"):
        (folder / name).write_text((real / name).read_text())
    for number in range(os.cpu_count() or 1):
        policy = folder / "cpufreq" / f"policy{number}"
        policy.mkdir(parents=True)
        (policy / "scaling_governor").write_text(f"{GOVERNOR_BEFORE}\n")
        (policy / "scaling_available_governors").write_text("performance powersave\n")
        (policy / "scaling_driver").write_text("acpi-cpufreq\n")
        (folder / f"cpu{number}").mkdir()
        (folder / f"cpu{number}" / "online").write_text("1\n")
        (folder / f"cpu{number}" / "cpufreq").symlink_to(f"../cpufreq/policy{number}")
    return folder


def settings_before(server: Server) -> dict[str, str]:
    """Path and value, inside the server, of every setting that tuning may change and has to put back."""
    governors = {
        f"/sys/devices/system/cpu/cpu{number}/cpufreq/scaling_governor": GOVERNOR_BEFORE
        for number in range(os.cpu_count() or 1)
    }
    queues = {
        f"/sys/block/{Path(drive.device).name}/queue/{name}": value
        for drive in server.drives
        for name, value in QUEUE_BEFORE.items()
    }
    return {**governors, **queues}


def why_not() -> str:
    """Why no bed can be made here; an empty string when one can."""
    if os.geteuid() != 0:
        return "containers with loop devices need root"
    missing = missing_tools()
    return f"install {', '.join(missing)}" if missing else ""


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up")
    down = commands.add_parser("down")
    up.add_argument("--servers", type=int, default=3)
    up.add_argument("--drives", type=int, default=2)
    for command in (up, down):
        command.add_argument("name")
    args = parser.parse_args()
    try:
        if why_not():
            raise BedError(why_not())
        bed = Bed(args.name)
        if args.command == "up":
            print(bed.up(args.servers, args.drives).inventory)
        else:
            bed.down()
    except BedError as error:
        print(f"bed {args.name}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
