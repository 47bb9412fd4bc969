# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host's BIOS has, what is asked of it (tune_bios), and what is to be staged for its next boot. Pure."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from ...module_utils.records.base import Scalar
from ..common import bmc_tables as tables
from ..validation import printable
from .bmc import BmcIdentity

Attributes = dict[str, Scalar]
# A board has a few hundred.
MOST = 4000
MOST_NAME, MOST_VALUE = 200, 500
MOST_NAMED = 8


@dataclass(frozen=True)
class BiosState:
    """A Bios resource (DSP8010, Bios.v1): what is in force, and what its settings resource holds for the next boot
    otherwise. settings: where that is; registry: the name of the attribute registry; identity: whose it is.
    """

    attributes: Attributes
    pending: Attributes = field(default_factory=dict)
    manufacturer: str = ""
    settings: str = ""
    registry: str = ""
    identity: BmcIdentity = BmcIdentity((), ())


# {attribute: its values}, of enumerations in a registry; None: of another type; missing: the registry lacks it.
Registry = t.Mapping[str, "tuple[str, ...] | None"]


class BiosError(Exception):
    """What is asked can't be set; the message says why, and what the board has instead."""


def clean(given: t.Any) -> Attributes:
    """Return what a BMC gives as attributes, without what is none."""
    if not isinstance(given, dict):
        return {}
    found: Attributes = {}
    for name, value in given.items():
        is_value = value is None or isinstance(value, (str, int, float))
        if "@" in str(name) or not is_value or len(str(name)) > MOST_NAME or len(found) >= MOST:
            continue
        found[printable.line(name)] = printable.line(value, MOST_VALUE) if isinstance(value, str) else value
    return found


def wanted(asked: t.Mapping[str, t.Any], state: BiosState, registry: Registry) -> Attributes:
    """Return {attribute of this board: value} of tune_bios. Attributes by name outrank the profile. Raises BiosError
    for a board that the table does not know, an attribute that it lacks, and a value that its registry does not allow.
    """
    found: Attributes = {}
    if asked.get("profile"):
        found.update(_of_profile(str(asked["profile"]), state, registry))
    for name, value in (asked.get("attributes") or {}).items():
        if name not in state.attributes:
            raise BiosError(f"tune_bios: this board has no attribute {name}{_near(name, state.attributes)}")
        found[name] = _typed(value, state.attributes[name])
    wrong = [
        f"{name} may be {', '.join(registry[name] or ())}, not {value}"
        for name, value in found.items()
        if registry.get(name) and str(value) not in (registry[name] or ())
    ]
    if wrong:
        raise BiosError(f"tune_bios: {'; '.join(wrong)}")
    return found


def _of_profile(profile: str, state: BiosState, registry: Registry) -> Attributes:
    maker = tables.maker_of(state.manufacturer)
    choices = maker.profiles.get(profile, ()) if maker else ()
    own = {tables.plain_name(name): name for name in state.attributes}
    found: Attributes = {}
    for choice in choices:
        name = own.get(tables.plain_name(choice.attribute))
        if name is not None:
            allowed = registry.get(name) or tuple(map(str, choice.values))
            found[name] = next((value for value in choice.values if str(value) in allowed), choice.values[0])
    if not found:
        raise BiosError(
            f"tune_bios: no profile {profile} is known for a board of {state.manufacturer or 'an unknown maker'}"
            f"{_alike(state)}; name its attributes: tune_bios: {{attributes: {{…}}}}"
        )
    return found


def _alike(state: BiosState) -> str:
    alike = tables.look_alikes(state.attributes, tables.load().settings)
    told = [
        f"{setting}: {', '.join(f'{name}={state.attributes[name]}' for name in names[:MOST_NAMED])}"
        for setting, names in alike.items()
    ]
    return f". What it has looks like {'; '.join(told)}" if told else ", and no attribute of it looks like one"


def _near(name: str, attributes: Attributes) -> str:
    plain = tables.plain_name(name)
    near = [each for each in attributes if plain in tables.plain_name(each) or tables.plain_name(each) in plain]
    return f"; it has {', '.join(near[:MOST_NAMED])}" if near else ""


def _typed(value: Scalar, now: Scalar) -> Scalar:
    """Return a value as the board writes such values: YAML's on, off and numbers are not always meant as such."""
    if isinstance(now, str) and not isinstance(value, str):
        return ("Enabled" if value else "Disabled") if isinstance(value, bool) else str(value)
    return value


def to_stage(want: Attributes, state: BiosState) -> Attributes:
    """Return what the settings resource has to hold otherwise for the next boot to bring this about."""
    return {name: value for name, value in want.items() if state.pending.get(name, state.attributes.get(name)) != value}


def not_in_force(want: Attributes, state: BiosState) -> Attributes:
    """Return what is not as wanted in the BIOS that runs."""
    return {name: value for name, value in want.items() if state.attributes.get(name) != value}


def listed(attributes: t.Mapping[str, Scalar]) -> str:
    """Return attributes for a message: all of a few, the first of many."""
    told = [f"{name}={value}" for name, value in sorted(attributes.items())]
    return ", ".join(told[:MOST_NAMED]) + (f" and {len(told) - MOST_NAMED} more" if len(told) > MOST_NAMED else "")


def text(attributes: t.Mapping[str, Scalar]) -> str:
    """Return attributes as lines, for a diff."""
    return "".join(f"{name}: {value}\n" for name, value in sorted(attributes.items()))
