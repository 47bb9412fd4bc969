# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Records as Python has them, and as JSON has them."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base


@dataclasses.dataclass(frozen=True)
class Part:
    size_bytes: base.Count
    message: base.OrMissing[str] = None
    resumed: base.OrMissing[bool] = None


@dataclasses.dataclass(frozen=True)
class Whole:
    name: base.Label
    part: Part | None
    scores: dict[str, float | None]
    parts: list[Part] = dataclasses.field(default_factory=list)
    note: str | float | None = None


RECORDS = [
    (Whole("a", None, {}), {"name": "a", "part": None, "scores": {}, "parts": [], "note": None}),
    (
        Whole("a", Part(1), {"x": None, "y": 1.5}, [Part(2, "m", True)], 7),
        {
            "name": "a",
            "part": {"size_bytes": 1},
            "scores": {"x": None, "y": 1.5},
            "parts": [{"size_bytes": 2, "message": "m", "resumed": True}],
            "note": 7,
        },
    ),
]


@pytest.mark.parametrize("record, data", RECORDS)
def test_a_record_is_read_as_it_is_written(record, data):
    """A key that is OrMissing is not there for None; any other is, if only with a null."""
    assert base.to_json(record) == data
    assert base.parse(Whole, {**data, "of_a_later_version": 1}) == record


@pytest.mark.parametrize(
    "change, says",
    [
        ({"part": {}}, "part.size_bytes is missing"),
        ({"part": {"size_bytes": True}}, "part.size_bytes is bool"),
        ({"part": []}, "part is not a mapping"),
        ({"parts": [{"size_bytes": 1}, {"size_bytes": "1"}]}, "parts[1].size_bytes is str"),
        ({"scores": {"x": "1"}}, "scores.x is str"),
        ({"note": []}, "note is list"),
    ],
)
def test_what_is_no_such_record_is_named(change, says):
    assert base.problem(Whole, {**RECORDS[0][1], **change}) == says
