# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Self-tests that a plan asks for, of drives that a model of nvme-cli or smartctl stands for; their time is a clock
that only a sleep moves on.

The model follows the NVM Express Base Specification 2.0 (5.9 and log page 06h), and smartctl's JSON (-l selftest -c).
"""

from __future__ import annotations

import json
import types

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Result
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.held import Refused
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import own_self_test
from ansible_collections.ssdlab.fleet.plugins.module_utils.job.drive_context import Attempt
from ansible_collections.ssdlab.fleet.plugins.module_utils.job.self_test_wait import SelfTests, SelfTestStuck
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.fio import Interrupted
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base, events
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import criteria
from ansible_collections.ssdlab.fleet.plugins.module_utils.run.reducer import AttemptReducer
from ansible_collections.ssdlab.fleet.tests.fixtures import planned, steady_test

HOUR = 3600.0
COMPLETED, ABORTED, SEGMENT_FAILED, RESERVED = 0, 1, 7, 10


class Nvme:
    """A drive with a namespace 5. takes_s: of a self-test; result: what it comes to."""

    name, transport = "nvme0n1", "nvme"
    begin = ["nvme", "device-self-test", "/dev/nvme0n1", "-n", "5", "-s"]
    abort = ["nvme", "device-self-test", "/dev/nvme0n1", "-s", "0xf"]
    codes = {"short": "1", "extended": "2"}

    def __init__(self, takes_s=600.0, result=COMPLETED, code=0, is_logged=True):
        self.now, self.takes_s, self.result, self.code, self.is_logged = 0.0, takes_s, result, code, is_logged
        self.entries, self.kind, self.began_s = [self.entry(COMPLETED)], None, 0.0

    def install(self, fake):
        fake.nvme("nvme0n1", "259:0", "S1", nsid="5\n")

    def run(self, argv):
        if argv[:2] == ["nvme", "id-ctrl"]:
            return 0, {"oacs": 0x10, "edstt": 10}
        if argv == self.abort or argv[:-1] == self.begin:
            return self.command(argv[-1])
        return (0, self.log()) if argv[:2] == ["nvme", "self-test-log"] else (1, {})

    def command(self, code):
        if code in ("0xf", "-X"):
            self.end(ABORTED)
        elif self.code == 0:
            self.kind, self.began_s = next(kind for kind, told in self.codes.items() if told == code), self.now
        return self.code, {}

    def end(self, result):
        self.entries[:0] = [self.entry(result)] if self.kind and self.is_logged else []
        self.kind = None

    def done_pct(self):
        if self.kind and self.now - self.began_s >= self.takes_s:
            self.end(self.result)
        return int(100 * (self.now - self.began_s) / self.takes_s)

    def log(self):
        done_pct = self.done_pct()
        return {
            "Current Device Self-Test Operation": int(self.codes[self.kind]) if self.kind else 0,
            "Current Device Self-Test Completion": done_pct if self.kind else 0,
            "List of Valid Reports": self.entries,
        }

    def entry(self, result):
        return {"Self test result": result, "Self test code": 2, "Segment number": 4, "Power on hours": 7}


class Sata(Nvme):
    """A drive of smartctl's."""

    name, transport = "sda", "sata"
    begin, abort = ["smartctl", "-t"], ["smartctl", "-X", "/dev/sda"]
    codes = {"short": "short", "extended": "long"}

    def install(self, fake):
        fake.disk("sda", "8:0", "/sys/devices/pci0000:00/0000:00:1f.2/ata3/host2/target2:0:0/2:0:0:0")

    def run(self, argv):
        if argv[:2] == self.begin and argv[3:] == ["/dev/sda"]:
            return self.command(argv[2])
        return self.command("-X") if argv == self.abort else (0, self.log())

    def log(self):
        left = 10 - self.done_pct() // 10
        status = (0xF0 | left) if self.kind else 0
        told = {"status": {"value": status}, "polling_minutes": {"short": 2, "extended": 10}}
        return {
            "ata_smart_data": {"self_test": told},
            "ata_smart_self_test_log": {"standard": {"table": self.entries}},
        }

    def entry(self, result):
        return {"type": {"value": 2}, "status": {"value": result << 4}, "lifetime_hours": 7}


