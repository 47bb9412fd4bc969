# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""JSON Schemas of the records' types."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

import jsonschema
import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.records import events, plan, results, run_files
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.base import (
    Annotated,
    Json,
    Limits,
    OrMissing,
    Scalar,
)
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import json_schema
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import run_record


@dataclass(frozen=True)
class Known:
    name: str
    size: int | None = None

    JSON_SCHEMA: t.ClassVar[Json] = {"anyOf": [{"required": ["size"]}]}


@dataclass(frozen=True)
class MissingKeys:
    note: OrMissing[str] = None
    resumed: OrMissing[bool] = None
    seconds: float | None = None


@pytest.mark.parametrize(
    "kind, schema",
    [
        (t.Optional[str], {"type": ["string", "null"]}),
        (str | None, {"type": ["string", "null"]}),
        (Annotated[Scalar, Limits(max_length=9)], {"type": ["string", "number", "boolean", "null"], "maxLength": 9}),
        (t.Optional[t.Literal["a"]], {"enum": ["a", None]}),
        (t.List[t.Dict[str, int]], {"type": "array", "items": {"type": "object"}}),
    ],
)
def test_the_schema_of_a_type(kind, schema):
    found = json_schema.of(kind)
    assert {key: value for key, value in found.items() if key != "items"} == {
        key: value for key, value in schema.items() if key != "items"
    }


def test_a_key_that_may_be_missing_is_never_null():
    found = json_schema.of(MissingKeys)
    assert found["required"] == []
    assert [found["properties"][name]["type"] for name in ("note", "resumed", "seconds")] == [
        "string",
        "boolean",
        ["number", "null"],
    ]


def test_a_mapping_may_have_keys_beside_those_that_are_known():
    check = jsonschema.Draft202012Validator(json_schema.of(Annotated[t.Dict[str, Scalar], Limits(known=Known)]))
    assert check.is_valid({"name": "a", "size": 1, "other": True})
    for wrong in ({"size": 1}, {"name": "a"}, {"name": "a", "size": "1"}, {"name": "a", "size": 1, "other": []}):
        assert not check.is_valid(wrong)


@pytest.mark.parametrize(
    "kind",
    [
        *events.EVENTS.values(),
        *results.RECORDS.values(),
        run_files.Status,
        plan.CollectedPlan,
        run_record.RunRecord,
    ],
)
def test_our_records_have_valid_schemas(kind):
    jsonschema.Draft202012Validator.check_schema(json_schema.of(kind))
