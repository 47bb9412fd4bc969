# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What tune_bios and tune_fans_ipmi may be. Pure."""

from __future__ import annotations

import typing as t

from . import bmc_tables as tables

BIOS_KEYS = ("profile", "attributes")
FANS_KEYS = ("high", "restore")
# The network function, the command, and data, as `ipmitool raw` takes them.
MOST_BYTES = 64


def bios_problem(asked: t.Any) -> str:
    """Return what is wrong with tune_bios; "": nothing."""
    if not isinstance(asked, dict):
        return "must be a mapping with profile or attributes"
    unknown = [str(key) for key in asked if key not in BIOS_KEYS]
    if unknown:
        return f"has the unknown key {unknown[0]}; it takes {' and '.join(BIOS_KEYS)}"
    profile, attributes = asked.get("profile"), asked.get("attributes")
    if profile is not None and profile not in tables.profiles():
        return f"profile: {profile!r} must be one of: {', '.join(tables.profiles())}"
    if attributes is not None and (not isinstance(attributes, dict) or not all(map(_is_given, attributes.items()))):
        return "attributes: must be a mapping of attributes to texts, numbers, true or false"
    return ""


def _is_given(item: tuple[t.Any, t.Any]) -> bool:
    return isinstance(item[0], str) and bool(item[0]) and isinstance(item[1], (str, int, float))


def fans_problem(given: t.Any) -> str:
    """Return what is wrong with tune_fans_ipmi; "": nothing."""
    if not isinstance(given, dict) or (given and set(given) != set(FANS_KEYS)):
        return "must be a mapping with high and restore, each a list of raw commands"
    for key in given:
        commands = given[key]
        if not isinstance(commands, list) or not commands:
            return f"{key}: must be a list of raw commands, such as 0x30 0x45 0x01 0x01"
        try:
            for command in commands:
                parsed(command)
        except ValueError as error:
            return f"{key}: {error}"
    return ""


def parsed(command: t.Any) -> list[int]:
    """Return the bytes of a raw command: 0x30 0x45 0x01. Raises ValueError."""
    words = command.split() if isinstance(command, str) else ()
    try:
        found = [int(word, 0) for word in words]
    except ValueError:
        found = []
    if not 2 <= len(found) <= MOST_BYTES or not all(0 <= byte <= 255 for byte in found):
        raise ValueError(f"{command!r} is not 2 to {MOST_BYTES} bytes such as 0x30 0x45 0x01 0x01")
    return found
