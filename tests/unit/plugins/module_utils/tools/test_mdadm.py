# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""md arrays as mdadm and sysfs have them, over a tree."""

from __future__ import annotations

import os

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host, Result
from ansible_collections.ssdlab.fleet.plugins.module_utils.tools import mdadm

KIB = 1 << 10


def test_an_array_is_made_without_a_superblock_and_stopped_by_its_name():
    argv = mdadm.build_argv("/dev/md127", 0, 256 * KIB, ["/dev/a", "/dev/b"])
    assert argv == [
        "mdadm",
        "--build",
        "/dev/md127",
        "--level=0",
        "--chunk=256",
        "--raid-devices=2",
        "/dev/a",
        "/dev/b",
    ]
    assert mdadm.stop_argv("/dev/md127") == ["mdadm", "--stop", "/dev/md127"]


def test_only_whole_chunks_of_a_member_are_striped():
    assert mdadm.size_bytes([10 * KIB, 9 * KIB], 4 * KIB) == 16 * KIB


@pytest.fixture
def host(tmp_path):
    (tmp_path / "sys/block").mkdir(parents=True)
    (tmp_path / "proc").mkdir()
    return Host(str(tmp_path))


def array(host, name="md127", **files):
    """An array of 8:0 and 8:16 in the tree."""
    given = {"dev": "9:127", "md/level": "raid0", "md/metadata_version": "none", "md/chunk_size": "65536"}
    for member, number in (("sda", "8:0"), ("sdb", "8:16")):
        given[f"slaves/{member}/dev"] = number
    for path, text in {**given, **files}.items():
        file = host.path(f"/sys/block/{name}/{path}")
        file_dir = file.rpartition("/")[0]
        os.makedirs(file_dir, exist_ok=True)
        with open(file, "w", encoding="utf-8") as out:
            out.write(text + "\n")


def test_an_array_is_read_from_sysfs(host):
    array(host)
    assert mdadm.read_array(host, "md127") == mdadm.Array("raid0", "none", 65536, frozenset({"8:0", "8:16"}), "9:127")
    assert mdadm.read_array(host, "md0") is None


def test_the_number_is_one_that_no_array_has(host):
    assert mdadm.free_name(host) == "md127"
    array(host)
    assert mdadm.free_name(host) == "md126"


@pytest.mark.parametrize(
    ("tools", "mdstat", "modprobe_rc", "told"),
    [
        ((), "", 0, "mdadm is missing; install mdadm"),
        (("mdadm",), "Personalities : [raid0]\nunused devices: <none>", 1, ""),
        (("mdadm",), "Personalities : [raid1]", 0, ""),
        (("mdadm",), "", 1, "this kernel has no RAID 0"),
    ],
)
def test_what_a_host_lacks_is_told(host, monkeypatch, tools, mdstat, modprobe_rc, told):
    with open(host.path("/proc/mdstat"), "w", encoding="utf-8") as out:
        out.write(mdstat)
    monkeypatch.setattr(host, "which", lambda tool: tool in tools or None)
    monkeypatch.setattr(host, "run", lambda argv: Result(argv, modprobe_rc, "", ""))
    found = mdadm.missing_tools(host, 0)
    assert found.startswith(told) and bool(found) == bool(told)
