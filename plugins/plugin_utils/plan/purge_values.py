# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The variables of the role purge: what each may be, and the purge of a test that they and its file give. Pure."""

from __future__ import annotations

import functools
import typing as t

from ...module_utils.records.plan import PlannedPurge
from ..common import argument_specs
from ..common import schema as schemas
from ..common.argument_specs import Variables
from ..common.schema import plain
from ..common.values import integer

# Keys in the plan and in a test file, whose schema has their ranges; with purge_ before it the variable. Null leaves it
# to the drive and its capacity.
VARIABLES = tuple(argument_specs.options("purge"))
OPTIONS = tuple(name.removeprefix("purge_") for name in VARIABLES if name != "purge_method")


def problems(asked: Variables) -> list[str]:
    """Return what is wrong with a host's purge variables, as "variable: message"."""
    given = {name: value for name, value in asked.items() if name != "purge_method" or value is not None}
    return argument_specs.problems("purge", given, _rules())


@functools.cache
def _rules() -> dict[str, argument_specs.Rule]:
    known = schemas.load("test")["properties"]["purge"]["properties"]
    return {f"purge_{key}": argument_specs.limited(known[key]) for key in OPTIONS}


def spec(given: PlannedPurge, variables: Variables) -> PlannedPurge:
    """Return the purge of a test: what its file says, and from the variables what it leaves open."""
    method = given.method
    if method == "auto":
        method = str(plain(variables.get("purge_method")) or argument_specs.default("purge_method"))
    if method == "none":
        return PlannedPurge(method)
    options: dict[str, t.Any] = {
        key: getattr(given, key) or integer(plain(variables.get(f"purge_{key}"))) for key in OPTIONS
    }
    return PlannedPurge(method, **{key: value for key, value in options.items() if value})


def lba_size_after(purge: PlannedPurge, lba_size_bytes: int) -> int:
    """Return the LBA size of a drive after a purge, for planning what comes next. lba_size_bytes: before it."""
    own = purge.iomemory_sector_bytes if purge.method == "iomemory_format" else None
    return own or purge.lba_size_bytes or lba_size_bytes
