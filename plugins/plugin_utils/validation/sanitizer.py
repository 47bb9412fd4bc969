# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a value from outside has to look like to pass: a JSON schema, and rules that hold for all of them. Pure.

Beside the schema: texts are printable (what is not is shown as an escape) and cut to their `maxLength`; one with
`"format": "name"` has to be printable as it stands; numbers are finite and at most 2^64; keys that the schema does not
know are dropped and counted; an object without
`properties` may have any.
"""

from __future__ import annotations

import functools
import json
import math
import sys
import typing as t

from ..common import json_schema
from ..common import schema as schemas
from . import printable

try:
    import jsonschema_rs
except ImportError:
    jsonschema_rs = None

MOST_DEPTH = 24
MOST_VALUES = 2_000_000
MOST_MARKS = 2 * MOST_VALUES
MOST_ITEMS = 50_000
MOST_NUMBER = 2**64
MOST_KEY = 256
MOST_TOLD = 5
# Keywords under which further schemas of the same value stand.
_BESIDE = ("allOf", "anyOf", "oneOf")

Schema = dict[str, t.Any]


class Unfit(Exception):
    """A value that does not pass; `problems`: why, as lines of "path: message"."""

    def __init__(self, problems: t.Sequence[str]) -> None:
        self.problems = [printable.line(problem, 300) for problem in problems]
        more = f"; and {len(self.problems) - MOST_TOLD} more" if len(self.problems) > MOST_TOLD else ""
        super().__init__("; ".join(self.problems[:MOST_TOLD]) + more)


class Passed(t.NamedTuple):
    """What passed, and how many unknown keys were left out of it."""

    value: t.Any
    dropped: int


class Shape:
    """A JSON schema, made ready to let many values pass."""

    def __init__(self, schema: Schema) -> None:
        if jsonschema_rs is None:
            command = f"{sys.executable} -m pip install jsonschema-rs"
            raise ImportError(f"the controller's Python lacks jsonschema-rs; run: {command}")
        # Without references, which would be looked up for each value.
        whole = _expanded(schema, schema.get("$defs", {}))
        self._tree = _tree(whole)
        self._fits = jsonschema_rs.validator_for(whole).is_valid
        self._validator = functools.partial(schemas.validator, whole)

    def passed(self, value: t.Any, explained: bool = True, most_size: int | None = None) -> Passed:
        """Return the value as code behind the gate gets it. Raises Unfit. explained: with the reason, which takes
        hundreds of times as long to find. most_size: letters and values.
        """
        walk = _Walk()
        clean = walk.clean(value, self._tree, ())
        if walk.problems:
            raise Unfit(walk.problems)
        if most_size is not None and walk.size > most_size:
            raise Unfit([f"it holds {walk.size} characters and values; the limit is {most_size}"])
        if not self._fits(clean):
            why = schemas.explained(self._validator(), clean) if explained else []
            raise Unfit(why or ["it does not fit its schema"])
        return Passed(clean, walk.dropped)


@functools.cache
def shape_of_record(kind: t.Any) -> Shape:
    """Return the shape of a record's dataclass, or of another type that records are made of."""
    return Shape(json_schema.of(kind))


def decoded(content: str | bytes) -> t.Any:
    """JSON from outside. Raises Unfit: also for what is nested too deep for the parser, of too many values, and for
    texts in no encoding.
    """
    # Before it is parsed: each empty object of two letters takes 64 bytes of memory. Texts may have a comma too.
    marks: t.Any = b",[{" if isinstance(content, bytes) else ",[{"
    if len(content) > MOST_MARKS and sum(content.count(marks[place : place + 1]) for place in range(3)) > MOST_MARKS:
        raise Unfit([f"it holds more than {MOST_VALUES} values"])
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise Unfit([f"it is not JSON: {error}"]) from None


class _Node(t.NamedTuple):
    """How to clean a value: of an object `fields` (None: any key) and `others`, of a list `items`."""

    fields: dict[str, _Node] | None
    others: _Node | None
    items: _Node | None
    is_name: bool
    is_whole: bool
    most: int
    most_items: int


_ANY = _Node(None, None, None, False, False, printable.MOST, MOST_ITEMS)


def _expanded(schema: t.Any, defs: Schema) -> t.Any:
    """Return a schema with what its references name in their place; ours never name themselves."""
    if isinstance(schema, list):
        return [_expanded(item, defs) for item in schema]
    if not isinstance(schema, dict):
        return schema
    target = _expanded(defs[schema["$ref"].rsplit("/", 1)[1]], defs) if "$ref" in schema else {}
    return {**target, **{key: _expanded(item, defs) for key, item in schema.items() if key not in ("$ref", "$defs")}}


