# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host was asked and answered, on its way from examine to preflight: as one text, since Ansible copies each
value of a result several times and looks at each again for templates, most of it in the one process that all hosts
share. Pure.
"""

from __future__ import annotations

import json
import typing as t

from ...module_utils.records.base import Json
from ..common.task_results import NOT_PRINTED

SEEN = "seen"
# What tasks read of a host's result by themselves.
_BESIDE = ("changed", "failures", "engines")


def packed(result: Json) -> Json:
    """Return the result of examine with its drives' names, and all else as a text."""
    try:
        text = json.dumps(result)
    except TypeError:  # YAML made a date of a variable, which preflight refuses as it is
        return result
    names = {"drive_names": [found["drive"] for found in result["drives"]]} if "drives" in result else {}
    return {**{key: result[key] for key in _BESIDE if key in result}, **names, NOT_PRINTED: {SEEN: text}}


def unpacked(registered: t.Mapping[str, t.Any]) -> Json:
    """Return such a result as it was before `packed`; another one as it is."""
    return {**registered, **json.loads((registered.get(NOT_PRINTED) or {}).get(SEEN) or "{}")}
