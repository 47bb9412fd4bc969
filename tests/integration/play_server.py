# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run ansible-playbook by forking a process that has already imported Ansible and this collection.

A play of one host needs 4 to 10 CPU-seconds, a fifth of them for imports and for packing the same modules again. The
server does both once. Each play is still a process of its own, with its own arguments, folder, variables and output,
and runs the same code as the command.

    server = PlayServer()
    server.run(["playbooks/qualify.yml", ...], cwd=..., environment=..., stall_s=300)     # a CompletedProcess

The server is this file, run as a program: it listens on a socket and forks for each request.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import pkgutil
import select
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import typing as t
import warnings
from pathlib import Path

import waiting

REPO = Path(__file__).resolve().parents[2]
COLLECTIONS = str(REPO / "playbooks/collections")
PLUGINS = "ansible_collections.ssdlab.fleet.plugins"
# What Ansible's configuration is read from when it is imported, once for all plays of the server.
SETTINGS = {
    "ANSIBLE_NOCOLOR": "1",
    "ANSIBLE_CONFIG": str(REPO / "ansible.cfg"),
    "ANSIBLE_COLLECTIONS_PATH": COLLECTIONS,
}
# Loaded by a play, beside what the collection imports: the callbacks that Ansible tries include one that writes JUnit.
# Without scipy.stats, which only nights that are compared need: each fork, and each look at what processes have mapped,
# would pay for its 430 mappings.
LIBRARIES = (
    "ansible.cli.playbook",
    "ansible_collections.ansible.builtin",
    "pandas",
    "plotly",
    "scipy.special",
    "sqlalchemy",
    "xml.dom.minidom",
)
STOP_TIMEOUT_S = 60
MAX_REQUEST_BYTES = 1 << 20


class PlayServer:
    """The server of this process, started by the first play and ended with the process."""

    def __init__(self) -> None:
        self._server: subprocess.Popen | None = None
        self._starting = threading.Lock()
        self._folder = ""

    @staticmethod
    def serves(environment: dict[str, str]) -> bool:
        """Whether a play with these variables finds the settings with which the server imported Ansible."""
        asked = {name: value for name, value in environment.items() if name.startswith(("ANSIBLE_", "PYTHON"))}
        python = {name: value for name, value in os.environ.items() if name.startswith("PYTHON")}
        return {**SETTINGS, **asked} == {**SETTINGS, **python}

    def run(
        self,
        arguments: list[str],
        cwd: os.PathLike,
        environment: dict[str, str],
        stall_s: float,
        progress: t.Callable[[], t.Any] = waiting.nothing,
    ) -> subprocess.CompletedProcess:
        """Run ansible-playbook with these arguments. Fails, and the play is killed, once it has said nothing, and
        `progress` has stood still, for `stall_s`.
        """
        request = {"arguments": arguments, "cwd": str(cwd), "environment": {**environment, **SETTINGS}}
        readers, writers = zip(os.pipe(), os.pipe())
        texts: list[bytes] = [b"", b""]
        reading = [threading.Thread(target=_read_all, args=(texts, i, readers[i]), daemon=True) for i in range(2)]
        with contextlib.closing(self._connect()) as connection:
            socket.send_fds(connection, [json.dumps(request).encode() + b"\n"], list(writers))
            for writer in writers:
                os.close(writer)
            for thread in reading:
                thread.start()
            answers = connection.makefile("r", encoding="utf-8")
            pid = answers.readline()
            if not pid:
                raise RuntimeError("the play server ended: " + Path(self._folder, "log").read_text(encoding="utf-8"))
            patience = waiting.Patience(arguments[0], lambda: (list(map(len, texts)), progress()), stall_s)
            try:
                while not select.select([connection], [], [], 1)[0]:
                    patience.check()
            except AssertionError:
                os.killpg(int(pid), signal.SIGKILL)
                raise
            code = int(answers.readline())
        for thread in reading:
            thread.join(stall_s)
        stdout, stderr = (text.decode(errors="replace") for text in texts)
        return subprocess.CompletedProcess(arguments, code, stdout, stderr)

    def _connect(self) -> socket.socket:
        with self._starting:
            if self._server is None:
                self._start()
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(self._folder + "/socket")
        return connection

    def _start(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="ssdlab-plays-")
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(self._folder + "/socket")
        listening.listen(16)
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
        # The server ends when its stdin does: with this process, however that ends.
        with open(self._folder + "/log", "w", encoding="utf-8") as log:
            self._server = subprocess.Popen(
                [sys.executable, __file__, str(listening.fileno())],
                cwd=REPO,
                env={**inherited, **SETTINGS},
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=[listening.fileno()],
                start_new_session=True,
            )
        listening.close()
        atexit.register(self.stop)

    def stop(self) -> None:
        """End the server; plays that still run go on."""
        if self._server is not None:
            self._server.stdin.close()
            self._server.wait(STOP_TIMEOUT_S)
            shutil.rmtree(self._folder)
            self._server = None


