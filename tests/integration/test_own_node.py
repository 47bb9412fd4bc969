# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A device node of our own leads to the drive by number, or the drive is refused."""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import own_node
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base


class Refused(Exception):
    """Its text is the reason."""


@pytest.fixture
def host(tmp_path):
    """A host whose /dev is a folder of the test's."""
    (tmp_path / "dev").mkdir()
    return Host(str(tmp_path))


@contextlib.contextmanager
def opened(drive):
    handle = os.open(drive.path, os.O_RDONLY)
    try:
        yield handle
    finally:
        os.close(handle)


def about(drive):
    return base.to_json(identity.identity(Host(), drive.name))


def test_it_leads_to_the_drive_and_to_no_other_and_goes(host, loop_drive):
    drive, other = loop_drive(), loop_drive("other")
    with opened(drive) as handle:
        with own_node.made(host, handle, Refused) as node:
            assert own_node.differences(host, node, about(drive)) == []
            assert own_node.differences(host, node, about(other))
            folder = os.lstat(host.path(own_node.FOLDER))
            assert (stat.S_IMODE(folder.st_mode), folder.st_uid) == (0o700, 0)
        assert os.listdir(host.path(own_node.FOLDER)) == []
        assert "cannot be opened" in own_node.differences(host, node, about(drive))[0]


def test_that_of_a_job_that_was_killed_is_replaced(host, loop_drive):
    drive, other = loop_drive(), loop_drive("other")
    number = os.stat(drive.path).st_rdev
    os.mkdir(host.path(own_node.FOLDER))
    left = host.path(f"{own_node.FOLDER}/{os.major(number)}-{os.minor(number)}")
    os.mknod(left, stat.S_IFBLK | 0o600, os.stat(other.path).st_rdev)
    with opened(drive) as handle, own_node.made(host, handle, Refused) as node:
        assert host.path(node) == left and own_node.differences(host, node, about(drive)) == []


def test_another_drive_that_got_its_number_is_told_by_its_diskseq(host, loop_drive):
    drive = loop_drive()
    before = about(drive)
    if before["diskseq"] is None:
        pytest.skip("needs Linux 5.15")
    drive.detach()
    subprocess.run(["losetup", drive.path, str(drive.file)], check=True)
    with opened(drive) as handle, own_node.made(host, handle, Refused) as node:
        (difference,) = own_node.differences(host, node, before)
        assert "diskseq" in difference


@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_a_folder_that_others_may_write_to_is_refused(host, loop_drive, mode):
    os.mkdir(host.path(own_node.FOLDER))
    os.chmod(host.path(own_node.FOLDER), mode)
    with opened(loop_drive()) as handle, pytest.raises(Refused, match="users other than root may write"):
        with own_node.made(host, handle, Refused):
            pytest.fail("it may lead anywhere")


def test_where_no_node_can_be_opened_it_says_so(host, loop_drive):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "nodev", "tmpfs", host.path("/dev")], check=True)
    try:
        with opened(loop_drive()) as handle, pytest.raises(Refused, match="Permission denied.*nodev"):
            with own_node.made(host, handle, Refused):
                pytest.fail("it cannot be opened")
    finally:
        subprocess.run(["umount", host.path("/dev")], check=True)
