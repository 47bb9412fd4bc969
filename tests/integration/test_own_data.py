# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our own data on real loop devices: a drive can be qualified night after night, foreign data is refused."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import own_data_lab
import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import fio_data, ledger_format
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import control
from ansible_collections.ssdlab.fleet.tests.fixtures.fio_data import filled


@pytest.fixture(name="lab")
def fixture_lab(tmp_path, monkeypatch, loop_drive):
    with own_data_lab.standing(tmp_path, monkeypatch, loop_drive) as lab:
        yield lab


NIGHTS = ("one", "two", "three")


def fill_that_begins(head):
    """A sector of fio's fill that begins with these bytes, as one may by chance."""
    return filled(fio_data.LAWS[0], int.from_bytes(head, "little"))


LUKS = b"LUKS\xba\xbe\0\1"


def test_a_superblock_that_is_in_our_fill_by_chance(lab):
    assert lab.run("one")[0] == "complete"
    lab.write_past(0, fill_that_begins(LUKS))
    assert lab.codes() == [] and "signature" in lab.codes(state=False)
    assert lab.run("two")[0] == "complete"
    # The same bytes in a block that no fill explains, or with foreign data where a partition would begin.
    lab.write_past(0, LUKS + os.urandom(504))
    assert lab.codes() == ["signature"]
    lab.write_past(0, fill_that_begins(LUKS))
    lab.write_past((1 << 20) + 65536, b"data")
    assert lab.codes() == ["signature"]


def test_a_drive_can_be_qualified_night_after_night(lab):
    for night in NIGHTS:
        assert lab.run(night)[0] == "complete"
        assert lab.codes() == [] and lab.codes(state=False) == ["unsigned_data"]
        assert (lab.inspect()["own_data"]["run_id"], lab.entry()["state"]) == (night, "released")


def test_nights_over_a_reattach_and_a_reboot_need_no_excuse(lab):
    """What fio filled proves itself: another diskseq, or another boot id in the ledger, as a reboot leaves it."""
    for night in NIGHTS:
        assert lab.run(night)[0] == "complete"
        lab.reattach()
        lab.rewrite(written=dict(lab.entry()["written"], boot_id="the boot before"))
        assert lab.inspect()["own_data"]["proved"] == "content" and lab.codes() == []


def test_every_byte_of_the_fill_counts(lab):
    """One byte that fio did not write, in the middle of a drive that is full of its data."""
    lab.run("one")
    lab.reattach()  # else the kernel's counters alone would tell
    for place in (0, 4096 * 777 + 7, (32 << 20) - 1):
        was = lab.put(place, b"\x5a")
        lab.refused(f"two-{place}", "unsigned_data")
        lab.put(place, was)
        assert lab.codes() == []


def test_the_entry_gives_foreign_data_up(lab):
    lab.run("one")
    lab.put(20 << 20, b"foreign")
    lab.options = {"ssd_overwrite_data": True}
    assert lab.codes() == []
    outcome, journal = lab.run("two")
    found = [record["overridden"] for record in journal if record["event"] == "guard"]
    assert outcome == "complete" and [item["code"] for item in found[0]] == ["unsigned_data"]
    lab.options = {}
    assert lab.codes() == []


def raw(lab):
    lab.put(17 << 20, os.urandom(8 << 20))


def file_system(lab):
    subprocess.run(["mkfs.ext4", "-q", lab.drive.path], check=True)


def wiped_file_system(lab):
    """As somebody leaves it who took the drive into use and gave it back."""
    file_system(lab)
    lab.put(20 << 20, b"somebody's letter " * 5000)
    subprocess.run(["wipefs", "-aq", lab.drive.path], check=True)


def another_file(lab):
    lab.drive.detach()
    other = lab.drive.file.with_suffix(".other")
    other.write_bytes(os.urandom(32 << 20))
    os.replace(other, lab.drive.file)
    lab.attach()


def reattached(lab):
    raw(lab)
    lab.reattach()


FOREIGN = [
    (raw, "unsigned_data"),
    (file_system, "signature"),
    (wiped_file_system, "signature"),
    (another_file, "unsigned_data"),
    (reattached, "unsigned_data"),
]


