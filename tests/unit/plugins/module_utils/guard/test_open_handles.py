# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who counts as a user of a drive, from several looks."""

from __future__ import annotations

import os

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.open_handles import (
    LOOKS,
    READER_COUNTS,
    Opener,
    Watch,
    judge,
)

READER, OTHER = Opener("cat", 7, False, False), Opener("dd", 8, False, False)
WRITER, UDEV = Opener("mkfs", 9, True, False), Opener("systemd-udevd", 3, False, True)


def looks(*seen):
    return [{"8:0": {opener}} for opener in seen] + [{}] * (LOOKS - len(seen))


@pytest.mark.parametrize(
    "seen, users",
    [
        ((READER,) * (READER_COUNTS - 1), []),
        ((READER,) * READER_COUNTS, ["cat (process 7)"]),
        ((READER, READER, OTHER), ["cat (process 7)", "dd (process 8)"]),
        ((READER, OTHER), []),
        ((WRITER,), ["mkfs (process 9)"]),
        ((UDEV,) * LOOKS, []),
        ((UDEV, UDEV, READER), []),
    ],
)
def test_writers_count_once_and_readers_when_they_come_back(seen, users):
    assert judge(looks(*seen)).users == ({"8:0": users} if users else {})


def test_who_passes_by_is_told():
    assert judge(looks(UDEV, READER)).passing == {"8:0": ["systemd-udevd (process 3)"]}


def test_one_look_alone_decides_by_itself():
    assert judge([{"8:0": {READER}}]).users == {"8:0": ["cat (process 7)"]}


@pytest.mark.parametrize(
    "program, passing",
    [
        ("/usr/sbin/smartd", True),
        ("/usr/lib/systemd/systemd-udevd", True),
        ("/home/me/smartd", False),
        ("/tmp/usr/sbin/smartd", False),
        ("/usr/sbin/qemu", False),
    ],
)
def test_a_program_is_known_by_the_file_that_runs(fake, program, passing):
    fake.put("/proc/7/comm", "smartd\n")
    os.symlink(program, fake.path("/proc/7/exe"))
    os.symlink(fake.path("/"), fake.path("/proc/7/root"))
    assert Watch(fake, set(), {}, {}, {})._program("/proc/7").known is passing


def test_a_program_of_a_container_is_not_known_by_its_path(fake, tmp_path):
    fake.put("/proc/7/comm", "smartd\n")
    os.symlink("/usr/sbin/smartd", fake.path("/proc/7/exe"))
    os.makedirs(tmp_path / "container")
    os.symlink(tmp_path / "container", fake.path("/proc/7/root"))
    assert Watch(fake, set(), {}, {}, {})._program("/proc/7") == ("smartd", False, "")


@pytest.mark.parametrize("writes, users", [(True, {"8:0": ["a process that wrote to it and has ended"]}), (False, {})])
def test_a_write_between_two_looks_counts_beside_one_who_passes_by(fake, monkeypatch, writes, users):
    """multipathd has its paths open all the time, and only reads."""
    fake.put("/dev/sda", "data")

    def meanwhile(_s):
        with open(fake.path("/dev/sda"), "r+") as node:
            node.write("data") if writes else node.read()

    monkeypatch.setattr(Watch, "look", lambda *_watch, **_deep: {"8:0": {UDEV}})
    monkeypatch.setattr("time.sleep", meanwhile)
    assert Watch(fake, set(), {"/dev/sda": "8:0"}, {}, {}).observe().users == users


@pytest.mark.parametrize(
    "mode, in_host, allowed, passes",
    [
        (0o755, True, {"8:0": {"agent": False}}, [True, False]),
        (0o755, True, {"8:0": {"agent": True}}, [True, True]),
        # Of another drive, another program, one that others can change, one of a container.
        (0o755, True, {"8:16": {"agent": True}}, [False, False]),
        (0o755, True, {"8:0": {"agent2": True}}, [False, False]),
        (0o777, True, {"8:0": {"agent": True}}, [False, False]),
        (0o755, False, {"8:0": {"agent": True}}, [False, False]),
    ],
)
def test_a_program_that_a_site_names_passes_by_where_only_root_can_change_it(
    fake, tmp_path_factory, mode, in_host, allowed, passes
):
    folder = tmp_path_factory.mktemp("vendor")
    agent = folder / "agent"
    agent.write_text("")
    agent.chmod(mode)
    fake.put("/proc/7/comm", "agent\n")
    os.symlink(agent, fake.path("/proc/7/exe"))
    os.symlink(fake.path("/") if in_host else folder, fake.path("/proc/7/root"))
    named = {key: {str(folder / name): writes for name, writes in each.items()} for key, each in allowed.items()}
    program = Watch(fake, set(), {}, {}, {}, allowed=named)._program("/proc/7")
    assert [program.passes(writes, named.get("8:0", {})) for writes in (False, True)] == passes


@pytest.mark.parametrize("how", ["replaced", "deleted", "by a link"])
def test_a_named_program_is_the_very_file_that_runs(fake, tmp_path_factory, how):
    """As after a bind mount over its path, or where somebody ran his own and removed it; a link leads anywhere."""
    folder = tmp_path_factory.mktemp("vendor")
    running, named = folder / "running", folder / "agent"
    running.write_text("")
    {"replaced": lambda: named.write_text(""), "deleted": lambda: None, "by a link": lambda: named.symlink_to(running)}[
        how
    ]()
    fake.put("/proc/7/comm", "agent\n")
    os.symlink(running, fake.path("/proc/7/exe"))
    os.symlink(fake.path("/"), fake.path("/proc/7/root"))
    named_by_key = {"8:0": {str(named): True}}
    assert Watch(fake, set(), {}, {}, {}, allowed=named_by_key)._program("/proc/7").path == ""


@pytest.mark.parametrize("writes, looked", [(True, LOOKS), (False, 1)])
def test_one_look_is_enough_where_nobody_may_write(fake, monkeypatch, writes, looked):
    """A job looks once at drives that it holds, and more often where an agent has one open for writing."""
    seen = []
    monkeypatch.setattr(
        Watch, "look", lambda *_watch, **_deep: seen.append(1) or {"8:0": {Opener("agent", 7, writes, True)}}
    )
    monkeypatch.setattr("time.sleep", lambda _s: None)
    assert Watch(fake, set(), {"/dev/sda": "8:0"}, {}, {}).observe(quick=True).users == {}
    assert len(seen) == looked


@pytest.mark.parametrize("more, users", [(8, {"8:0": ["a process that wrote to it"]}), (0, {})])
def test_a_program_that_may_open_for_writing_counts_once_the_kernel_counts_a_write(fake, monkeypatch, more, users):
    """Through a node of another name inotify tells nothing."""
    agent, sectors = Opener("storcli64", 7, True, True), [100]
    stat = "0 0 0 0 0 0 {} 0 0 0 0"
    fake.put("/sys/dev/block/8:0/stat", stat.format(100))

    def meanwhile(_s):
        sectors[0] += more
        fake.put("/sys/dev/block/8:0/stat", stat.format(sectors[0]))

    monkeypatch.setattr(Watch, "look", lambda *_watch, **_deep: {"8:0": {agent}})
    monkeypatch.setattr("time.sleep", meanwhile)
    watch = Watch(fake, set(), {"/dev/sda": "8:0"}, {}, {}, allowed={"8:0": {"/opt/storcli64": True}})
    assert watch.observe().users == users
