# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What boards call the settings of the ioMemory guide, and how BMCs set fans high: roles/tune/files/bmc_tables.yml."""

from __future__ import annotations

import fnmatch
import functools
import re
import typing as t
from dataclasses import dataclass

import yaml

from ...module_utils.records.base import Scalar
from .argument_specs import LOADER
from .schema import COLLECTION

Attributes = t.Mapping[str, Scalar]
# Words of a name in camel case, of digits, or in capitals.
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z]+|[a-z]+|[0-9]+")


@dataclass(frozen=True)
class Choice:
    """What a profile sets. values: the first that the board allows."""

    setting: str
    attribute: str
    values: tuple[Scalar, ...]


@dataclass(frozen=True)
class Maker:
    """What the boards of a maker call it. manufacturer: shell patterns."""

    name: str
    manufacturer: tuple[str, ...]
    profiles: t.Mapping[str, tuple[Choice, ...]]
    sources: tuple[str, ...]


@dataclass(frozen=True)
class FanMode:
    """Where a BMC keeps its fan mode. path: below the service root, * for each member; high: the value."""

    name: str
    path: str
    property: tuple[str, ...]
    high: Scalar
    sources: tuple[str, ...]


@dataclass(frozen=True)
class Tables:
    """The file. settings: words of an unknown board's attributes that may be meant; own: words of those that differ
    between any two machines.
    """

    settings: t.Mapping[str, tuple[str, ...]]
    makers: tuple[Maker, ...]
    own: frozenset[str]
    fans: tuple[FanMode, ...]


@functools.cache
def load() -> Tables:
    """Return the tables."""
    text = (COLLECTION / "roles" / "tune" / "files" / "bmc_tables.yml").read_text(encoding="utf-8")
    given = yaml.load(text, LOADER)
    makers = [
        Maker(
            one["name"],
            tuple(one["manufacturer"]),
            {
                name: tuple(Choice(each["setting"], each["attribute"], tuple(each["values"])) for each in choices)
                for name, choices in one["profiles"].items()
            },
            tuple(one["sources"]),
        )
        for one in given["makers"]
    ]
    fans = [
        FanMode(one["name"], one["path"], tuple(one["property"]), one["high"], tuple(one["sources"]))
        for one in given["fans"]
    ]
    settings = {name: tuple(words) for name, words in given["settings"].items()}
    return Tables(settings, tuple(makers), frozenset(given["own"]), tuple(fans))


def profiles() -> tuple[str, ...]:
    """Return the names of all profiles."""
    return tuple(sorted({name for maker in load().makers for name in maker.profiles}))


def plain_name(attribute: str) -> str:
    """Return an attribute's name as names are compared."""
    return re.sub(r"[^a-z0-9]", "", attribute.partition("#")[0].lower())


def maker_of(manufacturer: str) -> Maker | None:
    """Return whose names a board of this manufacturer has."""
    found = (
        maker
        for maker in load().makers
        if any(fnmatch.fnmatch(manufacturer.lower(), pattern.lower()) for pattern in maker.manufacturer)
    )
    return next(found, None)


@functools.lru_cache(maxsize=10_000)
def is_own(attribute: str) -> bool:
    """Return whether an attribute is of one machine alone: its serial number, its addresses."""
    words = [word.lower() for word in _WORDS.findall(attribute)]
    pairs = {first + second for first, second in zip(words, words[1:])}
    return not load().own.isdisjoint({*words, *pairs})


def look_alikes(attributes: Attributes, settings: t.Iterable[str]) -> dict[str, list[str]]:
    """Return {setting: attributes of a board that may be it}, without settings that have none."""
    names = {name: plain_name(name) for name in attributes}
    found = {
        setting: [name for name, plain in names.items() if any(word in plain for word in load().settings[setting])]
        for setting in settings
    }
    return {setting: alike for setting, alike in found.items() if alike}
