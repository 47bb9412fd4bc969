# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What lies in a state folder is run as root only if it is the engine that the controller has."""

from __future__ import annotations

import hashlib
import os

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import compression
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import engines

DATA = b"#!/usr/bin/env python3\n" + bytes(range(256)) * 100
ENGINE = engines.Engine("engine-0.1.0-0f5a3d1c9f11.pyz", hashlib.sha256(DATA).hexdigest(), DATA)


def as_it_should_be(path):
    path.write_bytes(DATA)
    path.chmod(0o644)


def other_content(path):
    path.write_bytes(DATA.replace(b"python3", b"python4"))


def cut_off(path):
    path.write_bytes(DATA[:-1])


def somebody_elses(path):
    as_it_should_be(path)
    os.chown(path, 12345, 12345)


def for_all_to_write(path):
    as_it_should_be(path)
    path.chmod(0o666)


def a_link(path):
    as_it_should_be(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


def a_pipe(path):
    os.mkfifo(path)


def test_an_engine_that_lies_there_is_left_alone(tmp_path):
    path = tmp_path / ENGINE.name
    as_it_should_be(path)
    before = path.stat()
    assert engines.lies(ENGINE, str(tmp_path))
    assert engines.install(ENGINE._replace(data=None), str(tmp_path)) == str(path)
    assert path.stat().st_ino == before.st_ino and os.listdir(tmp_path) == [ENGINE.name]


@pytest.mark.parametrize("wrong", [other_content, cut_off, somebody_elses, for_all_to_write, a_link, a_pipe])
def test_whatever_else_lies_there_is_replaced(tmp_path, wrong):
    path = tmp_path / ENGINE.name
    try:
        wrong(path)
    except PermissionError:
        pytest.skip("only root can give a file away")
    assert not engines.lies(ENGINE, str(tmp_path))
    assert engines.install(ENGINE, str(tmp_path)) == str(path)
    assert path.read_bytes() == DATA and not path.is_symlink() and path.stat().st_mode & 0o777 == 0o644
    assert path.stat().st_uid == os.geteuid() and engines.lies(ENGINE, str(tmp_path))


def test_a_link_in_the_place_of_the_file_aside_is_not_followed(tmp_path):
    kept = tmp_path / "kept"
    kept.write_text("x")
    (tmp_path / (ENGINE.name + ".new")).symlink_to(kept)
    engines.install(ENGINE, str(tmp_path))
    assert kept.read_text() == "x" and sorted(os.listdir(tmp_path)) == sorted([ENGINE.name, "kept"])


@pytest.mark.parametrize("data", [None, b"", DATA + b"x"])
def test_nothing_but_the_engine_is_installed(tmp_path, data):
    with pytest.raises(ValueError, match="run the play again"):
        engines.install(ENGINE._replace(data=data), str(tmp_path))
    assert os.listdir(tmp_path) == []


def test_a_name_leads_out_of_no_folder(tmp_path):
    state = tmp_path / "state"
    state.mkdir()
    assert engines.install(ENGINE._replace(name="../" + ENGINE.name), str(state)) == str(state / ENGINE.name)


def test_only_engines_are_named_and_not_too_many(tmp_path):
    assert engines.names(str(tmp_path / "absent")) == []
    for name in ("engine-0.1.0-aa.pyz", "engine-0.1.0-aa.pyz.new", "engine-\n.pyz", "runs"):
        (tmp_path / name).touch()
    assert engines.names(str(tmp_path)) == ["engine-0.1.0-aa.pyz"]
    for number in range(engines.MOST_NAMES):
        (tmp_path / f"engine-0.2.0-{number}.pyz").touch()
    assert len(engines.names(str(tmp_path))) == engines.MOST_NAMES


def test_old_engines_go_when_a_new_one_comes(tmp_path):
    others = [f"engine-0.0.{number}-aa.pyz" for number in range(engines.KEPT_OTHERS + 3)]
    for age, name in enumerate(others):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (1000 - age, 1000 - age))
    (tmp_path / "notes.pyz").touch()
    engines.install(ENGINE, str(tmp_path))
    assert sorted(os.listdir(tmp_path)) == sorted([ENGINE.name, "notes.pyz", *others[: engines.KEPT_OTHERS]])


def test_what_is_packed_arrives_as_it_was_or_not_at_all():
    text = compression.pack(DATA)
    assert compression.unpack(text) == DATA and len(text) < len(DATA) / 4
    for damaged in (text[:-8], "x" + text[1:], text.replace(text[20], "~"), ""):
        with pytest.raises(ValueError, match="damaged"):
            compression.unpack(damaged)
