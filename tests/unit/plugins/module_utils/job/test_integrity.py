# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An integrity test of a file in place of a held drive, which lies as a table says; the process is the real one."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import threading
import time
import types

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.deadline import Watchdog
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.held import Refused
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import integrity
from ansible_collections.ssdlab.fleet.plugins.module_utils.job.drive_context import Attempt
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import block_pattern, fio, transfer
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.validity_limits import Limits
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base, events
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import criteria
from ansible_collections.ssdlab.fleet.plugins.module_utils.run.reducer import AttemptReducer
from ansible_collections.ssdlab.fleet.tests.fixtures import planned, steady_test
from ansible_collections.ssdlab.fleet.tests.fixtures.fake_host import FakeHost

BLOCK = 4096
SIZE = (2 << 20) + 512
TEST = planned.spec(integrity={"passes": 2})
TWO_PASSES = 2 * SIZE


class Station:
    """A drive of a host job. lie: is called with the pass and the descriptor after each look, odd looks being those
    after a write; others: bytes that somebody else writes.
    """

    def __init__(self, folder, lie=None, others=0):
        self.drive, self.noted, self.guarded, self.looks = "d", [], [], 0
        self.handle = os.open(folder / "drive", os.O_RDWR | os.O_CREAT)
        os.truncate(self.handle, SIZE)
        self.lie, self._others = lie, others
        self.held = types.SimpleNamespace(
            descriptor=self.descriptor,
            bytes_written=self.bytes_written,
            identity=Identity(serial="S1"),
            evidence="",
            keep_as_evidence=lambda reason: setattr(self.held, "evidence", reason),
        )
        self.time_budget_ends_s = None
        self.settled, self.heated, self.heat_bytes, self.spent, self.most_bytes = [], [], 0, False, None
        self.bench = types.SimpleNamespace(
            settle=lambda: self.settled.append(1),
            cell=self.heat,
            limits=Limits(),
            place=types.SimpleNamespace(cpus=None),
        )
        run_dir = types.SimpleNamespace(run_id="r", raw=lambda _drive: str(folder))
        self.job = types.SimpleNamespace(run_dir=run_dir, stop=threading.Event(), host=FakeHost(folder / "host"))
        self.watchdog = Watchdog(self.job.stop)
        self.shares = []

    def descriptor(self):
        return self.handle

    def bytes_written(self):
        # A look follows each write, and each reading.
        passes = (self.looks + 1) // 2
        if self._others is None:
            return None
        return 1000 + passes * SIZE + self.heat_bytes + (self._others if passes else 0)

    def heat(self, name, cell, size_bytes, seed):
        """Random writes, as fio does them."""
        self.heated.append((name, cell.runtime_s, size_bytes))
        self.heat_bytes += 4 * BLOCK
        os.pwrite(self.handle, seed.to_bytes(8, "little") * (BLOCK // 2), 0)
        return types.SimpleNamespace(details=types.SimpleNamespace(write=types.SimpleNamespace(bytes=4 * BLOCK)))

    def is_budget_spent(self, written_bytes):
        return self.spent or (self.most_bytes is not None and written_bytes >= self.most_bytes)

    def seed(self, _attempt, *more):
        return hash(more) & 0xFFFF

    def active_bytes(self, _test):
        return SIZE

    def file(self, attempt, step):
        return f"{attempt.test}-{attempt.attempt}-{step}"

    def guard(self, step, **_shown):
        self.guarded.append(step)

    def look(self):
        self.looks += 1
        if self.lie and self.looks % 2:
            self.lie(self.looks // 2 + 1, self.handle)

    def tick(self, share, **_shown):
        self.shares.append(share)
        if self.job.stop.is_set():
            raise fio.Interrupted()

    def note(self, event, **fields):
        self.noted.append({"event": event, **fields})


@pytest.fixture
def station(tmp_path, request):
    """A drive with a lie and what others wrote, by the test's parameters."""
    made = Station(tmp_path, **getattr(request, "param", {}))
    yield made
    os.close(made.handle)


def run(station, test=TEST):
    return integrity.write_and_read_back(station, test, Attempt("t", 1), None)


def found(station):
    """The event, as the journal's form has it."""
    event = station.noted[-1]
    return base.parse(events.Integrity, {**event, "drive": "d"})


def read(handle, offset, length=BLOCK):
    return os.pread(handle, length, offset)


def test_an_honest_drive_keeps_everything(station, tmp_path):
    assert run(station)
    seen = found(station)
    assert (seen.bytes_written, seen.bytes_read, seen.other_write_bytes) == (TWO_PASSES, TWO_PASSES, 0)
    assert not seen.wrong_blocks and seen.complete and seen.passes == 2 and seen.wrong_by_part is None
    assert station.shares == sorted(station.shares) and station.shares[-1] == 1
    assert sorted(os.listdir(tmp_path)) == ["drive", "host"]


def test_each_pass_is_guarded_and_looked_at_as_all_that_writes(station):
    run(station)
    assert station.guarded == ["integrity"] * 2 and station.looks == 4
    assert station.settled, "what was written here would be somebody else's to the next test"


def test_a_drive_that_the_guard_refuses_is_not_written(station):
    def guard(_step, **_shown):
        raise Refused([])

    station.guard = guard
    with pytest.raises(Refused):
        run(station)
    assert read(station.handle, 0, SIZE) == bytes(SIZE)


def test_a_drive_that_became_another_between_two_passes_is_not_written_again(station):
    def look():
        if station.looks:
            raise Refused([])
        station.looks += 1

    station.look = look
    with pytest.raises(Refused):
        run(station)
    assert station.guarded == ["integrity"]


def test_a_test_that_asks_for_none_does_nothing(station):
    assert run(station, planned.spec())
    assert not station.noted and not station.guarded


def paused(pause_s):
    return planned.spec(integrity={"passes": 1, "pause_s": pause_s})


def test_what_was_written_is_read_back_after_the_pause(station):
    began = time.monotonic()
    run(station, paused(1))
    assert time.monotonic() - began >= 1 and found(station).complete
    assert station.shares == sorted(station.shares) and 0.5 in station.shares


def test_a_stop_ends_a_pause_at_once(station):
    station.lie = lambda _number, _handle: threading.Timer(0.5, station.job.stop.set).start()
    with pytest.raises(fio.Interrupted):
        run(station, paused(604800))
    assert station.looks == 1 and not station.noted


FIRST = {}


def keep_first(number, handle):
    if number == 1:
        FIRST["data"] = read(handle, 0, SIZE)


def stale(number, handle):
    keep_first(number, handle)
    if number == 2:
        os.pwrite(handle, FIRST["data"][BLOCK : 2 * BLOCK], BLOCK)


def misdirected(number, handle):
    if number == 1:
        os.pwrite(handle, read(handle, 1 << 20), 3 * BLOCK)


def flip(number, handle):
    if number == 2:
        os.pwrite(handle, bytes([read(handle, 700, 1)[0] ^ 1]), 700)


def dropped(number, handle):
    if number == 1:
        os.pwrite(handle, bytes(BLOCK), 9 * BLOCK)


def cut(number, handle):
    if number == 2:
        os.truncate(handle, SIZE - 512)


LIES = [
    (stale, "stale", 2, BLOCK, "what was written there by pass 1"),
    (misdirected, "misdirected", 1, 3 * BLOCK, "what was written to byte 1048576"),
    (flip, "bit_flips", 2, 0, "1 bit of 4,096 changed"),
    (dropped, "blank", 1, 9 * BLOCK, "every byte is 0x00"),
    (cut, "unreadable", 2, SIZE - 512, "a short read"),
]


@pytest.mark.parametrize(
    ("station", "kind", "number", "offset", "told"),
    [({"lie": lie}, *expected) for lie, *expected in LIES],
    indirect=["station"],
)
def test_a_lie_fails_the_drive_by_its_kind(station, tmp_path, kind, number, offset, told):
    assert not run(station)
    seen = found(station)
    assert seen.wrong_blocks == {kind: 1}
    (block,) = seen.first
    assert (block.pass_number, block.offset_bytes, block.kind, block.found) == (number, offset, kind, told)
    assert block.read_right == 0
    assert [place for place, count in enumerate(seen.wrong_by_part) if count] == [offset * 100 // SIZE]
    (kept,) = [json.loads(line) for line in (tmp_path / "t-1-wrong-blocks.jsonl").read_text().splitlines()]
    assert kept["offset_bytes"] == offset and kept["expected"] != kept["found"]


def test_a_block_that_is_right_the_second_time_is_transient(station):
    """Only while the process reads: it is right again before it is read once more."""
    right = {}

    def lie(number, handle):
        if number == 1:
            right["data"] = read(handle, 0)
            os.pwrite(handle, bytes(8), 16)

    station.lie = lie
    call = station.watchdog.call

    def mended(what, step, *more):
        os.pwrite(station.handle, right["data"], 0)
        return call(what, step, *more)

    station.watchdog = types.SimpleNamespace(call=mended)
    run(station)
    (block,) = found(station).first
    assert (block.kind, block.read_right) == ("transient", 3)
    assert block.found.startswith("first bit flips: ")


@pytest.mark.parametrize(
    ("station", "told"),
    [
        ({"lie": flip, "others": 1 << 20}, "wrote 1,048,576 bytes to"),
        ({"lie": flip, "others": 512}, "wrote 512 bytes to"),
        ({"lie": flip, "others": None}, "may have written to"),
    ],
    indirect=["station"],
)
def test_wrong_blocks_are_not_the_drive_s_where_others_may_have_written_them(station, told):
    with pytest.raises(integrity.OthersWrote, match=rf"1 block of .*; but somebody else {told} the drive meanwhile"):
        run(station)
    assert not station.held.evidence


UNCORRECTED = "/sys/devices/system/edac/mc/mc0/ue_count"


def erring(lie):
    """A lie while the host's memory errs."""

    def lie_and_count(station, number, handle):
        lie(number, handle)
        station.job.host.put(UNCORRECTED, f"{5 + number}\n")

    return lie_and_count


@pytest.mark.parametrize("lie", [stale, flip, dropped])
def test_wrong_blocks_are_not_the_drive_s_where_the_host_s_memory_erred(station, lie):
    station.job.host.put(UNCORRECTED, "5\n")
    station.lie = functools.partial(erring(lie), station)
    with pytest.raises(fio.FioError, match=r"memory errors that it could not correct \(2\) meanwhile, .*: 1 block of "):
        run(station)
    assert found(station).memory_errors == 2 and not station.held.evidence
    # Nor does a stop make them so.
    assert ended(station, "interrupted").outcome == "interrupted"


def test_what_can_t_be_read_is_the_drive_s_whatever_the_host_s_memory_did(station):
    station.job.host.put(UNCORRECTED, "5\n")
    station.lie = functools.partial(erring(cut), station)
    run(station)
    assert found(station).memory_errors == 2 and station.held.evidence


def test_memory_errors_are_no_matter_where_every_block_is_right(station):
    station.job.host.put(UNCORRECTED, "5\n")
    station.lie = functools.partial(erring(lambda _number, _handle: None), station)
    run(station)
    assert found(station).memory_errors == 2 and not found(station).wrong_blocks


@pytest.mark.parametrize(
    "station",
    [{"lie": flip, "others": 511}, {"lie": cut, "others": 1 << 20}, {"lie": cut, "others": None}],
    indirect=True,
)
def test_what_no_writer_can_have_done_is_the_drive_s(station):
    run(station)
    assert station.held.evidence.startswith("t: 1 block of 4,096 bytes not read back as written")


def ended(station, end):
    """The result of an attempt, of the events that were noted."""
    reducer = AttemptReducer(TEST)
    for event in station.noted:
        reducer.take(event)
    return reducer.result(dataclasses.replace(steady_test.end_record(), ended=end, reasons=["why"]))


@pytest.mark.parametrize(("end", "outcome"), [("interrupted", "complete"), ("error", "error")])
@pytest.mark.parametrize("station", [{"lie": dropped}], indirect=True)
def test_wrong_blocks_of_a_pass_stand_whatever_ends_the_next(station, end, outcome):
    look = station.look

    def look_or_end():
        look()
        if station.looks == 3:
            raise Refused([])

    station.look = look_or_end
    with pytest.raises(Refused):
        run(station)
    seen = found(station)
    assert (seen.passes, seen.wrong_blocks, seen.complete) == (1, {"blank": 1}, False)
    assert "1 block" in station.held.evidence
    result = ended(station, end)
    assert (result.outcome, result.written_bytes) == (outcome, SIZE)
    assert len(criteria.missed([], "m", [result])) == 1


def test_wrong_blocks_of_a_read_that_a_stop_ends_stand(station):
    station.lie = lambda _number, handle: os.pwrite(handle, bytes(SIZE), 0)
    call = station.watchdog.call

    def stop(what, step, *more):
        station.job.stop.set()
        return call(what, step, *more)

    station.watchdog = types.SimpleNamespace(call=stop)
    with pytest.raises(fio.Interrupted):
        run(station)
    assert found(station).wrong_blocks["blank"] >= 1 and not found(station).complete
    assert ended(station, "interrupted").outcome == "complete"


@pytest.mark.parametrize("station", [{"lie": dropped}], indirect=True)
def test_all_passes_are_told_of_once(station):
    run(station)
    result = ended(station, None)
    assert [event["passes"] for event in station.noted] == [1, 2]
    assert (result.outcome, result.written_bytes) == ("complete", TWO_PASSES)


def test_reading_ends_soon_once_blocks_are_wrong_and_the_time_budget_is_spent(station):
    station.time_budget_ends_s = 0.0
    run(station)
    assert found(station).complete
    station.noted.clear()
    station.lie = lambda _number, handle: os.pwrite(handle, bytes(SIZE), 0)
    run(station)
    # Each thread may be at one when the first is found.
    assert 1 <= found(station).wrong_blocks["blank"] <= block_pattern.THREADS and not found(station).complete


def test_a_block_that_is_right_after_all_is_the_hosts_fault(station, monkeypatch):
    def wrong_about_it(asked, _stop, _tick, wrong, _silent_s):
        if not asked.writes:
            wrong(transfer.WrongBlock(0, asked.pattern.data(0, BLOCK), 0))
        return transfer.Done(True, SIZE, 1.0)

    monkeypatch.setattr(transfer, "run", wrong_about_it)
    with pytest.raises(fio.FioError, match="called wrong and is right: this host's memory or CPU errs"):
        run(station)
    assert not station.noted


def test_few_blocks_that_can_t_be_read_are_enough(station):
    """Each costs the timeouts of several reads."""
    station.lie = lambda _number, handle: os.truncate(handle, 1 << 20)
    run(station)
    assert found(station).wrong_blocks == {"unreadable": 100} and not found(station).complete


@pytest.mark.parametrize("station", [{"others": 1 << 20}], indirect=True)
def test_what_others_wrote_is_no_matter_where_every_block_is_right(station):
    run(station)
    assert not found(station).wrong_blocks


def test_a_drive_beyond_counting_is_not_read_to_its_end(station, monkeypatch):
    monkeypatch.setattr(integrity, "MOST_WRONG", 5)
    station.lie = lambda _number, handle: os.pwrite(handle, bytes(SIZE), 0)
    run(station)
    seen = found(station)
    assert not seen.complete and seen.wrong_blocks == {"blank": 5} and seen.passes == 1


def test_a_stop_is_let_through(station):
    station.job.stop.set()
    with pytest.raises(fio.Interrupted):
        run(station)
    assert not station.noted


def result_of(station, **changes):
    """The result by the event that was noted, with these changes; of a host that was not tuned as planned."""
    (event,) = station.noted
    reducer = AttemptReducer(TEST)
    reducer.take({**event, **changes})
    return reducer.result(
        dataclasses.replace(steady_test.end_record(), disturbed=["the host was not tuned as planned"])
    )


WRONG = {"wrong_blocks": {"stale": 1}, "complete": False, "passes": 1, "bytes_read": 512}


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({}, "complete"),
        (WRONG, "complete"),
        ({**WRONG, "wrong_blocks": {}}, "invalid"),
        ({"passes": 1}, "invalid"),
        ({"bytes_read": 512}, "invalid"),
        ({"complete": False}, "invalid"),
    ],
)
def test_its_result_is_complete_once_all_was_read_back_or_blocks_are_wrong(station, changes, outcome):
    run(station)
    result = result_of(station, **changes)
    assert result.outcome == outcome and result.written_bytes == TWO_PASSES
    assert bool(result.reasons) == (outcome == "invalid")


def test_a_test_of_which_nothing_was_read_back_is_invalid():
    result = AttemptReducer(TEST).result(steady_test.end_record())
    assert (result.outcome, result.reasons) == ("invalid", ["not all that was to be written was read back"])


def test_what_a_drive_did_not_keep_is_what_it_is_kept_for(station):
    run(station)
    assert criteria.missed([], "m", [result_of(station)]) == []
    (missed,) = criteria.missed([], "m", [result_of(station, **WRONG)])
    assert missed == "t: at least 1 block of 4,096 bytes not read back as written (1 stale)"


# --- burn-in ---


def burn_in(duration_s, passes=1, **asked):
    """Go on for a time that only looks make pass, ten seconds each."""
    cell = {"id": "heat", "access": "random", "block_size_bytes": 4096, "read_pct": 50, "threads": 1, "queue_depth": 1}
    heat = {"heat_s": 60, "heat": {**cell, "runtime_s": 60, "job": ""}}
    return planned.spec(integrity={"passes": passes, "duration_s": duration_s, **heat, **asked})


@pytest.fixture
def clocked(station, monkeypatch):
    """Its time passes with each look at the drive alone: ten seconds, two looks a pass."""
    monkeypatch.setattr(time, "monotonic", lambda: 10.0 * station.looks)
    return station


def by_pass(station):
    return [(end.elapsed_s, end.wrong_blocks) for end in found(station).by_pass]


def test_passes_go_on_until_the_time_is_over_with_heat_between_them(clocked):
    run(clocked, burn_in(50))
    seen = found(clocked)
    assert by_pass(clocked) == [(20, 0), (40, 0), (60, 0)] and seen.passes == 3
    assert [name for name, *_more in clocked.heated] == ["t-1-0002-heat", "t-1-0003-heat"]
    assert {tuple(more) for _name, *more in clocked.heated} == {(60, SIZE)}
    assert seen.other_write_bytes == 0 and not seen.wrong_blocks
    # Each pass, and the heat before all but the first.
    assert clocked.guarded == ["integrity"] * 5
    assert clocked.shares == sorted(clocked.shares) and max(clocked.shares) <= 1
    assert ended(clocked, None).outcome == "complete"


def test_no_pass_begins_once_a_budget_is_spent_but_those_that_are_asked_for(clocked):
    clocked.spent = True
    run(clocked, burn_in(1000, passes=2))
    assert found(clocked).passes == 2


@pytest.mark.parametrize("station", [{}, {"others": None}], indirect=True)
def test_what_it_wrote_counts_towards_the_budget_with_its_heat(clocked):
    """Also where the kernel does not count."""
    clocked.most_bytes = 3 * SIZE + 8 * BLOCK
    run(clocked, burn_in(1000))
    assert found(clocked).passes == 3 and len(clocked.heated) == 2


@pytest.mark.parametrize(("stop", "passes"), [(True, [0, 1]), (False, [0, 1, 0])])
def test_it_stops_at_the_first_wrong_block_or_counts(clocked, stop, passes):
    clocked.lie = flip
    run(clocked, burn_in(50, stop_at_first=stop))
    assert [count for _end_s, count in by_pass(clocked)] == passes and found(clocked).wrong_blocks == {"bit_flips": 1}
    assert clocked.held.evidence and ended(clocked, None).outcome == "complete"
    # Once when it was found, and once at the end.
    assert len(clocked.noted) == 2


def test_what_an_earlier_pass_wrote_is_told_though_its_memory_was_given_back(clocked):
    clocked.lie = lambda number, handle: (keep_first if number == 1 else stale_in_third)(number, handle)
    run(clocked, burn_in(50))
    (block,) = found(clocked).first
    assert (block.pass_number, block.kind, block.found) == (3, "stale", "what was written there by pass 1")


def stale_in_third(number, handle):
    if number == 3:
        os.pwrite(handle, FIRST["data"][BLOCK : 2 * BLOCK], BLOCK)
