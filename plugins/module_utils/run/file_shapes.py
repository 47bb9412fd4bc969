# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The shape that the files of a run must have for anybody to go by them: a table a file, what is missing or of another
type is damage.

The journal's lines are records/events.py. Formal schemas of the other files are in plugin_utils/common/schemas; this
is what the code relies on, without a library.
"""

from __future__ import annotations

import typing as t

from ..records import base, events
from . import states

# A key that ends with ? may be missing. A value is a type, a tuple of types, the set of what it may be, a list with the
# fields of each of its items, or a mapping of further fields.
Fields = t.Mapping[str, t.Any]

_NO_VALUE = type(None)

STATUS: Fields = {
    "run_id": str,
    "run_name": str,
    "host": str,
    "boot_id": (str, _NO_VALUE),
    "pid": int,
    "pid_start": (str, _NO_VALUE),
    "state": {*states.LIVE_STATES, *states.FINAL_STATES},
    "updated": str,
    "drives": [
        {
            "drive": str,
            "path": (str, _NO_VALUE),
            "phase": str,
            "outcome": {None, "complete", "refused", "error", "interrupted"},
            "message": str,
        }
    ],
}
PLAN: Fields = {
    "run": {"id": str, "name": str},
    "host?": str,
    "boot_id?": str,
    "engine_version?": str,
    "parallel_drives?": int,
    "together?": {"repeats": int, "cells": [{"id": str}]},
    "fio?": {"path": str},
    "tune?": {},
    "drives": [{"drive": str, "selector?": {}, "expected?": {}, "tests": [{"name": str, "cells?": [{"id": str}]}]}],
}
TUNING: Fields = {
    "boot_id": str,
    "settings": [{"kind": str, "name": str, "path": str, "before": str, "wanted": (str, _NO_VALUE)}],
}
ARRAY: Fields = {"boot_id": (str, _NO_VALUE), "name": str, "members": list}


def problem(data: t.Any, fields: Fields, where: str = "") -> str:
    """Return what is wrong with the shape of `data`: "" when nothing is, else one short sentence."""
    if not isinstance(data, t.Mapping):
        return "{0} is not a mapping".format(where or "it")
    for field, wanted in fields.items():
        key = field.rstrip("?")
        name = f"{where}.{key}" if where else key
        if key not in data and field != key:
            continue
        if key not in data:
            return f"{name} is missing"
        found = _value_problem(data[key], wanted, name)
        if found:
            return found
    return ""


def _value_problem(value: t.Any, wanted: t.Any, name: str) -> str:
    if isinstance(wanted, t.Mapping):
        return problem(value, wanted, name)
    if isinstance(wanted, list):
        if not isinstance(value, list):
            return f"{name} is not a list"
        each = (problem(item, wanted[0], f"{name}[{index}]") for index, item in enumerate(value))
        return next((text for text in each if text), "")
    if isinstance(wanted, set):
        return "" if isinstance(value, (str, _NO_VALUE)) and value in wanted else f"{name} is {value!r}"
    # True is an int for Python, not for us.
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        return f"{name} is {type(value).__name__}"
    return ""


def record_problem(record: t.Any) -> str:
    """Return the same for a record of a journal."""
    try:
        line = base.parse(events.Line, record)
        if line.event in events.EVENTS:
            base.parse(events.EVENTS[line.event], record)
    except base.WrongShape as error:
        return str(error)
    return ""
