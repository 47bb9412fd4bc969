# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A loop device on a drive under another name, as in a container with a /dev of its own: neither O_EXCL nor the path in
sysfs shows it.

Needs root, loop devices.
"""

from __future__ import annotations

import os
import stat
import subprocess

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import guard_check


@pytest.fixture
def stacked(loop_drive, tmp_path):
    """A drive, and another name of it that a loop device lies on."""
    disk = loop_drive()
    node = str(tmp_path / "node")
    os.mknod(node, stat.S_IFBLK | 0o600, os.stat(disk.path).st_rdev)
    above = subprocess.run(
        ["losetup", "--find", "--show", node], check=True, capture_output=True, text=True
    ).stdout.strip()
    yield disk, node, above
    subprocess.run(["losetup", "--detach", above], check=True)


def codes(entry):
    (result,) = guard_check.inspect(Host(), [parse(entry)])
    return [refusal["code"] for refusal in result["refusals"]]


def test_a_drive_under_a_loop_device_is_held_whatever_its_node_is_called(stacked):
    disk, node, above = stacked
    (result,) = guard_check.inspect(Host(), [parse({"backing_file": str(disk.file)})])
    assert [refusal["code"] for refusal in result["refusals"]] == ["held"]
    assert f"{above} uses {disk.path}" in result["refusals"][0]["message"]
    assert codes({"backing_file": node}) == ["not_whole_drive"]
    os.unlink(node)  # the path in sysfs leads nowhere then
    assert codes({"backing_file": str(disk.file)}) == ["held"]
