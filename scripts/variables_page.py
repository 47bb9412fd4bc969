# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reference of all variables, docs/variables.md, from the roles' specs; scripts/doc_tables.py writes it."""

from __future__ import annotations

import json
import re
import textwrap
import typing as t
from pathlib import Path

import yaml

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import argument_specs

# Of variables whose form their type does not tell.
EXAMPLES = Path(__file__).with_name("variable_examples.yml")
WIDTH = 150


class _Quoting(yaml.SafeDumper):
    """YAML in which texts that begin like a number are in quotes, as people should write them."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    quoted = '"' if re.match(r"\d|$", value) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=quoted)


_Quoting.add_representer(str, _text)


def text(role: str) -> str:
    """Return the variables of a role in Markdown, each with a heading to link to."""
    return "\n\n".join(_entry(name, about) for name, about in argument_specs.options(role).items())


def example(name: str, about: t.Mapping[str, t.Any]) -> t.Any:
    """Return a value that a variable may have, another one than its default where its spec tells one."""
    given = yaml.safe_load(EXAMPLES.read_text(encoding="utf-8"))
    if name in given:
        return given[name]
    default, choices = about.get("default"), about.get("choices")
    if choices:
        other = next((each for each in choices if each != default and each != [default]), choices[0])
        return [other] if about["type"] == "list" else other
    return not default if about["type"] == "bool" else default


def _entry(name: str, about: t.Mapping[str, t.Any]) -> str:
    kind = about["type"] + (f" of {about['elements']}" if "elements" in about else "")
    facts = [f"Type: {kind}", f"default: `{json.dumps(about.get('default'), ensure_ascii=False)}`"]
    if about.get("choices"):
        facts.append("choices: " + ", ".join(f"`{each}`" for each in about["choices"]))
    told = about["description"]
    lines = [told] if isinstance(told, str) else told
    value = example(name, about)
    flow = None if isinstance(value, (list, dict)) else False
    shown = yaml.dump({name: value}, Dumper=_Quoting, default_flow_style=flow, sort_keys=False, width=120).strip()
    return "\n".join(
        [f"### {name}", *_wrapped("; ".join(facts) + "."), "", *_wrapped(_of_spec(" ".join(lines)))]
        + _parts(about.get("options") or {})
        + ["```yaml", shown, "```"]
    )


def _parts(options: t.Mapping[str, t.Mapping[str, t.Any]]) -> list[str]:
    """Return the keys of a variable's entries."""
    found = []
    for key, about in options.items():
        told = about["description"]
        required = ", required" if about.get("required") else ""
        said = _of_spec(told if isinstance(told, str) else " ".join(told))
        found += _wrapped(f"- `{key}` ({about['type']}{required}): {said}", "  ")
    return found and ["", *found, ""]


def _wrapped(said: str, indent: str = "") -> list[str]:
    return textwrap.wrap(said, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _of_spec(said: str) -> str:
    """Return a description of an argument spec in Markdown, with what it names linked where that is a variable."""
    said = re.sub(r"\bO\((\w+)\)", r"[`\1`](#\1)", re.sub(r"\bO\(([\w.]+)#role:\w+:(\w+)\)", r"[`\2`](#\2)", said))
    said = re.sub(r"\bC\(docs/([\w/]+\.md)\)", r"[\1](\1)", said)
    return re.sub(r"\b[VOCMP]\(([^()]*)\)", r"`\1`", said)
