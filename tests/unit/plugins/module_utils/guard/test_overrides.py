# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an inventory or the fleet's own ledger may lift of the guard's refusals, and what nothing lifts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import facts as guard_facts
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import guard_check, refusals, rules
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.found_drives import Identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.ledger import OwnData
from ansible_collections.ssdlab.fleet.tests.unit.plugins.module_utils.guard.looked_at import (
    SELECTOR,
    mounted_partition,
    partition,
)


def overriding(**options):
    return dict(SELECTOR, **options)


@pytest.mark.parametrize(
    "stage, options, refused, overridden",
    [
        (partition, {"allow": ["partition_table"]}, [], ["partition_table"]),
        (partition, {"allow": ["signature"]}, ["partition_table"], []),
        (partition, {"ssd_overwrite_data": True}, ["partition_table"], []),
        (mounted_partition, {"allow": ["partition_table"]}, ["mounted"], ["partition_table"]),
        (lambda host: None, {"allow": ["partition_table", "signature", "removable"]}, [], []),
        (lambda host: host.put(host.block + "/removable", "1"), {"allow": ["removable"]}, [], ["removable"]),
    ],
)
def test_an_override_lifts_its_own_code_and_is_told(drive_of, stage, options, refused, overridden):
    stage(drive_of)
    (result,) = guard_check.inspect(drive_of, [parse(overriding(**options))])
    assert [refusal["code"] for refusal in result["refusals"]] == refused
    assert [refusal["code"] for refusal in result["overridden"]] == overridden
    assert result["eligible"] is (not refused)


@pytest.mark.parametrize(
    "code, says",
    [
        ("mounted", "can't be overridden"),
        ("held", "can't be overridden"),
        ("root_disk", "can't be overridden"),
        ("identity_changed", "can't be overridden"),
        ("shared_namespace", "can't be overridden"),
        ("unsigned_data", "can only be lifted by ssd_overwrite_data"),
        ("partition-table", "is not a code of the guard"),
        ("all", "is not a code of the guard"),
    ],
)
def test_what_cannot_be_overridden_is_a_bad_selector_that_says_so(drive_of, code, says):
    (result,) = guard_check.inspect(drive_of, [parse(overriding(allow=["partition_table", code]))])
    (refusal,) = result["refusals"]
    assert refusal["code"] == "bad_selector" and says in refusal["message"] and result["overridden"] == []


def test_only_these_codes_can_be_overridden():
    allowed = {code for code, text in refusals.REFUSALS.items() if text.overridable == "allow"}
    assert allowed == {
        "partition_table",
        "signature",
        "efi_system_partition",
        "transport",
        "removable",
        "zoned",
        "hard_disk",
        "sanitize_failed",
        "unseen_users",
        "mentioned",
    }
    assert [code for code, text in refusals.REFUSALS.items() if text.overridable == "ssd_overwrite_data"] == [
        "unsigned_data"
    ]
    assert {text.overridable for text in refusals.REFUSALS.values()} == {
        "",
        "allow",
        "ssd_overwrite_data",
        "release_evidence",
    }


WRITING = OwnData(run_id="r", state="writing", proved="")
LEFT = OwnData(run_id="old", state="released", proved="counters", released="…")


@pytest.mark.parametrize(
    "known, run_id, lifted",
    [
        (None, "r", set()),
        (LEFT, None, {"unsigned_data"}),
        (replace(LEFT, proved="content"), "r", {"unsigned_data"}),
        (replace(LEFT, proved=""), "old", {"evidence"}),  # what it keeps as evidence itself
        (replace(LEFT, proved=""), "new", set()),
        (replace(LEFT, state="evidence"), None, {"unsigned_data"}),  # and the code evidence stands
        (WRITING, "r", {"evidence"}),
        (replace(WRITING, proved="content"), "r", {"unsigned_data", "evidence"}),
        (replace(WRITING, proved="content"), "other", set()),
        (replace(WRITING, proved="content"), None, set()),
    ],
)
def test_what_the_ledger_lifts(known, run_id, lifted):
    assert set(rules.ours(known, run_id)) == lifted


@pytest.mark.parametrize(
    "known, says, never",
    [
        (None, "no run of this collection left", "was writing"),
        (LEFT, "no run of this collection left", "was writing"),
        # Foreign data on the drive of a run that died: only that run's own data is that run's.
        (WRITING, "no run of this collection left", "was writing"),
        (
            replace(WRITING, proved="content"),
            "run r was writing to it and never released it: the block at byte 0",
            "no run of this collection",
        ),
        (
            replace(WRITING, reason="hangs: {0}"),
            "never released it (hangs: {0}): the block at byte 0",
            "no run of this collection",
        ),
    ],
)
def test_data_without_a_signature_is_told_by_who_left_it(known, says, never):
    facts = guard_facts.Facts(
        "sda", "/dev/sda", "drive", Identity(), unsigned=["the block at byte 0 is not blank"], own_data=known
    )
    (refusal,) = [refusal for refusal in rules.refusals(facts, "SN1") if refusal.code == "unsigned_data"]
    assert says in refusal.message and never not in refusal.message
    assert ("-e ssd_run_id=r" in refusal.message) == (
        never == "no run of this collection"
    ) and "ssd_overwrite_data: true" in refusal.message


@pytest.mark.parametrize("release, lifted", [("old", ("evidence",)), ("OLD", ()), (None, ())])
def test_evidence_is_released_for_the_run_that_is_named(release, lifted):
    entry = parse(dict(SELECTOR, **({"release_evidence": release} if release else {})))
    assert rules.lifted_codes(entry, replace(LEFT, state="evidence")) == lifted
    assert rules.lifted_codes(entry, None) == ()
