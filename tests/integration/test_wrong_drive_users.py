# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases 60 to 69 and 84 of docs/wrong-drives.md: users of a drive that /proc/PID/fd does not show."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import openers
import pytest
from fake_server import FakeServer
from wrong_drive import SERVER, needs, run

FULL = "1:7"  # of /dev/full
OPENERS, FUSE_NODE = (str(Path(__file__).with_name(name)) for name in ("openers.py", "fuse_node.py"))
# By its device node, and by the file behind it.
NODE = [
    "mapped",
    "mapped_first_thread_gone",
    "first_thread_gone",
    "own_table",
    "io_uring",
    "comes_and_goes",
    "comes_and_goes_at_once",
    "writes_now_and_then",
]
FILE = ["mapped", "first_thread_gone", "io_uring"]
# By a file system that no mountinfo shows.
UNSEEN_MOUNTS = ["mounted_and_detached", "mounted_without_a_process"]


def stage(disk, how, path):
    disk.waiting(sys.executable, OPENERS, how, path)


@pytest.fixture(scope="module")
def outcome(bench):
    if openers.EXIT is None:
        pytest.skip("the number of exit(2) on this machine is not known")
    for how in NODE:
        disk = bench.disk(how)
        stage(disk, how, disk.path)
    for how in FILE:
        disk = bench.disk("file " + how)
        stage(disk, how, disk.file)
    for how in UNSEEN_MOUNTS:
        disk = bench.disk(how)
        run("mkfs.ext4", "-q", disk.path)
        disk.entry.update(allow=["signature"], ssd_overwrite_data=True)
        stage(disk, how, disk.path)
    _other_node(bench.disk("another node"))
    _fuse(bench.disk("fuse"))
    _bound(bench.disk("bound here"), bench.disk("bound elsewhere"))
    _bound_file(bench.disk("file bound elsewhere"))
    _qemu(bench.disk("qemu-nbd"))
    once = bench.disk("looked at once")
    once.waiting(sys.executable, "-c", ONCE, once.path)
    return bench.play()


# Reads the drive once in a while, as monitors do: not often enough to be a user.
ONCE = """
import os, sys, threading, time
def work():
    while True:
        handle = os.open(sys.argv[1], os.O_RDONLY)
        os.read(handle, 512)
        os.close(handle)
        time.sleep(20)
threading.Thread(target=work, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
"""


def _other_node(disk):
    """Through a node of another name, as in a container."""
    node = os.path.join(disk.bench.folder, "node")
    os.mknod(node, 0o60600, os.stat(disk.path).st_rdev)
    stage(disk, "io_uring", node)


def _fuse(disk):
    where = os.path.join(disk.bench.folder, "fuse")
    os.mkdir(where)
    number = Path("/sys/block", disk.name, "dev").read_text().strip()
    disk.waiting("unshare", "--mount", "--propagation", "private", sys.executable, FUSE_NODE, number, where)


def _bound(here, elsewhere):
    for disk in (here, elsewhere):
        Path(disk.file + ".node").touch()
    here.bench.in_namespace("mount", "--bind", here.path, here.file + ".node")
    script = 'mount --bind "$0" "$1" && echo ready && read -r _'
    elsewhere.waiting(
        "unshare", "--mount", "--propagation", "private", "sh", "-c", script, elsewhere.path, elsewhere.file + ".node"
    )


def _bound_file(disk):
    Path(disk.file + ".volume").touch()
    script = 'mount --bind "$0" "$1" && echo ready && read -r _'
    disk.waiting("unshare", "--mount", "--propagation", "private", "sh", "-c", script, disk.file, disk.file + ".volume")


def _qemu(disk):
    needs("qemu-nbd")
    socket = os.path.join(disk.bench.folder, "nbd")
    pid = os.path.join(disk.bench.folder, "nbd.pid")
    run("qemu-nbd", "--fork", "--persistent", "--format=raw", "--pid-file=" + pid, "--socket=" + socket, disk.file)
    disk.bench.callback(lambda: os.kill(int(Path(pid).read_text()), 15))


@pytest.mark.case(60)
@pytest.mark.parametrize("name", ["mapped", "file mapped", "mapped_first_thread_gone"])
def test_case_60_mapped_with_its_descriptor_closed(outcome, name):
    outcome.refused(name, "opened")


@pytest.mark.case(61)
@pytest.mark.parametrize("name", ["first_thread_gone", "own_table", "file first_thread_gone"])
def test_case_61_open_in_a_thread_that_the_process_does_not_show(outcome, name):
    outcome.refused(name, "opened")


@pytest.mark.case(62)
@pytest.mark.parametrize("name", ["io_uring", "file io_uring", "another node"])
def test_case_62_registered_with_io_uring(outcome, name):
    outcome.refused(name, "opened")


@pytest.mark.case(63)
@pytest.mark.parametrize("name", ["comes_and_goes", "comes_and_goes_at_once", "writes_now_and_then"])
def test_case_63_a_process_that_comes_and_goes(outcome, name):
    outcome.refused(name, "opened")


@pytest.mark.case(64)
def test_case_64_a_node_on_a_file_system_in_user_space(outcome):
    outcome.refused("fuse", "opened")


