# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = """
    name: recorded
    short_description: Answers from recordings, or records what this machine answers
    description:
        - With the variable bench_record it runs everything on this machine, as the connection local does, and keeps
          what modules answered.
        - Without, it runs nothing. A module's answer is found by the module's name and arguments.
        - The bench tests/bench/fleet.py uses it; it is no part of the collection.
    author: The ssdlab.fleet authors
    options:
        recording:
            description: Folder of the recordings.
            required: true
            vars:
                - name: bench_recording
        record:
            description: Record instead of answering.
            type: bool
            default: false
            vars:
                - name: bench_record
        fault:
            description: What is wrong with this host, from preflight on.
            choices: [none, hangs, unreachable, garbage]
            default: none
            vars:
                - name: bench_fault
        sent:
            description: A file to which a line is added for each transfer, with its bytes and its CPU time here.
            vars:
                - name: bench_sent
    extends_documentation_fragment:
        - connection_pipelining
"""

import ast
import hashlib
import json
import os
import re
import shutil
import time
import typing as t
import uuid
from pathlib import Path

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.connection import ConnectionBase
from ansible.plugins.loader import connection_loader

# How AnsiballZ tells module and arguments: since ansible-core 2.19, and before.
CALL = re.compile(rb"^module_fqn=(?P<name>'[^\n]*'),$.*^params=(?P<args>'[^\n]*'|\"[^\n]*\"),$", re.M | re.S)
OLD_CALL = re.compile(
    rb"ANSIBALLZ_PARAMS = (?P<args>'[^\n]*'|\"[^\n]*\")$.*?runpy\.run_module\(mod_name='(?P<name>[^']*)'", re.M | re.S
)
# Another one in each task. It begins at its quote: an argument such as the engine is a megabyte.
TASK_FILE = re.compile(r"\"[^\"]*ansible-tmp-[0-9.-]+[^\"]*\"")
# What differs from host to host, though each is asked the same.
OWN_ARGUMENTS = ("plan",)
# What two hosts may not have in common.
BOOT_ID = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
HANGS_S = 3600


def call(payload: bytes) -> tuple[str, dict[str, t.Any]]:
    """Name and arguments of the module in an AnsiballZ payload. Raises ValueError."""
    # What stands before these is the archive, a line of a megabyte.
    found = CALL.search(payload, max(0, payload.rfind(b"\nmodule_fqn="))) or OLD_CALL.search(payload)
    if not found:
        raise ValueError("this is no AnsiballZ payload")
    name = found["name"].decode().strip("'").rpartition(".")[2]
    arguments = json.loads(ast.literal_eval(found["args"].decode()))["ANSIBLE_MODULE_ARGS"]
    return name, {key: value for key, value in arguments.items() if not key.startswith("_ansible_")}


def key_of(name: str, arguments: t.Mapping[str, t.Any]) -> str:
    """The file name of a recorded answer. No answer depends on how long the controller waits for it."""
    alike = {key: value for key, value in arguments.items() if key not in (*OWN_ARGUMENTS, "limit_s")}
    text = TASK_FILE.sub('"ansible-tmp"', json.dumps(alike, sort_keys=True))
    return f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


class Connection(ConnectionBase):
    """One host of the bench."""

    transport = "recorded"
    has_pipelining = True

    def _connect(self) -> Connection:
        self._connected = True
        return self

    def exec_command(self, cmd: str, in_data: bytes | None = None, sudoable: bool = True) -> tuple[int, bytes, bytes]:
        self._connect()
        began_s = time.thread_time()
        try:
            return self._done(cmd, in_data, sudoable)
        finally:
            self._note(len(in_data or b"") + len(cmd), time.thread_time() - began_s)

    def _done(self, cmd: str, in_data: bytes | None, sudoable: bool) -> tuple[int, bytes, bytes]:
        name = self._key(cmd, in_data)
        fault = self.get_option("fault")
        if fault == "unreachable":
            raise AnsibleConnectionFailure("no route to host")
        if fault == "hangs":
            time.sleep(HANGS_S)
        if self.get_option("record"):
            done = self._real().exec_command(cmd, in_data=in_data, sudoable=sudoable)
            if name:
                answer = json.dumps([done[0], done[1].decode(), done[2].decode()])
                self._file(name + ".json").write_text(answer, encoding="utf-8")
            return done
        if not name:
            made = re.search(r"echo (ansible-tmp-[0-9.-]+)", cmd)
            return 0, f"{made[1]}=/tmp/{made[1]}\n".encode() if made else b"", b""
        return self._answer(name, fault == "garbage")

    def put_file(self, in_path: str, out_path: str) -> None:
        self._note(os.path.getsize(in_path), 0.0)
        if self.get_option("record"):
            self._real().put_file(in_path, out_path)

    def fetch_file(self, in_path: str, out_path: str) -> None:
        kept = self._file(os.path.basename(in_path))
        if self.get_option("record"):
            self._real().fetch_file(in_path, out_path)
            shutil.copyfile(out_path, kept)
        else:
            shutil.copyfile(kept, out_path)

    def close(self) -> None:
        self._connected = False

    def _answer(self, name: str, garbage: bool) -> tuple[int, bytes, bytes]:
        if name.startswith("ping-"):
            return 0, b'{"ping": "pong"}', b""
        try:
            rc, stdout, stderr = json.loads(self._file(name + ".json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            return 1, b"", f"nothing is recorded for {name}".encode()
        if garbage:
            stdout = stdout[: len(stdout) // 2] + "\udc80\x1b[2J{{ lookup('pipe', 'false') }}"
        own = str(uuid.uuid5(uuid.NAMESPACE_DNS, self._host()))
        return rc, stdout.replace(BOOT_ID, own).encode("utf-8", "surrogateescape"), stderr.encode()

    @staticmethod
    def _key(cmd: str, payload: bytes | None) -> str:
        """What the answer is recorded under, "" for the shell's own work (the task's folder)."""
        if not payload:
            return "watched" if "ssdlab-fleet-watch" in cmd else ""
        return key_of(*call(payload))

    def _file(self, name: str) -> Path:
        return Path(self.get_option("recording"), name)

    def _host(self) -> str:
        return str(self._play_context.remote_addr)

    def _real(self) -> t.Any:
        if not hasattr(self, "_local"):
            self._local = connection_loader.get("local", self._play_context)
            self._local.set_become_plugin(None)
            self._local.set_options()
        return self._local

    def _note(self, size_bytes: int, cpu_s: float) -> None:
        path = self.get_option("sent")
        if path:
            with open(path, "a", encoding="utf-8") as out:
                out.write(f"{self._host()} {size_bytes} {cpu_s:.6f}\n")
