# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs note in the ledger, on a file that stands for a drive."""

from __future__ import annotations

import os

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import ledger, ledger_format, rules
from ansible_collections.ssdlab.fleet.tests.unit.plugins.module_utils.guard.noted import IDENTITY

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the ledger counts only while it is root's")


def test_what_nobody_wrote_to_since_is_ours(left):
    seen = left.seen()
    assert (seen.run_id, seen.state, seen.reason, seen.proved) == ("r", "released", "", "") and left.untouched()
    assert os.stat(left.file).st_mode & 0o777 == 0o644


def test_until_it_is_let_go_of_a_drive_is_being_written(left):
    ledger.begin(left.host, left.state_dir, IDENTITY, "second")
    assert (left.seen().run_id, left.seen().state) == ("second", "writing")


def test_evidence_is_kept_with_its_reason(left):
    left.run("second", sectors=300, reason="iops: write_iops is 5")
    assert (left.seen().state, left.seen().reason, left.seen().run_id) == (
        "evidence",
        "iops: write_iops is 5",
        "second",
    )


def test_evidence_outlives_the_job_that_noted_it(left):
    before = ledger.begin(left.host, left.state_dir, IDENTITY, "second")
    ledger.note(before, IDENTITY, "iops: write_iops is 5")
    assert (left.seen().state, left.seen().reason) == ("writing", "iops: write_iops is 5")
    ledger.close(left.state_dir, "second")
    assert (left.seen().state, left.seen().reason) == ("evidence", "iops: write_iops is 5")


def test_a_run_that_is_over_is_closed_and_its_counters_forgotten(left):
    ledger.begin(left.host, left.state_dir, IDENTITY, "second")
    ledger.close(left.state_dir, "other")
    ledger.close(left.state_dir, "second", [left.file])
    assert left.seen().state == "writing"
    ledger.close(left.state_dir, "second")
    assert (left.seen().state, left.untouched()) == ("released", False)
    ledger.close(str(left.path), "second")  # no ledger there


def test_sentinels_are_noted_with_their_hashes(left):
    before = ledger.begin(left.host, left.state_dir, IDENTITY, "second")
    ledger.note(before, IDENTITY, "", {512: b"b" * 512, 0: b"a" * 512})
    entry = ledger_format.read(left.state_dir, IDENTITY)
    assert entry.state == "writing" and [(item.offset, item.length) for item in entry.sentinels] == [
        (0, 512),
        (512, 512),
    ]
    assert entry.sentinels[0].sha256 == ledger_format.fingerprint(b"a" * 512)


def test_a_run_that_wrote_nothing_claims_nothing(left):
    left.run("second", sectors=200)
    assert left.seen().run_id == "r" and left.untouched() is True
    os.unlink(left.file)
    left.run("third", sectors=200)
    assert left.seen() is None and os.listdir(os.path.dirname(left.file)) == []


def test_evidence_counts_for_a_new_run_of_the_same_id(left):
    left.run("second", sectors=300, reason="read_iops 9 < 10")
    ledger.close(left.state_dir, "second")
    assert "evidence" in rules.ours(left.seen(), "second") and "evidence" not in rules.ours(left.seen(), "third")
    ledger.close(left.state_dir, "second", removed=True)
    assert rules.ours(left.seen(), "second") == () and left.seen().state == "evidence"
    assert "evidence" in rules.lifted_codes(parse({"serial": "S", "release_evidence": "second"}), left.seen())


def test_evidence_of_a_run_that_wrote_nothing_is_kept(left):
    before = left.untouched()
    left.run("second", sectors=200, reason="read_iops 9 < 10")
    assert (left.seen().run_id, left.seen().state, left.seen().reason) == (
        "second",
        "evidence",
        "read_iops 9 < 10",
    )
    # What was proved of the data before is what is proved of it now.
    assert left.untouched() == before
    os.unlink(left.file)
    left.run("third", sectors=200, reason="read_iops 9 < 10")
    assert left.seen().state == "evidence" and left.untouched() is False


def test_a_drive_that_is_given_up_keeps_its_run_and_the_reason(left):
    before = ledger.begin(left.host, left.state_dir, IDENTITY, "second")
    ledger.note(before, IDENTITY, "", {0: b"x" * 512})
    ledger.give_up(before, IDENTITY, "the drive hangs")
    entry = ledger_format.read(left.state_dir, IDENTITY)
    assert (entry.state, entry.run_id, entry.reason, len(entry.sentinels)) == (
        "writing",
        "second",
        "the drive hangs",
        1,
    )
    assert ledger_format.known(entry).reason == "the drive hangs"
    # cleanup.yml of that run: what it left is evidence until it is released.
    ledger.close(left.state_dir, "second")
    entry = ledger_format.read(left.state_dir, IDENTITY)
    assert (entry.state, entry.written) == ("evidence", None)
