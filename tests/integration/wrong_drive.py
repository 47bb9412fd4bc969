# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stages the cases of docs/wrong-drives.md on loop devices, plays the playbooks at them, and asserts that nothing was erased.

A chapter stages many drives and plays once: `Bench.disk` makes a drive, a case puts something on it, `Bench.play` plays,
`Outcome.refused` asserts the four things that every case must show. `Bench.spare` has nothing staged: that it alone has
no refusal tells that the others were refused for what was staged.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils import drive, guard
from ansible_collections.ssdlab.fleet.plugins.module_utils.host import COMMAND_LOG, Host

MIB = 1 << 20
SIZE = 48 * MIB
SERVER = "rack1-07"
_FINDING = re.compile(r"^- (?P<hosts>[^:]*): drive (?P<drive>.*?): (?P<code>[a-z_]+): (?P<message>.*)$")

# What the software may run at a drive that it does not erase: the leading words of an argument list. `*` is any one word.
# Everything else counts as destructive, so that a command that nobody thought of is one.
READ_ONLY = tuple(
    words.split()
    for words in (
        "wipefs -n --json *",
        "wipefs --version",
        "blkid -p -o export *",
        "fio --version",
        "lsblk",
        "losetup --list",
    )
)


def run(*argv, **options):
    """Run a command of the test's own; its output."""
    options = dict({"check": True, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "timeout": 60}, **options)
    return (subprocess.run(argv, **options).stdout or "").strip()


def needs(*tools):
    """Skip where a tool that stages the case is missing."""
    for tool in tools:
        if shutil.which(tool, path="/usr/sbin:/sbin:/usr/bin:/bin") is None:
            pytest.skip("no " + tool)


def destructive(argv):
    """Whether a logged argument list may change a drive: whatever is not known to only read."""
    name = [os.path.basename(argv[0]), *argv[1:]] if argv else []
    return not any(len(name) >= len(rule) and all(want in ("*", word) for want, word in zip(rule, name)) for rule in READ_ONLY)


def logged(path):
    """The argument lists of a command log: lists, or the host job's {time, argv}."""
    lines = Path(path).read_text().splitlines() if os.path.exists(path) else []
    records = [json.loads(line) for line in lines]
    return [record["argv"] if isinstance(record, dict) else record for record in records]


class Disk:
    """A loop device of the bench's own. `selector` may be replaced; what is undone first was done last."""

    def __init__(self, bench, name, size_bytes):
        self.bench = bench
        self.file = os.path.join(bench.folder, name + ".img")
        with open(self.file, "wb") as file:
            file.truncate(size_bytes)
        self.path = self.attach()
        self.entry = {"backing_file": self.file}
        self.sealed = None

    @property
    def label(self):
        """What the inventory calls it."""
        return drive.label(self.entry)

    @property
    def name(self):
        return os.path.basename(self.path)

    def attach(self, file=None):
        """Attach the file, or another, to one more loop device; its path."""
        behind = file or self.file
        path = run("losetup", "--find", "--show", behind)
        self.bench.callback(self.detach, path, behind)
        return path

    @staticmethod
    def detach(path, behind):
        """Only while it is ours: a number that was freed may be somebody else's by now."""
        if drive.backing_file(Host(), os.path.basename(path)) == os.path.realpath(behind):
            run("losetup", "--detach", path)

    def undo(self, *argv):
        self.bench.callback(subprocess.run, argv, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def write(self, offset, data):
        """Put bytes on it; a negative offset counts from its end."""
        with open(self.file, "r+b") as file:
            file.seek(offset, os.SEEK_SET if offset >= 0 else os.SEEK_END)
            file.write(data)
        run("blockdev", "--flushbufs", self.path)

    def partitions(self, *options):
        """Two partitions that the kernel knows, even one without a parser for tables; the first one's path."""
        run("sgdisk", "-n", "1:0:+16M", "-n", "2:0:0", *options, self.path)
        subprocess.run(["partx", "--add", self.path], check=False, stderr=subprocess.DEVNULL)
        self.undo("partx", "--delete", self.path)
        return self.path + "p1"

    def mount(self, source=None):
        """Mount it, or what is given; where."""
        where = tempfile.mkdtemp(dir=self.bench.folder)
        run("mount", source or self.path, where)
        self.undo("umount", where)
        return where

    def waiting(self, *argv, **options):
        """A process that has said `ready` and ends with its standard input."""
        process = self.bench.enter_context(subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options))
        self.bench.callback(process.stdin.close)
        assert process.stdout.readline() == "ready\n"
        return process

    def digest(self):
        """SHA-256 of the data behind it, with what the kernel still held back."""
        run("blockdev", "--flushbufs", self.path)
        with open(self.file, "rb") as file:
            os.fsync(file.fileno())
            return hashlib.sha256(file.read()).hexdigest()