@pytest.mark.case(51)
@pytest.mark.parametrize("stage, code", FOREIGN, ids=lambda value: getattr(value, "__name__", value))
def test_case_51_a_dead_run_is_not_resumed_over_foreign_data(lab, stage, code):
    """The codes: unsigned_data, or signature."""
    lab.kill_one("one")
    stage(lab)
    lab.refused("one", code)


@pytest.mark.case(52)
@pytest.mark.parametrize("end", ["stop", "cleanup"])
def test_case_52_nor_after_stop_or_cleanup(lab, end):
    run = lab.kill_one("one")
    assert lab.entry()["state"] == "writing"
    control.stop(Host(), run)
    if end == "cleanup":
        control.remove(Host(), run)
    assert lab.entry()["state"] == "released" and lab.entry()["written"] is None
    raw(lab)
    lab.refused("one", "unsigned_data")
    lab.refused("two", "unsigned_data")


@pytest.mark.case(53)
def test_case_53_raw_data_written_while_it_was_attached_anew(lab):
    lab.run("one")
    lab.reattach()
    raw(lab)
    lab.refused("two", "unsigned_data")


@pytest.mark.case(54)
def test_case_54_written_while_the_kernel_did_not_count(lab):
    lab.run("one")
    switch = Path("/sys/block", lab.drive.name, "queue/iostats")
    switch.write_text("0")
    with open(lab.drive.path, "r+b", buffering=0) as device:
        device.seek(9 << 20)
        device.write(os.urandom(4096))
    switch.write_text("1")
    lab.refused("two", "unsigned_data")


@pytest.mark.case(55)
def test_case_55_written_through_the_file_behind_it(lab):
    lab.run("one")
    with open(lab.drive.file, "r+b") as file:
        file.seek(21 << 20)
        file.write(os.urandom(4096))
    lab.refused("two", "unsigned_data")


@pytest.mark.case(56)
def test_case_56_a_late_restore_declares_nothing_ours(lab):
    """`engine restore FOLDER`, by hand, hours later; with the codes signature and unsigned_data."""
    run = lab.kill_one("one")
    file_system(lab)
    own_data_lab.restore(run)
    lab.refused("one", "signature")
    lab.refused("two", "signature")
    subprocess.run(["wipefs", "-aq", lab.drive.path], check=True)
    own_data_lab.restore(run)
    lab.refused("one", "signature")  # the copies of its superblock
    lab.options = {"allow": ["signature"]}
    lab.refused("one", "unsigned_data")


@pytest.mark.case(58)
def test_case_58_a_fill_that_no_run_of_this_host_left(lab):
    """Random data of fio on a drive that the ledger does not know: somebody's test may be under way."""
    fio = [
        "fio",
        "--name=x",
        "--filename=" + lab.drive.path,
        "--rw=write",
        "--bs=128k",
        "--refill_buffers=1",
        "--direct=1",
    ]
    subprocess.run(fio, check=True, stdout=subprocess.DEVNULL)
    lab.refused("one", "unsigned_data")


@pytest.mark.case(59)
def test_case_59_noise_proves_nothing(lab):
    """A crypto erase may leave noise; in another boot, or behind a file, nobody can tell it from somebody's encrypted
    data.
    """
    lab.run("one")
    lab.put(0, os.urandom(32 << 20))
    lab.refused("two", "unsigned_data")


@pytest.mark.case(53)
def test_case_53_a_drive_that_is_larger_now(lab):
    """A resized namespace, a clipped capacity that was opened: what no run of ours wrote came to light."""
    lab.run("one")
    with open(lab.drive.file, "ab") as file:
        file.write(b"the rest of somebody's data".ljust(1 << 20, b"."))
    subprocess.run(["losetup", "--set-capacity", lab.drive.path], check=True)
    lab.refused("two", "unsigned_data")


def test_a_ledger_that_somebody_else_may_write_does_not_count(lab):
    lab.run("one")
    os.chmod(lab.state, 0o777)
    assert lab.codes() == ["untrusted_state"]


def test_a_refused_drive_is_never_claimed(lab):
    subprocess.run(["mkfs.ext4", "-q", lab.drive.path], check=True)
    assert lab.run("one")[0] == "refused"
    assert ledger_format.read(lab.state, lab.inspect()["identity"]) is None