class Station:
    """A drive of a host job."""

    def __init__(self, fake, drive, stop_at_s=None, refused=False):
        drive.install(fake)
        self.drive, self.stop_at_s, self._refused = drive, stop_at_s, refused
        self.commands, self.noted, self.shown, self.guarded = [], [], [], []
        self.name, self.members = drive.name, []
        self.job = types.SimpleNamespace(host=fake, time_budget_s=None)
        self.watchdog = types.SimpleNamespace(call=lambda _what, step: step())
        fake.run = self.run

    def run(self, argv, timeout_s=60, stdin=None, started=None):
        self.commands.append(list(argv))
        code, told = self.drive.run(list(argv))
        return Result(list(argv), code, json.dumps(told), "NVMe status: Invalid Field(0x2)" if code else "")

    def clock(self):
        return self.drive.now

    def sleep(self, seconds):
        self.drive.now += seconds

    def guard(self, step, **_shown):
        if self._refused:
            raise Refused([])
        self.guarded.append(step)

    def show(self, **fields):
        self.shown.append(fields)

    def tick(self, share, news_within_s=None):
        if self.stop_at_s is not None and self.drive.now >= self.stop_at_s:
            raise Interrupted()

    def note(self, event, **fields):
        self.noted.append({"event": event, **fields})

    def perform(self, kind="extended"):
        tests = SelfTests(self, self.clock, self.sleep)
        tests.settle()
        asked = {"self_test": kind} if kind else {}
        own_self_test.perform(self, tests, planned.spec(**asked), Attempt("t", 1), None)

    def began(self):
        return [argv for argv in self.commands if argv[: len(self.drive.begin)] == self.drive.begin]


def found(station):
    """The event, as the journal's form has it."""
    (event,) = station.noted
    return base.parse(events.SelfTest, {**event, "drive": "d"})


def result_of(station, ended=None):
    reducer = AttemptReducer(planned.spec(self_test="extended"))
    for event in station.noted:
        reducer.take(event)
    return reducer.result(steady_test.end_record(ended=ended))


@pytest.mark.parametrize(("kind", "code"), [("short", "1"), ("extended", "2")])
def test_an_nvme_drive_begins_one_with_its_own_namespace_alone(fake, kind, code):
    station = Station(fake, Nvme())
    station.perform(kind)
    assert station.began() == [[*Nvme.begin, code]] and station.guarded == ["self_test"]
    assert (found(station).kind, found(station).result) == (kind, "passed")
    assert 600 <= found(station).seconds <= 640


@pytest.mark.parametrize(("kind", "code"), [("short", "short"), ("extended", "long")])
def test_other_drives_begin_one_with_smartctl(fake, kind, code):
    station = Station(fake, Sata())
    station.perform(kind)
    assert station.began() == [["smartctl", "-t", code, "/dev/sda"]]
    assert (found(station).kind, found(station).result) == (kind, "passed")


def test_its_time_left_is_shown(fake):
    station = Station(fake, Nvme())
    station.perform()
    left = [shown["time_left_s"] for shown in station.shown if shown.get("time_left_s") is not None]
    assert left[0] > 590 and left == sorted(left, reverse=True) and left[-1] < 30


def test_a_test_that_asks_for_none_begins_none(fake):
    station = Station(fake, Nvme())
    station.perform(None)
    assert not station.began() and not station.guarded


def test_none_is_begun_on_a_drive_that_the_guard_refuses(fake):
    station = Station(fake, Nvme(), refused=True)
    with pytest.raises(Refused):
        station.perform()
    assert not station.began()


