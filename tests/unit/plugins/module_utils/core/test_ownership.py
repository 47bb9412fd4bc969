# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose alone a folder is to write."""

from __future__ import annotations

import os

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import ownership


@pytest.fixture
def folder(tmp_path):
    """state below two parents, none of which others may write."""
    place = tmp_path / "a" / "b" / "state"
    place.mkdir(parents=True)
    return place


def test_a_folder_of_our_own_below_a_sticky_one(folder):
    assert ownership.problems(str(folder)) == [] == ownership.problems(str(folder / "still" / "to be made"))
    folder.parent.chmod(0o1777)
    assert ownership.problems(str(folder)) == []


@pytest.mark.parametrize("which, mode", [("parent", 0o777), ("parent", 0o757), ("itself", 0o777), ("itself", 0o1777)])
def test_what_others_may_write(folder, which, mode):
    place = folder if which == "itself" else folder.parent
    place.chmod(mode)
    (problem,) = ownership.problems(str(folder))
    assert str(place) in problem and f"{mode:04o}" in problem


def test_a_link_counts_with_what_it_leads_to_and_where_it_lies(folder, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(folder)
    assert ownership.problems(str(link)) == []
    folder.parent.chmod(0o777)
    assert str(folder.parent) in ownership.problems(str(link))[0]
    folder.parent.chmod(0o755)
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    (open_to_all / "link").symlink_to(folder)
    assert str(open_to_all) in ownership.problems(str(open_to_all / "link"))[0]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_another_users_folder(folder):
    os.chown(folder.parent, 12345, 0)
    assert ownership.problems(str(folder)) == [f"{folder.parent} belongs to user 12345"]
    os.chown(folder.parent, 0, 12345)
    folder.parent.chmod(0o775)
    assert f"users other than root may write to {folder.parent}" in ownership.problems(str(folder))[0]
    os.chown(folder.parent, 0, 0)
    assert ownership.problems(str(folder)) == []


def test_a_file_is_no_folder(folder):
    (folder / "file").touch()
    assert ownership.problems(str(folder / "file")) == ["%s is not a folder" % (folder / "file")]
