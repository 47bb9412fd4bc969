# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host's records can't do to those that come after them."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import CollectedPlan
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.render_plan import load_plan
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.testfiles import SHIPPED_DIR
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.validation import module_answers, record_check, sanitizer
from ansible_collections.ssdlab.fleet.tests.fixtures.plans import identity_of, planned

NOW = "2026-11-22T12:00:00.000Z"
DRIVE = {
    "schema_version": 1,
    "kind": "drive",
    "drive": "S1",
    "path": "/dev/x",
    "identity": None,
    "outcome": "complete",
    "message": "",
    "refusals": [],
}


def told(*given, asked=(("S1", ""),)):
    return record_check.collected(given, "r1", "h1", NOW, set(asked))


@pytest.mark.parametrize(
    ("time", "kept"),
    [
        ("2026-11-22T11:59:59.999Z", "2026-11-22T11:59:59.999Z"),
        (NOW, NOW),
        ("2026-11-22T12:00:00.001Z", NOW),
        ("2026-11-22T12:00:01Z", NOW),
        ("9999-12-31T23:59:59.999999999Z", NOW),
    ],
)
def test_no_record_is_of_the_future(time, kept):
    """The store keeps the newest: a pass of 9999 would outlive every measurement after it, and cleanup.yml."""
    (record,) = told({**DRIVE, "time": time}).records
    assert record["time"] == kept and record["outcome"] == "complete"


def test_one_drive_that_is_told_a_thousand_times_is_one_record():
    first = [{**DRIVE, "time": NOW, "message": f"{number}"} for number in range(1000)]
    found = told(*first)
    assert [record["message"] for record in found.records] == ["999"] and found.problems == []
    unasked = told(*first, asked=[("S2", "")])
    assert len(unasked.records) == 1 and unasked.problems == []


@pytest.mark.parametrize(
    "value",
    [
        {"__ansible_type": "TrustedAsTemplate", "value": "{{ lookup('pipe', 'id') }}"},
        {"__ansible_unsafe": "x"},
        {"__ansible_vault": "$ANSIBLE_VAULT;1.1;AES256\n61"},
        {"__ansible_type": "_TaggedStr", "value": "x", "tags": [{"__ansible_type": "Origin", "path": "/etc/shadow"}]},
    ],
)
def test_a_text_that_ansible_would_make_of_a_mapping_is_none(value):
    """ansible-core has its own words for texts with tags; of ours none is written so."""
    answer = module_answers.passed("run_info", {"runs": [], "state": value, "changed": False})
    assert answer["failed"] and "cannot be trusted" in answer["msg"]


@pytest.mark.parametrize("plan", sorted(path.stem for path in SHIPPED_DIR.glob("plans/*.yml")))
def test_a_hosts_plan_keeps_what_its_results_are_made_of(plan):
    """A key that the gate drops would be taken for one that the test does not have."""
    sent = planned(load_plan(plan), identity_of(1 << 40))
    came = sanitizer.shape_of_record(CollectedPlan).passed(sent).value
    assert [drive["tests"] for drive in came["drives"]] == [without_jobs(drive["tests"]) for drive in sent["drives"]]


def without_jobs(value):
    """Without the texts for fio, which only the host takes."""
    if isinstance(value, list):
        return [without_jobs(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: without_jobs(item) for key, item in value.items() if key not in ("job", "remainder_job", "trial_job")}
