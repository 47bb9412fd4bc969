# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find variables whose names nothing reads: misspelt ones stop the run, other unknown names of ours are remarks
(docs/checks.md). Pure but for reading the collection's own files.
"""

from __future__ import annotations

import contextlib
import functools
import re
import typing as t

from ansible.errors import AnsibleError

from ..common import argument_specs
from ..common.argument_specs import Variables
from ..common.schema import COLLECTION

# The roles whose variables a host may have; the prefix of a variable is its role.
ROLES = ("ssd", "precondition", "preflight", "purge", "report", "tune", "vendor", "workload")
# Variables of playbooks alone, so in no role's specs.
OF_PLAYBOOKS = (
    "ssd_discover_file",
    "ssd_hosts",
    "ssd_import_raw",
    "ssd_other_tags",
    "ssd_release_drive",
    "ssd_slice",
)
OWN = "ssd"
# Of names this short another word is only a letter or two away: ssd_model is no misspelt ssd_mode (_is_slip).
SHORT, MEDIUM = 4, 5
LONG_STEM = 8
NAME = re.compile(r"[A-Za-z_]\w*")
# Views of all others, and what hosts answered: no texts of the inventory.
NO_TEXTS = ("hostvars", "vars", "groups", "ansible_facts", "ssd_decision", "ssd_seen")

REMEDY = "remove it, or give it a name that does not begin with ssd_"


class Unknown(t.NamedTuple):
    """A variable that nothing reads. meant: the one that it is misspelt for, or empty."""

    name: str
    meant: str = ""


def unknown(
    hosts: t.Mapping[str, Variables], play: Variables, inventory_plugins: t.Sequence[t.Any] = ()
) -> dict[str, list[Unknown]]:
    """Return {host: its variables that nothing reads}, without those that a template uses. hosts: each host's variables
    as they stand; play: those of the task, which also has what its play sets for all; inventory_plugins: their
    settings, whose values are expressions (compose, groups).
    """
    suspects = {host: [*filter(None, map(judge, variables))] for host, variables in hosts.items()}
    names = {each.name for found in suspects.values() for each in found}
    of_play = [each for each in map(judge, play) if each and each.name not in names]
    names |= {each.name for each in of_play}
    if not names:
        return {}
    used = set().union(*(_used(variables, names) for variables in (play, *hosts.values())))
    used.update(*(NAME.findall(text) for text in _texts(inventory_plugins)))
    kept = {host: [each for each in [*found, *of_play] if each.name not in used] for host, found in suspects.items()}
    return {host: found for host, found in kept.items() if found}


@functools.cache
def judge(name: str) -> Unknown | None:
    """Return what is wrong with the name of a variable; None: it is known, or its user's own."""
    if name in _known():
        return None
    meant = _meant(name)
    return Unknown(name, meant) if meant or name.startswith(OWN + "_") else None


def finding(name: Unknown) -> str:
    """Return the message for a misspelt variable."""
    return (
        f"{name.name}: there is no such variable, so it would be ignored; did you mean {name.meant}? If it is your "
        "own, give it another name"
    )


def remark(name: Unknown) -> str:
    """Return the message for a name that may be the user's own."""
    return (
        f"{name.name}: no variable of this collection, and no template of the inventory uses it: it has no effect on "
        "what this collection does"
    )


@functools.cache
def _settable() -> tuple[str, ...]:
    """Return the variables that a host, group or play may set."""
    return (*OF_PLAYBOOKS, *(name for role in ROLES for name in argument_specs.options(role)))


@functools.cache
def _known() -> frozenset[str]:
    """Also what the playbooks and roles themselves set and register."""
    files = [*COLLECTION.glob("playbooks/*.yml"), *COLLECTION.glob("roles/*/*/*.yml")]
    own = re.compile(rf"\b{OWN}_\w+")
    found = {name for path in files for name in own.findall(path.read_text(encoding="utf-8"))}
    return frozenset(found.union(_settable()))


def _meant(name: str) -> str:
    """Return the variable of ours that a name is misspelt for, or an empty text."""
    near = [(edits, known) for known in _settable() if (edits := _edits(name, known)) is not None]
    return min(near)[1] if near else ""


def _edits(name: str, known: str) -> int | None:
    """Return how many edits lie between a name and a variable; None: too many for a slip."""
    (prefix, stem), (own_prefix, own_stem) = name.partition("_")[::2], known.partition("_")[::2]
    if prefix == own_prefix:
        length, edits = len(own_stem), distance(stem, own_stem)
        most = 2 if length > MEDIUM else 1
        slipped = length > SHORT or _is_slip(stem, own_stem)
        return edits if edits <= most and slipped else None
    # Of other words for the prefix, only slips in ssd: hdd_drives and tuned_governor are no misspelt ones.
    if own_prefix == OWN and set(prefix) == set(OWN) and len(own_stem) >= LONG_STEM:
        edits = distance(stem, own_stem)
        return edits + 1 if edits <= 1 else None
    return None


def _is_slip(stem: str, own: str) -> bool:
    """Return whether a short word is one of ours with letters swapped, the last one missing or twice, or with an s."""
    return sorted(stem) == sorted(own) or stem in (own[:-1], own + own[-1], own + "s")


def distance(one: str, other: str) -> int:
    """Return the edits between two words: letters inserted, left out, replaced, or swapped with the next (Damerau and
    Levenshtein, in optimal string alignment); of more than two, only that.
    """
    if abs(len(one) - len(other)) > 2:
        return 3
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        before, last, row = row, before, [i]
        for j, wanted in enumerate(other, 1):
            best = min(row[j - 1] + 1, before[j] + 1, before[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                best = min(best, last[j - 2] + 1)
            row.append(best)
    return row[-1]


def _used(variables: Variables, names: t.Collection[str]) -> set[str]:
    """Return those of these names that the templates among some variables mention, each but in its own text."""
    found: set[str] = set()
    for key, value in variables.items():
        if key not in NO_TEXTS:
            with contextlib.suppress(AnsibleError):  # a vaulted value without its password
                templates = [text for text in _texts(value) if "{{" in text or "{%" in text]
                words = {word for text in templates for word in NAME.findall(text)}
                found |= {word for word in words if word in names and word != key}
    return found


def _texts(value: t.Any) -> t.Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, t.Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _texts(each)
