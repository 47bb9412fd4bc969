# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Entries of the ledger that can be trusted, and those that can't."""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import ledger, ledger_format
from ansible_collections.ssdlab.fleet.tests.unit.plugins.module_utils.guard.noted import IDENTITY, SIZE, rewrite

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the ledger counts only while it is root's")


@pytest.mark.parametrize(
    "change", [{"serial": "S2"}, {"wwn": "eui.02"}, {"wwn": None}, {"backing_file": "/x"}, {"model": "N"}]
)
def test_another_drive_has_another_entry(left, change):
    assert left.seen(dict(IDENTITY, **change)) is None


@pytest.mark.parametrize("change", [{"size_bytes": SIZE // 2}, {"logical_block_size_bytes": 4096}, {"diskseq": 8}])
def test_a_format_or_another_attach_does_not_make_another_drive(left, change):
    assert ledger_format.read(left.state_dir, dict(IDENTITY, **change)) is not None


def not_roots(left):
    os.chown(left.file, 65534, -1)


def a_link(left):
    os.rename(left.file, left.file + ".x")
    os.symlink(left.file + ".x", left.file)


def a_folder(left):
    os.unlink(left.file)
    os.mkdir(left.file)


def text(left, data):
    with open(left.file, "wb") as out:
        out.write(data)


FOLDER = os.path.dirname
DISTURBED = [
    (lambda left: left.file, not_roots),
    (lambda left: left.file, a_link),
    (lambda left: left.file, a_folder),
    (lambda left: left.file, lambda left: os.chmod(left.file, 0o666)),
    (lambda left: left.file, lambda left: os.chmod(left.file, 0o664)),
    (lambda left: FOLDER(left.file), lambda left: os.chmod(FOLDER(left.file), 0o777)),
    (lambda left: FOLDER(left.file), lambda left: os.chmod(FOLDER(left.file), 0o775)),
    (lambda left: FOLDER(left.file), lambda left: os.chown(FOLDER(left.file), 65534, -1)),
    (lambda left: left.state_dir, lambda left: os.chmod(left.state_dir, 0o777)),
    (lambda left: left.file, lambda left: text(left, b"")),
    (lambda left: left.file, lambda left: text(left, b"{")),
    (lambda left: left.file, lambda left: text(left, b"[]")),
    (lambda left: left.file, lambda left: text(left, b"{}")),
    (lambda left: left.file, lambda left: text(left, b"\xff\x00")),
    (lambda left: left.file, lambda left: text(left, b"[" * 100000)),
    (lambda left: left.file, lambda left: rewrite(left, state="Evidence")),
    (lambda left: left.file, lambda left: rewrite(left, state="writing", reason=["iops"])),
    (lambda left: left.file, lambda left: rewrite(left, schema_version=2)),
    (lambda left: left.file, lambda left: rewrite(left, run_id=None)),
    (lambda left: left.file, lambda left: rewrite(left, written={})),
    (lambda left: left.file, lambda left: rewrite(left, filesystem={"kind": "xfs"})),
]


@pytest.mark.parametrize("reason", ["", "iops: write_iops is 5"], ids=["released", "evidence"])
@pytest.mark.parametrize("place, disturb", DISTURBED)
def test_an_entry_that_others_may_write_or_that_is_damaged_is_told_and_never_passed_over(left, place, disturb, reason):
    left.run("second", sectors=300, reason=reason)
    disturb(left)
    with pytest.raises(ledger_format.Untrusted) as told:
        left.seen()
    assert place(left) in str(told.value)
    # Nor does the end of its run make it one of root's.
    before = os.lstat(left.file).st_ino
    ledger.close(left.state_dir, "second", removed=True)
    if place(left) != left.state_dir:
        assert os.lstat(left.file).st_ino == before


def test_where_there_is_no_entry_nothing_is_known(left):
    os.unlink(left.file)
    assert left.seen() is None
    os.rmdir(os.path.dirname(left.file))
    assert left.seen() is None


def test_evidence_outlives_a_firmware_that_calls_the_drive_otherwise(left):
    """The same serial and name, another model: what was ours is not proved any more, and evidence is not
    passed over.
    """
    assert left.seen(dict(IDENTITY, model="N")) is None
    left.run("second", sectors=300, reason="iops: write_iops is 5")
    with pytest.raises(ledger_format.Untrusted, match="keeps evidence of run second.*model was M, is N"):
        left.seen(dict(IDENTITY, model="N"))


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(["schema_version", "identity", "run_id", "state", "released", "reason", "sentinels", "written"]),
    ANYTHING,
)
def test_no_damaged_entry_is_ever_our_own_data(left, key, value):
    with open(left.file) as source:
        good = source.read()
    entry = json.loads(good)
    try:
        with open(left.file, "w") as out:
            json.dump(dict(entry, **{key: value}), out)
        try:
            seen = left.seen()
        except ledger_format.Untrusted as error:
            assert left.file in str(error)
            seen = None
        same = key not in (
            "written",
            "schema_version",
            "identity",
            "run_id",
            "state",
            "sentinels",
        ) or value == entry.get(key)
        harmless = same or (key == "run_id" and isinstance(value, str)) or (key == "sentinels" and value == [])
        assert seen is None or harmless or left.untouched() is False
    finally:
        with open(left.file, "w") as out:
            out.write(good)


SATA = {**IDENTITY, "wwn": "naa.5000c500a1b2c3d4", "model": "EXAMPLE SSD 3840"}


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        ({"wwn": None}, True),  # its new place does not tell it, or not yet
        ({"wwn": "t10.ATA     EXAMPLE SSD 3840GB S1"}, True),  # behind a SAS controller
        ({"wwn": "t10.ATA     EXAMPLE", "model": "EXAMPLE SSD 3840GB"}, True),
        ({"serial": None}, True),
        ({"wwn": None, "model": "OTHER"}, False),
        ({"wwn": "naa.5000c500a1b2c3d5"}, False),  # drives of one serial number, or namespaces of one drive
        ({"serial": "S2"}, False),
        ({"serial": "S1 ", "wwn": None, "backing_file": "/a"}, False),
    ],
)
def test_evidence_outlives_a_place_that_tells_less_of_the_drive(left, change, kept):
    moved, (host, state_dir) = {**SATA, **change}, (left.host, left.state_dir)
    before = ledger.begin(host, state_dir, SATA, "third")
    assert ledger_format.read(state_dir, moved) is None
    left.count(900)
    ledger.end(host, before, SATA, "iops: write_iops is 5")
    if kept:
        with pytest.raises(ledger_format.Untrusted, match="keeps evidence of run third.*may be this one"):
            ledger_format.read(state_dir, moved)
    else:
        assert ledger_format.read(state_dir, moved) is None


def test_a_neighbours_damaged_entry_is_no_matter_of_this_drive(left):
    path = ledger_format.path_of(left.state_dir, {**SATA, "serial": "S11"})
    with open(path, "w") as file:
        file.write("{")
    os.chmod(path, 0o644)
    assert ledger_format.read(left.state_dir, SATA) is None


@pytest.mark.parametrize("name", ["x; rm -rf /", "../../etc/passwd", "A" * 300, "é\n", ".."])
def test_no_name_of_a_drive_leaves_the_folder(tmp_path, name):
    path = ledger_format.path_of(str(tmp_path), dict(IDENTITY, serial=name))
    assert os.path.dirname(path) == str(tmp_path / "drives") and len(os.path.basename(path)) < 200


def test_without_a_state_folder_nothing_is_known():
    assert ledger_format.read(None, IDENTITY) is None and ledger_format.read("/no/such/folder", IDENTITY) is None
