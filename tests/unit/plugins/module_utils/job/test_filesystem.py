# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file system for one test, with a host that runs nothing: what is done in which order, and undone when it fails."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import types

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.deadline import Hangs
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Result
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.held import Refused
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import filesystem
from ansible_collections.ssdlab.fleet.plugins.module_utils.job.drive_context import Attempt
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import fio
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.guard import Refusal
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.storage_layers import PlannedFilesystem
from ansible_collections.ssdlab.fleet.plugins.module_utils.tools import filesystems
from ansible_collections.ssdlab.fleet.tests.fixtures import planned

SIZE = 1 << 20
SPEC = PlannedFilesystem("xfs", 4096, ["noatime"], None)
TEST = dataclasses.replace(planned.spec(), filesystem=SPEC)
NAMES = Attempt("a", 1)
NODE = "/dev/ssdlab-fleet/7-0"


class Host:
    """Tells what it is asked to run. `fails`: the first word of a command that does not work."""

    def __init__(self, folder, did):
        self.folder, self.did, self.fails, self.tools = folder, did, "", {"all"}
        self.during, self.iostats = lambda: None, "1"

    def run(self, argv, timeout_s=60, stdin=None, started=None):
        assert argv[:3] == filesystem.WITH_US
        word = argv[3]
        self.did.append(word)
        self.during()
        return Result(list(argv), int(word == self.fails), "", "no room" if word == self.fails else "")

    def open(self, path, flags):
        return os.open(path, flags, 0o600)

    def get(self, path):
        assert path == "/sys/block/sda/queue/iostats"
        return self.iostats

    def which(self, tool):
        return None if tool in self.tools else f"/usr/sbin/{tool}"


class Room:
    """In place of a mount namespace; the folder is where nothing is mounted."""

    mounted_is = filesystems.Mounted("7:0", ("rw", "noatime"))

    def __init__(self, host):
        self.host = host
        host.did.append("room")

    def inside(self, argv):
        return argv

    def path(self, path):
        return path

    def mounted(self, _where):
        return self.mounted_is

    def close(self):
        self.host.did.append("room closed")