@pytest.mark.parametrize(
    ("model", "text"),
    [(Nvme, "a segment failed, segment 4"), (Sata, "the read part failed")],
)
@pytest.mark.parametrize("ended", [None, "interrupted"])
def test_one_that_fails_is_held_against_the_drive_whatever_ends_the_test(fake, model, text, ended):
    station = Station(fake, model(result=SEGMENT_FAILED))
    station.perform()
    result = result_of(station, ended)
    assert result.outcome == "complete"
    assert criteria.missed([], "m", [result]) == [f"t: its extended self-test failed: {text}"]


@pytest.mark.parametrize(
    ("model", "told", "message"),
    [
        (Nvme, {"result": ABORTED}, "its extended self-test aborted: aborted by a command"),
        (Nvme, {"result": RESERVED}, "its extended self-test unknown: ended with the result 10"),
        (Nvme, {"code": 1}, r"did not begin a self-test: nvme device-self-test .* said: NVMe status: Invalid Field"),
        (Sata, {"code": 4}, "did not begin a self-test: smartctl -t long /dev/sda ended with 4"),
        (Nvme, {"takes_s": 9 * HOUR}, r"did not end within 3600 s; it was ended"),
    ],
)
def test_one_without_a_result_is_an_error(fake, model, told, message):
    station = Station(fake, model(**told))
    with pytest.raises(SelfTestStuck, match=message):
        station.perform()
    assert station.drive.kind is None
    assert criteria.missed([], "m", [result_of(station, "error")]) == []


def test_one_that_is_not_logged_says_nothing_of_the_drive(fake):
    """Its other tests go on."""
    station = Station(fake, Nvme(takes_s=20.0, is_logged=False))
    with pytest.raises(own_self_test.NotOffered, match="its log tells nothing of the self-test that has ended"):
        station.perform()


def test_smartctl_s_word_on_the_drive_is_none_on_the_command(fake):
    """Bit 3 and higher, such as a log with errors."""
    station = Station(fake, Sata())
    station.drive.command = lambda code, begin=station.drive.command: (0x40 | begin(code)[0], {})
    station.perform()
    assert found(station).result == "passed"


@pytest.mark.parametrize("model", [Nvme, Sata])
def test_a_stop_ends_it(fake, model):
    station = Station(fake, model(), stop_at_s=100.0)
    with pytest.raises(Interrupted):
        station.perform()
    assert station.commands[-1] == model.abort and station.drive.kind is None and not station.noted


def test_what_somebody_else_began_is_not_ended(fake):
    """It came between the last look and the command, which the drive then refuses."""
    station = Station(fake, Nvme(code=1))
    with pytest.raises(SelfTestStuck):
        station.perform()
    assert Nvme.abort not in station.commands


@pytest.mark.parametrize(
    ("told", "why"),
    [({"oacs": 0}, "the drive has none"), (None, "neither nvme-cli nor smartctl tells of any")],
)
def test_a_drive_without_self_tests_is_told_apart_from_one_that_fails(fake, told, why):
    drive = Nvme()
    drive.run = lambda argv: (0, told) if told and argv[1] == "id-ctrl" else (1, {})
    station = Station(fake, drive)
    with pytest.raises(own_self_test.NotOffered, match=f"a self-test can't be started: {why}"):
        station.perform()
    assert not station.began()


@pytest.mark.parametrize(
    ("events_of", "outcome", "reasons"),
    [
        ([], "invalid", ["its self-test came to no result"]),
        ([{"result": "aborted"}], "invalid", ["its self-test came to no result"]),
        ([{"result": "passed"}], "complete", []),
        ([{"result": "failed"}], "complete", []),
    ],
)
def test_its_test_is_complete_only_with_a_result(events_of, outcome, reasons):
    whole = {"event": "self_test", "test": "t", "attempt": 1, "kind": "extended", "message": "x", "seconds": 1}
    station = types.SimpleNamespace(noted=[{**whole, **one} for one in events_of])
    result = result_of(station)
    assert (result.outcome, result.reasons) == (outcome, reasons)