class Bench(contextlib.ExitStack):
    """Drives, and a site whose playbooks are played at them. `site`: conftest.Site."""

    def __init__(self, site):
        super().__init__()
        self.site = site
        self.folder = tempfile.mkdtemp(prefix="ssdlab-fleet-wrong-", dir="/dev/shm")
        self.callback(shutil.rmtree, self.folder)
        self.disks = {}
        self.spare = self.disk("spare")
        self.plays = 0
        self._namespace = []

    def disk(self, name, size_bytes=SIZE):
        """A blank drive."""
        self.disks[name] = Disk(self, re.sub(r"[^A-Za-z0-9]+", "-", name), size_bytes)
        return self.disks[name]

    def by_id(self, target):
        """A link of a unique name in /dev/disk/by-id, also where no udev has made the folder; its name."""
        for path in ("/dev/disk", "/dev/disk/by-id"):
            if not os.path.isdir(path):
                os.mkdir(path)
                self.callback(_remove_if_empty, path)
        link = "/dev/disk/by-id/" + os.path.basename(self.folder) + "-%d" % len(os.listdir("/dev/disk/by-id"))
        os.symlink(target, link)
        self.callback(os.unlink, link)
        return os.path.basename(link)

    def in_namespace(self, *argv):
        """A command that every play of this bench runs first, in a mount namespace of its own: what it mounts is seen by the play alone."""
        self._namespace.append(" ".join(shlex.quote(str(word)) for word in argv))

    def lay_over(self, folder, files):
        """For the plays of this bench alone: {name below a folder of the machine: text} in that folder."""
        upper, work = (tempfile.mkdtemp(dir=self.folder) for _side in range(2))
        for name, text in files.items():
            path = Path(upper, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        os.chmod(upper, 0o755)
        self.in_namespace("mount", "-t", "overlay", "overlay", "-o", "lowerdir=%s,upperdir=%s,workdir=%s" % (folder, upper, work), folder)

    def prefix(self):
        """What puts a play into its namespace."""
        if not self._namespace:
            return ()
        return ("unshare", "--mount", "--propagation", "private", "sh", "-ec", "\n".join([*self._namespace, 'exec "$@"']), "sh")

    def play(self, *arguments, playbook="start", entries=None, env=None):
        """Play at all drives, or at these entries of ssd_drives (a list, or a mapping by inventory name)."""
        self.plays += 1
        log = os.path.join(self.folder, "commands-%d" % self.plays)
        given = [disk.entry for disk in self.disks.values()] if entries is None else entries
        self.site.hosts = {host: {"ssd_drives": drives} for host, drives in (given if isinstance(given, dict) else {SERVER: given}).items()}
        for disk in self.disks.values():
            disk.sealed = disk.digest()
        code, output = self.site.play(playbook, *arguments, env=dict({COMMAND_LOG: log}, **(env or {})), prefix=self.prefix())
        return Outcome(self, code, output, logged(log))

    def job_commands(self):
        """What the host jobs of this site logged themselves."""
        return [argv for folder in self.site.run_folders() for argv in logged(folder / "commands.jsonl")]


class Outcome:
    """What a play did. `findings`: {drive: {code: message}}; commands: every argument list that was run."""

    def __init__(self, bench, code, output, commands):
        self.bench = bench
        self.code = code
        self.output = output
        self.commands = commands + bench.job_commands()
        self.changed = sorted(name for name, disk in bench.disks.items() if disk.digest() != disk.sealed)
        self.findings = {}
        for found in filter(None, map(_FINDING.match, output.splitlines())):
            self.findings.setdefault(found["drive"], {})[found["code"]] = found["message"]

    def codes(self, disk):
        """The codes that a drive was refused with."""
        name = disk if isinstance(disk, str) else disk.label
        return set(self.findings.get(name, ()))

    def message(self, name, code):
        """What a disk was refused with."""
        return self.findings[self.bench.disks[name].label][code]

    def refused(self, name, *codes, exactly=True):
        """The four things that a case must show. `name`: a disk's, or a drive's label; `exactly`: no other code."""
        disk = self.bench.disks.get(name)
        label = disk.label if disk else name
        seen = self.codes(label)
        assert (seen == set(codes)) if exactly else (set(codes) <= seen), "%s was refused with %s, not %s" % (label, sorted(seen), sorted(codes))
        for code in codes:
            message = self.findings[label][code]
            assert message.startswith(label) and message.endswith(guard.REFUSALS[code].remedy), message
        self.nothing_happened()

    def nothing_happened(self):
        """The play failed, no drive of the bench changed, nothing ran that could have changed one."""
        assert self.code != 0, self.output
        self.untouched()

    def untouched(self):
        """No drive of the bench changed, nothing ran that could have changed one."""
        assert self.changed == []
        assert self.commands, "the command log is empty: nothing was looked at, or it is not written\n" + self.output
        assert [argv for argv in self.commands if destructive(argv)] == []


def _remove_if_empty(path):
    if os.path.isdir(path) and not os.listdir(path):
        os.rmdir(path)
