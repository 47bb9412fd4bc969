# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An sshd on the loopback interface, for the time of a test."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
from pathlib import Path

from waiting import wait_until

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:" + os.environ.get("PATH", ""))


def configured(folder: Path, **more):
    """(the command of an sshd of our own, the variables of a host that is reached through it). more: its options."""
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    (folder / "authorized").write_text((folder / "user.pub").read_text())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = {
        "Port": port,
        "ListenAddress": "127.0.0.1",
        "HostKey": folder / "host",
        "AuthorizedKeysFile": folder / "authorized",
        "PidFile": "none",
        "StrictModes": "no",
        "PermitRootLogin": "yes",
        "PasswordAuthentication": "no",
        "Subsystem": "sftp internal-sftp",
        **more,
    }
    (folder / "config").write_text("".join(f"{key} {value}\n" for key, value in options.items()))
    Path("/run/sshd").mkdir(exist_ok=True)
    variables = {
        "ansible_connection": "ssh",
        "ansible_host": "127.0.0.1",
        "ansible_port": port,
        "ansible_user": getpass.getuser(),
        "ansible_ssh_private_key_file": str(folder / "user"),
        "ansible_ssh_common_args": (
            f"-o StrictHostKeyChecking=no -o UserKnownHostsFile={folder}/known -o ControlPath=none"
        ),
    }
    return [SSHD, "-D", "-e", "-f", str(folder / "config")], variables


def answers(variables):
    """Whether the sshd of these variables takes connections."""
    return socket.create_connection((variables["ansible_host"], variables["ansible_port"])).close() is None


@contextlib.contextmanager
def loopback_sshd(folder: Path, **more):
    """An sshd of our own, ended by its id: the variables of a host that is reached through it. more: its options."""
    command, variables = configured(folder, **more)
    with open(folder / "log", "w") as log, subprocess.Popen(command, stderr=log) as server:
        try:
            wait_until(lambda: answers(variables), "sshd", process=server)
            yield variables
        finally:
            server.terminate()
