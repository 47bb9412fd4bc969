# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stages the cases of docs/wrong-drives.md on loop devices, plays the playbooks at them, and asserts that nothing was
erased.

A chapter stages many drives and plays once: `Bench.disk` makes a drive, a case puts something on it, `Bench.play`
plays,
`Outcome.refused` asserts the four things that every case must show. `Bench.spare` has nothing staged: that it alone has
no refusal tells that the others were refused for what was staged.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import drive_data
import own_machine
import pytest
from wrong_drive_outcome import Outcome, lines_of

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import COMMAND_LOG, Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import entry, identity

MIB = 1 << 20
SIZE = 48 * MIB
SERVER = "rack1-07"
REPO = Path(__file__).resolve().parents[2]


def run(*argv, **options):
    """Run a command of the test's own; its output."""
    options = dict({"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "timeout": 60}, **options)
    return (subprocess.run(argv, check=options.pop("check", True), **options).stdout or "").strip()


def needs(*tools):
    """Skip where a tool that stages the case is missing."""
    for tool in tools:
        if shutil.which(tool, path="/usr/sbin:/sbin:/usr/bin:/bin") is None:
            pytest.skip("no " + tool)


class Disk:
    """A loop device of the bench's own. `selector` may be replaced; what is undone first was done last."""

    def __init__(self, bench, name, size_bytes):
        self.bench = bench
        self.file = os.path.join(bench.folder, name + ".img")
        with open(self.file, "wb") as file:
            file.truncate(size_bytes)
        self.path = self.node = self.attach()  # node: what a play sees it as
        self.entry = {"backing_file": self.file}
        self.sealed = None
        self.sealed_bytes = size_bytes

    @property
    def label(self):
        """What the inventory calls it."""
        return entry.parse(self.entry).label

    @property
    def name(self):
        """The loop device's kernel name."""
        return os.path.basename(self.path)

    def attach(self, file=None):
        """Attach the file, or another, to one more loop device; its path."""
        behind = file or self.file
        path = own_machine.attach(behind)
        self.bench.callback(self.detach, path, behind)
        return path

    @staticmethod
    def detach(path, behind):
        """Only while it is ours: a number that was freed may be somebody else's by now."""
        if identity.backing_file(Host(), os.path.basename(path)) == os.path.realpath(behind):
            run("losetup", "--detach", path)

    def undo(self, *argv):
        self.bench.callback(subprocess.run, argv, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def write(self, offset, data):
        """Put bytes on it; a negative offset counts from its end."""
        with open(self.file, "r+b") as file:
            file.seek(offset, os.SEEK_SET if offset >= 0 else os.SEEK_END)
            file.write(data)
        drive_data.flush(self.path)

    def partitions(self, *options):
        """Two partitions that the kernel knows, even one without a parser for tables; the first one's path."""
        run("sgdisk", "-n", "1:0:+16M", "-n", "2:0:0", *options, self.path)
        subprocess.run(["partx", "--add", self.path], check=False, stderr=subprocess.DEVNULL)
        self.undo("partx", "--delete", self.path)
        return self.path + "p1"

    def mount(self, source=None):
        """Mount it, or what is given; where."""
        where = tempfile.mkdtemp(dir=self.bench.folder)
        run("mount", "-o", "ro,noload", source or self.path, where)  # so that nobody else changes its data
        self.undo("umount", where)
        return where

    def waiting(self, *argv, **options):
        """A process that has said `ready` and ends with its standard input."""
        process = self.bench.enter_context(
            subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)
        )
        self.bench.callback(process.stdin.close)
        assert process.stdout.readline() == "ready\n"
        return process

    def seal(self):
        """What is on it now is what has to be there after the play."""
        self.sealed = self.digest()
        drive_data.sealed(self.file).unlink(missing_ok=True)

    def has_changed(self):
        """Whether its data differs from that of the seal, or of the later one that a stage in the play made."""
        later = drive_data.sealed(self.file)
        return self.digest() != (later.read_text() if later.exists() else self.sealed)

    def digest(self):
        """Digest of the data behind it, with what the kernel still held back; of its first `sealed_bytes` where the
        kernel itself writes the rest.
        """
        drive_data.flush(self.path)
        with open(self.file, "rb") as file:
            os.fsync(file.fileno())
        return drive_data.digest(self.file, self.sealed_bytes)


class Bench(contextlib.ExitStack):
    """Drives, and a site whose playbooks are played at them. `site`: conftest.Site."""

    def __init__(self, site):
        super().__init__()
        self.site = site
        site.vars["ssd_refused"] = "stop"  # every reason is told, not the first of each drive
        site.vars["preflight_traffic_s"] = 0  # no checks of health: they are another suite's, and take time
        self.folder = tempfile.mkdtemp(prefix="ssdlab-fleet-wrong-", dir="/dev/shm")
        self.callback(shutil.rmtree, self.folder)
        self.disks = {}
        self.spare = self.disk("spare")
        self.plays = 0
        self.environment = {}
        self._namespace = []
        self.inside = ()  # a command that the plays run under, such as one that makes a container

    def disk(self, name, size_bytes=SIZE):
        """A blank drive."""
        self.disks[name] = Disk(self, re.sub(r"[^A-Za-z0-9]+", "-", name), size_bytes)
        return self.disks[name]

    def by_id(self, target):
        """A link of a unique name in this machine's /dev/disk/by-id; its name."""
        link = "/dev/disk/by-id/" + os.path.basename(self.folder) + f"-{len(os.listdir('/dev/disk/by-id'))}"
        os.symlink(target, link)
        self.callback(os.unlink, link)
        return os.path.basename(link)

    def in_namespace(self, *argv):
        """A command that every play of this bench runs first, in a mount namespace of its own: what it mounts is seen
        by the play alone.
        """
        self._namespace.append(" ".join(shlex.quote(str(word)) for word in argv))

    def lay_over(self, folder, files):
        """For the plays of this bench alone: {name below a folder of the machine: text} in that folder."""
        upper, work = (tempfile.mkdtemp(dir=self.folder) for _side in range(2))
        for name, text in files.items():
            path = Path(upper, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        os.chmod(upper, 0o755)
        self.in_namespace(
            "mount", "-t", "overlay", "overlay", "-o", f"lowerdir={folder},upperdir={upper},workdir={work}", folder
        )

    def prefix(self):
        """What puts a play into its namespace."""
        if not self._namespace:
            return self.inside
        return (
            *self.inside,
            "unshare",
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-ec",
            "\n".join([*self._namespace, 'exec "$@"']),
            "sh",
        )

    def play(self, *arguments, playbook="start", entries=None, env=None, variables=None):
        """Play at all drives, or at these entries of ssd_drives (a list, or a mapping by inventory name). `variables`:
        more of them, by inventory name.
        """
        self.plays += 1
        log = os.path.join(self.folder, f"commands-{self.plays}")
        given = [disk.entry for disk in self.disks.values()] if entries is None else entries
        given = given if isinstance(given, dict) else {SERVER: given}
        self.site.hosts = {
            host: dict((variables or {}).get(host, {}), ssd_drives=drives) for host, drives in given.items()
        }
        for disk in self.disks.values():
            disk.seal()
        before = self._told_by_jobs()
        code, output = self.site.play(
            playbook, *arguments, env=dict({COMMAND_LOG: log}, **self.environment, **(env or {})), prefix=self.prefix()
        )
        new = {path: records[len(before.get(path, ())) :] for path, records in self._told_by_jobs().items()}
        journal = [record for path, records in new.items() for record in records if path.name == "journal.jsonl"]
        commands = [
            record["argv"] for path, records in new.items() for record in records if path.name == "commands.jsonl"
        ]
        return Outcome(self, code, output, [*lines_of(log), *commands], journal)

    def play_between(self, *stages, step="purge", entries=None):
        """Preflight, then these commands, then the start of the job and all to its end: what befalls a drive after it
        was looked at.

        What the commands leave on the drives is what has to be there after the play.
        """
        seal = (sys.executable, drive_data.__file__, *(disk.file for disk in self.disks.values()))
        tasks = [
            {"name": "Stage", "ansible.builtin.command": {"argv": list(map(str, argv))}}
            for argv in [*stages, ("sync",), seal]
        ]
        # As the role workload starts the job, without its own preflight: that would see what is staged.
        given = {"run_id": "{{ ssd_decision.run.id }}", "state_dir": "{{ ssd_state_dir }}"}
        start = {
            "name": "Start",
            "ssdlab.fleet.host_job": given,
            "when": "ssd_decision.run.destructive",
            "register": "ssd_job",
        }
        shipped = [
            {"import_playbook": str(REPO / "playbooks" / (name + ".yml"))}
            for name in ("preflight", "watch", "collect", "report")
        ]
        between = {"hosts": "ssd_servers", "gather_facts": False, "become": False, "tasks": [*tasks, start]}
        path = Path(self.folder, "between.yml")
        path.write_text(json.dumps([shipped[0], between, *shipped[1:]]))
        collections = {"ANSIBLE_COLLECTIONS_PATH": str(REPO / "playbooks" / "collections")}
        return self.play("-e", "ssd_step=" + step, playbook=path, entries=entries, env=collections)

    def _told_by_jobs(self):
        """What the host jobs of this site wrote so far: their journals, and the logs of their commands."""
        return {
            path: lines_of(path)
            for folder in self.site.run_folders()
            for path in (folder / "journal.jsonl", folder / "commands.jsonl")
        }