def _read_all(texts: list[bytes], index: int, descriptor: int) -> None:
    with open(descriptor, "rb", buffering=0) as file:
        while chunk := file.read(1 << 16):
            texts[index] += chunk


def _import_all() -> None:
    """Import Ansible's command, this collection's controller side, and the libraries that its report loads, and compile
    the report's templates.
    """
    from ansible.plugins.loader import init_plugin_loader
    from ansible.utils.collection_loader import AnsibleCollectionConfig

    warnings.filterwarnings("ignore", message="AnsibleCollectionFinder has already been configured")
    init_plugin_loader([COLLECTIONS])
    AnsibleCollectionConfig.playbook_paths = [str(REPO / "playbooks")]
    for name in ("action", "callback", "plugin_utils"):
        package = importlib.import_module(f"{PLUGINS}.{name}")
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            importlib.import_module(module.name)
    for name in LIBRARIES:
        importlib.import_module(name)
    templates = importlib.import_module(f"{PLUGINS}.plugin_utils.report.render").environment()
    for name in templates.list_templates():
        templates.get_template(name)


def _play(request: dict, descriptors: list[int]) -> None:
    """Be ansible-playbook. Does not return."""
    # The handlers of the server remove its temporary folder, which all plays share.
    atexit._clear()
    for target, descriptor in enumerate(descriptors, 1):
        os.dup2(descriptor, target)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["cwd"])
    sys.argv = ["ansible-playbook", *request["arguments"]]
    from ansible.cli.playbook import main

    main()


def _start(connection: socket.socket, request: dict, descriptors: list[int], servers: t.Iterable[int]) -> int:
    """Run one play in a session of its own, without these descriptors of the server; a descriptor that can be read when
    it has ended.
    """
    pid = os.fork()
    if pid == 0:
        for descriptor in (connection.detach(), *servers):
            os.close(descriptor)
        os.setsid()
        _play(request, descriptors)
    connection.sendall(f"{pid}\n".encode())
    return os.pidfd_open(pid)


def _tell_end(connection: socket.socket, play: int) -> None:
    """Tell a play's exit code to who asked for it, if that is still there."""
    ended = os.waitid(os.P_PIDFD, play, os.WEXITED)
    code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
    with contextlib.suppress(OSError), contextlib.closing(connection):
        connection.sendall(f"{code}\n".encode())
    os.close(play)


def _serve(listening: socket.socket) -> None:
    _import_all()
    null = os.open(os.devnull, os.O_RDONLY)
    owner = os.dup(0)
    os.dup2(null, 0)
    os.close(null)
    with selectors.DefaultSelector() as waiting:
        waiting.register(listening, selectors.EVENT_READ)
        waiting.register(owner, selectors.EVENT_READ)
        while True:
            for key, _events in waiting.select():
                if key.fileobj is listening:
                    connection = listening.accept()[0]
                    line, descriptors = socket.recv_fds(connection, MAX_REQUEST_BYTES, 2)[:2]
                    while not line.endswith(b"\n"):
                        line += connection.recv(MAX_REQUEST_BYTES)
                    play = _start(connection, json.loads(line), descriptors, list(waiting.get_map()))
                    for descriptor in descriptors:
                        os.close(descriptor)
                    waiting.register(play, selectors.EVENT_READ, connection)
                elif key.fileobj == owner:
                    os._exit(0)  # plays that still run keep the temporary folder
                else:
                    waiting.unregister(key.fileobj)
                    _tell_end(key.data, key.fd)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
