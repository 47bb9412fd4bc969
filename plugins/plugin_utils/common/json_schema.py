# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The JSON Schema of a record's dataclass: what the gate holds a host's data to, and what docs/ print. Pure."""

from __future__ import annotations

import dataclasses
import functools
import typing as t

from ...module_utils.records import events
from ...module_utils.records.base import HOST_ONLY, NEVER_NULL, UNIONS, Limits

Schema = dict[str, t.Any]
_TYPES: dict[t.Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
# By the names of Limits' fields.
_KEYWORDS = {
    "minimum": "minimum",
    "maximum": "maximum",
    "exclusive_minimum": "exclusiveMinimum",
    "min_length": "minLength",
    "max_length": "maxLength",
    "pattern": "pattern",
    "min_items": "minItems",
    "max_items": "maxItems",
    "min_properties": "minProperties",
    "max_properties": "maxProperties",
}


@functools.cache
def of(kind: t.Any, whole: bool = False) -> Schema:
    """Return the schema of a type: of a dataclass, of what the controller takes of it, or of the whole, with what its
    JSON_SCHEMA adds.

    All callers share it: do not change it.
    """
    if not dataclasses.is_dataclass(kind):
        return _of_hint(kind, whole)
    hints = t.get_type_hints(kind, include_extras=True)
    fields = [one for one in dataclasses.fields(kind) if whole or one.metadata != HOST_ONLY]
    required = [one.name for one in fields if one.default is one.default_factory is dataclasses.MISSING]
    return {
        "type": "object",
        "required": required,
        "properties": {one.name: _of_hint(hints[one.name], whole) for one in fields},
        **getattr(kind, "JSON_SCHEMA", {}),
    }


def of_event(event: str) -> Schema:
    """Return the schema of a journal's line with this event."""
    line, fields = of(events.Line), of(events.EVENTS[event])
    return {
        "type": "object",
        "required": [*line["required"], *fields["required"]],
        "properties": {**line["properties"], **fields["properties"], "event": {"const": event}},
    }


def _of_hint(hint: t.Any, whole: bool, never_null: bool = False) -> Schema:
    origin, arguments = t.get_origin(hint), t.get_args(hint)
    if origin is t.Annotated:
        return _limited(_of_hint(arguments[0], whole, NEVER_NULL in arguments), arguments[1:])
    if origin in UNIONS:
        return _union([_of_hint(one, whole) for one in arguments if not (never_null and one is type(None))])
    if origin is t.Literal:
        return {"enum": list(arguments)}
    if origin is list:
        return {"type": "array", "items": _of_hint(arguments[0], whole)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _of_hint(arguments[1], whole)}
    if dataclasses.is_dataclass(hint):
        return of(t.cast(t.Hashable, hint), whole)
    return {} if hint is t.Any else {"type": _TYPES[hint]}


def _limited(schema: Schema, limits: t.Iterable[t.Any]) -> Schema:
    for one in limits:
        if isinstance(one, Limits):
            given = {_KEYWORDS[name]: getattr(one, name) for name in _KEYWORDS if getattr(one, name) is not None}
            names = {"propertyNames": {"pattern": one.property_names}} if one.property_names else {}
            known = {**of(one.known), "type": schema["type"]} if one.known else {}
            schema = {**schema, **given, **names, **known, **({"format": "name"} if one.is_name else {})}
    return schema


def _union(parts: t.Sequence[Schema]) -> Schema:
    """Return one schema for all: by their types where they say no more than these, and a null beside anything."""
    if len(parts) == 1:
        return parts[0]
    if all(set(part) == {"type"} for part in parts):
        return {"type": [part["type"] for part in parts]}
    others = [part for part in parts if part != {"type": "null"}]
    if len(others) == 1 and isinstance(others[0].get("type"), str):
        return {**others[0], "type": [others[0]["type"], "null"]}
    if len(others) == 1 and "enum" in others[0]:
        return {"enum": [*others[0]["enum"], None]}
    return {"anyOf": list(parts)}
