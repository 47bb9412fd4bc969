# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `retired: true` lifts, and what it does not: each row is a drive as somebody may have left it, and whether
anybody who is not at the keyboard could still need it. The guard itself judges all of them at once.
"""

from __future__ import annotations

import datetime
import os
import shutil
import struct
import time
import uuid

import members_on_disk
import on_disk
import pytest
from wrong_drive import MIB, SIZE, needs, run

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import (
    guard_check,
    ledger_format,
    retired,
    retired_group,
    rules,
    self_described,
)
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.data_scan import Terms
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.ledger import LedgerEntry

GIB = 1 << 30
VSAN = "381CFCCC-7288-11E0-92EE-000C2911D0B2"
ANYTHING = " "
# {name: (what has to be in the refusal, "" where it is given up; function)}
STAGES = {}


def stage(name, says="", size=SIZE):
    return lambda function: STAGES.setdefault(name, (says, size, function)) and function


def write(disk, pieces, base=0):
    for offset, data in pieces:
        disk.write(offset + base if offset >= 0 else offset, data)


def within(disk, *argv, offset, length=0, **options):
    """A command on a part of the drive; length: 0 for all behind the offset."""
    limit = ["--sizelimit", str(length)] if length else []
    path = run("losetup", "--find", "--show", "--offset", str(offset), *limit, disk.path)
    try:
        run(*argv, path, **options)
    finally:
        run("losetup", "--detach", path)


def ext4(*options):
    return ("mkfs.ext4", "-q", "-E", "nodiscard", *options)


def gpt(disk, *types):
    """Partitions of these types, of 16 MiB each, and one of the rest."""
    sizes = ["+16M"] * (len(types) - 1) + ["0"]
    for number, (kind, size) in enumerate(zip(types, sizes), 1):
        run("sgdisk", "-n", f"{number}:0:{size}", "-t", f"{number}:{kind}", "-c", f"{number}:name {number}", disk.path)


def luks(disk, version):
    given = ("--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000", "--type", f"luks{version}")
    run("cryptsetup", "luksFormat", "-q", *given, disk.path, input="secret")


def first_half(disk, *argv, base=0):
    """What a command makes on a device of twice the size, as far as it lies on this one."""
    whole = disk.file + ".whole"
    run("truncate", "-s", str(2 * disk.sealed_bytes), whole)
    run(*argv, whole)
    with open(whole, "rb") as file:
        disk.write(base, file.read(min(disk.sealed_bytes - base, 64 * MIB)))
    os.unlink(whole)


def group(disk, volumes, drives=1, more="", base=0, size_bytes=SIZE):
    write(disk, members_on_disk.volume_group("data", drives, volumes, more, size_bytes)[0], base)


# --- given up -----------------------------------------------------------------

stage("blank")(lambda disk: None)
stage("raw data")(lambda disk: disk.write(5 * MIB, os.urandom(MIB)))
stage("ext4")(lambda disk: run(*ext4(), disk.path))
stage("ext2")(lambda disk: run("mkfs.ext2", "-q", disk.path))
stage("xfs", size=400 * MIB)(lambda disk: run("mkfs.xfs", "-q", disk.path))
stage("btrfs", size=200 * MIB)(lambda disk: run("mkfs.btrfs", "-q", disk.path))
stage("swap")(lambda disk: run("mkswap", disk.path))
stage("LUKS 1")(lambda disk: luks(disk, 1))
stage("LUKS 2")(lambda disk: luks(disk, 2))
stage("a volume group of its own")(lambda disk: group(disk, {"srv": (0, 10, "")}))
stage("a table that is gone")(lambda disk: within(disk, *ext4(), offset=MIB))
stage("an array of one")(lambda disk: write(disk, members_on_disk.array(1, 1, 0)))
stage("an MBR with a logical partition")(
    lambda disk: run("sfdisk", "-q", disk.path, input="label: dos\n,16M,83\n,,5\n,10M,82\n")
)


@stage("a whole server's GPT", size=4 * GIB)
def _server(disk):
    gpt(disk, "EF00", "8300", "8200", "8300")
    within(disk, *ext4("-L", "srv"), offset=17 * MIB, length=16 * MIB)
    within(disk, "mkswap", offset=33 * MIB, length=16 * MIB)
    within(disk, *ext4("-L", "data"), offset=49 * MIB, length=4000 * MIB)


@stage("an ext4 on a volume")
def _volume(disk):
    gpt(disk, "8E00")
    group(disk, {"root": (0, 8, "")}, base=MIB, size_bytes=46 * MIB)
    within(disk, *ext4(), offset=2 * MIB, length=8 * MIB)


@stage("a GPT of blocks of 4096 bytes")
def _blocks(disk):
    path = run("losetup", "--find", "--show", "--sector-size", "4096", disk.file)
    try:
        run("sfdisk", "-q", "--no-reread", path, input="label: gpt\n,,L\n")
    finally:
        run("losetup", "--detach", path)
    disk.write(0, b"")


# --- refused ------------------------------------------------------------------

for _name, _says in (("bcache", "bcache"), ("ceph_bluestore", "ceph_bluestore"), ("zfs_member", "a member of ZFS")):
    stage(f"{_name} on the drive", _says)(lambda disk, name=_name: write(disk, on_disk.PIECES[name]))
stage("bcachefs", "bcachefs")(lambda disk: write(disk, on_disk.BCACHEFS))
for _name, _type, _says in (
    ("vSAN", VSAN, ""),
    ("an unknown type", str(uuid.UUID(int=7)), "type that is not known"),
    ("ZFS", "BF01", "ZFS"),
    ("an OSD of Ceph", "4FBD7E29-9D25-41B8-AFD0-062C0CEFF05D", "Ceph"),
    ("Storage Spaces", "E75CAF8F-F680-4CEE-AFA3-B001E56EFC2D", "Storage Spaces"),
    ("md without its superblock", "FD00", "linux_raid_member"),
    ("LVM without its label", "8E00", "LVM2_member"),
):
    stage(f"a partition of {_name}", _says or ANYTHING)(lambda disk, kind=_type: gpt(disk, kind))
stage("half a mirror of md", "md server:0 has 2 members")(lambda disk: write(disk, members_on_disk.array(1, 2, 0)))
stage("half a volume group", "LVM data has 2 members")(lambda disk: group(disk, {"srv": (0, 10, "")}, 2))
stage("an exported volume group", "exported")(lambda disk: group(disk, {}, 1, 'flags = ["EXPORTED"]\n'))
stage("a cluster's volume group", "lock_type")(lambda disk: group(disk, {}, 1, 'lock_type = "sanlock"\n'))
stage("another host's volume group", "system_id")(lambda disk: group(disk, {}, 1, 'system_id = "rack9"\n'))
stage("a volume of Ceph", "OSD of Ceph")(lambda disk: group(disk, {"osd-block-1": (0, 9, "")}))
stage("a larger physical volume", "something larger")(lambda disk: group(disk, {}, size_bytes=2 * SIZE))
stage("half a stripe", "something larger")(lambda disk: first_half(disk, *ext4()))
stage("half a stripe, its table gone", "something larger")(lambda disk: first_half(disk, *ext4(), base=MIB))
stage("half a stripe with a GPT", "for another device")(lambda disk: first_half(disk, "sgdisk", "-n", "1:0:+16M"))
stage("the journal of a file system elsewhere", "jbd")(
    lambda disk: run("mkfs.ext4", "-q", "-b", "4096", "-O", "journal_dev", disk.path)
)
stage("a lost table of a mirror", "a member of md")(
    lambda disk: disk.write(-MIB - 8192, struct.pack("<II", 0xA92B4EFC, 1).ljust(4096, b"\1"))
)
stage("a label that no look finds", "a member of md")(
    lambda disk: disk.write(-2 * MIB, struct.pack("<II", 0xA92B4EFC, 1).ljust(4096, b"\1"))
)
stage("a lost table of a pool", "zfs_member")(lambda disk: disk.write(131072 + MIB, struct.pack("<Q", 0x00BAB10C)))
stage("a lost table of LVM", "LVM2_member")(lambda disk: disk.write(MIB + 512, on_disk.lvm_label(SIZE)))
stage("a RAID controller's member", "DDF")(lambda disk: disk.write(-512, b"\xde\x11\xde\x11".ljust(512, b"\1")))


@stage("an MBR on a RAID controller's member", "RAID controllers")
def _controller(disk):
    run("sfdisk", "-q", disk.path, input="label: dos\n,16M,83\n")
    disk.write(-65536, os.urandom(512))


@stage("xfs with its log elsewhere", "log is on another device", 400 * MIB)
def _log(disk):
    run("mkfs.xfs", "-q", disk.path)
    disk.write(48, bytes(8))


@stage("the header of another LUKS", "header of another device")
def _detached(disk):
    luks(disk, 1)
    disk.write(104, bytes(4))


@stage("an encrypted OSD of Ceph", "ceph_fsid=1234")
def _encrypted(disk):
    luks(disk, 2)
    run("cryptsetup", "config", disk.path, "--subsystem", "ceph_fsid=1234 osd_fsid=5678")


@stage("ext4 for several hosts", "several hosts")
def _mmp(disk):
    run(*ext4("-O", "mmp"), disk.path)


@stage("one of two devices of btrfs", "1 of them is on no retired drive", 200 * MIB)
def _btrfs(disk):
    other = disk.bench.disk("its other device", 200 * MIB)
    run("mkfs.btrfs", "-q", "-d", "raid1", "-m", "raid1", disk.path, other.path)


@stage("ext4 with its journal elsewhere", "journal is on another device")
def _journal(disk):
    journal = disk.bench.disk("a journal")
    run("mkfs.ext4", "-q", "-b", "4096", "-O", "journal_dev", journal.path)
    run(*ext4("-b", "4096", "-J", "device=" + journal.path), disk.path)


@stage("a damaged GPT", "not whole")
def _damaged(disk):
    gpt(disk, "8300")
    disk.write(-512, bytes(512))


@stage("a table in a partition", "gpt")
def _nested(disk):
    gpt(disk, "8300")
    within(disk, "sgdisk", "-n", "1:0:0", offset=MIB, length=46 * MIB)


@stage("a table of two kinds", "MBR")
def _hybrid(disk):
    gpt(disk, "8300", "8300")
    run("sgdisk", "-h", "1", disk.path)


@stage("half a mirror on a volume", "md server:0 has 2 members")
def _md_on_lvm(disk):
    group(disk, {"srv": (0, 30, "")})
    write(disk, members_on_disk.array(1, 2, 0, size_sectors=20 * MIB // 512), base=MIB)


@stage("half a volume group on an array", "LVM data has 2 members")
def _lvm_on_md(disk):
    write(disk, members_on_disk.array(1, 1, 0))
    write(disk, members_on_disk.volume_group("data", 2, {}, size_bytes=30 * MIB)[0], base=MIB)


@pytest.fixture(scope="module")
def judged(make_bench):
    """What the guard says of every drive of the table, each retired; and that it changed none."""
    bench = make_bench()
    needs("sgdisk", "mkfs.xfs", "mkfs.btrfs", "cryptsetup")
    for name, (_says, size, function) in STAGES.items():
        function(bench.disk(name, size))
    names = list(STAGES)
    for name in names:
        bench.disks[name].seal()
    state_dir = os.path.join(bench.folder, "state")
    entries = [parse(dict(bench.disks[name].entry, retired=True)) for name in names]
    found = guard_check.check(Host(), entries, state_dir=state_dir, terms=Terms(0.5))
    assert not [name for name in names if bench.disks[name].has_changed()]
    return dict(zip(names, found))


@pytest.mark.parametrize("name", STAGES)
def test_a_retired_drive_is_given_up_where_it_is_nobody_elses(judged, name):
    found, says = judged[name], STAGES[name][0]
    told = {refusal.code: refusal.message for refusal in found.refusals}
    assert found.eligible is not bool(says), told
    assert says in told.get("not_given_up", ANYTHING), told


# --- drives that belong together ----------------------------------------------


def together(*disks, retired_ones=None, state_dir=None, **options):
    """What the guard says of drives in one inventory, all or some of them retired: {disk: why not}."""
    state_dir = state_dir or os.path.join(disks[0].bench.folder, "state")
    chosen = disks if retired_ones is None else retired_ones
    entries = [parse(dict(disk.entry, **({"retired": True} if disk in chosen else {}))) for disk in disks]
    found = guard_check.check(Host(), entries, state_dir=state_dir, terms=Terms(0.2), **options)
    return [" ".join(f"{one.code} {one.message}" for one in each.refusals) for each in found]


@pytest.mark.parametrize("kind", ["LVM", "md", "btrfs"])
def test_members_are_given_up_together_or_not_at_all(make_bench, kind):
    bench = make_bench()
    size = 200 * MIB if kind == "btrfs" else SIZE
    first, second = bench.disk("first", size), bench.disk("second", size)
    number, pieces = uuid.uuid4(), []
    if kind == "btrfs":
        run("mkfs.btrfs", "-q", "-d", "raid1", "-m", "raid1", first.path, second.path)
    elif kind == "LVM":
        pieces = members_on_disk.volume_group("data", 2, {"srv": (0, 10, ""), "home": (1, 10, "")})
    else:
        pieces = [members_on_disk.array(1, 2, own, number) for own in range(2)]
    for disk, one in zip((first, second), pieces):
        write(disk, one)
    assert together(first, second) == ["", ""]
    why = together(first, second, retired_ones=[first])
    assert "is on no retired drive of this host" in why[0] and "signature" in why[1]
    state_dir = os.path.join(bench.folder, "state")
    found = guard_check.check(
        Host(),
        [parse(dict(first.entry, retired=True))],
        state_dir=state_dir,
        terms=Terms(0.2),
        beside=[parse(dict(second.entry, retired=True))],
    )
    assert found[0].eligible, found[0].refusals  # as a host job checks one of them, with the others of its plan
    # The first one is erased; of the second one's group nothing else is missing then.
    retired.note(state_dir, found[0].identity.__dict__, "r1", "true", found[0].members)
    first.write(0, bytes(size))
    assert together(second, state_dir=state_dir, run_id="r1") == [""]
    (why,) = together(second, state_dir=state_dir, run_id="r2")
    assert "is on no retired drive of this host" in why


@pytest.mark.parametrize(
    ("at", "value", "says"),
    [
        (72, 99, "one of them is out of date"),
        (136, 3, "1 of them is on no retired drive"),
        (201, 0, "btrfs replace"),
        (None, 0, "the checksum of its superblock is wrong"),
    ],
    ids=["generation", "devices", "replacement", "checksum"],
)
def test_devices_of_btrfs_that_do_not_belong_together_are_refused(make_bench, at, value, says):
    """One was away, or is missing, or is about to take another's place, or can't be believed."""
    bench = make_bench()
    disks = [bench.disk(name, 200 * MIB) for name in ("first", "second")]
    run("mkfs.btrfs", "-q", "-d", "raid1", "-m", "raid1", *(disk.path for disk in disks))
    for place in (64 << 10, 64 << 20):
        with open(disks[0].file, "r+b") as drive:
            drive.seek(place)
            block = bytearray(drive.read(4096))
            if at is None:
                block[1] ^= 1
            else:
                block[at : at + 8] = value.to_bytes(8, "little")
                block[:4] = self_described._crc32c(bytes(block[32:])).to_bytes(4, "little")
            drive.seek(place)
            drive.write(block)
    told = together(*disks)
    assert says in told[0] and "not_given_up" in told[1], told


def test_members_of_which_one_is_out_of_date_are_refused(make_bench):
    """It failed, and another drive took its place."""
    bench = make_bench()
    first, second = bench.disk("first"), bench.disk("second")
    number = uuid.uuid4()
    for own, (disk, events) in enumerate(((first, 100), (second, 900))):
        write(disk, members_on_disk.array(1, 2, own, number, events=events))
    assert all("one of them is out of date" in why for why in together(first, second))


def test_a_member_that_is_mounted_is_not_given_up_beside_another(make_bench, monkeypatch):
    """A host job checks one drive, and the others of its plan only for this."""
    bench = make_bench()
    first, second = bench.disk("first"), bench.disk("second")
    for disk, one in zip((first, second), members_on_disk.volume_group("data", 2, {"srv": (0, 10, "")})):
        write(disk, one)
    beside = [parse(dict(second.entry, retired=True))]
    assert together(first, beside=beside) == [""]
    monkeypatch.setattr(
        retired_group.rules, "refusals", lambda facts: rules.make_refusals("mounted", facts.path, ["/srv"])
    )
    assert "is on no retired drive" in together(first, beside=beside)[0]


# --- the statement ------------------------------------------------------------


@pytest.fixture(scope="module")
def one_drive(make_bench):
    return make_bench().spare


def date(days):
    """So many days from today, asked for when it is used: tests run over midnight."""
    return (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=days)).date().isoformat()


def stated(statement):
    return statement if statement is True else date(statement)


@pytest.fixture
def disk(one_drive):
    """A blank drive, the same one for many tests: the machine has few loop devices."""
    one_drive.write(0, bytes(SIZE))
    return one_drive


@pytest.mark.parametrize(
    "statement, used, says",
    [
        (True, None, ""),
        (True, True, "used the statement up"),
        (0, True, ""),
        (0, 0, "used the statement up"),
        (-2, True, "used the statement up"),
        (-2, None, "was used after"),
        (3, None, "in the future"),
    ],
)
def test_a_statement_is_used_up_and_renewed_by_a_newer_date(make_bench, statement, used, says):
    """statement, and used, the one that a run used before: true, or a date so many days from today."""
    bench = make_bench()
    disk = bench.spare
    run(*ext4(), disk.path)
    within(disk, "debugfs", "-w", "-R", "set_super_value mtime now", offset=0)
    state_dir = os.path.join(bench.folder, "state")
    entry = parse(dict(disk.entry, retired=stated(statement)))

    def check():
        return guard_check.check(Host(), [entry], state_dir=state_dir, terms=Terms(0.2))[0]

    found = check()
    if used is not None:
        retired.note(
            state_dir, found.identity.__dict__, "r1", parse(dict(disk.entry, retired=stated(used))).options.retired, []
        )
        found = check()
    told = {refusal.code: refusal.message for refusal in found.refusals}
    assert found.eligible is not bool(says) and says in told.get("not_given_up", ""), told
    if says:
        assert any("ext" in text and "last used" in text for text in found.holds)
    else:
        assert found.gives_up and found.gives_up[0].startswith("ext")


def old_ext4(disk, *more):
    """Last used a year ago, as far as it says."""
    run(*ext4(*more), disk.path, env={**os.environ, "E2FSPROGS_FAKE_TIME": "1750000000"})


@pytest.mark.parametrize(
    "make, days, says",
    [
        (old_ext4, 30, ""),
        (lambda disk: run("mkswap", disk.path), 6, ""),
        (lambda disk: run("mkswap", disk.path), 8, "tells when it was used"),
        (lambda disk: disk.write(5 * MIB, os.urandom(MIB)), 6, ""),
        (lambda disk: disk.write(5 * MIB, os.urandom(MIB)), 8, "tells when it was used"),
        (lambda disk: None, 8, ""),
        (lambda disk: write(disk, members_on_disk.array(1, 1, 0, used_s=1750000000)), 8, "tells when it was used"),
        (lambda disk: write(disk, members_on_disk.array(1, 1, 0, used_s=int(time.time()))), 3, "was used after"),
        (lambda disk: group(disk, {}), 3, "was used after"),
    ],
)
def test_a_date_is_of_what_tells_when_it_was_used_or_of_this_week(disk, make, days, says):
    make(disk)
    entry = parse(dict(disk.entry, retired=date(-days)))
    (found,) = guard_check.check(Host(), [entry], state_dir=os.path.join(disk.bench.folder, "s"), terms=Terms(0.5))
    told = " ".join(refusal.message for refusal in found.refusals)
    assert says in told if says else found.eligible, told


@pytest.mark.parametrize(
    "state, reason, says",
    [("writing", "", "is not finished with it"), ("released", "", ""), ("evidence", "it is slow", "kept as evidence")],
)
def test_what_a_run_left_is_not_given_up_before_it_is_over(disk, state, reason, says):
    run(*ext4(), disk.path)
    state_dir = os.path.join(disk.bench.folder, "state", state)
    (found,) = guard_check.check(Host(), [parse(disk.entry)], state_dir=state_dir, terms=Terms(0.2))
    names = ledger_format.names_of(found.identity.__dict__)
    ledger_format.write(state_dir, LedgerEntry("r1", state, names, 1, reason=reason))
    (why,) = together(disk, state_dir=state_dir)
    assert bool(why) is bool(says) and says in why, why


@pytest.mark.parametrize(
    "line, lifted",
    [
        ("UUID={uuid} /srv ext4 defaults 0 2", True),
        ("/dev/disk/by-uuid/{uuid} /srv ext4 defaults 0 2", True),
        ("UUID={uuid} /srv ext4 journal_path=/dev/loop7 0 2", False),
        ("/dev/loop7 /srv ext4 journal_path=/dev/disk/by-uuid/{uuid} 0 2", False),
    ],
)
def test_a_line_of_fstab_is_given_up_where_it_names_the_drive_alone(disk, tmp_path, monkeypatch, line, lifted):
    run(*ext4(), disk.path)
    own = run("blkid", "-p", "-o", "value", "-s", "UUID", disk.path)
    fstab = tmp_path / "fstab"
    fstab.write_text(line.format(uuid=own) + "\n")
    read = Host.read
    monkeypatch.setattr(
        Host, "read", lambda host, path: fstab.read_text() if path == "/etc/fstab" else read(host, path)
    )
    entry = parse(dict(disk.entry, retired=True))
    (found,) = guard_check.check(Host(), [entry], state_dir=os.path.join(disk.bench.folder, "s"), terms=Terms(0.2))
    assert found.eligible is lifted, found.refusals
    assert any("fstab" in text for text in found.gives_up or ()) is lifted


def test_a_drive_back_in_production_is_not_erased_again(make_bench):
    """The whole of it, as it is played: the plan says what goes, the run uses the statement up, whoever used the drive
    since keeps it, also where the host's state is lost, until a newer statement.
    """
    bench = make_bench()
    disk = bench.disk("used")
    gpt(disk, "8300")
    within(disk, *ext4("-L", "srv"), offset=MIB, length=46 * MIB)
    disk.entry["retired"] = True
    planned = bench.play("-e", "ssd_mode=plan", entries=[disk.entry])
    assert planned.code == 0 and "retired, gives up partition 1" in planned.output, planned.output
    assert "label srv" in planned.output and planned.changed == []
    first = bench.play(playbook="purge", entries=[disk.entry])
    assert first.code == 0 and first.changed == ["used"], first.output
    (record,) = [one for one in first.results() if one["kind"] == "drive"]
    assert record["retired"] == "true" and any("label srv" in text for text in record["gives_up"])
    blank = bench.play(playbook="purge", entries=[disk.entry])
    assert blank.code == 0, blank.output
    run(*ext4("-L", "production"), disk.path)
    again = bench.play(playbook="purge", entries=[disk.entry])
    again.refused("used", "signature", "not_given_up")
    # The host is installed anew, and its drive becomes a database's, which has no name that anybody could tell.
    disk.write(0, os.urandom(SIZE))
    shutil.rmtree(bench.site.state)
    disk.seal()
    forgotten = bench.play(playbook="purge", entries=[disk.entry])
    assert "used the statement up" in forgotten.output and forgotten.code != 0, forgotten.output
    forgotten.untouched("used")
    disk.entry["retired"] = date(0)
    renewed = bench.play(playbook="purge", entries=[disk.entry])
    assert ["data of an unknown kind"] in [one.get("gives_up") for one in renewed.results() if one["kind"] == "drive"]
    assert renewed.code == 0 and renewed.changed == ["used"], renewed.output
