# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A PostgreSQL that a test starts, on a socket in its folder."""

from __future__ import annotations

import contextlib
import glob
import os
import pwd
import shutil
import subprocess
import tempfile


class Server:
    """A PostgreSQL of its own, by a user that is not root, which it refuses to run as."""

    def __init__(self, programs):
        self._programs = programs
        self.folder = tempfile.mkdtemp(prefix="ssd-pg-")
        self._user = []
        if os.geteuid() == 0:
            user = pwd.getpwnam("nobody")
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            self._user = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
        self._run(
            "initdb",
            "--pgdata",
            self._data,
            "--username=ssdlab",
            "--auth=trust",
            "--no-sync",
            "--locale=C",
            "--encoding=UTF8",
        )

    @property
    def _data(self):
        return os.path.join(self.folder, "data")

    def _run(self, program, *arguments):
        argv = [*self._user, os.path.join(self._programs, program), *arguments]
        # A file, as the server would keep a pipe open.
        with open(os.path.join(self.folder, "said"), "w+", encoding="utf-8") as log:
            done = subprocess.run(
                argv, cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, timeout=120, check=False
            )
            log.seek(0)
            assert done.returncode == 0, log.read()

    def start(self):
        options = f"-c listen_addresses='' -c unix_socket_directories={self.folder} -c fsync=off"
        self._run(
            "pg_ctl",
            "--pgdata",
            self._data,
            "--wait",
            "--log",
            os.path.join(self.folder, "log"),
            "--options",
            options,
            "start",
        )

    def stop(self, mode="fast"):
        self._run("pg_ctl", "--pgdata", self._data, "--wait", "--mode", mode, "stop")

    def url(self, database="postgres"):
        """As users write it."""
        return f"postgresql://ssdlab@/{database}?host={self.folder}"

    def new_database(self, name):
        self._run("createdb", f"--host={self.folder}", "--username=ssdlab", name)
        return self.url(name)


@contextlib.contextmanager
def running(programs_in):
    """A server for as long as the block runs."""
    made = Server(programs_in)
    try:
        made.start()
        yield made
    finally:
        try:
            made.stop("immediate")
        finally:
            shutil.rmtree(made.folder)


def programs():
    """The folder of its programs; "" where it is not installed."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    return found[-1] if found else os.path.dirname(shutil.which("initdb") or "")
