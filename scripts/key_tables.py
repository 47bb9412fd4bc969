# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables of docs/ from the schema of tests, from their files, and from the heads of plans and playbooks."""

from __future__ import annotations

import json
import re
import typing as t
from pathlib import Path

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import testfiles

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = ROOT / "plugins/plugin_utils/common/schemas/test.schema.json"
# What other playbooks begin with.
PARTS_OF_OTHERS = ("find_run", "servers")
# Of a key whose default is not what it says: true stands for an object of defaults.
DEFAULTS = {"purge": "`{method: auto}`", "precondition": "`{passes: 2, block_size: 128KiB}`", "rounds": "`{max: 25}`"}
# Where docs/workloads.md says more of a key.
ANCHORS = {
    "base": "bases", "precondition": "preconditioning", "array": "arrays", "filesystem": "file-systems",
    "zoned": "zoned", "cells": "cells", "phases": "phases", "write_cache": "write-cache",
    "refill_buffers": "data", "steady_state": "steady-state", "threads": "auto-threads", "block_size": "preferred",
    "mix": "mixes", "point": "phases", "per_cpu": "per-cpu", "jobs": "streams",
    "ioengine": "engines", "active_range_max_gib": "slices",
}  # fmt: skip
# They have the keys of a cell.
OF_CELLS = ("matrix", "lead")
Rows = t.List[t.Tuple[str, ...]]


def test_keys_table(of: str) -> Rows:
    """Return the keys of a test, or of a cell, with what the schema says of each. of: "test" or "cell"."""
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    keys = (schema if of == "test" else schema["$defs"]["cell"])["properties"]
    rows: Rows = [("key", "meaning", "default")]
    for key, about in keys.items():
        whole = {**schema["$defs"].get(about.get("$ref", "").rpartition("/")[2], {}), **about}
        within = ", ".join(f"`{name}`" for name in whole.get("properties", {}) if key not in OF_CELLS)
        meaning = _linked(whole["description"]) + (f" Keys: {within}." if within else "")
        name = f"[`{key}`](#{ANCHORS[key]})" if key in ANCHORS else f"`{key}`"
        rows.append((name, meaning, DEFAULTS.get(key, _shown(whole.get("default")))))
    return rows


def _shown(default: t.Any) -> str:
    return "" if default in (None, "", [], {}) else f"`{json.dumps(default)}`".replace('"', "")


def tests_table() -> Rows:
    """Return each shipped test: its title, what it shows, its source; and the tests that follow as its phases."""
    rows: Rows = [("test", "what it shows, and what it does not", "source")]
    for path in sorted(testfiles.SHIPPED_DIR.glob("tests/*.yml")):
        test, *phases = testfiles.load_plan([path.stem])
        following = ", ".join(f"`{phase.name}`" for phase in phases)
        told = f"**{test.title}.** {test.description.strip()}" + (f" Then {following}." if following else "")
        name = f"[`{path.stem}`](../{path.relative_to(ROOT)})"
        rows.append((name, _linked(told), _linked(test.source)))
    return rows


def plans_table() -> Rows:
    """Return what the head of each shipped plan says: what it is, shows, and does not show."""
    rows: Rows = [("plan", "what it is for", "shows", "does not show")]
    for path in sorted(testfiles.SHIPPED_DIR.glob("plans/*.yml")):
        told, _shows, rest = _head(path).partition(" Shows: ")
        shows, _not, lacks = rest.partition(" Does not show: ")
        rows.append((f"[`{path.stem}`](../{path.relative_to(ROOT)})", *map(_linked, (told, shows, lacks))))
    return rows


def _head(path: Path) -> str:
    """Return the comment that a file begins with as one line, less the commands in it."""
    head = re.search(r"^(?:# .*\n)+", path.read_text(encoding="utf-8"), re.MULTILINE)
    lines = head[0].splitlines() if head else []
    return " ".join(line[2:] for line in lines if not line.startswith("#   "))


def playbooks_table() -> Rows:
    """Return what each playbook does, by the comment that it begins with, less the commands in it."""
    rows: Rows = [("playbook", "what it does")]
    for path in sorted(ROOT.glob("playbooks/*.yml")):
        if path.stem not in PARTS_OF_OTHERS:
            rows.append((f"`{path.name}`", _linked(_head(path))))
    return rows


def _linked(text: str) -> str:
    """Return a text in Markdown: a page that it names as a link, and what would be a tag of HTML as code."""
    text = re.sub(r"\bdocs/([\w-]+)\.md\b", r"[\1](\1.md)", text)
    text = re.sub(r"(?<![\w`<(/-])((?:-e )?[a-z0-9]+_[\w…]*(?:=[\w…]+)?)(?![\w>-])", r"`\1`", text)
    return re.sub(r"(?<!`)((?:[\w-]*<\w+>[\w-]*/?)+)", r"`\1`", text)
