# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Purges of an emulated drive (tests/emulators/nvme) through the whole step: choose, sentinels, command,
wait, verify.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.machinery
import importlib.util
import io
import json
import os
import time

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Result
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge import methods, nvme, step
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge.method import PurgeError, Work

SIZE = 1 << 20
SERIAL, EUI = "S3EVNX0K100001", "0025385b71b004a1"
EMULATOR = os.path.join(os.path.abspath(__file__).split("/tests/unit/")[0], "tests", "emulators", "nvme")
SANITIZES = ("nvme_sanitize_crypto", "nvme_sanitize_block", "nvme_sanitize_overwrite")
FORMATS = ("nvme_format_crypto", "nvme_format_user_data")


def load_emulator():
    """In this process: a purge asks a dozen times, and a process each takes its time."""
    loader = importlib.machinery.SourceFileLoader("emulated_nvme", EMULATOR)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("emulated_nvme", loader))
    loader.exec_module(module)
    return module


class Bed:
    """One emulated drive, its namespace 1 as /dev/nvme3n1 behind controller nvme0: numbers that are not the same say
    nothing.
    """

    def __init__(self, fake, folder, **facts):
        self.folder = folder
        self.host = fake
        self.state = folder / "nvme.json"
        self.media = folder / "media-1"
        self.media.write_bytes(bytes(SIZE))
        self.other = folder / "media-2"
        self.other.write_bytes(b"theirs" * 1000)
        space = {"media": str(self.media), "size_bytes": SIZE, "eui64": EUI, "lbaf": 0}
        spaces = dict({"1": space}, **facts.pop("others", {}))
        self.write(dict({"controller": "nvme0", "sn": SERIAL, "seconds": 0, "namespaces": spaces}, **facts))
        self.emulator = load_emulator()
        self.emulator.STATE = str(self.state)
        fake.nvme("nvme3n1", "0:0", SERIAL, size=SIZE, nsid="1", eui="00 25 38 5b 71 b0 04 a1")
        controller = "/sys/devices/pci0000:80/0000:80:01.0/nvme/nvme3"
        os.rename(fake.path(controller), fake.path(controller[:-1] + "0"))
        for link in ("/sys/block/nvme3n1", "/sys/class/block/nvme3n1", "/sys/dev/block/0:0"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(fake.path(link))
            fake.link(link, controller[:-1] + "0/block/nvme3n1")
        os.unlink(fake.path(controller[:-1] + "0/block/nvme3n1/device"))
        fake.link(controller[:-1] + "0/block/nvme3n1/device", controller[:-1] + "0")
        fake.run = self.run
        self.argvs = []
        self.held = Held(self)
        self.notes = []
        self.ticks = []

    def write(self, facts):
        self.state.write_text(json.dumps({"drives": [facts]}))

    def set(self, **facts):
        self.write(dict(self.facts(), **facts))

    def facts(self):
        return json.loads(self.state.read_text())["drives"][0]

    def run(self, argv, timeout_s=60, stdin=None, started=None):
        """nvme alone is there; any other command is missing."""
        self.argvs.append(list(argv))
        if argv[0] != "nvme":
            return Result(list(argv), 127, "", "cannot run " + argv[0])
        out, errors, code = io.StringIO(), io.StringIO(), 0
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            try:
                self.emulator.main(argv[1:])
            except SystemExit as ended:
                code = ended.code
        return Result(list(argv), code, out.getvalue(), errors.getvalue())

    def erasing(self):
        return [argv for argv in self.argvs if argv[:1] == ["nvme"] and argv[1] in ("format", "sanitize")]

    def offers(self, **options):
        return {offer["method"]: offer for offer in methods.offers(self.host, self.held.identity, options)}

    def work(self, **options):
        return Work(
            host=self.host,
            held=self.held,
            options=options,
            tick=self.ticks.append,
            sleep=lambda seconds: time.sleep(min(seconds, 0.05)),
            note=lambda event, **fields: self.notes.append(dict(fields, event=event)),
            fill=lambda tick: {},
        )

    def purge(self, method, **options):
        return step.perform(self.work(method=method, **options))


class Held:
    """What held.HeldDrive is to a method, over the file that stands for the namespace's media."""

    def __init__(self, bed):
        self._bed = bed
        self.handle = os.open(bed.media, os.O_RDWR)
        self.identity = identity.identity(bed.host, "nvme3n1")
        self.checks = 0
        self.lent = []

    def note_sentinels(self, sentinels):
        """What is about to be written to prove a purge with."""
        self.noted_sentinels = sentinels

    def descriptor(self):
        return self.handle

    def check(self):
        self.checks += 1

    @contextlib.contextmanager
    def lend(self, may_change=()):
        self.lent.append(may_change)
        yield
        self.identity = identity.identity(self._bed.host, "nvme3n1")


@pytest.fixture
def bed(tmp_path, fake):
    made = []

    def make(**facts):
        made.append(Bed(fake, tmp_path, **facts))
        return made[-1]

    yield make
    for each in made:
        os.close(each.held.handle)


@pytest.mark.parametrize(
    "method, action", [("nvme_sanitize_crypto", 4), ("nvme_sanitize_block", 2), ("nvme_sanitize_overwrite", 3)]
)
def test_a_sanitize_is_watched_to_its_end_and_verified(bed, method, action):
    drive_ = bed(seconds=0.4)
    record = drive_.purge(method)
    assert record["verified"] and record["purge_class"] == "pts" and record["seconds"] >= 0.4
    assert record["verification"] == {"sentinels": 32, "survived": 0, "unreadable": 0}
    assert (
        drive_.erasing()
        == record["commands"]
        == [["nvme", "sanitize", "/dev/nvme0", f"--sanact={action}", *(["--owpass=1"] if action == 3 else [])]]
    )
    assert any(share for share in drive_.ticks) and drive_.held.checks == 1 and drive_.held.lent == []
    (started,) = drive_.notes
    assert (
        started["event"] == "purge_started"
        and started["method"] == method
        and started["commands"] == record["commands"]
    )
    assert bool(drive_.media.read_bytes().strip(b"\0")) is (action == 4)


@pytest.mark.parametrize("method, ses", [("nvme_format_crypto", 2), ("nvme_format_user_data", 1)])
def test_a_format_keeps_the_lba_format_and_is_verified(bed, method, ses):
    drive_ = bed()
    record = drive_.purge(method, timeout_s=700)
    assert record["verified"] and drive_.held.lent == []
    assert drive_.erasing() == [
        ["nvme", "format", "/dev/nvme0", "--namespace-id=1", "--lbaf=0", f"--ses={ses}", "--timeout=700000"]
    ]
    assert (
        record["lba_format_before"]
        == record["lba_format_after"]
        == {"index": 0, "data_bytes": 512, "metadata_bytes": 0, "performance": 2}
    )


def test_a_format_sets_the_lba_format_and_the_drive_is_opened_anew(bed):
    drive_ = bed()
    sysfs = "/sys/block/nvme3n1/queue/logical_block_size"
    run = drive_.run

    def kernel(argv, *more, **named):
        result = run(argv, *more, **named)
        if argv[1] == "format":
            drive_.host.put(sysfs, "4096\n")
        return result

    drive_.host.run = kernel
    record = drive_.purge("nvme_format_user_data", lba_size_bytes=4096)
    assert "--lbaf=1" in record["commands"][0] and record["verified"]
    assert (record["lba_format_before"]["data_bytes"], record["lba_format_after"]["data_bytes"]) == (512, 4096)
    assert drive_.held.lent == [("logical_block_size_bytes", "physical_block_size_bytes")]


def test_a_kernel_that_does_not_see_the_new_block_size_is_an_error(bed, monkeypatch):
    monkeypatch.setattr(nvme, "_RESCAN_S", 0.1)
    with pytest.raises(PurgeError, match="does not take the new LBA size of 4096"):
        bed().purge("nvme_format_user_data", lba_size_bytes=4096)


def test_a_drive_that_comes_back_in_another_lba_format_is_an_error(bed, monkeypatch):
    drive_ = bed()
    monkeypatch.setattr(nvme, "wanted_format", lambda found, options: nvme.LbaFormat(0, 512, 0, 0))
    run = drive_.run

    def spoil(argv, *more, **named):
        result = run(argv, *more, **named)
        if argv[1] == "format":
            facts = drive_.facts()
            facts["namespaces"]["1"].update(lbaf=1)
            drive_.write(facts)
        return result

    drive_.host.run = spoil
    with pytest.raises(PurgeError, match="came back with LBA format 1, not 0"):
        drive_.purge("nvme_format_user_data")


def test_metadata_and_protection_are_kept(bed):
    drive_ = bed()
    found = dict(nvme.capabilities(drive_.host, drive_.held.identity), flbas=0x10, dps=0x9)
    (argv,) = methods.METHODS["nvme_format_user_data"].commands(found, {})
    assert argv[-3:] == ["--ms=1", "--pi=1", "--pil=1"]


@pytest.mark.parametrize("method", [*SANITIZES, *FORMATS])
def test_a_drive_that_erases_nothing_is_not_verified(bed, method):
    record = bed(mode="nothing").purge(method)
    assert record["verified"] is False and record["verification"]["survived"] == 32


@pytest.mark.parametrize("method", [*SANITIZES, *FORMATS])
def test_no_force_is_given_and_ses_is_never_0(bed, method):
    (argv,) = bed().offers()[method]["commands"]
    assert not [word for word in argv if "force" in word or word in ("--ses=0", "-f", "--ause", "--no-dealloc")]
    assert argv[2] == "/dev/nvme0"


@pytest.mark.parametrize("method", [*SANITIZES, *FORMATS])
def test_a_command_that_fails_is_told_in_its_words(bed, method):
    with pytest.raises(PurgeError, match=r"ended with 1: NVMe status: Invalid F"):
        bed(mode="refuses").purge(method)


@pytest.mark.parametrize(
    "mode, options, message",
    [
        ("failed", {}, "the drive says that the purge failed"),
        ("stuck", {"stuck_s": 1}, "purge stuck: no progress for 1 s, at 37.*purge_stuck_s"),
        ("stuck", {"timeout_s": 1}, "purge stuck: not done after 1 s.*purge_timeout_s"),
    ],
)
def test_a_sanitize_that_fails_or_stands_still_is_an_error(bed, mode, options, message):
    with pytest.raises(PurgeError, match=message):
        bed(mode=mode).purge("nvme_sanitize_block", **options)


def test_a_sanitize_log_that_is_garbage_ends_in_an_error_before_anything_is_sent(bed):
    drive_ = bed(mode="silent")
    with pytest.raises(PurgeError, match="does not report its sanitize status"):
        drive_.purge("nvme_sanitize_block")
    assert drive_.erasing() == []


def test_a_sanitize_that_we_did_not_start_is_left_alone(bed):
    drive_ = bed(sanitize={"status": 2, "started": time.time(), "seconds": 60, "action": 2})
    with pytest.raises(PurgeError, match="this run did not start") as caught:
        drive_.purge("nvme_sanitize_block")
    assert caught.value.code == "sanitize_running" and drive_.erasing() == []


THEIRS = {"size_bytes": SIZE, "eui64": "0025385b71b004a2"}


@pytest.mark.parametrize("attached", [True, False])
@pytest.mark.parametrize("fna, hit", [(4, False), (5, True), (6, True), (7, True)])
def test_other_namespaces_attached_or_not_are_never_hit(bed, fna, hit, attached):
    drive_ = bed(fna=fna, others={"2": dict(THEIRS, attached=attached)})
    offered = drive_.offers()
    assert all("namespace 2" in offered[method]["hits_others"] for method in SANITIZES)
    assert [bool(offered[method]["hits_others"]) for method in FORMATS] == [hit, hit]
    for method in (*SANITIZES, *(FORMATS if hit else ())):
        with pytest.raises(PurgeError, match="would erase more than this drive") as caught:
            drive_.purge(method)
        assert caught.value.code == "purge_hits_others"
    assert drive_.erasing() == []


def test_a_format_leaves_another_namespace_alone_where_the_drive_can(bed, tmp_path):
    drive_ = bed(others={"2": dict(THEIRS, media=str(tmp_path / "media-2"))})
    before = drive_.other.read_bytes()
    assert drive_.purge("auto")["method"] == "nvme_format_crypto"
    assert drive_.other.read_bytes() == before


def test_a_subsystem_with_another_controller_is_not_sanitized(bed):
    offered = bed(controller_ids=[1, 2]).offers()
    assert (
        "2 controllers" in offered["nvme_sanitize_crypto"]["hits_others"]
        and not offered["nvme_format_crypto"]["hits_others"]
    )


@pytest.mark.parametrize("oacs, fna, hit", [(0x2, 4, False), (0x2, 6, True), (0x2, 5, True), (0xA, 6, False)])
def test_what_another_controller_keeps_for_itself_is_never_hit(bed, oacs, fna, hit):
    """Without namespace management a controller lists its own namespaces only."""
    offered = bed(controller_ids=[1, 2], cmic=2, oacs=oacs, fna=fna).offers()
    assert "2 controllers" in offered["nvme_sanitize_crypto"]["hits_others"]
    assert [("2 controllers" in offered[method]["hits_others"]) for method in FORMATS] == [hit, hit]


@pytest.mark.parametrize("oacs", [0xA, 0x2])
@pytest.mark.parametrize("cmic, reason", [(0, ""), (2, "nvme list-ctrl")])
def test_a_drive_without_a_list_of_controllers_must_say_that_it_is_alone(bed, cmic, reason, oacs):
    offered = bed(controller_ids=None, cmic=cmic, oacs=oacs).offers()["nvme_sanitize_crypto"]
    assert offered["supported"] == (not reason) and reason in offered["reason"] and not offered["hits_others"]


@pytest.mark.parametrize(
    "facts, chosen",
    [
        ({}, "nvme_sanitize_crypto"),
        ({"sanicap": 6}, "nvme_sanitize_block"),
        ({"sanicap": 4}, "nvme_format_crypto"),
        ({"sanicap": 4, "fna": 0}, "nvme_format_user_data"),
        ({"sanicap": 4, "oacs": 0}, "nvme_sanitize_overwrite"),
        ({"sanicap": 0, "oacs": 0}, "deallocate"),
    ],
)
def test_auto_takes_the_strongest_that_the_drive_reports(bed, facts, chosen):
    drive_ = bed(**facts)
    assert methods.choose("auto", list(drive_.offers().values()))["method"] == chosen


@pytest.mark.parametrize("size, index", [(None, 0), (512, 0), (4096, 2)])
def test_of_a_wanted_lba_size_the_fastest_format_without_metadata_is_taken(size, index):
    formats = [(0, 512, 0, 3), (1, 4096, 8, 0), (2, 4096, 0, 0), (3, 4096, 0, 2), (4, 512, 0, 0)]
    found = {"lba_format": 0, "lba_formats": [dataclasses.asdict(nvme.LbaFormat(*item)) for item in formats]}
    assert nvme.wanted_format(found, {"lba_size_bytes": size}).index == index


def test_an_lba_size_that_the_drive_lacks_is_unsupported_with_what_it_has(bed):
    offered = bed().offers(lba_size_bytes=8192)
    assert (
        "it has: 512, 4096" in offered["nvme_format_crypto"]["reason"]
        and "cannot change" in offered["nvme_sanitize_crypto"]["reason"]
    )
    assert not any(offer["supported"] for offer in offered.values())


@pytest.mark.parametrize(
    "change, message",
    [
        ({"sn": "S3EVNX0K100002"}, "its serial is S3EVNX0K100002"),
        ({"eui64": "0025385b71b004ff"}, "its eui64 is 0025385b71b004ff"),
        ({"size_bytes": SIZE * 2}, "its size_bytes is 2097152"),
    ],
)
def test_a_controller_that_means_another_namespace_offers_nothing(bed, change, message):
    drive_ = bed()
    facts = drive_.facts()
    facts["namespaces"]["1"].update({key: value for key, value in change.items() if key != "sn"})
    drive_.write(dict(facts, **{key: value for key, value in change.items() if key == "sn"}))
    offered = drive_.offers()
    assert all(message in offered[method]["reason"] for method in (*SANITIZES, *FORMATS))


def test_a_uuid_has_to_be_told_by_the_controller_too(bed):
    drive_ = bed()
    uuid = "6479a751-2b0c-4fa0-9cbc-2d3d64b5d7a1"
    drive_.host.put("/sys/block/nvme3n1/uuid", uuid + "\n")
    assert "does not report the uuid" in drive_.offers()["nvme_format_crypto"]["reason"]
    facts = drive_.facts()
    facts["namespaces"]["1"].update(uuid=uuid)
    drive_.write(facts)
    assert drive_.offers()["nvme_format_crypto"]["supported"]


@pytest.mark.parametrize("method", [*SANITIZES, *FORMATS])
def test_a_drive_that_changed_since_it_was_looked_at_is_left_alone(bed, method):
    drive_ = bed()
    work = drive_.work(method=method)
    work.capabilities = dict(nvme.capabilities(drive_.host, drive_.held.identity), namespaces=[1, 2])
    with pytest.raises(PurgeError, match="namespaces changed"):
        methods.METHODS[method].run(work)
    assert drive_.erasing() == []


def test_the_held_descriptor_decides_and_not_the_name(bed):
    """The name that the guard saw may be another drive's by now; the device number of what we hold can't."""
    drive_ = bed()
    work = drive_.work(method="nvme_format_crypto")
    work.capabilities = nvme.capabilities(drive_.host, drive_.held.identity)
    os.unlink(drive_.host.path("/sys/dev/block/0:0"))
    with pytest.raises(PurgeError, match="cannot be identified"):
        methods.METHODS["nvme_format_crypto"].run(work)
    assert drive_.erasing() == []


def test_of_several_controllers_the_one_that_means_the_namespace_is_taken(bed):
    drive_ = bed()
    subsystem = "/sys/devices/virtual/nvme-subsystem/nvme-subsys7"
    mine = "/sys/devices/pci0000:80/0000:80:01.0/nvme/nvme0"
    other = dict(
        drive_.facts(),
        controller="nvme1",
        namespaces={"1": {"size_bytes": SIZE, "eui64": "0025385b71b004ff"}},
        sn=SERIAL,
    )
    drive_.state.write_text(json.dumps({"drives": [other, drive_.facts()]}))
    for name in ("nvme1", "nvme0"):
        drive_.host.link(subsystem + "/" + name, mine[:-1] + name[-1])
    drive_.host.put(mine[:-1] + "1/transport", "pcie\n")
    os.unlink(drive_.host.path(mine + "/block/nvme3n1/device"))
    drive_.host.link(mine + "/block/nvme3n1/device", subsystem)
    drive_.host.link("/sys/class/nvme-subsystem/nvme-subsys7", subsystem)
    found = nvme.capabilities(drive_.host, drive_.held.identity)
    assert (found["controller"], found["controllers"]) == ("/dev/nvme0", 2)
    os.unlink(drive_.host.path(subsystem + "/nvme0"))
    with pytest.raises(PurgeError, match="/dev/nvme1, namespace 1 is not /dev/nvme3n1: its eui64 is 0025385b71b004ff"):
        nvme.capabilities(drive_.host, drive_.held.identity)


def test_another_kind_of_drive_is_none_of_its_business(bed):
    drive_ = bed()
    assert nvme.capabilities(drive_.host, dict(drive_.held.identity, transport="nvme-tcp")) == {}
    assert drive_.argvs == []


# --- A job that finds a purge of its run begun ---


def history(bed_, **more):
    return [
        {"event": "test_started", "test": "t"},
        dict(bed_.notes[0], time="2026-11-21T13:00:00.000Z", test="t", **more),
    ]


@pytest.mark.parametrize(
    "events, left",
    [
        (["purge_started"], True),
        (["purge_started", "purge"], False),
        (["purge_started", "interrupted"], True),
        (["purge_started", "error"], False),
        (["purge_started", "interrupted", "purge_started", "purge"], False),
        ([], False),
    ],
)
def test_a_purge_is_unfinished_until_its_record_or_the_end_of_its_test(events, left):
    ends = ("interrupted", "error")
    records = [{"event": "test_finished" if name in ends else name, "outcome": name} for name in events]
    assert bool(step.unfinished(records)) is left


@pytest.mark.parametrize(
    ("method", "events", "goes"),
    [
        ("nvme_sanitize_block", ["purge_started"], True),
        ("deallocate", ["purge_started"], False),
        ("melt", ["purge_started"], False),
        ("nvme_sanitize_block", ["purge_started", "purge"], False),
    ],
)
def test_only_some_purges_go_on_without_their_job(method, events, goes):
    assert step.goes_on([{"event": event, "method": method} for event in events]) is goes


def stop_at(share):
    def tick(now):
        if now and now >= share:
            raise InterruptedError

    return tick


def test_a_sanitize_of_a_stopped_job_is_waited_for_and_verified_by_its_sentinels(bed):
    drive_ = bed(seconds=1)
    work = drive_.work(method="nvme_sanitize_block")
    work.tick = stop_at(0.2)
    with pytest.raises(InterruptedError):
        step.perform(work)
    started = step.unfinished(history(drive_))
    later = drive_.work(method="nvme_sanitize_block")
    assert step.wait_for_unfinished(later, started) is True
    record = step.resumed(drive_.work(method="nvme_sanitize_block"), started)
    assert (
        record["verified"]
        and record["resumed"]
        and record["method"] == "nvme_sanitize_block"
        and len(drive_.erasing()) == 1
    )
    assert record["lba_format_before"] == record["lba_format_after"] and record["lba_format_after"]["data_bytes"] == 512
    # The drive has blocks of 512 bytes: what was wanted of this purge was not done.
    assert step.resumed(drive_.work(method="auto", lba_size_bytes=4096), started) is None


def test_one_that_erased_nothing_is_done_again(bed):
    drive_ = bed(seconds=0.5, mode="nothing")
    work = drive_.work(method="nvme_sanitize_block")
    work.tick = stop_at(0.1)
    with pytest.raises(InterruptedError):
        step.perform(work)
    started = step.unfinished(history(drive_))
    later = drive_.work()
    assert step.wait_for_unfinished(later, started) and step.resumed(later, started) is None


def test_one_that_ended_while_nobody_looked_counts_by_its_sentinels(bed):
    drive_ = bed()
    drive_.purge("nvme_sanitize_block")
    started, later = history(drive_)[-1], drive_.work(method="nvme_sanitize_block")
    assert step.wait_for_unfinished(later, started) is True
    assert step.resumed(later, started)["verified"] and len(drive_.erasing()) == 1


@pytest.mark.parametrize(
    "facts, message",
    [
        ({"mode": "stuck"}, "stuck"),
        ({"mode": "silent"}, "sanitize-log /dev/nvme0 gave no JSON"),
        ({"sn": "other"}, "does not report"),
    ],
)
def test_one_that_is_stuck_or_cannot_be_asked_is_an_error(bed, facts, message):
    drive_ = bed()
    drive_.purge("nvme_sanitize_block")
    started = history(drive_)[-1]
    drive_.set(**dict({"sanitize": {"status": 2, "started": time.time(), "seconds": 1, "action": 2}}, **facts))
    with pytest.raises(PurgeError, match=message):
        step.wait_for_unfinished(drive_.work(stuck_s=0.3), started)


def test_a_format_of_a_dead_job_is_waited_for_by_what_is_left(bed):
    drive_ = bed()
    drive_.purge("nvme_format_user_data")
    facts = drive_.facts()
    facts["namespaces"]["1"]["fpi"] = 0x80 + 60
    drive_.write(facts)
    work, left = drive_.work(), [60, 20, 0]

    def tick(share):
        assert share == pytest.approx(1 - left.pop(0) / 100)
        facts["namespaces"]["1"]["fpi"] = 0x80 + left[0]
        drive_.write(facts)

    work.tick = tick
    assert step.wait_for_unfinished(work, history(drive_)[-1]) is True
