# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An array for one test, with a host that runs nothing: what is done in which order, and undone when it fails."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import types

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.deadline import Hangs
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Result
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import ledger_format
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.held import Refused
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import array, array_members, release_drive
from ansible_collections.ssdlab.fleet.plugins.module_utils.job.drive_context import Attempt
from ansible_collections.ssdlab.fleet.plugins.module_utils.job.operating_points import NoPoint
from ansible_collections.ssdlab.fleet.plugins.module_utils.job.run_rounds import LinkDown
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import fio, precondition_curve
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.guard import Refusal
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.ledger import LedgerEntry
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.storage_layers import PlannedArray
from ansible_collections.ssdlab.fleet.plugins.module_utils.tools import mdadm
from ansible_collections.ssdlab.fleet.tests.fixtures import planned

SIZE, CHUNK = 1 << 20, 64 << 10
SPEC = PlannedArray(0, CHUNK, ["a", "b"])
TEST, NAMES = dataclasses.replace(planned.spec(), array=SPEC), Attempt("t", 1)
NUMBERS = {"a": "8:0", "b": "8:16"}
REFUSED = Refused([Refusal("in_use", "it is in use")])


class Host:
    """Tells what it is asked to run. fails: the second word of a command that does not work."""

    def __init__(self, did, file):
        self.did, self.file, self.fails = did, file, ""

    def run(self, argv, timeout_s=60, stdin=None, started=None):
        self.did.append(argv[1])
        return Result(list(argv), int(argv[1] == self.fails), "", "no room")

    def open(self, _path, _flags):
        return os.open(self.file, os.O_RDONLY)

    def device_number(self, _handle):
        return "9:127"

    def listdir(self, _path):
        return []

    def get(self, _path):
        return None


class Held:
    """A drive in the guard's hands."""

    def __init__(self, did, label):
        self.did, self.label, self.evidence, self.blank = did, label, "", False
        self.path = f"/dev/{label}"
        self.identity = Identity(major_minor=NUMBERS[label], size_bytes=SIZE, logical_block_size_bytes=512)

    @contextlib.contextmanager
    def shared(self):
        self.did.append(f"share {self.label}")
        try:
            yield f"/own/{self.label}"
        except Hangs:
            raise
        except BaseException:
            self.did.append(f"hold {self.label}")
            raise
        self.did.append(f"hold {self.label}")

    def bytes_written(self):
        return 1000

    def content_is_ours(self):
        self.did.append(f"ledger {self.label}")

    def release(self):
        self.did.append(f"release {self.label}")

    def abandon(self, reason):
        self.did.append(f"abandon {self.label}: {reason}")

    def confirm(self):
        pass

    def confirm_node(self, node):
        assert node == f"/own/{self.label}"


class Look:
    """In place of looks at a real drive."""

    reasons, conditions, wear = [], [], None

    def __init__(self, *_about):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        pass


def station_of(job, plan, did):
    """The station of a drive of the job; what it does is noted."""
    label = plan.drive
    found = types.SimpleNamespace(
        job=job,
        plan=plan,
        drive=label,
        name=label,
        held=Held(did, label),
        watchdog=types.SimpleNamespace(call=lambda _what, step, _longer_s=0.0: step()),
        note=lambda event, **fields: did.append(event),
        members=[],
        did=did,
        host=job.host,
        stop=job.stop,
    )

    def guard(step, **_shown):
        did.append(f"guard {label}")
        if job.wrong and label == "a":
            raise job.wrong

    found.guard, found.target = guard, found.held
    found.bench = types.SimpleNamespace(
        on=lambda held, members: types.SimpleNamespace(begin_test=lambda: None, settle=lambda: None),
        begin_test=lambda: None,
    )
    return found


