# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drive that was not purged or filled as asked is a faster one, and its figures do not count."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.results import judge, prepared

SIZE = 1_000_000
ASKED = {"purge": {"method": "auto"}, "precondition": {"passes": 2}, "active_range_pct": 100}
PURGED = {"method": "deallocate", "verified": True}
FILLED = {"passes": 2, "bytes_written": 2 * SIZE, "kernel_bytes_written": 2 * SIZE}
DONE = {"purge": PURGED, "precondition": FILLED}


@pytest.mark.parametrize(
    ("record", "about", "says"),
    [
        ({**DONE, "purge": None}, ASKED, "asks for the purge auto, but its record has none"),
        ({**DONE, "purge": {"method": "none", "verified": True}}, ASKED, "asks for the purge auto"),
        (
            DONE,
            {**ASKED, "purge": {"method": "format"}},
            "asks for the purge format, but its record has dealloc",
        ),
        ({**DONE, "purge": {**PURGED, "verified": False}}, ASKED, "its purge deallocate was not verified"),
        (
            {**DONE, "purge": {**PURGED, "verification": {"sentinels": 64, "survived": 3}}},
            ASKED,
            "its purge deallocate was not verified",
        ),
        (
            {**DONE, "purge": {**PURGED, "verification": {"sentinels": 0, "survived": 0}}},
            ASKED,
            "its purge deallocate was not verified",
        ),
        ({**DONE, "precondition": None}, ASKED, "asks for a fill of 2 passes, but its record has none"),
        (
            {**DONE, "precondition": {**FILLED, "passes": 1}},
            ASKED,
            "a fill of 2 passes, but its record has 1",
        ),
        (
            {**DONE, "precondition": {**FILLED, "bytes_written": SIZE}},
            ASKED,
            "its fill of 2 passes wrote only 1000000 bytes",
        ),
        (
            {**DONE, "precondition": {**FILLED, "kernel_bytes_written": SIZE}},
            ASKED,
            "counted only 1000000 of 2000000 bytes",
        ),
    ],
)
def test_a_drive_that_was_not_prepared_as_asked(record, about, says):
    assert says in prepared.problem(record, about, SIZE)
    run = {"tests": {"t": about}, "criteria": [], "asked": [{"host": "h", "drive": "d"}]}
    drive = {"kind": "drive", "host": "h", "drive": "d", "outcome": "complete", "identity": {"size_bytes": SIZE}}
    test = {"kind": "test", "host": "h", "drive": "d", "test": "t", "outcome": "complete", "rounds": 1, **record}
    assert judge.judge(run, [drive, test])["drives"][0]["verdict"] == "invalid"
    assert judge.judge(run, [drive, {**test, **DONE}])["drives"][0]["verdict"] == (
        "invalid" if about["purge"]["method"] == "format" else "pass"
    )


@pytest.mark.parametrize(
    ("record", "about", "size"),
    [
        (DONE, ASKED, SIZE),
        ({**DONE, "precondition": {**FILLED, "kernel_bytes_written": None}}, ASKED, SIZE),
        (DONE, ASKED, None),
        # A card that a later test formatted to its full size.
        ({**DONE, "precondition": {**FILLED, "bytes_written": 1_600_000, "kernel_bytes_written": None}}, ASKED, SIZE),
        (DONE, {**ASKED, "purge": {"method": "deallocate"}}, SIZE),
        ({"purge": None, "precondition": None}, {"purge": {"method": "none"}, "precondition": None}, SIZE),
        ({"purge": None, "precondition": None}, {}, SIZE),
        ({**DONE, "precondition": {**FILLED, "passes": 4}}, {**ASKED, "active_range_pct": 50}, SIZE),
    ],
)
def test_a_drive_that_was(record, about, size):
    assert prepared.problem(record, about, size) == ""


@pytest.mark.parametrize(
    ("counted", "causes", "verdict", "told"),
    [(2 * SIZE, "spoil", "pass", 0), (None, "warn", "pass", 1), (None, "spoil", "invalid", 1)],
)
def test_a_fill_that_nobody_counted_is_unknown_and_said(counted, causes, verdict, told):
    run = {"tests": {"t": ASKED}, "criteria": [], "asked": [{"host": "h", "drive": "d"}], "unknown_causes": causes}
    drive = {"kind": "drive", "host": "h", "drive": "d", "outcome": "complete", "identity": {"size_bytes": SIZE}}
    record = {**DONE, "precondition": {**FILLED, "kernel_bytes_written": counted}}
    test = {"kind": "test", "host": "h", "drive": "d", "test": "t", "outcome": "complete", "rounds": 1, **record}
    found = judge.judge(run, [drive, test])["drives"][0]
    remarks = [text for text in found["tests"][0]["remarks"] if "it is unknown whether the fill was complete" in text]
    assert (found["verdict"], len(remarks)) == (verdict, told)