@pytest.mark.case(65)
def test_case_65_another_node_of_the_drive_is_open(make_bench):
    """/dev/full stands for the nodes: a process has it open."""
    bench = make_bench()
    server = FakeServer(bench)
    server.sas("scsi generic", "sdx", "SASSN001", files={"device__scsi_generic/sg9/dev": FULL})
    server.nvme("nvme generic", "nvme7n1", "NVMESN01")
    server.nvme("nothing open", "nvme8n1", "NVMESN02")
    server.tree.put("/sys/class/nvme-generic/ng7n1/dev", FULL)
    server.enter()
    bench.disks["spare"].waiting(
        sys.executable,
        "-c",
        "import os, sys; os.open('/dev/full', os.O_RDONLY); print('ready', flush=True); sys.stdin.read()",
    )
    outcome = bench.play()
    for name in ("scsi generic", "nvme generic"):
        outcome.refused(name, "opened")
    assert outcome.codes("nothing open") == set()


@pytest.mark.case(66)
def test_case_66_the_file_behind_it_is_open(outcome):
    outcome.refused("qemu-nbd", "opened")
    assert "qemu-nbd" in outcome.message("qemu-nbd", "opened")


@pytest.mark.case(67)
def test_case_67_its_node_is_mounted_elsewhere(outcome):
    outcome.refused("bound here", "mounted")
    outcome.refused("bound elsewhere", "mounted")


@pytest.mark.case(91)
def test_case_91_the_file_behind_it_is_given_to_a_container(outcome):
    outcome.refused("file bound elsewhere", "mounted")
    assert "the file behind it on" in outcome.message("file bound elsewhere", "mounted")


@pytest.mark.case(84)
@pytest.mark.parametrize("name", UNSEEN_MOUNTS)
def test_case_84_mounted_where_no_mountinfo_shows_it(outcome, name):
    """Though what lies on it is lifted: the kernel's own hold on it is seen by an exclusive open, `busy`."""
    outcome.refused(name, "busy")


# --- where users do not show --------------------------------------------------

CONTAINER = ("unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child")
NO_PTRACE = ("setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace")


@pytest.mark.case(68)
def test_case_68_a_container_does_not_see_who_uses_its_drives(make_bench):
    bench = make_bench()
    stage(bench.disk("opened outside"), "comes_and_goes", bench.disks["opened outside"].path)
    bench.inside = CONTAINER
    outcome = bench.play()
    outcome.refused("spare", "unseen_users")
    assert "container" in outcome.message("spare", "unseen_users")
    assert "unseen_users" in outcome.codes("opened outside")
    bench.disks["spare"].entry["allow"] = ["unseen_users"]
    outcome = bench.play("--check", playbook="qualify", entries=[bench.spare.entry])
    assert outcome.code == 0 and not outcome.changed, outcome.output


@pytest.mark.case(69)
def test_case_69_processes_that_may_not_be_looked_into(make_bench):
    bench = make_bench()
    stage(bench.disk("opened"), "mapped", bench.disks["opened"].path)
    bench.inside = NO_PTRACE
    outcome = bench.play()
    outcome.refused("spare", "unseen_users")
    assert "cannot be examined" in outcome.message("spare", "unseen_users")
    outcome.refused("opened", "unseen_users")


def test_who_looks_once_is_no_user(outcome):
    assert outcome.codes("looked at once") == outcome.codes("spare") == set()
    outcome.nothing_happened()


def test_programs_that_a_site_names_are_no_users_and_writers_are(make_bench):
    """A monitoring agent has drives open all the time, for writing, as SG_IO needs; others write, or are unknown."""
    bench = make_bench()
    agent = Path(bench.folder, "agent")
    shutil.copy(shutil.which("sh"), agent)
    agent.chmod(0o755)
    held = 'exec 3<>"$0" && echo ready && read -r _'
    writing = 'exec 3<>"$0" && echo ready && while read -r -t 0.2 _; test $? -gt 128; do echo x >&3; done'
    for name, program, script in [
        ("named", agent, held),
        ("not named", "sh", held),
        ("written", shutil.copy(shutil.which("bash"), Path(bench.folder, "writer")), writing),
    ]:
        disk = bench.disk(name)
        disk.waiting(str(program), "-c", script, disk.path)
    stage(bench.disk("mapped by an agent"), "mapped", bench.disks["mapped by an agent"].path)
    python = os.path.realpath(sys.executable)
    bench.disks["mapped by an agent"].entry["passing_programs"] = [{"path": python, "opens_for_writing": True}]
    by_site = [{"path": str(agent), "opens_for_writing": True}]
    bench.disks["written"].entry["passing_programs"] = [
        {"path": str(Path(bench.folder, "writer")), "opens_for_writing": True}
    ]
    outcome = bench.play(variables={SERVER: {"ssd_passing_programs": by_site}})
    outcome.refused("not named", "opened")
    assert outcome.codes("written") == outcome.codes("mapped by an agent") == {"opened"}
    assert outcome.codes("named") == set()
    by_site[0]["opens_for_writing"] = False
    outcome = bench.play(variables={SERVER: {"ssd_passing_programs": by_site}})
    outcome.refused("named", "opened")
