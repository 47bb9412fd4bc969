# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ledger of our own data, on a file that stands for a drive."""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import own_data, rules

SIZE = 8 << 20
IDENTITY = {
    "serial": "S1",
    "wwn": "eui.01",
    "model": "M",
    "backing_file": None,
    "size_bytes": SIZE,
    "logical_block_size_bytes": 512,
    "kernel_name": "nvme0n1",
    "diskseq": 7,
}

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the ledger counts only while it is root's")


class Drive:
    """A drive that is a file, and its counters in sysfs."""

    def __init__(self, fake, path):
        self.host, self.path, self.state_dir = fake, path, str(path.parent / "state")
        os.makedirs(self.state_dir, mode=0o755)
        self.boot("one")
        self.counting("1")
        self.count(100)

    def boot(self, boot_id):
        self.host.put("/proc/sys/kernel/random/boot_id", boot_id)

    def counting(self, switch):
        self.host.put("/sys/block/nvme0n1/queue/iostats", switch)

    def count(self, sectors):
        self.host.put("/sys/block/nvme0n1/stat", f"1 0 8 0 2 0 {sectors} 0 0 0 0 0 0 40 0 0 0\n")

    def write(self, offset, data):
        with open(self.path, "r+b") as file:
            file.seek(offset)
            file.write(data)

    def run(self, run_id="r", sectors=200, reason="", blank=False):
        before = own_data.begin(self.host, self.state_dir, IDENTITY, run_id)
        self.count(sectors)
        own_data.end(self.host, before, IDENTITY, reason, blank)

    def seen(self, identity=None):
        entry = own_data.read(self.state_dir, identity or IDENTITY)
        if entry is None:
            return None
        return dict(own_data.known(entry), untouched=own_data.untouched(self.host, entry, identity or IDENTITY))

    @property
    def file(self):
        return own_data.path_of(self.state_dir, IDENTITY)


@pytest.fixture
def left(fake, tmp_path):
    """A drive on which a run has left its data."""
    drive = Drive(fake, tmp_path / "drive")
    drive.run()
    return drive


def test_what_nobody_wrote_to_since_is_ours(left):
    seen = left.seen()
    assert (seen["run_id"], seen["state"], seen["reason"], seen["proved"], seen["untouched"]) == (
        "r",
        "released",
        "",
        "",
        True,
    )
    assert os.stat(left.file).st_mode & 0o777 == 0o644


def rewrite(left, **fields):
    with open(left.file) as source:
        entry = json.load(source)
    with open(left.file, "w") as out:
        json.dump(dict(entry, **fields), out)


@pytest.mark.parametrize(
    "stage",
    [
        lambda left: left.boot("two"),
        lambda left: left.count(201),
        lambda left: left.count(199),
        lambda left: left.counting("0"),
        lambda left: left.host.put("/sys/block/nvme0n1/stat", ""),
        lambda left: left.host.put("/proc/sys/kernel/random/boot_id", ""),
        lambda left: rewrite(left, state="writing"),
        lambda left: rewrite(left, written=None),
        lambda left: rewrite(left, written={}),
        lambda left: own_data.begin(left.host, left.state_dir, IDENTITY, "second"),
    ],
)
def test_the_counters_prove_nothing(left, stage):
    stage(left)
    assert left.seen()["untouched"] is False


@pytest.mark.parametrize("change", [{"diskseq": 8}, {"diskseq": None}])
def test_another_attachment_proves_nothing(left, change):
    assert left.seen(dict(IDENTITY, **change))["untouched"] is False


def test_a_file_behind_a_loop_device_is_written_without_its_counters(fake, tmp_path, monkeypatch):
    monkeypatch.setitem(IDENTITY, "backing_file", "/x")
    drive = Drive(fake, tmp_path / "drive")
    drive.run()
    assert drive.seen()["state"] == "released" and drive.seen()["untouched"] is False


def test_nothing_is_proved_of_what_was_released_while_the_kernel_did_not_count(fake, tmp_path):
    drive = Drive(fake, tmp_path / "drive")
    drive.counting("0")
    drive.run(sectors=100)
    drive.counting("1")
    assert drive.seen()["state"] == "released" and drive.seen()["untouched"] is False


