# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check data against a JSON Schema with messages for the person who wrote the YAML, and fill in the
schema's defaults.
"""

from __future__ import annotations

import copy
import datetime
import difflib
import functools
import json
import re
import typing as t
from pathlib import Path

try:
    import jsonschema
except ImportError:  # preflight says how to install it
    jsonschema = None

COLLECTION = Path(__file__).resolve().parents[3]
SCHEMA_DIR = Path(__file__).resolve().parent / "schemas"
Schema = dict[str, t.Any]
# What YAML authors call JSON Schema's types.
YAML_TYPES = {
    "object": "a mapping",
    "array": "a list",
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}


@functools.cache
def load(name: str) -> Schema:
    """Return the schema of schemas/<name>.schema.json beside this file. All callers share it: do not change it."""
    schema: Schema = json.loads((SCHEMA_DIR / f"{name}.schema.json").read_text(encoding="utf-8"))
    return schema


def plain(value: t.Any) -> t.Any:
    """Ansible's tagged texts, numbers and lazy containers as what they stand for."""
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, datetime.date):  # as YAML reads 2026-11-28, and as JSON gets it
        return value.isoformat()
    # Last: to ask whether something is any mapping takes as long as to copy it.
    if isinstance(value, (dict, t.Mapping)):
        return {plain(key): plain(item) for key, item in value.items()}
    return value


def problems(data: t.Any, schema: Schema, partial: bool = False) -> list[str]:
    """Return what is wrong with `data`, as "key.path: message"; in the order of the data. `partial`: keys may be
    missing.
    """
    return explained(validator(_without_required(schema) if partial else schema), data)


def validator(schema: Schema) -> t.Any:
    """Return a validator for many values. A `$` at the end of a pattern means the end, as in JSON Schema, and not also
    before a newline, as in Python.
    """
    return _strict()(schema)


@functools.cache
def _strict() -> t.Any:
    return jsonschema.validators.extend(jsonschema.Draft202012Validator, {"pattern": _pattern})


def explained(checker: t.Any, data: t.Any) -> list[str]:
    """Return what a validator finds wrong, as `problems` does."""
    errors = sorted(checker.iter_errors(data), key=lambda error: [str(part) for part in error.absolute_path])
    return [line for error in errors for line in _explain(error)]


def kinds(schema: Schema) -> list[str]:
    """Return the types that a schema allows, [] where it does not say."""
    return _types(schema)


def with_defaults(data: t.Any, schema: Schema, root: Schema | None = None) -> t.Any:
    """Return a copy of valid `data` with the schema's defaults; where an object may be a boolean, true is {}
    and false None.
    """
    root = root or schema
    schema = _resolved(schema, root)
    if isinstance(data, bool) and "object" in _types(schema):
        data = {} if data else None
    if isinstance(data, dict):
        properties = schema.get("properties", {})
        missing = {
            key: copy.deepcopy(_resolved(part, root)["default"])
            for key, part in properties.items()
            if "default" in _resolved(part, root)
        }
        filled = {**missing, **data}
        return {key: with_defaults(item, properties.get(key, {}), root) for key, item in filled.items()}
    if isinstance(data, list):
        return [with_defaults(item, schema.get("items", {}), root) for item in data]
    # 5.0 is an integer for JSON Schema, as a template makes one of 10 / 2, and none for what counts with it.
    if isinstance(data, float) and data.is_integer() and "integer" in _types(schema):
        return int(data)
    return data


def suggestion(word: str, known: t.Iterable[str]) -> str:
    """Return the question that a misspelt word gets: "; did you mean x?", or nothing."""
    close = closest(word, known)
    return f"; did you mean {close}?" if close else ""


def closest(word: str, known: t.Iterable[str]) -> str:
    """Return the known word that a misspelt one is most like; "": like none."""
    return next(iter(difflib.get_close_matches(str(word), list(known), n=1)), "")


def join_path(parts: t.Iterable[t.Any]) -> str:
    """Return a key path as people write it: steady_state.tracked[0].metric."""
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


@functools.cache
def to_the_end(pattern: str) -> re.Pattern[str]:
    """Return a pattern of JSON Schema: there a `$` is the end, in Python also the place before a last newline."""
    return re.compile(re.sub(r"(?<!\\)\$$", r"\\Z", pattern))


def _pattern(_validator: t.Any, pattern: str, value: t.Any, _schema: Schema) -> t.Iterator[t.Any]:
    if isinstance(value, str) and not to_the_end(pattern).search(value):
        yield jsonschema.ValidationError(f"{value!r} does not match {pattern!r}")


def _types(schema: Schema) -> list[str]:
    kinds = schema.get("type", [])
    return [kinds] if isinstance(kinds, str) else kinds


def _resolved(schema: Schema, root: Schema) -> Schema:
    """Return the schema behind a "$ref" into "$defs"; what stands beside the reference wins."""
    if "$ref" not in schema:
        return schema
    target = root["$defs"][schema["$ref"].rsplit("/", 1)[1]]
    return {**_resolved(target, root), **{key: value for key, value in schema.items() if key != "$ref"}}


def _without_required(schema: t.Any) -> t.Any:
    if isinstance(schema, dict):
        return {
            key: _without_required(value)
            for key, value in schema.items()
            if not (key == "required" and isinstance(value, list))
        }
    return [_without_required(item) for item in schema] if isinstance(schema, list) else schema


def _explain(error: t.Any) -> list[str]:
    """One error of jsonschema as lines of "path: message"."""
    path, value, limit, schema = list(error.absolute_path), error.instance, error.validator_value, error.schema
    if error.validator == "additionalProperties":
        known = sorted(schema.get("properties", {}))
        unknown = [key for key in value if key not in known]
        return [
            _line(path + [key], f"unknown key{suggestion(key, known)} (known: {', '.join(known)})") for key in unknown
        ]
    if error.validator == "required":
        return [
            _line(path + [key], "is missing")
            for key in limit
            if key not in value and f"{key!r} is a required" in error.message
        ]
    if error.validator == "enum":
        words = [str(item) for item in limit if item is not None]
        return [_line(path, f"{value!r} must be one of: {', '.join(words)}{suggestion(value, words)}")]
    if error.validator == "type":
        wanted = " or ".join(YAML_TYPES[kind] for kind in ([limit] if isinstance(limit, str) else limit))
        return [_line(path, f"{_shown(value)} must be {wanted}")]
    if error.validator == "pattern":
        return [_line(path, f"{value!r} does not fit; {schema.get('description', f'it has to match {limit}')}")]
    bounds = {
        "minimum": "at least",
        "maximum": "at most",
        "exclusiveMinimum": "more than",
        "minItems": "a list of at least",
    }
    if error.validator in bounds:
        return [_line(path, f"{_shown(value)} must be {bounds[error.validator]} {limit}")]
    return [_line(path, error.message)]


def _shown(value: t.Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


def _line(path: t.Iterable[t.Any], message: str) -> str:
    where = join_path(path)
    return f"{where}: {message}" if where else message