@pytest.fixture
def lead(tmp_path, monkeypatch):
    """The station of the drive that carries the test; did: what was done."""
    did, file = [], tmp_path / "array"
    file.write_bytes(b"\0" * (2 * SIZE))
    host = Host(did, file)
    stop = types.SimpleNamespace(is_set=lambda: stop.asked, asked=False)
    run_dir = types.SimpleNamespace(path=str(tmp_path), state_dir=str(tmp_path))
    drives = [planned.drive(drive=label) for label in ("a", "b")]
    job = types.SimpleNamespace(
        host=host,
        run_dir=run_dir,
        stop=stop,
        drives=drives,
        ended={"a": "complete"},
        hung={},
        leave="as_is",
        wrong=None,
    )

    def station(job, plan):
        return station_of(job, plan, did)

    made = mdadm.Array("raid0", "none", CHUNK, frozenset(NUMBERS.values()), "9:127")
    monkeypatch.setattr(array_members, "DriveContext", station)
    monkeypatch.setattr(array_members, "MemberWatch", Look)
    monkeypatch.setattr(mdadm, "read_array", lambda _host, _name: made)
    monkeypatch.setattr(array.array_leftover, "note", lambda *_about: did.append("note"))
    monkeypatch.setattr(array.array_leftover, "stop", lambda *_about: did.append("stop") or [])
    return station(job, drives[1])


BEFORE = ["guard b", "guard a", "ledger a", "left", "share a", "share b", "note", "--build"]


def assemble(lead):
    with array.assembled(lead, TEST, NAMES) as made:
        lead.did.append("measured")
        assert lead.target is not lead.held and lead.target.identity.size_bytes == 2 * SIZE
        assert lead.members == ["a", "b"]
    return made


def test_every_drive_is_guarded_and_in_the_ledger_before_it_is_made_and_held_again_after(lead):
    made = assemble(lead)
    assert made.reasons == []
    assert lead.did == [*BEFORE, "array", "measured", "stop", "hold b", "hold a", "release a", "array_stopped"]
    assert lead.target is lead.held and lead.members == []


def test_a_test_without_one_gets_none(lead):
    with array.assembled(lead, planned.spec(), NAMES) as made:
        assert made is None
    assert lead.did == []


@pytest.mark.parametrize("error", [fio.Interrupted(), fio.FioError("no"), REFUSED, ZeroDivisionError()])
def test_whatever_ends_the_measurement_stops_it_first(lead, error):
    with pytest.raises(type(error)), array.assembled(lead, TEST, NAMES):
        raise error
    assert lead.did == [*BEFORE, "array", "stop", "hold b", "hold a", "release a"]


@pytest.mark.parametrize(
    ("ended", "blank"),
    [
        (None, True),
        (LinkDown("its link fell"), True),
        (NoPoint("no point"), True),
        (precondition_curve.Short("half of it"), True),
        (fio.FioError("no JSON"), False),
        (fio.Interrupted(), False),
    ],
)
def test_its_other_drives_are_left_blank_but_for_an_error_and_a_stop(lead, monkeypatch, ended, blank):
    lead.job.leave = release_drive.BLANK
    monkeypatch.setattr(array_members, "purge_work", lambda _member, _purge: None)
    left = release_drive.Leaving(release_drive.BLANK, "", 0.1)
    monkeypatch.setattr(release_drive, "blank", lambda _work: lead.did.append("blank") or left)
    with pytest.raises(type(ended)) if ended else contextlib.nullcontext():
        with array.assembled(lead, TEST, NAMES):
            if ended:
                raise ended
    assert ("blank" in lead.did) is blank and lead.did.count("release a") == 1
    # It is no part of the array any more by then.
    assert not blank or lead.did.index("stop") < lead.did.index("blank") < lead.did.index("release a")


def test_one_that_failed_by_its_health_is_not_left_blank(lead, monkeypatch):
    class Sick(Look):
        def __init__(self, _lead, member, *_about):
            self.held = member.held

        def __exit__(self, *_error):
            self.held.evidence = "t: it counted 2 more media errors"

    monkeypatch.setattr(array_members, "MemberWatch", Sick)
    lead.job.leave = release_drive.BLANK
    assemble(lead)
    assert lead.did[-3:] == ["hold a", "release a", "array_stopped"]


def test_a_drive_that_hangs_is_not_touched_again(lead):
    with pytest.raises(Hangs), array.assembled(lead, TEST, NAMES):
        raise Hangs("no answer")
    assert lead.did == [*BEFORE, "array", "abandon a: no answer"] and lead.target is lead.held


