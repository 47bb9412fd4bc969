# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ledger of our own data, on a file that stands for a drive."""
from __future__ import annotations

import json
import os
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import own_data
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.blocks import Reader

SIZE = 8 << 20
IDENTITY = {
    "serial": "S1", "wwn": "eui.01", "model": "M", "backing_file": None, "size_bytes": SIZE, "logical_block_size_bytes": 512,
    "kernel_name": "nvme0n1", "diskseq": 7,
}

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the ledger counts only while it is root's")


class Drive:
    """A drive that is a file, and its counters in sysfs."""

    def __init__(self, fake, path):
        self.host, self.path, self.state_dir = fake, path, str(path.parent / "state")
        os.makedirs(self.state_dir, mode=0o755)
        path.write_bytes(os.urandom(SIZE))
        self.boot("one")
        self.count(100)

    def boot(self, boot_id):
        self.host.put("/proc/sys/kernel/random/boot_id", boot_id)

    def count(self, sectors):
        self.host.put("/sys/block/nvme0n1/stat", "1 0 8 0 2 0 %d 0 0 0 0 0 0 40 0 0 0\n" % sectors)

    def write(self, offset, data):
        with open(self.path, "r+b") as file:
            file.seek(offset)
            file.write(data)

    def run(self, run_id="r", sectors=200):
        before = own_data.begin(self.host, self.state_dir, IDENTITY, run_id)
        self.count(sectors)
        handle = os.open(self.path, os.O_RDONLY)
        try:
            own_data.end(self.host, before, IDENTITY, handle)
        finally:
            os.close(handle)

    def seen(self, identity=None):
        entry = own_data.read(self.state_dir, identity or IDENTITY)
        if entry is None:
            return None
        handle = os.open(self.path, os.O_RDONLY)
        try:
            return own_data.compare(self.host, entry, identity or IDENTITY, Reader(handle, SIZE, 512))
        finally:
            os.close(handle)

    @property
    def file(self):
        return own_data.path_of(self.state_dir, IDENTITY)


@pytest.fixture
def left(fake, tmp_path):
    """A drive on which a run has left its data."""
    drive = Drive(fake, tmp_path / "drive")
    drive.run()
    return drive


def test_what_a_run_left_is_recognised(left):
    seen = left.seen()
    assert (seen["run_id"], seen["state"], seen["unchanged"]) == ("r", "released", True)
    assert os.stat(left.file).st_mode & 0o777 == 0o644


def test_after_a_reboot_the_hashes_decide(left):
    left.boot("two")
    left.count(0)
    assert left.seen()["unchanged"] is True
    left.write(SIZE - 1, b"x")
    assert left.seen()["unchanged"] is False


def test_samples_that_miss_an_end_of_the_drive_prove_nothing(left, monkeypatch):
    """A drive that is larger now (a clipped capacity that was opened, a resized namespace) holds what no run of ours wrote."""
    with open(left.path, "ab") as file:
        file.write(os.urandom(SIZE))
    monkeypatch.setattr(sys.modules[__name__], "SIZE", 2 * SIZE)
    assert left.seen()["unchanged"] is False


@pytest.mark.parametrize("missing", [0, 1, slice(0, 2), slice(1, None)])
def test_an_entry_with_few_samples_proves_nothing(left, missing):
    entry = json.load(open(left.file))
    del entry["samples"][missing]
    with open(left.file, "w") as out:
        json.dump(entry, out)
    assert left.seen()["unchanged"] is False


def test_any_sampled_block_that_changed_makes_the_data_foreign(left):
    sample = json.load(open(left.file))["samples"][17]
    left.write(sample["offset"] + sample["length"] - 1, b"\0\1")
    assert left.seen()["unchanged"] is False


def test_a_write_that_no_sample_shows_is_seen_by_the_kernels_counter(left):
    left.count(201)
    assert left.seen()["unchanged"] is False


def test_until_it_is_let_go_of_a_drive_is_being_written(left):
    own_data.begin(left.host, left.state_dir, IDENTITY, "second")
    seen = left.seen()
    assert (seen["run_id"], seen["state"], seen["unchanged"]) == ("second", "writing", False)


def test_hashes_in_an_entry_that_says_writing_prove_nothing(left):
    entry = json.load(open(left.file))
    with open(left.file, "w") as out:
        json.dump(dict(entry, state="writing"), out)
    assert left.seen()["unchanged"] is False


def test_a_run_that_wrote_nothing_claims_nothing(left, fake):
    left.run("second", sectors=200)
    assert left.seen()["run_id"] == "r" and left.seen()["unchanged"] is True
    os.unlink(left.file)
    left.run("third", sectors=200)
    assert left.seen() is None and os.listdir(os.path.dirname(left.file)) == []


@pytest.mark.parametrize("change", [{"serial": "S2"}, {"wwn": "eui.02"}, {"wwn": None}, {"backing_file": "/x"}, {"model": "N"}])
def test_another_drive_has_another_entry(left, change):
    assert left.seen(dict(IDENTITY, **change)) is None


@pytest.mark.parametrize("change", [{"size_bytes": SIZE // 2}, {"logical_block_size_bytes": 4096}, {"diskseq": 8}])
def test_a_format_or_another_attach_does_not_make_another_drive(left, change):
    assert own_data.read(left.state_dir, dict(IDENTITY, **change)) is not None


def not_roots(left):
    os.chown(left.file, 65534, -1)


def a_link(left):
    os.rename(left.file, left.file + ".x")
    os.symlink(left.file + ".x", left.file)


@pytest.mark.parametrize(
    "spoil",
    [
        not_roots,
        a_link,
        lambda left: os.chmod(left.file, 0o666),
        lambda left: os.chmod(left.file, 0o664),
        lambda left: os.chmod(os.path.dirname(left.file), 0o777),
        lambda left: os.chown(os.path.dirname(left.file), 65534, -1),
        lambda left: os.chmod(left.state_dir, 0o777),
        lambda left: os.unlink(left.file),
        lambda left: open(left.file, "w").close(),
    ],
)
def test_a_ledger_that_others_may_write_does_not_count(left, spoil):
    assert left.seen() is not None
    spoil(left)
    assert left.seen() is None


ANYTHING = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3), max_leaves=4)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["schema_version", "identity", "run_id", "state", "released", "samples", "written"]), ANYTHING)
def test_no_damaged_entry_is_ever_our_own_data(left, key, value):
    with open(left.file) as source:
        good = source.read()
    entry = json.loads(good)
    try:
        with open(left.file, "w") as out:
            json.dump(dict(entry, **{key: value}), out)
        seen = left.seen()
        harmless = key in ("released", "written") or value == entry[key] or (key == "run_id" and isinstance(value, str))
        assert seen is None or harmless or seen["unchanged"] is False
    finally:
        with open(left.file, "w") as out:
            out.write(good)


@pytest.mark.parametrize("name", ["x; rm -rf /", "../../etc/passwd", "A" * 300, "é\n", ".."])
def test_no_name_of_a_drive_leaves_the_folder(tmp_path, name):
    path = own_data.path_of(str(tmp_path), dict(IDENTITY, serial=name))
    assert os.path.dirname(path) == str(tmp_path / "drives") and len(os.path.basename(path)) < 200


def test_without_a_state_folder_nothing_is_known():
    assert own_data.read(None, IDENTITY) is None and own_data.read("/no/such/folder", IDENTITY) is None
