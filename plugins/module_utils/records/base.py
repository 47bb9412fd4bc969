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
# Argument lists of programs.
Commands = Annotated[t.List[Annotated[t.List[str], Limits(min_items=1, max_items=1000)]], Limits(max_items=1000)]
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


_Reader = t.Callable[[t.Any], t.Any]


# Metadata of a field that the controller does not take of what a host wrote.
HOST_ONLY = {"host_only": True}


class WrongShape(ValueError):
    """Data that is no such record; the message names the key. problem, where: its parts."""

    def __init__(self, problem: str, where: str = "") -> None:
        super().__init__(f"{where or 'it'} {problem}")
        self.problem, self.where = problem, where

    def within(self, place: str) -> WrongShape:
        """Return it as seen from around: place is a key, or [an index]."""
        separator = "." if self.where and not self.where.startswith("[") else ""
        return WrongShape(self.problem, f"{place}{separator}{self.where}")


def parse(kind: t.Type[Kind], data: t.Any) -> Kind:
    """Make a record of parsed JSON. Raises WrongShape."""
    record: Kind = _reader(t.cast(t.Hashable, kind))(data)
    return record


def prepare(*kinds: t.Any) -> None:
    """Find now what `parse` needs for these records, so that no process that is forked later has to."""
    for kind in kinds:
        _reader(kind)


def problem(kind: t.Any, data: t.Any) -> str:
    """Return what keeps parsed JSON from being such a record; "" when nothing does."""
    try:
        parse(kind, data)
    except WrongShape as error:
        return str(error)
    return ""


@functools.lru_cache(maxsize=None)
def _reader(hint: t.Any) -> _Reader:
    """Return what makes a value of a type, or raises WrongShape. To find it takes far longer than to call it."""
    origin, arguments = t.get_origin(hint), t.get_args(hint)
    if dataclasses.is_dataclass(hint):
        return _of_record(hint)
    if origin in UNIONS:
        kinds = [one for one in arguments if one is not type(None)]
        read = _reader(kinds[0]) if len(kinds) == 1 else _of_scalar(kinds)
        return _or_null(read) if type(None) in arguments else read
    if origin is t.Literal:
        return _of_words(arguments)
    if origin is list:
        return _of_list(_reader(arguments[0]))
    if origin is dict:
        return _of_mapping(_reader(arguments[1]))
    return _unread if hint is t.Any else _of_scalar([hint])


def _of_record(kind: t.Any) -> _Reader:
    hints = t.get_type_hints(kind)
    fields = [
        (field.name, _reader(hints[field.name]), field.default is field.default_factory is dataclasses.MISSING)
        for field in dataclasses.fields(kind)
    ]

    def read(data: t.Any) -> t.Any:
        if not isinstance(data, dict):
            raise WrongShape("is not a mapping")
        values = {}
        for name, read_field, is_required in fields:
            if name in data:
                try:
                    values[name] = read_field(data[name])
                except WrongShape as error:
                    raise error.within(name) from None
            elif is_required:
                raise WrongShape("is missing", name)
        return kind(**values)

    return read


def _of_list(read_item: _Reader) -> _Reader:
    def read(data: t.Any) -> t.Any:
        if not isinstance(data, list):
            raise WrongShape("is not a list")
        found: t.List[t.Any] = []
        try:
            for item in data:
                found.append(read_item(item))
        except WrongShape as error:
            raise error.within(f"[{len(found)}]") from None
        return found

    return read


def _of_mapping(read_item: _Reader) -> _Reader:
    def read(data: t.Any) -> t.Any:
        if not isinstance(data, dict):
            raise WrongShape("is not a mapping")
        found = {}
        for key, item in data.items():
            try:
                found[key] = read_item(item)
            except WrongShape as error:
                raise error.within(str(key)) from None
        return found

    return read


def _or_null(read: _Reader) -> _Reader:
    return lambda data: None if data is None else read(data)


def _of_words(words: t.Sequence[t.Any]) -> _Reader:
    def read(data: t.Any) -> t.Any:
        if data in words:
            return data
        raise WrongShape(f"is {data!r}")

    return read


def _of_scalar(kinds: t.Sequence[t.Any]) -> _Reader:
    """Return what takes a value of one of these; True is an int for Python, not for us."""
    wanted = tuple(kinds) + ((int,) if float in kinds else ())
    takes_bool = bool in kinds

    def read(data: t.Any) -> t.Any:
        if isinstance(data, wanted) and (takes_bool or not isinstance(data, bool)):
            return data
        raise WrongShape(f"is {type(data).__name__}")

    return read


def _unread(data: t.Any) -> t.Any:
    return data


@functools.lru_cache(maxsize=None)
def _written(kind: t.Any) -> t.Tuple[t.Tuple[str, t.Any, t.Any], ...]:
    """Return the fields of a record, and of each with what value its key is left out: as a rule, and of sparse JSON.

    None of OrMissing, which Python 3.8 tells by its text alone; MISSING is no value. A record may be whole in both.
    """
    fields = dataclasses.fields(kind)
    rules = [None if "OrMissing[" in str(field.type) else dataclasses.MISSING for field in fields]
    is_whole = getattr(kind, "IS_WHOLE", False)
    return tuple((field.name, rule, rule if is_whole else field.default) for field, rule in zip(fields, rules))


def to_json(record: t.Any) -> t.Any:
    """Return a record as JSON has it. A key that is OrMissing is not there for None."""
    return _json(record, False)


def sparse_json(record: t.Any) -> t.Any:
    """Return a record as JSON has it, without the keys that have their default."""
    return _json(record, True)


def _json(record: t.Any, is_sparse: bool) -> t.Any:
    if record is None or isinstance(record, (str, int, float)):
        return record
    if dataclasses.is_dataclass(record):
        fields = _written(t.cast(t.Hashable, type(record)))
        values = [(name, left_out[is_sparse], getattr(record, name)) for name, *left_out in fields]
        return {name: _json(value, is_sparse) for name, without, value in values if not _same(value, without)}
    if isinstance(record, (list, tuple)):
        return [_json(item, is_sparse) for item in record]
    if isinstance(record, dict):
        return {key: _json(item, is_sparse) for key, item in record.items()}
    return record


def _same(value: t.Any, other: t.Any) -> bool:
    return other is not dataclasses.MISSING and bool(value == other)
