# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import shlex

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import begun_run, excluded_drives
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight.findings import Run
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store.quarantine import Quarantined
from ansible_collections.ssdlab.fleet.tests.fixtures import host_answers

BAD = Quarantined("nightly", "serial M S2", "S2", "h1", "S2", 3, "r3", "wsat: write_iops 3 < 5")
NEW, BEGUN = Run("r4", "nightly", {}), Run("r4", "nightly", {"h1": "dead"})


def view(drives=("S1", "S2"), name="h1", step="qualify", identities=True):
    entries = [
        {"drive": serial, "refusals": [], "identity": {"serial": serial, "model": "M"} if identities else None}
        for serial in drives
    ]
    checks = [{"check": "temperature", "drive": serial} for serial in drives] + [{"check": "bios", "drive": None}]
    asked = {"ssd_drives": [{"serial": serial} for serial in drives], "ssd_step": step}
    return host_answers.of(name, asked, drives=entries, checks=checks)


def left(views):
    return [([entry.label for entry in one.entries], [told.drive for told in one.drives]) for one in views]


def test_a_marked_drive_is_left_out_of_all_that_is_decided_on_and_told():
    (found,) = excluded_drives.exclude([view()], NEW, [BAD], {})
    assert left([found]) == [(["S1"], ["S1"])] and [check.drive for check in found.checks] == ["S1", None]
    (line,) = excluded_drives.lines([found])
    assert line.startswith("h1: drive S2: quarantined: failed 3 nights in a row, last in r3: wsat: write_iops 3 < 5.")
    assert "release.yml" in line and "S2" in line.split("release.yml")[1]


@pytest.mark.parametrize(
    ("given", "run", "mark", "kept"),
    [
        (view(("S1",)), NEW, BAD, {}),  # another drive
        (view(), Run("r4", "by-hand", {}), BAD, {}),  # a run of another name
        (view(), None, BAD, {}),
        (view(step="purge"), NEW, BAD, {}),
        (view(), BEGUN, BAD, {}),  # the host began with it
        (view(), NEW, BAD._replace(identity="serial M S9", drive="S9"), {("h1", "S2"): "quarantined: …"}),
    ],
)
def test_what_is_not_left_out(given, run, mark, kept):
    assert excluded_drives.exclude([given], run, [mark], kept) == [given]


def test_a_drive_is_known_wherever_it_is_put():
    assert left(excluded_drives.exclude([view(name="h7")], NEW, [BAD], {})) == [(["S1"], ["S1"])]


def test_a_mark_of_a_drive_whose_host_claims_anothers_names_leaves_that_other_one_in():
    """What h6 tells of its own drive S7 is that it is S2."""
    claimed = BAD._replace(host="h6", drive="S7")
    assert excluded_drives.exclude([view()], NEW, [claimed], {}) == [view()]
    (found,) = excluded_drives.exclude([view()], NEW, [BAD, claimed], {})
    assert list(found.left_out) == ["S2"]


def test_what_is_to_be_pasted_runs_nothing_else():
    said = BAD._replace(drive="a'b\"; $(x)").text().split(" -e ")[1]
    assert [json.loads(word) for word in shlex.split(said)] == [{"ssd_release_drive": "a'b\"; $(x)"}]


def test_a_drive_that_no_longer_says_who_it_is_is_known_by_its_place():
    assert left(excluded_drives.exclude([view(identities=False)], NEW, [BAD], {})) == [(["S1"], ["S1"])]
    elsewhere = view(name="h7", identities=False)
    assert excluded_drives.exclude([elsewhere], NEW, [BAD], {}) == [elsewhere]


def test_a_host_that_began_without_a_drive_goes_on_without_it_though_it_was_released():
    kept = excluded_drives.of_run(
        begun_run.parse({"asked": [{"host": "h1", "drive": "S2", "left_out": "quarantined: as it was"}]})
    )
    (found,) = excluded_drives.exclude([view()], BEGUN, [], kept)
    assert found.left_out == {"S2": "quarantined: as it was"} and left([found]) == [(["S1"], ["S1"])]