def test_the_counters_prove_nothing_of_a_drive_that_was_left_blank(fake, tmp_path):
    """Data that is there now was written past them: `nvme write`, sg_dd."""
    drive = Drive(fake, tmp_path / "drive")
    drive.run(blank=True)
    assert drive.seen()["state"] == "released" and drive.seen()["untouched"] is False


def test_until_it_is_let_go_of_a_drive_is_being_written(left):
    own_data.begin(left.host, left.state_dir, IDENTITY, "second")
    assert (left.seen()["run_id"], left.seen()["state"]) == ("second", "writing")


def test_evidence_is_kept_with_its_reason(left):
    left.run("second", sectors=300, reason="iops: write_iops is 5")
    assert (left.seen()["state"], left.seen()["reason"], left.seen()["run_id"]) == (
        "evidence",
        "iops: write_iops is 5",
        "second",
    )


def test_evidence_outlives_the_job_that_noted_it(left):
    before = own_data.begin(left.host, left.state_dir, IDENTITY, "second")
    own_data.note(before, IDENTITY, "iops: write_iops is 5")
    assert (left.seen()["state"], left.seen()["reason"]) == ("writing", "iops: write_iops is 5")
    own_data.close(left.state_dir, "second")
    assert (left.seen()["state"], left.seen()["reason"]) == ("evidence", "iops: write_iops is 5")


def test_a_run_that_is_over_is_closed_and_its_counters_forgotten(left):
    own_data.begin(left.host, left.state_dir, IDENTITY, "second")
    own_data.close(left.state_dir, "other")
    own_data.close(left.state_dir, "second", [left.file])
    assert left.seen()["state"] == "writing"
    own_data.close(left.state_dir, "second")
    assert (left.seen()["state"], left.seen()["untouched"]) == ("released", False)
    own_data.close(str(left.path), "second")  # no ledger there


def test_writes_that_the_kernel_counted_refute_what_a_look_saw_by_chance(left):
    entry = own_data.read(left.state_dir, IDENTITY)
    assert not own_data.touched(left.host, entry, IDENTITY)
    left.count(201)
    assert own_data.touched(left.host, entry, IDENTITY)
    assert not own_data.touched(left.host, entry, dict(IDENTITY, diskseq=8))  # counted from another attachment on
    left.boot("two")
    assert not own_data.touched(left.host, entry, IDENTITY)


def test_sentinels_are_noted_with_their_hashes(left):
    before = own_data.begin(left.host, left.state_dir, IDENTITY, "second")
    own_data.note(before, IDENTITY, "", {512: b"b" * 512, 0: b"a" * 512})
    entry = own_data.read(left.state_dir, IDENTITY)
    assert entry["state"] == "writing" and [(item["offset"], item["length"]) for item in entry["sentinels"]] == [
        (0, 512),
        (512, 512),
    ]
    assert entry["sentinels"][0]["sha256"] == own_data.fingerprint(b"a" * 512)


def test_a_run_that_wrote_nothing_claims_nothing(left):
    left.run("second", sectors=200)
    assert left.seen()["run_id"] == "r" and left.seen()["untouched"] is True
    os.unlink(left.file)
    left.run("third", sectors=200)
    assert left.seen() is None and os.listdir(os.path.dirname(left.file)) == []


def test_evidence_counts_for_a_new_run_of_the_same_id(left):
    left.run("second", sectors=300, reason="read_iops 9 < 10")
    own_data.close(left.state_dir, "second")
    assert "evidence" in rules.ours(left.seen(), "second") and "evidence" not in rules.ours(left.seen(), "third")
    own_data.close(left.state_dir, "second", removed=True)
    assert rules.ours(left.seen(), "second") == () and left.seen()["state"] == "evidence"
    assert "evidence" in rules.lifted_codes({"serial": "S", "release_evidence": "second"}, left.seen())


