# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Folders of ours."""

from __future__ import annotations

import os

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import files


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
@pytest.mark.parametrize("mode", [0o700, 0o755])
def test_every_folder_that_is_made_has_its_rights_whatever_the_umask_is(tmp_path, umask, mode):
    before = os.umask(umask)
    try:
        files.make_folders(str(tmp_path / "a" / "b" / "c"), mode)
    finally:
        os.umask(before)
    assert {os.stat(folder).st_mode & 0o7777 for folder, _folders, _names in os.walk(tmp_path / "a")} == {mode}
    (tmp_path / "a").chmod(0o711)
    files.make_folders(str(tmp_path / "a"), mode)  # what was there keeps its own
    assert os.stat(tmp_path / "a").st_mode & 0o7777 == 0o711


def test_a_file_in_the_way_is_told(tmp_path):
    (tmp_path / "a").write_text("")
    for path in (tmp_path / "a", tmp_path / "a" / "b"):
        with pytest.raises(OSError):
            files.make_folders(str(path))
