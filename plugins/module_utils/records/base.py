# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the records of this collection are made of: types with limits, and reading and writing them as JSON.

A record is a frozen dataclass. A key without a default is required; what a reader does not know it leaves out, as later
versions may add keys. Limits hold for what comes from a host: the controller makes a JSON Schema of the same classes
(plugin_utils/common/json_schema.py). A host that reads its own files checks their types alone.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
import types
import typing as t

# "as Annotated" exports it, for mypy; ruff and pylint would have neither, and vermin does not see the version's guard.
if sys.version_info >= (3, 9):
    from typing import Annotated as Annotated  # noqa: ICN003  # novm  # pylint: disable=useless-import-alias
else:  # without it, the limits of a type are nobody's on such a host

    class Annotated:
        """Stand in for typing.Annotated, which Python 3.8 lacks."""

        def __class_getitem__(cls, parameters: t.Any) -> t.Any:
            return parameters[0]


@dataclasses.dataclass(frozen=True)
class Limits:
    """Limits of a value, by the keywords of JSON Schema. is_name: printable as it stands, not made so."""

    minimum: t.Optional[float] = None
    maximum: t.Optional[float] = None
    exclusive_minimum: t.Optional[float] = None
    min_length: t.Optional[int] = None
    max_length: t.Optional[int] = None
    pattern: t.Optional[str] = None
    min_items: t.Optional[int] = None
    max_items: t.Optional[int] = None
    min_properties: t.Optional[int] = None
    max_properties: t.Optional[int] = None
    property_names: t.Optional[str] = None
    # Of a mapping that may have other keys too: the dataclass of those that are known.
    known: t.Optional[t.Any] = None
    is_name: bool = False


Count = Annotated[int, Limits(minimum=0)]
Size = Annotated[int, Limits(minimum=0, maximum=9223372036854775807)]
Positive = Annotated[int, Limits(minimum=1)]
NotNegative = Annotated[float, Limits(minimum=0)]
Number = Annotated[int, Limits(minimum=1, maximum=2147483647)]
Share = Annotated[float, Limits(minimum=0, maximum=1000000)]
Time = Annotated[
    str,
    Limits(
        pattern=r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{3}Z$"
    ),
]
# With any fraction of a second, or none, as run.json has it.
AnyTime = Annotated[
    str,
    Limits(
        pattern=r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?Z$"
    ),
]
RunId = Annotated[str, Limits(pattern="^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
HostName = Annotated[str, Limits(min_length=1, max_length=255, is_name=True)]
Text = Annotated[str, Limits(min_length=1)]
# A text of a host of which nothing is known but that it is short.
Word = t.Optional[Annotated[str, Limits(max_length=4096)]]
# The name of a check, a refusal, an outcome, a method.
Code = Annotated[str, Limits(pattern="^[a-z0-9][a-z0-9_]{0,63}$")]
Label = Annotated[str, Limits(min_length=1, max_length=4096, is_name=True)]
TestName = Annotated[str, Limits(pattern="^[a-z0-9][a-z0-9_-]{0,40}$")]
CellId = Annotated[str, Limits(pattern="^[A-Za-z0-9][A-Za-z0-9._-]{0,119}$")]
Json = t.Dict[str, t.Any]
Scalar = t.Union[str, float, bool, None]
# For JSON_SCHEMA of a record whose further keys are scalars.
SCALARS_BESIDE: Json = {"additionalProperties": {"type": ["string", "number", "boolean", "null"]}}
Kind = t.TypeVar("Kind")
# Of a key that may be missing, and is never null where it is there.
NEVER_NULL = "never null"
OrMissing = Annotated[t.Optional[Kind], NEVER_NULL]
# Optional[str], and of newer versions str | None.
UNIONS = (t.Union, getattr(types, "UnionType", t.Union))


class WrongShape(ValueError):
    """Data that is no such record; the message names the key."""


def parse(kind: t.Type[Kind], data: t.Any, where: str = "") -> Kind:
    """Make a record of parsed JSON. Raises WrongShape."""
    if not isinstance(data, dict):
        raise WrongShape(f"{where or 'it'} is not a mapping")
    values = {}
    for field, hint in _fields(t.cast(t.Hashable, kind)):
        name = f"{where}.{field.name}" if where else field.name
        if field.name in data:
            values[field.name] = _value(hint, data[field.name], name)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise WrongShape(f"{name} is missing")
    return kind(**values)


def problem(kind: t.Any, data: t.Any) -> str:
    """Return what keeps parsed JSON from being such a record; "" when nothing does."""
    try:
        parse(kind, data)
    except WrongShape as error:
        return str(error)
    return ""


@functools.lru_cache(maxsize=None)
def _fields(kind: t.Any) -> t.Tuple[t.Tuple[t.Any, t.Any], ...]:
    hints = t.get_type_hints(kind)
    return tuple((field, hints[field.name]) for field in dataclasses.fields(kind))


def _value(hint: t.Any, value: t.Any, name: str) -> t.Any:
    origin, arguments = t.get_origin(hint), t.get_args(hint)
    if origin in UNIONS:
        if value is None and type(None) in arguments:
            return None
        kinds = [one for one in arguments if one is not type(None)]
        return _value(kinds[0], value, name) if len(kinds) == 1 else _scalar(kinds, value, name)
    if origin is t.Literal:
        if value in arguments:
            return value
        raise WrongShape(f"{name} is {value!r}")
    if origin is list:
        if not isinstance(value, list):
            raise WrongShape(f"{name} is not a list")
        return [_value(arguments[0], item, f"{name}[{index}]") for index, item in enumerate(value)]
    if origin is dict:
        if not isinstance(value, dict):
            raise WrongShape(f"{name} is not a mapping")
        return {key: _value(arguments[1], item, f"{name}.{key}") for key, item in value.items()}
    if dataclasses.is_dataclass(hint):
        return parse(t.cast(t.Any, hint), value, name)
    return value if hint is t.Any else _scalar([hint], value, name)


def _scalar(kinds: t.Sequence[t.Any], value: t.Any, name: str) -> t.Any:
    """Return the value if it is of one of these; True is an int for Python, not for us."""
    wanted = tuple(kinds) + ((int,) if float in kinds else ())
    if isinstance(value, wanted) and (not isinstance(value, bool) or bool in kinds):
        return value
    raise WrongShape(f"{name} is {type(value).__name__}")


@functools.lru_cache(maxsize=None)
def _written(kind: t.Any) -> t.Tuple[t.Tuple[str, bool], ...]:
    """Return the fields of a record, and whether each is OrMissing, which Python 3.8 tells by its text alone."""
    return tuple((field.name, "OrMissing[" in str(field.type)) for field in dataclasses.fields(kind))


def to_json(record: t.Any) -> t.Any:
    """Return a record as JSON has it. A key that is OrMissing is not there for None."""
    if dataclasses.is_dataclass(record):
        values = [
            (name, may_miss, getattr(record, name)) for name, may_miss in _written(t.cast(t.Hashable, type(record)))
        ]
        return {name: to_json(value) for name, may_miss, value in values if not (may_miss and value is None)}
    if isinstance(record, (list, tuple)):
        return [to_json(item) for item in record]
    if isinstance(record, dict):
        return {key: to_json(item) for key, item in record.items()}
    return record