def test_evidence_of_a_run_that_wrote_nothing_is_kept(left):
    before = left.seen()
    left.run("second", sectors=200, reason="read_iops 9 < 10")
    assert (left.seen()["run_id"], left.seen()["state"], left.seen()["reason"]) == (
        "second",
        "evidence",
        "read_iops 9 < 10",
    )
    # What was proved of the data before is what is proved of it now.
    assert left.seen()["untouched"] == before["untouched"]
    os.unlink(left.file)
    left.run("third", sectors=200, reason="read_iops 9 < 10")
    assert left.seen()["state"] == "evidence" and left.seen()["untouched"] is False


@pytest.mark.parametrize(
    "change", [{"serial": "S2"}, {"wwn": "eui.02"}, {"wwn": None}, {"backing_file": "/x"}, {"model": "N"}]
)
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


def a_folder(left):
    os.unlink(left.file)
    os.mkdir(left.file)


def text(left, data):
    with open(left.file, "wb") as out:
        out.write(data)


FOLDER = os.path.dirname
SPOILT = [
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
]


@pytest.mark.parametrize("reason", ["", "iops: write_iops is 5"], ids=["released", "evidence"])
@pytest.mark.parametrize("place, spoil", SPOILT)
def test_an_entry_that_others_may_write_or_that_is_damaged_is_told_and_never_passed_over(left, place, spoil, reason):
    left.run("second", sectors=300, reason=reason)
    spoil(left)
    with pytest.raises(own_data.Untrusted) as told:
        left.seen()
    assert place(left) in str(told.value)
    # Nor does the end of its run make it one of root's.
    before = os.lstat(left.file).st_ino
    own_data.close(left.state_dir, "second", removed=True)
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
    with pytest.raises(own_data.Untrusted, match="keeps evidence of run second.*model was M, is N"):
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
        except own_data.Untrusted as error:
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
        assert seen is None or harmless or seen["untouched"] is False
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
    before = own_data.begin(host, state_dir, SATA, "third")
    assert own_data.read(state_dir, moved) is None
    left.count(900)
    own_data.end(host, before, SATA, "iops: write_iops is 5")
    if kept:
        with pytest.raises(own_data.Untrusted, match="keeps evidence of run third.*may be this one"):
            own_data.read(state_dir, moved)
    else:
        assert own_data.read(state_dir, moved) is None


def test_a_neighbours_damaged_entry_is_no_matter_of_this_drive(left):
    path = own_data.path_of(left.state_dir, {**SATA, "serial": "S11"})
    with open(path, "w") as file:
        file.write("{")
    os.chmod(path, 0o644)
    assert own_data.read(left.state_dir, SATA) is None


@pytest.mark.parametrize("name", ["x; rm -rf /", "../../etc/passwd", "A" * 300, "é\n", ".."])
def test_no_name_of_a_drive_leaves_the_folder(tmp_path, name):
    path = own_data.path_of(str(tmp_path), dict(IDENTITY, serial=name))
    assert os.path.dirname(path) == str(tmp_path / "drives") and len(os.path.basename(path)) < 200


def test_without_a_state_folder_nothing_is_known():
    assert own_data.read(None, IDENTITY) is None and own_data.read("/no/such/folder", IDENTITY) is None


def test_a_drive_that_is_given_up_keeps_its_run_and_the_reason(left):
    before = own_data.begin(left.host, left.state_dir, IDENTITY, "second")
    own_data.note(before, IDENTITY, "", {0: b"x" * 512})
    own_data.give_up(before, IDENTITY, "the drive hangs")
    entry = own_data.read(left.state_dir, IDENTITY)
    assert (entry["state"], entry["run_id"], entry["reason"], len(entry["sentinels"])) == (
        "writing",
        "second",
        "the drive hangs",
        1,
    )
    assert own_data.known(entry)["reason"] == "the drive hangs"
    # cleanup.yml of that run: what it left is evidence until it is released.
    own_data.close(left.state_dir, "second")
    entry = own_data.read(left.state_dir, IDENTITY)
    assert (entry["state"], entry["written"]) == ("evidence", None)