def _tree(schema: t.Any) -> _Node:
    """Return every key and item that any branch of the schema knows."""
    parts = list(_branches(schema))
    fields: dict[str, list[Schema]] = {}
    for part in parts:
        for key, below in part.get("properties", {}).items():
            fields.setdefault(key, []).append(below)
    others = next(
        (part["additionalProperties"] for part in parts if isinstance(part.get("additionalProperties"), dict)), None
    )
    items = next((part["items"] for part in parts if isinstance(part.get("items"), dict)), None)
    kinds = {kind for part in parts for kind in schemas.kinds(part)}
    return _Node(
        fields={key: _tree({"allOf": below}) for key, below in fields.items()}
        if fields or others is not None
        else None,
        others=_tree(others) if others is not None else None,
        items=_tree(items) if items is not None else None,
        is_name=any(
            part.get("format") == "name" or "pattern" in part or "enum" in part or "const" in part for part in parts
        ),
        is_whole="integer" in kinds and "number" not in kinds,
        most=max([part["maxLength"] for part in parts if "maxLength" in part], default=printable.MOST),
        most_items=max([part["maxItems"] for part in parts if part.get("maxItems")], default=MOST_ITEMS),
    )


def _branches(schema: t.Any) -> t.Iterator[Schema]:
    """Yield the schema, and all that stand beside it for the same value."""
    if not isinstance(schema, dict):
        return
    yield schema
    for keyword in _BESIDE:
        for branch in schema.get(keyword, []):
            yield from _branches(branch)
    for keyword in ("then", "else"):
        yield from _branches(schema.get(keyword))


class _Walk:
    """One value on its way through."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.dropped = 0
        self.size = 0
        self._values = 0

    def _refuse(self, path: tuple[t.Any, ...], message: str) -> None:
        if len(self.problems) <= MOST_TOLD:
            where = schemas.join_path(path)
            self.problems.append(f"{where}: {message}" if where else message)

    def clean(self, value: t.Any, node: _Node, path: tuple[t.Any, ...]) -> t.Any:
        """Return the value without what may not pass; what can't be cleaned is a problem."""
        self._values += 1
        self.size += 1
        if self._values > MOST_VALUES or len(path) > MOST_DEPTH:
            self._refuse(path[:4], "it is too large" if len(path) <= MOST_DEPTH else "it is nested too deep")
            return None
        if value is None or isinstance(value, bool):
            return bool(value) if value is not None else None
        if isinstance(value, str):
            return self._text(str.__str__(value), node, path)
        if isinstance(value, (int, float)):
            return self._number(value, node, path)
        if isinstance(value, dict):
            return self._object(value, node, path)
        if isinstance(value, (list, tuple)):
            if len(value) > node.most_items:
                self._refuse(path, f"it is a list of {len(value)} items; the limit is {node.most_items}")
                return []
            below = node.items or _ANY
            return [self.clean(item, below, (*path, index)) for index, item in enumerate(value)]
        if isinstance(value, t.Mapping):  # last: to ask takes as long as to clean a number
            return self._object(value, node, path)
        self._refuse(path, f"{type(value).__name__} is not JSON")
        return None

    def _text(self, value: str, node: _Node, path: tuple[t.Any, ...]) -> str:
        if not node.is_name:
            shown = printable.line(value, node.most)
            self.size += len(shown)
            return shown
        self.size += len(value)
        if not printable.is_printable(value):
            self._refuse(path, f"{printable.line(value, 80)!r} holds characters that cannot be printed")
        elif len(value) > node.most:
            self._refuse(path, f"it is a name of {len(value)} characters; the limit is {node.most}")
        return value

    def _number(self, value: int | float, node: _Node, path: tuple[t.Any, ...]) -> int | float:
        if not -MOST_NUMBER <= value <= MOST_NUMBER:  # also what is no number
            self._refuse(
                path,
                "it is a number that is not finite"
                if isinstance(value, float) and not math.isfinite(value)
                else "it is a number out of range",
            )
            return 0
        if isinstance(value, float):
            return int(value) if node.is_whole and value.is_integer() else float(value)
        return int(value)

    def _object(self, value: t.Mapping[t.Any, t.Any], node: _Node, path: tuple[t.Any, ...]) -> dict[str, t.Any]:
        found: dict[str, t.Any] = {}
        if len(value) > node.most_items:
            self._refuse(path, f"it is an object with {len(value)} keys; the limit is {node.most_items}")
            return found
        for key, item in value.items():
            # Not str(): a text that ansible-core 2.17 marked would stay one, which jsonschema-rs does not take.
            name = str.__str__(key) if isinstance(key, str) else str(key)
            below = node.fields.get(name) if node.fields else None
            if below is None:
                if node.fields is not None and node.others is None:
                    self.dropped += 1
                    continue
                if not printable.is_printable(name) or len(name) > MOST_KEY:
                    self._refuse(path, f"{printable.line(name, 80)!r} is not a valid key")
                    continue
                below = node.others or _ANY
            self.size += len(name)
            found[name] = self.clean(item, below, (*path, name))
        return found