ARRAY = {"level": 0, "chunk_bytes": 65536, "drives": "all"}
BIG = 1 << 30
MADE = {
    "level": 0,
    "chunk_bytes": 65536,
    "size_bytes": 2 * BIG,
    "members": [{"drive": "a", "bytes_written": BIG}, {"drive": "b", "bytes_written": BIG}],
}


def with_members(*changes):
    """MADE, of whose members this is otherwise."""
    return {**MADE, "members": [{**member, **change} for member, change in zip(MADE["members"], changes)]}


@pytest.mark.parametrize(
    ("made", "asked", "says"),
    [
        (MADE, ARRAY, ""),
        (MADE, {**ARRAY, "drives": 2}, ""),
        (None, ARRAY, "asks for an array, but its record has none"),
        (MADE, None, "asks for no array, but its record has one"),
        (MADE, {**ARRAY, "drives": 3}, "not the one that the run asks for"),
        (MADE, {**ARRAY, "chunk_bytes": 4096}, "not the one that the run asks for"),
        ({**MADE, "size_bytes": BIG}, ARRAY, "which does not match 2 drives of 1073741824"),
        ({**MADE, "members": [MADE["members"][0]] * 2}, ARRAY, "a drive twice"),
        (
            {**MADE, "members": [MADE["members"][0], {"drive": "b", "bytes_written": 0}]},
            ARRAY,
            "its array wrote nothing to b",
        ),
        ({**MADE, "members": MADE["members"][:1], "size_bytes": BIG}, ARRAY, "not the one that the run asks for"),
        (with_members({"bytes_written": 100 * BIG}, {"bytes_written": 108 * BIG}), ARRAY, ""),
        (with_members({"bytes_written": 100 * BIG}, {"bytes_written": None}), ARRAY, ""),
        (
            with_members({"bytes_written": 100 * BIG}, {"bytes_written": 60 * BIG}),
            ARRAY,
            "to all of its drives alike: a",
        ),
        (with_members({"size_bytes": BIG + 4096}, {"size_bytes": BIG}), ARRAY, ""),
        (with_members({"size_bytes": BIG}, {"size_bytes": BIG // 2}), ARRAY, "drives of another size: b"),
    ],
)
def test_an_array_is_the_one_that_was_asked_for(made, asked, says):
    found = prepared.problem({"array": made} if made else {}, {"array": asked} if asked else {}, BIG)
    assert says in found and bool(found) == bool(says)


def test_the_fill_of_an_array_is_held_to_all_of_it():
    about = {"array": ARRAY, "precondition": {"passes": 1}, "active_range_pct": 100}
    fill = {"passes": 1, "bytes_written": BIG, "kernel_bytes_written": BIG}
    assert "on a drive of 2147483648" in prepared.problem({"array": MADE, "precondition": fill}, about, BIG)
    whole = {"passes": 1, "bytes_written": 2 * BIG, "kernel_bytes_written": 2 * BIG}
    assert prepared.problem({"array": MADE, "precondition": whole}, about, BIG) == ""


@pytest.mark.parametrize("drives", ["all", 2])
@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"a": {}, "b": {}}, ""),
        # One may be left out since it began; without one that was left out before, an honest host makes no array.
        ({"a": {}, "b": {"left_out": "quarantined"}}, ""),
        ({"a": {}, "b": {}, "c": {"left_out": "quarantined"}}, "it lacks c"),
        ({"a": {}, "b": {}, "c": {}}, "not of all drives of its host: it lacks c"),
        ({"b": {}, "c": {}}, "it lacks c and has a, not asked for"),
    ],
)
def test_an_array_is_of_all_drives_that_the_run_asks_of_its_host(drives, asked, says):
    """A host could leave out its slowest drive, and make the array of the others."""
    about = {"array": {**ARRAY, "drives": drives}}
    entries = [{"host": "h", "drive": name, **more} for name, more in asked.items()]
    run = {"tests": {"t": about}, "criteria": [], "asked": [*entries, {"host": "other", "drive": "x"}]}
    drive = {"kind": "drive", "host": "h", "drive": "b", "outcome": "complete", "identity": {"size_bytes": BIG}}
    test = {"kind": "test", "host": "h", "drive": "b", "test": "t", "outcome": "complete", "rounds": 1, "array": MADE}
    (judged,) = [found for found in judge.judge(run, [drive, test])["drives"] if found["drive"] == "b"]
    assert says in " ".join(judged["tests"][0]["reasons"]) and (judged["tests"][0]["verdict"] == "invalid") == bool(
        says
    )


def test_what_nobody_counted_of_an_array_is_unknown_and_said():
    assert prepared.unknown({"array": MADE}) == []
    (said,) = prepared.unknown({"array": with_members({"bytes_written": None}, {})})
    assert said == "it is unknown whether the array wrote to a: nobody counted the writes"
