# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A JSON schema as one function that says yes or no: jsonschema takes a millisecond for a record, and a fleet's
journals have millions. Pure.

It knows the keywords that our schemas use, and refuses to compile any other. A unit test holds it to jsonschema's own
verdict.
"""

from __future__ import annotations

import typing as t

from ..common.schema import to_the_end

Schema = dict[str, t.Any]
Check = t.Callable[[t.Any], bool]

_KINDS: dict[str, t.Callable[[t.Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: (
        isinstance(value, int) and not isinstance(value, bool) or isinstance(value, float) and value.is_integer()
    ),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
}
_SAYS_NOTHING = {"$schema", "$id", "$defs", "title", "description", "default", "format", "then", "else", "examples"}


def check(schema: t.Any) -> Check:
    """Whether a value fits the schema, which has no references left. Raises NotImplementedError for a keyword that it
    does not know.
    """
    if isinstance(schema, bool):
        said = schema
        return lambda _value: said
    checks = []
    for keyword, wanted in schema.items():
        if keyword in _SAYS_NOTHING:
            continue
        if keyword not in _KEYWORDS:
            raise NotImplementedError(f"the gate does not know the keyword {keyword}")
        checks.append(_KEYWORDS[keyword](wanted, schema))
    return _every(checks)


# Loops, as all() and any() over a generator take twice as long, and this runs for every value of every record.
def _every(checks: list[Check]) -> Check:
    if len(checks) == 1:
        return checks[0]

    def fits(value: t.Any) -> bool:
        for each in checks:
            if not each(value):
                return False
        return True

    return fits


def _some(checks: list[Check]) -> Check:
    if len(checks) == 1:
        return checks[0]

    def fits(value: t.Any) -> bool:
        for each in checks:
            if each(value):
                return True
        return False

    return fits


def _same(one: t.Any, other: t.Any) -> bool:
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _type(wanted: str | list[str], _schema: Schema) -> Check:
    return _some([_KINDS[kind] for kind in ([wanted] if isinstance(wanted, str) else wanted)])


def _properties(wanted: Schema, _schema: Schema) -> Check:
    fields = {key: check(below) for key, below in wanted.items()}

    def fits(value: t.Any) -> bool:
        if isinstance(value, dict):
            for key, item in value.items():
                below = fields.get(key)
                if below is not None and not below(item):
                    return False
        return True

    return fits


def _others(wanted: t.Any, schema: Schema) -> Check:
    known, each = frozenset(schema.get("properties", ())), check(wanted)

    def fits(value: t.Any) -> bool:
        if isinstance(value, dict):
            for key, item in value.items():
                if key not in known and not each(item):
                    return False
        return True

    return fits


def _names(wanted: Schema, _schema: Schema) -> Check:
    each = check(wanted)
    return lambda value: not isinstance(value, dict) or all(each(key) for key in value)


def _items(wanted: Schema, _schema: Schema) -> Check:
    each = check(wanted)

    def fits(value: t.Any) -> bool:
        if isinstance(value, list):
            for item in value:
                if not each(item):
                    return False
        return True

    return fits


def _all(wanted: list[Schema], _schema: Schema) -> Check:
    return _every([check(part) for part in wanted])


def _any(wanted: list[Schema], _schema: Schema) -> Check:
    return _some([check(part) for part in wanted])


def _required(wanted: list[str], _schema: Schema) -> Check:
    names = frozenset(wanted)
    return lambda value: not isinstance(value, dict) or value.keys() >= names


def _enum(wanted: list[t.Any], _schema: Schema) -> Check:
    if all(isinstance(item, str) for item in wanted):
        known = frozenset(wanted)
        return lambda value: isinstance(value, str) and value in known
    return lambda value: any(_same(value, item) for item in wanted)


def _if(wanted: Schema, schema: Schema) -> Check:
    condition, then, otherwise = check(wanted), check(schema.get("then", True)), check(schema.get("else", True))
    return lambda value: then(value) if condition(value) else otherwise(value)


def _pattern(wanted: str, _schema: Schema) -> Check:
    search = to_the_end(wanted).search
    return lambda value: not isinstance(value, str) or search(value) is not None


def _bound(holds: t.Callable[[t.Any, t.Any], bool]) -> t.Callable[[t.Any, Schema], Check]:
    number = _KINDS["number"]
    return lambda wanted, _schema: lambda value: not number(value) or holds(value, wanted)


def _length(kind: type[t.Sized], holds: t.Callable[[int, int], bool]) -> t.Callable[[t.Any, Schema], Check]:
    return lambda wanted, _schema: lambda value: not isinstance(value, kind) or holds(len(value), wanted)


_KEYWORDS: dict[str, t.Callable[[t.Any, Schema], Check]] = {
    "type": _type,
    "properties": _properties,
    "additionalProperties": _others,
    "propertyNames": _names,
    "required": _required,
    "items": _items,
    "allOf": _all,
    "anyOf": _any,
    "if": _if,
    "const": lambda wanted, _schema: lambda value: _same(value, wanted),
    "enum": _enum,
    "pattern": _pattern,
    "minimum": _bound(lambda value, least: value >= least),
    "maximum": _bound(lambda value, most: value <= most),
    "exclusiveMinimum": _bound(lambda value, limit: value > limit),
    "minLength": _length(str, lambda size, least: size >= least),
    "maxLength": _length(str, lambda size, most: size <= most),
    "minItems": _length(list, lambda size, least: size >= least),
    "maxItems": _length(list, lambda size, most: size <= most),
    "minProperties": _length(dict, lambda size, least: size >= least),
    "maxProperties": _length(dict, lambda size, most: size <= most),
}