class Wipe:
    """In place of what is done to the drive."""

    def __init__(self, station, _identifier):
        self.did, self.made, self.reason = station.did, False, ""

    def begin(self, _plain):
        self.did.append("counted")

    def run(self, node):
        assert node == NODE
        self.did.append("wiped" if self.made else "wiped, unmade")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A station of a held drive, and the list of what was done."""
    did = []
    monkeypatch.setattr(filesystem, "Room", Room)
    monkeypatch.setattr(filesystem, "Wipe", Wipe)

    @contextlib.contextmanager
    def shared(at_end):
        did.append("shared")
        try:
            yield NODE
        except Hangs:
            did.append("left alone")
            raise
        except BaseException:
            did.append("held")
            at_end(NODE)
            raise
        did.append("held")
        at_end(NODE)

    held = types.SimpleNamespace(
        path="/dev/loop0",
        identity=Identity(major_minor="7:0", size_bytes=8192, logical_block_size_bytes=512),
        shared=shared,
        note_filesystem=lambda found: did.append("ledger"),
        confirm_node=lambda node: did.append("confirmed" if node == NODE else node),
        descriptor=lambda: 3,
    )
    bench = types.SimpleNamespace(file=None, begin_test=lambda: None, settle=lambda: did.append("settled"))
    stop = types.SimpleNamespace(is_set=lambda: stop.asked, asked=False)
    host = Host(tmp_path, did)
    station = types.SimpleNamespace(
        job=types.SimpleNamespace(host=host, run_dir=types.SimpleNamespace(path=str(tmp_path), run_id="r"), stop=stop),
        held=held,
        bench=bench,
        watchdog=types.SimpleNamespace(call=lambda _what, step, _longer_s=0.0, _end=None: step()),
        guard=lambda step, **_shown: did.append("guard " + step),
        active_bytes=lambda _test: SIZE,
        note=lambda event, **fields: did.append((event, fields)),
        did=did,
        host=host,
    )
    yield station
    if bench.file is not None:
        os.close(bench.file)


def order(station):
    return [item[0] if isinstance(item, tuple) else item for item in station.did]


def test_it_is_guarded_noted_made_mounted_and_all_of_it_undone(place):
    with filesystem.laid_on(place, TEST, NAMES):
        assert os.fstat(place.bench.file).st_size == SIZE
        place.did.append("measured")
    assert order(place) == [
        *["guard filesystem", "shared", "ledger", "confirmed", "mkfs.xfs", "confirmed", "room"],
        *["confirmed", "mount", "confirmed", "settled", "filesystem"],
        "measured",
        *["umount", "room closed", "counted", "settled", "held", "wiped", "filesystem_unmounted"],
    ]
    laid = next(fields for event, fields in filter(lambda item: isinstance(item, tuple), place.did))
    assert laid["file_bytes"] == SIZE and laid["options"] == ["rw", "noatime"] and laid["test"] == "a"
    assert laid["uuid"] in " ".join(laid["commands"][0]) and place.bench.file is None
    assert NODE in laid["commands"][0] and NODE in laid["commands"][1]


def test_a_test_without_one_is_left_alone(place):
    with filesystem.laid_on(place, planned.spec(), NAMES):
        pass
    assert place.did == []


@pytest.mark.parametrize(
    ("fails", "undone"),
    [
        ("mkfs.xfs", ["counted", "settled", "held", "wiped, unmade", "filesystem_unmounted"]),
        ("mount", ["room closed", "counted", "settled", "held", "wiped", "filesystem_unmounted"]),
    ],
)
def test_what_fails_is_told_and_what_was_done_is_undone(place, fails, undone):
    place.host.fails = fails
    with pytest.raises(filesystem.FilesystemError, match=f"^{fails} .*ended with 1 and said: no room"):
        with filesystem.laid_on(place, TEST, NAMES):
            pytest.fail("nothing may be measured")
    assert order(place)[-len(undone) :] == undone and "umount" not in place.did


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (None, "nothing is mounted on"),
        (filesystems.Mounted("8:16", ("rw", "noatime")), "8:16 is mounted on .*, not 7:0"),
        (filesystems.Mounted("7:0", ("rw",)), "mounted without noatime"),
    ],
)
def test_another_device_or_other_options_are_not_measured(place, monkeypatch, found, text):
    monkeypatch.setattr(Room, "mounted_is", found)
    with pytest.raises(filesystem.FilesystemError, match=text):
        with filesystem.laid_on(place, TEST, NAMES):
            pytest.fail("nothing may be measured")
    assert "umount" in place.did and order(place)[-3:] == ["held", "wiped", "filesystem_unmounted"]


@pytest.mark.parametrize("error", [fio.Interrupted(), fio.FioError("fio"), RuntimeError("unforeseen")])
def test_however_its_test_ends_it_is_unmounted(place, error):
    with pytest.raises(type(error)):
        with filesystem.laid_on(place, TEST, NAMES):
            raise error
    undone = ["umount", "room closed", "counted", "settled", "held", "wiped", "filesystem_unmounted"]
    assert order(place)[-len(undone) :] == undone and place.bench.file is None


@pytest.mark.parametrize("fails", ["", "mkfs.xfs"])
def test_a_stop_while_it_is_made_ends_it_before_anything_is_measured(place, fails):
    """Also where mkfs failed, as the stop ended it: that is no error."""
    place.host.during, place.host.fails = lambda: setattr(place.job.stop, "asked", True), fails
    with pytest.raises(fio.Interrupted):
        with filesystem.laid_on(place, TEST, NAMES):
            pytest.fail("nothing may be measured")
    assert "mount" not in place.did and order(place)[-3:-1] == ["held", "wiped, unmade"]


def test_a_node_that_leads_to_another_drive_is_not_written_to(place):
    def another(_node):
        raise Refused([Refusal("identity_changed", "another")])

    place.held.confirm_node = another
    with pytest.raises(Refused):
        with filesystem.laid_on(place, TEST, NAMES):
            pytest.fail("nothing may be measured")
    assert "mkfs.xfs" not in place.did


def test_a_drive_that_hangs_is_not_touched_again(place):
    with pytest.raises(Hangs):
        with filesystem.laid_on(place, TEST, NAMES):
            os.close(place.bench.file)
            raise Hangs("the drive hangs")
    assert place.did[-2:] == ["room closed", "left alone"] and "umount" not in place.did


def test_a_file_that_does_not_fit_says_what_to_lower(place, monkeypatch):
    def full(*_asked):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(filesystem.FilesystemError, match="does not fit .*lower active_range_pct"):
        with filesystem.laid_on(place, TEST, NAMES):
            pytest.fail("nothing may be measured")
    assert "umount" in place.did


def test_tools_that_lack_are_named_with_their_packages(place):
    assert filesystem.missing_requirements(place.host, SPEC, "sda") == ""
    place.host.tools = {"mkfs.xfs"}
    assert filesystem.missing_requirements(place.host, SPEC, "sda") == "mkfs.xfs is missing; install xfsprogs"


def test_a_drive_whose_writes_nobody_counts_gets_none_as_nobody_could_wipe_it(place):
    place.host.iostats = "0"
    assert "/sys/block/sda/queue/iostats" in filesystem.missing_requirements(place.host, SPEC, "sda")


def counted(place, monkeypatch, *counters):
    """The place with a drive whose counters these are, look by look, and a stop that each wait ends with or without."""
    looks = iter(counters)
    monkeypatch.setattr(filesystem, "Witness", lambda *_drive: types.SimpleNamespace(stat=lambda: next(looks)))
    place.job.stop.wait = lambda _seconds: place.did.append("waited") or place.job.stop.asked
    return place


def still(discards, in_flight=0):
    """The counters of a drive that has discarded so much."""
    return [0] * filesystem.IN_FLIGHT + [in_flight, 0, 0, 0, 0, discards]


def test_after_the_fill_what_the_file_system_still_does_is_waited_for(place, monkeypatch):
    counted(place, monkeypatch, still(0), still(8), still(8, in_flight=1), still(8, in_flight=1), still(9), still(9))
    with filesystem.laid_on(place, TEST, NAMES):
        place.did.clear()
        filesystem.write_out(place)
        assert place.did == ["waited"] * 5 + ["settled"]


def test_a_stop_ends_the_wait(place, monkeypatch):
    counted(place, monkeypatch, still(0))
    with filesystem.laid_on(place, TEST, NAMES):
        place.job.stop.asked = True
        with pytest.raises(fio.Interrupted):
            filesystem.write_out(place)


def test_a_drive_whose_io_nobody_counts_is_waited_for_once(place, monkeypatch):
    counted(place, monkeypatch, None, None)
    with filesystem.laid_on(place, TEST, NAMES):
        place.did.clear()
        filesystem.write_out(place)
        assert place.did == ["waited", "settled"]


def test_a_log_that_cannot_be_written_is_an_error_of_the_test(place, monkeypatch):
    def fails(_handle):
        raise OSError(5, "Input/output error")

    with filesystem.laid_on(place, TEST, NAMES):
        monkeypatch.setattr(filesystem.os, "fsync", fails)
        with pytest.raises(filesystem.FilesystemError, match="cannot be written out .Input/output error"):
            filesystem.write_out(place)


def test_a_drive_without_one_is_not_waited_for(place):
    filesystem.write_out(place)
    assert place.did == []
