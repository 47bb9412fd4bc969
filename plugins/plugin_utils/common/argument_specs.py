# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The roles' argument_specs.yml: they own the names, types, choices and defaults of variables. Checks a host's values
against them, and against rules for what a spec can't say (docs/internals/settings.md). Pure but for reading the specs.
"""

from __future__ import annotations

import copy
import functools
import itertools
import typing as t
from types import MappingProxyType

import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from .schema import COLLECTION, plain, suggestion
from .values import integer, is_unset, number, switch, word

LONGEST_SHOWN = 200
# Six times as fast as Python's own, where libyaml is there.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
Option = dict[str, t.Any]
# What Ansible has for the variables of a host: any value, of which nobody knows yet whether it is right.
Variables = t.Mapping[str, t.Any]


class Rule(t.NamedTuple):
    """What a spec can't say of a variable. wanted: what it must be, for people. holds: whether a value of the right
    type is right; it gets the value in that type, null only of a variable that is raw.
    """

    wanted: str
    holds: t.Callable[[t.Any], bool] = lambda value: True


Rules = t.Mapping[str, Rule]


def limited(schema: t.Mapping[str, t.Any]) -> Rule:
    """Return the rule of a whole number whose limits a JSON Schema has."""
    otherwise = ", or null" if "null" in schema["type"] else ""
    if "enum" in schema:
        known = [each for each in schema["enum"] if each is not None]
        return Rule(f"one of: {', '.join(map(str, known))}{otherwise}", lambda value: value in known)
    least, most = schema["minimum"], schema["maximum"]
    return Rule(f"a whole number from {least} to {most}{otherwise}", lambda value: least <= value <= most)


@functools.cache
def options(role: str) -> dict[str, Option]:
    """{variable: its option} of a role. All callers share it: do not change it."""
    text = (COLLECTION / "roles" / role / "meta" / "argument_specs.yml").read_text(encoding="utf-8")
    entries = yaml.load(text, LOADER)["argument_specs"].values()
    return {name: option for entry in entries for name, option in (entry.get("options") or {}).items()}


def option(variable: str) -> Option:
    """Return a variable's option in the role that its prefix names. Raises KeyError."""
    return options(variable.split("_", 1)[0])[variable]


def default(variable: str) -> t.Any:
    """Return a variable's default, for code that runs outside of its role. Raises KeyError."""
    return copy.deepcopy(option(variable).get("default"))


def choices(variable: str) -> tuple[t.Any, ...]:
    """Return what a variable may be, where its spec lists that."""
    return tuple(option(variable).get("choices") or ())


def problems(role: str, asked: Variables, rules: Rules = MappingProxyType({})) -> list[str]:
    """Return what is wrong with a host's variables of a role, as "variable: message"."""
    checked = [name for name, about in options(role).items() if name in rules or about["type"] != "raw"]
    given = {name: plain(asked[name]) for name in checked if name in asked}
    # Most hosts leave most variables at their defaults, and all hosts are checked several times. By repr, as True is 1.
    given = {name: value for name, value in given.items() if repr(value) != _default_texts(role)[name]}
    return [
        f"{name}: {shown(value)} must be {_wanted(name, value, rules)}{_entry(role, name, value, rules)}"
        for name, value in _wrong(role, given, rules).items()
    ]


@functools.cache
def _default_texts(role: str) -> dict[str, str]:
    return {name: repr(about.get("default")) for name, about in options(role).items()}


def in_type(role: str, given: Variables) -> dict[str, t.Any]:
    """Plain values of a role's variables in the types of its spec; without those that do not fit."""
    read = {name: _read(options(role)[name], value) for name, value in given.items()}
    validated = _validated(role, read)
    if validated is not None:
        return validated
    # One by one, as Ansible's messages do not say which variable they are about.
    each = {name: _validated(role, {name: value}) for name, value in read.items()}
    return {name: found[name] for name, found in each.items() if found is not None}


def shown(value: t.Any) -> str:
    """Return a value as a message shows it; a huge one only begins there."""
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "…"