def test_one_that_cannot_be_made_is_stopped_as_far_as_it_came(lead):
    lead.host.fails = "--build"
    with pytest.raises(array.ArrayError, match="ended with 1 and said: no room"), array.assembled(lead, TEST, NAMES):
        pass
    assert lead.did == [*BEFORE, "stop", "hold b", "hold a", "release a"]


@pytest.mark.parametrize(
    "other",
    [
        None,
        mdadm.Array("raid0", "none", CHUNK, frozenset({"8:0", "8:32"}), "9:127"),
        mdadm.Array("raid0", "1.2", CHUNK, frozenset(NUMBERS.values()), "9:127"),
        mdadm.Array("linear", "none", CHUNK, frozenset(NUMBERS.values()), "9:127"),
    ],
    ids=["none", "another drive", "a superblock", "another level"],
)
def test_nothing_is_measured_on_another_array(lead, monkeypatch, other):
    monkeypatch.setattr(mdadm, "read_array", lambda _host, _name: other)
    with pytest.raises(array.ArrayError, match="not a raid0 of 8:0, 8:16"), array.assembled(lead, TEST, NAMES):
        pass
    assert "array" not in lead.did


def test_a_member_that_is_refused_makes_the_test_invalid_and_nothing_is_written(lead):
    lead.job.wrong = REFUSED
    with pytest.raises(array_members.NoArray, match="its member a was refused: in_use"), array.assembled(
        lead, TEST, NAMES
    ):
        pass
    assert lead.did == ["guard b", "guard a", "release a"]


def test_a_member_that_is_evidence_is_not_written(lead, monkeypatch):
    kept = LedgerEntry("r0", "evidence", {}, 1, reason="it was slow")
    monkeypatch.setattr(ledger_format, "read", lambda *_about: kept)
    with pytest.raises(array_members.NoArray, match="a is kept as evidence: it was slow"), array.assembled(
        lead, TEST, NAMES
    ):
        pass
    assert "ledger a" not in lead.did and lead.did[-1] == "release a"


@pytest.mark.parametrize(
    ("ended", "evidence", "lacks", "told"),
    [
        ({"a": "complete"}, "", "", ""),
        ({"a": "refused"}, "", "", "did not all complete: a (refused)"),
        ({}, "", "", "a (it is not in the plan)"),
        ({"a": "complete"}, "too slow", "", "b is kept as evidence: too slow"),
        ({"a": "complete"}, "", "mdadm is missing", "no array was made: mdadm is missing"),
    ],
)
def test_why_there_can_be_none_is_told_before_anything_is_done(lead, monkeypatch, ended, evidence, lacks, told):
    monkeypatch.setattr(mdadm, "missing_tools", lambda _host, _level: lacks)
    lead.job.ended, lead.held.evidence = ended, evidence
    found = array.unavailable_reason(lead, SPEC)
    assert told in found and bool(found) == bool(told) and lead.did == []


def test_it_waits_for_the_other_campaigns_unless_the_run_is_stopped(lead):
    array.await_others(lead.job, "b")
    lead.job.ended, lead.stop.asked = {}, True
    with pytest.raises(fio.Interrupted):
        array.await_others(lead.job, "b")


@pytest.mark.parametrize(
    ("written", "of_members", "told"),
    [
        (100 << 20, [50 << 20, 50 << 20], []),
        (100 << 20, [50 << 20, 60 << 20], ["to the array"]),
        (100 << 20, [50 << 20, 0], ["to the array"]),
        # Chance, and 64 MiB, which are little of a drive.
        (200 << 30, [104 << 30, 96 << 30], []),
        (200 << 20, [130 << 20, 70 << 20], []),
        # As much in all, but not to each: a smaller drive, or one in its place.
        (200 << 30, [120 << 30, 80 << 30], ["written to a,", "written to b,"]),
        (260 << 30, [100 << 30, 100 << 30, 60 << 30], ["written to a,", "written to b,", "written to c,"]),
        (None, [1, 2], []),
        (None, [90 << 30, 10 << 30], ["written to a,", "written to b,"]),
        (100, [None, 2], []),
    ],
)
def test_what_was_written_to_the_members_is_what_was_written_to_the_array(written, of_members, told):
    found = array.member_write_differences(written, dict(zip("abc", of_members)))
    assert len(found) == len(told) and all(part in text for part, text in zip(told, found))
