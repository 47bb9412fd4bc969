# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The JSON object in what a tool printed, for all tools.

Forgiven: control characters that a tool left raw in a text (a drive's name has any bytes), words before and after the
object. Not forgiven: an object that breaks off, and several of them, as nothing says which one counts.
"""

from __future__ import annotations

import json
import re
import typing as t

Json = t.Mapping[str, t.Any]

# An object within another, which may have broken off, is indented or stands behind its key.
_AT_LINE_START = re.compile(r"^\{", re.MULTILINE)
_DECODER = json.JSONDecoder(strict=False)
_SHOWN = 160


class NotOneObject(ValueError):
    """There is no such object, or more than one; the message says which, and what was printed."""


def read(text: str, key: str = "") -> dict[str, t.Any]:
    """Return the only object in a text that has this key, or the only object without one. Raises NotOneObject."""
    found: list[dict[str, t.Any]] = []
    broken, start = "", text.find("{")
    while start >= 0:
        try:
            value, end = _DECODER.raw_decode(text, start)
        except ValueError as error:
            broken, end = broken or f"{error}", start + 1
        except RecursionError:
            broken, end = broken or "it is nested too deeply", start + 1
        else:
            found.extend([value] if not key or key in value else [])
        start = text.find("{", end) if found else _next_line(text, end)
    if len(found) == 1:
        return found[0]
    raise NotOneObject(_why(text, key, len(found), broken))


class Found(t.NamedTuple):
    """An object in a text. line: where it begins, counted from 1."""

    value: dict[str, t.Any]
    line: int


def read_all(text: str, key: str) -> list[Found]:
    """Return all objects in a text that have this key, in their order, whatever stands around them. Raises NotOneObject
    for one that breaks off, naming its line; the text may have none.
    """
    found: list[Found] = []
    start = text.find("{")
    while start >= 0:
        try:
            value, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            if start == 0 or text[start - 1] == "\n":
                line = text.count("\n", 0, start) + 1
                raise NotOneObject(f"line {line}: the JSON that begins here breaks off ({error})") from None
            start = _next_line(text, start + 1)
            continue
        if isinstance(value, dict) and key in value:
            found.append(Found(value, text.count("\n", 0, start) + 1))
        start = text.find("{", end)
    return found


def _next_line(text: str, start: int) -> int:
    match = _AT_LINE_START.search(text, start)
    return match.start() if match else -1


def _why(text: str, key: str, count: int, broken: str) -> str:
    shown = " ".join(text.split())[:_SHOWN] or "nothing"
    if count:
        return f"{count} JSON objects: {shown}"
    if broken:
        return f"broken JSON ({broken}): {shown}"
    return f"no JSON{f' with {key}' if key else ''}: {shown}"
