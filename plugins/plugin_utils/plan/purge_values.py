# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The variables of the role purge: what each may be, and the purge of a test that they and its file give. Pure."""

from __future__ import annotations

import functools
import typing as t

from ...module_utils.purge import methods
from ..common import schema as schemas
from ..common.schema import plain, suggestion
from ..common.values import whole

# Keys in the plan and in a test file, whose schema says what each may be; with purge_ before it the variable. Null
# leaves it to the drive and its capacity.
OPTIONS = ("lba_size_bytes", "timeout_s", "stuck_s", "iomemory_size_pct", "iomemory_sector_bytes")
METHODS = ("auto", *methods.METHODS, "none")
VARIABLES = ("purge_method", *(f"purge_{key}" for key in OPTIONS))


def problems(asked: t.Mapping[str, t.Any]) -> list[str]:
    """What is wrong with a host's purge variables, as "variable: message"."""
    found = []
    method = plain(asked.get("purge_method"))
    if method is not None and method not in METHODS:
        found.append(f"purge_method: {method!r} must be one of: {', '.join(METHODS)}{suggestion(method, METHODS)}")
    for key, (least, most) in _ranges().items():
        variable = f"purge_{key}"
        value = plain(asked.get(variable))
        number = whole(value)
        if value not in (None, "") and (number is None or not least <= number <= most):
            found.append(f"{variable}: {value!r} must be a whole number from {least} to {most}, or null")
    return found


@functools.lru_cache(maxsize=1)
def _ranges() -> dict[str, tuple[int, int]]:
    known = schemas.load("test")["properties"]["purge"]["properties"]
    return {key: (known[key]["minimum"], known[key]["maximum"]) for key in OPTIONS}


def spec(given: t.Mapping[str, t.Any], variables: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """The purge of a rendered test: what its file says, and from the variables what it leaves open."""
    method = given["method"] if given["method"] != "auto" else str(plain(variables.get("purge_method")) or "auto")
    if method == "none":
        return {"method": method}
    options = {key: given.get(key) or whole(plain(variables.get(f"purge_{key}"))) for key in OPTIONS}
    return {"method": method, **{key: value for key, value in options.items() if value}}


def identity_after(identity: t.Mapping[str, t.Any], wanted: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """The identity of a drive after this purge, for planning what comes next."""
    own = wanted.get("iomemory_sector_bytes") if wanted["method"] == "iomemory_format" else None
    return {
        **identity,
        "logical_block_size_bytes": own or wanted.get("lba_size_bytes") or identity["logical_block_size_bytes"],
    }