def _validated(role: str, given: dict[str, t.Any]) -> dict[str, t.Any] | None:
    """Values in their types; None where one does not fit."""
    strict = _strict_options(role)
    if any(
        strict[name]["type"] == "list" and not isinstance(value, (list, type(None))) for name, value in given.items()
    ):
        return None
    # Ansible reads mappings from texts such as a=b.
    if any("options" in strict[name] and not _are_entries(value) for name, value in given.items()):
        return None
    found = ArgumentSpecValidator({name: strict[name] for name in given}).validate(given)
    if found.error_messages:
        return None
    inner = [name for name in given if options(role)[name].get("options")]
    # The validator adds the keys that an entry leaves out, as null.
    return {**found.validated_parameters, **{name: _given_keys(found.validated_parameters[name]) for name in inner}}


def _given_keys(entries: t.Any) -> t.Any:
    return [{key: value for key, value in entry.items() if value is not None} for entry in entries]


@functools.cache
def _strict_options(role: str) -> dict[str, Option]:
    return {name: _strict(about) for name, about in options(role).items()}


def _strict(about: Option) -> Option:
    """Return an option for Ansible's validator with our readers as its types: Ansible's own take true for 1, split a
    text into a list, and make a text of everything.
    """
    inner = {name: _strict(part) for name, part in (about.get("options") or {}).items()}
    types: Option = {key: about[key] for key in ("type", "elements") if key in about}
    if not inner:
        types = {key: READERS.get(kind, kind) for key, kind in types.items()}
        # ansible-core 2.17 takes elements of its own list alone.
        types.update({"type": "list"} if "elements" in types else {})
    return {**about, **types, **({"options": inner} if inner else {})}


def _read(about: Option, value: t.Any) -> t.Any:
    """Return what a value that people, YAML or a survey gave stands for: an empty answer, or on and off that became
    true and false.
    """
    kind, standard = about["type"], about.get("default")
    if kind in ("str", "path"):
        value = word(value)
        return str(value) if isinstance(value, (int, float)) else value
    if standard is None and is_unset(value):
        return None
    if value in (None, "") and kind in ("list", "dict") and not (kind == "list" and standard):
        return [] if kind == "list" else {}
    return value


def _are_entries(value: t.Any) -> bool:
    """Return whether this is a list of mappings without a key that has no value."""
    return isinstance(value, list) and all(isinstance(item, dict) and None not in item.values() for item in value)


def _wrong(role: str, given: dict[str, t.Any], rules: Rules) -> dict[str, t.Any]:
    right = in_type(role, given)
    return {name: value for name, value in given.items() if name not in right or not _holds(name, right[name], rules)}


def _holds(variable: str, value: t.Any, rules: Rules) -> bool:
    """Return what has one type is null only where that is its default, so only others' rules have to say."""
    if variable not in rules or (value is None and option(variable)["type"] != "raw"):
        return True
    return rules[variable].holds(value)


def _wanted(variable: str, value: t.Any, rules: Rules) -> str:
    """Return what a variable must be, for people."""
    about = option(variable)
    if variable in rules:
        return rules[variable].wanted
    if "choices" in about:
        words = [str(each) for each in about["choices"]]
        return f"one of: {', '.join(each or repr(each) for each in words)}{suggestion(str(value), words)}"
    if "options" in about:
        return f"{KINDS[about['type']]} of mappings with {', '.join(about['options'])}"
    return KINDS[about["type"]]


def _entry(role: str, variable: str, value: t.Any, rules: Rules) -> str:
    """Return which entry of a list is wrong, where it has several."""
    if option(variable)["type"] != "list" or not isinstance(value, list) or len(value) < 2:
        return ""
    wrong = (item for item in value if _wrong(role, {variable: [item]}, rules))
    return "".join(f"; wrong: {shown(item)}" for item in itertools.islice(wrong, 1))


def _reader(convert: t.Callable[[t.Any], t.Any]) -> t.Callable[[t.Any], t.Any]:
    """Return a type for Ansible's validator. convert: returns None for what does not fit."""

    def read(value: t.Any) -> t.Any:
        found = convert(value)
        if found is None:
            raise TypeError
        return found

    return read


def _of(kind: type[t.Any]) -> t.Callable[[t.Any], t.Any]:
    return _reader(lambda value: value if isinstance(value, kind) else None)


READERS = {
    "bool": _reader(switch),
    "int": _reader(integer),
    "float": _reader(number),
    "str": _of(str),
    "path": _of(str),
    "list": _of(list),
    "dict": _of(dict),
}
# A type as messages name it.
KINDS = {
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "path": "a path",
    "list": "a list",
    "dict": "a mapping",
}
